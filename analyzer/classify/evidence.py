"""Single facts that findings are judged by, over the used steps. Times in ns, counts are totals."""

from __future__ import annotations

import msgspec
import numpy as np

from analyzer.classify import classes, kernels
from analyzer.classify.breakdown import Breakdown
from analyzer.classify.coverage import Coverage
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.classify.tables import MOST_OPS, largest
from analyzer.config import Thresholds
from analyzer.timeline.intervals import joined, union
from analyzer.timeline.launches import Launches
from analyzer.timeline.steps import Used
from analyzer.trace.schema import NO_ID, Int8, Int32, Int64, Kind, Trace


class Named(msgspec.Struct, frozen=True):
    """A name with how often it occurred and its time."""

    name: str
    count: int
    ns: int


class LoaderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Every recorded request for a batch; `ns` is their length in the used steps, hidden or not."""

    events: int
    ns: int
    names: list[str]
    single_process: bool


class KernelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Compute kernels; `plain_matmul` are matrix kernels whose name says no tensor cores.

    `occupancy` is the part of a GPU's threads they hold as the exporter estimates it, weighted by
    time; None where it estimates none.
    """

    count: int
    ns: int
    tiny_count: int
    tiny_ns: int
    matmul_ns: int
    memory_ns: int
    plain_matmul_ns: int
    plain_matmul: list[Named]
    devices: int
    occupancy: float | None = None


class LaunchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Launch calls that led to device work; `late_idle_ns` is idle time in which nothing was
    queued. `interval_ns` is the median between calls.
    """

    calls: int
    interval_ns: int | None
    idle_ns: int
    late_idle_ns: int
    starts_before_launch: int
    coverage: Coverage


class CopyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Copies and sets that nothing else covered; `ns` of each is the uncovered time."""

    exposed: list[Named]
    pageable_ns: int


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Gloo collectives on the host, blocking calls by name, and the profiler's own work.

    `collective_calls` are all host records of collectives, whether or not the device shows them.
    """

    gloo_ns: int
    gloo: list[Named]
    collective_calls: int
    blocking: list[Named]
    profiler_ns: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All single facts of one rank."""

    loader: LoaderFacts
    kernels: KernelFacts
    launches: LaunchFacts
    copies: CopyFacts
    host: HostFacts


def gather(
    trace: Trace,
    launches: Launches,
    found: Breakdown,
    rules: KernelRules,
    used: Used,
    covered: Coverage,
    limits: Thresholds,
) -> Evidence:
    """The single facts of one rank."""
    return Evidence(
        loader=_loader(trace, used),
        kernels=_kernels(trace, found, rules, used, limits),
        launches=_launches(trace, launches, found, used, covered),
        copies=_copies(trace, found, used),
        host=_host(trace, launches, used),
    )


def _loader(trace: Trace, used: Used) -> LoaderFacts:
    host = trace.host
    rows = trace.host_named(kernels.is_loader_event, Kind.OP, Kind.ANNOTATION)
    names = sorted({trace.names[i] for i in host.name[rows].tolist()})
    return LoaderFacts(
        events=len(rows),
        ns=(union(host.ts[rows], host.end[rows]) & used.time).total,
        names=names[:MOST_OPS],
        single_process=any(map(kernels.is_single_process_loader, names)),
    )


def _kernels(
    trace: Trace, found: Breakdown, rules: KernelRules, used: Used, limits: Thresholds
) -> KernelFacts:
    device = trace.device
    work = np.flatnonzero((device.kind == Kind.KERNEL) & (used.step(device.ts) != NO_ID))
    work = work[found.activity[work] <= Activity.OPTIMIZER]
    name, dur = device.name[work], device.dur[work]
    kind = {i: rules.kind(trace.names[i]) for i in np.unique(name).tolist()}
    matrix = [i for i, k in kind.items() if k == "matmul"]
    moving = [i for i, k in kind.items() if k in MEMORY_KINDS]
    plain = [i for i in matrix if kernels.tensor_core(trace.names[i]) is False]
    tiny = dur < limits.tiny_kernel_us * 1000
    return KernelFacts(
        count=len(work),
        ns=int(dur.sum()),
        tiny_count=int(tiny.sum()),
        tiny_ns=int(dur[tiny].sum()),
        matmul_ns=int(dur[np.isin(name, matrix)].sum()),
        memory_ns=int(dur[np.isin(name, moving)].sum()),
        plain_matmul_ns=int(dur[np.isin(name, plain)].sum()),
        plain_matmul=_largest(trace, name[np.isin(name, plain)], dur[np.isin(name, plain)]),
        devices=len(np.unique(device.device)),
        occupancy=_occupancy(device.occupancy[work], dur),
    )


