"""How decoded events become columns: interned ids, arrays of many rows at once.

Names, threads and streams repeat thousands of times, so columns hold small integers. What only
collectives carry is kept by row, not as columns. Python lists gather what one block of text holds:
building arrays that often would take longer than decoding.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from analyzer.trace import shapes
from analyzer.trace.dialect import NOT_WORK
from analyzer.trace.schema import (
    NO_ID,
    Awaited,
    CollectiveArgs,
    DeviceEvents,
    HostEvents,
    Int8,
    Int64,
    Kind,
    Trace,
    TraceMeta,
)

LAST_DEVICE_KIND = int(Kind.MEMSET)

_HOST = (np.int64, np.int64, np.int8, np.int32, np.int32, np.int64)
_DEVICE = (np.int64, np.int64, np.int8, np.int32, np.int32, np.int32, np.int64, np.int64, np.int8)
_LARGEST_INT32 = 2**31 - 1
_LARGEST_INT64 = 2**63 - 1

Bool = npt.NDArray[np.bool_]


class Interned(dict[Any, int]):
    """Value -> small integer, in order of first sight; `values` maps back."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Any] = []  # type: ignore[assignment]

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self.values)
        self.values.append(value)
        return number


class Arguments(Protocol):
    """What is read of an event's `args`; what becomes a column of numbers is NO_ID when absent."""

    correlation: Any
    stream: Any
    device: Any
    nbytes: Any
    queue: Any
    stream_id: Any
    connection: Any
    collective: Any
    in_elements: Any
    out_elements: Any
    group_size: Any
    group: Any
    ranks: Any
    dtype: Any
    sequence: Any
    source: Any
    destination: Any
    occupancy: Any
    awaited_stream: Any
    awaited_record: Any
    dims: Any


class Columns:
    """The growing tables of one trace: `add_*` what a block holds, `settle` it with its times."""

    def __init__(self) -> None:
        self._names = Interned()
        self._threads = Interned()
        self._streams = Interned()
        # They grow in place: joining many arrays would hold every column twice.
        self._host = [bytearray() for _ in _HOST]
        self._device = [bytearray() for _ in _DEVICE]
        self._collectives: dict[int, CollectiveArgs] = {}
        self._waits: dict[int, tuple[Any, int, Any]] = {}
        self._shapes: Counter[tuple[str, bytes]] = Counter()
        self._device_rows = 0
        self._begin()

    def _begin(self) -> None:
        self._host_name: list[int] = []
        self._thread: list[int] = []
        self._host_link: list[Any] = []
        self._device_name: list[int] = []
        self._stream: list[int] = []
        self._gpu: list[Any] = []
        self._device_link: list[Any] = []
        self._nbytes: list[Any] = []
        self._occupancy: list[Any] = []
        self._said: list[tuple[int, CollectiveArgs]] = []

    def add_host(self, events: list[Any]) -> None:
        """Gathers the host events of one block."""
        names, threads = self._names, self._threads
        self._host_name += [names[e.name] for e in events]
        self._thread += [threads[e.pid, e.tid] for e in events]
        self._host_link += [NO_ID if (a := e.args) is None
                            else a.connection if a.correlation == NO_ID else a.correlation
                            for e in events]  # fmt: skip
        shaped = (e for e in events if e.name in shapes.SHAPED and e.args is not None)
        self._shapes.update((e.name, bytes(e.args.dims)) for e in shaped)

    def add_device(self, events: list[Any], no_args: Arguments) -> None:
        """Gathers the device events of one block; `no_args` stands in where an event has none."""
        names, streams = self._names, self._streams
        args: list[Any] = [e.args or no_args for e in events]
        at = len(self._device_name)
        self._device_name += [names[e.name] for e in events]
        self._stream += [streams[_other_stream(a, e.tid) if a.stream is None else a.stream]
                         for a, e in zip(args, events, strict=True)]  # fmt: skip
        self._gpu += [e.pid if a.device is None else a.device
                      for a, e in zip(args, events, strict=True)]  # fmt: skip
        self._device_link += [a.connection if a.correlation == NO_ID else a.correlation
                              for a in args]  # fmt: skip
        self._nbytes += [a.nbytes for a in args]
        self._occupancy += [a.occupancy for a in args]
        self._said += [(row, _collective(a)) for row, a in enumerate(args, at)
                       if a.collective is not None]  # fmt: skip

    def add_waits(self, rows: Iterable[Arguments]) -> None:
        """Gathers what the records of waits in one block say about their runtime calls."""
        for args in rows:
            # A wait of the host for a stream names it as its own stream.
            on, waiter = args.awaited_stream, args.stream
            on, waiter = (waiter, None) if on == NO_ID else (on, waiter)
            self._waits[_integer(args.correlation)] = on, _integer(args.awaited_record), waiter

    def settle(self, ts: Int64, dur: Int64, kind: Int8, good: Bool) -> None:
        """Makes arrays of what was gathered, the `good` rows of it; times in ns, in file order."""
        on_device = kind <= LAST_DEVICE_KIND
        host = _ids(self._host_name), _ids(self._thread), integers(self._host_link)
        device = (_ids(self._device_name), _ids(self._stream), _gpus(self._gpu),
                  integers(self._device_link), integers(self._nbytes),
                  _percentages(self._occupancy))  # fmt: skip
        for mine, table, types, gathered in (
            (~on_device, self._host, _HOST, host),
            (on_device, self._device, _DEVICE, device),
        ):
            chosen, keep = mine & good, good[mine]
            rows = ts[chosen], dur[chosen], kind[chosen], *(c[keep] for c in gathered)
            for column, part, type_ in zip(table, rows, types, strict=True):
                column += part.astype(type_, copy=False).data
        good = good[on_device]
        row = (self._device_rows + np.cumsum(good) - 1).tolist()
        self._collectives |= {row[i]: said for i, said in self._said if good[i]}
        self._device_rows += int(np.count_nonzero(good))
        self._begin()

    def finish(self, meta: TraceMeta, base_ns: int) -> Trace:
        """The sorted tables; `base_ns` is added to every start."""
        names = [str(n) for n in self._names.values]
        device, order = self._device_table(base_ns, names)
        place = np.full(self._device_rows, NO_ID, np.int64)
        place[order] = np.arange(len(order))
        return Trace(
            meta=replace(meta, shapes=shapes.most(self._shapes)),
            device=device,
            host=self._host_table(base_ns),
            names=names,
            threads=[(str(p), str(t)) for p, t in self._threads.values],
            streams=[str(s) for s in self._streams.values],
            collectives={
                int(place[r]): c for r, c in self._collectives.items() if place[r] != NO_ID
            },
            awaited={
                call: Awaited(
                    self._streams.get(on, NO_ID), record, self._streams.get(waiter, NO_ID)
                )
                for call, (on, record, waiter) in self._waits.items()
                if call != NO_ID
            },
        )

    def _host_table(self, base_ns: int) -> HostEvents:
        columns = _arrays(self._host, _HOST)
        order = np.argsort(columns[0], kind="stable")
        start = columns[0][order]
        if (start[1:] == start[:-1]).any():
            # Parents before their children where both start together.
            order = np.lexsort((-columns[1], columns[0]))
        _arrange(columns, order)
        columns[0] += base_ns
        return HostEvents(*columns)

    def _device_table(self, base_ns: int, names: list[str]) -> tuple[DeviceEvents, Int64]:
        columns = _arrays(self._device, _DEVICE)
        idle = [i for i, n in enumerate(names) if n in NOT_WORK]
        work = np.flatnonzero(~np.isin(columns[3], idle))
        order = work[np.argsort(columns[0][work], kind="stable")]
        _arrange(columns, order)
        columns[0] += base_ns
        return DeviceEvents(*columns), order


