"""Does a rank wait less than the others by more than jitter explains?

Each rank's waits vary from step to step around a mean of its own; of many equal ranks one always
waits least (methods 1.11). Times in ns.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from analyzer.ranks.blame import Blame, Floats

# A rank is not named for what the dearest of equal ranks would show in one run of this many.
_FALSE_ALARM = 0.005
# So many observations weigh the ordinary jitter (noise_share of a step) until a run shows its own.
_PRIOR = 4


def lateness(blame: Blame, rank: int) -> float:
    """How much less the rank waits than the median of those it meets, mean over the steps that
    both have; 0 without any.
    """
    mine = blame.waited[:, blame.ranks.index(rank)]
    others = blame.waited[:, [blame.ranks.index(r) for r in _met(blame, rank)]]
    both = ~np.isnan(mine) & ~np.isnan(others).all(axis=1)
    if not both.any():
        return 0.0
    return float(np.mean(np.nanmedian(others[both], axis=1) - mine[both]))


def explained(blame: Blame, rank: int, ordinary: float) -> float:
    """What of lateness jitter may explain.

    The largest of N ranks stays below Student's quantile of 1 - _FALSE_ALARM / N standard errors;
    methods 1.11 has the mean of that largest, which half of all healthy runs exceed.
    """
    steps, ranks = blame.waited.shape
    total, freedom = _jitter(blame.waited)
    variance = (total + _PRIOR * ordinary**2) / (freedom + _PRIOR)
    # Variance of the median of n others, in that of one: 1 for one, pi / 2n for many.
    of_median = math.pi / 2 / (len(_met(blame, rank)) - 1 + math.pi / 2)
    quantile = student_t(1 - _FALSE_ALARM / ranks, freedom + _PRIOR)
    return quantile * math.sqrt(variance * (1 + of_median) / steps)


def student_t(probability: float, freedom: int) -> float:
    """The quantile of Student's t, from four degrees of freedom on.

    The expansion about the normal quantile in 1/freedom (Abramowitz and Stegun 26.7.5).
    """
    x, v = NormalDist().inv_cdf(probability), float(freedom)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / v**power for power, term in enumerate(terms, 1))


def _met(blame: Blame, rank: int) -> list[int]:
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
