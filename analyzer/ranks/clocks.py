"""Offsets between the ranks' clocks, from collectives that no rank can leave before all are there.

For ranks r and s and every operation g, e_r + theta_r >= a_s + theta_s bounds theta_r - theta_s
from both sides; the ends of one operation, close together in truth, give the estimate inside the
bounds (methods 5.4). A send with its receive bounds it from one side; such pairs are asked only
for clocks that no collective joins. Ranks of one host share a clock; ranks that name no host may.
Where even the best offsets let a rank leave before another came, something was not one operation,
or clocks jump: then nothing is said that needs a common clock. Times in ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from analyzer.ranks.collectives import Joined
from analyzer.trace.schema import Int64

# From this length on (methods 5.4) the difference of two clocks is taken as a line, not a number.
DRIFT_AFTER_NS = 10_000_000_000
# How many points a drift line is drawn through: its cost grows with the square.
MOST_POINTS = 200
# Times of one host's devices are converted from the devices' clocks, and older traces hold whole
# microseconds: by so much a rank may seem to leave before the last came.
SLACK_NS = 50_000


@dataclass(frozen=True)
class Clocks:
    """What is added to each rank's time to read them on one clock.

    `residual_ns` is the median spread of ends that should coincide; `aligned` is False where the
    operations contradict each other, None where there were none to tell. `offset` is at `at_ns`
    of the rank's own clock and grows by `drift` (ns per ns). `one` says that one host's clock is
    known to have served all ranks.
    """

    offset: dict[int, int]
    drift: dict[int, float]
    at_ns: dict[int, int]
    aligned: bool | None
    residual_ns: int | None
    one: bool = True

    def of(self, rank: int, instants: Int64) -> Int64:
        """The rank's instants on the common clock."""
        moved = np.rint(self.drift[rank] * (instants - self.at_ns[rank])).astype(np.int64)
        return np.asarray(instants + self.offset[rank] + moved)

    def table(self, ranks: Sequence[int], instants: Int64) -> Int64:
        """A table [operation, rank] on the common clock."""
        return np.stack([self.of(r, instants[:, i]) for i, r in enumerate(ranks)], axis=1)

    @property
    def error_ns(self) -> int:
        """What differences between ranks may be off by: nothing where one clock served all."""
        return 0 if self.one else self.residual_ns or 0


class Offset(NamedTuple):
    """theta of the second clock less theta of the first, and the bounds of it."""

    ns: int
    drift: float
    at_ns: int
    low: int
    high: int


_Clock = tuple[str, str]
HOST, RANK = "host", "rank"


class _Shared(NamedTuple):
    """Operations of two clocks: last arrival and first end on each."""

    other: _Clock
    a_s: Int64
    e_s: Int64
    a_r: Int64
    e_r: Int64


def align(groups: Sequence[Joined], hosts: Mapping[int, str | None]) -> Clocks:
    """Clocks of all ranks that share complete operations; ranks of one host have one clock.

    Hosts of one name that operations with a sequence number contradict (containers) are taken for
    as many as there are ranks.
    """
    complete = [g for g in groups if g.complete and len(g.kind)]
    ranks = sorted({r for g in complete for r in g.ranks})
    alone = {r: (RANK, str(r)) for r in ranks}
    named = {r: alone[r] if hosts.get(r) is None else (HOST, str(hosts[r])) for r in ranks}
    clocks = _aligned(complete, named)
    sure = [g for g in complete if not g.by_order]
    if named != alone and any(contradictions(g, clocks).any() for g in sure):
        return _aligned(complete, alone)
    return clocks


def _aligned(complete: Sequence[Joined], clock_of: Mapping[int, _Clock]) -> Clocks:
    collectives = [g for g in complete if not g.paired]
    pairs = [g for g in complete if g.paired]
    found, by_pairs = _spread(collectives, pairs, clock_of)
    groups = [*collectives, *pairs] if by_pairs or not collectives else collectives
    clocks = Clocks(
        offset={r: found[c].ns for r, c in clock_of.items()},
        drift={r: found[c].drift for r, c in clock_of.items()},
        at_ns={r: found[c].at_ns for r, c in clock_of.items()},
        aligned=None,
        residual_ns=None,
        one=len(found) < 2,
    )
    if not groups:
        return clocks
    ends = [clocks.table(g.ranks, g.end) for g in groups]
    spread = np.concatenate([e.max(axis=1) - e.min(axis=1) for e in ends])
    aligned = not any(contradictions(g, clocks).any() for g in groups)
    return replace(clocks, aligned=aligned, residual_ns=int(np.median(spread)))


