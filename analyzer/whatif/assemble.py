"""How do the digests of many ranks become one graph: lanes of work, waits, and meetings?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from analyzer.classify.replayable import Host, Work
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together
from analyzer.ranks.waits import Parts
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.chosen import chosen, shifts
from analyzer.whatif.dependencies import depend
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.lanes import Rank, Records, closing, launching, records, room
from analyzer.whatif.loading import arrivals
from analyzer.whatif.streams import is_comm
from analyzer.whatif.tasks import Links, NotReplayableError, Wait, ordered

Floats = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


def graph(members: Sequence[Member], together: Together) -> Graph:
    """The graph of a job; NotReplayableError with the reason where the traces do not hold one."""
    acting = chosen(members, together)
    clocks = shifts(acting, together)
    programs = [m.digest.program for m in acting if m.digest.program is not None]
    tables = [program.columns() for program in programs]
    origin = min(_first(*t) + shift for t, shift in zip(tables, clocks, strict=True))
    ranks = []
    points = slots = 0
    for member, program, (work, host), shift in zip(acting, programs, tables, clocks, strict=True):
        rank = Rank(member, program, work, host, depend(work, host), shift - origin)
        order = np.argsort(rank.found.lane, kind="stable")
        rank.slot = np.empty(len(order), np.int64)
        rank.slot[order] = np.arange(len(order)) + slots
        rank.points, rank.slots = points, slots
        points, slots = points + len(host.time), slots + len(order)
        ranks.append(rank)
    return _Builder(ranks, together).graph()


def _first(work: Work, host: Host) -> int:
    return int(min(work.ts[0], host.time.min(initial=work.ts[0])))


class _Builder:
    """Puts the ranks together."""

    def __init__(self, ranks: list[Rank], together: Together) -> None:
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
        by_rank = {(x.member.rank, x.member.cycle): records(x) for x in self.ranks}
        for part in self.together.parts:
            self._meet(part, by_rank)
        r = self.ranks
        work = {
            name: np.concatenate([self._by_slot(x, getattr(x.work, name)) for x in r])
            for name in ("ts", "dur", "activity", "step", "name", "op")
        }
        launch = np.concatenate([self._by_slot(x, launching(x)) for x in r])
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
            room=np.concatenate([room(x) for x in r]),
            blocks=np.isin(np.arange(sum(len(x.host.time) for x in r)), list(self.awaited)),
            tasks=[],
            kinds=self.kinds,
        )  # fmt: skip
        self._put_in_order(made)
        return made

    def _put_in_order(self, made: Graph) -> None:
        """Fills in the tasks; without the queue's room where that contradicts the order."""
        hosts, lanes = [a.host for a in made.actors], [a.work for a in made.actors]
        links = Links(
            made.launch, self.previous, self.waits, self.awaited, made.room, self.meetings
        )
        try:
            made.tasks.extend(ordered(hosts, lanes, links))
        except NotReplayableError:
            # Threads that launch onto one stream by turns: their order is no queue's.
            made.room[:] = NO_ID
            made.tasks.extend(ordered(hosts, lanes, links))

    def _by_slot(self, rank: Rank, rows: Int64) -> Int64:
        found = np.empty(len(rows), rows.dtype)
        found[rank.slot - rank.slots] = rows
        return found

    def _actor(self, rank: Rank) -> Actor:
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

    def _waits_of(self, rank: Rank) -> None:
        """Edges and blocking calls of one rank, by slot and point."""
        comm, ends = is_comm(rank.work), closing(rank)
        slot = rank.slot
        for before, after, delay in rank.found.edges:
            soft = bool(comm[before] and not comm[after] and not ends[after])
            self.waits[int(slot[after])].append(Wait(int(slot[before]), delay, soft))
        follows = rank.found.previous != NO_ID
        self.previous[slot[follows]] = slot[rank.found.previous[follows]]
        for point, rows in rank.found.awaited.items():
            self.awaited[point + rank.points] = [int(slot[row]) for row in rows]

    def _meet(self, part: Parts, by_rank: Mapping[tuple[int, int], Records]) -> None:
        """Slots of one group's operations, their transfer, and who meets whom."""
        group = part.group
        transfer = part.transfer
        for row, members in enumerate(group.records):
            cycle = group.step[row][0]
            slots = []
            for column, (rank, record) in enumerate(zip(group.ranks, members, strict=True)):
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
