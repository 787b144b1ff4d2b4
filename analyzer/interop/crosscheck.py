"""Do HTA's figures agree with ours, and where they do not, why?

HTA's own functions are given HTA's reading of a trace, then the same with one of its decisions
taken back after the other, then our columns, and last come our classes. So each difference between
two lines has the reason that stands beside the second. The window is the device's, first start to
last end; times in ns, shares of the window.
"""

from __future__ import annotations

import logging
import os
import textwrap
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.classify.breakdown import Breakdown, classify
from analyzer.classify.classes import COMPUTE, OPTIMIZER
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.config import Settings
from analyzer.errors import UnusableInput
from analyzer.interop import hta
from analyzer.render.format import percent, shorten
from analyzer.timeline import launches as launching
from analyzer.timeline.intervals import union
from analyzer.trace import kineto
from analyzer.trace.dialect import KIND_OF_CATEGORY, NOT_WORK
from analyzer.trace.schema import DEVICE_KINDS, Trace

# What its analyses print: a hundredth of a percent point.
SAME_SHARE = 0.00005
MOST_NAMES = 3

LAST_STEP = "HTA leaves out the last ProfilerStep (include_last_profiler_step=False)"
UNLAUNCHED = "HTA drops device work whose launch was not recorded, or came outside the steps"
STREAMED = "HTA counts whatever has a stream as device work"
ROUNDED = "HTA rounds starts up and ends down to whole microseconds"
NAMED = "HTA knows communication by nccl names alone, and memory by Memcpy and Memset"

UNEXPLAINED = "Not explained: the same device work should give the same window and idle time"


@dataclass(frozen=True)
class Figures:
    """A window and the shares of it without work, with computing, and with only other work.
    `overlap` is the part of communication that runs beside computing; None without communication.
    """

    window_ns: float
    idle: float
    compute: float
    other: float
    overlap: float | None

    def agrees(self, with_: Figures) -> bool:
        """Whether both print alike."""
        if abs(self.window_ns - with_.window_ns) > max(1.0, SAME_SHARE * with_.window_ns):
            return False
        mine = self.idle, self.compute, self.other, self.overlap or 0.0
        its = with_.idle, with_.compute, with_.other, with_.overlap or 0.0
        return all(abs(a - b) <= SAME_SHARE for a, b in zip(mine, its, strict=True))


@dataclass(frozen=True)
class Line:
    """Figures, where they come from, and why they are not those of the line before; "" for none
    and where they agree.
    """

    name: str
    figures: Figures
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """One file: HTA's figures first, ours last. `failure` is what HTA said instead of figures."""

    file: str
    lines: list[Line]
    failure: str = ""

    @property
    def agree(self) -> bool:
        """Whether HTA reports what we report."""
        return not self.failure and self.lines[0].figures.agrees(self.lines[-1].figures)


def check(path: Path, settings: Settings) -> Check:
    """The comparison on one file; UnusableInput when we cannot read it ourselves."""
    trace = kineto.read(path)
    classes = _classified(trace, settings)
    mine = ours(trace, classes)
    last = Line("ours", mine)
    its = hta.module("hta.common.trace").Trace
    # Its failures are of every kind, and they are what is to be told.
    try:
        # An absolute path, or else it is looked for below the folder.
        read = its(trace_files={0: os.path.abspath(path)}, trace_dir=os.curdir)
        read.parse_traces(use_multiprocessing=False)
        found = list(_stages(read, trace))
    except Exception as error:
        return Check(path.name, [last], _failure(error))
    return Check(path.name, _explained([*found, _own(found[-1].figures, trace, classes)]))


def _failure(error: Exception) -> str:
    """The kind of an error, its first line, and the function of HTA it came from."""
    said = [type(error).__name__, *str(error).splitlines()[:1]]
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f.name for f in frames if "hta" in Path(f.filename).parts]
    return ": ".join(filter(None, said)) + (f" (in {inside[-1]})" if inside else "")


def _own(exact: Figures, trace: Trace, classes: Breakdown) -> Line:
    """Our figures after those that HTA's functions give on our columns: only the names of kernels
    may make a difference, so that one in the window or the idle time has no reason.
    """
    mine = ours(trace, classes)
    same = Figures(mine.window_ns, mine.idle, exact.compute, exact.other, exact.overlap)
    reason = _reclassified(trace, classes) if exact.agrees(same) else UNEXPLAINED
    return Line("ours", mine, reason)


@contextmanager
def silence() -> Iterator[None]:
    """Without what HTA logs and warns of on the way, which is much and about itself."""
    logger = hta.module("hta.configs.config").logger
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _explained(stages: Sequence[Line]) -> list[Line]:
    """Lines that change something, with the reason; the first and the last in any case."""
    lines: list[Line] = []
    for place, line in enumerate(stages):
        same = bool(lines) and line.figures.agrees(lines[-1].figures)
        if not lines or not same:
            lines.append(line)
        elif place == len(stages) - 1:
            lines.append(replace(line, reason=""))
    return lines


