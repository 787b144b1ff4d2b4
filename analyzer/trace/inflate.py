"""What text does a file hold, packed or not, and was all of it there?

It comes in pieces of bounded size. What a damaged file yields before the damage is kept, down to
the last byte of a cut archive; a checksum that does not fit is told, since a text that still reads
well may then hold wrong numbers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol, cast

import zstandard

from analyzer.errors import UnusableInput
from analyzer.trace.stores import TracePath

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


class Readable(Protocol):
    """What is needed of an open file: some stores cannot seek."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


class _Source:
    """An open file of which `taken` bytes were read, and whose beginning can be looked at."""

    def __init__(self, raw: Readable) -> None:
        self.taken = 0
        self._raw = raw
        self._ahead = b""

    def beginning(self) -> bytes:
        self._ahead = self._raw.read(_READ)
        self.taken = len(self._ahead)
        return self._ahead

    def read(self, size: int) -> bytes:
        if self._ahead:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
            return piece
        piece = self._raw.read(size)
        self.taken += len(piece)
        return piece


class Text:
    """The pieces of a file's text; once they are read, `cut` and `damage` say what was wrong.

    `cut`: the archive ends before its end mark. `damage`: why no more could be read, or what was
    read is not what was written; "" for a sound file. `packed_size` is how many bytes the
    file itself has.
    """

    def __init__(self, path: TracePath) -> None:
        self.packed_size = 0
        self.cut = False
        self.damage = ""
        self._path = path
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        """Raises UnusableInput when nothing can be read, or when the text outgrows its archive."""
        try:
            with self._path.open("rb") as raw:
                source = _Source(raw)
                for piece in self._pieces(source):
                    self._size += len(piece)
                    if self._size > BOMB_FROM and self._size > BOMB_RATIO * source.taken:
                        raise UnusableInput(
                            f"{self._path.name}: unpacks to more than {BOMB_RATIO} times its size, "
                            "which no trace does",
                            "unpack it and look what it is",
                        )
                    yield piece
                self.packed_size = source.taken
        except OSError as error:
            reason = error.strerror or str(error)
            if not self._size:
                name = self._path.name
                raise UnusableInput(f"{name}: cannot be read ({reason})") from error
            self.damage = f"reading it failed ({reason})"

    def _pieces(self, source: _Source) -> Iterator[bytes]:
        beginning = source.beginning()
        if beginning.startswith(_GZIP):
            yield from self._salvaged(source)
        elif beginning.startswith(_ZSTANDARD):
            yield from self._frames(source)
        else:
            while piece := source.read(PIECE):
                yield piece

    def _frames(self, source: _Source) -> Iterator[bytes]:
        stream = zstandard.ZstdDecompressor().stream_reader(
            cast(BinaryIO, source), read_across_frames=True
        )
        while True:
            try:
                piece = stream.read(PIECE)
            except zstandard.ZstdError:
                self.damage = CORRUPT
                return
            if not piece:
                return
            yield piece

    def _salvaged(self, source: _Source) -> Iterator[bytes]:
        """The text of a gzip file, and of a broken one whatever precedes the place of the break.

        The inflater keeps to itself what it made of the input in which it fails, so the file is
        opened again and that input given to a second one byte by byte.
        """
        given = 0
        try:
            for piece in self._members(source):
                given += len(piece)
                yield piece
            return
        except _BROKEN:
            self.damage = CORRUPT
        broken = (source.taken - 1) // _READ * _READ
        with self._path.open("rb") as again:
            try:
                for piece in self._members(_Source(again), broken):
                    new = len(piece) - max(given, 0)
                    given -= len(piece)
                    if new > 0:
                        yield piece[-new:]
            except _BROKEN:
                return

    def _members(self, source: _Source, byte_by_byte_from: float = math.inf) -> Iterator[bytes]:
        inflater = deflate.decompressobj(wbits=_FROM_GZIP_HEADER)
        packed = b""
        while True:
            packed = packed or source.read(_READ if source.taken < byte_by_byte_from else 1)
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
