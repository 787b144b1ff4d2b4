"""Which share of the step never shrinks, and how fast could the job get? Times are nanoseconds.

Every time class has one role in the question asked: it scales with the GPUs, it does not, or it is
overhead that only many GPUs have. The classes that do not scale, over the step, are `f`; the same
work over the step of one GPU is `s`. Their reciprocals are the two ceilings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyzer.classify import classes as c
from analyzer.scaling import laws
from analyzer.scaling.student import student_t_975

Mode = Literal["strong", "accum", "weak"]
Role = Literal["scales", "serial", "overhead", "neutral"]
Floats = NDArray[np.float64]

MODES: dict[Mode, str] = {
    "strong": "The global batch stays fixed, so each GPU's part of it shrinks with more GPUs.",
    "accum": "The global batch and the microbatch stay fixed, so a GPU runs fewer microbatches "
    "when there are more GPUs.",
    "weak": "The batch of each GPU stays fixed, so more GPUs do more work in the same step.",
}

# Class -> role in each mode, in the order of MODES.
ROLES: dict[str, tuple[Role, Role, Role]] = {
    c.COMPUTE: ("scales", "scales", "neutral"),
    c.OPTIMIZER: ("serial", "serial", "neutral"),  # every rank updates all the weights
    c.COMM_TRANSFER: ("overhead", "overhead", "overhead"),
    c.COMM_WAIT: ("overhead", "overhead", "overhead"),
    c.COMM_UNSPLIT: ("overhead", "overhead", "overhead"),
    c.DATA_LOADING: ("scales", "scales", "neutral"),
    c.COPY: ("scales", "scales", "neutral"),
    c.LAUNCH: ("serial", "scales", "neutral"),  # paid per kernel, whatever the batch
    c.HOST_SYNC: ("serial", "serial", "neutral"),
    c.HOST_OTHER: ("serial", "serial", "neutral"),
    # The hand-over between streams is paid per kernel too, like the launch.
    c.DEPENDENCY: ("serial", "scales", "neutral"),
    # Nobody knows; serial never promises more than was measured, and the envelope has the rest.
    c.UNEXPLAINED: ("serial", "serial", "neutral"),
}
SHARDED_OPTIMIZER: tuple[Role, Role, Role] = ("scales", "scales", "scales")
SHARED_LOADER: tuple[Role, Role, Role] = ("serial", "serial", "overhead")

# Classes whose role one trace cannot settle: the envelope counts them both ways.
UNSETTLED = frozenset({c.UNEXPLAINED, c.DATA_LOADING, c.LAUNCH, c.DEPENDENCY})

NOT_BOUNDED = "not bounded by this trace"
WEAK_HAS_NO_CEILING = (
    "weak scaling keeps the work of each GPU fixed, so no part is meant to shrink and there is no "
    "ceiling: read the efficiency"
)
MIN_STEPS = 5
MIN_INDEPENDENT_STEPS = 3.0
_ROUNDING_NS = 1.0


@dataclass(frozen=True)
class Setting:
    """The question asked of a trace: `n` GPUs in the scaling dimension, and what stays fixed.

    `n` counts data-parallel replicas: where tensors or layers are split, one group of GPUs is one.
    """

    n: int
    mode: Mode = "strong"
    sharded_optimizer: bool = False
    shared_loader: bool = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"The number of GPUs must be at least 1, it is {self.n}.")
        if self.mode not in MODES:
            raise ValueError(f"The mode must be one of {', '.join(MODES)}, it is {self.mode!r}.")

    def roles(self) -> dict[str, Role]:
        """Role of every class in this question."""
        rows = dict(ROLES)
        if self.sharded_optimizer:
            rows[c.OPTIMIZER] = SHARDED_OPTIMIZER
        if self.shared_loader:
            rows[c.DATA_LOADING] = SHARED_LOADER
        column = list(MODES).index(self.mode)
        return {name: row[column] for name, row in rows.items()}


@dataclass(frozen=True)
class Interval:
    """A value, its 95 % interval over the steps, and the envelope of the roles nobody can settle.

    A missing number is None and `reason` says why; in a ceiling it means unbounded.
    """

    value: float | None
    lo: float | None = None
    hi: float | None = None
    envelope: tuple[float | None, float | None] | None = None
    reason: str = ""


@dataclass(frozen=True)
class SerialFraction:
    """What one trace at `n` GPUs says about scaling.

    `speedup` and `efficiency` are against one GPU that pays today's overhead too; `karp_flatt` is
    the serial fraction against one GPU that does not, the one to hold against a measured speed-up.
    Under weak scaling `speedup` counts throughput, and all that speaks of a ceiling is None.
    """

    mode: Mode
    n: int
    step_ns: float
    f: Interval
    s: Interval
    P: float | None
    ceiling_today: Interval
    ceiling_one_gpu: Interval
    speedup: float
    efficiency: float
    gustafson: float | None
    karp_flatt: float | None
    roles: dict[str, Role]
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Remaining:
    """Fractions and ceilings of the job once something is removed, against the job as it then is.

    None with a reason: not bounded, weak scaling, or nothing left of the step.
    """

    f: float | None
    s: float | None
    ceiling_today: float | None
    ceiling_one_gpu: float | None
    reason: str = ""


def serial_fraction(
    per_step: Mapping[str, Sequence[float] | Floats], setting: Setting
) -> SerialFraction:
    """Fractions, ceilings and intervals from the time of each class in each step (rank means).

    `per_step` maps class ids to equally long sequences; a class left out takes no time.
    """
    steps = _as_arrays(per_step)
    mean = {name: float(values.mean()) for name, values in steps.items()}
    one_gpu_ns, n = one_gpu_step(mean, setting), setting.n
    step_ns = sum(mean.values())
    speedup = one_gpu_ns / step_ns * (n if setting.mode == "weak" else 1)
    f = s = Interval(None, reason=WEAK_HAS_NO_CEILING)
    if setting.mode != "weak":
        f, s = _fractions(steps, setting)
    return SerialFraction(
        mode=setting.mode,
        n=n,
        step_ns=step_ns,
        f=f,
        s=s,
        P=None if s.value is None else 1.0 - s.value,
        ceiling_today=_reciprocal(f),
        ceiling_one_gpu=_reciprocal(s),
        speedup=speedup,
        efficiency=speedup / n,
        gustafson=None if f.value is None else laws.gustafson(n, f.value),
        karp_flatt=_karp_flatt(mean, setting),
        roles=setting.roles(),
        assumptions=_assumptions(mean, setting),
    )


def fixed(
    mean_ns: Mapping[str, float], setting: Setting, removed_ns: Mapping[str, float]
) -> Remaining:
    """Fractions and ceilings when `removed_ns` of each class is gone from the mean step.

    Removing time that scales raises f: the step is shorter, but more of it is left that does not.
    """
    _require_classes(removed_ns)
    left = checked_mean(mean_ns)
    for name, amount in removed_ns.items():
        rest = left.get(name, 0.0) - amount
        if amount < 0.0 or rest < -_ROUNDING_NS:
            raise ValueError(
                f"Cannot remove {amount} ns of {name!r}: the step has {rest + amount}."
            )
        left[name] = max(0.0, rest)
    if setting.mode == "weak":
        return Remaining(None, None, None, None, WEAK_HAS_NO_CEILING)
    if sum(left.values()) == 0.0:
        return Remaining(None, None, None, None, "nothing is left of the step")
    p, q = parts(left, setting)
    f, s = q / (p + q), q / (setting.n * p + q)
    if q == 0.0:
        return Remaining(f, s, None, None, NOT_BOUNDED)
    return Remaining(f, s, 1.0 / f, 1.0 / s)


def one_gpu_step(mean: Mapping[str, float], setting: Setting) -> float:
    """Step of one GPU: with today's overhead for Amdahl's reading, without it in weak scaling."""
    if setting.mode == "weak":
        return _one_gpu_step_without_overhead(mean, setting)
    p, q = parts(mean, setting)
    return setting.n * p + q


def _one_gpu_step_without_overhead(mean: Mapping[str, float], setting: Setting) -> float:
    if setting.n == 1:
        return sum(mean.values())
    total, roles = 0.0, setting.roles()
    for name, time_ns in mean.items():
        if roles[name] == "scales":
            total += setting.n * time_ns
        elif roles[name] != "overhead":
            total += time_ns
        elif name == c.DATA_LOADING:  # a loader without the queue of the others
            total += time_ns / setting.n
    return total


def _karp_flatt(mean: Mapping[str, float], setting: Setting) -> float | None:
    one_gpu_ns = _one_gpu_step_without_overhead(mean, setting)
    if setting.mode == "weak" or one_gpu_ns == 0.0:
        return None
    return laws.karp_flatt(one_gpu_ns / sum(mean.values()), setting.n)


def parts(mean: Mapping[str, float], setting: Setting) -> tuple[float, float]:
    """Time that scales, and time that does not."""
    roles = setting.roles()
    p = sum(time_ns for name, time_ns in mean.items() if roles[name] == "scales")
    q = sum(time_ns for name, time_ns in mean.items() if roles[name] != "scales")
    return p, q


def _fractions(steps: Mapping[str, Floats], setting: Setting) -> tuple[Interval, Interval]:
    """f and s: the same ratio, with the scaling part counted once and N times."""
    roles = setting.roles()
    zero = np.zeros(len(next(iter(steps.values()))))
    serial = {name for name in steps if roles[name] != "scales"}
    q = sum((steps[name] for name in sorted(serial)), zero)
    p = sum((steps[name] for name in steps if name not in serial), zero)

    def share(names: set[str], weight: int) -> float:
        inside = sum(float(steps[name].sum()) for name in steps if name in names)
        outside = sum(float(steps[name].sum()) for name in steps if name not in names)
        return inside / (weight * outside + inside)

    def fraction(weight: int) -> Interval:
        least, most = share(serial - UNSETTLED, weight), share(serial | UNSETTLED, weight)
        return _ratio(q, weight * p + q, (least, most))

    return fraction(1), fraction(setting.n)


def _ratio(part: Floats, whole: Floats, envelope: tuple[float, float]) -> Interval:
    """Ratio of sums with its delta-method interval, steps counted by their independence."""
    value = float(part.sum() / whole.sum())
    half, reason = half_width((part - value * whole) / whole.mean())
    return Interval(
        value=value,
        lo=None if half is None else max(0.0, value - half),
        hi=None if half is None else min(1.0, value + half),
        envelope=(min(envelope[0], value), max(envelope[1], value)),
        reason=reason,
    )


def half_width(residuals: Floats) -> tuple[float | None, str]:
    """Half of the 95 % interval of a mean whose steps differ from it by `residuals`, or why not.

    Steps that resemble their neighbours count for less (methods 2.3: n_eff with lag-1 correlation).
    """
    n = len(residuals)
    if n < MIN_STEPS:
        return None, f"no interval: {MIN_STEPS} steps are needed, the trace has {n}"
    if float(np.abs(residuals).max()) < 1e-12:  # rounding only; its correlation means nothing
        return 0.0, ""
    r1 = float(residuals[1:] @ residuals[:-1] / (residuals @ residuals))
    r1 = min(max(r1, 0.0), 0.99)
    independent = n * (1.0 - r1) / (1.0 + r1)
    if independent < MIN_INDEPENDENT_STEPS:
        return None, (
            f"no interval: each step resembles the one before, so {n} steps are worth "
            f"{independent:.1f} independent ones and {MIN_INDEPENDENT_STEPS:.0f} are needed"
        )
    spread = float(residuals.std(ddof=1)) / math.sqrt(independent)
    return student_t_975(independent - 1.0) * spread, ""


def _reciprocal(share: Interval) -> Interval:
    """Ceiling of a share: endpoints change places, and an endpoint at 0 leaves it unbounded."""

    def over(x: float | None) -> float | None:
        return 1.0 / x if x else None

    reasons = [share.reason] if share.reason else []
    if share.value == 0.0:
        reasons.insert(0, NOT_BOUNDED)
    elif share.lo == 0.0:
        reasons.append("no upper end: the interval of the share reaches 0")
    envelope = share.envelope
    if share.value and envelope and envelope[0] == 0.0:
        reasons.append("no upper end of the envelope: all that does not shrink might")
    return Interval(
        value=over(share.value),
        lo=over(share.hi),
        hi=over(share.lo),
        envelope=envelope and (over(envelope[1]), over(envelope[0])),
        reason="; ".join(reasons),
    )


def _assumptions(mean: Mapping[str, float], setting: Setting) -> tuple[str, ...]:
    present = {name for name, time_ns in mean.items() if time_ns > 0.0}
    sentences = [MODES[setting.mode]]
    if setting.n == 1:
        sentences.append("One GPU says nothing of the communication that more of them will need.")
    else:
        sentences.append(
            "One number of GPUs cannot tell what a single GPU spends too from overhead that grows."
        )
    if setting.mode == "strong":
        sentences.append("Smaller batches are taken to use a GPU as well as today's do.")
    if c.OPTIMIZER in present:
        sentences.append(
            "The optimizer is sharded, so its time shrinks with more GPUs."
            if setting.sharded_optimizer
            else "Every GPU updates all the weights, so the optimizer takes as long on any number."
        )
    if c.DATA_LOADING in present:
        sentences.append(
            "All GPUs load from one disk or CPU, so more of them do not load faster."
            if setting.shared_loader
            else "Each GPU loads its own part of the batch with resources of its own."
        )
    if c.UNEXPLAINED in present and setting.mode != "weak":
        sentences.append(
            "Unexplained time counts as time that does not shrink; the envelope has both ways."
        )
    return tuple(sentences)


def checked_mean(mean_ns: Mapping[str, float]) -> dict[str, float]:
    """A copy of the mean step; ValueError for unknown classes or a step without time."""
    arrays = _as_arrays({name: [time_ns] for name, time_ns in mean_ns.items()})
    return {name: float(values[0]) for name, values in arrays.items()}


def _as_arrays(per_step: Mapping[str, Sequence[float] | Floats]) -> dict[str, Floats]:
    _require_classes(per_step)
    steps = {name: np.asarray(values, dtype=np.float64) for name, values in per_step.items()}
    if len({values.shape for values in steps.values()}) != 1:
        raise ValueError("Every class must have one time for every step.")
    times = np.stack(list(steps.values()))
    if not bool(np.isfinite(times).all()) or bool((times < 0.0).any()):
        raise ValueError("Times must be finite and not negative.")
    if not float(times.sum()) > 0.0:
        raise ValueError("The steps take no time, so they have no shares.")
    return steps


def _require_classes(names: Iterable[str]) -> None:
    unknown = sorted(set(names) - set(ROLES))
    if unknown:
        raise ValueError(f"There is no time class {unknown[0]!r}.")
