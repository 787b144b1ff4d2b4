"""What of a step in which ranks hold other counts can still be joined? What ends together.

Order says nothing there: after a lost record it joins each with the next. But all ranks leave a
collective together, ends of others lie a whole operation away, and the clocks are known from the
steps that agree. Without any such step the ranks are taken to share a clock: should they not, no
ends coincide and nothing is joined. Times in ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.clocks import SLACK_NS, Clocks
from analyzer.ranks.collectives import Joined, Uneven, agree, joined, launched, merged
from analyzer.trace.schema import Int64


def rejoined(uneven: Sequence[Uneven], clocks: Clocks, world_size: int) -> list[Joined]:
    """Operations of these steps that end together on all ranks; none of a step of which most
    records find no partner.
    """
    found = []
    for step in uneven:
        rows = _together(step, clocks)
        if 2 * len(rows) >= min(map(len, step.records)) and rows:
            steps = [(step.cycle, launched(row)) for row in rows]
            found.append(joined(step.family, rows, steps, world_size))
    return merged(found)


def _together(step: Uneven, clocks: Clocks) -> list[list[CollectiveRecord]]:
    """One record of every rank for each operation that ends within the slack on all of them, and
    of which nothing says otherwise: no second one as near, other sizes, or leaving before the last
    came.
    """
    known = [rank in clocks.offset for rank in step.family.ranks]
    if any(known) and not all(known):
        return []
    ends = [
        _moved(np.array([r.end for r in records], np.int64), rank, clocks)
        for rank, records in zip(step.family.ranks, step.records, strict=True)
    ]
    fewest = min(range(len(ends)), key=lambda i: len(ends[i]))
    near = np.stack([_only_near(at, ends[fewest]) for at in ends], axis=1)
    rows = [
        [step.records[i][place] for i, place in enumerate(places)]
        for places in near[(near >= 0).all(axis=1)].tolist()
    ]
    return [row for row in rows if agree(step.kind, [[r] for r in row]) and _met(row, step, clocks)]


def _moved(instants: Int64, rank: int, clocks: Clocks) -> Int64:
    return clocks.of(rank, instants) if rank in clocks.offset else instants


def _only_near(ends: Int64, wanted: Int64) -> Int64:
    """The place among `ends` of the only one within the slack of each `wanted`, else -1."""
    order = np.argsort(ends, kind="stable")
    first = np.searchsorted(ends[order], wanted - SLACK_NS, "left")
    after = np.searchsorted(ends[order], wanted + SLACK_NS, "right")
    one = after - first == 1
    return np.where(one, order[np.minimum(first, len(ends) - 1)], -1)


def _met(row: Sequence[CollectiveRecord], step: Uneven, clocks: Clocks) -> bool:
    """Whether all ranks had come before the first left, and none is without a length."""
    times = np.array([[r.start, r.end] for r in row], np.int64)
    both = np.stack(
        [_moved(t, rank, clocks) for t, rank in zip(times, step.family.ranks, strict=True)]
    )
    apart = both[:, 0].max() - both[:, 1].min() > SLACK_NS
    return not apart and bool((times[:, 1] > times[:, 0]).all())
