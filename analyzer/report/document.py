"""The one document every painting is made from: plain values, versioned, JSON both ways.

Times are milliseconds, shares are fractions of the step, speedups are multiples. A number that
cannot be known is `None` and the `reason` beside or around it says why; it is never 0. What a trace
may leave unsaid about the run (flags, versions, sizes) is `None` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import UnusableInput
from analyzer.report.ceilings import Duration as Duration
from analyzer.report.ceilings import Estimate as Estimate
from analyzer.report.ceilings import Knee as Knee
from analyzer.report.ceilings import Limit as Limit
from analyzer.report.ceilings import Prediction as Prediction
from analyzer.report.ceilings import Scaling as Scaling
from analyzer.report.part import Ms, Multiple, Part, Part01
from analyzer.report.plan import Factor as Factor
from analyzer.report.plan import Plan as Plan
from analyzer.report.plan import PlanPath as PlanPath
from analyzer.report.plan import PlanRow as PlanRow
from analyzer.report.plan import Road as Road
from analyzer.report.plan import Target as Target
from analyzer.report.ranks import Clock as Clock
from analyzer.report.ranks import Collective as Collective
from analyzer.report.ranks import LateRank as LateRank
from analyzer.report.ranks import ProcessGroup as ProcessGroup
from analyzer.report.ranks import Ranks as Ranks
from analyzer.report.ranks import Strip as Strip
from analyzer.report.whatif import After as After
from analyzer.report.whatif import CriticalPath as CriticalPath
from analyzer.report.whatif import Edit as Edit
from analyzer.report.whatif import Interaction as Interaction
from analyzer.report.whatif import PathClass as PathClass
from analyzer.report.whatif import PathPlace as PathPlace
from analyzer.report.whatif import PathRank as PathRank
from analyzer.report.whatif import Turn as Turn
from analyzer.report.whatif import WhatIf as WhatIf

SCHEMA_VERSION = 1


class Tool(Part, frozen=True, kw_only=True):
    """Which program wrote the file."""

    name: str
    version: str


class Flags(Part, frozen=True, kw_only=True):
    """Profiler flags; None where the trace does not say."""

    with_stack: bool | None = None
    profile_memory: bool | None = None
    record_shapes: bool | None = None


class InputFile(Part, frozen=True, kw_only=True):
    """One input file. `rank` is None when the file was skipped; `reason` says why it was."""

    name: str
    rank: int | None
    bytes: int
    events: int
    cycle: int = 0
    rank_rule: str = ""
    reason: str = ""


class Run(Part, frozen=True, kw_only=True):
    """What ran: `world_size` is None when no file says and it cannot be concluded. `shapes` is the
    part of the matrix operators by name and input sizes, empty where sizes were not recorded.
    """

    label: str
    world_size: int | None
    ranks_present: list[int]
    hosts: list[str]
    gpu: str | None
    backend: str | None
    torch: str | None
    flags: Flags
    strategy: list[str]
    files: list[InputFile]
    shapes: dict[str, float] = msgspec.field(default_factory=dict)


class Caveat(Part, frozen=True, kw_only=True):
    """A defect of the data and what it forbids to conclude. severity: info, warning or error."""

    id: str
    severity: str
    text: str
    forbids: list[str]


class DroppedStep(Part, frozen=True, kw_only=True):
    """A step left out of all means, and why."""

    index: int
    why: str


class WallTime(Part, frozen=True, kw_only=True):
    """Step time over `n` steps (each the mean over ranks), with a 95 % interval of the mean.

    `reason` says why there is no interval.
    """

    mean: Ms
    median: Ms
    lo: float | None
    hi: float | None
    n: int
    reason: str = ""


class Phase(Part, frozen=True, kw_only=True):
    """Used iterations of a serving engine that prefill, decode, or do both (mixed): how many, and
    their mean length over them and the ranks.
    """

    name: str
    steps: list[int]
    mean_ms: float


class Steps(Part, frozen=True, kw_only=True):
    """Which steps were used, by which rule; `phases` where they are a serving engine's."""

    used: list[int]
    dropped: list[DroppedStep]
    wall_ms: WallTime
    rule: str
    phases: list[Phase] = msgspec.field(default_factory=list)


class RankRow(Part, frozen=True, kw_only=True):
    """Mean over the used steps of one rank; `ms` sums to `step_ms`, null where not measurable."""

    rank: int
    step_ms: Ms
    ms: dict[str, Ms | None]
    hidden_comm_ms: Ms | None

    @property
    def measured(self) -> dict[str, float]:
        """The classes that were measured."""
        return _known(self.ms)


class StepRow(Part, frozen=True, kw_only=True):
    """Mean over the ranks of one used step; `ms` sums to its time, null where not measurable."""

    step: int
    ms: dict[str, Ms | None]

    @property
    def measured(self) -> dict[str, float]:
        """The classes that were measured."""
        return _known(self.ms)


class Breakdown(Part, frozen=True, kw_only=True):
    """Exclusive classes that tile the step. `timeline` is "device", or "host" without a device;
    `reason` says why classes are null.
    """

    timeline: str
    classes: list[str]
    groups: dict[str, list[str]]
    mean_ms: dict[str, Ms | None]
    group_ms: dict[str, Ms | None]
    hidden_comm_ms: Ms | None
    per_rank: list[RankRow]
    per_step: list[StepRow]
    reason: str = ""

    @property
    def measured(self) -> dict[str, float]:
        """The classes that were measured."""
        return _known(self.mean_ms)


