"""Where one step ends and the next begins, so that the windows tile time.

A step ends when the last device work launched inside its mark ends; a host mark alone measures how
fast the host runs ahead. Window k is [end of step k-1, end of step k). The first window inherits an
unknown queue and the last may be cut, so both are left out where enough steps remain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.config import Thresholds
from analyzer.errors import UsageError
from analyzer.timeline import serving
from analyzer.timeline.intervals import Intervals, union
from analyzer.timeline.launches import Launches
from analyzer.trace.schema import NO_ID, Int64, Kind, Trace

PROFILER_STEP = r"ProfilerStep#(\d+)$"

MARKS_OVERLAP_NS = 10_000

RULE_DEVICE = (
    "A step lasts from the end of the last device work launched in the step before it to the end "
    "of the last device work launched in it."
)
RULE_HOST = "No device work was recorded: a step lasts from its host mark to the next one."
RULE_SERVING = (
    "A step is an iteration of the serving engine, by its annotation; it lasts from the end of the "
    "device work of the one before it to the end of its own."
)
RULE_WHOLE = "No usable step marks: the whole recorded window counts as one step."


@dataclass(frozen=True)
class Steps:
    """Windows [edges[i], edges[i+1]) of step `index[i]`; `dropped[i]` is "" for the used ones.

    `launched` is the step each device event was launched in, NO_ID where no mark tells; `called`
    is the time in which each step's calls were made: its host mark, or all without marks. `phase`
    is what a serving engine did in each; "" for other programs.
    """

    index: list[int]
    edges: Int64
    dropped: list[str]
    rule: str
    marked: bool
    launched: Int64
    called: tuple[Int64, Int64]
    phase: list[str]

    @property
    def used(self) -> npt.NDArray[np.intp]:
        """Positions of the used windows."""
        return np.flatnonzero([not why for why in self.dropped])

    @property
    def windows(self) -> Used:
        """The used windows as a set of time."""
        start, end = self.edges[:-1][self.used], self.edges[1:][self.used]
        return Used(union(start, end), start, end, np.array(self.index, np.int64)[self.used])


@dataclass(frozen=True)
class Used:
    """The used windows: a set of time, and the step each instant belongs to."""

    time: Intervals
    start: Int64
    end: Int64
    index: Int64

    def step(self, instant: Int64) -> Int64:
        """Index of the step around each instant, NO_ID outside."""
        if not len(self.start):
            return np.full(len(instant), NO_ID, np.int64)
        place = np.maximum(np.searchsorted(self.start, instant, side="right") - 1, 0)
        inside = (instant >= self.start[place]) & (instant < self.end[place])
        return np.where(inside, self.index[place], NO_ID)


@dataclass(frozen=True)
class _Marks:
    index: list[int]
    start: Int64
    end: Int64
    phase: list[str]


def is_mark(name: str) -> bool:
    """True for the profiler's own step mark."""
    return re.search(PROFILER_STEP, name) is not None


def find(trace: Trace, launches: Launches, pattern: str | None, thresholds: Thresholds) -> Steps:
    """The step windows of a trace; `pattern` names another annotation than ProfilerStep#N."""
    marks = _marks(trace, pattern)
    if pattern is not None and not marks.index:
        raise UsageError(
            f"{trace.meta.name}: no annotation fits --step-pattern {pattern!r}",
            f"there are: {_examples(trace) or 'no annotations'}",
        )
    if not len(trace.device):
        return _host_steps(trace, marks, launches, thresholds)
    start, end = int(trace.device.ts.min()), int(trace.device.end.max())
    if not marks.index:
        return _whole(start, end, launches, marks)
    step = _step_of(launches, marks)
    if np.count_nonzero(step >= 0) * 2 < len(step):
        return _whole(start, end, launches, marks)
    ends, count = _device_ends(trace, marks, step)
    start = _start(trace, launches, marks, step)
    edges = np.maximum.accumulate(np.concatenate([[start], ends]))
    dropped = _drop(count, np.diff(edges), marks.phase, trace.meta.truncated, thresholds)
    launched = np.append(np.array(marks.index, np.int64), NO_ID)[step]
    called = marks.start, marks.end
    rule = RULE_SERVING if any(marks.phase) else RULE_DEVICE
    return Steps(marks.index, edges, dropped, rule, True, launched, called, marks.phase)


def _marks(trace: Trace, pattern: str | None) -> _Marks:
    """Step marks in order of time: the profiler's, else the iterations of a serving engine."""
    rule = re.compile(pattern or PROFILER_STEP)
    number: dict[int, int | None] = {}
    for i, name in enumerate(trace.names):
        if found := rule.search(name):
            group = found.group(1) if rule.groups else None
            number[i] = int(group) if group is not None and group.isdigit() else None
    marks = _named(trace, number, {})
    if marks.index or pattern is not None:
        return marks
    phases = serving.phases(trace.names)
    return _named(trace, dict.fromkeys(phases), phases)


def _named(trace: Trace, number: Mapping[int, int | None], phases: Mapping[int, str]) -> _Marks:
    """Marks of these names, one per number; copies on other threads are left out."""
    host = trace.host
    rows = host.rows(Kind.ANNOTATION, Kind.OP)
    rows = rows[np.isin(host.name[rows], list(number))]
    index: dict[int, None] = {}
    kept: list[int] = []
    last_end = None
    for row in rows.tolist():
        numbered = number[int(host.name[row])]
        # A nested or repeated mark is the same step seen twice; but some exporters let every mark
        # begin a microsecond early, so that what it holds is inside (kineto #914).
        nested = last_end is not None and host.ts[row] < last_end - MARKS_OVERLAP_NS
        if nested or numbered in index:
            continue
        index[len(index) if numbered is None else numbered] = None
        kept.append(row)
        last_end = host.end[row]
    phase = [phases.get(int(host.name[row]), "") for row in kept]
    return _Marks(list(index), host.ts[kept], host.end[kept], phase)


