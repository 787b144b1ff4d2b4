"""Can what was joined by order be one operation? Only if no rank leaves before the last has come.

A sequence number is sure; order is not: two ranks may each have lost another record of a step, may
count steps differently, or ranks without a named group may be two groups that do the same. All that
shows in the times: then the operations are let go and told, never split. Times in ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from analyzer.ranks.clocks import Clocks, align, contradictions
from analyzer.ranks.collectives import Joined, Matching

IMPOSSIBLE = "of steps in which, joined by order, a rank would leave before another came"
APART = "without a named group, and of ranks that do not end together"
# Ends of one operation scatter by some ten us; ranks of two groups are apart by their jitter.
TOGETHER_NS = 10_000
APART_RATIO = 5


def agreeing(matching: Matching, hosts: Mapping[int, str | None]) -> tuple[Matching, Clocks]:
    """What can have been one operation on one clock, and the clocks that follow from it."""
    clocks = align(matching.joined, hosts)
    kept: list[Joined] = []
    left = Counter(matching.left)
    for group in matching.joined:
        if not group.by_order or not group.complete:
            kept.append(group)
            continue
        sound, why = _sound(group, clocks)
        left[why] += int((~sound).sum()) * len(group.ranks)
        if sound.any():
            kept.append(group.only(sound))
    if +left == +matching.left:
        return matching, clocks
    return Matching(kept, matching.records, +left), align(kept, hosts)


def _sound(group: Joined, clocks: Clocks) -> tuple[npt.NDArray[np.bool_], str]:
    """Operations to keep, and why the others go: whole steps, or all where most cannot be."""
    if group.assumed and _two_groups(group, clocks):
        return np.zeros(len(group.kind), np.bool_), APART
    impossible = contradictions(group, clocks)
    steps = {step for step, bad in zip(group.step, impossible.tolist(), strict=True) if bad}
    sound = np.array([step not in steps for step in group.step], np.bool_)
    if 2 * sound.sum() < len(sound):
        sound[:] = False
    return sound, IMPOSSIBLE


def _two_groups(group: Joined, clocks: Clocks) -> bool:
    """Whether some ranks end with the first, and the others far from it: two groups at least.

    By the median over the operations of how far a rank's end is from the first rank's; told from
    four ranks on.
    """
    if len(group.ranks) < 4:
        return False
    ends = clocks.table(group.ranks, group.end)
    apart = np.sort(np.median(np.abs(ends[:, 1:] - ends[:, :1]), axis=0))
    near = np.maximum(apart[:-1], TOGETHER_NS)
    return bool((apart[1:] > APART_RATIO * near).any())
