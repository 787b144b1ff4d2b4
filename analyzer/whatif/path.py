"""What did a replayed step wait for, all the way back from its end? The critical path, over ranks.

From the last work of a step each thing is followed to what it waited for last: the work before it
on its lane, work of another lane, the rank that arrived last at a collective, or the host's launch;
and the host to its point before, or to what it blocked for. The time between is the path's. Its
sum is the step. Times in ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from analyzer.classify import classes as c
from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, Call
from analyzer.ranks.pool import StepId
from analyzer.trace.schema import NO_ID
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.measure import Stopwatch
from analyzer.whatif.placed import Placed, Stretch, placed
from analyzer.whatif.replay import Run, recorded
from analyzer.whatif.tasks import HostRun, LaneRun, Meeting

MOST_PLACES = 12

_WORK_CLASS: dict[int, str] = {
    Activity.COMPUTE: c.COMPUTE,
    Activity.OPTIMIZER: c.OPTIMIZER,
    Activity.COMMUNICATION: c.COMM_UNSPLIT,
    Activity.FUSED: c.COMM_UNSPLIT,
    Activity.COPY: c.COPY,
    BATCH: c.DATA_LOADING,
}


@dataclass(frozen=True)
class Place:
    """Time of the path by kernel and the op that launched it."""

    name: str
    op: str
    time_class: str
    ns: float
    count: int


@dataclass(frozen=True)
class Path:
    """The path of one step, by class, rank and place; `slack` is what a class has off the path,
    `pieces` where it runs in the recording.
    """

    step: StepId
    ns: float
    by_class: Mapping[str, float]
    slack: Mapping[str, float]
    by_rank: Mapping[int, float]
    places: list[Place]
    pieces: list[Placed] = field(default_factory=list)


def critical_path(
    graph: Graph, run: Run, watch: Stopwatch, step: StepId, step_ns: Mapping[str, float]
) -> Path | None:
    """The path of a step; None when it has a window on no rank.

    `step_ns` is what each class has in that step, the mean over ranks.
    """
    rows = [(mine[step], a) for a, mine in watch.edges(run) if step in mine]
    if not rows:
        return None
    # The path ends with the last work of the step on any rank, and begins as long before as the
    # ranks' windows are on average.
    (_, end), actor = max(rows, key=lambda row: row[0][1])
    begin = end - float(np.mean([b - a for (a, b), _ in rows]))
    last = _last(graph, run, actor, step, end)
    if last is None:
        return None
    pieces = list(_Walk(graph, run).back(last, begin))
    by_class: dict[str, float] = defaultdict(float)
    by_rank: dict[int, float] = defaultdict(float)
    for piece in pieces:
        by_class[piece.time_class] += piece.end - piece.start
        by_rank[piece.rank] += piece.end - piece.start
    return Path(
        step=step,
        ns=sum(piece.end - piece.start for piece in pieces),
        by_class=dict(by_class),
        slack={n: max(0.0, ns - by_class[n]) for n, ns in step_ns.items() if ns or by_class[n]},
        by_rank=by_rank,
        places=_places(graph, pieces),
        pieces=placed(graph, run, pieces[::-1]),
    )


def _last(graph: Graph, run: Run, actor: Actor, step: StepId, end: float) -> int | None:
    slots = np.arange(actor.work.start, actor.work.stop)
    slots = slots[run.end[slots] == end]
    return int(slots[0]) if len(slots) else None


class _Walk:
    """Follows a run back through what each thing waited for."""

    def __init__(self, graph: Graph, run: Run) -> None:
        self.graph, self.run = graph, run
        inputs = recorded(graph)
        self.passed = inputs.rest + inputs.other + inputs.unknown
        self.actors = graph.actors
        self.host_actor = np.repeat(
            np.arange(len(self.actors)), [a.host.stop - a.host.start for a in self.actors]
        )
        self.work_actor = np.repeat(
            np.arange(len(self.actors)), [a.work.stop - a.work.start for a in self.actors]
        )
        # The work that each point launches, the first of a graph's.
        self.launched = dict(
            zip(graph.launch[::-1].tolist(), range(len(graph.launch))[::-1], strict=True)
        )
        self.awaited: dict[int, tuple[int, ...]] = {}
        self.opens: set[int] = set()
        self.runs: dict[int, LaneRun] = {}
        self.meets: dict[int, Meeting] = {}
        for task in graph.tasks:
            if isinstance(task, HostRun):
                self.awaited[task.first] = task.awaited
                self.opens |= {task.first} if task.opens else set()
            elif isinstance(task, LaneRun):
                self.runs[task.first] = task
            else:
                self.runs |= {r.first: r for r in task.runs}
                self.meets |= {r.first: task for r in task.runs}

    def back(self, slot: int, begin: float) -> Iterator[Stretch]:
        """Pieces of the path, the last first, down to `begin`."""
        at = float(self.run.end[slot])
        point: int | None = None
        hosted: list[Stretch] = []
        while at > begin:
            before, on_host = at, point is not None
            step = self._work(slot, at) if point is None else self._host(point, slot, at)
            pieces, slot, point, at = step
            for start, end, actor, name, of in pieces:
                start, end = max(start, begin), min(end, before)
                # From its launch call on work is still on its way from the host.
                late = on_host or (name == c.LAUNCH and point is not None)
                if end > start:
                    hosted.append(Stretch(actor.rank, start, end, name, of, actor, late))
            if on_host and point is not None:
                continue
            # As in idle.py: what the host did after a call had drained the queue is that call's.
            drained = on_host and slot != NO_ID
            yield from (_after_a_sync(one) if drained else one for one in hosted)
            hosted = []
            if slot == NO_ID:
                return
        yield from hosted

    _Pieces = list[tuple[float, float, Actor, str, int]]

    def _work(self, slot: int, at: float) -> tuple[_Pieces, int, int | None, float]:
        """Work, and what it waited for last."""
        graph, run = self.graph, self.run
        actor = self.actors[self.work_actor[slot]]
        name = _WORK_CLASS[int(graph.activity[slot])]
        start = float(run.start[slot])
        if slot in self.meets:
            arrived = float(run.arrived[slot])
            pieces = [(arrived, at, actor, c.COMM_TRANSFER, slot)]
            # Waiting is on nobody's path: it goes on with the rank that came last.
            firsts = [r.first for r in self.meets[slot].runs]
            slot = max(firsts, key=lambda s: float(run.start[s]))
            start = float(run.start[slot])
            actor = self.actors[self.work_actor[slot]]
        else:
            pieces = [(start, at, actor, name, slot)]
        lane = self.runs.get(slot)
        previous = lane.previous if lane is not None else slot - 1
        held: list[tuple[float, int]] = []
        if previous != NO_ID:
            held.append((float(run.end[previous] + graph.gap[slot]), previous))
        waits = lane.waits if lane is not None else ()
        held += [(float(run.end[w.before]) + w.delay, w.before) for w in waits]
        bound, before = max(held, default=(-np.inf, NO_ID))
        point = int(graph.launch[slot])
        ready = float(run.host[point]) if point != NO_ID else start
        if point != NO_ID and (before == NO_ID or ready + float(graph.latency[slot]) >= bound):
            pieces.append((ready, start, actor, c.LAUNCH, slot))
            return pieces, slot, point, ready
        if before == NO_ID:
            return pieces, NO_ID, None, start
        over = min(float(run.end[before]), start)
        name = c.LAUNCH if before == previous else c.DEPENDENCY
        pieces.append((over, start, actor, name, slot))
        return pieces, before, None, over

    def _host(self, point: int, slot: int, at: float) -> tuple[_Pieces, int, int | None, float]:
        """A point of a host, and what it waited for: its point before, or what it blocked for."""
        graph, run = self.graph, self.run
        actor = self.actors[self.host_actor[point]]
        slot = self.launched.get(point, slot)
        opens = point in self.opens
        passed = float(self.passed[point])
        before = at - passed - float(graph.wait[point]) if opens else float(run.host[point - 1])
        called = min(before + passed, at)
        awaited = self.awaited.get(point, ())
        if awaited:
            last = max(awaited, key=lambda s: float(run.end[s]))
            over = float(run.end[last])
            if over + float(graph.returning[point]) > called + 1.0 and over < at:
                return [(over, at, actor, c.HOST_SYNC, slot)], last, None, over
        pieces: _Walk._Pieces = []
        if at > called:
            name = c.DATA_LOADING if graph.kind[point] == Call.LOADER else c.HOST_SYNC
            pieces.append((called, at, actor, name, slot))
        # Their order within the stretch is not kept: the preparation of the launch stands last.
        edge = called
        for name, ns in (
            (c.LAUNCH, graph.rest[point]),
            (c.HOST_OTHER, graph.other[point]),
            (c.UNEXPLAINED, graph.unknown[point]),
        ):
            pieces.append((edge - float(ns), edge, actor, name, slot))
            edge -= float(ns)
        return pieces, NO_ID if opens else slot, None if opens else point - 1, before


def _after_a_sync(piece: Stretch) -> Stretch:
    refilling = piece.time_class in (c.LAUNCH, c.UNEXPLAINED)
    return replace(piece, time_class=c.HOST_SYNC) if refilling else piece


def _places(graph: Graph, pieces: list[Stretch]) -> list[Place]:
    """The path by kernel, op and class, most time first."""
    ns: dict[tuple[str, str, str], float] = defaultdict(float)
    slots: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for piece in pieces:
        if piece.slot == NO_ID:
            continue
        op = int(graph.op[piece.slot])
        key = (
            piece.actor.names[int(graph.name[piece.slot])],
            piece.actor.ops[op] if op != NO_ID else "",
            piece.time_class,
        )
        ns[key] += piece.end - piece.start
        slots[key].add(piece.slot)
    rows = [Place(*key, ns=time, count=len(slots[key])) for key, time in ns.items()]
    return sorted(rows, key=lambda p: (-p.ns, p.name, p.op))[:MOST_PLACES]
