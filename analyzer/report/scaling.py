"""The document on several world sizes: plain values, versioned, JSON both ways.

Times are milliseconds per step. Speedups and efficiencies are against the smallest run (`base`):
of the step where the total work is fixed, of throughput where the batch of a GPU is. A number that
cannot be known is null and the `reason` beside or around it says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import UnusableInput
from analyzer.report.document import (
    SCHEMA_VERSION,
    Caveat,
    Estimate,
    Finding,
    Knee,
    Plan,
    Tool,
    Verdict,
)
from analyzer.report.part import Part


class ScalePoint(Part, frozen=True, kw_only=True):
    """A run that was measured. `lo` and `hi` are the 95 % interval of the mean step over `steps`;
    `karp_flatt` is the serial fraction of the smallest run that would explain the speedup, null at
    that run itself; `serial_ms` is what of the step more GPUs do not share.
    """

    n: int
    label: str
    steps: int
    step_ms: float
    lo: float | None
    hi: float | None
    speedup: float
    efficiency: float
    karp_flatt: float | None
    karp_flatt_lo: float | None
    karp_flatt_hi: float | None
    ms: dict[str, float]
    hidden_comm_ms: float
    serial_ms: float
    reason: str = ""


class Series(Part, frozen=True, kw_only=True):
    """How the serial fractions move: flat, rising, falling, superlinear, slow-down or unknown."""

    trend: str
    text: str


class FittedLaw(Part, frozen=True, kw_only=True):
    """A law: classes, usl or amdahl. `loo_error` is the root mean square of the relative errors of
    each size predicted from the others; `support` is full, weak or none.
    """

    id: str
    parameters: dict[str, float | None]
    loo_error: float | None
    best: bool
    support: str
    reason: str = ""


class FittedClass(Part, frozen=True, kw_only=True):
    """Growth of one class: its family, what that means, the terms (shape of N, ms) that sum to
    `fit` at each size, and the trend: falls, flat or grows.
    """

    class_: str = msgspec.field(name="class")
    family: str
    text: str
    terms: list[tuple[str, float]]
    trend: str
    points: list[tuple[int, float]]
    fit: list[tuple[int, float]]
    residual: float


class FittedLink(Part, frozen=True, kw_only=True):
    """Latency of a hop and bandwidth of a rank's link, from transfer times; null with the reason
    where they cannot be told apart, or the bytes took no time that could be measured.
    """

    kind: str
    group: str
    rows: int
    latency_us: float | None
    bandwidth_gbs: float | None
    residual: float | None
    reason: str = ""


class ScalePrediction(Part, frozen=True, kw_only=True):
    """The job on `n` GPUs by the best law, with its interval; `after` are (fixes, ms) once the
    first so many of the plan's fixes are made. Null with the reason where it is refused.
    """

    n: int
    step_ms: float | None
    lo: float | None
    hi: float | None
    speedup: float | None
    efficiency: float | None
    beyond: bool
    after: list[tuple[int, float]] = msgspec.field(default_factory=list)
    reason: str = ""


class ScalingReport(Part, frozen=True, kw_only=True):
    """Several world sizes. `order` are the what-if edits of the largest run that gain in turn, and
    `findings` its first ones; `ceiling` the best speedup over the smallest run that any number of
    GPUs gives, at `ceiling_n`.
    """

    schema_version: int
    kind: str
    tool: Tool
    created: str
    verdict: Verdict
    label: str
    mode: str
    base: int
    points: list[ScalePoint]
    series: Series
    laws: list[FittedLaw]
    classes: list[FittedClass]
    links: list[FittedLink]
    predict: list[ScalePrediction]
    ceiling: Estimate
    ceiling_n: int | None
    knee: Knee | None
    order: list[str]
    findings: list[Finding]
    plan: Plan | None
    assumptions: list[str]
    differences: list[str]
    quality: list[Caveat]
    reason: str = ""


def dumps(report: ScalingReport) -> bytes:
    """The report as UTF-8 JSON, two-space indent, one trailing newline, same bytes each time."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def loads(text: bytes, name: str = "scaling.json") -> ScalingReport:
    """The report written by `dumps`; UnusableInput when it is something else or newer."""
    try:
        read = msgspec.json.decode(text, type=ScalingReport)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(
            f"{name}: not a scaling report of this program ({error})", "give one it wrote"
        ) from error
    if read.schema_version != SCHEMA_VERSION:
        raise UnusableInput(
            f"{name}: schema_version is {read.schema_version}, this program reads {SCHEMA_VERSION}",
            "make the report again with this version, or use the version that wrote it",
        )
    return read


def is_scaling(path: Path) -> bool:
    """Whether a file says that it is a scaling report; UnusableInput when it cannot be read."""
    try:
        found: Any = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise UnusableInput(f"{path.name}: cannot be read ({error.strerror or error})") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == "scaling"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scaling report."""
    return msgspec.json.schema(ScalingReport)
