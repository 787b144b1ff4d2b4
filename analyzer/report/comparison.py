"""Two sides of the same job, before and after a change: plain values, versioned, JSON both ways.

Times are ms per rank and step, shares parts of the step. Deltas are after minus before, so a
negative one is time saved. A number that is not known is `None` with a `reason` beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import UnusableInput
from analyzer.report.document import Breakdown, Run, Scaling, Steps, Tool
from analyzer.report.part import Part

SCHEMA_VERSION = 1


class Ratio(Part, frozen=True, kw_only=True):
    """Step after over step before, with its 95 % interval; `basis` is runs, steps or none: what was
    taken as the unit. `reason` says why the interval is null.
    """

    value: float
    lo: float | None
    hi: float | None
    basis: str
    reason: str = ""


class Outcome(Part, frozen=True, kw_only=True):
    """The first sentence, and what it says: faster, slower, no-clear-change, mixed or
    not-comparable. `causes` are the classes it names; `sure` says how far it can be trusted.
    """

    text: str
    outcome: str
    ratio: Ratio | None
    causes: list[str]
    sure: str


class Differs(Part, frozen=True, kw_only=True):
    """Something about the sides that is not the same; `why` says what that does to a comparison."""

    id: str
    title: str
    before: str
    after: str
    blocking: bool
    why: str


class Comparable(Part, frozen=True, kw_only=True):
    """Whether the sides can be compared; `forced` when they were although they cannot."""

    ok: bool
    differences: list[Differs]
    forced: bool = False


class RunRow(Part, frozen=True, kw_only=True):
    """One run of a side: its step, with the interval over its `n` steps."""

    label: str
    mean_ms: float
    median_ms: float
    lo: float | None
    hi: float | None
    n: int


class Side(Part, frozen=True, kw_only=True):
    """One side. `breakdown` and `steps.wall_ms` are means over its runs; `run`, `scaling` and the
    numbers of the steps are those of the run whose step is the middle one.
    """

    label: str
    runs: list[RunRow]
    run: Run
    steps: Steps
    breakdown: Breakdown
    scaling: Scaling


class Bar(Part, frozen=True, kw_only=True):
    """A class before and after; the deltas of all bars add up to that of the step.

    `clear` where the change is no chance, all bars judged together.
    """

    class_: str = msgspec.field(name="class")
    before_ms: float
    after_ms: float
    delta_ms: float
    lo: float | None
    hi: float | None
    clear: bool
    reason: str = ""


class FindingChange(Part, frozen=True, kw_only=True):
    """A bottleneck on both sides or on one. status: fixed, better, same, worse or new.

    `note` says where it may only have crossed its threshold; the gains are speedups.
    """

    id: str
    title: str
    class_: str = msgspec.field(name="class")
    status: str
    before_ms: float | None
    after_ms: float | None
    delta_ms: float
    after_share: float | None
    before_gain: float | None
    after_gain: float | None
    note: str = ""


class Moved(Part, frozen=True, kw_only=True):
    """Work of one name on both sides: kernel, collective or op. status: both, added, removed, or
    unlisted where the other side lists only its largest names.

    `by_count_ms` is what changed because it runs more often, `by_duration_ms` because each takes
    longer; they add up to `delta_ms` and are null where a side lacks the name.
    """

    name: str
    kind: str
    status: str
    before_count: float
    after_count: float
    before_ms: float
    after_ms: float
    delta_ms: float
    by_count_ms: float | None
    by_duration_ms: float | None


class Forecast(Part, frozen=True, kw_only=True):
    """What a what-if of BEFORE promised for a finding that is fixed or better: ms off the step, for
    the `part` of it that went, and what was measured for the whole step.

    `shared` where other findings changed too, so that the measured time is not this one's alone.
    `basis` is replay or share; a share is an upper bound.
    """

    finding: str
    whatif: str
    basis: str
    part: float
    promised_ms: float
    measured_ms: float
    lo: float | None
    hi: float | None
    shared: bool
    text: str


class Gate(Part, frozen=True, kw_only=True):
    """A condition that fails or warns. `found` is the end of the interval it was judged by."""

    expression: str
    level: str
    passed: bool
    expected: str
    found: str


class Comparison(Part, frozen=True, kw_only=True):
    """Before and after. Field order is the order in compare.json."""

    schema_version: int
    tool: Tool
    created: str
    verdict: Outcome
    comparable: Comparable
    before: Side
    after: Side
    waterfall: list[Bar]
    findings: list[FindingChange]
    forecasts: list[Forecast]
    kernels: list[Moved]
    collectives: list[Moved]
    ops: list[Moved]
    gates: list[Gate]
    runs_needed: int | None
    margin: float


def dumps(comparison: Comparison) -> bytes:
    """The comparison as UTF-8 JSON, two-space indent, one trailing newline."""
    return msgspec.json.format(msgspec.json.encode(comparison), indent=2) + b"\n"


def is_comparison(path: Path) -> bool:
    """Whether a file holds a comparison; what is no document of this program holds none."""
    try:
        return "waterfall" in msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def loads(text: bytes, name: str = "compare.json") -> Comparison:
    """The comparison written by `dumps`; UnusableInput when it is something else or newer."""
    try:
        version = msgspec.json.decode(text, type=dict[str, Any]).get("schema_version")
        if version != SCHEMA_VERSION:
            raise UnusableInput(
                f"{name}: schema_version is {version!r}, this program reads {SCHEMA_VERSION}",
                "compare again with this version, or use the version that wrote it",
            )
        return msgspec.json.decode(text, type=Comparison)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(
            f"{name}: not a comparison of this program ({error})", "give a compare.json"
        ) from error


def read(path: Path) -> Comparison:
    """The comparison in a file; UnusableInput when it is none."""
    return loads(path.read_bytes(), path.name)
