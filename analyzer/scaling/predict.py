"""The same job on other numbers of GPUs: every class grows by its role. Times are nanoseconds.

What scales is shared out, what is serial stays, and overhead grows the way its mechanism does (a
ring's bandwidth term, the wait for the last of many equally random ranks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify import classes as c
from analyzer.scaling import laws
from analyzer.scaling.serial import (
    NOT_BOUNDED,
    WEAK_HAS_NO_CEILING,
    Role,
    Setting,
    checked_mean,
    one_gpu_step,
    parts,
)

Growth = Callable[[float, float], float]


@dataclass(frozen=True)
class Prediction:
    """The job on `n` GPUs; `amdahl` and `gustafson` are the laws alone, None under weak scaling."""

    n: int
    step_ns: float
    speedup: float
    efficiency: float
    amdahl: float | None
    gustafson: float | None


@dataclass(frozen=True)
class Limit:
    """The best step that any number of GPUs gives, and what it is worth; None is unbounded.

    `n` is where it is reached: a power of two, a size asked for or today's. None when the step
    falls for ever towards it.
    """

    n: int | None
    step_ns: float | None
    ceiling_today: float | None
    ceiling_one_gpu: float | None
    reason: str = ""


@dataclass(frozen=True)
class Curve:
    """Predicted steps, in the order asked for, their limit, and what was taken for granted."""

    points: tuple[Prediction, ...]
    limit: Limit
    assumptions: tuple[str, ...]


def held(n: float, target: float) -> float:
    """1: the time stays as it is."""
    return 1.0


def shrink(n: float, target: float) -> float:
    """N/N': work that is shared out. Optimistic, since smaller batches use a GPU less well."""
    return n / target


def proportional(n: float, target: float) -> float:
    """N'/N: all ranks queue at one disk or CPU while each wants as much as before."""
    return target / n


def ring(n: float, target: float) -> float:
    """Bandwidth term of a ring, (N'-1)/N' over (N-1)/N; 1 from one GPU, which has no ring."""
    return (1.0 - 1.0 / target) / (1.0 - 1.0 / n) if n > 1 else 1.0


def jitter(n: float, target: float) -> float:
    """k_N' / k_N: the wait for the last of equally random ranks. It has no limit, but is slow."""
    if math.isinf(target):
        return math.inf
    return laws.expected_max(int(target)) / laws.expected_max(int(n)) if n > 1 else 1.0


OVERHEAD_GROWTH: dict[str, Growth] = {
    c.COMM_TRANSFER: ring,
    c.COMM_UNSPLIT: ring,
    c.COMM_WAIT: jitter,
    c.DATA_LOADING: proportional,
}
_SEARCHED = tuple(2**power for power in range(21))


def predict(
    mean_ns: Mapping[str, float],
    setting: Setting,
    ns: Sequence[int],
    growth: Mapping[str, Growth] = OVERHEAD_GROWTH,
) -> Curve:
    """Mean step on each of `ns` GPUs, every class growing by its role, overhead by `growth`.

    One persistently late rank costs the same wait at any N: give `held` for that class then.
    On one GPU the step is the reference all speed-ups are taken against.
    """
    mean = checked_mean(mean_ns)
    one_gpu_ns = one_gpu_step(mean, setting)
    p, q = parts(mean, setting)
    weak = setting.mode == "weak"

    def point(target: int) -> Prediction:
        step_ns = _step(mean, setting, target, growth)
        speedup = one_gpu_ns / step_ns * (target if weak else 1)
        return Prediction(
            n=target,
            step_ns=step_ns,
            speedup=speedup,
            efficiency=speedup / target,
            amdahl=None if weak else laws.amdahl(target, q / (setting.n * p + q)),
            gustafson=None if weak else laws.gustafson(target, q / (p + q)),
        )

    return Curve(
        points=tuple(point(target) for target in ns),
        limit=_limit(mean, setting, ns, growth),
        assumptions=_growth_assumptions(mean, setting, growth),
    )


def _limit(
    mean: Mapping[str, float],
    setting: Setting,
    asked: Sequence[int],
    growth: Mapping[str, Growth],
) -> Limit:
    if setting.mode == "weak":
        return Limit(None, None, None, None, WEAK_HAS_NO_CEILING)
    sizes = sorted({*_SEARCHED, *asked, setting.n})
    tried = {n: _step(mean, setting, n, growth) for n in sizes}
    best: int | None = min(tried, key=tried.__getitem__)
    step_ns = min(tried.values())
    asymptote_ns = _step(mean, setting, math.inf, growth)
    if asymptote_ns <= step_ns:
        best, step_ns = None, asymptote_ns
    if step_ns == 0.0:
        return Limit(None, 0.0, None, None, NOT_BOUNDED)
    today_ns = sum(mean.values())
    return Limit(best, step_ns, today_ns / step_ns, one_gpu_step(mean, setting) / step_ns)


def _step(
    mean: Mapping[str, float], setting: Setting, target: float, growth: Mapping[str, Growth]
) -> float:
    if target == 1:
        return one_gpu_step(mean, setting)
    by_role: dict[Role, Growth] = {"scales": shrink, "serial": held, "neutral": held}
    roles = setting.roles()
    return sum(
        time_ns * (by_role.get(roles[name]) or growth[name])(setting.n, target)
        for name, time_ns in mean.items()
        if time_ns > 0.0  # nothing stays nothing, also where its growth has no limit
    )


def _growth_assumptions(
    mean: Mapping[str, float], setting: Setting, growth: Mapping[str, Growth]
) -> tuple[str, ...]:
    if setting.n == 1:
        return (
            "A trace of one GPU has no communication, so none is predicted: "
            "steps on more GPUs will be longer than shown.",
        )
    present = {name for name, time_ns in mean.items() if time_ns > 0.0}
    sentences = [
        f"Measured on {setting.n} GPUs only: the further from there, the less it is worth."
    ]
    if present & {c.COMM_TRANSFER, c.COMM_UNSPLIT}:
        sentences.append(
            "Communication grows like the bandwidth term of a ring; latency is left out."
        )
    if c.COMM_UNSPLIT in present:
        sentences.append("Waiting inside communication is not known and grows as transfer does.")
    if c.COMM_WAIT in present and growth[c.COMM_WAIT] is jitter:
        sentences.append("Waiting grows as it does when all ranks are late by chance alike.")
    return tuple(sentences)
