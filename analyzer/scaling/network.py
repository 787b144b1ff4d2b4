"""How do the hops and bytes of collectives grow with the ranks, by the way they are passed on?

In a ring each rank adds a hop; in a tree the hops grow with the logarithm; beyond one node a ring
inside each node goes around one between nodes. Factors against the size that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

RING, TREE, TWO_LEVEL = "ring", "tree", "two-level"


@dataclass(frozen=True)
class Network:
    """`algorithm` is ring or tree; `per_node` is how many ranks of the dimension share a node, None
    where that is not known. Beyond so many the ring has two levels.
    """

    algorithm: str = RING
    per_node: int | None = None

    def shape(self, n: float) -> str:
        """ring, tree or two-level on `n` ranks."""
        if self.algorithm == TREE:
            return TREE
        return TWO_LEVEL if self.per_node is not None and n > self.per_node > 1 else RING

    def hops(self, n: float, target: float) -> float:
        """Hops on `target` ranks over those on `n`; 1 from one rank, which has none."""
        return self._hops(target) / self._hops(n) if n > 1 else 1.0

    def bytes(self, n: float, target: float) -> float:
        """Bytes through the slowest link on `target` ranks over those on `n`."""
        if self.shape(n) == TWO_LEVEL and self.per_node is not None:
            # Measured over several nodes: the time is taken as spent between them.
            return _spread(target / self.per_node) / _spread(n / self.per_node)
        return self._bytes(target) / self._bytes(n) if n > 1 else 1.0

    def _hops(self, n: float) -> float:
        shape = self.shape(n)
        if shape == TREE:
            return 2.0 * math.log2(n)
        if shape == TWO_LEVEL and self.per_node is not None:
            return 2.0 * (self.per_node - 1.0) + 2.0 * (n / self.per_node - 1.0)
        return 2.0 * (n - 1.0)

    def _bytes(self, n: float) -> float:
        if self.shape(n) == TREE:
            return 2.0
        if self.shape(n) == TWO_LEVEL and self.per_node is not None:
            inside = 2.0 * _spread(self.per_node)
            return inside + 2.0 * _spread(n / self.per_node) / self.per_node
        return 2.0 * _spread(n)


def _spread(n: float) -> float:
    return (n - 1.0) / n


def algorithm(kernels: Sequence[tuple[str, float]]) -> str:
    """tree where most of the collectives' time (name, ns) is in kernels that NCCL calls so."""
    tree = sum(ns for name, ns in kernels if "_TREE" in name.upper())
    ring = sum(ns for name, ns in kernels if "_RING" in name.upper())
    return TREE if tree > ring else RING
