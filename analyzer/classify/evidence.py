"""What the findings quote: kernels, collectives, idle causes and single facts, of the used steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.classify import classes, idle, kernels
from analyzer.classify.breakdown import Breakdown
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.config import Thresholds
from analyzer.timeline.intervals import Intervals, union
from analyzer.timeline.launches import Launches, launching_ops
from analyzer.timeline.steps import Steps
from analyzer.trace.schema import NO_ID, Int64, Kind, Trace

Bool = npt.NDArray[np.bool_]

MOST_NAMES = 200
MOST_OPS = 8


class CauseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Idle time of one cause, and the host ops or calls it was seen with (name, ns), most first."""

    cause: str
    ns: int
    ops: list[tuple[str, int]]


class KernelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Device work by name. `ns` sums over streams; `exposed_ns` is what no better class covered."""

    name: str
    kind: str
    activity: int
    count: int
    ns: int
    exposed_ns: int


class CollectiveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One collective on this rank. `step` is the used step's index; None fields were not recorded.

    `nbytes` is the size that bus bandwidth is counted from: the output of an all-gather, else the
    input.
    """

    kind: str
    name: str
    group: str
    group_size: int | None
    ranks: str
    sequence: int | None
    nbytes: int | None
    stream: str
    start: int
    end: int
    exposed_ns: int
    step: int | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Single facts over the used steps; times in ns, counts are totals."""

    loader_events: int = 0
    loader_ns: int = 0
    loader_names: list[str] = []
    single_process_loader: bool = False
    kernels: int = 0
    tiny_kernels: int = 0
    kernel_ns: int = 0
    launches: int = 0
    graph_launches: int = 0
    launch_interval_ns: int | None = None
    idle_ns: int = 0
    empty_queue_idle_ns: int = 0
    early_starts: int = 0
    matmul_ns: int = 0
    fp32_matmul_ns: int = 0
    fp32_matmul_names: list[tuple[str, int, int]] = []
    exposed_copies: list[tuple[str, int, int]] = []
    pageable_copy_ns: int = 0
    host_collective_ns: int = 0
    host_collectives: list[tuple[str, int]] = []
    profiler_ns: int = 0
    devices: int = 1


@dataclass(frozen=True)
class Used:
    """The used step windows: a set of time, and the step each instant belongs to."""

    time: Intervals
    start: Int64
    end: Int64
    index: Int64

    @classmethod
    def of(cls, steps: Steps) -> Used:
        """The used windows of these steps."""
        start, end = steps.edges[:-1][steps.used], steps.edges[1:][steps.used]
        return cls(union(start, end), start, end, np.array(steps.index, np.int64)[steps.used])

    def step(self, instant: Int64) -> Int64:
        """Index of the step around each instant, NO_ID outside."""
        if not len(self.start):
            return np.full(len(instant), NO_ID, np.int64)
        place = np.maximum(np.searchsorted(self.start, instant, side="right") - 1, 0)
        inside = (instant >= self.start[place]) & (instant < self.end[place])
        return np.where(inside, self.index[place], NO_ID)


def edges(start: int, end: int) -> Int64:
    """One window."""
    return np.array([start, end], np.int64)


def _inside(found: Intervals, start: Int64, end: Int64) -> Int64:
    """Length of `found` inside each [start, end)."""
    return found.before(end) - found.before(start)


def kernel_table(
    trace: Trace, found: Breakdown, rules: KernelRules, used: Used
) -> list[KernelRecord]:
    """Device work by name, the largest first; the tail beyond MOST_NAMES as one "(other)" row."""
    device = trace.device
    rows = np.flatnonzero(used.step(device.ts) != NO_ID)
    if not len(rows):
        return []
    exposed = np.zeros(len(device), np.int64)
    for activity, time_class in (
        (Activity.COMMUNICATION, classes.COMM_UNSPLIT),
        (Activity.FUSED, classes.COMM_UNSPLIT),
        (Activity.COPY, classes.COPY),
    ):
        chosen = rows[found.activity[rows] == activity]
        exposed[chosen] = _inside(found.classes[time_class], device.ts[chosen], device.end[chosen])
    name = device.name[rows]
    count, total, bare = (
        np.bincount(name, weights, minlength=len(trace.names)).astype(np.int64)
        for weights in (None, device.dur[rows], exposed[rows])
    )
    activity_of = np.zeros(len(trace.names), np.int64)
    kind_of = np.zeros(len(trace.names), np.int64)
    activity_of[name], kind_of[name] = found.activity[rows], device.kind[rows]
    largest = np.argsort(-total, kind="stable")
    largest = largest[count[largest] > 0]
    records = [
        KernelRecord(
            name=trace.names[i][:1000],
            kind=rules.kind(trace.names[i], Kind(int(kind_of[i]))),
            activity=int(activity_of[i]),
            count=int(count[i]),
            ns=int(total[i]),
            exposed_ns=int(bare[i]),
        )
        for i in largest[:MOST_NAMES].tolist()
    ]
    rest = largest[MOST_NAMES:]
    if len(rest):
        name_of_rest = f"({len(rest)} other names)"
        records.append(KernelRecord(name=name_of_rest, kind="other", activity=0,
            count=int(count[rest].sum()), ns=int(total[rest].sum()), exposed_ns=0))  # fmt: skip
    return records


_ELEMENT_BYTES = {
    "float": 4, "float32": 4, "int": 4, "int32": 4, "half": 2, "float16": 2, "bfloat16": 2,
    "double": 8, "float64": 8, "long": 8, "int64": 8, "byte": 1, "char": 1, "bool": 1, "uint8": 1,
    "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "short": 2, "int16": 2,
}  # fmt: skip


def collectives(
    trace: Trace, found: Breakdown, rules: KernelRules, used: Used
) -> list[CollectiveRecord]:
    """Every collective of the recording, in order of start; device collectives only."""
    device = trace.device
    communicating = (found.activity == Activity.COMMUNICATION) | (found.activity == Activity.FUSED)
    rows = np.flatnonzero(communicating)
    bare = _inside(found.classes[classes.COMM_UNSPLIT], device.ts[rows], device.end[rows])
    step = used.step(device.ts[rows])
    records = []
    for row, exposed, index in zip(rows.tolist(), bare.tolist(), step.tolist(), strict=True):
        name = trace.names[device.name[row]]
        args = trace.collectives.get(row)
        kind = rules.kind(name, Kind(int(device.kind[row])))
        nbytes = int(device.nbytes[row]) if device.nbytes[row] != NO_ID else None
        if args is not None:
            kind = kernels.collective_kind(args.collective)
            elements = args.out_elements if kind == "all_gather" else args.in_elements
            size = _ELEMENT_BYTES.get(args.dtype.lower().removeprefix("c10::"))
            nbytes = None if elements is None or size is None else elements * size
        records.append(
            CollectiveRecord(
                kind=kind,
                name=name[:200],
                group=args.group if args else "",
                group_size=args.group_size if args else None,
                ranks=args.ranks if args else "",
                sequence=args.sequence if args else None,
                nbytes=nbytes,
                stream=trace.streams[device.stream[row]],
                start=int(device.ts[row]),
                end=int(device.end[row]),
                exposed_ns=exposed,
                step=None if index == NO_ID else index,
            )
        )
    return records


def causes(trace: Trace, launches: Launches, found: Breakdown, used: Used) -> list[CauseRecord]:
    """Idle time by cause, with the host ops whose work came late or the calls that took the time."""
    if not found.causes:
        return []
    times = {cause: inside & used.time for cause, inside in found.causes.items()}
    whole = union(
        np.concatenate([t.start for t in found.causes.values()]),
        np.concatenate([t.end for t in found.causes.values()]),
    )
    gap = idle.gaps(trace, whole)
    ended = gap.row >= 0
    op = np.full(len(gap.row), NO_ID, np.int64)
    op[ended] = launching_ops(trace, launches, gap.row[ended])
    records = []
    for cause, inside in times.items():
        ops: Counter[str] = Counter()
        if cause in _NAMED_BY_CALL:
            rows = _call_rows(trace, launches, cause)
            share = _inside(inside, trace.host.ts[rows], trace.host.end[rows])
            ids = trace.host.name[rows]
        else:
            share, ids = _inside(inside, gap.start, gap.end), op
        for name_id, ns in zip(ids[share > 0].tolist(), share[share > 0].tolist(), strict=True):
            ops[trace.names[name_id] if name_id != NO_ID else "(no operator)"] += ns
        records.append(CauseRecord(cause=cause, ns=inside.total, ops=ops.most_common(MOST_OPS)))
    return records


_NAMED_BY_CALL = {
    "loader": (kernels.is_loader_event, (Kind.OP, Kind.ANNOTATION)),
    "allocator": (kernels.is_allocator_call, (Kind.RUNTIME,)),
    "profiler": (lambda name: True, (Kind.OVERHEAD,)),
}


def _call_rows(trace: Trace, launches: Launches, cause: str) -> Int64:
    rule, kinds = _NAMED_BY_CALL[cause]
    wanted = [i for i, n in enumerate(trace.names) if rule(n)]
    rows = trace.host.rows(*kinds)
    rows = rows[np.isin(trace.host.name[rows], wanted)]
    if cause == "profiler":
        return rows
    return rows[np.isin(trace.host.thread[rows], launches.driving)]


def gather(
    trace: Trace,
    launches: Launches,
    found: Breakdown,
    rules: KernelRules,
    used: Used,
    limits: Thresholds,
) -> Evidence:
    """The single facts."""
    return Evidence(
        **_loader_facts(trace, used),
        **_kernel_facts(trace, found, rules, used, limits),
        **_launch_facts(trace, launches, found, used),
        **_copy_facts(trace, found, used),
        **_host_facts(trace, found, used),
    )


def _loader_facts(trace: Trace, used: Used) -> dict[str, object]:
    wanted = [i for i, n in enumerate(trace.names) if kernels.is_loader_event(n)]
    rows = trace.host.rows(Kind.OP, Kind.ANNOTATION)
    rows = rows[np.isin(trace.host.name[rows], wanted)]
    names = sorted({trace.names[i] for i in trace.host.name[rows].tolist()})
    spans = union(trace.host.ts[rows], trace.host.end[rows])
    return {
        "loader_events": len(rows),
        "loader_ns": (spans & used.time).total,
        "loader_names": names[:MOST_OPS],
        "single_process_loader": any(map(kernels.is_single_process_loader, names)),
    }


def _kernel_facts(
    trace: Trace, found: Breakdown, rules: KernelRules, used: Used, limits: Thresholds
) -> dict[str, object]:
    device = trace.device
    work = np.flatnonzero((device.kind == Kind.KERNEL) & (used.step(device.ts) != NO_ID))
    work = work[found.activity[work] <= Activity.OPTIMIZER]
    name, dur = device.name[work], device.dur[work]
    unique = np.unique(name).tolist()
    matrix = [i for i in unique if rules.kind(trace.names[i]) == "matmul"]
    plain = [i for i in matrix if kernels.tensor_core(trace.names[i]) is False]
    per_name = [
        (trace.names[i][:1000], int((name == i).sum()), int(dur[name == i].sum())) for i in plain
    ]
    return {
        "kernels": len(work),
        "tiny_kernels": int((dur < limits.tiny_kernel_us * 1000).sum()),
        "kernel_ns": int(dur.sum()),
        "matmul_ns": int(dur[np.isin(name, matrix)].sum()),
        "fp32_matmul_ns": sum(ns for _, _, ns in per_name),
        "fp32_matmul_names": sorted(per_name, key=lambda row: -row[2])[:MOST_OPS],
        "devices": len(np.unique(device.device)) or 1,
    }


def _launch_facts(
    trace: Trace, launches: Launches, found: Breakdown, used: Used
) -> dict[str, object]:
    host, device = trace.host, trace.device
    mine = launches.linked & (used.step(device.ts) != NO_ID)
    calls = np.unique(launches.row[mine])
    graph = [i for i, n in enumerate(trace.names) if kernels.is_graph_launch(n)]
    interval = np.diff(np.sort(host.ts[calls]))
    whole = [t & used.time for t in found.causes.values()]
    idle_ns = sum(t.total for t in whole)
    late = ("loader", "allocator", "sync", "dispatch", "host_unknown", "launch_call")
    return {
        "launches": len(calls),
        "graph_launches": int(np.isin(host.name[calls], graph).sum()),
        "launch_interval_ns": int(np.median(interval)) if len(interval) else None,
        "idle_ns": idle_ns,
        "empty_queue_idle_ns": sum(
            (found.causes[c] & used.time).total for c in late if c in found.causes
        ),
        "early_starts": int((device.ts[mine] < launches.start[mine]).sum()),
    }


def _copy_facts(trace: Trace, found: Breakdown, used: Used) -> dict[str, object]:
    device = trace.device
    rows = np.flatnonzero(used.step(device.ts) != NO_ID)
    rows = rows[found.activity[rows] == Activity.COPY]
    moving = found.classes[classes.COPY] | found.classes[classes.DATA_LOADING]
    bare = _inside(moving, device.ts[rows], device.end[rows])
    count: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name_id, ns in zip(device.name[rows].tolist(), bare.tolist(), strict=True):
        count[trace.names[name_id]] += 1
        total[trace.names[name_id]] += ns
    largest = [(name[:200], count[name], ns) for name, ns in total.most_common(MOST_OPS)]
    pageable = sum(ns for name, ns in total.items() if kernels.is_pageable_copy(name))
    return {"exposed_copies": largest, "pageable_copy_ns": pageable}


def _host_facts(trace: Trace, found: Breakdown, used: Used) -> dict[str, object]:
    wanted = [i for i, n in enumerate(trace.names) if n.startswith("gloo:")]
    rows = trace.host.rows(Kind.OP, Kind.ANNOTATION)
    rows = rows[np.isin(trace.host.name[rows], wanted)]
    inside = union(trace.host.ts[rows], trace.host.end[rows]) & used.time
    names: Counter[str] = Counter()
    share = _inside(used.time, trace.host.ts[rows], trace.host.end[rows])
    for name_id, ns in zip(trace.host.name[rows].tolist(), share.tolist(), strict=True):
        names[trace.names[name_id]] += ns
    overhead = trace.host.rows(Kind.OVERHEAD)
    own = union(trace.host.ts[overhead], trace.host.end[overhead]) & used.time
    return {
        "host_collective_ns": inside.total,
        "host_collectives": names.most_common(MOST_OPS),
        "profiler_ns": own.total,
    }
