"""What kind of file is this, judged by its first bytes and never by its name?

Only foreign files are told apart here: whatever might be a profiler trace passes, since the reader
sees the whole file and this look sees its beginning.
"""

from __future__ import annotations

import re
from pathlib import Path

from analyzer.errors import UnusableInput
from analyzer.trace.dialect import PROFILER_CATEGORIES
from analyzer.trace.inflate import Text
from analyzer.trace.stores import TracePath

# Most headers take 2 to 30 kB; some benchmark suites put their whole configuration in front.
LOOKS = (64 * 1024, 4 * 1024 * 1024)

# Keys that Kineto writes beside traceEvents; one is enough, whatever the events look like so far.
KINETO_KEYS = frozenset(
    {
        "schemaVersion",
        "deviceProperties",
        "distributedInfo",
        "baseTimeNanoseconds",
        "traceName",
        "trace_id",
        "record_shapes",
        "with_stack",
        "profile_memory",
    }
)

A_REPORT = "a report, not a trace"

# (keys of the object that must all be there, what the file is)
_OTHER_JSON: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"schema", "nodes"}), "a PyTorch execution trace; pass the profiler trace"),
    (frozenset({"$schema", "profiles"}), "a speedscope profile; pass the profiler trace"),
    (frozenset({"schema_version", "tool"}), A_REPORT),
)

# (first bytes, what the file is)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3", "an SQLite database (Nsight Systems export?); pass the profiler trace"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\x80", "a pickle (memory snapshot?); pass the profiler trace"),
)

_NSIGHT = frozenset({"cuda_api", "nvtx", "osrt"})
_NUMBERS_IN_LISTS = re.compile(rb"\[\s*\[\s*-?\d")
_CATEGORY = re.compile(rb'"cat"\s*:\s*"([^"]*)"')
_EVENT = re.compile(rb'"ph"\s*:')
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


def why_not_a_trace(path: TracePath) -> str | None:
    """What the file is instead of a profiler trace; None for one that may be read as a trace."""
    if isinstance(path, Path) and path.stat().st_size == 0:
        return "empty file"
    reason = None
    for limit in LOOKS:
        try:
            head = _beginning(path, limit)
        except UnusableInput as error:
            return error.message.removeprefix(f"{path.name}: ")
        reason = refusal(head)
        if reason is None or len(head) < limit:
            break
    return reason


def _beginning(path: TracePath, limit: int) -> bytes:
    head = b""
    for piece in Text(path):
        head += piece
        if len(head) >= limit:
            break
    return head[:limit]


def refusal(head: bytes) -> str | None:
    """What a file that begins like this is instead of a profiler trace; None if it may be one."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "nothing in it, or a damaged archive"
    if text[:1] not in (b"{", b"["):
        return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "not JSON")
    if text[:1] == b"[":
        return _refused_list(text)
    keys = _keys(text)
    if keys & KINETO_KEYS:
        return None
    if "traceEvents" in keys:
        return _refused_events(text)
    return next((kind for all_of, kind in _OTHER_JSON if all_of <= keys), "JSON of another kind")


def _refused_list(text: bytes) -> str | None:
    if _NUMBERS_IN_LISTS.match(text):
        return "a PyTorch memory timeline; pass the profiler trace"
    if text[1:].lstrip()[:1] == b"]":
        return "no trace events in it"
    return _refused_events(text) if _EVENT.search(text) else "JSON of another kind"


def _refused_events(text: bytes) -> str | None:
    seen = dict.fromkeys(name.decode(errors="replace") for name in _CATEGORY.findall(text))
    if any(name.lower() in PROFILER_CATEGORIES for name in seen):
        return None
    if not _EVENT.search(text):
        return "no trace events in it"
    if b'"CPU functions"' in text:
        return "a legacy autograd export without GPU categories; record with torch.profiler"
    if not seen:
        return "trace events without categories, not from the PyTorch profiler"
    if _NSIGHT & seen.keys():
        return "an Nsight Systems export; pass the profiler trace"
    return f"trace events of another tool (categories: {', '.join(list(seen)[:3])})"


def _keys(text: bytes) -> set[str]:
    """Keys of the outermost object as far as the text goes, up to and with traceEvents."""
    keys: set[str] = set()
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = text[token.start() : token.start() + 1]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        elif depth == 1 and token[2]:
            keys.add(token[1].decode(errors="replace"))
            if "traceEvents" in keys:
                break
    return keys
