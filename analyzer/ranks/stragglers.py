"""Who is waited for, and because of what.

The waiting of all others for the last to arrive is what that rank costs, unless it came late only
because it had itself waited in another group: then it is what that one's last rank costs. A rank is
late when this is worth a line and when it waits less than the others by more than the ordinary
jitter of ranks explains (methods 1.11, 5.3). The stages of a pipeline wait for each other by
design: there it must also have worked longer than its peers. Times in ns.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.config import Thresholds
from analyzer.ranks.agreement import agreeing
from analyzer.ranks.clocks import Clocks
from analyzer.ranks.collectives import Matching, match
from analyzer.ranks.member import Member
from analyzer.ranks.waits import Parts, parts, split

CLOCKED, CLOCK_FREE = "clocked", "clock-free"
NO_CLOCK = "sent or received without a common clock"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Late:
    """A rank the others wait for. `cost_ns` is the others' exposed waiting summed, per step;
    `step_share` of all others' time; `last_share` how often it was last of the operations it took
    part in; `because` class -> ns more than its peers spent in it, per step, most first.
    """

    rank: int
    cost_ns: float
    step_share: float
    last_share: float
    steps: list[int]
    because: list[tuple[str, float]]


@dataclass(frozen=True)
class Together:
    """What joining the ranks gave; `method` is None when nothing could be split.

    `cost_ns` is what each rank cost the others in exposed waiting, per step, late or not.
    """

    matching: Matching
    clocks: Clocks
    method: str | None
    parts: list[Parts]
    late: list[Late]
    cost_ns: dict[int, float] = field(default_factory=dict)

    @property
    def joined_share(self) -> float | None:
        """Part of the collective records that were joined and split; None without any."""
        done = sum(p.group.start.size for p in self.parts)
        return done / self.matching.records if self.matching.records else None


@dataclass(frozen=True)
class _Blame:
    """Cost by rank and step, operations a rank took part in and was last in, and all exposed
    waiting as [step, rank], NaN where a rank took part in nothing. `groups` met in these steps;
    `paired` says that sends and receives are among them.
    """

    groups: list[list[int]]
    paired: bool
    ranks: list[int]
    steps: list[tuple[int, int]]
    cost: dict[int, Counter[tuple[int, int]]]
    part_in: Counter[int]
    last: Counter[int]
    waited: Floats


def join(
    members: Sequence[Member], world_size: int, limits: Thresholds
) -> tuple[list[Member], Together]:
    """Members whose communication is split as far as it can be, and what was learned."""
    hosts = {m.rank: m.digest.meta.host for m in members}
    matching, clocks = agreeing(match(members, world_size), hosts)
    common = clocks if clocks.aligned else None
    method = CLOCKED if common else CLOCK_FREE
    complete = [g for g in matching.joined if g.complete]
    if common is None:
        # The shorter of a send and its receive may have waited, too.
        pairs = sum(g.start.size for g in complete if g.paired)
        matching = replace(matching, left=+(matching.left + Counter({NO_CLOCK: pairs})))
        complete = [g for g in complete if not g.paired]
    if not complete:
        return list(members), Together(matching, clocks, None, [], [])
    done, found = split(members, [parts(g, common) for g in complete])
    if common is None:
        return done, Together(matching, clocks, method, found, [])
    blame = _blame(done, found, common)
    cost = {r: sum(c.values()) / max(len(blame.steps), 1) for r, c in sorted(blame.cost.items())}
    return done, Together(matching, clocks, method, found, _late(blame, done, limits), cost)


def _blame(members: Sequence[Member], groups: Sequence[Parts], clocks: Clocks) -> _Blame:
    """Who cost the others what in the used steps.

    Waits within the clocks' error count for nothing: they could be an offset.
    """
    used = {(m.cycle, s.index) for m in members for s in m.digest.used}
    steps = sorted(used & {step for p in groups for step in p.group.step})
    met = [p.group for p in groups if used.intersection(p.group.step)]
    ranks = sorted({r for group in met for r in group.ranks})
    place = {rank: i for i, rank in enumerate(ranks)}
    row = {step: i for i, step in enumerate(steps)}
    waited = np.full((len(steps), len(ranks)), np.nan)
    blame = _Blame(
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
            if part.wait[g].max() > clocks.error_ns:
                blame.last[part.group.ranks[int(part.last[g])]] += 1
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


# A rank is not named for what the dearest of equal ranks would show in one run of this many.
_FALSE_ALARM = 0.001
# So many observations weigh the ordinary jitter (noise_share of a step) until a run shows its own.
_PRIOR = 4


def _late(blame: _Blame, members: Sequence[Member], limits: Thresholds) -> list[Late]:
    """Ranks that cost the others more than noise, the dearest first."""
    if not blame.cost:
        return []
    used = [s for m in members for s in m.digest.used]
    time = sum(s.end - s.start for s in used)
    size = len({m.rank for m in members})
    ordinary = limits.noise_share * time / len(used)
    table = _means(members)
    found = []
    for rank, cost in blame.cost.items():
        share = sum(cost.values()) / (time * (size - 1) / size)
        if share < limits.noise_share:
            continue
        lateness = _lateness(blame, rank)
        if lateness <= _random(blame, rank, ordinary):
            continue
        if blame.paired and 2 * _longer(rank, table) < lateness:
            # It waits less because it transfers more, as stages in the middle do.
            continue
        found.append(
            Late(
                rank=rank,
                cost_ns=sum(cost.values()) / len(blame.steps),
                step_share=share,
                last_share=blame.last[rank] / blame.part_in[rank],
                steps=sorted({index for (_, index), ns in cost.items() if ns}),
                because=_because(rank, table),
            )
        )
    return sorted(found, key=lambda f: (-f.cost_ns, f.rank))


def _lateness(blame: _Blame, rank: int) -> float:
    """How much less the rank waits than the median of those it meets, mean over the steps that
    both have; 0 without any.
    """
    mine = blame.waited[:, blame.ranks.index(rank)]
    others = blame.waited[:, [blame.ranks.index(r) for r in _met(blame, rank)]]
    both = ~np.isnan(mine) & ~np.isnan(others).all(axis=1)
    if not both.any():
        return 0.0
    return float(np.mean(np.nanmedian(others[both], axis=1) - mine[both]))


def _random(blame: _Blame, rank: int, ordinary: float) -> float:
    """What of lateness jitter may explain.

    The largest of N ranks stays below the normal quantile of 1 - _FALSE_ALARM / N standard errors;
    methods 1.11 has the mean of that largest, which half of all healthy runs exceed.
    """
    steps, ranks = blame.waited.shape
    total, freedom = _jitter(blame.waited)
    variance = (total + _PRIOR * ordinary**2) / (freedom + _PRIOR)
    # Variance of the median of n others, in that of one: 1 for one, pi / 2n for many.
    of_median = math.pi / 2 / (len(_met(blame, rank)) - 1 + math.pi / 2)
    quantile = NormalDist().inv_cdf(1 - _FALSE_ALARM / ranks)
    return quantile * math.sqrt(variance * (1 + of_median) / steps)


def _met(blame: _Blame, rank: int) -> list[int]:
    return sorted({r for group in blame.groups if rank in group for r in group} - {rank})


def _jitter(waited: Floats) -> tuple[float, int]:
    """Sum of squares and degrees of freedom of the waits [step, rank] that are random.

    What remains without the mean of each rank and of each step. One step tells no rank's own mean:
    then the spread that most ranks keep to (1.4826 MAD, methods 5.3), from four ranks on.
    """
    steps, ranks = waited.shape
    if steps > 1:
        rest = waited - np.nanmean(waited, axis=0) - np.nanmean(waited, axis=1, keepdims=True)
        return float(np.nansum((rest + np.nanmean(waited)) ** 2)), (steps - 1) * (ranks - 1)
    if ranks < 4:
        return 0.0, 0
    spread = 1.4826 * float(np.nanmedian(np.abs(waited - np.nanmedian(waited))))
    return (ranks - 1) * spread**2, ranks - 1


_CAUSES = [c for c in CLASSES if c not in GROUPS["communication"]]


def _means(members: Sequence[Member]) -> dict[int, Floats]:
    """Of each rank the ns per used step in each class that may delay it."""
    rows: dict[int, list[list[int]]] = defaultdict(list)
    for member in members:
        rows[member.rank] += [[s.ns[c] for c in _CAUSES] for s in member.digest.used]
    return {rank: np.mean(steps, axis=0) for rank, steps in rows.items() if steps}


def _longer(rank: int, means: dict[int, Floats]) -> float:
    """How much longer than the median of the others the rank is at what is no communication."""
    if rank not in means:
        return 0.0
    others = [float(row.sum()) for other, row in means.items() if other != rank]
    return float(means[rank].sum()) - float(np.median(others))


def _because(rank: int, means: dict[int, Floats]) -> list[tuple[str, float]]:
    """Classes the rank spent more time in than the median of the others, per step."""
    if rank not in means:
        return []
    others = np.median([row for other, row in means.items() if other != rank], axis=0)
    excess = zip(_CAUSES, (means[rank] - others).tolist(), strict=True)
    return sorted(((c, ns) for c, ns in excess if ns > 0), key=lambda item: -item[1])
