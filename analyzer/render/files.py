"""Which painting goes into which file, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from analyzer.errors import UsageError
from analyzer.render import html, markdown
from analyzer.report.document import Report, dumps

Painter = Callable[[Report], str]

# Format -> file name in a folder of outputs, and how it is painted.
FORMATS: dict[str, tuple[str, Painter]] = {
    "html": ("report.html", html.render),
    "json": ("report.json", lambda report: dumps(report).decode()),
    "markdown": ("report.md", markdown.comment),
}
_BY_SUFFIX = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def plan(output: Path, formats: list[str]) -> dict[Path, str]:
    """File -> format: `output` names a file by its suffix, else a folder for all the formats."""
    named = _BY_SUFFIX.get(output.suffix.lower())
    if named is None:
        return {output / FORMATS[f][0]: f for f in (formats or list(FORMATS))}
    if formats not in ([], [named]):
        raise UsageError(
            f"{output.name} holds one format, {', '.join(formats)} was asked for",
            "give a folder to -o, or leave --format out",
        )
    return {output: named}


def check(files: list[Path], *, force: bool) -> None:
    """UsageError when a file exists already and may not be replaced."""
    existing = [path.name for path in files if path.exists()]
    if existing and not force:
        raise UsageError(f"{', '.join(existing)} exists already", "pass --force to replace it")


def encoded(text: str) -> bytes:
    """The text as UTF-8, with ? for what no text can hold (half of a surrogate pair)."""
    return text.encode("utf-8", "replace")


def write(path: Path, text: str) -> int:
    """Writes `text` as UTF-8, replacing the file only when all of it is on disk; its size."""
    data = encoded(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from error
    return len(data)
