"""Which host call launched which device work, and which threads drive the device.

The link is the correlation id, whatever the call is named: lists of launch calls are never complete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.trace.schema import NO_ID, Int32, Int64, Kind, Trace

# A thread that issues fewer of the kernel launches than this only moves data or watches.
DRIVING_SHARE = 0.05
# How many finished children of the launching op are looked past to find it.
MOST_SIBLINGS = 16


@dataclass(frozen=True)
class Launches:
    """Per device event its launching call: row in the host table (NO_ID without), start, end (ns).

    `driving` are the thread ids that issue the work: the training loop and the autograd engine.
    """

    row: Int64
    start: Int64
    end: Int64
    thread: Int32
    driving: Int32

    @property
    def linked(self) -> npt.NDArray[np.bool_]:
        """Which device events have a launch record."""
        return np.asarray(self.row != NO_ID)


def link(trace: Trace) -> Launches:
    """Joins device work to runtime calls of the same correlation id."""
    host, device = trace.host, trace.device
    calls = host.rows(Kind.RUNTIME)
    calls = calls[host.correlation[calls] != NO_ID]
    # Stable, so that of several calls with one id the first to start is the launch.
    calls = calls[np.argsort(host.correlation[calls], kind="stable")]
    ids = host.correlation[calls]
    place = np.searchsorted(ids, device.correlation)
    found = np.zeros(len(device), np.bool_)
    if len(ids):
        found = ids[np.minimum(place, len(ids) - 1)] == device.correlation
    row = np.full(len(device), NO_ID, np.int64)
    row[found] = calls[place[found]]
    start, end = (np.zeros(len(device), np.int64) for _ in range(2))
    start[found] = host.ts[row[found]]
    end[found] = host.end[row[found]]
    thread = np.full(len(device), NO_ID, np.int32)
    thread[found] = host.thread[row[found]]
    return Launches(row, start, end, thread, _driving(trace, thread))


def _driving(trace: Trace, thread: Int32) -> Int32:
    """Threads behind a fair part of the kernel launches; all of them in a trace without any."""
    kernels = thread[(trace.device.kind == Kind.KERNEL) & (thread != NO_ID)]
    if not len(kernels):
        return np.asarray(np.unique(trace.host.thread), np.int32)
    ids, count = np.unique(kernels, return_counts=True)
    return np.asarray(ids[count >= DRIVING_SHARE * count.sum()], np.int32)


def launching_ops(trace: Trace, launches: Launches, rows: Int64) -> Int64:
    """Name id of the innermost host op around each device event's launch call; NO_ID without one."""
    host = trace.host
    found = np.full(len(rows), NO_ID, np.int64)
    for thread in np.unique(launches.thread[rows]).tolist():
        ops = np.flatnonzero((host.kind == Kind.OP) & (host.thread == thread))
        mine = np.flatnonzero(launches.thread[rows] == thread)
        if thread == NO_ID or not len(ops):
            continue
        at = launches.start[rows[mine]]
        place = np.searchsorted(host.ts[ops], at, side="right") - 1
        # The op that started last has often ended already (an allocation inside the launching op).
        for _ in range(MOST_SIBLINGS):
            over = (place >= 0) & (host.end[ops[place]] <= at)
            place = np.where(over, place - 1, place)
        around = (place >= 0) & (host.end[ops[place]] > at)
        found[mine[around]] = host.name[ops[place[around]]]
    return found
