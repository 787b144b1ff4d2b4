"""How a trace's text becomes whole events without ever being in memory at once.

The file is inflated piece by piece. Each piece is cut behind the last event boundary in it, a guess
that holds for every layout met so far, and decoded at once; a wrong guess cannot pass, since the cut
text is then no JSON. Where decoding fails the brackets are counted exactly, events are decoded one by
one, and the bad ones are counted: that path also finds the end of the array. What stands before and
after the events is kept, since exporters disagree where the metadata goes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeVar

import msgspec
import zstandard

from analyzer.errors import UnusableInput

try:
    from isal import igzip as gzip
except ImportError:
    import gzip  # type: ignore[no-redef]

# Decoded events of 64 KiB of text still fit the CPU caches; larger pieces are slower to walk.
PIECE = 64 * 1024
# A header, trailer or single event beyond this is not a profiler trace.
LARGEST_PART = 64 * 1024 * 1024

_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_SPACE = b" \t\r\n"
# isal's error derives from OSError where it is not zlib's own.
_CUT_SHORT = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)

T = TypeVar("T")


@dataclass
class Remainder:
    """What was not an event: text around the array, and what could not be read."""

    header: bytes = b""
    trailer: bytes = b""
    truncated: bool = False
    malformed: int = 0


class Readable(Protocol):
    """What a stream must offer here."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


def inflate(path: Path) -> Iterator[bytes]:
    """The file's text in pieces, by magic number (gzip, zstandard, plain).

    Ends early, without an error, where the compressed stream is cut: the caller sees a text that
    does not close. Raises UnusableInput when the file cannot be opened or read.
    """
    try:
        with path.open("rb") as raw:
            stream = _opened(raw)
            while True:
                try:
                    piece = stream.read(PIECE)
                except _CUT_SHORT:
                    return
                if not piece:
                    return
                yield piece
    except OSError as error:
        raise UnusableInput(f"{path.name}: cannot be read ({error.strerror or error})") from error


def _opened(raw: BinaryIO) -> Readable:
    magic = raw.read(4)
    raw.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[no-untyped-call]
    if magic == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return raw


class EventReader(Generic[T]):
    """Yields lists of decoded events; afterwards `rest` holds everything else.

    `decode` turns the text of a JSON array into events and raises msgspec.MsgspecError on any text
    that is not exactly that.
    """

    def __init__(self, name: str, pieces: Iterator[bytes], decode: Callable[[bytes], list[T]]):
        self.rest = Remainder()
        self._name = name
        self._pieces = pieces
        self._decode = decode
        self._buffer = b""
        self._closed = False

    def __iter__(self) -> Iterator[list[T]]:
        if not self._seek_array():
            return
        for piece in self._pieces:
            self._buffer += piece
            if not self._closed:
                yield self._cut()
            if len(self._buffer) > LARGEST_PART:
                raise UnusableInput(
                    f"{self._name}: over {LARGEST_PART >> 20} MiB of text without an event boundary"
                )
        if not self._closed:
            yield self._count_brackets()
        self.rest.truncated = not self._closed
        self.rest.trailer = self._buffer

    def _seek_array(self) -> bool:
        """Moves to the first event; False when the text ends without an array of events."""
        for piece in self._pieces:
            self._buffer += piece
            start = self._buffer.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
            if start[:1] == b"[":
                self._buffer = start[1:]
                return True
            if found := _ARRAY.search(self._buffer):
                self.rest.header = self._buffer[: found.end()].removeprefix(b"\xef\xbb\xbf")
                self._buffer = self._buffer[found.end() :]
                return True
            if len(self._buffer) > LARGEST_PART or start[:1] not in (b"{", b""):
                break
        return False

    def _cut(self) -> list[T]:
        """The events up to the last boundary in the buffer."""
        end, following = _last_boundary(self._buffer)
        if end < 0:
            return []
        try:
            events = self._decode(b"[" + self._buffer[:end] + b"]")
        except msgspec.MsgspecError:
            return self._count_brackets()
        self._buffer = self._buffer[following:]
        return events

    def _count_brackets(self) -> list[T]:
        """The complete events of the buffer, one by one, by exact structure."""
        events: list[T] = []
        depth = start = done = 0
        for token in _STRUCTURE.finditer(self._buffer):
            mark = self._buffer[token.start()]
            if mark in b"{[":
                if depth == 0:
                    start = token.start()
                depth += 1
            elif mark in b"}]":
                if depth == 0:
                    self._closed = mark == ord("]")
                    done = token.end() if self._closed else done
                    break
                depth -= 1
                if depth == 0:
                    events += self._one(self._buffer[start : token.end()])
                    done = token.end()
        self._buffer = self._buffer[done:]
        return events

    def _one(self, text: bytes) -> list[T]:
        try:
            return self._decode(b"[" + text + b"]")
        except msgspec.MsgspecError:
            self.rest.malformed += 1
            return []


def _last_boundary(text: bytes) -> tuple[int, int]:
    """End of the last event that another follows, and the start of the follower; (-1, -1) if none.

    A boundary is `}` and `{` with a comma between them, whatever the white space: exporters write
    one line for all, one line per event, or one line per key.
    """
    following = len(text)
    while (following := text.rfind(b"{", 0, following)) > 0:
        end = len(text[max(0, following - 64) : following].rstrip(_SPACE)) + max(0, following - 64)
        if text[end - 1 : end] == b",":
            end = len(text[max(0, end - 65) : end - 1].rstrip(_SPACE)) + max(0, end - 65)
            if text[end - 1 : end] == b"}":
                return end, following
    return -1, -1
