"""Which work waits for work of other streams, or of the same stream's collectives?

A trace shows some waits between streams by their calls, few by what they waited for (only where
synchronisation events were recorded). The rest is inferred from what PyTorch does: a collective
waits for the compute launched before it, a wait in front of compute is for the collective before
it, an optimizer waits for the gradients; and work that starts, on a free stream and long after its
launch, just when other work ends was waiting for that. Nothing is taken for a dependency that ends
after the work it would have held back began. Times in ns; rows are those of `Work`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import Call, Host, Work
from analyzer.trace.schema import NO_ID, Int64

Bool = npt.NDArray[np.bool_]

# Order of ends and starts on one device, told to the microsecond by older traces.
TOLERANCE_NS = 1_500
# Work that starts within this of the end of other work may have waited for it.
EVENT_NS = 30_000
# How far back what was launched before is looked at.
_LOOK_BACK = 64
_LOOK_AHEAD = 256


def is_comm(work: Work) -> Bool:
    """Which work communicates."""
    return np.asarray((work.activity == Activity.COMMUNICATION) | (work.activity == Activity.FUSED))


class StreamWaits:
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
        for row in rows[chosen[rows]][:_LOOK_BACK].tolist():
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
                if self._over(awaited, after):
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
        for point in launches[np.searchsorted(launches, call) :][:_LOOK_AHEAD].tolist():
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
