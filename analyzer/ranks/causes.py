"""What does a rank spend more time in than its peers? Classes but communication, ns per step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.ranks.blame import Floats, StepOf
from analyzer.ranks.member import Member

# Rank -> ns in each class that may delay it.
Table = dict[int, Floats]

_CAUSES = [c for c in CLASSES if c not in GROUPS["communication"]]


def means(members: Sequence[Member], steps: Collection[StepOf] | None = None) -> Table:
    """Of each rank the ns per used step, or per one of `steps`, in each class."""
    rows: dict[int, list[list[int]]] = defaultdict(list)
    for member in members:
        rows[member.rank] += [
            [s.ns[c] for c in _CAUSES]
            for s in member.digest.used
            if steps is None or (member.cycle, s.index) in steps
        ]
    return {rank: np.mean(steps, axis=0) for rank, steps in rows.items() if steps}


def longer(rank: int, table: Table) -> float:
    """How much longer than the median of the others the rank is at what is no communication."""
    if rank not in table:
        return 0.0
    others = [float(row.sum()) for other, row in table.items() if other != rank]
    return float(table[rank].sum()) - float(np.median(others))


def because(rank: int, table: Table) -> list[tuple[str, float]]:
    """Classes the rank spent more time in than the median of the others, per step."""
    if rank not in table:
        return []
    others = np.median([row for other, row in table.items() if other != rank], axis=0)
    excess = zip(_CAUSES, (table[rank] - others).tolist(), strict=True)
    return sorted(((c, ns) for c, ns in excess if ns > 0), key=lambda item: -item[1])
