"""How does the time of one class grow with the number of GPUs? ns; a few shapes, none negative.

The shapes are mechanisms: work that is shared out falls, latency and bandwidth of rings and trees
grow, the wait for the last of many equally random ranks creeps. The simplest that explains the
measured sizes is taken, since every further term would bend the curve between few points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify import classes as c
from analyzer.scaling import laws
from analyzer.scaling.least_squares import non_negative
from analyzer.scaling.serial import Mode

Shape = Callable[[float], float]


def _only_many(shape: Shape) -> Shape:
    """0 on one GPU, where nothing is exchanged."""
    return lambda n: shape(n) if n > 1 else 0.0


def _last_of(n: float) -> float:
    """k_N of methods 1.11."""
    return laws.expected_max(round(n))


SHAPES: dict[str, Shape] = {
    "1": lambda n: 1.0,
    "1/N": lambda n: 1.0 / n,
    "N": lambda n: n,
    "1 from two GPUs on": _only_many(lambda n: 1.0),
    "(N-1)/N": lambda n: (n - 1.0) / n,
    "N-1": lambda n: n - 1.0,
    "log2 N": lambda n: math.log2(n),
    "k_N": _only_many(_last_of),
    "k_N/N": _only_many(lambda n: _last_of(n) / n),
}
# Family -> its shapes, and what it means.
FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "flat": (("1",), "the same on any number of GPUs"),
    "falls": (("1", "1/N"), "a fixed part and one that is shared out"),
    "grows": (("1", "N"), "a fixed part and one that grows with the GPUs"),
    "bandwidth": (("(N-1)/N",), "a ring's bytes, which soon stop growing"),
    "ring": (("(N-1)/N", "N-1"), "bytes of a ring, and a latency for each of its hops"),
    "tree": (("(N-1)/N", "log2 N"), "bytes of a ring, and a latency for each level of a tree"),
    "full ring": (("1 from two GPUs on", "(N-1)/N", "N-1"), "the same with a fixed latency"),
    "full tree": (("1 from two GPUs on", "(N-1)/N", "log2 N"), "the same with a fixed latency"),
    "jitter": (("k_N",), "the wait for the last of equally random ranks"),
    "shared-jitter": (("k_N/N", "k_N"), "the same where the random part shrinks with the work"),
    "skew": (("1 from two GPUs on", "N-1"), "a wait for late ranks, and for more of them"),
}
TRANSFER = ("bandwidth", "ring", "tree", "full ring", "full tree")
_SHARED_OUT, _KEPT = ("falls", "grows"), ("flat", "falls", "grows")
# Class -> families to try, the likeliest mechanism first.
TRIED: dict[str, tuple[str, ...]] = {
    c.COMPUTE: _SHARED_OUT,
    c.COPY: _SHARED_OUT,
    c.DATA_LOADING: _SHARED_OUT,
    c.COMM_WAIT: ("shared-jitter", "skew"),
    c.COMM_TRANSFER: TRANSFER,
    c.COMM_UNSPLIT: TRANSFER,
}
# With the batch of a GPU fixed nothing is shared out.
TRIED_WEAK: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((c.COMPUTE, c.COPY, c.DATA_LOADING), _KEPT),
    c.COMM_WAIT: ("jitter", "skew"),
}
# Residuals are parts of the step. Below FINE the next family would explain noise; above it must be
# WORTH so much better.
FINE = 0.004
WORTH = 0.6


@dataclass(frozen=True)
class ClassFit:
    """`terms` are (shape, ns), `rms` the residual as a part of the step; `trend` is falls, flat,
    grows or "none" between the smallest and the largest size measured.
    """

    family: str
    terms: tuple[tuple[str, float], ...]
    rms: float
    trend: str

    def at(self, n: float) -> float:
        """ns on `n` GPUs."""
        return sum(ns * SHAPES[shape](n) for shape, ns in self.terms)


def tried(name: str, mode: Mode) -> tuple[str, ...]:
    """Families to try for a class, the likeliest first."""
    if mode == "weak" and name in TRIED_WEAK:
        return TRIED_WEAK[name]
    return TRIED.get(name, _KEPT)


def allowed(families: Sequence[str], sizes: int) -> list[str]:
    """Those with fewer shapes than sizes: as many explain anything and foretell nothing. Two are
    always allowed.
    """
    return [name for name in families if len(FAMILIES[name][0]) <= max(2, sizes - 1)]


def fit_class(
    times: Mapping[int, float], steps: Mapping[int, float], families: Sequence[str]
) -> ClassFit:
    """The first family that explains `times` (N -> ns) well enough; `steps` are the whole steps."""
    sizes = sorted(times)
    if not any(times.values()):
        return ClassFit("flat", (), 0.0, "none")
    fits = [_fit(f, sizes, times, steps) for f in allowed(families, len(sizes))]
    kept = fits[0]
    for other in fits[1:]:
        if kept.rms > FINE and other.rms < WORTH * kept.rms:
            kept = other
    return kept


def _fit(
    family: str, sizes: Sequence[int], times: Mapping[int, float], steps: Mapping[int, float]
) -> ClassFit:
    shapes, _ = FAMILIES[family]
    columns = [[SHAPES[shape](n) for n in sizes] for shape in shapes]
    found = non_negative(columns, [times[n] for n in sizes], [1.0 / steps[n] for n in sizes])
    terms = tuple(
        (shape, ns) for shape, ns in zip(shapes, found.coefficients, strict=True) if ns > 0.0
    )
    fit = ClassFit(family, terms, found.rms, "none")
    return ClassFit(family, terms, found.rms, _trend(fit, sizes, steps))


def _trend(fit: ClassFit, sizes: Sequence[int], steps: Mapping[int, float]) -> str:
    first, last = fit.at(sizes[0]), fit.at(sizes[-1])
    if abs(last - first) <= max(0.1 * max(first, last), FINE * steps[sizes[-1]]):
        return "flat"
    return "grows" if last > first else "falls"
