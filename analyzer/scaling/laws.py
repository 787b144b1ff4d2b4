"""How fast can N GPUs be, by the published scaling laws? Pure functions of plain numbers.

Speed-ups are multiples, shares are fractions between 0 and 1, times have any one unit. `s` is the
share of a ONE-GPU run that does not shrink with more GPUs, `f` the share of the run on N: the same
work measured against two wholes. `None` is "unbounded" or "undefined", never a number that is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_NORMAL_STEP = 0.02
_NORMAL_REACH = 10.0


@dataclass(frozen=True)
class LawRow:
    """What the laws say of `n` GPUs; `efficiency` is Amdahl's speed-up per GPU, `sun_ni` None where
    no growth of the work was given.
    """

    n: int
    amdahl: float
    gustafson: float
    efficiency: float
    sun_ni: float | None = None


def table(serial: float, gpus: Sequence[int], growth: float | None = None) -> list[LawRow]:
    """Both laws at each number of GPUs, in the order given; with `growth` x also Sun and Ni's for
    parallel work that grows with N^x as the memory of N GPUs lets it.

    The columns answer different questions with one number. Amdahl takes it as `s`, the share of the
    one-GPU run, and keeps the job fixed; Gustafson takes it as `f`, the share of the run on that
    row's N, and lets the job grow. So Gustafson's is the larger from two GPUs on.
    """
    return [
        LawRow(
            n=n,
            amdahl=amdahl(n, serial),
            gustafson=gustafson(n, serial),
            efficiency=efficiency(amdahl(n, serial), n),
            sun_ni=None if growth is None else sun_ni(n, serial, n**growth),
        )
        for n in gpus
    ]


def amdahl(n: float, s: float) -> float:
    """Speed-up of a fixed job on `n` GPUs over one (Amdahl 1967)."""
    _require_gpus(n)
    _require_share(s, "serial fraction s")
    return 1.0 / (s + (1.0 - s) / n)


def amdahl_ceiling(s: float) -> float | None:
    """Speed-up that no number of GPUs exceeds, 1/s; None when s = 0: there is no ceiling."""
    _require_share(s, "serial fraction s")
    return 1.0 / s if s > 0.0 else None


def gpus_for_fraction(s: float, fraction: float) -> float | None:
    """GPUs that reach `fraction` of Amdahl's ceiling, unrounded; None when there is no ceiling.

    Less than 1 where a single GPU is already past that fraction.
    """
    _require_share(s, "serial fraction s")
    if not 0.0 < fraction < 1.0:
        raise ValueError(
            f"The fraction of the ceiling must lie between 0 and 1, it is {fraction}; "
            "the ceiling itself is never reached."
        )
    return fraction * (1.0 - s) / (s * (1.0 - fraction)) if s > 0.0 else None


def speedup_bound(share: float, factor: float = math.inf) -> float | None:
    """Most a step can gain when a class with this `share` of it runs `factor` times faster.

    An upper bound: reached only if the class is on the critical path. None (unbounded) when the
    class is the whole step and vanishes.
    """
    _require_share(share, "share of the class")
    if not factor > 0.0:
        raise ValueError(f"The factor of a speed-up must be positive, it is {factor}.")
    remaining = 1.0 - share + share / factor
    return 1.0 / remaining if remaining > 0.0 else None


def gustafson(n: float, f: float) -> float:
    """Scaled speed-up N - f(N-1), `f` being the share of the run on `n` GPUs (Gustafson 1988)."""
    _require_gpus(n)
    _require_share(f, "fraction f")
    return n - f * (n - 1.0)


def s_from_f(f: float, n: float) -> float:
    """The share of the one-GPU run behind a share `f` measured on `n` GPUs.

    With `n` the base of a relative Karp-Flatt figure, it turns that figure into a one-GPU share.
    """
    _require_gpus(n)
    _require_share(f, "fraction f")
    return f / (f + n * (1.0 - f))


def f_from_s(s: float, n: float) -> float:
    """The share of the run on `n` GPUs that a one-GPU share `s` becomes."""
    _require_gpus(n)
    _require_share(s, "serial fraction s")
    return s * n / (1.0 + s * (n - 1.0))


def karp_flatt(speedup: float, n: float) -> float | None:
    """Serial fraction that explains a measured speed-up over one GPU (Karp & Flatt 1990).

    None at one GPU. Negative is superlinear or a wrong baseline, above 1 a slow-down; both are
    returned as they are, and Amdahl's law does not take them.
    """
    return karp_flatt_relative(speedup, base=1, n=n)


def karp_flatt_relative(speedup: float, *, base: float, n: float) -> float | None:
    """Serial fraction of the run on `base` GPUs behind its speed-up to `n`; None when n = base.

    `s_from_f(value, base)` turns it into a share of the one-GPU run.
    """
    _require_gpus(base)
    _require_positive(speedup, "speed-up")
    if n < base:
        raise ValueError(f"The larger run must not have fewer GPUs than its base: {n} < {base}.")
    if n == base:
        return None
    ratio = base / n
    return (1.0 / speedup - ratio) / (1.0 - ratio)


def efficiency(speedup: float, n: float) -> float:
    """Strong-scaling efficiency: speed-up per GPU, the total work being fixed."""
    _require_gpus(n)
    _require_positive(speedup, "speed-up")
    return speedup / n


def weak_efficiency(one_gpu_time: float, time: float) -> float:
    """Weak-scaling efficiency t_1/t_N of step times, the work per GPU being fixed."""
    _require_positive(one_gpu_time, "one-GPU step time")
    _require_positive(time, "step time")
    return one_gpu_time / time


def relative_efficiency(speedup: float, *, base: float, n: float) -> float:
    """Efficiency of `n` GPUs whose throughput is `speedup` times that of `base` GPUs."""
    _require_gpus(base)
    return efficiency(speedup, n) * base


def usl(n: float, sigma: float, kappa: float) -> float:
    """Relative capacity under contention `sigma` and coherency `kappa` (Gunther 1993)."""
    _require_gpus(n)
    if sigma < 0.0 or kappa < 0.0:
        raise ValueError(f"sigma and kappa must not be negative, they are {sigma} and {kappa}.")
    return n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))


def usl_peak(sigma: float, kappa: float) -> float | None:
    """GPUs, unrounded, after which more of them slow the job; None (no peak) when kappa <= 0.

    1 when contention alone forbids a gain (sigma >= 1), or the peak would lie below one GPU.
    """
    if sigma >= 1.0:
        return 1.0
    return max(1.0, math.sqrt((1.0 - sigma) / kappa)) if kappa > 0.0 else None


def sun_ni(n: float, s: float, work: float) -> float:
    """Memory-bounded speed-up, `work` being the factor G(N) by which the parallel work grew.

    G = 1 is Amdahl, G = N is Gustafson (Sun & Ni 1990).
    """
    _require_gpus(n)
    _require_share(s, "serial fraction s")
    _require_positive(work, "growth of the work")
    return (s + (1.0 - s) * work) / (s + (1.0 - s) * work / n)


def ring_step_time(
    n: float, *, serial: float, parallel: float, latency: float, transfer: float
) -> float:
    """Step time with a ring all-reduce that nothing hides: A + b/N + 2(N-1)a + 2((N-1)/N)M/B.

    `parallel` is b on one GPU, `latency` a per hop, `transfer` the time M/B of the message once.
    """
    _require_gpus(n)
    hops = 2.0 * (n - 1.0)
    return serial + parallel / n + hops * latency + hops / n * transfer


def ring_optimum(*, parallel: float, latency: float, transfer: float) -> float | None:
    """GPUs, unrounded, at which `ring_step_time` is least; None when it falls for ever.

    1 when the message alone costs more than the parallel work: adding GPUs never pays.
    """
    if latency < 0.0:
        raise ValueError(f"The latency of a hop must not be negative, it is {latency}.")
    gain = parallel - 2.0 * transfer
    if gain <= 0.0:
        return 1.0
    return max(1.0, math.sqrt(gain / (2.0 * latency))) if latency > 0.0 else None


@cache
def expected_max(n: int) -> float:
    """Mean of the largest of `n` standard normal numbers, k_N; 0 for one.

    With equal random jitter on each rank, the mean wait at a barrier is k_N standard deviations.
    The integral of x N phi(x) Phi(x)^(N-1) by the trapezoid rule, whose error for a smooth
    integrand that dies out on both sides is far below 1e-9 at this step, up to a million ranks.
    """
    _require_gpus(n)
    half = round(_NORMAL_REACH / _NORMAL_STEP)
    points = (i * _NORMAL_STEP for i in range(-half, half + 1))
    scale = n * _NORMAL_STEP / math.sqrt(2.0 * math.pi)
    return scale * math.fsum(
        x * math.exp(-x * x / 2.0) * (math.erfc(-x / math.sqrt(2.0)) / 2.0) ** (n - 1)
        for x in points
    )


def _require_gpus(n: float) -> None:
    if not n >= 1:
        raise ValueError(f"The number of GPUs must be at least 1, it is {n}.")


def _require_share(value: float, name: str) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"The {name} must lie between 0 and 1, it is {value}.")


def _require_positive(value: float, name: str) -> None:
    if not value > 0.0:
        raise ValueError(f"The {name} must be positive, it is {value}.")
