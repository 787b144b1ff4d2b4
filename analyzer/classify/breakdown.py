"""Every nanosecond of a rank gets one class: device work by priority, idle time by its cause.

Where several kinds of device work overlap the most useful one names the time: compute, then the
optimizer, then communication, then copies. Communication beside compute is hidden, reported apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.classify import classes, idle, kernels
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.config import Thresholds
from analyzer.timeline import steps
from analyzer.timeline.intervals import EMPTY, Intervals, Spans, joined, sweep, union, where
from analyzer.timeline.launches import Launches, innermost
from analyzer.trace.schema import NO_ID, Int8, Int64, Kind, Trace

DEVICE, HOST = "device", "host"


@dataclass(frozen=True)
class Breakdown:
    """Sets of time by class that tile [start, end), hidden communication, and idle by cause.

    `activity` and `batch` (whether it is the copy of a batch) are of each device event, `host` is
    what the driving threads did; None without a device.
    """

    timeline: str
    classes: dict[str, Intervals]
    hidden: Intervals
    causes: dict[str, Intervals]
    activity: Int8
    batch: npt.NDArray[np.bool_]
    host: idle.HostActivity | None

    def per_window(self, edges: Int64) -> Int64:
        """ns by window (rows) and class (columns, in the order of `classes.CLASSES`)."""
        return np.stack([self.classes[c].within(edges) for c in classes.CLASSES], axis=1)


def classify(
    trace: Trace,
    launches: Launches,
    rules: KernelRules,
    start: int,
    end: int,
    limits: Thresholds,
    *,
    lost: bool = False,
) -> Breakdown:
    """The breakdown of [start, end); on the host timeline when no device work was recorded.

    `lost`: so much work was not that idle time has no cause.
    """
    if not len(trace.device):
        return _host_breakdown(trace, start, end)
    host = idle.host_activity(trace, launches, limits)
    activity = activities(trace, launches, rules)
    batch = _batch_copies(trace, launches, activity, host.loader)
    found, hidden, busy = _device_classes(trace, activity, batch)
    span = Intervals(np.array([start], np.int64), np.array([end], np.int64))
    reasons = idle.causes(trace, launches, span - busy, host, limits, lost=lost)
    for cause, times in reasons.items():
        found[idle.CAUSES[cause].time_class] |= times
    inside = {c: times & span for c, times in found.items()}
    return Breakdown(DEVICE, inside, hidden & span, reasons, activity, batch, host)


def activities(trace: Trace, launches: Launches, rules: KernelRules) -> Int8:
    """The Activity of each device event."""
    device = trace.device
    pairs, pair_of = np.unique(device.name * len(Kind) + device.kind, return_inverse=True)
    split = [divmod(pair, len(Kind)) for pair in pairs.tolist()]
    by_pair = [rules.activity(trace.names[name], Kind(kind)) for name, kind in split]
    activity = np.array(by_pair, np.int8)[pair_of]
    activity[_copies_of_collectives(trace, launches)] = Activity.COMMUNICATION
    activity[(activity == Activity.COMPUTE) & _in_optimizer(trace, launches)] = Activity.OPTIMIZER
    return activity


def _in_optimizer(trace: Trace, launches: Launches) -> npt.NDArray[np.bool_]:
    """Device events that the thread of an optimizer step's annotation launched inside it.

    A trainer may run the whole step as the optimizer's closure (Lightning does): then the autograd
    thread launches inside the annotation, and only what follows its last launch is the optimizer's.
    """
    host = trace.host
    rows = trace.host_named(kernels.is_optimizer_annotation, Kind.ANNOTATION, Kind.OP)
    launching = launches.linked & (trace.device.kind == Kind.KERNEL)
    inside = np.zeros(len(trace.device), np.bool_)
    for thread in np.unique(host.thread[rows]).tolist():
        mine = rows[host.thread[rows] == thread]
        others = np.sort(launches.start[launching & (launches.thread != thread)])
        last = np.append(others, NO_ID)[np.searchsorted(others, host.end[mine]) - 1]
        times = union(np.maximum(host.ts[mine], last), host.end[mine])
        inside |= launches.linked & (launches.thread == thread) & times.contains(launches.start)
    return inside


def _copies_of_collectives(trace: Trace, launches: Launches) -> Int64:
    """Device-to-device copies whose innermost host op is a collective (copy-engine collectives).

    A copy that a collective makes through an operator of its own (flattening its inputs) is local.
    """
    device = trace.device
    local = np.array([kernels.copy_direction(n) == "DtoD" for n in trace.names])[device.name]
    copies = np.flatnonzero((device.kind == Kind.MEMCPY) & local & launches.linked)
    around = innermost(trace, launches, copies, Kind.OP, Kind.ANNOTATION)
    collective = trace.host_named(kernels.is_collective_op, Kind.OP, Kind.ANNOTATION)
    return copies[np.isin(around, collective)]


def _batch_copies(
    trace: Trace, launches: Launches, activity: Int8, loader: Intervals
) -> npt.NDArray[np.bool_]:
    """Host-to-device copies launched between a loader's return and the next kernel launch."""
    device = trace.device
    to_device = np.array([kernels.copy_direction(n) == "HtoD" for n in trace.names])[device.name]
    copies = np.flatnonzero((device.kind == Kind.MEMCPY) & to_device & launches.linked)
    chosen = np.zeros(len(device), np.bool_)
    if not len(loader):
        return chosen
    at = launches.start[copies]
    work = np.sort(launches.start[launches.linked & (device.kind == Kind.KERNEL)])
    loaded = np.append(loader.end, NO_ID)[np.searchsorted(loader.end, at, side="right") - 1]
    launched = np.append(work, NO_ID)[np.searchsorted(work, at) - 1]
    chosen[copies] = (loaded != NO_ID) & (launched <= loaded)
    return chosen


