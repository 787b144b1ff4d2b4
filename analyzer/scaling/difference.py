"""Did a step time change between two sides, and how sure is that? Times in any one unit.

A side is one or more runs, each the values of its steps in order. The run is the unit: where the
sides have runs enough, only the means of runs are compared. One run per side is judged by its own
steps, which resemble their neighbours and so count for less than their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyzer.scaling.student import student_t_975, two_sided_p

Floats = NDArray[np.float64]
Runs = Sequence[Floats]
Basis = Literal["runs", "steps", "none"]
Outcome = Literal["faster", "slower", "no-clear-change"]

# Fewer values have no spread worth the name; fewer steps decide nothing about a run.
LEAST_STEPS, DECIDING_STEPS = 3, 5
# Below this many steps the correlation of neighbours cannot be estimated, so it is assumed.
ESTIMABLE_STEPS, ASSUMED_CORRELATION = 20, 0.5
LEAST_INDEPENDENT = 3.0
MOST_RUNS = 100


@dataclass(frozen=True)
class Difference:
    """A value with its 95 % interval; `basis` says what was the unit, `p` the chance of as much
    without any change, `reason` why the interval is missing.

    `spread` is the standard deviation of one run (of a side's steps, where runs are too few).
    """

    value: float
    lo: float | None
    hi: float | None
    basis: Basis
    p: float | None = None
    spread: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class _Error:
    """Standard error of a difference of two means, its degrees of freedom, spread of one run."""

    size: float
    freedom: float
    spread: float
    basis: Basis


def shift(before: Runs, after: Runs) -> Difference:
    """How much the mean grew, in the unit of the values."""
    value = mean(after) - mean(before)
    error = _error(before, after, 1.0, 1.0)
    if isinstance(error, str):
        return Difference(value, None, None, "none", reason=error)
    half = error.size and student_t_975(error.freedom) * error.size
    return Difference(value, value - half, value + half, error.basis, _p(value, error))


def ratio(before: Runs, after: Runs) -> Difference:
    """The mean after over the mean before, above 0; the interval is one of its logarithm."""
    old, new = mean(before), mean(after)
    if not (old > 0.0 and new > 0.0):
        raise ValueError("Steps that take no time have no ratio.")
    value = new / old
    error = _error(before, after, old, new)
    if isinstance(error, str):
        return Difference(value, None, None, "none", reason=error)
    half = error.size and student_t_975(error.freedom) * error.size
    lo, hi = value * math.exp(-half), value * math.exp(half)
    return Difference(value, lo, hi, error.basis, _p(math.log(value), error), error.spread)


def outcome(change: Difference, margin: float, least_steps: int) -> Outcome:
    """The verdict on a ratio: clear where all of its interval is beyond `margin`.

    `least_steps` is the shortest run; by steps alone, too few of them decide nothing.
    """
    if change.lo is None or change.hi is None:
        return "no-clear-change"
    if change.basis == "steps" and least_steps < DECIDING_STEPS:
        return "no-clear-change"
    if change.hi < 1.0 - margin:
        return "faster"
    return "slower" if change.lo > 1.0 + margin else "no-clear-change"


def runs_needed(change: Difference, margin: float) -> int | None:
    """Runs per side that would settle a ratio if its value and spread stay: show the change where
    it exceeds `margin`, else that it does not. None beyond MOST_RUNS or where nothing is known.
    """
    if change.lo is None:
        return None
    room = abs(abs(math.log(change.value)) - margin)
    for runs in range(2, MOST_RUNS + 1):
        half = student_t_975(2.0 * runs - 2.0) * change.spread * math.sqrt(2.0 / runs)
        if half < room:
            return runs
    return None


def clear(changes: Sequence[Difference], level: float = 0.05) -> list[bool]:
    """Which of several changes are no chance, judged together (Holm)."""
    order = sorted(range(len(changes)), key=lambda i: 1.0 if (p := changes[i].p) is None else p)
    sure = [False] * len(changes)
    for place, i in enumerate(order):
        p = changes[i].p
        if p is None or p > level / (len(changes) - place):
            break
        sure[i] = True
    return sure


def mean(runs: Runs) -> float:
    """Mean of the runs' means: a long run counts as much as a short one."""
    return float(np.mean([run.mean() for run in runs]))


def half_width(runs: Runs) -> tuple[float | None, str]:
    """Half of the 95 % interval of the runs' mean by their spread, or why there is none."""
    freedom = len(runs) - 1
    if freedom < 2:
        return None, f"no interval: 3 runs are needed, there are {len(runs)}"
    spread = float(np.std([run.mean() for run in runs], ddof=1))
    return student_t_975(freedom) * spread / math.sqrt(len(runs)), ""


def _p(value: float, error: _Error) -> float:
    if not error.size:
        return 0.0 if value else 1.0
    return two_sided_p(value / error.size, error.freedom)


def _error(before: Runs, after: Runs, old: float, new: float) -> _Error | str:
    """Error of the difference once each side is divided by its number, or why there is none."""
    freedom = len(before) + len(after) - 2
    if freedom >= 2:
        rest = [run.mean() / old - mean(before) / old for run in before]
        rest += [run.mean() / new - mean(after) / new for run in after]
        spread = math.sqrt(float(np.square(rest).sum()) / freedom)
        size = spread * math.sqrt(1.0 / len(before) + 1.0 / len(after))
        return _Error(size, float(freedom), spread, "runs")
    shortest = min(len(run) for run in (*before, *after))
    if shortest < LEAST_STEPS:
        return f"no interval: {LEAST_STEPS} steps of each run are needed, one has {shortest}"
    first, second = _of_steps(before, old), _of_steps(after, new)
    variance = first[0] + second[0]
    # Welch and Satterthwaite: the sides may spread differently
    weighed = first[0] ** 2 / first[1] + second[0] ** 2 / second[1]
    freedom_of_both = max(2.0, variance**2 / weighed) if weighed else 2.0
    return _Error(math.sqrt(variance), freedom_of_both, math.sqrt(variance / 2.0), "steps")


def _of_steps(runs: Runs, scale: float) -> tuple[float, float]:
    """Variance of a side's mean by the spread of its steps alone, and its degrees of freedom."""
    errors = [_of_run(run / scale) for run in runs]
    freedom = sum(independent - 1.0 for _, independent in errors)
    return sum(variance for variance, _ in errors) / len(runs) ** 2, freedom


def _of_run(values: Floats) -> tuple[float, float]:
    """Variance of a run's mean, and how many independent steps its steps are worth.

    Methods 2.3, with the bias of a short series' correlation taken out: it is found too low by
    (1 + 4r)/n (Kendall 1954).
    """
    n = len(values)
    rest = values - values.mean()
    if float(np.abs(rest).max()) < 1e-12 * max(1.0, float(np.abs(values).max())):
        return 0.0, float(n)
    r1 = float(rest[1:] @ rest[:-1] / (rest @ rest))
    r1 += (1.0 + 4.0 * r1) / n
    least = ASSUMED_CORRELATION if n < ESTIMABLE_STEPS else 0.0
    r1 = min(max(r1, least), 0.99)
    independent = max(n * (1.0 - r1) / (1.0 + r1), LEAST_INDEPENDENT)
    return float(rest @ rest) / (n - 1.0) / independent, independent
