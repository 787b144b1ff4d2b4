"""What did each piece of one rank's work wait for: its launch, its stream, or other streams?

And what did the host's blocking calls wait for? Latencies are of the rank's own trace: what passes
from a launch to a start on an idle device, between queued work, and from the end of work to the
return of the call that waited for it. Times in ns; rows are those of `Work`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, WHOLE_DEVICE, Call, Host, Work
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.streams import EVENT_NS, TOLERANCE_NS, StreamWaits, is_comm

Bool = npt.NDArray[np.bool_]

# Order of device and host times: their clocks are joined by an offset.
HOST_TOLERANCE_NS = 10_000
# What is taken for latencies where the trace shows none.
_LAUNCH_LATENCY_NS = 5_000
_RETURN_NS = 5_000
# Queued work follows within this; longer holes are something else.
_QUEUE_GAP_NS = 20_000
# What passes between queued kernels where none were seen: 0.8 to 1.8 us on V100 to H100.
_QUEUE_SWITCH_NS = 1_000
# A call that blocked for less has not waited.
BLOCKED_NS = 10_000
_ENOUGH = 3
# So much work is looked back on for what a call waited for, and if none of it was over.
_LOOK_BACK = (256, 4096)


class Edge(NamedTuple):
    """Work `after` starts no sooner than `delay` ns after `before` ends."""

    before: int
    after: int
    delay: int


@dataclass(frozen=True)
class Dependencies:
    """What one rank's work and blocking calls wait for.

    `previous` is the work before each on its lane (a stream's collectives are a lane of their own),
    NO_ID for the first; `gap` what passes between the two (negative where they overlap); `latency`
    what passes from launch to start. `awaited` are the rows each point of the host waits for, which
    goes on `returning` ns after their end.
    """

    lane: Int64
    previous: Int64
    gap: Int64
    latency: Int64
    edges: list[Edge]
    awaited: dict[int, list[int]]
    returning: int
    recorded: bool


def depend(work: Work, host: Host) -> Dependencies:
    """The dependencies of one rank."""
    lane = work.stream * 2 + is_comm(work)
    previous = _previous(lane)
    end = work.ts + work.dur
    free = np.where(previous == NO_ID, np.iinfo(np.int64).min, end[previous])
    launch = np.where(work.host == NO_ID, np.iinfo(np.int64).min, host.time[work.host])
    latency = _latency(work, launch, end)
    gap = np.where(previous == NO_ID, 0, work.ts - np.where(previous == NO_ID, 0, free))
    queued = (previous != NO_ID) & (launch + latency <= free)
    queued &= (gap >= 0) & (gap <= _QUEUE_GAP_NS)
    usual = int(np.median(gap[queued])) if queued.sum() >= _ENOUGH else _QUEUE_SWITCH_NS
    explained = np.maximum(launch + latency, np.maximum(free, free + usual)) + 2 * TOLERANCE_NS
    waits = StreamWaits(work, host, lane, end, work.ts > explained)
    pairs = sorted(set(waits.pairs()))
    queued[[after for _, after in pairs]] = False
    delays = [int(work.ts[b] - end[a]) for a, b in pairs if waits.held[b]]
    shown = [d for d in delays if d <= EVENT_NS]
    delay = max(0, int(np.median(shown))) if shown else 0
    awaited, returning = _awaited(work, host, lane, end)
    return Dependencies(
        lane=lane,
        previous=previous,
        gap=_gaps(work, gap, queued, previous),
        latency=latency,
        edges=[Edge(a, b, delay) for a, b in pairs],
        awaited=awaited,
        returning=returning,
        recorded=bool((host.stream != NO_ID).any()),
    )


def _previous(lane: Int64) -> Int64:
    """Row before each on its lane."""
    order = np.argsort(lane, kind="stable")
    previous = np.full(len(lane), NO_ID, np.int64)
    same = lane[order][1:] == lane[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _latency(work: Work, launch: Int64, end: Int64) -> Int64:
    """From launch to start on a device that has nothing else to do, the median by kind of work."""
    busy = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]])
    idle = (work.host != NO_ID) & (busy <= launch)
    delay = work.ts - np.where(work.host == NO_ID, work.ts, launch)
    latency = np.full(len(work.ts), _LAUNCH_LATENCY_NS, np.int64)
    copies = (work.activity == Activity.COPY) | (work.activity == BATCH)
    for chosen in (np.ones_like(idle), copies, ~copies):
        seen = delay[idle & chosen]
        if len(seen) >= _ENOUGH:
            latency[chosen] = max(0, int(np.median(seen)))
    return latency


def _gaps(work: Work, gap: Int64, queued: Bool, previous: Int64) -> Int64:
    """From the end of the work before, at least: the overlap where they do, else the mean of queued
    work that waited for nothing else, and no more than was seen where work was not queued.
    """
    seen = np.sort(gap[(gap >= 0) & (previous != NO_ID) & (work.host != NO_ID)])
    if queued.sum() >= _ENOUGH:
        usual = int(gap[queued].mean())
    else:
        usual = min([_QUEUE_SWITCH_NS, *seen[_ENOUGH - 1 : _ENOUGH].tolist()])
    least = np.where(queued, usual, np.minimum(usual, np.maximum(gap, 0)))
    # Work launched before the recording starts when it did.
    early = np.cumsum(work.host != NO_ID) == 0
    as_recorded = (gap < 0) | early
    return np.where(as_recorded, gap, np.where(previous != NO_ID, least, 0))


def _awaited(work: Work, host: Host, lane: Int64, end: Int64) -> tuple[dict[int, list[int]], int]:
    """Rows that each blocking call waited for, and how long after their end it returns."""
    launched = np.flatnonzero(work.host != NO_ID)
    launched = launched[np.argsort(work.host[launched], kind="stable")]
    points = work.host[launched]
    found: dict[int, list[int]] = {}
    delays = []
    for point in np.flatnonzero(host.kind == Call.SYNC).tolist():
        said, time = int(host.awaited[point]), int(host.time[point])
        blocked = int(host.wait[point]) > BLOCKED_NS
        before = launched[: np.searchsorted(points, point)]
        over = _over(before, end, time + HOST_TOLERANCE_NS)
        if said >= 0:
            # The driver keeps a small copy's bytes and returns before the copy is made.
            rows = [said] if end[said] <= time + HOST_TOLERANCE_NS else []
        elif said == WHOLE_DEVICE:
            rows = list(dict(zip(lane[over].tolist(), over.tolist(), strict=True)).values())
        elif len(over) and (blocked or int(over[-1]) == int(before[-1])):
            rows = [int(over[np.argmax(end[over])])]
        else:
            # It returned at once while newer work still ran: what it asked for had long been over.
            rows = []
        if rows:
            found[point] = rows
        if rows and blocked:
            delays.append(time - int(end[rows].max()))
    returning = int(np.median(delays)) if delays else _RETURN_NS
    return found, min(max(returning, 0), 10 * HOST_TOLERANCE_NS)


def _over(before: Int64, end: Int64, instant: int) -> Int64:
    """Of the last work launched the rows that were over at an instant."""
    near, far = _LOOK_BACK
    over = before[-near:][end[before[-near:]] <= instant]
    return over if len(over) else before[-far:][end[before[-far:]] <= instant]
