"""How does a step grow when each of its classes grows in its own way? Times in ns.

Fits say how long the work of each class lasts at another size; a replay of the nearest run says
what of it still hides behind the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify import classes as c
from analyzer.scaling import growth
from analyzer.scaling.growth import ClassFit, fit_class
from analyzer.scaling.observe import BYTES, EXPOSED, HOPS, Observation
from analyzer.scaling.overlap import Hiding, hiding
from analyzer.scaling.serial import Mode

# Classes whose device work a replay makes longer or shorter; the others follow from it.
RESIZED = (c.COMPUTE, c.OPTIMIZER, c.COPY, c.DATA_LOADING)


@dataclass(frozen=True)
class ClassLaw:
    """Fits by class; `moved` is all communication, hidden or not.

    What of it is exposed on other numbers of GPUs is replayed from the nearest run (`near`): its
    work made longer or shorter by the fits. Where nothing can be replayed, `hidden` tells.
    """

    fits: Mapping[str, ClassFit]
    moved: ClassFit
    hidden: Hiding
    near: Sequence[Observation] = ()

    def at(self, n: float) -> float:
        """ns of the step on `n` GPUs."""
        near = self._nearest(n)
        if near is None or near.resize is None:
            return sum(self._by_fits(n).values())
        return near.resize.steps([self.factors(n, near)])[0]

    def classes_at(self, n: float) -> dict[str, float]:
        """ns of every class; communication that was not split counts as transfer."""
        near = self._nearest(n)
        if near is None or near.resize is None:
            return self._by_fits(n)
        return near.resize.classes(self.factors(n, near))

    def _by_fits(self, n: float) -> dict[str, float]:
        times = {name: fit.at(n) for name, fit in self.fits.items()}
        times[c.COMM_TRANSFER] = self.hidden.exposed(self.moved.at(n), times.get(c.COMPUTE, 0.0))
        return times

    def _nearest(self, n: float) -> Observation | None:
        """The run to replay for this size; one GPU has nothing to replay of the others."""
        if n == 1:
            return None
        return min(self.near, key=lambda o: abs(math.log(n / o.n)), default=None)

    def factors(self, n: float, near: Observation) -> dict[str, float]:
        """How much longer the device's work lasts on `n` GPUs than in the run `near`."""

        def ratio(fit: ClassFit | None) -> float:
            return fit.at(n) / before if fit and (before := fit.at(near.n)) > 0.0 else 1.0

        moved = ratio(self.moved)
        return {name: ratio(self.fits.get(name)) for name in RESIZED} | {HOPS: moved, BYTES: moved}


def fit_classes(runs: Sequence[Observation], mode: Mode, moving: Sequence[str] = ()) -> ClassLaw:
    """Growth of every class; `moving` are the families tried for communication."""
    steps = {o.n: o.step for o in runs}
    names = sorted({name for o in runs for name in o.classes} - set(EXPOSED))
    fits = {
        name: fit_class(
            {o.n: o.classes.get(name, 0.0) for o in runs}, steps, growth.tried(name, mode)
        )
        for name in names
    }
    # Hidden communication is no part of the step: its residuals are parts of itself.
    moves = {o.n: o.moved for o in runs if o.moved > 0.0}
    moved = fit_class(moves, moves, moving or growth.TRANSFER)
    near = [o for o in runs if o.resize is not None and o.n > 1]
    return ClassLaw(fits, moved, hiding([o.traffic for o in runs]), near)
