"""Which non-negative mix of a few shapes lies closest to a few measurements? numpy only.

With at most four columns every subset can be tried: the best feasible one is the exact solution,
which a general solver would only approach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """Coefficients, none negative, and the residuals of each row in units of its weight."""

    coefficients: tuple[float, ...]
    residuals: tuple[float, ...]

    @property
    def rms(self) -> float:
        """Root of the mean squared residual."""
        return float(np.sqrt(np.mean(np.square(self.residuals))))


def non_negative(
    columns: Sequence[Sequence[float]], target: Sequence[float], weights: Sequence[float]
) -> Solution:
    """The least-squares mix of `columns` with no negative coefficient; rows count by `weights`.

    All coefficients are 0 where no column helps.
    """
    scale = np.asarray(weights, np.float64)
    table = np.asarray(columns, np.float64).T * scale[:, None]
    wanted = np.asarray(target, np.float64) * scale
    best, least = np.zeros(len(columns)), float(wanted @ wanted)
    for size in range(1, min(len(columns), len(wanted)) + 1):
        for chosen in combinations(range(len(columns)), size):
            part = table[:, chosen]
            found, _, rank, _ = np.linalg.lstsq(part, wanted, rcond=None)
            if rank < size or bool((found < 0.0).any()):
                continue
            rest = wanted - part @ found
            if float(rest @ rest) < least * (1.0 - 1e-9):
                best, least = np.zeros(len(columns)), float(rest @ rest)
                best[list(chosen)] = found
    residuals = wanted - table @ best
    return Solution(tuple(best.tolist()), tuple(residuals.tolist()))


def unbounded(
    columns: Sequence[Sequence[float]], target: Sequence[float], weights: Sequence[float]
) -> tuple[float, ...]:
    """The same without the bound: a negative coefficient is a finding of its own."""
    scale = np.asarray(weights, np.float64)
    table = np.asarray(columns, np.float64).T * scale[:, None]
    found, _, _, _ = np.linalg.lstsq(table, np.asarray(target, np.float64) * scale, rcond=None)
    return tuple(float(value) for value in found)