def contradictions(group: Joined, clocks: Clocks) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Operations that a rank left before another came, by more than clocks can be off."""
    arrived = clocks.table(group.ranks, group.binding).max(axis=1)
    left = clocks.table(group.ranks, group.end).min(axis=1)
    return np.asarray(arrived - left > SLACK_NS)


_Near = Mapping[_Clock, Sequence[_Shared]]


def _spread(
    collectives: Sequence[Joined], pairs: Sequence[Joined], clock_of: Mapping[int, _Clock]
) -> tuple[dict[_Clock, Offset], bool]:
    """Offsets to the first clock of each set of clocks that share groups, along shared groups, and
    whether pairs were needed for any.
    """
    sure, rest = _shared(collectives, clock_of), _shared(pairs, clock_of)
    found: dict[_Clock, Offset] = {}
    by_pairs = False
    for root in clock_of.values():
        if root not in found:
            found[root] = Offset(0, 0.0, 0, 0, 0)
            by_pairs |= _reach(root, sure, rest, found)
    return found, by_pairs


def _shared(groups: Sequence[Joined], clock_of: Mapping[int, _Clock]) -> _Near:
    """Of each clock the operations it shares with others."""
    near: dict[_Clock, list[_Shared]] = defaultdict(list)
    for group in groups:
        columns: dict[_Clock, list[int]] = defaultdict(list)
        for i, rank in enumerate(group.ranks):
            columns[clock_of[rank]].append(i)
        sides = {
            clock: (group.binding[:, i].max(axis=1), group.end[:, i].min(axis=1))
            for clock, i in columns.items()
        }
        first, *others = sides
        for other in others:
            near[first].append(_Shared(other, *sides[first], *sides[other]))
            near[other].append(_Shared(first, *sides[other], *sides[first]))
    return near


def _reach(root: _Clock, sure: _Near, rest: _Near, found: dict[_Clock, Offset]) -> bool:
    """Adds the offset of every clock that shares operations with `root`, nearest first; along the
    `rest` only where nothing is left to add along the `sure`. Tells whether that was so.
    """
    waiting, later, needed = [root], [root], False
    while waiting or later:
        near, known = (sure, waiting.pop(0)) if waiting else (rest, later.pop(0))
        shared: dict[_Clock, list[_Shared]] = defaultdict(list)
        for one in near.get(known, ()):
            if one.other not in found:
                shared[one.other].append(one)
        for other, rows in shared.items():
            found[other] = _chained(found[known], rows, known[0] == other[0] == HOST)
            waiting.append(other)
            later.append(other)
            needed |= near is rest
    return needed


def _chained(known: Offset, shared: Sequence[_Shared], two: bool) -> Offset:
    a_s, e_s, a_r, e_r = (np.concatenate([n[i] for n in shared]) for i in range(1, 5))
    pair = offset_between(a_s, e_s, a_r, e_r, two)
    # The known clock's drift counts from its own time, which is `ns` later than the new one's.
    beyond = pair.at_ns + pair.ns - known.at_ns
    shift = known.ns + (round(known.drift * beyond) if known.drift else 0)
    return pair._replace(ns=pair.ns + shift, drift=pair.drift + known.drift)


def offset_between(a_s: Int64, e_s: Int64, a_r: Int64, e_r: Int64, two: bool = False) -> Offset:
    """theta_r - theta_s from arrivals and ends of shared operations, each on its own clock.

    The median difference of the ends, within [max(a_s - e_r), min(e_s - a_r)]; a line through them
    (Theil-Sen) in long recordings. With empty bounds (low over high) the median alone. Unless they
    are known to be `two`, an offset within the scatter is none.
    """
    difference = e_s - e_r
    at_ns, drift = int(e_r[0]), 0.0
    if int(e_r.max()) - int(e_r.min()) > DRIFT_AFTER_NS:
        drift = _slope(e_r - at_ns, difference)
    line = np.rint(drift * (e_r - at_ns)).astype(np.int64)
    low, high = int((a_s - e_r - line).max()), int((e_s - a_r - line).min())
    point = round(float(np.median(difference - line - difference[0]))) + int(difference[0])
    scatter = float(np.median(np.abs(difference - line - point)))
    if not two and low <= 0 <= high and not drift and abs(point) <= 2 * scatter:
        # Ends scatter by this much around no offset at all: one clock, as on one host.
        point = 0
    return Offset(min(max(point, low), high) if low <= high else point, drift, at_ns, low, high)


def _slope(x: Int64, y: Int64) -> float:
    """Median of the slopes through all pairs of at most MOST_POINTS points."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).astype(np.intp))
    i, j = np.triu_indices(len(chosen), 1)
    dx, dy = x[chosen][j] - x[chosen][i], y[chosen][j] - y[chosen][i]
    return float(np.median(dy[dx != 0] / dx[dx != 0]))
