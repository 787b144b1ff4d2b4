"""What is the time of a replayed run? The same classes as of the recorded one, by the same rules.

Device work by priority; an idle gap by the work that ended it: up to its launch the host was late
(in the loader, after a blocking call that had drained the queue, in allocation, or launching), from
there on it was launch latency, or work that other streams held back. Times in ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.classify import classes as c
from analyzer.classify.idle import CLOCK_SLACK_NS
from analyzer.classify.kernels import Activity
from analyzer.classify.program import BATCH, Call
from analyzer.config import Thresholds
from analyzer.timeline.intervals import EMPTY, Intervals, Spans, sweep, union, where
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.measure import Stopwatch
from analyzer.whatif.replay import Inputs, Run

Floats = npt.NDArray[np.float64]
_FIXED = (c.COMPUTE, c.OPTIMIZER, c.COMM_TRANSFER, c.COMM_WAIT, c.COMM_UNSPLIT)


def account(
    graph: Graph, run: Run, inputs: Inputs, watch: Stopwatch, limits: Thresholds
) -> dict[str, float]:
    """Class -> ns per step, the mean over ranks and settled steps."""
    wanted = set(watch.settled)
    sums = dict.fromkeys(c.CLASSES, 0.0)
    count = 0
    for actor, every in watch.edges(run):
        windows = [times for step, times in every.items() if step in wanted]
        if not windows:
            continue
        edges = np.rint(np.array(sorted(windows))).astype(np.int64)
        found = _classes(graph, actor, run, inputs, limits, edges)
        for name, times in found.items():
            sums[name] += int(times.inside(edges[:, 0], edges[:, 1]).sum())
        count += len(windows)
    return {name: ns / count for name, ns in sums.items()}


def _whole(values: Floats) -> Int64:
    return np.rint(values).astype(np.int64)


def _classes(
    graph: Graph, actor: Actor, run: Run, inputs: Inputs, limits: Thresholds, edges: Int64
) -> dict[str, Intervals]:
    span = union(edges[:, 0], edges[:, 1])
    start, end = _whole(run.start[actor.work]), _whole(run.end[actor.work])
    found, busy = _busy(graph, actor, run, start, end)
    idle = span - busy
    _split_idle(graph, actor, run, inputs, limits, idle, start, end, found)
    return found


def _busy(
    graph: Graph, actor: Actor, run: Run, start: Int64, end: Int64
) -> tuple[dict[str, Intervals], Intervals]:
    activity = graph.activity[actor.work]
    joined = graph.joined[actor.work]
    comm = graph.lane[actor.work] % 2 == 1
    arrived = np.where(joined, run.arrived[actor.work], run.start[actor.work])
    turn = np.maximum(_whole(arrived), start)

    def spans(chosen: npt.NDArray[np.bool_]) -> Spans:
        return Spans(start[chosen], end[chosen])

    at, (compute, optimizer, moving, waiting, unsplit, load, copy) = sweep(
        spans(activity == Activity.COMPUTE),
        spans(activity == Activity.OPTIMIZER),
        Spans(turn[joined], end[joined]),
        Spans(start[joined], turn[joined]),
        spans(comm & ~joined),
        spans(activity == BATCH),
        spans(activity == Activity.COPY),
    )
    left = np.ones(len(at) - 1 if len(at) else 0, np.bool_)
    found = dict.fromkeys(c.CLASSES, EMPTY)
    names = (*_FIXED, c.DATA_LOADING, c.COPY)
    for name, depth in zip(
        names, (compute, optimizer, moving, waiting, unsplit, load, copy), strict=True
    ):
        found[name] = where(at, left & (depth > 0))
        left &= depth == 0
    return found, where(at, ~left)


def _split_idle(
    graph: Graph,
    actor: Actor,
    run: Run,
    inputs: Inputs,
    limits: Thresholds,
    idle: Intervals,
    start: Int64,
    end: Int64,
    found: dict[str, Intervals],
) -> None:
    """Books each gap under what the work that ended it had waited for."""
    launch = graph.launch[actor.work]
    point = np.append(_whole(run.host[actor.host]), 0)
    launched = np.where(
        launch == NO_ID, start, point[np.where(launch == NO_ID, -1, launch - actor.host.start)]
    )
    lasting = np.flatnonzero(end > start)
    order = lasting[np.lexsort((launched[lasting], start[lasting]))]
    place = np.searchsorted(start[order], idle.end)
    ended = np.append(order, NO_ID)[place]
    known = ended != NO_ID
    found[c.UNEXPLAINED] |= union(idle.start[~known], idle.end[~known])
    begin, until, work = idle.start[known], idle.end[known], ended[known]
    late = np.clip(launched[work], begin, until)
    _split_late(graph, actor, run, inputs, begin, late, found)
    # Queued work: of its own launch, of the queue, or held back by another stream.
    usual = 2 * _whole(graph.latency[actor.work] * inputs.latency)[work]
    queued = late == begin
    short = (until - begin) <= limits.dispatch_gap_us * 1000
    launching = ~queued | (until - launched[work] <= usual) | short
    found[c.LAUNCH] |= union(late[launching], until[launching])
    found[c.DEPENDENCY] |= union(late[~launching], until[~launching])


def _split_late(
    graph: Graph,
    actor: Actor,
    run: Run,
    inputs: Inputs,
    begin: Int64,
    late: Int64,
    found: dict[str, Intervals],
) -> None:
    time = run.host[actor.host]
    before = np.concatenate([time[:1], time[:-1]])
    passed = (inputs.rest + inputs.other + inputs.unknown)[actor.host]
    called = np.minimum(before + passed, time)
    kind = graph.kind[actor.host]
    rest = union(begin, late)

    def stretch(end: Floats, length: Floats) -> Intervals:
        chosen = length > 0
        return union(_whole((end - length)[chosen]), _whole(end[chosen]))

    blocked = time - called
    loading = stretch(time, np.where(kind == Call.LOADER, blocked, 0.0)) & rest
    found[c.DATA_LOADING] |= loading
    rest -= loading
    other = inputs.other[actor.host]
    allocating = stretch(called, other) & rest
    found[c.HOST_OTHER] |= allocating
    rest -= allocating
    syncs = stretch(time, np.where(kind == Call.SYNC, blocked, 0.0))
    drained = _drained(begin, syncs)
    synced = union(begin[drained], late[drained]) & rest
    found[c.HOST_SYNC] |= synced
    rest -= synced
    unknown = stretch(called - other, inputs.unknown[actor.host]) & rest
    found[c.UNEXPLAINED] |= unknown
    found[c.LAUNCH] |= rest - unknown


def _drained(start: Int64, blocking: Intervals) -> npt.NDArray[np.bool_]:
    """As in idle.py: a blocking call was under way when the gap began."""
    if not len(blocking):
        return np.zeros(len(start), np.bool_)
    place = np.searchsorted(blocking.start, start, side="right") - 1
    return np.asarray((place >= 0) & (blocking.end[np.maximum(place, 0)] >= start - CLOCK_SLACK_NS))


def worst(found: dict[str, float], recorded: dict[str, float], names: Sequence[str]) -> float:
    """Largest difference of a class between two accounts of a step, in parts of the second."""
    return max(abs(found[n] - recorded[n]) for n in names) / sum(recorded.values())
