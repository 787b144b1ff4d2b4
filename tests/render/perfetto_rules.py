"""What Perfetto's and Chromium's readers ask of a trace in the Trace Event Format, as a check.

From the format's document: phases and their keys; slices of a thread nest; a flow has one start and
one end, and each is bound to the slice that is open at its time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

KEYS = {
    "X": {"ph", "cat", "name", "pid", "tid", "ts", "dur"},
    "s": {"ph", "cat", "name", "pid", "tid", "ts", "id"},
    "f": {"ph", "cat", "name", "pid", "tid", "ts", "id", "bp"},
    "M": {"ph", "name", "pid", "args"},
}
METADATA = {
    "process_name": ("name", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}
Thread = tuple[int, int]
Spans = dict[Thread, list[tuple[Decimal, Decimal]]]


def read(text: str) -> list[dict[str, Any]]:
    """The events, times as exact decimals."""
    found = json.loads(text, parse_float=Decimal, parse_constant=lambda name: 1 / 0)
    events: list[dict[str, Any]] = found["traceEvents"]
    return events


def broken(text: str) -> list[str]:
    """Sentences on what breaks the rules."""
    events = read(text)
    wrong = [f"{e} lacks {KEYS[e['ph']] - set(e)}" for e in events if KEYS[e["ph"]] - set(e)]
    wrong += [f"{e}: ids are numbers" for e in events if not isinstance(e["pid"], int)]
    for e in (e for e in events if e["ph"] == "M"):
        key, kind = METADATA[e["name"]]
        if not isinstance(e["args"][key], kind):
            wrong.append(f"{e}: {key} is no {kind}")
    spans = slices(events)
    return [*wrong, *(w for t, s in spans.items() for w in overlaps(t, s)), *flows(events, spans)]


def slices(events: list[dict[str, Any]]) -> Spans:
    found: Spans = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            found[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    return found


def overlaps(thread: Thread, spans: list[tuple[Decimal, Decimal]]) -> list[str]:
    """Slices that begin in another one and end after it."""
    wrong, opened = [], []
    for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
        if end <= start:
            wrong.append(f"{thread}: a slice at {start} has no length")
        while opened and opened[-1] <= start:
            opened.pop()
        if opened and end > opened[-1]:
            wrong.append(f"{thread}: {start} to {end} reaches out of the slice around it")
        opened.append(end)
    return wrong


def flows(events: list[dict[str, Any]], spans: Spans) -> list[str]:
    ends: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for e in events:
        if e["ph"] in "sf":
            ends[e["id"]].append(e)
    wrong = []
    for number, pair in ends.items():
        if [e["ph"] for e in pair] != ["s", "f"] or pair[0]["ts"] > pair[1]["ts"]:
            wrong.append(f"flow {number} has not one start and then one end")
        wrong += [
            f"flow {number}: no slice is open at {e['ts']} for its {e['ph']}"
            for e in pair
            if not any(a <= e["ts"] < b for a, b in spans[e["pid"], e["tid"]])
        ]
    return wrong
