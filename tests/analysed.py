"""What the package makes of a trace that a test has just built, in microseconds of its scene."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from make import SCENE_NS, TraceBuilder

from analyzer.classify.breakdown import Breakdown, classify
from analyzer.classify.kernels import KernelRules
from analyzer.config import Settings, Thresholds
from analyzer.digest import DeviceSpan, RankDigest, StepRecord, digest
from analyzer.timeline.launches import Launches, link
from analyzer.trace import kineto
from analyzer.trace.schema import Int64, Trace


def read(builder: TraceBuilder, folder: Path) -> Trace:
    """The trace as the reader gives it."""
    return kineto.read(builder.write(folder / "trace.json"))


def linked(builder: TraceBuilder, folder: Path) -> tuple[Trace, Launches]:
    """The trace and who launched its work."""
    trace = read(builder, folder)
    return trace, link(trace)


def broken_down(builder: TraceBuilder, folder: Path, start: int, end: int) -> Breakdown:
    """The breakdown of [start, end) microseconds of the scene."""
    trace, launches = linked(builder, folder)
    edges = SCENE_NS + start * 1000, SCENE_NS + end * 1000
    return classify(trace, launches, KernelRules(), *edges, Thresholds())


def digested(builder: TraceBuilder, folder: Path, settings: Settings | None = None) -> RankDigest:
    """The digest of the trace."""
    return digest(builder.write(folder / "trace.json"), settings or Settings())


def windows(found: RankDigest) -> list[StepRecord | DeviceSpan]:
    """Every window that is split into classes: the steps, used or not, and the whole recording."""
    return [*found.steps, found.span]


def split(builder: TraceBuilder, folder: Path) -> dict[str, float]:
    """Classes from the first start to the last end on the device."""
    return micros(digested(builder, folder).span.ns)


def causes(builder: TraceBuilder, folder: Path) -> dict[str, float]:
    """Idle time by cause in the used steps (without marks: in the whole recording)."""
    return micros({record.cause: record.ns for record in digested(builder, folder).causes})


def micros(ns: Mapping[str, int]) -> dict[str, float]:
    """Nanoseconds as microseconds; what is zero is left out."""
    return {name: value / 1000 for name, value in ns.items() if value}


def spans(start: Int64, end: Int64) -> list[tuple[float, float]]:
    """Absolute intervals as (start, end) microseconds of the scene."""
    both = (np.stack([start, end], axis=1) - SCENE_NS) / 1000
    return [(float(a), float(b)) for a, b in both]
