"""Can what was joined by order be one operation? Only if no rank leaves before the last has come.

A sequence number is sure; order is not: two ranks may each have lost another record of a step, may
count steps differently, or ranks without a named group may be two groups that do the same. All that
shows in the times: then the operations are let go and told, never split. Times in ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.ranks.clocks import SLACK_NS, Clocks, align, contradictions
from analyzer.ranks.collectives import LOST, NO_LENGTH, TOO_MANY, UNEQUAL, Joined, Matching, merged
from analyzer.ranks.losses import rejoined
from analyzer.ranks.member import Member

IMPOSSIBLE = "of steps in which, joined by order, a rank would leave before another came"
FAR = "of operations that, joined by order, would end at different times"
SHIFTED = "joined by order, of ranks whose clocks would be whole steps apart"
APART = "without a named group, and of ranks that do not end together"
# Records lost, or ranks that did different things; the edges of a recording are no defect.
MISMATCHES = (UNEQUAL, LOST, IMPOSSIBLE, FAR, SHIFTED, APART, TOO_MANY, NO_LENGTH)
# Ends of one operation scatter by some ten us; ranks of two groups are apart by their jitter.
TOGETHER_NS = 10_000
APART_RATIO = 5
# From two groups on: of fewer than four ranks one would be alone.
TWO_GROUPS = 4
# Clocks of two hosts are apart by whole steps only by chance; steps vary by about this much.
STEP_SHARE = 0.1


class _Steps(NamedTuple):
    """How many used steps a rank has at most, and their mean length."""

    number: int
    ns: float


def agreeing(
    matching: Matching, members: Sequence[Member], world_size: int
) -> tuple[Matching, Clocks]:
    """What can have been one operation on one clock, and the clocks that follow from it."""
    hosts = {m.rank: m.digest.meta.host for m in members}
    clocks = align(matching.joined, hosts)
    steps = _steps(members)
    sure = {r for g in matching.joined if g.complete and not g.by_order for r in g.ranks}
    kept: list[Joined] = []
    left = Counter(matching.left)
    for group in matching.joined:
        if not group.by_order or not group.complete:
            kept.append(group)
            continue
        reasons = _reasons(group, clocks, sure, steps)
        left.update({why: int(gone.sum()) * len(group.ranks) for why, gone in reasons.items()})
        sound = ~np.any([*reasons.values()], axis=0)
        if sound.any():
            kept.append(group.only(sound))
    if matching.uneven:
        again = rejoined(matching.uneven, align(kept, hosts), world_size)
        left[UNEQUAL] -= sum(g.start.size for g in again)
        kept = merged([*kept, *again])
    if +left == +matching.left:
        return matching, clocks
    return Matching(kept, matching.records, +left), align(kept, hosts)


def _steps(members: Sequence[Member]) -> _Steps:
    lengths = [s.end - s.start for m in members for s in m.digest.used]
    most = max((len(m.digest.used) for m in members), default=0)
    return _Steps(most, sum(lengths) / len(lengths) if lengths else 0.0)


_Rows = npt.NDArray[np.bool_]


def _reasons(group: Joined, clocks: Clocks, sure: set[int], steps: _Steps) -> dict[str, _Rows]:
    """Operations to let go by reason, each once: whole steps, or all where most cannot be."""
    every = np.ones(len(group.kind), np.bool_)
    if group.assumed and _two_groups(group, clocks):
        return {APART: every}
    if _shifted(group, clocks, sure, steps):
        return {SHIFTED: every}
    impossible = contradictions(group, clocks)
    wrong = {step for step, bad in zip(group.step, impossible.tolist(), strict=True) if bad}
    gone = np.array([step in wrong for step in group.step], np.bool_)
    far = _far(group, clocks) & ~gone
    if 2 * (gone | far).sum() > len(every):
        return {IMPOSSIBLE if 2 * gone.sum() >= far.sum() else FAR: every}
    return {IMPOSSIBLE: gone, FAR: far}


def _far(group: Joined, clocks: Clocks) -> _Rows:
    """Operations whose ends lie further apart than half their shortest duration, and than the slack
    of two clocks: small all-gathers of nanogpt-8xh100 end 52 us apart.
    """
    if group.paired:
        return np.zeros(len(group.kind), np.bool_)
    ends = clocks.table(group.ranks, group.end)
    shortest = (group.end - group.start).min(axis=1)
    return np.asarray(np.ptp(ends, axis=1) > np.maximum(2 * SLACK_NS, shortest // 2))


def _shifted(group: Joined, clocks: Clocks, sure: set[int], steps: _Steps) -> bool:
    """Whether ranks that only order joins would have clocks one or some whole steps apart: more
    likely they count steps differently, and each was joined with the other's next.
    """
    apart = [
        abs(clocks.offset[r] - clocks.offset[group.ranks[0]])
        for r in group.ranks
        if not sure.issuperset(group.ranks)
    ]
    whole = [round(ns / steps.ns) for ns in apart] if steps.ns else []
    return any(
        1 <= k <= steps.number and abs(ns - k * steps.ns) <= STEP_SHARE * steps.ns
        for ns, k in zip(apart, whole, strict=False)
    )


def _two_groups(group: Joined, clocks: Clocks) -> bool:
    """Whether some ranks end with the first, and the others far from it: two groups at least.

    By the median over the operations of how far a rank's end is from the first rank's.
    """
    if len(group.ranks) < TWO_GROUPS:
        return False
    ends = clocks.table(group.ranks, group.end)
    apart = np.sort(np.median(np.abs(ends[:, 1:] - ends[:, :1]), axis=0))
    near = np.maximum(apart[:-1], TOGETHER_NS)
    return bool((apart[1:] > APART_RATIO * near).any())


def could_be_several(group: Joined, clocks: Clocks) -> bool:
    """Whether nothing shows that ranks without a named group are one: they end together no better
    than their last two arrive, as two groups in step would.
    """
    if not group.assumed or len(group.ranks) < TWO_GROUPS:
        return False
    arrived = np.sort(clocks.table(group.ranks, group.start), axis=1)
    ends = clocks.table(group.ranks, group.end)
    ahead = float(np.median(arrived[:, -1] - arrived[:, -2]))
    return ahead < APART_RATIO * float(np.median(np.ptp(ends, axis=1)))
