"""The plan as plain values: how long does the whole run take, on how many GPUs, at what price?

Times are seconds of the whole run or ms per step; a number that cannot be known is null and a
`reason` says why. `fixes` count what-if edits made one after the other, in the order of `order`.
"""

from __future__ import annotations

import msgspec

from analyzer.report.part import Part


class PlanRow(Part, frozen=True, kw_only=True):
    """The whole run on `n` GPUs after the first `fixes` of the plan's order.

    `cost` is null without a price; `beyond` says that `n` is more than four times what was
    measured; `reason` says why the rest is null.
    """

    n: int
    fixes: int
    step_ms: float | None
    duration_s: float | None
    gpu_hours: float | None
    cost: float | None
    beyond: bool
    reason: str = ""


class Road(Part, frozen=True, kw_only=True):
    """One of two roads to a faster run on `n` GPUs: "amdahl" keeps the job and takes out what does
    not scale (`fixes` of the order, all of them), "gustafson" keeps the job as it runs and lets the
    batch grow with the GPUs, so that fewer steps see the same data.

    `speedup` is against today's run; `limit_s` is the shortest run that any number of GPUs gives,
    null for gustafson, which has none.
    """

    id: str
    n: int
    fixes: int
    step_ms: float
    speedup: float
    duration_s: float
    limit_s: float | None
    limit_n: int | None
    reason: str = ""


class Factor(Part, frozen=True, kw_only=True):
    """One factor of a path: `what` is the id of an edit or "gpus"; `basis` is replay or fit."""

    what: str
    speedup: float
    basis: str


class PlanPath(Part, frozen=True, kw_only=True):
    """The first `fixes` of the order on `n` GPUs reach the target; `factors` multiply to `speedup`,
    which today's run over `duration_s` is.
    """

    n: int
    fixes: int
    duration_s: float
    gpu_hours: float
    cost: float | None
    beyond: bool
    speedup: float
    factors: list[Factor]


class Target(Part, frozen=True, kw_only=True):
    """What reaches a run of `target_s`: `paths` with the fewest GPUs for each number of fixes, the
    one with the fewest GPU-hours first. Without one, `ceiling_s` is the shortest run there is (all
    fixes, on `ceiling_n` GPUs) and `left_ms` what its step still consists of, most first.
    """

    target_s: float
    speedup: float
    paths: list[PlanPath]
    ceiling_s: float
    ceiling_n: int
    left_ms: list[tuple[str, float]]
    step_ms: float
    text: str


class Plan(Part, frozen=True, kw_only=True):
    """The whole run from today's `n` GPUs and `today_s` on. `price` is of a GPU-hour, in whatever
    currency it was given.

    `order` are the what-if edits that gain most, each after the ones before; `reason` says why
    there are none.
    """

    n: int
    today_s: float
    price: float | None
    order: list[str]
    rows: list[PlanRow]
    roads: list[Road]
    target: Target | None
    assumptions: list[str] = msgspec.field(default_factory=list)
    reason: str = ""
