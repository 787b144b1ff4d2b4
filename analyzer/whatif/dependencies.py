"""What did each piece of one rank's work wait for: its launch, its stream, or other streams?

A trace shows some waits between streams by their calls, few by what they waited for (only where
synchronisation events were recorded). The rest is inferred from what PyTorch does: a collective
waits for the compute launched before it, a wait in front of compute is for the collective before
it, an optimizer waits for the gradients; and work that starts, on a free stream and long after its
launch, just when other work ends was waiting for that. Nothing is taken for a dependency that ends
after the work it would have held back began. Times in ns; rows are those of `Work`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.program import BATCH, WHOLE_DEVICE, Call, Host, Work
from analyzer.trace.schema import NO_ID, Int64

Bool = npt.NDArray[np.bool_]

# Order of ends and starts on one device, told to the microsecond by older traces.
TOLERANCE_NS = 1_500
# Order of device and host times: their clocks are joined by an offset.
HOST_TOLERANCE_NS = 10_000
# Work that starts within this of the end of other work may have waited for it.
EVENT_NS = 30_000
# What is taken for latencies where the trace shows none.
_LAUNCH_LATENCY_NS = 5_000
_RETURN_NS = 5_000
# Queued work follows within this; longer holes are something else.
_QUEUE_GAP_NS = 20_000
# A call that blocked for less has not waited.
BLOCKED_NS = 10_000
_ENOUGH = 3


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


def is_comm(work: Work) -> Bool:
    """Which work communicates."""
    return np.asarray((work.activity == Activity.COMMUNICATION) | (work.activity == Activity.FUSED))


def depend(work: Work, host: Host) -> Dependencies:
    """The dependencies of one rank."""
    lane = work.stream * 2 + is_comm(work)
    previous = _previous(lane)
    end = work.ts + work.dur
    free = np.where(previous == NO_ID, np.iinfo(np.int64).min, end[previous])
    launch = np.where(work.host == NO_ID, np.iinfo(np.int64).min, host.time[work.host])
    latency = _latency(work, launch, end)
    gap = _gaps(work, launch + latency, free, previous)
    usual = int(np.median(gap[gap >= 0])) if (gap >= 0).any() else 0
    explained = np.maximum(launch + latency, np.maximum(free, free + usual)) + 2 * TOLERANCE_NS
    waits = _Waits(work, host, lane, end, work.ts > explained)
    pairs = sorted(set(waits.pairs()))
    delays = [int(work.ts[b] - end[a]) for a, b in pairs if waits.held[b]]
    shown = [d for d in delays if d <= EVENT_NS]
    delay = max(0, int(np.median(shown))) if shown else 0
    awaited, returning = _awaited(work, host, lane, end)
    return Dependencies(
        lane=lane,
        previous=previous,
        gap=gap,
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


def _gaps(work: Work, ready: Int64, free: Int64, previous: Int64) -> Int64:
    """From the end of the work before: the overlap where they do, else the mean of queued work."""
    follows = previous != NO_ID
    gap = np.where(follows, work.ts - np.where(follows, free, 0), 0)
    queued = follows & (ready <= free) & (gap >= 0) & (gap <= _QUEUE_GAP_NS)
    usual = int(gap[queued].mean()) if queued.any() else 0
    # Work launched before the recording starts when it did.
    as_recorded = (gap < 0) | (work.host == NO_ID)
    return np.where(as_recorded, gap, np.where(follows, usual, 0))


class _Waits:
    """Pairs of rows of which the second waited for the first; `held` is what nothing else explains.

    `launched` are all rows in order of launch.
    """

    def __init__(self, work: Work, host: Host, lane: Int64, end: Int64, held: Bool) -> None:
        self.work, self.host, self.lane, self.end, self.held = work, host, lane, end, held
        self.comm = is_comm(work)
        point = np.where(work.host == NO_ID, -1, work.host)
        self.launched = np.lexsort((np.arange(len(lane)), point))
        self.point = point[self.launched]
        self.calls = np.flatnonzero(host.kind == Call.STREAM_WAIT)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """All of them, some more than once."""
        yield from self._of_calls()
        yield from self._of_one_stream()
        yield from self._of_optimizer()
        yield from self._shown()
        if not len(self.calls):
            yield from self._of_collectives()

    def _over(self, before: int, after: int) -> bool:
        return bool(self.end[before] <= self.work.ts[after] + TOLERANCE_NS)

    def _last(self, point: int, after: int, chosen: Bool) -> int:
        """The last of the chosen rows launched before a point and over when `after` began."""
        until = int(np.searchsorted(self.point, point))
        rows = self.launched[:until][::-1]
        for row in rows[chosen[rows]][:64].tolist():
            if self._over(row, after):
                return int(row)
        return NO_ID

    def _of_calls(self) -> Iterator[tuple[int, int]]:
        """What the calls say that make a stream wait."""
        first = self._first_of_point()
        launches = np.array(sorted(first), np.int64)
        for call in self.calls.tolist():
            stream, awaited = int(self.host.stream[call]), int(self.host.awaited[call])
            after = self._next(call, stream, launches, first)
            if after is None:
                continue
            if awaited >= 0:
                yield awaited, after
            elif self.comm[after]:
                yield from self._before(call, after, ~self.comm)
            else:
                yield from self._each_lane(call, after)

    def _first_of_point(self) -> dict[int, int]:
        first: dict[int, int] = {}
        for row, point in zip(self.launched.tolist(), self.point.tolist(), strict=True):
            if point >= 0:
                first.setdefault(point, row)
        return first

    def _next(self, call: int, stream: int, launches: Int64, first: dict[int, int]) -> int | None:
        """The work launched next on the stream that waits, or by the thread if that is unknown."""
        for point in launches[np.searchsorted(launches, call) :][:256].tolist():
            row = first[point]
            if stream != NO_ID:
                if self.work.stream[row] == stream:
                    return row
            elif self.host.thread[point] == self.host.thread[call]:
                return row
        return None

    def _before(self, point: int, after: int, chosen: Bool) -> Iterator[tuple[int, int]]:
        """The last of the chosen launched before the point, if it was over."""
        until = int(np.searchsorted(self.point, point))
        rows = self.launched[:until]
        rows = rows[chosen[rows]]
        if len(rows) and self._over(int(rows[-1]), after):
            yield int(rows[-1]), after

    def _each_lane(self, point: int, after: int) -> Iterator[tuple[int, int]]:
        """The last collective of each stream that was over; other streams where there is none."""
        comm_lanes = np.unique(self.lane[self.comm])
        others = np.unique(self.lane[~self.comm & (self.lane != self.lane[after])])
        for lanes in (comm_lanes, others):
            found = [self._last(point, after, self.lane == lane) for lane in lanes.tolist()]
            if any(row != NO_ID for row in found):
                yield from ((row, after) for row in found if row != NO_ID)
                return

    def _of_one_stream(self) -> Iterator[tuple[int, int]]:
        """Collectives and other work of one stream keep its order."""
        order = np.argsort(self.work.stream, kind="stable")
        same = self.work.stream[order][1:] == self.work.stream[order][:-1]
        apart = self.lane[order][1:] != self.lane[order][:-1]
        for i in np.flatnonzero(same & apart).tolist():
            if self._over(int(order[i]), int(order[i + 1])):
                yield int(order[i]), int(order[i + 1])

    def _of_optimizer(self) -> Iterator[tuple[int, int]]:
        """The first optimizer work of a step waits for the collectives launched before it in it."""
        rows = np.flatnonzero(self.work.activity == Activity.OPTIMIZER)
        _, first = np.unique(self.work.step[rows], return_index=True)
        for after in rows[first].tolist():
            mine = self.comm & (self.work.step == self.work.step[after])
            for lane in np.unique(self.lane[mine]).tolist():
                before = self._last(int(self.work.host[after]), after, mine & (self.lane == lane))
                if before != NO_ID:
                    yield before, after

    def _shown(self) -> Iterator[tuple[int, int]]:
        """Work that nothing else held back and that starts just when other work ends."""
        order = np.argsort(self.end, kind="stable")
        ends = self.end[order]
        for after in np.flatnonzero(self.held).tolist():
            place = int(np.searchsorted(ends, self.work.ts[after] + TOLERANCE_NS, side="right"))
            for row in order[max(0, place - 8) : place][::-1].tolist():
                if self.end[row] < self.work.ts[after] - EVENT_NS:
                    break
                if self.lane[row] != self.lane[after]:
                    yield row, after
                    break

    def _of_collectives(self) -> Iterator[tuple[int, int]]:
        """Where no waits were recorded: a collective waits for the compute before it; and what was
        launched after it waits for it, if its kind is seen to be waited for and never to overlap.
        """
        position = np.empty(len(self.launched), np.int64)
        position[self.launched] = np.arange(len(self.launched))
        computing = self.launched[~self.comm[self.launched]]
        at = position[computing]
        followers: dict[int, list[tuple[int, int]]] = {}
        for row in np.flatnonzero(self.comm).tolist():
            place = int(np.searchsorted(at, position[row]))
            if place and self._over(int(computing[place - 1]), row):
                yield int(computing[place - 1]), row
            if place < len(computing):
                pair = row, int(computing[place])
                followers.setdefault(int(self.work.name[row]), []).append(pair)
        for pairs in followers.values():
            holds = [int(self.work.ts[b] - self.end[a]) for a, b in pairs]
            if min(holds) >= -TOLERANCE_NS and min(holds) <= EVENT_NS:
                yield from pairs


def _awaited(work: Work, host: Host, lane: Int64, end: Int64) -> tuple[dict[int, list[int]], int]:
    """Rows that each blocking call waited for, and how long after their end it returns."""
    found: dict[int, list[int]] = {}
    delays = []
    for point in np.flatnonzero(host.kind == Call.SYNC).tolist():
        said, time = int(host.awaited[point]), int(host.time[point])
        blocked = int(host.wait[point]) > BLOCKED_NS
        if said >= 0:
            # The driver keeps a small copy's bytes and returns before the copy is made.
            rows = [said] if end[said] <= time + HOST_TOLERANCE_NS else []
        else:
            rows = _over_by(work, lane, end, point, time)
            newest = _newest(work, point)
            running = newest != NO_ID and end[newest] > time + HOST_TOLERANCE_NS
            if said != WHOLE_DEVICE and running and not blocked:
                # It waited for something older that had long been over.
                rows = []
            elif said != WHOLE_DEVICE and rows:
                rows = [max(rows, key=lambda row: int(end[row]))]
        if not rows:
            continue
        found[point] = rows
        if blocked:
            delays.append(time - int(end[rows].max()))
    returning = int(np.median(delays)) if delays else _RETURN_NS
    return found, min(max(returning, 0), 10 * HOST_TOLERANCE_NS)


def _newest(work: Work, point: int) -> int:
    """The last work launched before a point, NO_ID without any."""
    rows = np.flatnonzero((work.host < point) & (work.host != NO_ID))
    return int(rows[np.argmax(work.host[rows])]) if len(rows) else NO_ID


def _over_by(work: Work, lane: Int64, end: Int64, point: int, time: int) -> list[int]:
    """Of each lane the last work launched before a point that was over when it returned."""
    rows = np.flatnonzero((work.host < point) & (end <= time + HOST_TOLERANCE_NS))
    last: dict[int, int] = {}
    for row in rows[-4096:].tolist():
        last[int(lane[row])] = row
    return sorted(last.values())
