"""One trace file -> one Trace: typed decoding, exact nanoseconds, columns that grow block by block.

Exporters print microseconds with three decimals. A float64 holds every nanosecond of such a number
below 2^43 us (libkineto's time base keeps newer traces there), taken as whole part and fraction; a
trace in microseconds since the epoch passes that, so its blocks are decoded again with the text kept.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.errors import UnusableInput
from analyzer.trace.blocks import EventReader, Remainder, inflate
from analyzer.trace.columns import Columns, Interned
from analyzer.trace.dialect import FLAG_KEYS, KIND_OF_CATEGORY, LEFT_OUT, PROFILER_CATEGORIES
from analyzer.trace.schema import Category, Int64, Trace, TraceMeta
from analyzer.trace.schema import text_or_none as text

# 2^43 us: up to here the spacing of float64 is below one nanosecond (peers measured the same bound).
EXACT_BELOW_US = float(2**43)

_LEFT_OUT, _UNKNOWN = -1, -2


class Args(msgspec.Struct, gc=False, rename={"stream_id": "Stream Id", "queue": "sycl queue",
    "connection": "connection_id", "task": "Task Type", "nbytes": "bytes",
    "collective": "Collective name", "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems", "group_size": "Group size", "group": "Process Group Name",
    "ranks": "Process Group Ranks", "sequence": "Seq"}):  # fmt: skip
    """The arguments the analysis needs; types differ between exporters, so any is accepted."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    nbytes: Any = None
    queue: Any = None
    stream_id: Any = None
    connection: Any = None
    task: Any = None
    collective: Any = None
    in_elements: Any = None
    out_elements: Any = None
    group_size: Any = None
    group: Any = None
    ranks: Any = None
    dtype: Any = None
    sequence: Any = None


class Event(msgspec.Struct, gc=False):
    """One event with its times as numbers; text where the exporter quotes them."""

    ph: str = ""
    cat: str | None = None
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: float | str | None = None
    dur: float | str | None = None
    args: Args | None = None


class ExactEvent(msgspec.Struct, gc=False):
    """The same with the times' text kept."""

    ph: str = ""
    cat: str | None = None
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = msgspec.Raw(b"null")
    dur: msgspec.Raw = msgspec.Raw(b"null")
    args: Args | None = None


def read(path: Path) -> Trace:
    """The trace in `path`; UnusableInput when it holds no event of a PyTorch profiler."""
    with _collector_off():
        loader = _Loader()
        reader = EventReader(path.name, inflate(path), loader.decode)
        for events in reader:
            loader.add(events)
    return loader.finish(path, reader.rest)


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


class _Loader:
    """Collects the columns of one file."""

    def __init__(self) -> None:
        self._fast = msgspec.json.Decoder(list[Event]).decode
        self._exact = msgspec.json.Decoder(list[ExactEvent]).decode
        self.decode: Callable[[bytes], list[Any]] = self._decode_fast
        self._categories = Interned()
        self._kinds: list[int] = []
        self._count = np.zeros(0, np.int64)
        self._total = np.zeros(0, np.int64)
        self._columns = Columns()
        self._events = 0
        self._untimed = 0
        self._negative = 0

    def _decode_fast(self, block: bytes) -> list[Any]:
        events = self._fast(block)
        first = next((e.ts for e in events if e.ts), 0.0)
        if type(first) is float and first < EXACT_BELOW_US:
            return events
        # One clock and one exporter wrote the file: all further blocks are alike.
        self.decode = self._exact
        return self._exact(block)

    def add(self, events: list[Any]) -> None:
        """Appends one block: durations are booked by category, the kinds of interest are kept."""
        self._events += len(events)
        spans = [e for e in events if e.ph == "X"]
        if not spans:
            return
        ts, dur = self._times(spans)
        category = np.array([self._categories[_category(e)] for e in spans], np.intp)
        self._book(category, dur)
        kind = np.array(self._kinds, np.int8)[category]
        negative = dur < 0
        untimed = (ts == 0) & (dur == 0)
        self._negative += int(np.count_nonzero(negative))
        self._untimed += int(np.count_nonzero(untimed & (kind >= 0)))
        keep = (kind >= 0) & ~negative & ~untimed
        kept = list(compress(spans, keep.tolist()))
        self._columns.append(kept, ts[keep], dur[keep], kind[keep])

    def _times(self, spans: list[Any]) -> tuple[Int64, Int64]:
        """Start and length, ns; an event without either counts as one of negative length."""
        if type(spans[0]) is Event:
            return float_ns([e.ts for e in spans], 0), float_ns([e.dur for e in spans], -1)
        ts = np.array([exact_ns(bytes(e.ts), 0) for e in spans], np.int64)
        return ts, np.array([exact_ns(bytes(e.dur), -1) for e in spans], np.int64)

    def _book(self, category: npt.NDArray[np.intp], dur: Int64) -> None:
        for name in self._categories.values[len(self._kinds) :]:
            lower = name.lower()
            unknown = _LEFT_OUT if lower in LEFT_OUT else _UNKNOWN
            self._kinds.append(KIND_OF_CATEGORY.get(lower, unknown))
        grow = len(self._kinds) - len(self._count)
        self._count = np.pad(self._count, (0, grow))
        self._total = np.pad(self._total, (0, grow))
        np.add.at(self._count, category, 1)
        np.add.at(self._total, category, np.maximum(dur, 0))

    def finish(self, path: Path, rest: Remainder) -> Trace:
        """The whole trace; UnusableInput with the reason when nothing in it can be analysed."""
        header = _metadata(rest)
        base = header.get("baseTimeNanoseconds")
        base_ns = int(base) if isinstance(base, int | float | str) and str(base).strip() else None
        categories = tuple(
            Category(name, int(count), int(total), kind != _UNKNOWN)
            for name, count, total, kind in zip(
                self._categories.values, self._count, self._total, self._kinds, strict=True
            )
        )
        meta = _meta(path, header, base_ns, categories, rest, self)
        if not any(c.name.lower() in PROFILER_CATEGORIES for c in categories):
            raise UnusableInput(*_why_unusable(meta, path))
        return self._columns.finish(meta, base_ns or 0)

    @property
    def totals(self) -> dict[str, int]:
        """Counts for TraceMeta."""
        return {"events": self._events, "untimed": self._untimed, "negative": self._negative}


