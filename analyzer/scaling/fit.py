"""Several world sizes -> which law describes them, how well, and how far it may be trusted? ns.

Three laws compete: every class with its own growth, which knows the mechanism; the Universal
Scalability Law; and Amdahl's (with the batch of a GPU fixed, a step that stays). Each is fitted
again without each size and has to predict it: the one with the least such error is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.scaling import growth, laws
from analyzer.scaling.by_class import ClassLaw, fit_classes
from analyzer.scaling.least_squares import non_negative, unbounded
from analyzer.scaling.observe import Observation
from analyzer.scaling.serial import Mode

FARTHEST = 4
FEWEST = 3
FEWEST_USL, FULL_USL = 4, 6
CLASSES, USL, AMDAHL = "classes", "usl", "amdahl"
# What no fit can be surer of than, at twice the largest size: kernels of another shape, caches.
FLOOR = 0.01
SPREAD = 2.0
CLEARLY = 1.5

Law = Callable[[float], float]


@dataclass(frozen=True)
class Fitted:
    """One law. `parameters` in ns where they are times; `loo_error` is the root mean square of the
    relative errors with which it predicts each size from the others, None (with `reason`) where
    there are too few sizes; `remark` says what to make of it.
    """

    id: str
    at: Law
    parameters: Mapping[str, float | None]
    loo_error: float | None
    reason: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Predicted:
    """Step on `n` GPUs with its interval; None with `reason` where it is refused."""

    n: int
    step: float | None
    lo: float | None
    hi: float | None
    reason: str = ""


@dataclass(frozen=True)
class ScalingFit:
    """All laws tried on the observations, the best one's id, and where it stops being valid."""

    mode: Mode
    seen: Sequence[Observation]
    fitted: Mapping[str, Fitted]
    best: str | None
    by_class: ClassLaw
    reason: str = ""
    others: Sequence[Law] = field(default_factory=tuple)

    @property
    def largest(self) -> int:
        """GPUs of the largest run."""
        return self.seen[-1].n

    @property
    def farthest(self) -> int:
        """GPUs beyond which nothing is predicted unless it is forced."""
        return FARTHEST * self.largest

    def step(self, n: float) -> float:
        """ns on `n` GPUs by the best law; ValueError where there is none."""
        if self.best is None:
            raise ValueError(f"No law was fitted: {self.reason}.")
        return self.fitted[self.best].at(n)

    def predict(self, n: int, *, forced: bool = False) -> Predicted:
        """The step on `n` GPUs, refused beyond `farthest` unless `forced`."""
        if self.best is None:
            return Predicted(n, None, None, None, self.reason)
        if n > self.farthest and not forced:
            reason = (
                f"refused: {n:,} GPUs are more than {FARTHEST} times the largest run "
                f"({self.largest:,})"
            )
            return Predicted(n, None, None, None, reason)
        step = self.step(n)
        half = self.half(n)
        return Predicted(n, step, step / (1.0 + half), step * (1.0 + half))

    def half(self, n: float) -> float:
        """Half of the interval as a part of the step: the noise of the runs, the leave-one-out
        error and how far fits to fewer sizes and of other shapes come apart, wider for each
        doubling beyond the largest run.
        """
        best = self.fitted[self.best or CLASSES]
        beyond = max(0.0, math.log2(n / self.largest))
        noise = max((o.half or 0.0) for o in self.seen)
        step = best.at(n)
        apart = max((abs(law(n) / step - 1.0) for law in self.others), default=0.0)
        missed = SPREAD * (best.loo_error or 0.0) * max(1.0, beyond)
        return math.hypot(noise * (1.0 + beyond), FLOOR * max(1.0, beyond), missed, apart)


def fit(seen: Sequence[Observation], mode: Mode) -> ScalingFit:
    """The laws fitted to runs of different sizes, each of which stands once."""
    runs = sorted(seen, key=lambda o: o.n)
    if len({o.n for o in runs}) < len(runs) or not runs:
        raise ValueError("A fit needs runs of different sizes.")
    by_class = fit_classes(runs, mode)
    if len(runs) < FEWEST:
        reason = (
            f"{len(runs)} size{'' if len(runs) == 1 else 's'}: at least {FEWEST} are needed to fit "
            "a law and test it on a size it has not seen"
        )
        return ScalingFit(mode, runs, {}, None, by_class, reason)
    fitted = {
        CLASSES: Fitted(CLASSES, by_class.at, {}, _left_out(runs, mode, _class_law)),
        USL: fit_usl(runs, mode),
        AMDAHL: _amdahl(runs, mode),
    }
    errors = {name: law.loo_error for name, law in fitted.items() if law.loo_error is not None}
    best = min(errors, key=lambda name: errors[name])
    # The law of classes knows what a larger run will uncover; another must be clearly better.
    if errors[CLASSES] <= max(CLEARLY * errors[best], FLOOR):
        best = CLASSES
    return ScalingFit(mode, runs, fitted, best, by_class, others=_others(runs, mode, best))


