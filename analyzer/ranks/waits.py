"""How much of a rank's communication is waiting, and how much transfer?

A collective runs on a rank from its arrival to the common end: until the last rank has arrived it
is waiting, from then on transfer (methods 5.2). So do a send and its receive, unless the send is
over before the receiver arrives. Only what nothing hides counts in the classes, and where
operations overlap on a rank the transfer of one outweighs the waiting of another. Times in ns, each
on its rank's own clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from analyzer.classify.classes import COMM_TRANSFER, COMM_UNSPLIT, COMM_WAIT
from analyzer.digest import StepRecord, Strip
from analyzer.ranks.clocks import SLACK_NS, Clocks
from analyzer.ranks.collectives import Joined
from analyzer.ranks.member import NO_TURN, Member
from analyzer.timeline.intervals import Intervals, union
from analyzer.trace.schema import Int64


@dataclass(frozen=True)
class Parts:
    """A group's operations split: waiting [start, turn) and transfer [turn, end), [operation,
    rank]. `exposed` is the waiting that nothing hides, each instant in one operation only. `last`
    is the column of the last to arrive and `arrived` when, on the common clock; -1 and 0 without.
    """

    group: Joined
    turn: Int64
    exposed: Int64
    last: Int64
    arrived: Int64

    @property
    def wait(self) -> Int64:
        """Waiting of each rank in each operation, hidden or not."""
        return self.turn - self.group.start

    @property
    def transfer(self) -> Int64:
        """Transfer of each rank in each operation."""
        return self.group.end - self.turn


class _Share(NamedTuple):
    """A member's part in a group: the group's place, the rank's column, its operations."""

    part: int
    column: int
    rows: Int64


def parts(group: Joined, clocks: Clocks | None) -> Parts:
    """The group split, nothing exposed yet. Clocked: waiting until the last arrival. Without
    clocks: transfer is the shortest duration.
    """
    none, blank = np.zeros_like(group.start), np.zeros(len(group.start), np.int64)
    if clocks is None:
        shortest = (group.end - group.start).min(axis=1, keepdims=True)
        return Parts(group, group.end - shortest, none, blank - 1, blank)
    arrival = clocks.table(group.ranks, group.start)
    arrived = arrival.max(axis=1)
    until = group.start + (arrived[:, None] - arrival)
    turn = np.minimum(until, group.end)
    if group.paired:
        # Buffered: the sender had not to wait for a receiver that comes well after its end.
        early = until - group.end > max(SLACK_NS, clocks.error_ns)
        turn = np.where(early, group.start, turn)
    return Parts(group, turn, none, arrival.argmax(axis=1), arrived)


def split(members: Sequence[Member], groups: Sequence[Parts]) -> tuple[list[Member], list[Parts]]:
    """The members with exposed communication split by class, and the groups with what is exposed.

    Steps still sum to their windows.
    """
    shares = _shares(groups)
    exposed = [np.zeros_like(p.turn) for p in groups]
    found = []
    for member in members:
        mine = shares.get((member.rank, member.cycle), [])
        if not mine:
            found.append(member)
            continue
        start, turn, end = _times(mine, groups)
        transfer = union(turn, end)
        alone = _alone(member)
        waiting = (alone & union(start, turn)) - transfer
        found.append(_split_member(member, waiting, alone & transfer, _turns(mine, groups)))
        bare = _first_come(start, turn, waiting)
        for share in mine:
            exposed[share.part][share.rows, share.column] = bare[: len(share.rows)]
            bare = bare[len(share.rows) :]
    return found, [replace(p, exposed=e) for p, e in zip(groups, exposed, strict=True)]


def exposed(
    members: Sequence[Member], groups: Sequence[Parts]
) -> dict[tuple[int, int], tuple[Intervals, Intervals]]:
    """Waiting and transfer that nothing hides, by rank and cycle, of members that take part."""
    shares = _shares(groups)
    found = {}
    for member in members:
        mine = shares.get((member.rank, member.cycle), [])
        if mine:
            start, turn, end = _times(mine, groups)
            moving, alone = union(turn, end), _alone(member)
            found[member.rank, member.cycle] = (alone & union(start, turn)) - moving, alone & moving
    return found


