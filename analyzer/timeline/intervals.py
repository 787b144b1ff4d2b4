"""Sets of half-open time intervals on int64 arrays, by one sweep; knows no domain words.

Units are whatever the caller uses (ns here). Zero-length intervals hold no time. An end stands
before a start at the same instant, so touching intervals do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Intervals:
    """Disjoint, sorted, non-empty, non-touching intervals [start, end)."""

    start: Int64
    end: Int64

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Summed length."""
        return int((self.end - self.start).sum())

    def __and__(self, other: Intervals) -> Intervals:
        if not len(self) or not len(other):
            return EMPTY
        edges, (a, b) = sweep(self, other)
        return where(edges, (a > 0) & (b > 0))

    def __sub__(self, other: Intervals) -> Intervals:
        if not len(self) or not len(other):
            return self
        edges, (a, b) = sweep(self, other)
        return where(edges, (a > 0) & (b == 0))

    def __or__(self, other: Intervals) -> Intervals:
        return union(
            np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end])
        )

    def within(self, edges: Int64) -> Int64:
        """Length inside each window [edges[i], edges[i+1]); one fewer than `edges`."""
        return np.diff(self.before(edges))

    def before(self, instants: Int64) -> Int64:
        """Length that lies before each instant."""
        if not len(self):
            return np.zeros(len(instants), np.int64)
        length = np.concatenate([[0], np.cumsum(self.end - self.start)])
        index = np.searchsorted(self.start, instants, side="right")
        last = np.maximum(index - 1, 0)
        beyond = np.maximum(self.end[last] - instants, 0)
        return length[index] - np.where(index > 0, beyond, 0)

    def inside(self, start: Int64, end: Int64) -> Int64:
        """Length inside each [start, end)."""
        return self.before(end) - self.before(start)

    def contains(self, instants: Int64) -> Bool:
        """Whether each instant lies in an interval."""
        if not len(self):
            return np.zeros(len(instants), np.bool_)
        index = np.searchsorted(self.start, instants, side="right") - 1
        return (index >= 0) & (instants < self.end[np.maximum(index, 0)])

    def bridged(self, gap: int) -> Intervals:
        """The same with holes of at most `gap` closed."""
        keep = (self.start[1:] - self.end[:-1]) > gap
        one = np.ones(min(len(self), 1), np.bool_)
        return Intervals(
            self.start[np.concatenate([one, keep])], self.end[np.concatenate([keep, one])]
        )


@dataclass(frozen=True)
class Spans:
    """Intervals as they come: unsorted, overlapping, some empty; `sweep` takes them like sets."""

    start: Int64
    end: Int64


EMPTY = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def sweep(*sets: Intervals | Spans) -> tuple[Int64, list[Int64]]:
    """Sorted distinct edges of all sets, and per set how many intervals cover each [edge, next)."""
    edges = np.sort(np.concatenate([side for s in sets for side in (s.start, s.end)]))
    # np.unique hashes first, which costs ten times the sort on edges that hardly repeat.
    edges = edges[np.concatenate([np.ones(min(len(edges), 1), np.bool_), edges[1:] > edges[:-1]])]
    return edges, [
        np.searchsorted(np.sort(s.start), edges[:-1], side="right")
        - np.searchsorted(np.sort(s.end), edges[:-1], side="right")
        for s in sets
    ]


def where(edges: Int64, inside: Bool) -> Intervals:
    """The stretches between `edges` for which `inside` holds, neighbours joined."""
    step = np.diff(np.concatenate([[0], inside.astype(np.int8), [0]]))
    return Intervals(edges[np.flatnonzero(step == 1)], edges[np.flatnonzero(step == -1)])


def union(start: Int64, end: Int64) -> Intervals:
    """Everything that is covered by at least one of the intervals."""
    lasting = end > start
    start, end = start[lasting], end[lasting]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    apart = start[1:] > reach[:-1]
    one = np.ones(1, np.bool_)
    return Intervals(start[np.concatenate([one, apart])], reach[np.concatenate([apart, one])])


def joined(sets: list[Intervals]) -> Intervals:
    """Union of sets."""
    return reduce(Intervals.__or__, sets, EMPTY)