def _examples(trace: Trace) -> str:
    """Some annotations of the trace, for whoever looks for the right one."""
    rows = trace.host.rows(Kind.ANNOTATION)
    names = sorted({trace.names[i] for i in trace.host.name[rows].tolist()})
    return ", ".join(names[:6]) + (" ..." if len(names) > 6 else "")


def _step_of(launches: Launches, marks: _Marks) -> npt.NDArray[np.intp]:
    """Position of the mark each device event was launched in; -1 outside all or without a link."""
    place = np.searchsorted(marks.start, launches.start, side="right") - 1
    inside = launches.linked & (place >= 0) & (launches.start < marks.end[np.maximum(place, 0)])
    return np.where(inside, place, -1)


def _device_ends(
    trace: Trace, marks: _Marks, step: npt.NDArray[np.intp]
) -> tuple[Int64, npt.NDArray[np.intp]]:
    """Per step the end of its last device work (its mark's end where it has none), and how many."""
    inside = step >= 0
    count = np.bincount(step[inside], minlength=len(marks.index))
    ends = np.full(len(marks.index), np.iinfo(np.int64).min, np.int64)
    np.maximum.at(ends, step[inside], trace.device.end[inside])
    return np.where(count > 0, ends, marks.end), count


def _start(trace: Trace, launches: Launches, marks: _Marks, step: npt.NDArray[np.intp]) -> int:
    """Start of the first window: its mark, or the end of older work that still ran then.

    Work without a launch record that starts before any of the first step's own is older.
    """
    own = trace.device.ts[step == 0]
    first = int(own.min()) if len(own) else int(marks.end[0])
    if any(marks.phase) and len(own):
        # Engines launch an iteration while the last one runs: the mark may come long before the
        # device is free (150 ms in a vLLM recording), and what ran then was not recorded.
        return first
    older = ~launches.linked | (launches.start < marks.start[0])
    ends = trace.device.end[older & (trace.device.ts < first)]
    return (
        max(int(marks.start[0]), min(int(ends.max()), first)) if len(ends) else int(marks.start[0])
    )


def _drop(
    count: npt.NDArray[np.intp],
    length: Int64,
    phase: Sequence[str],
    truncated: bool,
    thresholds: Thresholds,
) -> list[str]:
    """Why each step is left out ("" when it is used)."""
    why = [""] * len(count)
    # Prefill and decode launch different kernels.
    usual = {name: _usual(count[np.array(phase) == name]) for name in {*phase}}
    for i, n in enumerate(count.tolist()):
        typical = usual[phase[i]]
        if n == 0 or length[i] <= 0:
            why[i] = "no device work recorded in it"
        elif n < thresholds.thin_step_ratio * typical:
            why[i] = f"only {n} device events where {typical:.0f} are usual: records were lost"
    if truncated and (count > 0).any():
        last = int(np.flatnonzero(count)[-1])
        # Device work is written in order of time: what the file lost began in this step.
        why[last] = why[last] or "the file ends in it: the rest of its records is lost"
    _drop_edges(why, thresholds)
    return why


def _usual(count: npt.NDArray[np.intp]) -> float:
    """The median of the counts that are not 0; 0 without any."""
    return float(np.median(count[count > 0])) if (count > 0).any() else 0.0


def _drop_edges(why: list[str], thresholds: Thresholds) -> None:
    """The first and last step go where enough remain without them."""
    good = [i for i, reason in enumerate(why) if not reason]
    # Steps before it without device work do not tell when the device got free (pytorch #192021).
    if len(good) >= 3:
        why[good[0]] = "first recorded step: it starts with work that was not recorded"
    if len(good) >= thresholds.min_steps + 2 and good[-1] == len(why) - 1:
        why[-1] = "last profiled step: its end may be cut by the end of the recording"


def _host_steps(trace: Trace, marks: _Marks, launches: Launches, thresholds: Thresholds) -> Steps:
    host = trace.host
    if not marks.index:
        work = host.rows(Kind.OP, Kind.ANNOTATION)
        work = work if len(work) else np.arange(len(host))
        return _whole(int(host.ts[work].min()), int(host.end[work].max()), launches, marks)
    edges = np.concatenate([marks.start, marks.end[-1:]])
    why = [""] * len(marks.index)
    _drop_edges(why, thresholds)
    called = marks.start, marks.end
    return Steps(marks.index, edges, why, RULE_HOST, True, launches.row, called, marks.phase)


def _whole(start: int, end: int, launches: Launches, marks: _Marks) -> Steps:
    """The whole recording as one step, of the phase of all marks if it is one."""
    launched = np.where(launches.linked, 0, NO_ID)
    edges, limits = np.array([start, end], np.int64), np.iinfo(np.int64)
    called = np.array([limits.min], np.int64), np.array([limits.max], np.int64)
    phases = {*marks.phase}
    phase = phases.pop() if len(phases) == 1 else serving.MIXED if phases else ""
    return Steps([0], edges, [""], RULE_WHOLE, False, launched, called, [phase])
