"""How the device time of one trace splits, counted the slow and obvious way, to check the analyzer.

Shares no code with the package: the `json` module, `Decimal` for the times, one event sweep. All
times are integer nanoseconds on the file's own clock (no base added).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

COMPUTE, COMMUNICATION, COPY = "compute", "communication", "copy"

Classify = Callable[[str, str], str | None]
Interval = tuple[int, int, str]

_COPIES = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def by_nccl_in_the_name(category: str, name: str) -> str | None:
    """Class of a device event, None if it is no work; communication says nccl or rccl."""
    if category in _COPIES:
        return COPY
    if category == "mtia_ccp_events":
        return None if name in {"event_wait", "event_record"} else COMPUTE
    if category == "kernel":
        lowered = name.lower()
        return COMMUNICATION if "nccl" in lowered or "rccl" in lowered else COMPUTE
    return None


def nanoseconds(value: Any) -> int:
    """Microseconds as decimal text or integer to nanoseconds, no float in between."""
    return int((Decimal(value) * 1000).to_integral_value())


def events_of(path: Path) -> list[dict[str, Any]]:
    """Trace events of a .json or .json.gz file, non-integer numbers left as text."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    document = json.loads(text, parse_float=str)
    return list(document["traceEvents"] if isinstance(document, dict) else document)


def device_intervals(path: Path, classify: Classify) -> Iterator[Interval]:
    """Start, end and class of every device event of non-negative length."""
    for event in events_of(path):
        if event.get("ph") != "X":
            continue
        found = classify(str(event.get("cat", "")).lower(), str(event.get("name", "")))
        length = nanoseconds(event.get("dur", 0))
        if found is not None and length >= 0:
            start = nanoseconds(event["ts"])
            yield start, start + length, found


def device_split(
    path: Path,
    classify: Classify = by_nccl_in_the_name,
    window: tuple[int, int] | None = None,
) -> dict[str, int]:
    """Nanoseconds of each state of the device over the window (default: first start to last end).

    `compute` and `communication` are unions that may overlap (by `hidden_communication`);
    idle + compute + exposed_communication + exposed_copy = window.
    """
    return sweep(list(device_intervals(path, classify)), window)


def sweep(intervals: list[Interval], window: tuple[int, int] | None = None) -> dict[str, int]:
    """The split of these intervals, by walking all their edges in order."""
    first, last = window or (
        min((start for start, _, _ in intervals), default=0),
        max((end for _, end, _ in intervals), default=0),
    )
    edges = []
    for start, end, kind in intervals:
        start, end = max(start, first), min(end, last)
        if start < end:
            edges += [(start, 1, kind), (end, -1, kind)]
    split = dict.fromkeys(
        ("idle", COMPUTE, COMMUNICATION, "exposed_communication", "exposed_copy"), 0
    )
    running = dict.fromkeys((COMPUTE, COMMUNICATION, COPY), 0)
    at = first
    for time, change, kind in [*sorted(edges), (last, 0, COPY)]:
        for state in _states(running):
            split[state] += time - at
        running[kind] += change
        at = time
    split["hidden_communication"] = split[COMMUNICATION] - split["exposed_communication"]
    split["window"] = last - first
    return split


def _states(running: dict[str, int]) -> list[str]:
    """Every state that the device is in while so many events of each class run."""
    if running[COMPUTE]:
        return [COMPUTE, COMMUNICATION] if running[COMMUNICATION] else [COMPUTE]
    if running[COMMUNICATION]:
        return [COMMUNICATION, "exposed_communication"]
    return ["exposed_copy"] if running[COPY] else ["idle"]
