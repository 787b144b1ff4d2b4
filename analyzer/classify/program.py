"""What must a replay know of one rank? Its device work, and the host's calls in order, as columns.

The host is one chain of points in time over all threads that launch: the autograd thread launches
while its caller waits for it, so what the threads did one after the other is one thread's work (the
reading of HTA, too). A point is when a launch call starts, or when a blocking call or the loader
returns. Times are ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.classify import kernels
from analyzer.classify.breakdown import Breakdown
from analyzer.classify.idle import blocking_copies
from analyzer.classify.replayable import (
    BATCH,
    WHOLE_DEVICE,
    Call,
    Host,
    Program,
    Work,
    packed,
)
from analyzer.timeline.launches import Launches, launching_ops
from analyzer.timeline.steps import Steps
from analyzer.trace.schema import NO_ID, Int64, Kind, Trace

# So many used steps are kept, and so much device work of one rank: more would tell little more.
MOST_STEPS = 20
MOST_WORK = 200_000
# Work that is queued before a launch call can have to wait for room, and where none was seen to
# wait what CUDA queues at most.
QUEUE = 512
DEEPEST = 1024
# How long a launch call takes where none was seen that had room.
_LAUNCH_NS = 5_000
_ENOUGH = 3
# Bytes of pageable memory that a call to copy them to the device keeps and returns (CUDA runtime,
# "API synchronization behavior").
STAGED = 64 * 1024


def program(trace: Trace, launches: Launches, found: Breakdown, steps: Steps) -> Program | None:
    """The program of a rank; None without device work or when one step alone is too much."""
    if not len(trace.device):
        return None
    rows = _kept_rows(trace, steps)
    if not len(rows):
        return None
    host, place, queue = _host(trace, launches, found, rows, int(steps.edges[0]))
    device = trace.device
    activity = found.activity[rows].astype(np.int64)
    activity[found.batch[rows]] = BATCH
    communicating = (found.activity == kernels.Activity.COMMUNICATION) | (
        found.activity == kernels.Activity.FUSED
    )
    number = np.where(communicating, np.cumsum(communicating) - 1, NO_ID)
    names, name = _names(trace, device.name[rows].astype(np.int64))
    ops, op = _names(trace, launching_ops(trace, launches, rows))
    work = Work(
        ts=device.ts[rows],
        dur=device.dur[rows],
        stream=device.stream[rows].astype(np.int64),
        step=steps.launched[rows],
        host=place,
        activity=activity,
        record=number[rows],
        name=name,
        op=op,
    )
    return Program(
        names=names,
        ops=ops,
        linked=_linked(place),
        queue=queue,
        work=packed(work),
        host=packed(host),
    )


def _linked(place: Int64) -> float:
    known = place != NO_ID
    return float(np.mean(known[int(np.argmax(known)) :])) if known.any() else 0.0


def _kept_rows(trace: Trace, steps: Steps) -> Int64:
    """All device work, or that of the first steps where it is too much or more than is needed."""
    launched = steps.launched
    wanted = steps.used.tolist()[:MOST_STEPS]
    last = wanted[-1] if wanted else -1
    while last >= 0 and np.count_nonzero(launched <= steps.index[last]) > MOST_WORK:
        last -= 1
    if last < 0:
        return np.zeros(0, np.int64)
    before = trace.device.ts < steps.edges[last + 1]
    return np.flatnonzero(np.where(launched == NO_ID, before, launched <= steps.index[last]))


def _names(trace: Trace, ids: Int64) -> tuple[list[str], Int64]:
    """Distinct names, and the number of each row's among them; NO_ID for none."""
    known, number = np.unique(ids, return_inverse=True)
    shift = int(len(known) > 0 and known[0] == NO_ID)
    return [trace.names[i][:200] for i in known[shift:].tolist()], (number - shift)


@dataclass(frozen=True)
class _Points:
    """Points before they are in order; `row` is the host row of the call."""

    row: Int64
    start: Int64
    end: Int64
    kind: Int64


def _host(
    trace: Trace, launches: Launches, found: Breakdown, rows: Int64, begin: int
) -> tuple[Host, Int64, int]:
    """The chain from `begin` on, per row of `rows` its launching point, and the queue's room."""
    assert found.host is not None
    table = trace.host
    linked = launches.linked[rows]
    calls, call_of = np.unique(launches.row[rows[linked]], return_inverse=True)
    last = int(table.end[calls].max()) if len(calls) else 0
    # A thread that only moves data blocks, too, and the loop may wait for it.
    launching = np.isin(table.thread, np.unique(table.thread[calls]))

    def named(rule: Any) -> Int64:
        found_rows = trace.host_named(rule, Kind.RUNTIME)
        return found_rows[launching[found_rows] & (table.ts[found_rows] <= last)]

    copies = np.intersect1d(blocking_copies(trace, launches), calls)
    copies = np.setdiff1d(copies, launches.row[_staged(trace)])
    syncs = np.union1d(named(kernels.is_blocking_call), copies)
    waits = np.setdiff1d(named(kernels.is_stream_wait), calls)
    loader = found.host.loader
    within = loader.start <= last
    none = np.full(np.count_nonzero(within), NO_ID, np.int64)
    blocked, queue = _blocked(trace, launches, found, calls)
    points = [
        _Points(calls, table.ts[calls], table.ts[calls] + blocked,
            _of(Call.LAUNCH, len(calls))),
        _Points(syncs, table.ts[syncs], table.end[syncs], _of(Call.SYNC, len(syncs))),
        _Points(none, loader.start[within], loader.end[within], _of(Call.LOADER, len(none))),
        _Points(waits, table.ts[waits], table.ts[waits], _of(Call.STREAM_WAIT, len(waits))),
    ]  # fmt: skip
    row, start, time, kind = (
        np.concatenate([getattr(p, column) for p in points])
        for column in ("row", "start", "end", "kind")
    )
    # What ends as the next begins stands before it; a call that launches and blocks launches first.
    order = np.lexsort((kind, start, time))
    row, start, time, kind = row[order], start[order], time[order], kind[order]
    place = np.full(len(rows), NO_ID, np.int64)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    place[linked] = position[call_of]
    before = np.concatenate([np.minimum(start[:1], begin), time[:-1]])
    called = np.maximum(start, before)
    idle = found.host.allocator | found.host.profiler
    other = idle.inside(before, called)
    rest = (found.host.busy - idle).inside(before, called)
    awaited, stream = _awaited(trace, launches, row, kind, rows)
    host = Host(
        time=time,
        kind=kind,
        rest=rest,
        other=other,
        unknown=called - before - rest - other,
        wait=np.maximum(time - called, 0),
        thread=np.append(table.thread, NO_ID)[row],
        awaited=awaited,
        stream=stream,
    )
    return host, place, queue


