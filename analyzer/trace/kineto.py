"""One trace file -> one Trace: typed decoding, exact nanoseconds, columns that grow block by block.

A file is read with its times as numbers, the fast way; where one turns out too large for that to be
exact (see times.py) it is read again with their text kept.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import compress
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.trace import header, refusals, times
from analyzer.trace.blocks import EventReader, Remainder
from analyzer.trace.columns import LAST_DEVICE_KIND, Columns, Interned
from analyzer.trace.dialect import KIND_OF_CATEGORY, LEFT_OUT, WAITS
from analyzer.trace.inflate import Text
from analyzer.trace.schema import NO_ID, Category, Int64, Trace, TraceMeta
from analyzer.trace.stores import Remote, TracePath

# Rows gathered before arrays are made of them; more of them no longer fit the CPU caches.
BATCH = 4 * 1024

_LEFT_OUT, _UNKNOWN = -1, -2

Scalar = str | int | float | bool | None
# Of the format's phases those that exporters use; another one is a damaged event.
Phase = Literal["X", "M", "i", "I", "s", "t", "f", "B", "E", "b", "n", "e", "C", "N", "D", "O",
    "P", "R", "V", "v", "c", "S", "T", "p", "F", "(", ")"]  # fmt: skip


class Args(msgspec.Struct, gc=False, rename={"stream_id": "Stream Id", "queue": "sycl queue",
    "connection": "connection_id", "task": "Task Type", "nbytes": "bytes",
    "collective": "Collective name", "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems", "group_size": "Group size", "group": "Process Group Name",
    "ranks": "Process Group Ranks", "sequence": "Seq", "source": "Src Rank",
    "destination": "Dst Rank", "occupancy": "est. achieved occupancy %",
    "awaited_stream": "wait_on_stream", "dims": "Input Dims",
    "awaited_record": "wait_on_cuda_event_record_corr_id"}):  # fmt: skip
    """The arguments the analysis needs; types differ between exporters, so most are accepted."""

    correlation: Any = NO_ID
    stream: Scalar = None
    device: Any = None
    nbytes: Any = NO_ID
    queue: Scalar = None
    stream_id: Scalar = None
    connection: Any = NO_ID
    task: Any = None
    collective: Any = None
    in_elements: Any = None
    out_elements: Any = None
    group_size: Any = None
    group: Any = None
    ranks: Any = None
    dtype: Any = None
    sequence: Any = None
    source: Any = None
    destination: Any = None
    occupancy: Any = NO_ID
    awaited_stream: Scalar = NO_ID
    awaited_record: Any = NO_ID
    dims: msgspec.Raw = msgspec.Raw()


_NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event with its times as numbers; text where the exporter quotes them."""

    ph: Phase
    cat: str | None = None
    name: Scalar = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: Args | None = None


class ExactEvent(msgspec.Struct, gc=False):
    """The same with the times' text kept."""

    ph: Phase
    cat: str | None = None
    name: Scalar = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: Args | None = None


def read(path: TracePath) -> Trace:
    """The trace in `path`; UnusableInput when it holds no event of a PyTorch profiler."""
    with _collector_off():
        try:
            return _read(path, exact=False)
        except times.Inexact:
            return _read(path, exact=True)


