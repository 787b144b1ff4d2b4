"""Which painting goes into which file, all of them written whole or none at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from analyzer.errors import UsageError

# Format -> ending of its file. A picture is written where it is asked for by name.
FORMATS = {"html": ".html", "json": ".json", "markdown": ".md", "svg": ".svg"}
WRITTEN = ("html", "json", "markdown")
# Endings that ask for something else than a folder.
_FOREIGN = frozenset({".pdf", ".txt", ".csv", ".png", ".xml", ".yaml"})
_BY_SUFFIX = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".svg": "svg"}


def plan(output: Path, formats: list[str], stem: str = "report") -> dict[Path, str]:
    """File -> format: `output` names a file by its suffix, else a folder for all the formats, in
    files called `stem`.
    """
    named = _BY_SUFFIX.get(output.suffix.lower())
    if named is None and (output.is_file() or output.suffix.lower() in _FOREIGN):
        raise UsageError(
            f"{output.name} is no output this program writes",
            f"give a folder to -o, or a name that ends in {', '.join(_BY_SUFFIX)}",
        )
    if named is None:
        return {output / f"{stem}{FORMATS[f]}": f for f in (formats or WRITTEN)}
    if formats not in ([], [named]):
        raise UsageError(
            f"{output.name} holds one format, {', '.join(formats)} was asked for",
            "give a folder to -o, or leave --format out",
        )
    return {output: named}


def check(files: list[Path], *, force: bool) -> None:
    """UsageError when a file exists already and may not be replaced."""
    existing = [path for path in files if path.exists()]
    if existing and not force:
        names = ", ".join(path.name for path in existing[:3])
        more = f" and {len(existing) - 3} more" if len(existing) > 3 else ""
        raise UsageError(
            f"already in {existing[0].parent}: {names}{more}",
            "pass -f to replace what is there",
        )


def encoded(text: str) -> bytes:
    """The text as UTF-8, with ? for what no text can hold (half of a surrogate pair)."""
    return text.encode("utf-8", "replace")


def write(contents: Mapping[Path, bytes]) -> None:
    """Writes the files, replacing old ones only when all of all of them is on disk."""
    temporaries: dict[Path, str] = {}
    current = None
    try:
        for current, data in contents.items():
            current.parent.mkdir(parents=True, exist_ok=True)
            handle, temporaries[current] = tempfile.mkstemp(
                dir=current.parent, prefix=f".{current.name}."
            )
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporaries[current], 0o644)
        for current in contents:
            os.replace(temporaries[current], current)
            del temporaries[current]
    except OSError as error:
        raise UsageError(f"{current}: cannot be written ({error.strerror or error})") from error
    finally:
        for left in temporaries.values():
            os.unlink(left)
