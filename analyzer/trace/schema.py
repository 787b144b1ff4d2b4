"""What one rank's trace is once it is read: columns of integer nanoseconds and what the file says.

Two tables, because nothing is shared but time: what the device did and what the host did. Columns
of a table have equal length and are sorted by start; ids index the `names`, `threads` and `streams`
lists of the Trace. Times are nanoseconds since the Unix epoch where the file gives a base, else
since the base the exporter used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]

NO_ID = -1


class Kind(IntEnum):
    """What an event is, whatever the vendor and version call its category."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    RUNTIME = 3
    OP = 4
    ANNOTATION = 5
    OVERHEAD = 6


DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


@dataclass(frozen=True)
class DeviceEvents:
    """Kernels, copies, sets. `correlation` is NO_ID without a launch record, `nbytes` likewise.

    `occupancy` is the exporter's estimate in percent, NO_ID where it gives none.
    """

    ts: Int64
    dur: Int64
    kind: Int8
    name: Int32
    stream: Int32
    device: Int32
    correlation: Int64
    nbytes: Int64
    occupancy: Int8

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def end(self) -> Int64:
        """End of each event, ns."""
        return self.ts + self.dur


@dataclass(frozen=True)
class HostEvents:
    """Runtime calls, operators, annotations, profiler overhead; parents stand before children."""

    ts: Int64
    dur: Int64
    kind: Int8
    name: Int32
    thread: Int32
    correlation: Int64

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def end(self) -> Int64:
        """End of each event, ns."""
        return self.ts + self.dur

    def rows(self, *kinds: Kind) -> Int64:
        """Row numbers of the events of these kinds."""
        return np.flatnonzero(np.logical_or.reduce([self.kind == kind for kind in kinds]))


@dataclass(frozen=True)
class CollectiveArgs:
    """What the profiler wrote beside a collective kernel; None where this version does not.

    A send carries the rank it goes to, a receive the one it comes from, both of the whole run.
    """

    collective: str
    group: str
    group_size: int | None
    ranks: str
    dtype: str
    in_elements: int | None
    out_elements: int | None
    sequence: int | None
    source: int | None = None
    destination: int | None = None


@dataclass(frozen=True)
class Awaited:
    """What a runtime call waits for, or makes a stream wait for.

    `stream` is the id of the stream waited on, `record` the correlation of the event record that
    marks how far, `waiter` the stream that waits, if it is none of the host; NO_ID where the
    exporter did not know (a wait for the whole device has none of them).
    """

    stream: int
    record: int
    waiter: int


@dataclass(frozen=True)
class Category:
    """Events of one category of the file: how many, and their summed length in ns."""

    name: str
    count: int
    total_ns: int
    known: bool


@dataclass(frozen=True)
class TraceMeta:
    """What the file says about itself, and what happened while it was read.

    `malformed` events were left out, `repairs` counts mended ones by kind. `damage` says why the
    file itself, or its archive, could not be read as it was written; "" for a sound one. `overrun`
    device events had an impossible length (see overruns.py). `shapes` counts matrix operators by
    name and input sizes, the most frequent, where those were recorded. `unprofiled_step_ns` is the
    length of a step without the profiler, measured by our recorder.
    """

    name: str
    size: int
    events: int
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    gpus: tuple[str, ...] = ()
    torch: str | None = None
    base_ns: int | None = None
    groups: tuple[tuple[str, str, int], ...] = ()
    flags: dict[str, bool] = field(default_factory=dict)
    categories: tuple[Category, ...] = ()
    truncated: bool = False
    malformed: int = 0
    untimed: int = 0
    negative: int = 0
    overrun: int = 0
    repairs: dict[str, int] = field(default_factory=dict)
    damage: str = ""
    shapes: dict[str, int] = field(default_factory=dict)
    unprofiled_step_ns: int | None = None


@dataclass(frozen=True)
class Trace:
    """One rank. `collectives` maps rows of `device` to the arguments written beside them, `awaited`
    correlation ids of runtime calls to what they wait for; empty where that was not recorded.
    """

    meta: TraceMeta
    device: DeviceEvents
    host: HostEvents
    names: list[str]
    threads: list[tuple[str, str]]
    streams: list[str]
    collectives: dict[int, CollectiveArgs]
    awaited: dict[int, Awaited] = field(default_factory=dict)

    def host_named(self, rule: Callable[[str], bool], *kinds: Kind) -> Int64:
        """Host rows of these kinds whose name fits `rule`, in order of time."""
        fits = np.array([rule(name) for name in self.names], np.bool_)
        rows = self.host.rows(*kinds)
        return rows[fits[self.host.name[rows]]]


def text_or_none(value: Any) -> str | None:
    """The value as text, None for absent and empty ones."""
    return None if value in (None, "") else str(value)
