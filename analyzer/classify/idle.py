"""Why the device was idle: each gap is split at the launch of the work that ended it.

Up to the launch call the host was late, and what it was doing then names the cause; the call and
the latency behind it are launch overhead; work that was queued before the gap began was held back
on the device. The causes tile the idle time. (The split of a gap is methods 4.2: for a gap [0, 60)
ended by work launched in [40, 52) it is 40 late, 12 call, 8 latency.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.classify import classes, kernels
from analyzer.config import Thresholds
from analyzer.timeline import steps
from analyzer.timeline.intervals import EMPTY, Intervals, union
from analyzer.timeline.launches import Launches
from analyzer.trace.schema import Int64, Kind, Trace

Bool = npt.NDArray[np.bool_]

# CPU and GPU clocks are aligned by an offset only: order within this many ns means nothing.
CLOCK_SLACK_NS = 10_000


@dataclass(frozen=True)
class Cause:
    """A reason for idle time: the class it is booked under and what it means."""

    time_class: str
    text: str


CAUSES: dict[str, Cause] = {
    "loader": Cause(classes.DATA_LOADING, "the launching thread waited for the next batch"),
    "profiler": Cause(classes.HOST_OTHER, "the profiler itself was at work"),
    "allocator": Cause(classes.HOST_OTHER, "the host was in a memory allocation call"),
    "sync": Cause(classes.HOST_SYNC, "a blocking call had drained the queue, which had to refill"),
    "dispatch": Cause(classes.LAUNCH, "the host was still in operators or between two of them"),
    "launch_call": Cause(classes.LAUNCH, "the launch call itself was running"),
    "launch_latency": Cause(classes.LAUNCH, "launched work had not reached the device yet"),
    "queue_gap": Cause(classes.LAUNCH, "short gap between queued work of one stream"),
    "stream_wait": Cause(classes.DEPENDENCY, "queued work was held back by another stream"),
    "held_unknown": Cause(classes.UNEXPLAINED, "launched work did not start on an idle device"),
    "host_unknown": Cause(classes.UNEXPLAINED, "the host left no record of what it was doing"),
    "unlinked": Cause(classes.UNEXPLAINED, "the work that ended the gap has no launch record"),
    "not_recorded": Cause(
        classes.UNEXPLAINED, "launched work was not recorded: the device may have been busy"
    ),
}


@dataclass(frozen=True)
class Gaps:
    """Idle stretches [start, end) with the device row that ended each; NO_ID for none."""

    start: Int64
    end: Int64
    row: Int64


@dataclass(frozen=True)
class HostActivity:
    """What the driving threads were doing, as sets of time; `busy` includes the interpreter's own
    time between two records.
    """

    loader: Intervals
    profiler: Intervals
    allocator: Intervals
    blocking: Intervals
    busy: Intervals


def gaps(trace: Trace, idle: Intervals) -> Gaps:
    """The idle stretches and the first device work after each.

    Of several that start together it is the one with the lowest correlation, whatever their order
    in the file; one without a launch record only where there is no other.
    """
    device = trace.device
    rows = np.flatnonzero(device.dur > 0)
    rows = rows[np.lexsort((device.correlation[rows].astype(np.uint64), device.ts[rows]))]
    place = np.searchsorted(device.ts[rows], idle.end)
    row = np.append(rows, -1)[place]
    return Gaps(idle.start, idle.end, row)


def causes(
    trace: Trace,
    launches: Launches,
    idle: Intervals,
    host: HostActivity,
    limits: Thresholds,
    *,
    lost: bool = False,
) -> dict[str, Intervals]:
    """Disjoint sets, one per cause, that together are `idle`; `lost`: it may be busy time."""
    found = dict.fromkeys(CAUSES, EMPTY)
    if lost:
        return found | {"not_recorded": idle}
    gap = gaps(trace, idle)
    linked = (gap.row >= 0) & launches.linked[gap.row]
    start, end, row = gap.start[linked], gap.end[linked], gap.row[linked]
    found["unlinked"] = Intervals(gap.start[~linked], gap.end[~linked])
    late_end = np.clip(launches.start[row], start, end)
    call_end = np.clip(launches.end[row], late_end, end)
    found["launch_call"] = _set(late_end, call_end)
    queued = late_end == start
    # Latency and waits between streams end within this; what lasts longer is neither.
    prompt_end = np.minimum(end, call_end + int(limits.longest_hold_us * 1000))
    found["held_unknown"] = _set(prompt_end, end)
    found["launch_latency"] = _set(call_end[~queued], prompt_end[~queued])
    _split_queued(trace, launches, start, call_end, prompt_end, row, queued, limits, found)
    _split_late(start, late_end, host, found)
    found["profiler"] = idle & host.profiler
    return {
        cause: times if cause == "profiler" else times - found["profiler"]
        for cause, times in found.items()
    }


def _split_queued(
    trace: Trace,
    launches: Launches,
    start: Int64,
    call_end: Int64,
    end: Int64,
    row: Int64,
    queued: Bool,
    limits: Thresholds,
    found: dict[str, Intervals],
) -> None:
    """Gaps whose work was launched before they began: latency, hardware queue or another stream."""
    typical = _latency(launches, end[~queued], row[~queued])
    recent = queued & (end - launches.start[row] <= 2 * typical)
    same_stream = _follows_own_stream(trace, start, row)
    short = (end - start) <= limits.dispatch_gap_us * 1000
    of_queue = queued & ~recent & same_stream & short
    held = queued & ~recent & ~of_queue
    found["launch_latency"] |= _set(call_end[recent], end[recent])
    found["queue_gap"] = _set(call_end[of_queue], end[of_queue])
    found["stream_wait"] = _set(call_end[held], end[held])


def _latency(launches: Launches, end: Int64, row: Int64) -> float:
    """Median ns from launch call to start of work launched onto an idle device; 0 without any."""
    delay = end - launches.start[row]
    return float(np.median(delay[delay > 0])) if (delay > 0).any() else 0.0


def _follows_own_stream(trace: Trace, start: Int64, row: Int64) -> Bool:
    """Whether work on the stream of the work that ends the gap was running when it began."""
    device = trace.device
    first, streams = device.ts[0], len(trace.streams)
    ended = (device.end - first) * streams + device.stream
    return np.isin((start - first) * streams + device.stream[row], ended)


def _split_late(
    start: Int64, late_end: Int64, host: HostActivity, found: dict[str, Intervals]
) -> None:
    """The late part of each gap by what the host was in, most telling first."""
    late = _set(start, late_end)
    for cause, times in (("loader", host.loader), ("allocator", host.allocator)):
        found[cause] = late & times
        late = late - times
    drained = _drained(start, host.blocking)
    found["sync"] = late & _set(start[drained], late_end[drained])
    late = late - found["sync"]
    found["dispatch"] = late & host.busy
    found["host_unknown"] = late - found["dispatch"]


def _drained(start: Int64, blocking: Intervals) -> Bool:
    """Whether a blocking call was under way when the gap began: it ended because the queue did."""
    if not len(blocking):
        return np.zeros(len(start), np.bool_)
    place = np.searchsorted(blocking.start, start, side="right") - 1
    return np.asarray((place >= 0) & (blocking.end[np.maximum(place, 0)] >= start - CLOCK_SLACK_NS))


def _set(start: Int64, end: Int64) -> Intervals:
    """Disjoint sorted intervals from gap parts, the empty ones left out."""
    return union(start, end)


def host_activity(trace: Trace, launches: Launches, limits: Thresholds) -> HostActivity:
    """What the threads that drive the device did; the profiler's own work counts on any thread."""
    host = trace.host
    driving = np.isin(host.thread, launches.driving)

    def named(rule: Callable[[str], bool], *kinds: Kind) -> Int64:
        rows = trace.host_named(rule, *kinds)
        return rows[driving[rows]]

    def times(rows: Int64) -> Intervals:
        return union(host.ts[rows], host.end[rows])

    loader = times(named(kernels.is_loader_event, Kind.OP, Kind.ANNOTATION))
    at_work = driving & ((host.kind == Kind.OP) | (host.kind == Kind.RUNTIME))
    at_work[named(steps.is_mark, Kind.OP)] = False
    # The loader counts here only so that the interpreter right after it is bridged.
    busy = times(np.flatnonzero(at_work)) | loader
    return HostActivity(
        loader=loader,
        profiler=times(host.rows(Kind.OVERHEAD)),
        allocator=times(named(kernels.is_allocator_call, Kind.RUNTIME)),
        blocking=times(named(kernels.is_blocking_call, Kind.RUNTIME))
        | times(blocking_copies(trace, launches)),
        busy=busy.bridged(int(limits.python_gap_us * 1000)),
    )


def blocking_copies(trace: Trace, launches: Launches) -> Int64:
    """Host rows of the calls that copied from or to pageable memory and had to wait.

    cudaMemcpyAsync then blocks although its name says otherwise. A long call of another copy says
    nothing: under the profiler those of pinned and device copies often outlast the copy, too.
    """
    device = trace.device
    pageable = np.array([kernels.is_pageable_copy(n) for n in trace.names], np.bool_)[device.name]
    copies = np.flatnonzero((device.kind == Kind.MEMCPY) & pageable & launches.linked)
    waited = launches.end[copies] - launches.start[copies] > CLOCK_SLACK_NS
    return launches.row[copies[waited]]
