"""Whose fault is each wait?

The waiting of all others for the last to arrive is what that rank costs, unless it came late only
because it had itself waited in another group: then it is what that one's last rank costs. Times in
ns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.ranks.clocks import Clocks
from analyzer.ranks.member import Member
from analyzer.ranks.waits import Parts

Floats = npt.NDArray[np.float64]
# Cycle and number of a step.
StepOf = tuple[int, int]


@dataclass(frozen=True)
class Blame:
    """Cost by rank and step, operations a rank took part in and was last in, and all exposed
    waiting as [step, rank], NaN where a rank took part in nothing. `groups` met in these steps;
    `paired` says that sends and receives are among them.
    """

    groups: list[list[int]]
    paired: bool
    ranks: list[int]
    steps: list[StepOf]
    cost: dict[int, Counter[StepOf]]
    part_in: Counter[int]
    last: Counter[int]
    waited: Floats


def blame_for(members: Sequence[Member], groups: Sequence[Parts], clocks: Clocks) -> Blame:
    """Who cost the others what in the used steps.

    Waits within the clocks' error cost nothing: they could be an offset. `last` counts them.
    """
    used = {(m.cycle, s.index) for m in members for s in m.digest.used}
    steps = sorted(used & {step for p in groups for step in p.group.step})
    met = [p.group for p in groups if used.intersection(p.group.step)]
    ranks = sorted({r for group in met for r in group.ranks})
    place = {rank: i for i, rank in enumerate(ranks)}
    row = {step: i for i, step in enumerate(steps)}
    waited = np.full((len(steps), len(ranks)), np.nan)
    blame = Blame(
        groups=[group.ranks for group in met],
        paired=any(group.paired for group in met),
        ranks=ranks,
        steps=steps,
        cost=defaultdict(Counter),
        part_in=Counter(),
        last=Counter(),
        waited=waited,
    )
    culprits = _culprits(groups)
    for p, part in enumerate(groups):
        told = np.where((part.wait.max(axis=1) > clocks.error_ns)[:, None], part.exposed, 0)
        total = told.sum(axis=1).tolist()
        columns = [place[r] for r in part.group.ranks if r in place]
        for g, step in enumerate(part.group.step):
            if step not in row:
                continue
            waited[row[step], columns] = np.nan_to_num(waited[row[step], columns]) + told[g]
            blame.part_in.update(part.group.ranks)
            if part.wait[g].max() > 0:
                blame.last[part.group.ranks[int(part.last[g])]] += 1
            if total[g]:
                blame.cost[culprits[p][g]][step] += total[g]
    return blame


def _culprits(groups: Sequence[Parts]) -> list[list[int]]:
    """Of each operation the rank it waited for: the last, or whom that one had waited for.

    A rank passes the blame on when since its last operation in this group it waited in another
    for more than half of what it keeps the others waiting now.
    """
    found = [[p.group.ranks[i] for i in p.last.tolist()] for p in groups]
    if len(groups) == 1:
        return found
    # Of each rank, since its last operation in each group: whom it waited for elsewhere, how long.
    excuses: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    part_of: dict[int, list[int]] = defaultdict(list)
    for p, part in enumerate(groups):
        for rank in part.group.ranks:
            part_of[rank].append(p)
    order = sorted((at, p, g) for p, x in enumerate(groups) for g, at in enumerate(x.arrived))
    for _, p, g in order:
        part = groups[p]
        for whom, ns in excuses[found[p][g], p].most_common(1):
            if 2 * ns > int(part.wait[g].max()):
                found[p][g] = whom
        for rank, ns in zip(part.group.ranks, part.exposed[g].tolist(), strict=True):
            excuses.pop((rank, p), None)
            for other in part_of[rank]:
                if other != p and ns:
                    excuses[rank, other][found[p][g]] += ns
    return found
