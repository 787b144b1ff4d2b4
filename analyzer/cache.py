"""Has this trace been reduced before? Digests by the content of their file, in the user's folder.

A key holds everything a digest follows from: the bytes of the file, this program, the settings.
Names do not count, so a copy is known too. An entry is data only, and one that cannot be read is
made again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from analyzer import __version__
from analyzer.config import Settings
from analyzer.digest import DIGEST_VERSION, RankDigest, load, packed
from analyzer.errors import UnusableInput, UsageError

# What was not used for longest goes when all entries together are larger.
LARGEST_BYTES = 2 * 1024**3

_PIECE = 1024 * 1024
_PACKAGE = Path(__file__).parent


def folder() -> Path:
    """Where this user's programs keep what they can make again, by the rules of the platform."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = home / ".cache"
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The rules call for an absolute path, and for ignoring any other.
    return (Path(named) if os.path.isabs(named) else base) / "torch-ceiling"


class Cache:
    """Digests in one folder, made with one program and these settings.

    `problem` says why entries could not be written; "" while they could.
    """

    def __init__(self, place: Path, settings: Settings) -> None:
        """Makes the folder; UsageError where it cannot be or other users could write to it."""
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"no cache folder {place} ({error.strerror or error})") from error
        _require_own(place)
        self.problem = ""
        self._place = place
        self._context = f"{__version__} {DIGEST_VERSION} {_program()} {settings!r}".encode()
        self._asked: dict[Path, tuple[Path, tuple[int, int]]] = {}
        self._written = False

    def get(self, path: Path) -> RankDigest | None:
        """The digest of a file with this content, named after it; None when there is none."""
        try:
            self._asked[path] = entry, _ = self._entry(path), _state(path)
        except OSError:
            # Whoever reads the file next says what is wrong with it.
            return None
        try:
            digest = load(entry)
            # The time of the last use decides what goes first.
            os.utime(entry)
        except (UnusableInput, OSError):
            return None
        return msgspec.structs.replace(digest, meta=replace(digest.meta, name=path.name))

    def put(self, path: Path, digest: RankDigest) -> None:
        """Keeps the digest of a file that was asked for; nothing of it where that fails."""
        entry, state = self._asked.get(path, (None, None))
        # A trace that is still being written has another content by now.
        if entry is None or _state(path) != state:
            return
        part = entry.with_suffix(f".{os.getpid()}")
        try:
            part.write_bytes(packed(digest))
            os.replace(part, entry)
        except OSError as error:
            self.problem = error.strerror or str(error)
            part.unlink(missing_ok=True)
        self._written = True

    def _entry(self, path: Path) -> Path:
        content = hashlib.sha256(self._context)
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                content.update(piece)
        return self._place / f"{content.hexdigest()}.digest"

    def trim(self, largest: int = LARGEST_BYTES) -> None:
        """Removes what was not used for longest, until the entries fit."""
        if not self._written:
            return
        with os.scandir(self._place) as listed:
            entries = [(e.stat().st_mtime_ns, e.stat().st_size, e.path) for e in listed]
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= largest:
                return
            # Another run may have removed it.
            Path(path).unlink(missing_ok=True)
            total -= size


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _require_own(place: Path) -> None:
    """UsageError unless only this user can put files into the folder: an entry is believed."""
    if sys.platform == "win32":
        return
    found = place.stat()
    wrong = ""
    if found.st_uid != os.geteuid():
        wrong = "belongs to another user"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        wrong = "can be written to by other users"
    if wrong:
        raise UsageError(
            f"the cache folder {place} {wrong}",
            "remove it, set XDG_CACHE_HOME to a folder of your own, or pass --no-cache",
        )


def _program() -> str:
    """Sizes and times of the package's files: a working copy changes while its version stays."""
    files = sorted(_PACKAGE.rglob("*.py"))
    seen = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return hashlib.sha256(repr(seen).encode()).hexdigest()