@contextmanager
def _collector_off() -> Iterator[None]:
    """Millions of short-lived events would each count towards a collection that frees nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: TracePath, *, exact: bool) -> Trace:
    types: Any = list[ExactEvent] if exact else list[Event]
    text = Text(path)
    reader = EventReader(iter(text), msgspec.json.Decoder(types).decode)
    loader = _Loader(exact)
    for events in reader:
        loader.add(events)
    rest = reader.rest
    rest.truncated |= text.cut
    trace = loader.finish(path, text, rest)
    refusals.require_one_writer(trace, rest)
    return trace


class _Loader:
    """Collects the columns of one file."""

    def __init__(self, exact: bool) -> None:
        self._exact = exact
        self._columns = Columns()
        self._categories = Interned()
        self._kinds: list[int] = []
        self._on_host: list[bool] = []
        self._on_device: list[bool] = []
        self._of_wait: list[bool] = []
        self._count: list[int] = []
        self._total: list[int] = []
        self._events = 0
        self._untimed = 0
        self._negative = 0
        self._begin()

    def _begin(self) -> None:
        self._category: list[int] = []
        self._ts: list[Any] = []
        self._dur: list[Any] = []

    def add(self, events: list[Any]) -> None:
        """Takes one block in: every span's category and times, the rest of those of interest."""
        self._events += len(events)
        spans = [e for e in events if e.ph == "X"]
        ids = self._categories
        category = [ids[c if (c := e.cat) is not None else _unsaid(e)] for e in spans]
        if len(ids.values) > len(self._kinds):
            self._learn()
        self._category += category
        if self._exact:
            self._ts += [times.of_text(bytes(e.ts)) for e in spans]
            self._dur += [times.of_text(bytes(e.dur)) for e in spans]
        else:
            self._ts += [e.ts for e in spans]
            self._dur += [e.dur for e in spans]
        on_host = compress(spans, map(self._on_host.__getitem__, category))
        on_device = compress(spans, map(self._on_device.__getitem__, category))
        self._columns.add_host(list(on_host))
        self._columns.add_device(list(on_device), _NO_ARGS)
        if any(self._of_wait):
            waits = compress(spans, map(self._of_wait.__getitem__, category))
            self._columns.add_waits(e.args for e in waits if e.args is not None)
        if len(self._category) >= BATCH:
            self._settle()

    def _learn(self) -> None:
        """What to do with the categories met for the first time."""
        for name in self._categories.values[len(self._kinds) :]:
            lower = name.lower()
            kind = KIND_OF_CATEGORY.get(lower, _LEFT_OUT if lower in LEFT_OUT else _UNKNOWN)
            self._kinds.append(int(kind))
            self._on_device.append(0 <= kind <= LAST_DEVICE_KIND)
            self._on_host.append(kind > LAST_DEVICE_KIND)
            self._of_wait.append(lower in WAITS)
            self._count.append(0)
            self._total.append(0)

    def _settle(self) -> None:
        """Books the gathered spans by category and makes columns of those of interest."""
        category = np.array(self._category, np.intp)
        ts, dur = self._nanoseconds(self._ts), self._nanoseconds(self._dur)
        self._book(category, dur)
        kind = np.array(self._kinds, np.int8)[category]
        ts, dur, kind = ts[kind >= 0], dur[kind >= 0], kind[kind >= 0]
        # Activity records without timing have neither start nor length; ts 0 alone is a real time.
        untimed = (ts == times.NO_TIME) | ((ts == 0) & (dur == 0))
        negative = (dur < 0) & ~untimed
        self._untimed += int(np.count_nonzero(untimed))
        self._negative += int(np.count_nonzero(negative))
        self._columns.settle(ts, dur, kind, ~untimed & ~negative)
        self._begin()

    def _nanoseconds(self, gathered: list[Any]) -> Int64:
        return np.array(gathered, np.int64) if self._exact else times.of_numbers(gathered)

    def _book(self, category: npt.NDArray[np.intp], dur: Int64) -> None:
        # The float64 weights are exact while a batch sums to less than 104 days.
        count = np.bincount(category, minlength=len(self._kinds))
        total = np.bincount(category, np.maximum(dur, 0), len(self._kinds))
        self._count = [old + int(n) for old, n in zip(self._count, count, strict=True)]
        self._total = [old + int(ns) for old, ns in zip(self._total, total, strict=True)]

    def finish(self, path: TracePath, text: Text, rest: Remainder) -> Trace:
        """The whole trace; UnusableInput with the reason when nothing in it can be analysed."""
        self._settle()
        said = header.described(header.keys(rest))
        meta = TraceMeta(
            name=path.name,
            size=text.packed_size if isinstance(path, Remote) else path.stat().st_size,
            events=self._events,
            categories=tuple(
                Category(name, count, total, kind != _UNKNOWN)
                for name, count, total, kind in zip(
                    self._categories.values, self._count, self._total, self._kinds, strict=True
                )
            ),
            truncated=rest.truncated,
            malformed=rest.malformed,
            repairs=dict(rest.repairs),
            damage=text.damage,
            untimed=self._untimed,
            negative=self._negative,
            **said,
        )
        refusals.require_events(meta, rest)
        return self._columns.finish(meta, meta.base_ns or 0)


def _unsaid(event: Any) -> str:
    """Category of an event without one: Ascend gives device tasks none, but names their type."""
    return "kernel" if event.args is not None and event.args.task is not None else ""
