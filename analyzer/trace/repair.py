"""How can a text that is almost JSON be read: what exporters write wrong, and nothing else?

A slow scanner for what the decoder refused, one event or header at a time. It mends strings
(backslashes, quotes, control characters, encoding), numbers that are none, and commas before a
closing bracket. It never invents a number, a key or a bracket: where one of those is missing the
text stays lost, and the caller counts it.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

BACKSLASH = "lone backslash"
CONTROL = "control character"
QUOTE = "raw quote"
ENCODING = "invalid UTF-8"
NUMBER = "inf or nan"
COMMA = "comma too many"
NO_COMMA = "comma missing"

_REPLACEMENT = "\ufffd".encode()
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb'[^\s,:"{}\[\]]+')
_JSON_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_NO_NUMBER = re.compile(rb"[-+]?(?:inf(?:inity)?|nan)\Z", re.IGNORECASE)
_WORDS = frozenset({b"true", b"false", b"null"})

_PAIR = rb"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_VALID_ESCAPE = rb'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|u' + _PAIR + rb")"
_STRING = rb'"(?:[^"\\\x00-\x1f]|' + _VALID_ESCAPE + rb')*"'
_CLEAN = re.compile(_STRING)
_ESCAPES = re.compile(_VALID_ESCAPE + rb"|(?P<lone>\\)")
_CONTROLS = re.compile(rb"[\x00-\x1f]")
# A string that holds one of these has lost its own end.
_SWALLOWED = re.compile(rb'"(?:ph|cat|pid|tid|ts|dur|args)"\s*:')
_QUOTES = re.compile(rb'(?P<escaped>\\.)|"', re.DOTALL)

# What follows the quote that ends a string, by where the string stands. A key is looked for behind
# the comma, since a line of source code that became a name holds quotes and commas as well.
_AFTER_KEY = re.compile(rb"\s*:")
_AFTER_ITEM = re.compile(rb'\s*(?:,\s*[\["{\d\-tfnN]|,?\s*\])')
_END = rb"|,?\s*\}\s*(?:[,}\]]|\Z))"
_ANY_KEY = rb'"(?:[^"\\]|\\.){0,1000}"\s*:'
_EVENT_KEY = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|tts|tdur)"\s*:'
_AFTER_VALUE = re.compile(rb"\s*(?:,\s*" + _ANY_KEY + _END, re.DOTALL)
_AFTER_EVENT_VALUE = re.compile(rb"\s*(?:,\s*" + _EVENT_KEY + _END)

# Sound members of an object that a further one follows: taken at one stroke, for speed.
_MEMBER = rb'(?:"[^"\\\x00-\x1f]*"\s*:\s*(?:-?(?:0|[1-9]\d{0,17})(?:\.\d{1,20})?|' + _STRING
_MEMBERS = re.compile(_MEMBER + rb")\s*,\s*(?=" + _ANY_KEY + rb"))+", re.DOTALL)
_EVENT_MEMBERS = re.compile(_MEMBER + rb")\s*,\s*(?=" + _EVENT_KEY + rb"))+")


class Mended(NamedTuple):
    """The text as JSON, where it ended in the original, and the kinds of what was mended."""

    text: bytes
    end: int
    kinds: frozenset[str]


class _Hopeless(Exception):  # noqa: N818 - a signal inside this file
    """The text is damaged in a way that no exporter's habit explains."""


def mend(text: bytes, start: int = 0, *, event: bool = True) -> Mended | None:
    """The object or list that begins at `start`; None for one that cannot be mended, or is sound.

    For an `event` only the keys that events have may follow a string of its own.
    """
    try:
        mended = _Scanner(text, start, event).scan()
    except _Hopeless:
        return None
    return mended if mended.kinds else None


class _Scanner:
    """One pass over the text; `_out` holds the mended tokens, `_open` the brackets to close."""

    def __init__(self, text: bytes, start: int, event: bool) -> None:
        self._text = text
        self._at = start
        self._event = event
        self._out: list[bytes] = []
        self._open: list[bytes] = []
        self._kinds: set[str] = set()

    def scan(self) -> Mended:
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            mark = self._text[self._at : self._at + 1]
            if mark == b'"' and self._open:
                self._string()
            elif mark and mark in b"{[":
                self._open.append(b"}" if mark == b"{" else b"]")
                self._take(mark)
            elif mark and mark in b"}]":
                self._close(mark)
            elif not self._open:
                raise _Hopeless
            elif mark and mark in b",:":
                self._take(mark)
            else:
                self._scalar()
            if not self._open:
                return Mended(b"".join(self._out), self._at, frozenset(self._kinds))

    def _take(self, token: bytes) -> None:
        self._out.append(token)
        self._at += len(token)

    def _close(self, mark: bytes) -> None:
        if not self._open or self._open.pop() != mark:
            raise _Hopeless
        if self._out[-1] == b",":
            self._out.pop()
            self._kinds.add(COMMA)
        self._take(mark)

    def _scalar(self) -> None:
        found = _SCALAR.match(self._text, self._at)
        if not found:
            raise _Hopeless
        self._at = found.end()
        word = found[0]
        if _NO_NUMBER.match(word) or (_JSON_NUMBER.match(word) and math.isinf(float(word))):
            self._kinds.add(NUMBER)
            word = b"null"
        elif word not in _WORDS and not _JSON_NUMBER.match(word):
            raise _Hopeless
        self._out.append(word)

    def _string(self) -> None:
        of_event = self._event and len(self._open) == 1
        if self._open[-1] == b"]":
            follows = _AFTER_ITEM
        elif self._out[-1] in (b"{", b","):
            follows = _AFTER_KEY
            members = (_EVENT_MEMBERS if of_event else _MEMBERS).match(self._text, self._at)
            if members and _is_utf8(members[0]):
                self._at = members.end()
                self._out += [members[0].rstrip()[:-1], b","]
                return
        else:
            follows = _AFTER_EVENT_VALUE if of_event else _AFTER_VALUE
        clean = _CLEAN.match(self._text, self._at)
        if clean and follows.match(self._text, clean.end()) and _is_utf8(clean[0]):
            self._out.append(clean[0])
            self._at = clean.end()
            return
        begin = self._at + 1
        end = self._text.find(b'"', begin)
        # An escaped quote ends a string too where a key follows it: Windows paths end like that.
        while end >= 0 and not follows.match(self._text, end + 1):
            end = self._text.find(b'"', end + 1)
        if end < 0:
            raise _Hopeless
        self._out.append(b'"' + self._mended(self._text[begin:end]) + b'"')
        self._at = end + 1

    def _mended(self, body: bytes) -> bytes:
        """The inside of a string."""
        try:
            body.decode()
        except UnicodeDecodeError:
            self._kinds.add(ENCODING)
            body = body.decode(errors="replace").encode()
        if any(found["lone"] for found in _ESCAPES.finditer(body)):
            # A path: what looks like a valid escape in it is the begin of a folder's name as well.
            self._kinds.add(BACKSLASH)
            body = re.sub(rb'\\(?:["\\])|\\', _doubled, body)
        body, controls = _CONTROLS.subn(_REPLACEMENT, body)
        if controls:
            self._kinds.add(CONTROL)
        if self._event and _SWALLOWED.search(body):
            raise _Hopeless
        if any(not found["escaped"] for found in _QUOTES.finditer(body)):
            self._kinds.add(QUOTE)
            body = _QUOTES.sub(lambda found: found["escaped"] or b'\\"', body)
        return body


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _doubled(found: re.Match[bytes]) -> bytes:
    return found[0] if len(found[0]) == 2 else b"\\\\"
