"""Which files under the given paths are traces, and why are the others not?

Content decides, not names; only inside a folder do names choose what is looked at. Whose each trace
is can be said once it has been read: see assign.py.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from analyzer.trace import stores
from analyzer.trace.sniff import why_not_a_trace
from analyzer.trace.stores import TracePath

_LOOKED_AT = (".json", ".gz", ".zst", ".digest")
_NOT_A_FILE = "not a regular file; write it to disk first"


@dataclass(frozen=True)
class Skipped:
    """An input that is not analysed; `bytes` is None for what is not a file."""

    name: str
    bytes: int | None
    reason: str

    @property
    def sentence(self) -> str:
        """Name, size and reason on one line."""
        size = "" if self.bytes is None else f" ({self.bytes:,} bytes)"
        return f"{self.name}{size}: {self.reason}"


@dataclass(frozen=True)
class Found:
    """What the given paths hold, each group in natural order of its paths."""

    traces: tuple[TracePath, ...]
    digests: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


def find(paths: Sequence[str]) -> Found:
    """The traces and digests under files, folders and patterns; what is skipped, and why.

    A file reached twice counts once. Folders are searched through; hidden ones in them are not.
    """
    search = _Search()
    for path in paths:
        search.add(path)
    return Found(
        tuple(sorted(search.traces, key=natural_order)),
        tuple(sorted(search.digests, key=natural_order)),
        tuple(search.skipped),
    )


def natural_order(path: PurePath) -> list[tuple[int, str]]:
    """Sort key that puts rank2 before rank10."""
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(p), "") if i % 2 else (0, p) for i, p in enumerate(parts)]


@dataclass
class _Search:
    """Collects files, each once by its real path."""

    traces: list[TracePath] = field(default_factory=list)
    digests: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        path = os.path.expanduser(text)
        if os.path.exists(path):
            self._named(Path(path))
        elif stores.is_address(text):
            self._address(text)
        elif glob.has_magic(path):
            matches = glob.glob(path, recursive=True)
            for match in matches:
                self._named(Path(match))
            if not matches:
                self._skip(text, "no file matches this pattern")
        else:
            self._skip(text, "no such file or folder")

    def _named(self, path: Path) -> None:
        if not path.is_dir():
            self._file(path, path.name)
            return
        looked_at = 0
        for here, name in self._walk(path):
            looked_at += 1
            self._file(here / name, (here / name).relative_to(path).as_posix())
        if not looked_at:
            wanted = ", ".join(f"*{suffix}" for suffix in _LOOKED_AT)
            self._skip(path.resolve().name, f"no trace in this folder (looked for {wanted})")

    def _address(self, url: str) -> None:
        try:
            found = stores.listed(url)
        except OSError as error:
            self._skip(stores.without_signature(url), f"cannot be read ({error.strerror})")
            return
        several = len(found) > 1
        looked_at = [r for r in found if not several or r.name.lower().endswith(_LOOKED_AT)]
        for remote in looked_at:
            if remote.url in self.seen:
                continue
            self.seen.add(remote.url)
            if reason := why_not_a_trace(remote):
                self._skip(remote.name, reason)
            else:
                self.traces.append(remote)
        if not looked_at:
            self._skip(stores.without_signature(url), "no trace at this address")

    def _walk(self, root: Path) -> Iterator[tuple[Path, str]]:
        """Folder and name of every file that may be a trace; links back to a folder end there."""
        visited = {os.path.realpath(root)}

        def unreadable(error: OSError) -> None:
            self._skip(Path(error.filename).name, f"folder cannot be read ({error.strerror})")

        for here, folders, names in os.walk(root, followlinks=True, onerror=unreadable):
            inside = {f: os.path.realpath(os.path.join(here, f)) for f in sorted(folders)}
            folders[:] = [f for f, real in inside.items() if f[0] != "." and real not in visited]
            visited.update(inside[f] for f in folders)
            for name in sorted(names):
                if name[0] != "." and name.lower().endswith(_LOOKED_AT):
                    yield Path(here), name

    def _file(self, path: Path, name: str) -> None:
        real = os.path.realpath(path)
        if real in self.seen:
            return
        self.seen.add(real)
        if not os.path.isfile(path):
            linked = path.is_symlink() and not os.path.exists(path)
            self._skip(name, "a broken link" if linked else _NOT_A_FILE)
            return
        size = path.stat().st_size
        digest = path.suffix.lower() == ".digest"
        reason = ("" if size else "empty file") if digest else why_not_a_trace(path)
        if reason:
            self.skipped.append(Skipped(name, size, reason))
        else:
            (self.digests if digest else self.traces).append(path)

    def _skip(self, name: str, reason: str) -> None:
        self.skipped.append(Skipped(name, None, reason))
