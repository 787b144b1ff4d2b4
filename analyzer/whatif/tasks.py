"""In which order can a graph be replayed? Its lanes and hosts cut into runs, each after its needs.

What follows on one lane without waiting for other lanes is one run of an array: its replay is a
scan, not a loop. A run ends where work waits for another lane, meets other ranks, or was launched
after its host had blocked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analyzer.trace.schema import NO_ID, Int64

CIRCULAR = "not measurable: what waits for what contradicts itself"


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
class Links:
    """What waits for what, by slot and point: the slot before on the lane (NO_ID for none), waits
    for other lanes, slots that a blocking call waits for, the slot that must be over before a point
    finds room to launch, and who meets whom (and whether the first is eager). `launch` is the point
    of each slot, NO_ID for none.
    """

    launch: Int64
    previous: Int64
    waits: dict[int, list[Wait]]
    awaited: dict[int, list[int]]
    room: Int64
    meetings: list[tuple[list[int], bool]]


def ordered(hosts: Sequence[slice], lanes: Sequence[slice], links: Links) -> list[Task]:
    """The tasks of all ranks, given their points and slots; NotReplayableError for a circle."""
    return _Tasks(hosts, lanes, links).ordered()


class _Tasks:
    """Cuts lanes and hosts into runs and puts them in order."""

    def __init__(self, hosts: Sequence[slice], lanes: Sequence[slice], links: Links) -> None:
        self.hosts, self.lanes, self.links = hosts, lanes, links
        self.tasks: list[Task] = []
        self.needs: list[set[int]] = []
        self.host_task = np.full(hosts[-1].stop, NO_ID, np.int64)
        self.work_task = np.full(lanes[-1].stop, NO_ID, np.int64)

    def ordered(self) -> list[Task]:
        """The tasks, each after what it waits for."""
        for points in self.hosts:
            self._cut_host(points)
        meets = {slot for slots, _ in self.links.meetings for slot in slots}
        runs: dict[int, LaneRun] = {}
        for slots in self.lanes:
            self._cut_lanes(slots, meets, runs)
        for members, eager in self.links.meetings:
            self._add(Meeting(tuple(runs[s] for s in members), eager), members)
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
        edges = [points.start, *self._cuts(points), points.stop]
        for first, last in pairwise(edges):
            if first < last:
                awaited = tuple(self.links.awaited.get(first, ()))
                run = HostRun(first, last, awaited, first == points.start)
                self._add(run, points=slice(first, last))

    def _cuts(self, points: slice) -> list[int]:
        """Points that block, and points whose room is made by work launched in the same run."""
        blocking = {p for p in self.links.awaited if points.start < p < points.stop}
        room, launch = self.links.room[points], self.links.launch
        needing = np.flatnonzero(room != NO_ID)
        makes = launch[room[needing]]
        cuts = sorted(blocking)
        begin = points.start
        found: list[int] = []
        for point, made in zip((needing + points.start).tolist(), makes.tolist(), strict=True):
            while cuts and cuts[0] <= point:
                begin = cuts.pop(0)
                found.append(begin)
            if made >= begin and point > begin:
                begin = point
                found.append(point)
        return found + cuts

    def _cut_lanes(self, slots: slice, meets: set[int], runs: dict[int, LaneRun]) -> None:
        launch, previous, waits = self.links.launch, self.links.previous, self.links.waits
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
                room = self.links.room[task.first : task.last]
                self.needs[number].update(self.work_task[room[room != NO_ID]].tolist())
                continue
            for run in task.runs if isinstance(task, Meeting) else (task,):
                if run.previous != NO_ID:
                    self.needs[number].add(int(self.work_task[run.previous]))
                self.needs[number].update(int(self.work_task[w.before]) for w in run.waits)
                launch = self.links.launch[run.first : run.last]
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
