"""How a trace's text becomes whole events without ever being in memory at once.

The text comes piece by piece. Each piece is cut behind the last event boundary in it, a guess that
holds for every layout met so far, and decoded at once; a wrong guess cannot pass, for the text is
then no JSON. Where decoding fails the brackets are counted exactly, what is broken is mended, and
where even brackets do not add up reading goes on at the next thing that looks like an event. What
stands before and after the events is kept, since exporters disagree where the metadata goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from analyzer.trace import repair
from analyzer.trace.brackets import (
    ARRAY,
    GOES_ON,
    SPACE,
    elements_from,
    last_boundary,
    outermost_array,
)

# An event that does not end within this has lost a bracket or a quote.
RUNAWAY = 1024 * 1024
# A header, trailer or single event beyond this is not a profiler trace.
LARGEST_PART = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_BETWEEN = SPACE + b","
_SEPARATORS = re.compile(rb"[ \t\r\n,]*")
# Every exporter met so far writes the phase first; programs that sort the keys, one of the others.
_NEXT_EVENT = re.compile(rb',\s*(?=\{\s*"(?:ph|args|cat|name)"\s*:)')
_NONE = (-1, -1)
_NOT_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

T = TypeVar("T")


@dataclass
class Remainder:
    """What was not an event: text around the array, and what could not be read.

    `repairs` counts mended texts by kind. `several`: a second trace begins inside of the first, or
    events follow its end. `endless`: a part is larger than LARGEST_PART, and reading stopped.
    """

    header: bytes = b""
    trailer: bytes = b""
    truncated: bool = False
    malformed: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    several: bool = False
    endless: bool = False


class EventReader(Generic[T]):
    """Yields lists of decoded events; afterwards `rest` holds everything else.

    `decode` turns the text of a JSON array into events; on any text that is not exactly that it
    raises msgspec.MsgspecError, of the kind ValidationError where only the types are wrong.
    """

    def __init__(self, pieces: Iterator[bytes], decode: Callable[[bytes], list[T]]):
        self.rest = Remainder()
        self._pieces = pieces
        self._types = decode
        self._buffer = b""
        self._due = 0
        # Whether one was dropped behind the last event; None before the first.
        self._comma: bool | None = None
        self._closed = False

    def __iter__(self) -> Iterator[list[T]]:
        if not self._seek_array():
            self.rest.header = self._buffer
            self.rest.endless = len(self._buffer) >= LARGEST_PART
            return
        yield self._cut()
        while not self._closed and len(self._buffer) < LARGEST_PART and self._more():
            yield self._cut()
        if not self._closed:
            self.rest.endless = len(self._buffer) >= LARGEST_PART
            if self.rest.endless:
                return
            yield self._last()
        self.rest.truncated = not self._closed
        while len(self._buffer) < LARGEST_PART and self._more():
            self._due = 2 * len(self._buffer)
        self.rest.trailer = self._buffer
        if self._closed:
            follows = _NEXT_EVENT.search(self._buffer) or ARRAY.search(self._buffer)
            self.rest.several |= follows is not None

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
            text = self._buffer.removeprefix(_BOM).lstrip(SPACE)
            if text[:1] == b"[":
                self._buffer = text[1:]
            elif found := outermost_array(text):
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
        end, following = last_boundary(self._buffer)
        try:
            if end < 0:
                events = self._count_brackets()
            else:
                events = self._decode(b"".join((b"[", memoryview(self._buffer)[:end], b"]")))
                self._buffer = self._buffer[following:]
                self._comma = True
        except _NOT_JSON:
            events = self._count_brackets()
        if len(self._buffer) == size > RUNAWAY:
            events += self._by_appearance()
        self._due = 2 * size if len(self._buffer) == size else 0
        return events

    def _last(self) -> list[T]:
        """The events of a text that ends without having closed its array so far."""
        events = self._one_by_one(final=True)
        if not self._closed:
            events += self._by_appearance() + self._one_by_one(final=True)
        return events

    def _count_brackets(self) -> list[T]:
        """The complete events of the buffer, by exact structure; notes where the array closes."""
        found = list(elements_from(self._buffer, 0))
        if not found:
            return []
        closed = self._closes(found[-1])
        spans = found[:-1] if closed else found
        ends = [0, *(end for _, end in found)]
        if any(self._stray(end, begin) for end, (begin, _) in zip(ends, found, strict=False)):
            return self._one_by_one()
        try:
            events = self._decode(b"[" + b",".join(self._buffer[b:e] for b, e in spans) + b"]")
        except _NOT_JSON:
            return self._one_by_one()
        for end, (begin, _) in zip(ends, spans, strict=False):
            self._separated(end, begin)
        if closed:
            self._close(ends[-2], found[-1])
        self._drop(found[-1][1])
        return events

    def _one_by_one(self, *, final: bool = False) -> list[T]:
        """The same where something is broken: it is mended or counted, the other events survive.

        Unless the text is `final` a broken event waits for the one behind it, which tells its end.
        """
        events: list[T] = []
        done = 0
        elements = elements_from(self._buffer, 0)
        while not self._closed and done >= 0:
            at = done
            begin, end = element = next(elements, _NONE)
            sound = element is not _NONE and not self._stray(at, begin)
            if sound and self._closes(element):
                self._close(at, element)
                done = end
            elif sound and (found := self._decoded(self._buffer[begin:end])) is not None:
                self._separated(at, begin)
                events += found
                done = end
            else:
                done = self._resume(at, element, events, final)
                elements = elements_from(self._buffer, done)
        self._drop(at if done < 0 else done)
        return events

    def _resume(self, at: int, element: tuple[int, int], events: list[T], final: bool) -> int:
        """Adds what can be mended of the text behind `at`; where to go on, -1 for nowhere.

        `element` is what the brackets make of it, which a lost quote or bracket may have misled.
        """
        separators = _SEPARATORS.match(self._buffer, at)
        begin = separators.end() if separators else at
        following = _NEXT_EVENT.search(self._buffer, begin)
        if following:
            self._salvage(self._buffer[begin : following.start()], events)
            return following.start()
        if element is not _NONE and self._closes(element):
            self._lose(self._buffer[begin : element[0]])
            return element[0]
        if final and (length := self._mended(self._buffer[begin:], events)):
            return begin + length
        if element is _NONE or not (final or GOES_ON.match(self._buffer, element[1])):
            return -1
        self._salvage(self._buffer[begin : element[1]], events)
        return element[1]

    def _salvage(self, text: bytes, events: list[T]) -> None:
        """Adds the event that the text is when mended; counts it when it cannot be mended."""
        if len(text) > RUNAWAY or text[self._mended(text, events) :].strip(SPACE):
            self._lose(text)

    def _mended(self, text: bytes, events: list[T]) -> int:
        """Adds the event that begins the text, mended; the length it had, 0 if it cannot be."""
        mended = repair.mend(text)
        found = mended and self._decoded(mended.text)
        if not mended or found is None:
            return 0
        self.rest.repairs.update(mended.kinds)
        events += found
        return mended.end

    def _lose(self, text: bytes) -> None:
        self.rest.malformed += 1
        self.rest.several |= ARRAY.search(text) is not None

    def _decode(self, text: bytes) -> list[T]:
        # The decoder skips keys it does not know, and so misses a known one with a spoiled letter.
        if not text.isascii():
            text.decode()
        return self._types(text)

    def _decoded(self, text: bytes) -> list[T] | None:
        try:
            return self._decode(b"[" + text + b"]")
        except _NOT_JSON:
            return None

    def _stray(self, end: int, begin: int) -> bool:
        """Whether something stands between two elements that are separated by a comma."""
        return bool(self._buffer[end:begin].strip(_BETWEEN))

    def _closes(self, element: tuple[int, int]) -> bool:
        """Whether the element is the bracket that ends the array."""
        return self._buffer[element[0]] == ord("]")

    def _separated(self, end: int, begin: int) -> None:
        """Counts it where two elements stand without a comma between them, or with several."""
        commas = self._buffer.count(b",", end, begin)
        if not end:
            # The comma before the first element went with what preceded it.
            commas += self._comma is not False
        if commas != 1:
            self.rest.repairs[repair.COMMA if commas else repair.NO_COMMA] += 1

    def _close(self, end: int, element: tuple[int, int]) -> None:
        self._closed = True
        if b"," in self._buffer[end : element[0]] or (not end and self._comma):
            self.rest.repairs[repair.COMMA] += 1

    def _by_appearance(self) -> list[T]:
        """What stands between places that look like the start of an event, up to the last one."""
        *stretches, self._buffer = _NEXT_EVENT.split(self._buffer)
        events: list[T] = []
        for text in stretches:
            if (found := self._decoded(text)) is None:
                self._salvage(text, events)
            else:
                events += found
        return events

    def _drop(self, end: int) -> None:
        """Goes on behind `end`, at an event rather than at the comma before it."""
        rest = self._buffer[end:]
        self._buffer = rest if self._closed else rest.lstrip(_BETWEEN)
        if end:
            self._comma = b"," in rest[: len(rest) - len(self._buffer)]
