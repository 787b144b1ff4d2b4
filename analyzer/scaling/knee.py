"""Up to how many GPUs does a job pay? Points of a curve of speed-up over N, in speed-ups and GPUs.

Between the sizes of the curve N over speed-up is taken to be a straight line, which is exact for
Amdahl's law. Efficiency is against the curve's reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# Below this an efficiency is called: most of each GPU still works, and half of it.
NINE_TENTHS, HALF = 0.9, 0.5
BEYOND = "what is null is not reached within the sizes predicted"
# Between two sizes so many are tried.
_BETWEEN = 64


@dataclass(frozen=True)
class Knee:
    """`nine_tenths` and `half` are the largest N with 90 % and 50 % efficiency; `fastest` the N of
    the shortest step, None when the largest size still is; `pays` the N beyond which one percent
    more GPUs (and so more GPU-hours) shorten the run by less than half a percent, so that time is
    bought with more than its share of GPU-hours: the maximum of speed-up times efficiency.

    An end that the curve does not reach is None: it lies beyond the largest size.
    """

    nine_tenths: float | None
    half: float | None
    fastest: float | None
    pays: float | None


def knee(curve: Sequence[tuple[int, float]]) -> Knee:
    """Of (N, speed-up over one GPU) in rising order of N, at least two."""
    fine = _fine(curve)
    fastest = max(fine, key=lambda at: at[1])
    pays = max(fine, key=lambda at: at[1] ** 2 / at[0])
    end = curve[-1][0]
    return Knee(
        nine_tenths=_last(fine, NINE_TENTHS),
        half=_last(fine, HALF),
        fastest=None if fastest[0] >= end else fastest[0],
        pays=None if pays[0] >= end else pays[0],
    )


def _fine(curve: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """The curve with points between its own."""
    found = []
    for (n, speedup), (far, then) in pairwise(curve):
        loss, more = n / speedup, far / then
        for i in range(_BETWEEN):
            at = n * (far / n) ** (i / _BETWEEN)
            found.append((at, at / (loss + (more - loss) * (at - n) / (far - n))))
    return [*found, (float(curve[-1][0]), curve[-1][1])]


def _last(fine: Sequence[tuple[float, float]], efficiency: float) -> float | None:
    """The last N at least so efficient; None where the curve ends before it drops, or never is."""
    good = [n for n, speedup in fine if speedup / n >= efficiency * (1.0 - 1e-12)]
    return max(good) if good and max(good) < fine[-1][0] else None
