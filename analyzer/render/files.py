"""Which painting goes into which file, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from analyzer.errors import UsageError
from analyzer.render import console, html, markdown
from analyzer.report.document import Report, dumps

Document = TypeVar("Document")
Contra = TypeVar("Contra", contravariant=True)


class Text(Protocol[Contra]):
    """Paints a document for the terminal."""

    def __call__(self, report: Contra, *, color: bool, ascii_only: bool) -> str:
        """The text."""


@dataclass(frozen=True)
class Painters(Generic[Document]):
    """How one kind of document is painted. `formats` are file name in a folder of outputs, and what
    paints it; `text` is for the terminal, `line` the verdict alone.
    """

    formats: Mapping[str, tuple[str, Callable[[Document], str]]]
    text: Text[Document]
    line: Callable[[Document], str]


REPORT: Painters[Report] = Painters(
    formats={
        "html": ("report.html", html.render),
        "json": ("report.json", lambda report: dumps(report).decode()),
        "markdown": ("report.md", markdown.comment),
    },
    text=console.render,
    line=console.verdict_line,
)
# Endings that ask for something else than a folder.
_FOREIGN = frozenset({".pdf", ".txt", ".csv", ".svg", ".png", ".xml", ".yaml"})
_BY_SUFFIX = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def plan(output: Path, formats: list[str], painters: Painters[Any] = REPORT) -> dict[Path, str]:
    """File -> format: `output` names a file by its suffix, else a folder for all the formats."""
    named = _BY_SUFFIX.get(output.suffix.lower())
    if named is None and (output.is_file() or output.suffix.lower() in _FOREIGN):
        raise UsageError(
            f"{output.name} is no output this program writes",
            f"give a folder to -o, or a name that ends in {', '.join(_BY_SUFFIX)}",
        )
    if named is None:
        return {output / painters.formats[f][0]: f for f in (formats or list(painters.formats))}
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
            "pass --force to replace what is there",
        )


def encoded(text: str) -> bytes:
    """The text as UTF-8, with ? for what no text can hold (half of a surrogate pair)."""
    return text.encode("utf-8", "replace")


def write(path: Path, data: bytes) -> int:
    """Writes the file, replacing an old one only when all of it is on disk; its size."""
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
