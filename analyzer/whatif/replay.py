"""When does everything happen if the work, the hosts or the waits are other than recorded?

A forward pass over the tasks of a graph: work starts when its lane is free, its launch has reached
the device and what it waits for is over; a host goes on when what it blocks for is over; a
collective begins on each rank when that rank arrives and ends its transfer after the last has
(methods 6.2). Many variants are replayed at once, as columns. Blocked time is never carried over:
it is derived again. Times in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from analyzer.classify.replayable import Call
from analyzer.trace.schema import NO_ID
from analyzer.whatif.dependencies import BLOCKED_NS
from analyzer.whatif.graph import Graph
from analyzer.whatif.tasks import HostRun, LaneRun, Meeting

Floats = npt.NDArray[np.float64]

# Values held at once in each of a replay's ten arrays: variants of long recordings take turns.
_MOST_VALUES = 400_000


@dataclass(frozen=True)
class Inputs:
    """What a variant changes: lengths by slot, host time by point, and how much each wait counts.

    1 is as recorded, 0 is gone. `latency` scales that of all launches.
    """

    dur: Floats
    rest: Floats
    other: Floats
    unknown: Floats
    wait: Floats
    arrival: Floats
    latency: float = 1.0
    blocking: float = 1.0
    meeting: float = 1.0
    waiting: float = 1.0


def recorded(graph: Graph) -> Inputs:
    """The variant that changes nothing."""
    return Inputs(graph.dur, graph.rest, graph.other, graph.unknown, graph.wait, graph.arrival)


@dataclass(frozen=True)
class Run:
    """One replayed variant: start and end by slot, time by point, and when the last of a
    collective's ranks arrived (NaN for other work).
    """

    start: Floats
    end: Floats
    host: Floats
    arrived: Floats


def replay(graph: Graph, variants: Iterable[Inputs]) -> Iterator[Run]:
    """The variants, in order; no more of them are held than one pass takes."""
    at_once = max(1, _MOST_VALUES // max(1, len(graph.ts) + len(graph.time)))
    waiting = iter(variants)
    while batch := list(islice(waiting, at_once)):
        yield from _Replay(graph, batch).runs()


class _Replay:
    """One pass over the tasks; all arrays are [slot or point, variant]."""

    def __init__(self, graph: Graph, variants: Sequence[Inputs]) -> None:
        self.graph = graph
        count = len(variants)
        self.dur = np.stack([v.dur for v in variants], axis=1)
        self.blocking = np.array([v.blocking for v in variants])
        self.meeting = np.array([v.meeting for v in variants])
        self.waiting = np.array([v.waiting for v in variants])
        self.arrival = np.stack([v.arrival for v in variants], axis=1)
        self.chain = np.stack([_chain(graph, v) for v in variants], axis=1)
        self.host = np.zeros((len(graph.time), count))
        self.start = np.zeros_like(self.dur)
        self.end = np.zeros_like(self.dur)
        self.arrived = np.full_like(self.dur, np.nan)
        latency = np.array([v.latency for v in variants])
        self.latency = graph.latency[:, None] * latency
        self.held = ~np.isnan(graph.arrival) | (graph.room != NO_ID)
        # From the work before on its lane to the end of each, if nothing else held it back.
        self.length = self.dur + graph.gap[:, None]
        self.total = np.cumsum(self.length, axis=0)

    def runs(self) -> Iterator[Run]:
        """Goes through all tasks, then gives the variants."""
        for task in self.graph.tasks:
            if isinstance(task, LaneRun):
                self._lane(task)
            elif isinstance(task, HostRun):
                self._host(task)
            else:
                self._meet(task)
        for column in zip(self.start.T, self.end.T, self.host.T, self.arrived.T, strict=True):
            yield Run(*(np.ascontiguousarray(c) for c in column))

    def _host(self, run: HostRun) -> None:
        a, b = run.first, run.last
        shift = self.host[a - 1] - self.chain[a - 1] if not run.opens else 0.0
        if run.awaited:
            own = self.chain[a] + shift
            over = self.end[list(run.awaited)].max(axis=0) + self.graph.returning[a]
            shift = own + self.blocking * np.maximum(over - own, 0.0) - self.chain[a]
        if not self.held[a:b].any():
            self.host[a:b] = self.chain[a:b] + shift
            return
        room = self.graph.room[a:b]
        free = np.where((room == NO_ID)[:, None], -np.inf, self.end[room])
        until = np.fmax(self.arrival[a:b], free)
        behind = np.maximum.accumulate(until - self.chain[a:b], axis=0)
        self.host[a:b] = self.chain[a:b] + np.maximum(behind, shift)

    def _ready(self, a: int, b: int) -> Floats:
        """When each launch has reached the device."""
        launch = self.graph.launch[a:b]
        if launch.min() != NO_ID:
            return np.asarray(self.host[launch] + self.latency[a:b])
        known = (launch != NO_ID)[:, None]
        ready = np.where(known, self.host[launch] + self.latency[a:b], -np.inf)
        fixed = self.graph.fixed[a:b, None]
        return np.where(np.isnan(fixed), ready, fixed)

    def _first(self, run: LaneRun, ready: Floats) -> Floats:
        """Start of a run's first work."""
        start = ready
        if run.previous != NO_ID:
            start = np.maximum(ready, self.end[run.previous] + self.graph.gap[run.first])
        for wait in run.waits:
            over = np.maximum(self.end[wait.before] + wait.delay - start, 0.0)
            start = start + (self.waiting * over if wait.soft else over)
        return start

    def _lane(self, run: LaneRun) -> None:
        a, b = run.first, run.last
        ready = self._ready(a, b)
        self.start[a] = self._first(run, ready[0])
        self.end[a] = self.start[a] + self.dur[a]
        if b - a == 1:
            return
        # end[i] = total[i] + the largest of what any earlier start exceeds the total by.
        total = self.total[a + 1 : b] - self.total[a]
        before = total - self.length[a + 1 : b]
        ahead = ready[1:] - self.graph.gap[a + 1 : b, None] - before
        ahead[0] = np.maximum(ahead[0], self.end[a])
        self.end[a + 1 : b] = total + np.maximum.accumulate(ahead, axis=0)
        self.start[a + 1 : b] = self.end[a + 1 : b] - self.dur[a + 1 : b]

    def _meet(self, meeting: Meeting) -> None:
        slots = [run.first for run in meeting.runs]
        start = np.stack([self._first(r, self._ready(r.first, r.last)[0]) for r in meeting.runs])
        last = start.max(axis=0)
        over = start + self.meeting * (last - start)
        if meeting.eager:
            over[0] = start[0]
        self.start[slots] = start
        self.arrived[slots] = over
        self.end[slots] = over + self.dur[slots]


def _chain(graph: Graph, inputs: Inputs) -> Floats:
    """Each host's points if it never blocked: what passes between them, from when it began."""
    own = np.where(graph.blocks, np.minimum(inputs.wait, BLOCKED_NS / 4), inputs.wait)
    own[~np.isnan(inputs.arrival)] = 0.0
    own[graph.kind == Call.LAUNCH] = 0.0
    passed = inputs.rest + inputs.other + inputs.unknown + own
    began = graph.time - graph.rest - graph.other - graph.unknown - graph.wait
    chain = np.empty_like(passed)
    for actor in graph.actors:
        points = actor.host
        if points.start < points.stop:
            chain[points] = np.cumsum(passed[points]) + began[points.start]
    return chain
