"""How long, on how many GPUs, at what price, and what reaches a target? The plan's arithmetic.

Every step is replayed or fitted: after fixes, at another size, or both at once. Nothing is a rule
of thumb, and what a fix is worth at one size is not carried over to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from analyzer.classify import classes as c
from analyzer.report.plan import Factor, Plan, PlanPath, PlanRow, Road, Target

NS_PER_MS = 1e6
HOUR_S = 3600.0
TRUSTED = 4
MOST_DOUBLINGS = 20
NO_REPLAY = "the run could not be replayed, so what fixes are worth at other sizes is not known"
_IDEAL = (
    "A fix is taken to remove its cause completely; what remains of it makes the run that much "
    "longer."
)
_SAME_RUN = "The run has as many steps of the same work as today, however many GPUs share it."
_BATCH = (
    "Growing the batch: as many samples as today in fewer, larger steps. Whether they still teach "
    "the network as much, no trace can tell."
)


def shown_fixes(order: Sequence[str]) -> list[int]:
    """How many fixes are shown together: none, the first, the first three or what there is."""
    return sorted({0, min(1, len(order)), min(3, len(order))})


class Sized(Protocol):
    """Steps of the job at other sizes."""

    def steps(self, fixes: Sequence[str], sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs, the job's total work fixed."""

    def grown(self, sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs, the batch of a GPU fixed."""

    def classes(self, fixes: Sequence[str], n: int) -> Mapping[str, float]:
        """ns by class on `n` GPUs."""


@dataclass(frozen=True)
class Wish:
    """What was asked: the run's length today, GPUs to plan for, price of a GPU-hour, a target."""

    duration_s: float
    gpus: tuple[int, ...] = ()
    price: float | None = None
    target_s: float | None = None


@dataclass(frozen=True)
class Today:
    """The run the plan starts from: `n` GPUs, of which `unit` go together; `order` are edits that
    gain in turn; `measured` the largest number of GPUs that was measured, `basis` replay or fit;
    `scaling` the classes that more GPUs share. Beyond `farthest` nothing is promised.
    """

    n: int
    unit: int
    step_ns: float
    order: tuple[str, ...]
    measured: int
    basis: str
    weak: bool
    scaling: frozenset[str] = frozenset()
    farthest: int | None = None
    reason: str = ""


def plan(wish: Wish, today: Today, sized: Sized) -> Plan:
    """The plan for a wish."""
    return _Planner(wish, today, sized).plan()


class _Planner:
    def __init__(self, wish: Wish, today: Today, sized: Sized) -> None:
        self.wish, self.today, self.sized = wish, today, sized
        self.order = list(today.order)
        self.doublings = [today.n * 2**k for k in range(MOST_DOUBLINGS) if today.n * 2**k < 2**20]

    def plan(self) -> Plan:
        """Everything."""
        asked = self.wish.gpus or tuple(self.today.n * 2**k for k in range(3))
        counts = shown_fixes(self.order)
        assumptions = [_SAME_RUN if not self.today.weak else _BATCH]
        if self.order:
            assumptions.append(_IDEAL)
        roads = [] if self.today.weak else self._roads(max(asked))
        if roads:
            assumptions.append(_BATCH)
        return Plan(
            n=self.today.n,
            today_s=self.wish.duration_s,
            price=self.wish.price,
            order=self.order,
            rows=[row for k in counts for row in self._rows(k, asked)],
            roads=roads,
            target=self._target(),
            assumptions=assumptions,
            reason=self.today.reason,
        )

    def _seconds(self, step_ns: float, n: int) -> float:
        """The whole run; where the batch of a GPU is fixed, more of them need fewer steps."""
        steps = self.today.n / n if self.today.weak else 1.0
        return self.wish.duration_s * step_ns / self.today.step_ns * steps

    def _price(self, n: int, seconds: float) -> tuple[float, float | None]:
        hours = n * seconds / HOUR_S
        return hours, None if self.wish.price is None else hours * self.wish.price

    def _rows(self, fixes: int, asked: Sequence[int]) -> list[PlanRow]:
        whole = [n for n in asked if n % self.today.unit == 0 and self._may(n)]
        steps = dict(
            zip(whole, self.sized.steps(self.order[:fixes], whole), strict=True) if whole else ()
        )
        rows = []
        for n in asked:
            beyond = n > TRUSTED * self.today.measured
            if n not in steps:
                reason = self._refusal(n)
                rows.append(
                    PlanRow(n=n, fixes=fixes, step_ms=None, duration_s=None, gpu_hours=None,
                            cost=None, beyond=beyond, reason=reason)
                )  # fmt: skip
                continue
            seconds = self._seconds(steps[n], n)
            hours, cost = self._price(n, seconds)
            rows.append(
                PlanRow(n=n, fixes=fixes, step_ms=steps[n] / NS_PER_MS, duration_s=seconds,
                        gpu_hours=hours, cost=cost, beyond=beyond)
            )  # fmt: skip
        return rows

    def _may(self, n: int) -> bool:
        return self.today.farthest is None or n <= self.today.farthest

    def _refusal(self, n: int) -> str:
        if not self._may(n):
            return f"Refused: {n:,} GPUs are more than four times the largest run"
        return f"{n:,} GPUs are no whole number of replicas of {self.today.unit}"

    def _roads(self, n: int) -> list[Road]:
        n = min(n, self.today.farthest or n)
        n = max(self.today.unit, n - n % self.today.unit)
        fixed = self.sized.steps(self.order, [n, *self.doublings])
        least = min(range(len(self.doublings)), key=lambda i: fixed[i + 1])
        grown = self.sized.grown([n])[0]
        seconds = self.wish.duration_s * fixed[0] / self.today.step_ns
        larger = self.wish.duration_s * grown / self.today.step_ns * self.today.n / n
        return [
            Road(
                id="amdahl",
                n=n,
                fixes=len(self.order),
                step_ms=fixed[0] / NS_PER_MS,
                speedup=self.wish.duration_s / seconds,
                duration_s=seconds,
                limit_s=self._seconds(fixed[least + 1], self.doublings[least]),
                limit_n=self.doublings[least],
                reason=self.today.reason,
            ),
            Road(
                id="gustafson",
                n=n,
                fixes=0,
                step_ms=grown / NS_PER_MS,
                speedup=self.wish.duration_s / larger,
                duration_s=larger,
                limit_s=None,
                limit_n=None,
                reason="no limit as long as the batch may grow with the GPUs",
            ),
        ]

    def _target(self) -> Target | None:
        target = self.wish.target_s
        if target is None:
            return None
        sizes = sorted({*(n for n in self.wish.gpus if n % self.today.unit == 0), *self.doublings})
        table = [
            self.sized.steps(self.order[:fixes], sizes) for fixes in range(len(self.order) + 1)
        ]
        found = [self._path(fixes, sizes, steps, target) for fixes, steps in enumerate(table)]
        paths = sorted(
            (path for path in found if path is not None),
            key=lambda p: (p.beyond, p.gpu_hours, p.fixes),
        )
        runs = [self._seconds(step, n) for step, n in zip(table[-1], sizes, strict=True)]
        best = min(range(len(sizes)), key=runs.__getitem__)
        left = self.sized.classes(self.order, sizes[best])
        listed = sorted(((name, ns / NS_PER_MS) for name, ns in left.items()), key=lambda x: -x[1])
        return Target(
            target_s=target,
            speedup=self.wish.duration_s / target,
            paths=paths,
            ceiling_s=runs[best],
            ceiling_n=sizes[best],
            left_ms=[(name, ms) for name, ms in listed if ms > 0.0],
            step_ms=table[-1][best] / NS_PER_MS,
            text=self._judged(paths, runs[best] <= target, listed),
        )

    def _path(
        self, fixes: int, sizes: Sequence[int], steps: Sequence[float], target: float
    ) -> PlanPath | None:
        """With so many fixes, the fewest GPUs that reach the target."""
        for n, step in zip(sizes, steps, strict=True):
            seconds = self._seconds(step, n)
            if seconds > target or not self._may(n):
                continue
            hours, cost = self._price(n, seconds)
            return PlanPath(
                n=n,
                fixes=fixes,
                duration_s=seconds,
                gpu_hours=hours,
                cost=cost,
                beyond=n > TRUSTED * self.today.measured,
                speedup=self.wish.duration_s / seconds,
                factors=self._factors(fixes, n, seconds),
            )
        return None

    def _judged(
        self, paths: Sequence[PlanPath], somewhere: bool, listed: Sequence[tuple[str, float]]
    ) -> str:
        """Why it cannot be reached and what would have to change; empty when it can."""
        if paths:
            return ""
        if somewhere:
            return (
                f"Only more than {self.today.farthest:,} GPUs, four times the largest run, might: "
                "measure a larger size, or force the prediction."
            )
        return _needed([x for x in listed if x[0] not in self.today.scaling])

    def _factors(self, fixes: int, n: int, seconds: float) -> list[Factor]:
        """What each fix gives on today's GPUs after those before it, then what the GPUs give."""
        left, factors = self.wish.duration_s, []
        for count in range(1, fixes + 1):
            here = self.sized.steps(self.order[:count], [self.today.n])[0]
            after = self._seconds(here, self.today.n)
            factors.append(Factor(what=self.order[count - 1], speedup=left / after, basis="replay"))
            left = after
        if n != self.today.n or not factors:
            factors.append(Factor(what="gpus", speedup=left / seconds, basis=self.today.basis))
        return factors


_SHRINKS = {
    c.COMPUTE: "less computing, or faster",
    c.OPTIMIZER: "an optimizer that is sharded or does less",
    c.COMM_TRANSFER: "fewer bytes or faster links",
    c.COMM_WAIT: "ranks that arrive together",
    c.COMM_UNSPLIT: "fewer bytes or faster links",
    c.DATA_LOADING: "a faster input pipeline",
    c.LAUNCH: "fewer, larger kernels or graphs of them",
}


def _needed(left: Sequence[tuple[str, float]]) -> str:
    """What would have to change, by the classes that GPUs do not share."""
    whole = sum(ms for _, ms in left)
    most = [name for name, ms in left if ms > 0.1 * whole][:2]
    changes = [_SHRINKS[name] for name in most if name in _SHRINKS]
    return f"It would take {' and '.join(changes) or 'less work in a step'}."