def _shares(groups: Sequence[Parts]) -> dict[tuple[int, int], list[_Share]]:
    shares: dict[tuple[int, int], list[_Share]] = defaultdict(list)
    for place, part in enumerate(groups):
        cycles = np.array([cycle for cycle, _ in part.group.step])
        for cycle in np.unique(cycles).tolist():
            rows = np.flatnonzero(cycles == cycle)
            for column, rank in enumerate(part.group.ranks):
                shares[rank, cycle].append(_Share(place, column, rows))
    return shares


def _times(mine: Sequence[_Share], groups: Sequence[Parts]) -> tuple[Int64, Int64, Int64]:
    """Start, turn and end of a member's operations, one share after the other."""

    def column(s: _Share) -> tuple[Int64, Int64, Int64]:
        part = groups[s.part]
        start, end = part.group.start[s.rows, s.column], part.group.end[s.rows, s.column]
        return start, part.turn[s.rows, s.column], end

    start, turn, end = zip(*map(column, mine), strict=True)
    return np.concatenate(start), np.concatenate(turn), np.concatenate(end)


def _turns(mine: Sequence[_Share], groups: Sequence[Parts]) -> dict[int, int]:
    """Where waiting ends, by the identity of the record."""
    return {
        id(groups[s.part].group.records[row][s.column]): turn
        for s in mine
        for row, turn in zip(
            s.rows.tolist(), groups[s.part].turn[s.rows, s.column].tolist(), strict=True
        )
    }


def _first_come(start: Int64, turn: Int64, waiting: Intervals) -> Int64:
    """Exposed waiting of each operation; where two wait it is of the one that started first."""
    order = np.argsort(start, kind="stable")
    reached = np.maximum.accumulate(turn[order])
    begin = np.maximum(start[order], np.concatenate([start[order[:1]], reached[:-1]]))
    bare = np.empty_like(start)
    bare[order] = waiting.inside(begin, np.maximum(begin, turn[order]))
    return bare


def _alone(member: Member) -> Intervals:
    """Where only communication runs on this rank."""
    spans = np.array(member.digest.exposed_comm, np.int64).reshape(-1, 2)
    return Intervals(spans[:, 0], spans[:, 1])


def _split_member(
    member: Member, waiting: Intervals, moving: Intervals, turns: dict[int, int]
) -> Member:
    digest = msgspec.structs.replace(
        member.digest,
        steps=_split_steps(member.digest.steps, waiting, moving),
        strip=_split_strip(member.digest.strip, _alone(member), waiting, moving),
    )
    known = [turns.get(id(record), NO_TURN) for record in digest.collectives]
    return replace(member, digest=digest, turns=np.array(known, np.int64))


def _split_steps(
    steps: Sequence[StepRecord], waiting: Intervals, moving: Intervals
) -> list[StepRecord]:
    start = np.array([s.start for s in steps], np.int64)
    end = np.array([s.end for s in steps], np.int64)
    rows = zip(
        steps, waiting.inside(start, end).tolist(), moving.inside(start, end).tolist(), strict=True
    )
    return [
        msgspec.structs.replace(
            step,
            ns=step.ns
            | {
                COMM_WAIT: waited,
                COMM_TRANSFER: moved,
                COMM_UNSPLIT: step.ns[COMM_UNSPLIT] - waited - moved,
            },
        )
        for step, waited, moved in rows
    ]


def _split_strip(
    strip: Strip | None, alone: Intervals, waiting: Intervals, moving: Intervals
) -> Strip | None:
    """The strip with each stretch of communication named anew, so that all keep their shares."""
    if strip is None:
        return None
    bins = np.linspace(strip.start, strip.end, len(strip.classes) + 1).astype(np.int64)
    waited, moved = waiting.within(bins), moving.within(bins)
    rest = alone.within(bins) - waited - moved
    # In a stretch named otherwise what communicates is owed to the next that is not.
    owed = np.zeros(3, np.int64)
    classes = []
    for name, row in zip(strip.classes, np.stack([waited, moved, rest], axis=1), strict=True):
        owed += row
        if name == COMM_UNSPLIT and row.any():
            chosen = int(np.where(row > 0, owed, np.iinfo(np.int64).min).argmax())
            owed[chosen] -= bins[1] - bins[0]
            name = (COMM_WAIT, COMM_TRANSFER, COMM_UNSPLIT)[chosen]
        classes.append(name)
    return msgspec.structs.replace(strip, classes=classes)
