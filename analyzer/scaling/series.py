"""What do the speed-ups of several world sizes say, before any law is fitted?

The experimentally determined serial fraction of Karp and Flatt at each size: were Amdahl's law the
whole truth, it would be the same at all of them. So its drift is the diagnosis. Times in any unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.scaling import laws
from analyzer.scaling.serial import Mode

# The fraction is flat when it moves by less than this part of itself, or by this much at all.
FLAT_PART, FLAT_LEAST = 0.1, 0.002
READINGS = {
    "flat": "flat: a part that is truly serial, the same at every size; Amdahl's law holds so far",
    "rising": "rising: overhead that grows with the GPUs (communication, waiting, contention), so "
    "Amdahl's ceiling is too high",
    "falling": "falling: the smallest run is slower than its share of the work (a cold cache, "
    "another batch, an input pipeline that does not keep up), or larger ones gain from caches",
    "superlinear": "superlinear: below zero, so more GPUs gain more than their number; suspect "
    "a cache that fits the smaller part, a different batch per GPU, or a smallest run that did "
    "other work or was slowed by its own recording",
    "slow-down": "above one: more GPUs are slower than the smallest run",
    "unknown": "one fraction only, or none: with a third size it can be seen whether it stays",
}

# With the batch of a GPU fixed the fraction is what the step grew by, over the GPUs added.
READINGS_WEAK = READINGS | {
    "flat": "flat: the step grows in proportion to the GPUs, as if all queued for one thing",
    "rising": "rising: the step grows faster than the number of GPUs",
    "falling": "falling: the step grows less and less, as with overhead that comes with the second "
    "GPU and then levels off (the bytes of a ring do)",
    "slow-down": "above one: all GPUs together do less than the smallest run",
}


def reading(trend: str, mode: Mode) -> str:
    """What a trend means."""
    return (READINGS_WEAK if mode == "weak" else READINGS)[trend]


@dataclass(frozen=True)
class Point:
    """A size against the smallest: speed-up (of throughput where the batch of a GPU is fixed),
    efficiency relative to it, and the serial fraction of the smallest run that would explain it,
    with what the noise of both steps leaves of it; None at the smallest itself.
    """

    n: int
    speedup: float
    efficiency: float
    karp_flatt: float | None
    lo: float | None
    hi: float | None


def points(
    sizes: Sequence[int], steps: Sequence[float], halves: Sequence[float | None], mode: Mode
) -> list[Point]:
    """All sizes in rising order against the first; `halves` are relative half intervals."""
    base, first = sizes[0], steps[0]

    def fraction(speedup: float, n: int) -> float | None:
        return laws.karp_flatt_relative(speedup, base=base, n=n)

    found = []
    for n, step, half in zip(sizes, steps, halves, strict=True):
        speedup = first / step * (n / base if mode == "weak" else 1.0)
        both = (half or 0.0) + (halves[0] or 0.0)
        known = half is not None and halves[0] is not None and n > base
        found.append(
            Point(
                n=n,
                speedup=speedup,
                efficiency=laws.relative_efficiency(speedup, base=base, n=n),
                karp_flatt=fraction(speedup, n),
                lo=fraction(speedup * (1.0 + both), n) if known else None,
                hi=fraction(speedup / (1.0 + both), n) if known else None,
            )
        )
    return found


def trend(series: Sequence[Point]) -> str:
    """The key of READINGS for the fractions: below zero and above one come before any drift."""
    known = [p for p in series if p.karp_flatt is not None]
    fractions = [p.karp_flatt for p in known if p.karp_flatt is not None]
    if fractions and min(fractions) < 0.0 and not _reach_zero(known):
        return "superlinear"
    if fractions and fractions[-1] > 1.0:
        return "slow-down"
    if len(fractions) < 2:
        return "unknown"
    moved = fractions[-1] - fractions[0]
    noise = sum(_half(p) for p in (known[0], known[-1]))
    limit = max(FLAT_LEAST, noise, FLAT_PART * max(abs(f) for f in fractions))
    if abs(moved) <= limit:
        return "flat"
    return "rising" if moved > 0.0 else "falling"


def _reach_zero(series: Sequence[Point]) -> bool:
    """Whether noise alone may have put every negative fraction below zero."""
    below = [p for p in series if p.karp_flatt is not None and p.karp_flatt < 0.0]
    return all(p.hi is not None and p.hi >= 0.0 for p in below)


def _half(point: Point) -> float:
    return 0.0 if point.lo is None or point.hi is None else (point.hi - point.lo) / 2.0
