"""The tables a report quotes: device work by name, collectives one by one, idle time by cause."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from analyzer.classify import classes, idle, kernels
from analyzer.classify.breakdown import Breakdown
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.timeline.intervals import Intervals, Spans, sweep, union
from analyzer.timeline.launches import Launches, launching_ops
from analyzer.timeline.steps import Steps, Used
from analyzer.trace.schema import NO_ID, Int64, Kind, Trace

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


class CollectiveRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One collective on this rank. `step` is the used step around its start, `launched` the step it
    was launched in; None fields were not recorded. A send has its `destination`, a receive its
    `source`.

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
    launched: int | None
    source: int | None = None
    destination: int | None = None


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
        exposed[chosen] = found.classes[time_class].inside(device.ts[chosen], device.end[chosen])
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
    trace: Trace, found: Breakdown, rules: KernelRules, steps: Steps
) -> list[CollectiveRecord]:
    """Every collective of the recording, in order of start; the host's where no device worked."""
    device, used = trace.device, steps.windows
    if not len(device):
        return _host_collectives(trace, found, used)
    communicating = (found.activity == Activity.COMMUNICATION) | (found.activity == Activity.FUSED)
    rows = np.flatnonzero(communicating)
    bare = _shared(found.classes[classes.COMM_UNSPLIT], device.ts[rows], device.end[rows])
    step = used.step(device.ts[rows])
    launched = steps.launched[rows]
    kind_of: dict[tuple[str, int], str] = {}
    records = []
    columns = (rows, bare, step, launched)
    for row, exposed, index, origin in zip(*(c.tolist() for c in columns), strict=True):
        name, category = trace.names[device.name[row]], int(device.kind[row])
        if (name, category) not in kind_of:
            kind_of[name, category] = rules.kind(name, Kind(category))
        args = trace.collectives.get(row)
        kind = kind_of[name, category]
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
                launched=None if origin == NO_ID else origin,
                source=args.source if args else None,
                destination=args.destination if args else None,
            )
        )
    return records


def _shared(times: Intervals, start: Int64, end: Int64) -> Int64:
    """Part of `times` inside each span; spans that overlap share it, so that parts add up to it."""
    if not len(start):
        return np.zeros(0, np.int64)
    edges, (depth,) = sweep(Spans(start, end))
    part = np.concatenate([[0.0], np.cumsum(times.within(edges) / np.maximum(depth, 1))])
    inside = part[np.searchsorted(edges, end)] - part[np.searchsorted(edges, start)]
    return np.asarray(np.rint(inside), np.int64)


def _host_collectives(trace: Trace, found: Breakdown, used: Used) -> list[CollectiveRecord]:
    host = trace.host
    rows = trace.host_named(kernels.is_host_collective, Kind.OP, Kind.ANNOTATION)
    bare = _shared(found.classes[classes.COMM_UNSPLIT], host.ts[rows], host.end[rows])
    step = used.step(host.ts[rows])
    return [
        CollectiveRecord(
            kind=kernels.collective_kind(trace.names[host.name[row]]),
            name=trace.names[host.name[row]][:200],
            group="",
            group_size=None,
            ranks="",
            sequence=None,
            nbytes=None,
            stream=trace.threads[host.thread[row]][1],
            start=int(host.ts[row]),
            end=int(host.end[row]),
            exposed_ns=exposed,
            step=None if index == NO_ID else index,
            launched=None if index == NO_ID else index,
        )
        for row, exposed, index in zip(rows.tolist(), bare.tolist(), step.tolist(), strict=True)
    ]


def causes(trace: Trace, launches: Launches, found: Breakdown, used: Used) -> list[CauseRecord]:
    """Idle time by cause, with the ops whose work came late or the calls that took the time."""
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
        if cause in _NAMED_BY_CALL:
            rows = _call_rows(trace, launches, cause)
            share = inside.inside(trace.host.ts[rows], trace.host.end[rows])
            ids = trace.host.name[rows].astype(np.int64)
        else:
            share, ids = inside.inside(gap.start, gap.end), op
        ops = [(name, ns) for name, _, ns in largest(trace, ids, share)]
        records.append(CauseRecord(cause=cause, ns=inside.total, ops=ops))
    return records


def largest(trace: Trace, ids: Int64, ns: Int64) -> list[tuple[str, int, int]]:
    """(name, count, summed ns) of the MOST_OPS names with most time, given each event's id and ns.

    Events without time are not counted; NO_ID stands for no operator.
    """
    ids, ns = ids[ns > 0] + 1, ns[ns > 0]
    count, total = np.bincount(ids), np.bincount(ids, ns).astype(np.int64)
    rows = [
        (trace.names[i - 1][:1000] if i else "(no operator)", int(count[i]), int(total[i]))
        for i in np.flatnonzero(count).tolist()
    ]
    return sorted(rows, key=lambda row: (-row[2], row[0]))[:MOST_OPS]


# Causes that are named by the call the host was in; the others by the op whose launch was late.
_NAMED_BY_CALL: dict[str, tuple[Callable[[str], bool], tuple[Kind, ...]]] = {
    "loader": (kernels.is_loader_event, (Kind.OP, Kind.ANNOTATION)),
    "allocator": (kernels.is_allocator_call, (Kind.RUNTIME,)),
    "profiler": (lambda name: True, (Kind.OVERHEAD,)),
}


def _call_rows(trace: Trace, launches: Launches, cause: str) -> Int64:
    rule, kinds = _NAMED_BY_CALL[cause]
    rows = trace.host_named(rule, *kinds)
    if cause == "profiler":
        return rows
    return rows[np.isin(trace.host.thread[rows], launches.driving)]