def _category(event: Any) -> str:
    """The event's category; Ascend gives none to device tasks but names their type."""
    if event.cat is None:
        return "kernel" if event.args is not None and event.args.task is not None else ""
    return str(event.cat)


def float_ns(us: list[Any], absent: int) -> Int64:
    """Microseconds as numbers -> ns, exact below 2^43 us; `absent` (ns) for None."""
    try:
        value = np.array(us, np.float64)
    except (TypeError, ValueError):
        # Quoted numbers beside plain ones.
        return np.array([exact_ns(str(u).encode(), absent) for u in us], np.int64)
    if np.isnan(value).any():
        return np.array([absent if u is None else exact_ns(repr(u).encode(), absent) for u in us])
    whole = np.floor(value)
    return (whole.astype(np.int64) * 1000) + np.rint((value - whole) * 1000).astype(np.int64)


def exact_ns(us: bytes, absent: int) -> int:
    """Decimal text of microseconds, quoted or not -> ns, rounded at the third decimal.

    `absent` (ns) for "null" and for text that is no finite number.
    """
    us = us.strip(b'" ')
    if us[-4:-3] == b"." and us[:-4].isdigit() and us[-3:].isdigit():
        return int(us[:-4] + us[-3:])
    if us.isdigit():
        return int(us) * 1000
    try:
        return int((Decimal(us.decode()) * 1000).to_integral_value())
    except (ArithmeticError, UnicodeDecodeError, ValueError):
        return absent


def _metadata(rest: Remainder) -> dict[str, Any]:
    """The keys beside traceEvents, wherever they stand; {} for a list or a damaged header."""
    if not rest.header:
        return {}
    for tail in (b"]" + rest.trailer, b"]}"):
        try:
            found = msgspec.json.decode(rest.header + tail)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        return found if isinstance(found, dict) else {}
    return {}


def _meta(
    path: Path,
    header: dict[str, Any],
    base_ns: int | None,
    categories: tuple[Category, ...],
    rest: Remainder,
    loader: _Loader,
) -> TraceMeta:
    info = header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    devices = header.get("deviceProperties")
    names = (
        [d.get("name") for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
    )
    groups = info.get("pg_config")
    return TraceMeta(
        name=path.name,
        size=path.stat().st_size,
        rank=integer(info.get("rank")),
        world_size=integer(info.get("world_size")),
        backend=text(info.get("backend")),
        host=text(header.get("host_name")),
        gpus=tuple(str(n) for n in names if n),
        torch=text(header.get("torch_version") or header.get("pytorch_version")),
        base_ns=base_ns,
        groups=tuple(
            (str(g.get("pg_name")), str(g.get("pg_desc", "")), integer(g.get("pg_size")) or 0)
            for g in (groups if isinstance(groups, list) else [])
            if isinstance(g, dict)
        ),
        flags={key: bool(header[key]) for key in FLAG_KEYS if key in header},
        categories=categories,
        truncated=rest.truncated,
        malformed=rest.malformed,
        **loader.totals,
    )


def integer(value: Any) -> int | None:
    """The value as an integer, None when it is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _why_unusable(meta: TraceMeta, path: Path) -> tuple[str, str]:
    size = f"{path.name} ({meta.size:,} bytes)"
    if not meta.events:
        return f"{size}: no trace events in it", "pass the file that torch.profiler exported"
    seen = ", ".join(c.name or "no category" for c in meta.categories[:5]) or "no timed events"
    return (
        f"{size}: {meta.events:,} events, none from a PyTorch profiler (categories: {seen})",
        "pass the file that torch.profiler exported",
    )
