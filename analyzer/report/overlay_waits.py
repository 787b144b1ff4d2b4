"""Who waits for which late rank, as rows and arrows of an overlay? Times in ns on one clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.ranks.pool import Job
from analyzer.ranks.waits import Parts
from analyzer.report import overlay as doc

# Waits worth a slice: shorter ones are how collectives begin.
SHORTEST_WAIT_NS = 50_000
MOST_WAITS = 400
FEW = f"Only the {MOST_WAITS} longest waits are shown."

Key = tuple[int, int]


@dataclass(frozen=True)
class Wait:
    """A rank's waiting in an operation, [start, turn) on the common clock, for rank `last`, which
    came at `arrived`.
    """

    rank: int
    start: int
    turn: int
    last: int
    arrived: int
    kind: str


def waits(job: Job, clock: Mapping[Key, int]) -> tuple[list[Wait], bool]:
    """The longest waits for the last rank, in order of time, and whether others are left out."""
    found = [wait for part in job.together.parts for wait in _of_part(part, clock)]
    found.sort(key=lambda w: w.start - w.turn)
    return sorted(found[:MOST_WAITS], key=lambda w: w.start), len(found) > MOST_WAITS


def _of_part(part: Parts, clock: Mapping[Key, int]) -> Iterable[Wait]:
    group = part.group
    for row, column in np.argwhere(part.wait >= SHORTEST_WAIT_NS).tolist():
        cycle, last = group.step[row][0], int(part.last[row])
        rank = group.ranks[column]
        if last < 0 or last == column or (rank, cycle) not in clock:
            continue
        late = group.ranks[last]
        yield Wait(
            rank=rank,
            start=int(group.start[row, column]) + clock[rank, cycle],
            turn=int(part.turn[row, column]) + clock[rank, cycle],
            last=late,
            arrived=int(group.start[row, last]) + clock.get((late, cycle), 0),
            kind=group.kind[row],
        )


def _rows(waits: Sequence[Wait]) -> dict[Wait, int]:
    """The row of each wait: one of two streams may wait while another does."""
    ends: list[int] = []
    placed = {}
    for wait in waits:
        row = next((i for i, end in enumerate(ends) if end <= wait.start), len(ends))
        ends[row : row + 1] = [wait.turn]
        placed[wait] = row
    return placed


def tracks(waits: Sequence[Wait]) -> list[doc.Track]:
    """The waits of one rank, in as many rows as overlap."""
    rows: dict[int, list[doc.Slice]] = {}
    for wait, row in _rows(waits).items():
        item = doc.Slice(
            start=wait.start,
            end=wait.turn,
            name=f"{wait.kind} waits for rank {wait.last}",
            details={"ms": (wait.turn - wait.start) / 1e6},
        )
        rows.setdefault(row, []).append(item)
    return [
        doc.Track(number=doc.WAITS + row, name="waits for late ranks", slices=slices)
        for row, slices in sorted(rows.items())
    ]


def arrows(waits: Sequence[Wait], ranks: Sequence[doc.RankTracks]) -> Iterable[doc.Arrow]:
    """From what the late rank did just before it came to the end of each wait for it."""
    did = {r.rank: t.slices for r in ranks for t in r.tracks if t.number == doc.CLASSES}
    starts = {rank: [s.start for s in slices] for rank, slices in did.items()}
    for rank in did:
        for wait, row in _rows([w for w in waits if w.rank == rank]).items():
            at = wait.arrived - 1
            place = bisect_right(starts.get(wait.last, []), at) - 1
            if place < 0 or did[wait.last][place].end <= at or wait.turn - 1 < at:
                continue
            yield doc.Arrow(
                name="late arrival",
                start=doc.Point(rank=wait.last, track=doc.CLASSES, at=at),
                end=doc.Point(rank=rank, track=doc.WAITS + row, at=wait.turn - 1),
            )
