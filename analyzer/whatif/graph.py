"""All ranks' work, host points and dependencies as one graph, cut into runs that can be scanned.

Work lies rank by rank and lane by lane, so that what follows on one lane without waiting for other
lanes is one run of an array: its replay is a scan, not a loop. The runs, the hosts' runs between
blocking calls and the meetings of collectives are the tasks, in an order in which everything a task
waits for comes before it. Times are ns since the first instant of the recording.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.program import Host, Program, Work
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together
from analyzer.ranks.waits import Parts
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.dependencies import Dependencies, depend, is_comm
from analyzer.whatif.loading import arrivals

Floats = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

# So many ranks are replayed, the late ones among them: the others are like one of these.
MOST_RANKS = 64
# Less of the work's launches recorded: a replay would only repeat the recording.
LEAST_LINKED = 0.8

NO_DEVICE = "not measurable: no device work was recorded"
TOO_MUCH = "not measurable: one step of a rank is more work than is kept for a replay"
UNLINKED = "not measurable: too much work lacks the record of its launch"
CIRCULAR = "not measurable: what waits for what contradicts itself"
HALF = "not measurable: a collective was recorded on some of its ranks only"


class NotReplayableError(Exception):
    """Why there is no graph, as a sentence's end."""


@dataclass(frozen=True)
class Wait:
    """Work in slot `before` must be over `delay` ns ago; `soft` waits go when all overlaps."""

    before: int
    delay: int
    soft: bool


@dataclass(frozen=True)
class HostRun:
    """Points [first, last) of one host; the first waits for the slots `awaited`, if any."""

    first: int
    last: int
    awaited: tuple[int, ...]
    opens: bool


@dataclass(frozen=True)
class LaneRun:
    """Slots [first, last) of one lane, and the slot before; the first also waits for `waits`."""

    first: int
    last: int
    previous: int
    waits: tuple[Wait, ...]


@dataclass(frozen=True)
class Meeting:
    """One collective: a run of one slot per rank; of `eager` ones the first, a send, is over
    without its receiver.
    """

    runs: tuple[LaneRun, ...]
    eager: bool


Task = HostRun | LaneRun | Meeting


@dataclass(frozen=True)
class Actor:
    """One member's part of the arrays: points [host), slots [work), and what was its own time.

    `steps` are the used steps replayed, `windows` per such step the slots launched in it and the
    end of the window before, where that is no step of the replay.
    """

    rank: int
    cycle: int
    host: slice
    work: slice
    shift: int
    names: list[str]
    ops: list[str]
    recorded: bool


@dataclass(frozen=True)
class Graph:
    """Arrays by slot (work) and by point (host), and the tasks in order.

    `launch` is the point of each slot, `fixed` the start of work launched before the recording
    (NaN for the others). `transfer` is the length of joined collectives once all are there, `dur`
    that of other work. `arrival` is when a loader's batch is there where that does not depend on
    the loop, NaN elsewhere.
    """

    actors: list[Actor]
    ts: Floats
    dur: Floats
    gap: Floats
    latency: Floats
    launch: Int64
    fixed: Floats
    activity: Int64
    lane: Int64
    step: Int64
    name: Int64
    op: Int64
    joined: Bool
    nbytes: Floats
    time: Floats
    kind: Int64
    rest: Floats
    other: Floats
    unknown: Floats
    wait: Floats
    arrival: Floats
    returning: Floats
    tasks: list[Task]
    kinds: dict[int, str] = field(default_factory=dict)


@dataclass
class _Rank:
    """A member while the graph is built."""

    member: Member
    program: Program
    work: Work
    host: Host
    found: Dependencies
    shift: int
    slot: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    points: int = 0
    slots: int = 0


def graph(members: Sequence[Member], together: Together) -> Graph:
    """The graph of a job; NotReplayableError with the reason where the traces do not hold one."""
    chosen = _chosen(members, together)
    shifts = _shifts(chosen, together)
    origin = min(_first(m) + s for m, s in zip(chosen, shifts, strict=True))
    ranks = []
    points = slots = 0
    for member, shift in zip(chosen, shifts, strict=True):
        assert member.digest.program is not None
        work, host = member.digest.program.columns()
        rank = _Rank(member, member.digest.program, work, host, depend(work, host), shift - origin)
        order = np.argsort(rank.found.lane, kind="stable")
        rank.slot = np.empty(len(order), np.int64)
        rank.slot[order] = np.arange(len(order)) + slots
        rank.points, rank.slots = points, slots
        points, slots = points + len(host.time), slots + len(order)
        ranks.append(rank)
    return _Builder(ranks, together).graph()