def _device_classes(
    trace: Trace, activity: Int8, batch: npt.NDArray[np.bool_]
) -> tuple[dict[str, Intervals], Intervals, Intervals]:
    """Busy time by class, hidden communication, and all busy time."""
    device = trace.device

    def spans(chosen: npt.NDArray[np.bool_]) -> Spans:
        return Spans(device.ts[chosen], device.end[chosen])

    copy = activity == Activity.COPY
    edges, (compute, optimizer, comm, load, other) = sweep(
        spans(activity == Activity.COMPUTE),
        spans(activity == Activity.OPTIMIZER),
        spans((activity == Activity.COMMUNICATION) | (activity == Activity.FUSED)),
        spans(copy & batch),
        spans(copy & ~batch),
    )
    useful = (compute > 0) | (optimizer > 0)
    moving = ~useful & (comm == 0)
    found = dict.fromkeys(classes.CLASSES, EMPTY)
    found[classes.COMPUTE] = where(edges, compute > 0)
    found[classes.OPTIMIZER] = where(edges, (optimizer > 0) & (compute == 0))
    found[classes.COMM_UNSPLIT] = where(edges, ~useful & (comm > 0))
    found[classes.DATA_LOADING] = where(edges, moving & (load > 0))
    found[classes.COPY] = where(edges, moving & (load == 0) & (other > 0))
    busy = where(edges, useful | (comm > 0) | (load > 0) | (other > 0))
    return found, where(edges, useful & (comm > 0)), busy


def _host_breakdown(trace: Trace, start: int, end: int) -> Breakdown:
    """The same classes for a run without a device: operators of all threads are the compute."""
    host = trace.host
    span = Intervals(np.array([start], np.int64), np.array([end], np.int64))

    def times(rule: Callable[[str], bool], *kinds: Kind) -> Intervals:
        rows = trace.host_named(rule, *kinds)
        return union(host.ts[rows], host.end[rows]) & span

    loader = times(kernels.is_loader_event, Kind.OP, Kind.ANNOTATION)
    comm = times(kernels.is_collective_op, Kind.OP, Kind.ANNOTATION) - loader
    stepping = times(kernels.is_optimizer_annotation, Kind.OP, Kind.ANNOTATION)
    work = times(_is_work, Kind.OP) - loader
    found = dict.fromkeys(classes.CLASSES, EMPTY)
    found[classes.DATA_LOADING] = loader
    found[classes.OPTIMIZER] = work & stepping
    found[classes.COMPUTE] = work - stepping
    found[classes.COMM_UNSPLIT] = comm - work
    found[classes.UNEXPLAINED] = span - joined(list(found.values()))
    none = np.zeros(0, np.int8)
    return Breakdown(HOST, found, comm & work, {}, none, none.astype(np.bool_), None)


def _is_work(name: str) -> bool:
    return not (
        steps.is_mark(name)
        or kernels.is_loader_event(name)
        or kernels.is_collective_op(name)
        or kernels.is_optimizer_annotation(name)
    )