def _known(ms: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in ms.items() if value is not None}


class IdleCause(Part, frozen=True, kw_only=True):
    """Why the device was idle, finer than the classes; `ops` are the host ops seen meanwhile."""

    cause: str
    class_: str = msgspec.field(name="class")
    text: str
    ms: float
    ops: list[tuple[str, float]]


class Gain(Part, frozen=True, kw_only=True):
    """What fixing the finding is worth. basis "share" is an upper bound, not a gain; "replay" is
    the gain, with its 95 % interval over the steps, and `curve` the speedup when only a part of
    the cause goes: (part, speedup). `noise`: it cannot be told from noise.

    `reason` says why a field is null.
    """

    speedup: Multiple | None
    lo: float | None
    hi: float | None
    basis: str
    curve: list[tuple[Part01, Multiple]] = msgspec.field(default_factory=list)
    noise: bool = False
    reason: str = ""


class Place(Part, frozen=True, kw_only=True):
    """Where the time is: a kernel, op or annotation, with its time and occurrences per step.

    `count` is None where the name was only seen beside that time.
    """

    name: str
    ms: float
    count: float | None


class Spot(Part, frozen=True, kw_only=True):
    """Where to look in the recording: the step of one rank that has most of it, with the time range
    in us as that rank's `file` counts it (its "ts").
    """

    rank: int
    step: int
    cycle: int
    file: str
    start_us: float
    end_us: float
    ms: float


class Finding(Part, frozen=True, kw_only=True):
    """One bottleneck: title is the claim; because, so and check are sentences.

    `ms` per step and `share` of the step; `class` is the time class it lives in, and
    `ceiling_after` what 1/f becomes when it is fixed, `after` all fractions and ceilings then;
    `reason` says why they are null.
    """

    id: str
    title: str
    class_: str = msgspec.field(name="class")
    ms: Ms
    share: float
    gain: Gain
    whatif: str | None
    ceiling_after: float | None
    after: After | None = None
    because: str
    so: str
    check: str
    where: list[Place]
    confidence: str
    reason: str = ""
    spot: Spot | None = None


class Kernel(Part, frozen=True, kw_only=True):
    """Device time by kernel name, per rank and step; `share` is of the step."""

    name: str
    kind: str
    count: float
    ms: float
    share: float


class Op(Part, frozen=True, kw_only=True):
    """Device work by the host op that launched it, per rank and step; `count` is of device work."""

    name: str
    count: float
    ms: float


class Unknown(Part, frozen=True, kw_only=True):
    """A trace category this tool has no rule for, with its time."""

    name: str
    category: str
    ms: float


class Verdict(Part, frozen=True, kw_only=True):
    """The first sentence. `finding` is the id it speaks of, None when nothing stands out."""

    text: str
    finding: str | None
    confidence: str


class Report(Part, frozen=True, kw_only=True):
    """Everything that is known about a run. Field order is the order in report.json."""

    schema_version: int
    tool: Tool
    created: str
    verdict: Verdict
    run: Run
    quality: list[Caveat]
    steps: Steps
    breakdown: Breakdown
    scaling: Scaling
    whatif: WhatIf
    findings: list[Finding]
    idle: list[IdleCause]
    ranks: Ranks
    collectives: list[Collective]
    kernels: list[Kernel]
    unknown: list[Unknown]
    passed: list[str]
    thresholds: dict[str, float]
    ops: list[Op] = msgspec.field(default_factory=list)
    plan: Plan | None = None


def dumps(report: Report) -> bytes:
    """The report as UTF-8 JSON, two-space indent, one trailing newline, same bytes each time."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def loads(text: bytes, name: str = "report.json") -> Report:
    """The report written by `dumps`; UnusableInput when it is something else or newer."""
    try:
        version = msgspec.json.decode(text, type=dict[str, Any]).get("schema_version")
        if version != SCHEMA_VERSION:
            raise UnusableInput(
                f"{name}: schema_version is {version!r}, this program reads {SCHEMA_VERSION}",
                "make the report again with this version, or use the version that wrote it",
            )
        report = msgspec.json.decode(text, type=Report)
        _require_possible(report.scaling)
        return report
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnusableInput(
            f"{name}: not a report of this program ({error})", "give a report.json or traces"
        ) from error


def _require_possible(facts: Scaling) -> None:
    """ValidationError for a share above 1 or a ceiling below 1: curves are drawn by them."""
    slack = 1e-9
    for share in (facts.f, facts.s):
        if any(x is not None and x > 1 + slack for x in (share.value, share.lo, share.hi)):
            raise msgspec.ValidationError("a share above 1 - at `$.scaling`")
    for ceiling in (facts.ceiling_today, facts.ceiling_one_gpu):
        if any(x is not None and x < 1 - slack for x in (ceiling.value, ceiling.lo, ceiling.hi)):
            raise msgspec.ValidationError("a ceiling below 1 - at `$.scaling`")


def read(path: Path) -> Report:
    """The report in a file; UnusableInput when it cannot be read or is no report."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UnusableInput(f"{path.name}: cannot be read ({error.strerror or error})") from error
    return loads(text, path.name)
