"""Which host call launched which device work, and which threads drive the device.

The link is the correlation id, whatever the call is named: no list of launch calls is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.trace.schema import NO_ID, Int32, Int64, Kind, Trace

# A thread that issues fewer of the kernel launches than this only moves data or watches.
DRIVING_SHARE = 0.05


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
        return np.flatnonzero(np.bincount(trace.host.thread)).astype(np.int32)
    count = np.bincount(kernels)
    return np.flatnonzero(count >= max(1.0, DRIVING_SHARE * len(kernels))).astype(np.int32)


def launching_ops(trace: Trace, launches: Launches, rows: Int64) -> Int64:
    """Name id of the innermost host op around each device event's launch call, NO_ID if none."""
    op = innermost(trace, launches, rows, Kind.OP)
    return np.append(trace.host.name.astype(np.int64), NO_ID)[op]


def innermost(trace: Trace, launches: Launches, rows: Int64, *kinds: Kind) -> Int64:
    """Host row of the innermost event of these kinds around each device event's launch call.

    NO_ID without one. Only the thread of the call is looked at.
    """
    host, thread = trace.host, launches.thread[rows]
    found = np.full(len(rows), NO_ID, np.int64)
    # An event without length is around nothing, and would count as open at its own start.
    candidates = host.rows(*kinds)
    candidates = candidates[host.dur[candidates] > 0]
    for one in np.unique(thread[thread != NO_ID]).tolist():
        events = candidates[host.thread[candidates] == one]
        mine = np.flatnonzero(thread == one)
        place = _around(host.ts[events], host.end[events], launches.start[rows[mine]])
        found[mine] = np.append(events, NO_ID)[place]
    return found


def _around(start: Int64, end: Int64, at: Int64) -> Int64:
    """Position of the innermost of nested events (sorted by start) around each instant, else -1.

    As many are open at an instant as have started and not ended; the innermost of them is the last
    that started at that depth.
    """
    ends = np.sort(end)
    depth = np.arange(1, len(start) + 1) - np.searchsorted(ends, start, side="right")
    wanted = np.searchsorted(start, at, side="right") - np.searchsorted(ends, at, side="right")
    place = np.full(len(at), -1, np.int64)
    for level in np.unique(wanted[wanted > 0]).tolist():
        events, asked = np.flatnonzero(depth == level), np.flatnonzero(wanted == level)
        last = np.searchsorted(start[events], at[asked], side="right") - 1
        place[asked] = np.append(events, -1)[last]
    # Events that overlap without nesting (async ranges) can point at one that is over.
    return np.where((place >= 0) & (np.append(end, 0)[place] > at), place, -1)
