"""What text does a file hold, packed or not, and was all of it there?

It comes in pieces of bounded size. What a damaged file yields before the damage is kept, down to
the last byte of a cut archive; a checksum that does not fit is told, since a text that still reads
well may then hold wrong numbers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from analyzer.errors import UnusableInput

try:
    from isal import isal_zlib as deflate
except ImportError:
    deflate = zlib  # type: ignore[misc]

# Decoded events of 64 KiB of text still fit the CPU caches; larger pieces are slower to walk.
PIECE = 64 * 1024
# The traces met so far pack 5 to 30 times; deflate itself ends at 1,032.
BOMB_RATIO = 150
BOMB_FROM = 64 * 1024 * 1024

CORRUPT = "the archive is corrupt"
TRAILING = "something that is no archive follows the archive"

_GZIP = b"\x1f\x8b"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_READ = 16 * 1024
_FROM_GZIP_HEADER = 31
_BROKEN: tuple[Any, ...] = (deflate.error, zlib.error, zstandard.ZstdError)


class Text:
    """The pieces of a file's text; once they are read, `cut` and `damage` say what was wrong.

    `cut`: the archive ends before its end mark. `damage`: why no more could be read, or what was
    read is not what was written; "" for a sound file.
    """

    def __init__(self, path: Path) -> None:
        self.cut = False
        self.damage = ""
        self._path = path
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        """Raises UnusableInput when nothing can be read, or when the text outgrows its archive."""
        try:
            with self._path.open("rb") as raw:
                for piece in self._pieces(raw):
                    self._size += len(piece)
                    if self._size > BOMB_FROM and self._size > BOMB_RATIO * raw.tell():
                        raise UnusableInput(
                            f"{self._path.name}: unpacks to more than {BOMB_RATIO} times its size, "
                            "which no trace does",
                            "unpack it and look what it is",
                        )
                    yield piece
        except OSError as error:
            reason = error.strerror or str(error)
            if not self._size:
                name = self._path.name
                raise UnusableInput(f"{name}: cannot be read ({reason})") from error
            self.damage = f"reading it failed ({reason})"

    def _pieces(self, raw: BinaryIO) -> Iterator[bytes]:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == _GZIP:
            yield from self._salvaged(raw)
        elif magic == _ZSTANDARD:
            yield from self._frames(raw)
        else:
            while piece := raw.read(PIECE):
                yield piece

    def _frames(self, raw: BinaryIO) -> Iterator[bytes]:
        stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        while True:
            try:
                piece = stream.read(PIECE)
            except zstandard.ZstdError:
                self.damage = CORRUPT
                return
            if not piece:
                return
            yield piece

    def _salvaged(self, raw: BinaryIO) -> Iterator[bytes]:
        """The text of a gzip file, and of a broken one whatever precedes the place of the break.

        The inflater keeps to itself what it made of the input in which it fails, so that input is
        given to a second one byte by byte.
        """
        given = 0
        try:
            for piece in self._members(raw):
                given += len(piece)
                yield piece
            return
        except _BROKEN:
            self.damage = CORRUPT
        broken = (raw.tell() - 1) // _READ * _READ
        try:
            for piece in self._members(raw, broken):
                new = len(piece) - max(given, 0)
                given -= len(piece)
                if new > 0:
                    yield piece[-new:]
        except _BROKEN:
            return

    def _members(self, raw: BinaryIO, byte_by_byte_from: float = math.inf) -> Iterator[bytes]:
        raw.seek(0)
        inflater = deflate.decompressobj(wbits=_FROM_GZIP_HEADER)
        packed = b""
        while True:
            packed = packed or raw.read(_READ if raw.tell() < byte_by_byte_from else 1)
            if not packed:
                break
            if inflater.eof:
                # Some writers pad an archive with zeros.
                packed = packed.lstrip(b"\0")
                if not _GZIP.startswith(packed[:2]):
                    self.damage = TRAILING
                    return
                if packed:
                    inflater = deflate.decompressobj(wbits=_FROM_GZIP_HEADER)
                continue
            piece = inflater.decompress(packed, PIECE)
            packed = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if piece:
                yield piece
        self.cut = not inflater.eof
        while piece := inflater.decompress(b"", PIECE):
            yield piece
