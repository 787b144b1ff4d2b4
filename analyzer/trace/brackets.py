"""Where do the events of a trace's text begin and end, by its brackets alone?

Nothing is decoded here: quotes and brackets are looked at, so the answers hold for sound text, and
for damaged text up to the first lost quote or bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SPACE = b" \t\r\n"
ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
GOES_ON = re.compile(rb"\s*,?\s*\{")

# A string that the text ends in hides the rest, so that its brackets are not counted.
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


def outermost_array(text: bytes) -> int:
    """Where the events begin that are a value of the outermost object; 0 without them."""
    depth = reached = 0
    for found in ARRAY.finditer(text):
        for token in _STRUCTURE.finditer(text, reached, found.start()):
            depth += (token[0] in b"{[") - (token[0] in b"}]")
        if depth == 1:
            return found.end()
        reached = found.start()
    return 0


def elements_from(text: bytes, start: int) -> Iterator[tuple[int, int]]:
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
        elif mark == ord("]") and not GOES_ON.match(text, token.end()):
            yield token.span()
            return


def last_boundary(text: bytes) -> tuple[int, int]:
    """End of the last event that another follows, and the start of the follower; (-1, -1) if none.

    A boundary is `}` and `{` with a comma between them, whatever the white space: exporters write
    one line for all, one line per event, or one line per key.
    """
    following = len(text)
    while (following := text.rfind(b"{", 0, following)) > 0:
        end = len(text[max(0, following - 64) : following].rstrip(SPACE)) + max(0, following - 64)
        if text[end - 1 : end] == b",":
            end = len(text[max(0, end - 65) : end - 1].rstrip(SPACE)) + max(0, end - 65)
            if text[end - 1 : end] == b"}":
                return end, following
    return -1, -1
