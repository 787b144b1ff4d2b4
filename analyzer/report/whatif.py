"""What-ifs as plain values: each edit, the edits in turn, and the path that sets the step's length.

Times are ms per step, speedups multiples of today's step. `f` and `s` are the shares that do not
shrink with more GPUs, of the step and of one GPU's (see Scaling), once the edit is made.
"""

from __future__ import annotations

import msgspec

from analyzer.report.part import Part


class After(Part, frozen=True, kw_only=True):
    """Serial fractions and ceilings of the run as an edit leaves it; `reason` says why a field is
    null.
    """

    f: float | None
    s: float | None
    ceiling_today: float | None
    ceiling_one_gpu: float | None
    reason: str = ""


class Edit(Part, frozen=True, kw_only=True):
    """One what-if: step time and speedup when it is done, from replay or from shares.

    `lo` and `hi` are the 95 % interval of the speedup over the steps. `curve` is the speedup when
    only a part of the cause goes: (part, speedup). `noise` is True where the gain is below what can
    be told from noise or from the replay's own error.
    """

    id: str
    step_ms: float | None
    speedup: float | None
    lo: float | None = None
    hi: float | None = None
    curve: list[tuple[float, float]] = msgspec.field(default_factory=list)
    after: After | None = None
    noise: bool = False
    reason: str = ""


class Turn(Part, frozen=True, kw_only=True):
    """One edit of the sequence that gains most at each turn; `step_ms` is after it and all before
    it, `gain_ms` what it takes off.
    """

    edit: str
    step_ms: float
    gain_ms: float
    after: After


class Interaction(Part, frozen=True, kw_only=True):
    """The two most worthwhile edits together: `ms` is what both gain beyond the sum of each.

    Positive: one hides what the other frees, so both are needed. Negative: they free the same time.
    """

    first: str
    second: str
    both_ms: float
    ms: float


class PathClass(Part, frozen=True, kw_only=True):
    """Time of a class on the critical path, and its time in the step that is off the path (it could
    take that much longer at no cost, if nothing else changed).
    """

    class_: str = msgspec.field(name="class")
    ms: float
    slack_ms: float


class PathPlace(Part, frozen=True, kw_only=True):
    """A kernel and the op that launched it on the path, or host time before a launch of that op."""

    name: str
    op: str
    class_: str = msgspec.field(name="class")
    ms: float
    count: int


class PathRank(Part, frozen=True, kw_only=True):
    """Time of the path on one rank."""

    rank: int
    ms: float


class CriticalPath(Part, frozen=True, kw_only=True):
    """What one replayed step waited for, back from its end, over all ranks; `classes` sum to
    `step_ms`, and so do `ranks`.
    """

    step: int
    step_ms: float
    classes: list[PathClass]
    ranks: list[PathRank]
    places: list[PathPlace]


class WhatIf(Part, frozen=True, kw_only=True):
    """All edits. basis: "replay" or "share"; `reason` says why there is no replay.

    `replay_error` is how far the replay of the unchanged run is from the recorded step, a fraction;
    `class_error` the same of the class that differs most, of the step. `quality` is "good" (under
    5 %), "fair" (under 10 %), or "poor" (then shares are given instead); None without a replay.
    """

    basis: str
    replay_error: float | None
    edits: list[Edit]
    class_error: float | None = None
    quality: str | None = None
    steps: list[int] = msgspec.field(default_factory=list)
    ranks: list[int] = msgspec.field(default_factory=list)
    assumptions: list[str] = msgspec.field(default_factory=list)
    sequence: list[Turn] = msgspec.field(default_factory=list)
    interaction: Interaction | None = None
    interaction_reason: str = ""
    path: CriticalPath | None = None
    path_reason: str = ""
    reason: str = ""
