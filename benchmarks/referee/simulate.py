"""What happens when the job runs in a world: every host call and every activity, over all ranks.

Integer nanoseconds since the start of the job. The one idea: each host runs on by itself until it
has to know a time that hangs on another rank; then the others run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from referee.device import UNKNOWN, Device, Meeting
from referee.draws import Draws, Times
from referee.job import TODAY, Job, World
from referee.ops import LOSS, SUBMITS, Do, Op

_BATCH_HANDED_OVER_NS = 30_000


@dataclass(frozen=True)
class Call:
    """One operation as it happened; `activity` is what it queued, or recorded, or waited for."""

    op: Op
    begin: int
    start: int
    end: int
    activity: int


@dataclass
class Rank:
    """What one rank did: calls and the number of the first activity, by step."""

    number: int
    device: Device
    calls: list[list[Call]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)


class Run:
    """A job under way."""

    def __init__(self, draws: Draws, world: World, *, keep_calls: bool) -> None:
        job = draws.job
        gap, delay = round(job.queue_gap_us * 1000), round(job.event_us * 1000)
        self.draws = draws
        self.world = world
        self.keep_calls = keep_calls
        self.ranks = [Rank(r, Device(gap, delay)) for r in range(job.ranks)]
        self._meetings: dict[tuple[int, int], Meeting] = {}

    def meeting(self, step: int, place: int, duration: int) -> Meeting | None:
        """The collective at this place of the program; None where nobody is joined."""
        if self.world.communication_free:
            return None
        key = step, place
        if key not in self._meetings:
            self._meetings[key] = Meeting(len(self.ranks), duration)
        return self._meetings[key]

    def end_meetings(self, device: Device) -> None:
        """Ends every collective that all have come to, and what becomes complete by that."""
        changed = [device]
        while changed:
            at = changed.pop()
            while at.full:
                meeting = at.full.pop()
                meeting.end()
                for other, _ in meeting.arrived:
                    other.settle()
                    changed.append(other)


def simulate(draws: Draws, world: World = TODAY, *, keep_calls: bool = False) -> list[Rank]:
    """All ranks after the job has run; RuntimeError when they wait for each other for ever."""
    run = Run(draws, world, keep_calls=keep_calls)
    hosts = [_Host(run, rank).steps() for rank in run.ranks]
    while hosts:
        before = sum(len(rank.device.start) for rank in run.ranks), len(hosts)
        hosts = [host for host in hosts if next(host, "ended") != "ended"]
        if (sum(len(rank.device.start) for rank in run.ranks), len(hosts)) == before:
            raise RuntimeError(f"the ranks of job {draws.job.seed} wait for each other")
    return run.ranks


class _Host:
    """The threads of one rank. Main waits while the autograd thread works: one line of time."""

    def __init__(self, run: Run, rank: Rank) -> None:
        self._run = run
        self._rank = rank
        self._device = rank.device
        self._now = 0
        self._events: dict[int, int] = {}
        self._batches = _Batches(run.draws.job)
        self._return_ns = round(run.draws.job.return_us * 1000)

    def steps(self) -> Iterator[str]:
        """Runs all steps; yields whenever another rank has to move on first."""
        job = self._run.draws.job
        for step in range(job.warmup + job.recorded):
            times = self._run.draws.times(self._rank.number, step, self._run.world)
            self._rank.first.append(len(self._device.start))
            calls: list[Call] = []
            yield from self._step(step, times, calls)
            self._rank.calls.append(calls)

    def _step(self, step: int, times: Times, calls: list[Call]) -> Iterator[str]:
        ops = self._run.draws.ops
        keep = self._run.keep_calls
        columns = zip(ops, times.host, times.call, times.device, times.latency, strict=True)
        for place, (op, host, call, device, latency) in enumerate(columns):
            begin = self._now
            start = self._now = begin + host
            activity = UNKNOWN
            if op.do in SUBMITS:
                yield from self._wait_for_slot()
                meeting = None
                if op.do is Do.COLLECTIVE:
                    meeting = self._run.meeting(step, place, device)
                activity = self._device.submit(op.stream, self._now + latency, device, meeting)
                if self._device.full:
                    self._run.end_meetings(self._device)
                self._now += call
                if op.blocks:
                    yield from self._block([activity], self._return_ns)
            elif op.do in (Do.RECORD, Do.WAIT):
                activity = self._event(op)
                self._now += call
            elif op.do is Do.LOAD:
                self._load(call, device)
            else:
                self._now += call
                yield from self._block(self._awaited(op), latency)
            if keep:
                calls.append(Call(op, begin, start, self._now, activity))

    def _wait_for_slot(self) -> Iterator[str]:
        """A launch waits while as much as the queue takes has been launched and not started."""
        oldest = len(self._device.start) - self._run.draws.job.queue_slots
        if oldest >= 0:
            while self._device.start[oldest] == UNKNOWN:
                yield "blocked"
            self._now = max(self._now, self._device.start[oldest])

    def _event(self, op: Op) -> int:
        """Records the last activity of the stream, or lets the stream wait for what was recorded;
        that activity.
        """
        if op.do is Do.RECORD:
            self._events[op.event] = self._device.last.get(op.stream, UNKNOWN)
            return self._events[op.event]
        awaited = self._events[op.event]
        # The end of the backward waits for all communication, whatever compute ignored before.
        if awaited != UNKNOWN and (self._run.world.compute_waits or not op.early):
            self._device.await_activity(op.stream, awaited)
        return awaited

    def _awaited(self, op: Op) -> list[int]:
        last = self._device.last
        if op.do is Do.SYNC_STREAM:
            return [last[op.stream]]
        if op.do is Do.SYNC_DEVICE:
            return list(last.values())
        return [self._events[LOSS]] if op.do is Do.SYNC_EVENT and LOSS in self._events else []

    def _block(self, activities: list[int], return_ns: int) -> Iterator[str]:
        """Until all are done and the host has noticed."""
        if self._run.world.never_blocks:
            return
        for n in activities:
            while self._device.end[n] == UNKNOWN:
                yield "blocked"
            self._now = max(self._now, self._device.end[n] + return_ns)

    def _load(self, call: int, batch_ns: int) -> None:
        if self._run.world.loader_free:
            return
        self._now = self._batches.take(self._now, call, batch_ns)


class _Batches:
    """The loader of one rank."""

    def __init__(self, job: Job) -> None:
        self._workers = job.loader.workers
        self._ready: list[int] = []
        self._taken: list[int] = []

    def take(self, now: int, call: int, batch_ns: int) -> int:
        """When the host has the next batch.

        Workers take turns, and each is two batches ahead of the host at most.
        """
        workers, number = self._workers, len(self._ready)
        if not workers:
            return now + batch_ns
        if number < workers:  # spread evenly, as they are when the job has been running for long
            ready = batch_ns * (number + 1) // workers
        else:
            asked = self._taken[number - 2 * workers] if number >= 2 * workers else 0
            ready = max(self._ready[number - workers], asked) + batch_ns
        self._ready.append(ready)
        self._taken.append(max(now + call, ready + _BATCH_HANDED_OVER_NS))
        return self._taken[-1]