def _staged(trace: Trace) -> Int64:
    """Copies to the device that are small enough for the driver to keep: their call never waits."""
    device = trace.device
    to_device = np.array([kernels.copy_direction(n) == "HtoD" for n in trace.names])[device.name]
    return np.flatnonzero(to_device & (device.nbytes != NO_ID) & (device.nbytes <= STAGED))


def _of(kind: Call, count: int) -> Int64:
    return np.full(count, kind, np.int64)


def _blocked(trace: Trace, launches: Launches, found: Breakdown, calls: Int64) -> tuple[Int64, int]:
    """ns that each launch call waited for room in the queue: behind much queued work, what it took
    beyond calls that had room; and how much work is queued when there is none (collectives have
    queues of their own).
    """
    table = trace.host
    length = table.dur[calls]
    chosen = found.activity != kernels.Activity.COMMUNICATION
    # What has no record of its launch was queued before the recording began.
    start = np.where(launches.linked, launches.start, np.iinfo(np.int64).min)[chosen]
    queued = np.searchsorted(np.sort(start), table.ts[calls])
    queued -= np.searchsorted(np.sort(trace.device.end[chosen]), table.ts[calls])
    room = length[queued < QUEUE]
    usual = int(np.median(room)) if len(room) >= _ENOUGH else _LAUNCH_NS
    full = (queued >= QUEUE) & (length > 3 * usual)
    deepest = int(queued.max(initial=0)) + 1
    waited = np.count_nonzero(full) >= _ENOUGH
    return np.where(full, length - usual, 0), deepest if waited else max(deepest, DEEPEST)


def _awaited(
    trace: Trace, launches: Launches, row: Int64, kind: Int64, rows: Int64
) -> tuple[Int64, Int64]:
    """Per point the row of work it waits for, and the stream that it holds back."""
    table = trace.host
    awaited = np.full(len(row), NO_ID, np.int64)
    stream = np.full(len(row), NO_ID, np.int64)
    whole = np.array([kernels.waits_for_device(n) for n in trace.names], np.bool_)
    own = {int(call): i for i, call in enumerate(launches.row[rows].tolist()) if call != NO_ID}
    queues = _Queues(trace, launches, rows)
    record_at = _starts(trace, {said.record for said in trace.awaited.values()})
    for i in np.flatnonzero((kind == Call.SYNC) | (kind == Call.STREAM_WAIT)).tolist():
        call = int(row[i])
        said = trace.awaited.get(int(table.correlation[call]))
        if call in own:
            awaited[i] = own[call]
        elif said is not None and said.stream != NO_ID:
            until = record_at.get(said.record, int(table.ts[call]))
            awaited[i] = queues.last(said.stream, until)
            stream[i] = said.waiter
        elif whole[table.name[call]]:
            awaited[i] = WHOLE_DEVICE
    return awaited, stream


def _starts(trace: Trace, ids: set[int]) -> dict[int, int]:
    """Start of the runtime calls of these correlation ids, ns."""
    table = trace.host
    rows = np.flatnonzero(np.isin(table.correlation, list(ids - {NO_ID})))
    return dict(zip(table.correlation[rows].tolist(), table.ts[rows].tolist(), strict=True))


class _Queues:
    """What each stream had been given when."""

    def __init__(self, trace: Trace, launches: Launches, rows: Int64) -> None:
        start = np.where(launches.linked[rows], launches.start[rows], trace.device.ts[rows])
        self._start: dict[int, Int64] = {}
        self._row: dict[int, Int64] = {}
        for stream in range(len(trace.streams)):
            mine = np.flatnonzero(trace.device.stream[rows] == stream)
            order = mine[np.argsort(start[mine], kind="stable")]
            self._start[stream], self._row[stream] = start[order], order

    def last(self, stream: int, instant: int) -> int:
        """The last work launched on a stream up to an instant; NO_ID without any."""
        place = int(np.searchsorted(self._start[stream], instant, side="right")) - 1
        return int(self._row[stream][place]) if place >= 0 else NO_ID
