"""A trace file -> RankDigest: all that the analysis of many ranks needs of one, some kB to some MB.

Nothing else crosses a process or a machine. Times are integer ns; sums are over the used steps
unless the field says otherwise. Saved as MessagePack with a version, data only.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec
import numpy as np

from analyzer.classify import tables
from analyzer.classify.breakdown import Breakdown, classify
from analyzer.classify.classes import CLASSES, COMM_UNSPLIT
from analyzer.classify.coverage import coverage
from analyzer.classify.evidence import Evidence, gather
from analyzer.classify.idle import CAUSES
from analyzer.classify.kernels import KernelRules, is_kernel_launch
from analyzer.classify.program import program
from analyzer.classify.replayable import Program
from analyzer.classify.saved import why_impossible
from analyzer.classify.tables import CauseRecord, CollectiveRecord, KernelRecord
from analyzer.config import Settings
from analyzer.errors import UnusableInput
from analyzer.timeline import launches as launching
from analyzer.timeline import steps as stepping
from analyzer.timeline.intervals import Intervals
from analyzer.timeline.sampling import carried
from analyzer.timeline.steps import Steps
from analyzer.trace import kineto
from analyzer.trace.inflate import Text
from analyzer.trace.overruns import clamped
from analyzer.trace.schema import Kind, Trace, TraceMeta
from analyzer.trace.stores import TracePath

DIGEST_VERSION = 4
STRIP_BINS = 96
MADE_WITH = "make it with: ceiling digest TRACE -o DIR"


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step window [start, end); `dropped` says why it is not used, "" when it is. `phase` is
    what a serving engine did in it, "" for other programs.
    """

    index: int
    start: int
    end: int
    dropped: str
    ns: dict[str, int]
    hidden_ns: int
    phase: str = ""


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """One used step as STRIP_BINS equal stretches, each named so that all together keep the
    shares of the classes.
    """

    step: int
    start: int
    end: int
    classes: list[str]


class DeviceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Classes over the whole recording, first device start to last device end, steps or not."""

    start: int
    end: int
    ns: dict[str, int]
    hidden_ns: int


class RankDigest(msgspec.Struct, frozen=True, kw_only=True):
    """One trace file, reduced; `exposed_comm` is where only communication runs."""

    version: int
    meta: TraceMeta
    timeline: str
    step_rule: str
    marked: bool
    steps: list[StepRecord]
    span: DeviceSpan
    causes: list[CauseRecord]
    kernels: list[KernelRecord]
    collectives: list[CollectiveRecord]
    exposed_comm: list[tuple[int, int]]
    strip: Strip | None
    evidence: Evidence
    unlinked_share: float | None
    program: Program | None

    @property
    def used(self) -> list[StepRecord]:
        """The steps that count."""
        return [step for step in self.steps if not step.dropped]


def digest(path: TracePath, settings: Settings) -> RankDigest:
    """The digest of one trace file; UnusableInput (with file name and reason) when it has none."""
    return reduce(kineto.read(path), settings)


def class_times(path: TracePath, settings: Settings) -> dict[str, Intervals]:
    """The times of each class over steps and device work, for those who want more than sums.

    They are too many for a digest, so the file is read for them.
    """
    trace = kineto.read(path)
    launches = launching.link(trace)
    steps = stepping.find(trace, launches, settings.step_pattern, settings.thresholds)
    rules = KernelRules(settings.kernels)
    start, end = _extent(trace, steps)
    return classify(trace, launches, rules, start, end, settings.thresholds).classes


def reduce(trace: Trace, settings: Settings) -> RankDigest:
    """The digest of a trace that was read."""
    _require_work(trace)
    trace = clamped(trace)
    limits = settings.thresholds
    launches = launching.link(trace)
    steps = stepping.find(trace, launches, settings.step_pattern, limits)
    rules = KernelRules(settings.kernels)
    start, end = _extent(trace, steps)
    covered = coverage(trace, launches, steps)
    found = classify(trace, launches, rules, start, end, limits, lost=covered.lost)
    used = steps.windows
    linked = float(launches.linked.mean()) if len(trace.device) else None
    return RankDigest(
        version=DIGEST_VERSION,
        meta=trace.meta,
        timeline=found.timeline,
        step_rule=steps.rule,
        marked=steps.marked,
        steps=_step_records(steps, found),
        span=_span(trace, found, start, end),
        causes=tables.causes(trace, launches, found, used),
        kernels=tables.kernel_table(trace, found, rules, used),
        collectives=tables.collectives(trace, found, rules, steps),
        exposed_comm=_pairs(found.classes[COMM_UNSPLIT]),
        strip=_strip(steps, found),
        evidence=gather(trace, launches, found, rules, used, covered, limits),
        unlinked_share=None if linked is None else 1.0 - linked,
        program=program(trace, launches, found, steps),
    )


def _strip(steps: Steps, found: Breakdown) -> Strip | None:
    """The middle one of the used steps; None without any."""
    if not len(steps.used):
        return None
    chosen = int(steps.used[len(steps.used) // 2])
    start, end = int(steps.edges[chosen]), int(steps.edges[chosen + 1])
    bins = np.linspace(start, end, STRIP_BINS + 1).astype(np.int64)
    names = [CLASSES[i] for i in carried(found.per_window(bins))]
    return Strip(step=steps.index[chosen], start=start, end=end, classes=names)


def _pairs(times: Intervals) -> list[tuple[int, int]]:
    return list(zip(times.start.tolist(), times.end.tolist(), strict=True))


def _require_work(trace: Trace) -> None:
    """UnusableInput for a recording of nothing, and for a device job without its device.

    A GPU job whose kernels were not recorded would read as a run on the host that never waits.
    """
    if len(trace.device):
        return
    meta = trace.meta
    launches = len(trace.host_named(is_kernel_launch, Kind.RUNTIME))
    if meta.truncated and (launches or meta.backend == "nccl"):
        raise UnusableInput(
            f"{meta.name} ({meta.size:,} bytes): cut off before the work of the device, which is "
            "written after that of the host",
            "copy the file again, or wait until the profiler has written all of it",
        )
    if not launches and len(trace.host.rows(Kind.OP, Kind.ANNOTATION)):
        return
    held = f"{launches:,} kernel launches, but no kernel" if launches else "no operator or kernel"
    counts = ", ".join(f"{c.count:,} {c.name or 'without category'}" for c in meta.categories)
    raise UnusableInput(
        f"{meta.name} ({meta.size:,} bytes): {held} was recorded (events: {counts})",
        "record with ProfilerActivity.CPU and the device's activity",
    )


def _extent(trace: Trace, steps: Steps) -> tuple[int, int]:
    """Steps and device work together, so that one sweep serves both."""
    start, end = int(steps.edges[0]), int(steps.edges[-1])
    if len(trace.device):
        start, end = min(start, int(trace.device.ts.min())), max(end, int(trace.device.end.max()))
    return start, end


def _step_records(steps: Steps, found: Breakdown) -> list[StepRecord]:
    table = found.per_window(steps.edges).tolist()
    hidden = found.hidden.within(steps.edges).tolist()
    edges = steps.edges.tolist()
    return [
        StepRecord(
            index=steps.index[i],
            start=edges[i],
            end=edges[i + 1],
            dropped=steps.dropped[i],
            ns=dict(zip(CLASSES, table[i], strict=True)),
            hidden_ns=hidden[i],
            phase=steps.phase[i],
        )
        for i in range(len(steps.index))
    ]


def _span(trace: Trace, found: Breakdown, start: int, end: int) -> DeviceSpan:
    if len(trace.device):
        start, end = int(trace.device.ts.min()), int(trace.device.end.max())
    edges = np.array([start, end], np.int64)
    ns = found.per_window(edges)[0].tolist()
    return DeviceSpan(
        start=start,
        end=end,
        ns=dict(zip(CLASSES, ns, strict=True)),
        hidden_ns=int(found.hidden.within(edges)[0]),
    )


def packed(rank: RankDigest) -> bytes:
    """The digest as a file's content; the same digest gives the same bytes."""
    return gzip.compress(msgspec.msgpack.encode(rank), mtime=0)


