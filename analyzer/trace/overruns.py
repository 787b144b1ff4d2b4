"""Which device events have a length that cannot be, and where do they end at the latest?

A corrupt length (seen with ROCm's tracers) runs past the whole of the next event of a stream, which
runs its work one after the other, and is nothing like those of the same name. One of them makes a
step of seconds. Work that truly overlaps on a stream (programmatic dependent launch, graphs whose
branches share one, collectives filed under a stream of compute) does so by little, often, under one
launch, or each time, and is left alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analyzer.trace.schema import NO_ID, DeviceEvents, Int64, Trace

Bool = npt.NDArray[np.bool_]

# Less than this is no corrupt length but a small overlap.
FLOOR_NS = 1_000_000
# A stream on which more of the events than this overlap does not run them one after the other.
SERIAL_SHARE = 0.05
# An impossible length is so many times the median of its name, which has at least LEAST_ALIKE.
TIMES_USUAL = 10
LEAST_ALIKE = 3


def clamped(trace: Trace) -> Trace:
    """The trace with impossible lengths cut off at the start of the next event of the stream."""
    device = trace.device
    dur = device.dur.copy()
    lanes = np.stack([device.device, device.stream])
    alone = ~_of_one_launch(device)
    odd = _unusual(device)
    if not odd.any():
        return trace
    for lane in np.unique(lanes, axis=1).T:
        rows = np.flatnonzero((lanes == lane[:, None]).all(axis=0) & (device.dur > 0) & alone)
        bad, following = _overrunning(device, rows, odd)
        dur[bad] = following - device.ts[bad]
    count = int(np.count_nonzero(dur != device.dur))
    if not count:
        return trace
    return replace(trace, device=replace(device, dur=dur), meta=replace(trace.meta, overrun=count))


def _of_one_launch(device: DeviceEvents) -> Bool:
    """Events that share their launch with others, as those of a graph do."""
    ids, place, count = np.unique(device.correlation, return_inverse=True, return_counts=True)
    return np.asarray((count[place] > 1) & (ids[place] != NO_ID), np.bool_)


def _unusual(device: DeviceEvents) -> Bool:
    """Events that last far longer than others of their name, by more than the floor."""
    odd = np.zeros(len(device), np.bool_)
    for name in np.unique(device.name[device.dur > FLOOR_NS]).tolist():
        rows = np.flatnonzero(device.name == name)
        if len(rows) >= LEAST_ALIKE:
            odd[rows] = device.dur[rows] > TIMES_USUAL * np.median(device.dur[rows])
    return odd & (device.dur > FLOOR_NS)


def _overrunning(device: DeviceEvents, rows: Int64, odd: Bool) -> tuple[Int64, Int64]:
    """Of one stream's events those of an impossible length, and the start of what follows each."""
    start, end = device.ts[rows], device.end[rows]
    after = end[:-1] > start[1:]
    # One that begins with another is no successor.
    swallows = after & (end[:-1] > end[1:]) & (start[1:] > start[:-1])
    bad = swallows & odd[rows[:-1]] & (end[:-1] - start[1:] > FLOOR_NS)
    if np.count_nonzero(after) > SERIAL_SHARE * len(rows):
        bad[:] = False
    return rows[:-1][bad], start[1:][bad]
