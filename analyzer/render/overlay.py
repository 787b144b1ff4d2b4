"""What does Perfetto open? The tracks of an overlay as a trace in the format of the recording.

Complete events (X), metadata (M) and flows (s, f) of the Trace Event Format. Times are us of the
recording's base, written as exact decimals: a float of an epoch's us has lost the ns.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

from analyzer.render.format import clean, look
from analyzer.report.overlay import CLASSES, PATH_DEVICE, PATH_HOST, Arrow, Overlay, Point, Slice

# Above the process ids that Linux gives, so that none of the recording is met.
FIRST_PROCESS = 5_000_000
_OF_CLASS = (CLASSES, PATH_DEVICE, PATH_HOST)


def render(overlay: Overlay) -> str:
    """The trace as JSON; the same overlay gives the same text."""
    head = {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": overlay.base_ns,
        "otherData": {"title": clean(overlay.label), "notes": " ".join(overlay.notes)},
    }
    events = ",\n".join([*_names(overlay), *_timed(overlay)])
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'


def packed(text: str) -> bytes:
    """The text as gzip; the same text gives the same bytes."""
    return gzip.compress(text.encode("utf-8", "replace"), mtime=0)


def _names(overlay: Overlay) -> Iterator[str]:
    for rank in overlay.ranks:
        process = {"ph": "M", "cat": "__metadata", "ts": 0, "pid": FIRST_PROCESS + rank.rank}
        yield json.dumps(
            {**process, "name": "process_name", "args": {"name": f"rank {rank.rank}: ceiling"}}
        )
        yield json.dumps(
            {**process, "name": "process_sort_index", "args": {"sort_index": rank.rank}}
        )
        for track in rank.tracks:
            thread = {**process, "tid": track.number}
            yield json.dumps({**thread, "name": "thread_name", "args": {"name": track.name}})
            yield json.dumps(
                {**thread, "name": "thread_sort_index", "args": {"sort_index": track.number}}
            )


def _timed(overlay: Overlay) -> Iterator[str]:
    """Slices and arrows in order of time; an arrow stands after the slice that it is bound to."""
    rows: list[tuple[int, int, str]] = []
    for rank in overlay.ranks:
        for track in rank.tracks:
            rows += [
                (s.start, 0, _slice(overlay.base_ns, FIRST_PROCESS + rank.rank, track.number, s))
                for s in track.slices
            ]
    for number, arrow in enumerate(overlay.arrows, start=1):
        rows.append((arrow.start.at, 1, _end(overlay.base_ns, number, arrow, arrow.start, "s")))
        rows.append((arrow.end.at, 2, _end(overlay.base_ns, number, arrow, arrow.end, "f")))
    rows.sort(key=lambda row: row[:2])
    return (text for _, _, text in rows)


def _slice(base: int, process: int, track: int, item: Slice) -> str:
    # A colour goes by the name: classes get the name that the report prints.
    name = look(item.name).label if track in _OF_CLASS else clean(item.name)
    head = {"ph": "X", "cat": "ceiling", "name": name, "pid": process, "tid": track}
    details = {k: clean(v) if isinstance(v, str) else v for k, v in item.details.items()}
    tail = f', "args": {json.dumps(details)}' if details else ""
    times = f'"ts": {micros(item.start - base)}, "dur": {micros(item.end - item.start)}'
    return f"{json.dumps(head)[:-1]}, {times}{tail}}}"


def _end(base: int, number: int, arrow: Arrow, point: Point, phase: str) -> str:
    head = {
        "ph": phase,
        "id": number,
        "cat": "ceiling",
        "name": clean(arrow.name),
        "pid": FIRST_PROCESS + point.rank,
        "tid": point.track,
    }
    # Without it the arrow would end at the next slice to begin.
    bound = ', "bp": "e"' if phase == "f" else ""
    return f'{json.dumps(head)[:-1]}, "ts": {micros(point.at - base)}{bound}}}'


def micros(ns: int) -> str:
    """Nanoseconds as microseconds, every digit kept."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1000)
    return f"{sign}{whole}.{rest:03d}"