def _arrays(table: list[bytearray], types: Sequence[type[np.generic]]) -> list[Any]:
    """The columns as arrays, which take their memory over."""
    columns: list[Any] = [np.frombuffer(c, t) for c, t in zip(table, types, strict=True)]
    table.clear()
    return columns


def _arrange(columns: list[Any], order: Int64) -> None:
    """Puts the rows of each column in this order, so that only one column at a time is double."""
    for i, column in enumerate(columns):
        columns[i] = column[order]


def _other_stream(args: Arguments, track: Any) -> Any:
    """XPU names a queue, Ascend writes "Stream Id"; the oldest exporter has the track alone."""
    if args.queue is not None:
        return args.queue
    return track if args.stream_id is None else args.stream_id


def _ids(numbers: list[int]) -> npt.NDArray[np.int32]:
    return np.array(numbers, np.int32)


def _gpus(values: list[Any]) -> npt.NDArray[np.int32]:
    numbers = integers(values)
    return np.where(numbers > _LARGEST_INT32, NO_ID, numbers).astype(np.int32)


def _percentages(values: list[Any]) -> Int8:
    numbers = integers(values)
    return np.where(numbers > 100, NO_ID, numbers).astype(np.int8)


def integers(values: list[Any]) -> Int64:
    """Values as int64; negative (ROCm writes -1 for "no link") and foreign ones are NO_ID."""
    try:
        numbers = np.frombuffer(array("q", values), np.int64)
    except (TypeError, OverflowError):
        numbers = np.array([_integer(v) for v in values], np.int64)
    return np.maximum(numbers, NO_ID)


def _integer(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and value.isascii() else NO_ID
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else NO_ID
    return value if isinstance(value, int) and 0 <= value <= _LARGEST_INT64 else NO_ID


def _collective(args: Arguments) -> CollectiveArgs:
    def count(value: Any) -> int | None:
        number = _integer(value)
        return None if number == NO_ID else number

    return CollectiveArgs(
        collective=str(args.collective),
        group=str(args.group or ""),
        group_size=count(args.group_size),
        ranks=str(args.ranks or ""),
        dtype=str(args.dtype or ""),
        in_elements=count(args.in_elements),
        out_elements=count(args.out_elements),
        sequence=count(args.sequence),
        source=count(args.source),
        destination=count(args.destination),
    )