def _occupancy(percent: Int8, dur: Int64) -> float | None:
    """Mean of the estimates weighted by time, 0 to 1, over the kernels that have one."""
    given = percent != NO_ID
    time = int(dur[given].sum())
    return float(dur[given] @ percent[given].astype(np.int64)) / time / 100 if time else None


# Kinds whose kernels do a few operations per byte they move.
MEMORY_KINDS = ("memory", "elementwise", "reduction", "normalization", "optimizer", "embedding")


def _launches(
    trace: Trace, launches: Launches, found: Breakdown, used: Used, covered: Coverage
) -> LaunchFacts:
    host, device = trace.host, trace.device
    mine = launches.linked & (used.step(device.ts) != NO_ID)
    called = np.zeros(len(host), np.bool_)
    called[launches.row[mine]] = True
    calls = np.flatnonzero(called)
    interval = np.diff(host.ts[calls])
    late = joined([found.causes[c] for c in _EMPTY_QUEUE if c in found.causes])
    return LaunchFacts(
        calls=len(calls),
        interval_ns=int(np.median(interval)) if len(interval) else None,
        idle_ns=(joined(list(found.causes.values())) & used.time).total,
        late_idle_ns=(late & used.time).total,
        starts_before_launch=int((device.ts[mine] < launches.start[mine]).sum()),
        coverage=covered,
    )


# Causes of idle time in which the next work had not been launched.
_EMPTY_QUEUE = ("loader", "allocator", "sync", "dispatch", "host_unknown", "launch_call")


def _copies(trace: Trace, found: Breakdown, used: Used) -> CopyFacts:
    device = trace.device
    rows = np.flatnonzero(used.step(device.ts) != NO_ID)
    rows = rows[found.activity[rows] == Activity.COPY]
    alone = found.classes[classes.COPY].inside(device.ts[rows], device.end[rows])
    pageable = np.array([kernels.is_pageable_copy(n) for n in trace.names], np.bool_)
    return CopyFacts(
        exposed=_largest(trace, device.name[rows], alone),
        pageable_ns=int(alone[pageable[device.name[rows]]].sum()),
    )


def _host(trace: Trace, launches: Launches, used: Used) -> HostFacts:
    host = trace.host
    gloo = trace.host_named(kernels.is_host_collective, Kind.OP, Kind.ANNOTATION)
    blocking = trace.host_named(kernels.is_blocking_call, Kind.RUNTIME)
    blocking = blocking[np.isin(host.thread[blocking], launches.driving)]
    profiler = host.rows(Kind.OVERHEAD)

    def inside(rows: Int64) -> Int64:
        return used.time.inside(host.ts[rows], host.end[rows])

    return HostFacts(
        gloo_ns=(union(host.ts[gloo], host.end[gloo]) & used.time).total,
        gloo=_largest(trace, host.name[gloo], inside(gloo)),
        collective_calls=len(trace.host_named(kernels.is_collective_op, Kind.OP, Kind.ANNOTATION)),
        blocking=_largest(trace, host.name[blocking], inside(blocking)),
        profiler_ns=(union(host.ts[profiler], host.end[profiler]) & used.time).total,
    )


def _largest(trace: Trace, name: Int32 | Int64, ns: Int64) -> list[Named]:
    """The names with most time, with the count of their events that have any."""
    return [Named(*row) for row in largest(trace, name.astype(np.int64), ns)]