def save(rank: RankDigest, path: Path) -> None:
    """Writes the digest."""
    path.write_bytes(packed(rank))


def load(path: Path) -> RankDigest:
    """The digest in `path`; UnusableInput when it is none, damaged, or of another version."""
    text = Text(path)
    try:
        packed = b"".join(text)
        if text.cut or text.damage:
            raise msgspec.DecodeError(text.damage or "the archive is cut off")
        version = msgspec.msgpack.decode(packed, type=_Versioned).version
        if version != DIGEST_VERSION:
            raise UnusableInput(
                f"{path.name}: digest version {version}, this program reads {DIGEST_VERSION}",
                "make the digest again with this version",
            )
        rank = msgspec.msgpack.decode(packed, type=RankDigest)
        if why := _why_impossible(rank):
            raise msgspec.ValidationError(why)
        return _shared(rank)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnusableInput(
            f"{path.name}: not a digest of this program ({error})", MADE_WITH
        ) from error


def _why_impossible(rank: RankDigest) -> str:
    """What contradicts itself in a digest, which anybody may have made; "" where nothing does."""
    index = [step.index for step in rank.steps]
    if len(set(index)) < len(index):
        return "a step is in it twice"
    windows: list[StepRecord | DeviceSpan] = [*rank.steps, rank.span]
    for window in windows:
        if set(window.ns) != set(CLASSES) or min(*window.ns.values(), window.hidden_ns) < 0:
            return "the classes of a step are not those of this program, or are below zero"
        if sum(window.ns.values()) != window.end - window.start:
            return "the classes of a step do not sum to its time"
    used = {step.index for step in rank.used}
    if any(record.step not in {None, *used} for record in rank.collectives):
        return "a collective is in a step that is not used"
    if any(record.end < record.start for record in rank.collectives):
        return "a collective ends before it starts"
    if {cause.cause for cause in rank.causes} - set(CAUSES):
        return "a cause of idle time is not one of this program"
    if rank.strip is not None and set(rank.strip.classes) - set(CLASSES):
        return "a class of the strip is not one of this program"
    return "" if rank.program is None else why_impossible(rank.program)


def _shared(rank: RankDigest) -> RankDigest:
    """The same with each text in memory once: a large job repeats a few names millions of times."""
    share = msgspec.structs.force_setattr
    for record in rank.collectives:
        for name in ("kind", "name", "group", "ranks", "stream"):
            share(record, name, sys.intern(getattr(record, name)))
    return rank


class _Versioned(msgspec.Struct):
    version: int
