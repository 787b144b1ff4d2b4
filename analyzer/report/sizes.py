"""How long is a step at another size, after fixes? By the fit and the largest run's replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.scaling.fit import ScalingFit
from analyzer.scaling.observe import BYTES, HOPS
from analyzer.whatif.resize import Resizer


class Sizes:
    """Steps at other sizes by the fit, after fixes by the replay of the largest run."""

    def __init__(self, found: ScalingFit, largest: Resizer | None) -> None:
        self.fit, self.resize = found, largest

    def _factors(self, n: int) -> dict[str, float]:
        return self.fit.by_class.factors(n, self.fit.seen[-1])

    def steps(self, fixes: Sequence[str], sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs: the fit, times what the fixes leave of a step there."""
        plain = [self.fit.step(n) for n in sizes]
        if not fixes or self.resize is None:
            return plain
        wanted = [self._factors(n) for n in sizes]
        before, after = self.resize.steps(wanted), self.resize.after(fixes).steps(wanted)
        return [p * a / b for p, a, b in zip(plain, after, before, strict=True)]

    def grown(self, sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs with the batch of a GPU as it is: only communication grows."""
        today = self.fit.seen[-1]
        if self.resize is None:
            more = [self._factors(n)[BYTES] for n in sizes]
            return [today.step + today.traffic.exposed * (ratio - 1.0) for ratio in more]
        return self.resize.steps(
            [{key: self._factors(n)[key] for key in (HOPS, BYTES)} for n in sizes]
        )

    def classes(self, fixes: Sequence[str], n: int) -> Mapping[str, float]:
        """ns by class on `n` GPUs."""
        if self.resize is None:
            return self.fit.by_class.classes_at(n)
        return self.resize.after(fixes).classes(self._factors(n))
