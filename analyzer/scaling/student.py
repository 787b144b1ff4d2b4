"""How far can a mean of few values be off by chance? Student's t distribution, to 1e-9.

Its distribution function, with t = sqrt(v) tan(a), is the integral of cos(a)^(v-1): smooth, so 64
Gauss-Legendre points are exact to rounding.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def student_t_975(freedom: float) -> float:
    """The 97.5 % point of Student's t for `freedom` >= 2, whole or not, by bisection."""
    lo, hi = 1.9, 4.4  # the normal point is 1.96, that for two degrees of freedom 4.30
    while hi - lo > 1e-10:
        middle = (lo + hi) / 2.0
        lo, hi = (middle, hi) if _above_median(middle, freedom) < 0.475 else (lo, middle)
    return (lo + hi) / 2.0


def two_sided_p(t: float, freedom: float) -> float:
    """Chance that Student's t is at least as far from 0 as `t`, for `freedom` >= 2."""
    return max(0.0, 1.0 - 2.0 * _above_median(abs(t), freedom))


def _above_median(t: float, freedom: float) -> float:
    """Probability between 0 and t."""
    if not freedom >= 2.0:
        raise ValueError(f"At least 2 degrees of freedom are needed, there are {freedom}.")
    nodes, weights = _gauss_points()
    log_scale = math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0)
    scale = math.exp(log_scale) / math.sqrt(math.pi)
    half = math.atan(t / math.sqrt(freedom)) / 2.0
    powers = np.cos(half * (nodes + 1.0)) ** (freedom - 1.0)
    return scale * half * float(weights @ powers)


@cache
def _gauss_points() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(64)
