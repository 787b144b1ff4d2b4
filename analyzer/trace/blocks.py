"""How a trace's text becomes whole events without ever being in memory at once.

The file is inflated piece by piece. Each piece is cut behind the last event boundary in it, a guess
that holds for every layout met so far, and decoded at once; a wrong guess cannot pass, for the text
is then no JSON. Where decoding fails the brackets are counted exactly, and where even they do not
add up reading goes on at the next thing that looks like an event. What stands before and after the
events is kept, since exporters disagree where the metadata goes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

import msgspec
import zstandard

from analyzer.errors import UnusableInput

try:
    from isal import igzip as gzip
    from isal import isal_zlib as deflate
except ImportError:
    import gzip  # type: ignore[no-redef]

    deflate = zlib  # type: ignore[misc]

# Decoded events of 64 KiB of text still fit the CPU caches; larger pieces are slower to walk.
PIECE = 64 * 1024
# An event that does not end within this has lost a bracket or a quote.
RUNAWAY = 1024 * 1024
# A header, trailer or single event beyond this is not a profiler trace.
LARGEST_PART = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_BETWEEN = _SPACE + b","
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
# A string that the text ends in hides the rest, so that its brackets are not counted.
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
# Every exporter met so far writes the phase first.
_NEXT_EVENT = re.compile(rb',\s*(?=\{\s*"ph"\s*:)')
_GOES_ON = re.compile(rb"\s*,?\s*\{")
_CUT_SHORT: tuple[Any, ...] = (
    EOFError,
    gzip.BadGzipFile,
    deflate.error,
    zlib.error,
    zstandard.ZstdError,
)
_NOT_JSON = (msgspec.MsgspecError, RecursionError)

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

    `decode` turns the text of a JSON array into events; on any text that is not exactly that it
    raises msgspec.MsgspecError, of the kind ValidationError where only the types are wrong.
    """

    def __init__(self, pieces: Iterator[bytes], decode: Callable[[bytes], list[T]]):
        self.rest = Remainder()
        self._pieces = pieces
        self._decode = decode
        self._buffer = b""
        self._due = 0
        self._closed = False

    def __iter__(self) -> Iterator[list[T]]:
        if not self._seek_array():
            self.rest.header = self._buffer
            return
        yield self._cut()
        while not self._closed and len(self._buffer) < LARGEST_PART and self._more():
            yield self._cut()
        if not self._closed:
            yield self._last()
        self.rest.truncated = not self._closed
        while len(self._buffer) < LARGEST_PART and self._more():
            self._due = 2 * len(self._buffer)
        self.rest.trailer = self._buffer

    def _more(self) -> bool:
        """Reads until the buffer is worth another look; False when the text has ended.

        The look is due at twice the size of a text that held nothing, so that looking again and
        again at a long one takes no more than twice the time of looking once.
        """
        parts, size = [self._buffer], len(self._buffer)
        for piece in self._pieces:
            parts.append(piece)
            size += len(piece)
            if size >= self._due:
                break
        self._buffer = b"".join(parts)
        return len(parts) > 1

    def _seek_array(self) -> bool:
        """Moves to the first event; False when the text ends without an array of events."""
        while len(self._buffer) < LARGEST_PART and self._more():
            text = self._buffer.removeprefix(_BOM).lstrip(_SPACE)
            if text[:1] == b"[":
                self._buffer = text[1:]
            elif found := _outermost_array(text):
                self.rest.header, self._buffer = text[:found], text[found:]
            elif text[:1] in (b"{", b""):
                self._due = 2 * len(self._buffer)
                continue
            else:
                return False
            self._due = 0
            return True
        return False

    def _cut(self) -> list[T]:
        """The events up to the last boundary in the buffer."""
        size = len(self._buffer)
        end, following = _last_boundary(self._buffer)
        try:
            if end < 0:
                events = self._count_brackets()
            else:
                events = self._decode(b"".join((b"[", memoryview(self._buffer)[:end], b"]")))
                self._buffer = self._buffer[following:]
        except _NOT_JSON:
            events = self._count_brackets()
        if len(self._buffer) == size > RUNAWAY:
            events += self._by_appearance()
        self._due = 2 * size if len(self._buffer) == size else 0
        return events

    def _last(self) -> list[T]:
        """The events of a text that ends without closing its array."""
        events = self._count_brackets()
        return events if self._closed else events + self._by_appearance() + self._count_brackets()

    def _count_brackets(self) -> list[T]:
        """The complete events of the buffer, by exact structure; notes where the array closes."""
        found = list(_elements(self._buffer, 0))
        if not found:
            return []
        closed = self._closes(found[-1])
        texts = [self._buffer[begin:end] for begin, end in (found[:-1] if closed else found)]
        ends = [0, *(end for _, end in found)]
        if any(self._stray(end, begin) for end, (begin, _) in zip(ends, found, strict=False)):
            return self._one_by_one()
        try:
            events = self._decode(b"[" + b",".join(texts) + b"]")
        except _NOT_JSON:
            return self._one_by_one()
        self._closed = closed
        self._drop(found[-1][1])
        return events

    def _one_by_one(self) -> list[T]:
        """The same where something is broken: it is counted, the other events survive."""
        events: list[T] = []
        done = 0
        elements = _elements(self._buffer, 0)
        while not self._closed and (element := next(elements, None)):
            begin, end = element
            following = None
            if self._stray(done, begin):
                following = self._afresh(done, len(self._buffer))
            elif not self._closes(element):
                try:
                    events += self._decode(b"[" + self._buffer[begin:end] + b"]")
                except msgspec.ValidationError:
                    following = self._afresh(begin, end)
                except _NOT_JSON:
                    following = self._afresh(begin, len(self._buffer))
            if following:
                done, elements = following, _elements(self._buffer, following)
            else:
                done, self._closed = end, self._closes(element)
        self._drop(done)
        return events

    def _afresh(self, begin: int, end: int) -> int | None:
        """Counts something broken. The next event before `end`, in case it misled the counting."""
        self.rest.malformed += 1
        following = _NEXT_EVENT.search(self._buffer, begin, end)
        return following.end() if following else None

    def _stray(self, end: int, begin: int) -> bool:
        """Whether something stands between two elements that are separated by a comma."""
        return bool(self._buffer[end:begin].strip(_BETWEEN))

    def _closes(self, element: tuple[int, int]) -> bool:
        """Whether the element is the bracket that ends the array."""
        return self._buffer[element[0]] == ord("]")

    def _by_appearance(self) -> list[T]:
        """What stands between places that look like the start of an event, up to the last one."""
        *stretches, self._buffer = _NEXT_EVENT.split(self._buffer)
        events: list[T] = []
        for text in stretches:
            try:
                events += self._decode(b"[" + text + b"]")
            except _NOT_JSON:
                self.rest.malformed += 1
        return events

    def _drop(self, end: int) -> None:
        """Goes on behind `end`, at an event rather than at the comma before it."""
        rest = self._buffer[end:]
        self._buffer = rest if self._closed else rest.lstrip(_BETWEEN)


def _outermost_array(text: bytes) -> int:
    """Where the events begin that are a value of the outermost object; 0 without them."""
    depth = reached = 0
    for found in _ARRAY.finditer(text):
        for token in _STRUCTURE.finditer(text, reached, found.start()):
            depth += (token[0] in b"{[") - (token[0] in b"}]")
        if depth == 1:
            return found.end()
        reached = found.start()
    return 0


def _elements(text: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each complete element of an array from `start` on, and of its `]`."""
    depth = begin = 0
    for token in _STRUCTURE.finditer(text, start):
        mark = text[token.start()]
        if mark in b"{[":
            begin = begin if depth else token.start()
            depth += 1
        elif mark in b"}]" and depth:
            depth -= 1
            if not depth:
                yield begin, token.end()
        elif mark == ord("]") and not _GOES_ON.match(text, token.end()):
            yield token.span()
            return


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
