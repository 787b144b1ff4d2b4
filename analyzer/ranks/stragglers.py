"""Who is waited for, and because of what.

A rank is late when what it costs the others is worth a line and when it waits less than they by
more than the ordinary jitter of ranks explains (methods 1.11, 5.3). The stages of a pipeline wait
for each other by design: there it must also have worked longer than its peers. A rank that stalled
once is not late by this; where it causes most of all waiting it is told with its steps. Times in
ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from analyzer.config import Thresholds
from analyzer.ranks import causes, jitter
from analyzer.ranks.agreement import agreeing, could_be_several
from analyzer.ranks.blame import Blame, StepOf, blame_for
from analyzer.ranks.clocks import Clocks
from analyzer.ranks.collectives import Matching, match
from analyzer.ranks.member import Member
from analyzer.ranks.waits import Parts, parts, split

CLOCKED, CLOCK_FREE = "clocked", "clock-free"
NO_CLOCK = "sent or received without a common clock"
# A rank that causes so much of all waiting is its cause, and as much of a rank's in so few steps.
SOLE_SHARE = 0.8


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

    `cost_ns` is what each rank cost the others in exposed waiting, per step, late or not; `sole` a
    rank that is not late and yet causes SOLE_SHARE of all waiting, with the steps in which it does.
    `perhaps_several` says that ranks without a named group were joined as one that could be more.
    """

    matching: Matching
    clocks: Clocks
    method: str | None
    parts: list[Parts]
    late: list[Late]
    cost_ns: dict[int, float] = field(default_factory=dict)
    sole: Late | None = None
    perhaps_several: bool = False

    @property
    def joined_share(self) -> float | None:
        """Part of the collective records that were joined and split; None without any."""
        done = sum(p.group.start.size for p in self.parts)
        return done / self.matching.records if self.matching.records else None

    def meeting(self, ranks: Iterable[int]) -> list[set[int]]:
        """Sets of these ranks that wait for each other, directly or over others; all of them are
        one where nothing was joined.
        """
        if not self.parts:
            return [set(ranks)]
        sets = [{rank} for rank in ranks]
        for met in (set(p.group.ranks) for p in self.parts):
            apart = [one for one in sets if not one & met]
            sets = [*apart, met.union(*(one for one in sets if one & met))]
        return [found for found in sets if len(found) > 1] or [set(ranks)]


def join(
    members: Sequence[Member], world_size: int, limits: Thresholds
) -> tuple[list[Member], Together]:
    """Members whose communication is split as far as it can be, and what was learned."""
    matching, clocks = agreeing(match(members, world_size), members, world_size)
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
    several = any(could_be_several(p.group, clocks) for p in found)
    if common is None:
        return done, Together(matching, clocks, method, found, [], perhaps_several=several)
    blame = blame_for(done, found, common)
    late = _late(blame, done, limits)
    return done, Together(
        matching=matching,
        clocks=clocks,
        method=method,
        parts=found,
        late=late,
        cost_ns={
            r: sum(c.values()) / max(len(blame.steps), 1) for r, c in sorted(blame.cost.items())
        },
        sole=None if late else _sole(blame, done),
        perhaps_several=several,
    )


def _late(blame: Blame, members: Sequence[Member], limits: Thresholds) -> list[Late]:
    """Ranks that cost the others more than noise, the dearest first."""
    if not blame.cost:
        return []
    time, number = _time(blame.steps, members)
    others = _of_others(time, members)
    table = causes.means(members)
    found = []
    for rank in blame.cost:
        late = _of_rank(blame, rank, others, table)
        if late.step_share < limits.noise_share:
            continue
        lateness = jitter.lateness(blame, rank)
        if lateness <= jitter.explained(blame, rank, limits.noise_share * time / number):
            continue
        if blame.paired and 2 * causes.longer(rank, table) < lateness:
            # It waits less because it transfers more, as stages in the middle do.
            continue
        found.append(late)
    return sorted(found, key=lambda f: (-f.cost_ns, f.rank))


def _of_rank(blame: Blame, rank: int, others_ns: float, table: causes.Table) -> Late:
    """What a rank costs the others; shares are of their time in the steps that were joined."""
    cost = blame.cost[rank]
    return Late(
        rank=rank,
        cost_ns=sum(cost.values()) / len(blame.steps),
        step_share=sum(cost.values()) / others_ns,
        last_share=blame.last[rank] / blame.part_in[rank],
        steps=sorted({index for (_, index), ns in cost.items() if ns}),
        because=causes.because(rank, table),
    )


def _time(steps: Collection[StepOf], members: Sequence[Member]) -> tuple[int, int]:
    """All ranks' time in these steps, and how many such steps of a rank there are."""
    chosen = set(steps)
    lengths = [
        s.end - s.start for m in members for s in m.digest.used if (m.cycle, s.index) in chosen
    ]
    return sum(lengths), len(lengths)


def _of_others(time_ns: int, members: Sequence[Member]) -> float:
    """All ranks' time without that of one."""
    size = len({m.rank for m in members})
    return time_ns * (size - 1) / size


def _sole(blame: Blame, members: Sequence[Member]) -> Late | None:
    """The rank that causes most of all waiting, in the fewest steps that hold most of it."""
    total = sum(sum(cost.values()) for cost in blame.cost.values())
    for rank, cost in blame.cost.items():
        own = sum(cost.values())
        if not total or own < SOLE_SHARE * total:
            continue
        steps: list[StepOf] = []
        for step, _ in cost.most_common():
            steps.append(step)
            if sum(cost[s] for s in steps) >= SOLE_SHARE * own:
                break
        others = _of_others(_time(blame.steps, members)[0], members)
        found = _of_rank(blame, rank, others, causes.means(members, steps))
        return replace(found, steps=sorted({index for _, index in steps}))
    return None
