"""Serial fractions, ceilings, predictions as plain values; speedups are multiples, times ms, s."""

from __future__ import annotations

from analyzer.report.part import Gpus, Ms, Multiple, Part


class Estimate(Part, frozen=True, kw_only=True):
    """A value with its interval; `reason` says why a field is null (unbounded, too few steps)."""

    value: Ms | None
    lo: Ms | None = None
    hi: Ms | None = None
    envelope: tuple[Ms | None, Ms | None] | None = None
    reason: str = ""


class Prediction(Part, frozen=True, kw_only=True):
    """The same job on `n` GPUs, everything that does not scale staying as it is.

    speedup and efficiency are against one GPU; `amdahl` is the law alone, without communication
    that grows; `gustafson` is the scaled speedup at the measured fraction;
    `duration_s` is the whole run when its length was given.
    """

    n: Gpus
    step_ms: Ms
    speedup: Multiple
    efficiency: Ms
    amdahl: Multiple | None
    gustafson: Multiple | None
    duration_s: float | None = None


class Duration(Part, frozen=True, kw_only=True):
    """The whole run: as given (today), at the ceiling 1/f, and at the limit of the prediction;
    `reason` says why there is none.
    """

    today_s: float
    ceiling_s: float | None
    limit_s: float | None = None
    reason: str = ""


class Limit(Part, frozen=True, kw_only=True):
    """The best step the prediction reaches, at `n` GPUs (None: only in the limit). It is below the
    ceilings where communication grows with the GPUs; `reason` says why a number is null.
    """

    n: Gpus | None
    ceiling_today: Multiple | None
    ceiling_one_gpu: Multiple | None
    reason: str = ""


class Knee(Part, frozen=True, kw_only=True):
    """Where the predicted curve bends, in GPUs: most with 90 % and 50 % efficiency, those of the
    shortest step, and those beyond which each percent of speed costs more than one of GPU-hours.

    None: not within the sizes predicted, of which `up_to` is the largest.
    """

    nine_tenths: float | None
    half: float | None
    fastest: float | None
    pays: float | None
    up_to: int
    reason: str = ""


class Scaling(Part, frozen=True, kw_only=True):
    """Serial fraction and ceilings. `f`: share of today's step that does not shrink with more GPUs
    (measured at `n`); `s` = 1-P: the same on one GPU. Ceilings: 1/f against today, 1/s against one.
    `basis` of `predict` is "replay" (the run replayed at each size) or "classes".
    `reason` says why other numbers here are null.
    """

    mode: str
    n: Gpus
    f: Estimate
    s: Estimate
    P: float | None
    ceiling_today: Estimate
    ceiling_one_gpu: Estimate
    speedup: Multiple | None
    efficiency: Ms | None
    gustafson: Multiple | None
    roles: dict[str, str]
    assumptions: list[str]
    predict: list[Prediction]
    duration: Duration | None = None
    limit: Limit | None = None
    knee: Knee | None = None
    basis: str = "classes"
    reason: str = ""
