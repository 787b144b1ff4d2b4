"""How decoded events become columns: interned ids, one array per column and block, joined at the end.

Names, threads and streams repeat thousands of times, so columns hold small integers. What only
collectives carry is kept by row, not as columns.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from analyzer.trace.dialect import NOT_WORK
from analyzer.trace.schema import (
    NO_ID,
    CollectiveArgs,
    DeviceEvents,
    HostEvents,
    Int8,
    Int64,
    Kind,
    Trace,
    TraceMeta,
)

_LAST_DEVICE_KIND = int(Kind.MEMSET)
_INT64_MAX = 2**63 - 1


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
    """What is read of an event's `args`."""

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


class Spanned(Protocol):
    """A decoded event."""

    name: Any
    pid: Any
    tid: Any
    args: Any


class Columns:
    """The growing tables of one trace."""

    def __init__(self) -> None:
        self._names = Interned()
        self._threads = Interned()
        self._streams = Interned()
        self._host: list[tuple[Any, ...]] = []
        self._device: list[tuple[Any, ...]] = []
        self._collectives: dict[int, CollectiveArgs] = {}
        self._device_rows = 0

    def append(self, events: list[Any], ts: Int64, dur: Int64, kind: Int8) -> None:
        """Adds one block of kept events with their times (ns) and kinds."""
        device = kind <= _LAST_DEVICE_KIND
        if device.any():
            rows = [e for e, d in zip(events, device.tolist(), strict=True) if d]
            self._append_device(rows, ts[device], dur[device], kind[device])
            events = [e for e, d in zip(events, device.tolist(), strict=True) if not d]
            ts, dur, kind = ts[~device], dur[~device], kind[~device]
        if events:
            self._append_host(events, ts, dur, kind)

    def _append_host(self, events: list[Any], ts: Int64, dur: Int64, kind: Int8) -> None:
        names, threads = self._names, self._threads
        name = np.array([names[e.name] for e in events], np.int32)
        thread = np.array([threads[(e.pid, e.tid)] for e in events], np.int32)
        correlation = _integers([_link(e.args) for e in events])
        self._host.append((ts, dur, kind, name, thread, correlation))

    def _append_device(self, events: list[Any], ts: Int64, dur: Int64, kind: Int8) -> None:
        names, streams = self._names, self._streams
        args = [e.args for e in events]
        name = np.array([names[e.name] for e in events], np.int32)
        stream = np.array([streams[_stream(e)] for e in events], np.int32)
        device = _integers([e.pid if e.args is None or e.args.device is None else e.args.device
                            for e in events]).astype(np.int32)  # fmt: skip
        correlation = _integers([_link(a) for a in args])
        nbytes = _integers([None if a is None else a.nbytes for a in args])
        for row, a in enumerate(args, self._device_rows):
            if a is not None and a.collective is not None:
                self._collectives[row] = _collective(a)
        self._device.append((ts, dur, kind, name, stream, device, correlation, nbytes))
        self._device_rows += len(events)

    def finish(self, meta: TraceMeta, base_ns: int) -> Trace:
        """The sorted tables; `base_ns` is added to every start."""
        names = [str(n) for n in self._names.values]
        device, order = self._device_table(base_ns, names)
        place = {int(row): i for i, row in enumerate(order)}
        return Trace(
            meta=meta,
            device=device,
            host=self._host_table(base_ns),
            names=names,
            threads=[(str(p), str(t)) for p, t in self._threads.values],
            streams=[str(s) for s in self._streams.values],
            collectives={place[r]: c for r, c in self._collectives.items() if r in place},
        )

    def _host_table(self, base_ns: int) -> HostEvents:
        columns = _joined(self._host, (np.int64, np.int64, np.int8, np.int32, np.int32, np.int64))
        self._host = []
        # Parents before their children where both start together.
        order = np.lexsort((-columns[1], columns[0]))
        ts, dur, kind, name, thread, correlation = (c[order] for c in columns)
        return HostEvents(ts + base_ns, dur, kind, name, thread, correlation)

    def _device_table(self, base_ns: int, names: list[str]) -> tuple[DeviceEvents, Int64]:
        columns = _joined(
            self._device,
            (np.int64, np.int64, np.int8, np.int32, np.int32, np.int32, np.int64, np.int64),
        )
        self._device = []
        idle = [i for i, n in enumerate(names) if n in NOT_WORK]
        work = np.flatnonzero(~np.isin(columns[3], idle))
        order = work[np.argsort(columns[0][work], kind="stable")]
        ts, dur, kind, name, stream, device, correlation, nbytes = (c[order] for c in columns)
        table = DeviceEvents(ts + base_ns, dur, kind, name, stream, device, correlation, nbytes)
        return table, order


def _joined(blocks: list[tuple[Any, ...]], types: tuple[Any, ...]) -> list[Any]:
    if not blocks:
        return [np.zeros(0, t) for t in types]
    return [np.concatenate(column) for column in zip(*blocks, strict=True)]


def _link(args: Arguments | None) -> Any:
    if args is None:
        return None
    return args.connection if args.correlation is None else args.correlation


def _stream(event: Spanned) -> Any:
    """The stream; XPU names a queue, Ascend writes "Stream Id", the oldest exporter uses the track."""
    args = event.args
    if args is not None:
        for value in (args.stream, args.queue, args.stream_id):
            if value is not None:
                return value
    return event.tid


def _integers(values: list[Any]) -> Int64:
    """Values as int64; absent, negative (ROCm writes -1 for "no link") and foreign ones are NO_ID."""
    return np.array([v if type(v) is int and 0 <= v <= _INT64_MAX else _integer(v) for v in values],
                    np.int64)  # fmt: skip


def _integer(value: Any) -> int:
    if isinstance(value, str) and value.isdigit() and int(value) <= _INT64_MAX:
        return int(value)
    if isinstance(value, float) and 0 <= value <= _INT64_MAX and value.is_integer():
        return int(value)
    return NO_ID


def _collective(args: Arguments) -> CollectiveArgs:
    def count(value: Any) -> int | None:
        number = _integer(value) if not isinstance(value, int) else value
        return None if number < 0 else number

    return CollectiveArgs(
        collective=str(args.collective),
        group=str(args.group or ""),
        group_size=count(args.group_size),
        ranks=str(args.ranks or ""),
        dtype=str(args.dtype or ""),
        in_elements=count(args.in_elements),
        out_elements=count(args.out_elements),
        sequence=count(args.sequence),
    )