def _chosen(members: Sequence[Member], together: Together) -> list[Member]:
    programs = [m.digest.program for m in members]
    if any(p is None for p in programs):
        none = any(m.digest.timeline != "device" for m in members)
        raise NotReplayableError(NO_DEVICE if none else TOO_MUCH)
    if any(p.linked < LEAST_LINKED for p in programs if p is not None):
        raise NotReplayableError(UNLINKED)
    ranks = sorted({m.rank for m in members})
    if len(ranks) > MOST_RANKS:
        late = [late.rank for late in together.late[: MOST_RANKS // 2]]
        others = [r for r in ranks if r not in late]
        spread = np.linspace(0, len(others) - 1, MOST_RANKS - len(late)).round().astype(int)
        ranks = sorted({*late, *(others[i] for i in spread.tolist())})
    return [m for m in members if m.rank in ranks]


def _first(member: Member) -> int:
    assert member.digest.program is not None
    work, host = member.digest.program.columns()
    return int(min(work.ts[0], host.time.min(initial=work.ts[0])))


def _shifts(members: Sequence[Member], together: Together) -> list[int]:
    """What is added to each member's times to read them on one clock.

    Without a common clock the ends of collectives, which are close together, give one.
    """
    clocks = together.clocks
    if clocks.aligned:
        return [
            int(clocks.of(m.rank, np.array([m.digest.span.start]))[0]) - m.digest.span.start
            if m.rank in clocks.offset
            else 0
            for m in members
        ]
    shift: dict[int, int] = {}
    for part in together.parts:
        ends = part.group.end
        ready = [i for i, r in enumerate(part.group.ranks) if r in shift]
        if not ready:
            shift[part.group.ranks[0]], ready = 0, [0]
        known = ends[:, ready[0]] + shift[part.group.ranks[ready[0]]]
        for i, rank in enumerate(part.group.ranks):
            shift.setdefault(rank, int(np.median(known - ends[:, i])))
    return [shift.get(m.rank, 0) for m in members]


class _Builder:
    """Puts the ranks together."""

    def __init__(self, ranks: list[_Rank], together: Together) -> None:
        self.ranks, self.together = ranks, together
        self.waits: dict[int, list[Wait]] = defaultdict(list)
        self.awaited: dict[int, list[int]] = {}
        self.meetings: list[tuple[list[int], bool]] = []
        total = sum(len(r.slot) for r in ranks)
        self.transfer = np.full(total, np.nan)
        self.previous = np.full(total, NO_ID, np.int64)
        self.nbytes = np.full(total, np.nan)
        self.kinds: dict[int, str] = {}

    def graph(self) -> Graph:
        """The arrays and the tasks."""
        for rank in self.ranks:
            self._waits_of(rank)
        for part in self.together.parts:
            self._meet(part)
        r = self.ranks
        work = {
            name: np.concatenate([self._by_slot(x, getattr(x.work, name)) for x in r])
            for name in ("ts", "dur", "activity", "step", "name", "op")
        }
        launch = np.concatenate([
            self._by_slot(x, np.where(x.work.host == NO_ID, NO_ID, x.work.host + x.points))
            for x in r
        ])  # fmt: skip
        shift = np.concatenate([np.full(len(x.slot), x.shift) for x in r])
        lane = np.concatenate([self._by_slot(x, x.found.lane) for x in r])
        ts = (work["ts"] + shift).astype(np.float64)
        joined = ~np.isnan(self.transfer)
        host = {
            name: np.concatenate([getattr(x.host, name) for x in r])
            for name in ("kind", "rest", "other", "unknown", "wait")
        }
        made = Graph(
            actors=[self._actor(x) for x in r],
            ts=ts,
            dur=np.where(joined, self.transfer, work["dur"]),
            gap=np.concatenate([self._by_slot(x, x.found.gap) for x in r]).astype(np.float64),
            latency=np.concatenate(
                [self._by_slot(x, x.found.latency) for x in r]
            ).astype(np.float64),
            launch=launch,
            fixed=self._fixed(launch, ts),
            activity=work["activity"],
            lane=lane,
            step=work["step"],
            name=work["name"],
            op=work["op"],
            joined=joined,
            nbytes=self.nbytes,
            time=np.concatenate([x.host.time + x.shift for x in r]).astype(np.float64),
            kind=host["kind"],
            rest=host["rest"].astype(np.float64),
            other=host["other"].astype(np.float64),
            unknown=host["unknown"].astype(np.float64),
            wait=host["wait"].astype(np.float64),
            arrival=np.concatenate(arrivals([(x.member, x.host, x.shift) for x in r])),
            returning=np.concatenate([np.full(len(x.host.time), float(x.found.returning))
                                      for x in r]),
            tasks=[],
            kinds=self.kinds,
        )  # fmt: skip
        made.tasks.extend(_Tasks(self, made).ordered())
        return made

    def _by_slot(self, rank: _Rank, rows: Int64) -> Int64:
        found = np.empty(len(rows), rows.dtype)
        found[rank.slot - rank.slots] = rows
        return found

    def _actor(self, rank: _Rank) -> Actor:
        return Actor(
            rank=rank.member.rank,
            cycle=rank.member.cycle,
            host=slice(rank.points, rank.points + len(rank.host.time)),
            work=slice(rank.slots, rank.slots + len(rank.slot)),
            shift=rank.shift,
            names=rank.program.names,
            ops=rank.program.ops,
            recorded=rank.found.recorded,
        )

    def _waits_of(self, rank: _Rank) -> None:
        """Edges and blocking calls of one rank, by slot and point."""
        comm, closing = is_comm(rank.work), _closing(rank)
        slot = rank.slot
        for before, after, delay in rank.found.edges:
            soft = bool(comm[before] and not comm[after] and not closing[after])
            self.waits[int(slot[after])].append(Wait(int(slot[before]), delay, soft))
        follows = rank.found.previous != NO_ID
        self.previous[slot[follows]] = slot[rank.found.previous[follows]]
        for point, rows in rank.found.awaited.items():
            self.awaited[point + rank.points] = [int(slot[row]) for row in rows]

    def _meet(self, part: Parts) -> None:
        """Slots of one group's operations, their transfer, and who meets whom."""
        group = part.group
        by_rank = {(x.member.rank, x.member.cycle): _records(x) for x in self.ranks}
        transfer = part.transfer
        for row, records in enumerate(group.records):
            cycle = group.step[row][0]
            slots = []
            for column, (rank, record) in enumerate(zip(group.ranks, records, strict=True)):
                known = by_rank.get((rank, cycle))
                slot = known.get((record.stream, record.start, record.end)) if known else None
                if slot is None:
                    continue
                self.transfer[slot] = transfer[row, column]
                if group.nbytes[row] is not None:
                    self.nbytes[slot] = float(group.nbytes[row] or 0)
                self.kinds[slot] = f"{group.group} {group.kind[row]}"
                slots.append(slot)
            if not slots:
                continue
            eager = group.paired and len(slots) == 2 and self._eager(part, row)
            self.meetings.append((slots, eager))

    @staticmethod
    def _eager(part: Parts, row: int) -> bool:
        """Whether the sender did not wait: all of its time is transfer though the receiver came
        later.
        """
        return bool(part.last[row] == 1 and part.turn[row, 0] == part.group.start[row, 0])

    def _fixed(self, launch: Int64, ts: Floats) -> Floats:
        """Start of work without a launch record that stands before all that has one on its lane.

        Later work of that kind follows what is before it.
        """
        fixed = np.full(len(ts), np.nan)
        opened: Bool = np.zeros(len(ts), np.bool_)
        for slot in range(len(ts)):
            before = self.previous[slot]
            opened[slot] = launch[slot] != NO_ID or (before != NO_ID and opened[before])
            if not opened[slot]:
                fixed[slot] = ts[slot]
        return fixed


def _closing(rank: _Rank) -> Bool:
    """Work that may wait for communication even if all overlaps: the optimizer, and what its thread
    launches before it after the last collective of the step (clipping, reading norms).
    """
    work, host = rank.work, rank.host
    optimizer = work.activity == Activity.OPTIMIZER
    closing = optimizer.copy()
    comm = is_comm(work)
    thread = np.where(work.host == NO_ID, NO_ID, host.thread[work.host])
    for step in np.unique(work.step[optimizer]).tolist():
        mine = work.step == step
        last = int(work.host[mine & comm].max(initial=NO_ID))
        updates = thread[np.flatnonzero(mine & optimizer)[0]]
        closing |= mine & (work.host > last) & (thread == updates)
    return np.asarray(closing)


def _records(rank: _Rank) -> Mapping[tuple[str, int, int], int]:
    """Slot of each collective record."""
    rows = np.flatnonzero(rank.work.record != NO_ID)
    records = rank.member.digest.collectives
    return {
        (r.stream, r.start, r.end): int(rank.slot[row])
        for row, r in ((row, records[rank.work.record[row]]) for row in rows.tolist())
    }


class _Tasks:
    """Cuts lanes and hosts into runs and puts them in order."""

    def __init__(self, built: _Builder, made: Graph) -> None:
        self.built, self.made = built, made
        self.tasks: list[Task] = []
        self.needs: list[set[int]] = []
        self.host_task = np.full(len(made.time), NO_ID, np.int64)
        self.work_task = np.full(len(made.ts), NO_ID, np.int64)

    def ordered(self) -> Iterable[Task]:
        """The tasks, each after what it waits for."""
        for actor in self.made.actors:
            self._cut_host(actor.host)
        meets = {slot for slots, _ in self.built.meetings for slot in slots}
        runs: dict[int, LaneRun] = {}
        for actor in self.made.actors:
            self._cut_lanes(actor.work, meets, runs)
        for slots, eager in self.built.meetings:
            self._add(Meeting(tuple(runs[s] for s in slots), eager), slots)
        self._connect()
        return self._sorted()

    def _add(self, task: Task, slots: Sequence[int] = (), points: slice | None = None) -> None:
        number = len(self.tasks)
        self.tasks.append(task)
        self.needs.append(set())
        self.work_task[list(slots)] = number
        if points is not None:
            self.host_task[points] = number

    def _cut_host(self, points: slice) -> None:
        cuts = [p for p in sorted(self.built.awaited) if points.start < p < points.stop]
        edges = [points.start, *cuts, points.stop]
        for first, last in pairwise(edges):
            if first < last:
                awaited = tuple(self.built.awaited.get(first, ()))
                run = HostRun(first, last, awaited, first == points.start)
                self._add(run, points=slice(first, last))

    def _cut_lanes(self, slots: slice, meets: set[int], runs: dict[int, LaneRun]) -> None:
        launch, previous, waits = self.made.launch, self.built.previous, self.built.waits
        latest, first = NO_ID, slots.start
        for slot in range(slots.start, slots.stop + 1):
            end = slot == slots.stop
            needs = int(self.host_task[launch[slot]]) if not end and launch[slot] >= 0 else NO_ID
            cut = (
                end
                or previous[slot] != slot - 1
                or slot in waits
                or slot in meets
                or slot - 1 in meets
                or needs > latest
            )
            if cut and slot > first:
                run = LaneRun(first, slot, int(previous[first]), tuple(waits.get(first, ())))
                if first in meets:
                    runs[first] = run
                else:
                    self._add(run, range(first, slot))
            if cut:
                first, latest = slot, needs

    def _connect(self) -> None:
        """What each task must come after."""
        for number, task in enumerate(self.tasks):
            if isinstance(task, HostRun):
                if not task.opens:
                    self.needs[number].add(int(self.host_task[task.first - 1]))
                self.needs[number].update(int(self.work_task[s]) for s in task.awaited)
                continue
            for run in task.runs if isinstance(task, Meeting) else (task,):
                if run.previous != NO_ID:
                    self.needs[number].add(int(self.work_task[run.previous]))
                self.needs[number].update(int(self.work_task[w.before]) for w in run.waits)
                launch = self.made.launch[run.first : run.last]
                if launch.max() >= 0:
                    self.needs[number].add(int(self.host_task[launch.max()]))

    def _sorted(self) -> list[Task]:
        left = [len(n) for n in self.needs]
        after: dict[int, list[int]] = defaultdict(list)
        for number, needs in enumerate(self.needs):
            for need in needs:
                after[need].append(number)
        ready = [n for n, count in enumerate(left) if not count]
        done = []
        while ready:
            number = ready.pop()
            done.append(self.tasks[number])
            for follower in after[number]:
                left[follower] -= 1
                if not left[follower]:
                    ready.append(follower)
        if len(done) < len(self.tasks):
            raise NotReplayableError(CIRCULAR)
        return done