def fit_usl(runs: Sequence[Observation], mode: Mode) -> Fitted:
    """Gunther's law by weighted least squares on N/X = (1 + sigma(N-1) + kappa N(N-1)) / gamma.

    It is linear in its three coefficients, and a relative error of N/X is one of X (methods 1.5).
    """
    if len(runs) < FEWEST_USL:
        reason = f"{len(runs)} sizes: the Universal Scalability Law needs {FEWEST_USL}, better 6"
        return Fitted(USL, lambda n: math.nan, {}, None, reason)
    one, sigma, kappa = _usl_coefficients(runs, mode)
    free = unbounded(*_usl_rows(runs, mode))
    remarks = []
    if len(runs) < FULL_USL:
        remarks.append(
            f"weak: {len(runs)} sizes for three parameters, {FULL_USL} or more are advised"
        )
    if free[1] < -1e-3 * free[0]:
        remarks.append(
            "superlinear: without its bound the contention would be negative; a loss usually "
            "follows at larger sizes"
        )
    return Fitted(
        id=USL,
        at=_usl_law(one, sigma, kappa, mode),
        parameters={"sigma": sigma, "kappa": kappa, "peak": laws.usl_peak(sigma, kappa),
                    "one_gpu_ns": one},
        loo_error=_left_out(runs, mode, lambda r, m: _usl_law(*_usl_coefficients(r, m), m)),
        remark="; ".join(remarks),
    )  # fmt: skip


def _usl_rows(
    runs: Sequence[Observation], mode: Mode
) -> tuple[list[list[float]], list[float], list[float]]:
    sizes = [float(o.n) for o in runs]
    target = [o.step * (1.0 if mode == "weak" else o.n) for o in runs]
    columns = [[1.0] * len(sizes), [n - 1.0 for n in sizes], [n * (n - 1.0) for n in sizes]]
    return columns, target, [1.0 / value for value in target]


def _usl_coefficients(runs: Sequence[Observation], mode: Mode) -> tuple[float, float, float]:
    """ns on one GPU, sigma and kappa."""
    one, contention, coherency = non_negative(*_usl_rows(runs, mode)).coefficients
    if one <= 0.0:
        return 0.0, 1.0, 0.0
    return one, min(1.0, contention / one), coherency / one


def _usl_law(one: float, sigma: float, kappa: float, mode: Mode) -> Law:
    def at(n: float) -> float:
        return one * (n if mode == "weak" else 1.0) / laws.usl(n, sigma, kappa)

    return at


def _amdahl(runs: Sequence[Observation], mode: Mode) -> Fitted:
    kept, shared = _amdahl_terms(runs, mode)
    whole = kept + shared
    return Fitted(
        id=AMDAHL,
        at=lambda n: kept + shared / n,
        parameters={"serial_ns": kept, "parallel_ns": shared, "s": kept / whole if whole else None},
        loo_error=_left_out(runs, mode, _amdahl_law),
        remark="with the batch of a GPU fixed: Gustafson's step, which stays as it is"
        if mode == "weak"
        else "",
    )


def _amdahl_terms(runs: Sequence[Observation], mode: Mode) -> tuple[float, float]:
    shapes = [[1.0] * len(runs)]
    if mode != "weak":
        shapes.append([1.0 / o.n for o in runs])
    found = non_negative(shapes, [o.step for o in runs], [1.0 / o.step for o in runs])
    return (*found.coefficients, 0.0)[0], (*found.coefficients, 0.0)[1]


def _amdahl_law(runs: Sequence[Observation], mode: Mode) -> Law:
    kept, shared = _amdahl_terms(runs, mode)
    return lambda n: kept + shared / n


def _class_law(runs: Sequence[Observation], mode: Mode) -> Law:
    return fit_classes(runs, mode).at


def _left_out(
    runs: Sequence[Observation], mode: Mode, make: Callable[[Sequence[Observation], Mode], Law]
) -> float:
    """Root mean square of the relative errors of each size predicted from the others."""
    errors = []
    for at, left in enumerate(runs):
        law = make([*runs[:at], *runs[at + 1 :]], mode)
        errors.append(law(left.n) / left.step - 1.0)
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def _others(runs: Sequence[Observation], mode: Mode, best: str) -> list[Law]:
    """Fits that might as well be true: without the size that decides least, of other shapes."""
    if best != CLASSES:
        return []
    found: list[Law] = []
    if len(runs) > FEWEST:
        found += [fit_classes(runs[1:], mode).at, fit_classes([*runs[:1], *runs[2:]], mode).at]
    chosen = fit_classes(runs, mode)
    for family in growth.allowed(growth.TRANSFER, sum(o.moved > 0.0 for o in runs)):
        other = fit_classes(runs, mode, (family,))
        if other.moved.rms <= max(growth.FINE, 2.0 * chosen.moved.rms):
            found.append(other.at)
    return found
