"""The tables of one rank that a replay needs: its device work and its host's points, and how they
travel packed, a few bytes a row. Times are ns.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np

from analyzer.trace.schema import Int64

# The value of `Host.awaited` for a call that waits for all that was launched before it.
WHOLE_DEVICE = -2
# Value of `Work.activity` for the copy of a batch; the others are kernels.Activity.
BATCH = 5


# Bytes of a column of 64 Mi rows, more than a trace of 10 GB has.
LONGEST_COLUMN = 8 << 26


class Call(IntEnum):
    """What a point of the host's chain is."""

    LAUNCH = 0
    SYNC = 1
    LOADER = 2
    STREAM_WAIT = 3


@dataclass(frozen=True)
class Work:
    """Device work in order of start. `host` is the point that launched it, `record` its number
    among the rank's collectives, `step` the step it was launched in; NO_ID where there is none.
    """

    ts: Int64
    dur: Int64
    stream: Int64
    step: Int64
    host: Int64
    activity: Int64
    record: Int64
    name: Int64
    op: Int64


@dataclass(frozen=True)
class Host:
    """The host's points in order of `time`. Before each passed `rest` in operators, calls and the
    interpreter, `other` in allocation calls or the profiler, `unknown` without any record, and then
    `wait` blocked.

    `awaited` is the row of Work that the point waited for, `stream` the stream that a STREAM_WAIT
    holds back; NO_ID where the trace does not say.
    """

    time: Int64
    kind: Int64
    rest: Int64
    other: Int64
    unknown: Int64
    wait: Int64
    thread: Int64
    awaited: Int64
    stream: Int64


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One rank, packed. `linked` is the part of the work whose launch was recorded, from the first
    of them on (older work was launched before the recording); `queue` is how much work the device
    queues before a launch has to wait.
    """

    names: list[str]
    ops: list[str]
    linked: float
    queue: int
    work: dict[str, bytes]
    host: dict[str, bytes]

    def columns(self) -> tuple[Work, Host]:
        """The tables."""
        return _unpacked(Work, self.work), _unpacked(Host, self.host)


def packed(table: Work | Host) -> dict[str, bytes]:
    """Each column as the differences of its values, deflated."""
    packed = {}
    for field in fields(table):
        steps = np.diff(getattr(table, field.name).astype(np.int64), prepend=0)
        # Bytes of equal weight side by side: most of the upper ones are zeros.
        planes = steps.view(np.uint8).reshape(-1, 8).T
        packed[field.name] = zlib.compress(planes.tobytes(), 1)
    return packed


def _inflated(data: bytes) -> bytes:
    """A column's bytes; ValueError for one that is cut off or longer than any that was written."""
    inflater = zlib.decompressobj()
    plain = inflater.decompress(data, LONGEST_COLUMN)
    if not inflater.eof:
        raise ValueError("a column is cut off or too long")
    return plain


def _unpacked(table: type[Any], packed: dict[str, bytes]) -> Any:
    columns = {}
    for name, data in packed.items():
        planes = np.frombuffer(_inflated(data), np.uint8).reshape(8, -1)
        columns[name] = np.cumsum(np.ascontiguousarray(planes.T).view(np.int64)[:, 0])
    return table(**columns)