def _stages(read: Any, trace: Trace) -> Iterator[Line]:
    """HTA's figures of its own reading, of less and less changed ones, and of our columns."""
    raw = {rank: frame.copy() for rank, frame in read.traces.items()}

    def anew(change: Callable[[Any], None]) -> Figures:
        read.traces = {rank: frame.copy() for rank, frame in raw.items()}
        change(read)
        return theirs(read)

    yield Line("HTA reports", anew(lambda t: t.align_and_filter_trace(False)))
    whole = anew(lambda t: t.align_and_filter_trace(True))
    yield Line("with the last step", whole, LAST_STEP)
    yield Line("with all device work", anew(lambda t: t._align_all_ranks()), UNLAUNCHED)
    others = _no_work(read, raw[0])

    def only_work(t: Any) -> None:
        t.traces[0] = t.traces[0][~t.traces[0]["index"].isin(others.index)]
        t._align_all_ranks()

    yield Line("device work alone", anew(only_work), f"{STREAMED}: {_listed(read, others)}")
    rows = int((read.traces[0]["stream"] != -1).sum())
    more = len(trace.device) - rows
    counted = f"; {abs(more):,} rows {'more' if more > 0 else 'fewer'} are device work to us"
    exact = theirs(hta.container({0: trace}))
    yield Line("in exact times", exact, ROUNDED + (counted if more else ""))


def _no_work(read: Any, frame: Any) -> Any:
    """Rows with a stream that are no device work: synchronisation records, operators."""
    table = read.symbol_table.get_sym_table()
    kinds = frame["cat"].map(lambda i: KIND_OF_CATEGORY.get(table[i].lower()))
    work = kinds.isin(DEVICE_KINDS) & ~frame["name"].map(lambda i: table[i] in NOT_WORK)
    return frame[(frame["stream"] != -1) & ~work]


def _listed(read: Any, rows: Any) -> str:
    table = read.symbol_table.get_sym_table()
    counts = rows["cat"].map(lambda i: table[i]).value_counts()
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"


def theirs(container: Any) -> Figures:
    """What HTA's functions make of a container with one rank."""
    row = (
        hta.module("hta.analyzers.breakdown_analysis")
        .BreakdownAnalysis.get_temporal_breakdown(container, visualize=False)
        .iloc[0]
    )
    overlap = float(
        hta.module("hta.analyzers.communication_analysis")
        .CommunicationAnalysis.get_comm_comp_overlap(container, visualize=False)
        .iloc[0]["comp_comm_overlap_pctg"]
    )
    window = float(row["kernel_time(us)"])
    return Figures(
        window_ns=window * hta.NS_PER_US,
        idle=float(row["idle_time(us)"]) / window,
        compute=float(row["compute_time(us)"]) / window,
        other=float(row["non_compute_time(us)"]) / window,
        overlap=None if np.isnan(overlap) else overlap / 100,
    )


def ours(trace: Trace, found: Breakdown) -> Figures:
    """Our classes over the device's window."""
    device = trace.device
    window = int(device.end.max()) - int(device.ts.min())
    busy = union(device.ts, device.end).total
    compute = found.classes[COMPUTE].total + found.classes[OPTIMIZER].total
    communicating = np.isin(found.activity, (Activity.COMMUNICATION, Activity.FUSED))
    moving = union(device.ts[communicating], device.end[communicating]).total
    return Figures(
        window_ns=window,
        idle=(window - busy) / window,
        compute=compute / window,
        other=(busy - compute) / window,
        overlap=found.hidden.total / moving if moving else None,
    )


def _classified(trace: Trace, settings: Settings) -> Breakdown:
    """The classes over the device's window; UnusableInput without device work."""
    device = trace.device
    if not len(device) or int(device.end.max()) <= int(device.ts.min()):
        raise UnusableInput(
            f"{trace.meta.name}: no device work was recorded, and HTA's figures are of the device",
            "record with the device's activity, or read the report on the host's timeline",
        )
    rules, limits = KernelRules(settings.kernels), settings.thresholds
    start, end = int(device.ts.min()), int(device.end.max())
    return classify(trace, launching.link(trace), rules, start, end, limits)


def _reclassified(trace: Trace, found: Breakdown) -> str:
    """Which kernels are something else to HTA, most time first."""
    kind_of = hta.module("hta.utils.utils").get_kernel_type
    theirs_of = [kind_of(name) for name in trace.names]
    ns: Counter[str] = Counter()
    for name, kind, length in zip(
        trace.device.name.tolist(), found.activity.tolist(), trace.device.dur.tolist(), strict=True
    ):
        if theirs_of[name] != _THEIR_NAME[Activity(kind)]:
            ns[f"{shorten(trace.names[name], 60)} is {Activity(kind).name.lower()}"] += length
    most = "; ".join(name for name, _ in ns.most_common(MOST_NAMES))
    return f"{NAMED}: {most}" if most else NAMED


_THEIR_NAME = {
    Activity.COMPUTE: "COMPUTATION",
    Activity.OPTIMIZER: "COMPUTATION",
    Activity.COMMUNICATION: "COMMUNICATION",
    Activity.FUSED: "COMMUNICATION",
    Activity.COPY: "MEMORY",
}


def text(checks: Sequence[Check]) -> str:
    """The comparisons for a terminal: a line of figures, and below it why they changed."""
    lines: list[str] = []
    for one in checks:
        verdict = "HTA agrees" if one.agree else f"HTA fails: {one.failure}" if one.failure else ""
        lines += ["", f"{shorten(one.file, 79)}"] if lines else [shorten(one.file, 79)]
        lines += textwrap.wrap(verdict, 78, initial_indent="  ", subsequent_indent="  ")
        lines.append(
            f"  {'':22}{'window ms':>12}{'idle':>9}{'compute':>9}{'other':>9}{'overlap':>9}"
        )
        for line in one.lines:
            lines.append(f"  {line.name:22}{_figures(line.figures)}")
            lines += textwrap.wrap(line.reason, 78, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _figures(of: Figures) -> str:
    shares = (of.idle, of.compute, of.other)
    overlap = "-" if of.overlap is None else percent(of.overlap)
    return (
        f"{of.window_ns / 1e6:>12,.2f}" + "".join(f"{percent(s):>9}" for s in shares)
        + f"{overlap:>9}"
    )  # fmt: skip
