"""How a test writes a Kineto trace whose right answer can be read off the call that made it.

Times are microseconds since the start of the scene (int, or decimal text such as "12.345"), kept
as integer nanoseconds and written as exact decimal text: no float comes near them. A trace is a
list of finished event texts, so a damaged one is an ordinary `str` or `bytes` away.

    trace(rank=0, world_size=2).step(1, 0, 100).kernel("gemm", 10, 90, launch=(0, 5)).write(path)
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import zstandard

Micros = int | str | Decimal
Args = Mapping[str, Any]

PID = 4242
MAIN = 4242
AUTOGRAD = 4300
SCENE_NS = 1_760_000_123_456_000_000  # time of the scene's zero, nanoseconds since the epoch
BASE_NS = 1_759_000_000_000_000_000  # baseTimeNanoseconds unless the test says otherwise

_COPIES = {
    "HtoD": "Memcpy HtoD (Pinned -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pageable)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
    "PtoP": "Memcpy PtoP (Device -> Device)",
}


@dataclass(frozen=True)
class Dialect:
    """How one generation or vendor spells things; names not in a table stay as they are."""

    categories: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    flow: tuple[str, str] = ("ac2g", "ac2g")
    whole_micros: bool = False
    text_times: bool = False
    text_tids: bool = False
    schema_version: bool = True


CUDA = Dialect()
HIP = Dialect(
    calls=MappingProxyType(
        {
            "cudaLaunchKernel": "hipLaunchKernel",
            "cudaLaunchKernelExC": "hipExtLaunchKernel",
            "cudaMemcpyAsync": "hipMemcpyAsync",
            "cudaMemsetAsync": "hipMemsetAsync",
            "cudaStreamSynchronize": "hipStreamSynchronize",
            "cudaDeviceSynchronize": "hipDeviceSynchronize",
        }
    )
)
OLD = Dialect(
    categories=MappingProxyType(
        {
            "cpu_op": "Operator",
            "user_annotation": "Operator",
            "cuda_runtime": "Runtime",
            "kernel": "Kernel",
            "gpu_memcpy": "Memcpy",
            "gpu_memset": "Memset",
        }
    ),
    flow=("async", "launch"),
    whole_micros=True,
    text_tids=True,
    schema_version=False,
)
ASCEND_TEXT = Dialect(text_times=True)


def to_ns(micros: Micros) -> int:
    """Nanoseconds of a time in microseconds; ValueError below a nanosecond, TypeError on floats."""
    if isinstance(micros, float):
        raise TypeError(f"{micros!r}: write times as int or decimal text, a float is not exact")
    ns = Decimal(micros) * 1000
    if ns != ns.to_integral_value():
        raise ValueError(f"{micros} us is not a whole number of nanoseconds")
    return int(ns)


def to_micros(ns: int) -> str:
    """Decimal text in microseconds with the three digits Kineto writes, exact."""
    sign, whole = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{whole // 1000}.{whole % 1000:03d}"


def pack(path: Path, data: bytes) -> Path:
    """Write `data` compressed as the suffix of `path` says; returns `path`."""
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@dataclass
class TraceBuilder:
    """One rank's trace in the making; every method adds events and returns the builder.

    An `end` before its `start` writes the negative length that unfinished events have.
    """

    rank: int | None
    world_size: int
    device: int
    dialect: Dialect
    scene_ns: int
    base_ns: int | None
    backend: str
    events: list[str] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)
    last_correlation: int = 0
    last_seq: int = 0

    def step(self, index: int, start: Micros, end: Micros) -> TraceBuilder:
        """The host mark of one profiler step."""
        return self.annotation(f"ProfilerStep#{index}", start, end)

    def annotation(
        self, name: str, start: Micros, end: Micros, *, thread: int = MAIN, args: Args | None = None
    ) -> TraceBuilder:
        """A `record_function` range on the host."""
        return self.event("user_annotation", name, start, end, tid=thread, args=args)

    def op(
        self, name: str, start: Micros, end: Micros, *, thread: int = MAIN, args: Args | None = None
    ) -> TraceBuilder:
        """A framework operator on the host."""
        return self.event("cpu_op", name, start, end, tid=thread, args=args)

    def python(self, name: str, start: Micros, end: Micros, *, thread: int = MAIN) -> TraceBuilder:
        """A Python frame, as recorded with stacks."""
        return self.event("python_function", name, start, end, tid=thread)

    def loader(
        self, start: Micros, end: Micros, *, iterator: str = "_MultiProcessingDataLoaderIter"
    ) -> TraceBuilder:
        """The main thread inside the data loader's `__next__`."""
        return self.annotation(f"enumerate(DataLoader)#{iterator}.__next__", start, end)

    def sync(
        self,
        start: Micros,
        end: Micros,
        *,
        call: str = "cudaStreamSynchronize",
        thread: int = MAIN,
    ) -> TraceBuilder:
        """A blocking call on the host."""
        return self.runtime(call, start, end, thread=thread)

    def runtime(
        self,
        name: str,
        start: Micros,
        end: Micros,
        *,
        correlation: int | None = None,
        thread: int = MAIN,
    ) -> TraceBuilder:
        """A runtime or driver call; without `correlation` it takes the next free one."""
        name = self.dialect.calls.get(name, name)
        driver = name.startswith("cu") and not name.startswith("cuda")
        number = self._next(correlation)
        return self.event(
            "cuda_driver" if driver else "cuda_runtime",
            name,
            start,
            end,
            tid=thread,
            args={"correlation": number},
        )

    def awaiting(
        self,
        call: str,
        start: Micros,
        end: Micros,
        *,
        stream: int,
        on: int | None = None,
        record: int = -1,
        thread: int = MAIN,
    ) -> TraceBuilder:
        """A call that waits and the record of what for: for all of `stream`, or `stream` for the
        event that the call of correlation `record` recorded on stream `on`.
        """
        number = self._next(None)
        self.runtime(call, start, end, correlation=number, thread=thread)
        args = {"stream": stream, "correlation": number}
        args |= {"wait_on_stream": -1 if on is None else on}
        args |= {"wait_on_cuda_event_record_corr_id": record}
        return self.event("cuda_sync", call, start, end, pid=self.device, tid=stream, args=args)

    def kernel(self, name: str, start: Micros, end: Micros, **how: Any) -> TraceBuilder:
        """A kernel; `how` as in `activity`."""
        return self.activity("kernel", name, start, end, **how)

    def copy(self, direction: str, start: Micros, end: Micros, **how: Any) -> TraceBuilder:
        """A copy: HtoD, DtoH, DtoD, PtoP or a full name; `how` as in `activity`."""
        name = _COPIES.get(direction, direction)
        return self.activity("gpu_memcpy", name, start, end, **{"call": "cudaMemcpyAsync"} | how)

    def memset(self, start: Micros, end: Micros, **how: Any) -> TraceBuilder:
        """A memset; `how` as in `activity`."""
        how = {"call": "cudaMemsetAsync"} | how
        return self.activity("gpu_memset", "Memset (Device)", start, end, **how)

    def collective(
        self,
        kind: str,
        start: Micros,
        end: Micros,
        *,
        name: str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        elements: int = 1024,
        dtype: str = "Float",
        group: str = "0",
        ranks: Sequence[int] | None = None,
        seq: int | None = None,
        **how: Any,
    ) -> TraceBuilder:
        """An NCCL kernel that says what it is; `kind` as in the trace: allreduce, _allgather_base.

        `how` as in `activity`, on stream 20. For one that says nothing use `kernel`.
        """
        members = list(range(self.world_size)) if ranks is None else list(ranks)
        self.last_seq = self.last_seq + 1 if seq is None else seq
        args = {
            "Collective name": kind,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": len(members),
            "dtype": dtype,
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": group,
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(members),
            "Seq": self.last_seq,
        }
        how = {"call": "cudaLaunchKernelExC", "stream": 20, "args": args} | how
        return self.kernel(name, start, end, **how)

    def activity(
        self,
        category: str,
        name: str,
        start: Micros,
        end: Micros,
        *,
        launch: tuple[Micros, Micros] | None = None,
        call: str = "cudaLaunchKernel",
        thread: int = MAIN,
        stream: int | None = 7,
        correlation: int | None = None,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Work on the device; `launch` is when its launch call ran (None: no call recorded).

        `stream` None writes no stream, as XPU does; `args` are added to the event's own.
        """
        number = self._next(correlation)
        if launch is not None:
            self.runtime(call, *launch, correlation=number, thread=thread)
            self._flow("s", number, launch[0], PID, thread)
        full: dict[str, Any] = {"device": self.device, "context": 1}
        if stream is not None:
            full["stream"] = stream
        full |= {"correlation": number} | dict(args or {})
        tid = 0 if stream is None else stream
        lane = f"stream {tid}" if self.dialect.text_tids else tid
        self.event(category, name, start, end, pid=self.device, tid=lane, args=full)
        if launch is not None:
            self._flow("f", number, start, self.device, lane)
        return self

    def gpu_annotation(
        self, name: str, start: Micros, end: Micros, *, stream: int = 7
    ) -> TraceBuilder:
        """A host range projected on the device by the profiler."""
        return self.event("gpu_user_annotation", name, start, end, pid=self.device, tid=stream)

    def event(
        self,
        category: str,
        name: str,
        start: Micros,
        end: Micros,
        *,
        pid: int | str = PID,
        tid: int | str = MAIN,
        args: Args | None = None,
    ) -> TraceBuilder:
        """Any complete ("X") event: other categories, other tracks."""
        head: dict[str, Any] = {
            "ph": "X",
            "cat": self.dialect.categories.get(category, category),
            "name": name,
        }
        head |= {"pid": pid, "tid": self._tid(tid)}
        begin, finish = self._at(start), self._at(end)
        times = {"ts": self._number(begin), "dur": self._number(finish - begin)}
        return self._line(head, times, {} if args is None else {"args": dict(args)})

    def metadata(self, name: str, value: Any, *, pid: int = PID, tid: int = 0) -> TraceBuilder:
        """A metadata ("M") event such as process_name, process_labels, thread_name."""
        key = {"process_labels": "labels"}.get(
            name, "sort_index" if name.endswith("index") else "name"
        )
        return self.raw(
            {"name": name, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {key: value}}
        )

    def raw(self, event: Mapping[str, Any]) -> TraceBuilder:
        """An event exactly as given: no time base, no dialect."""
        self.events.append(json.dumps(dict(event)))
        return self

    def raw_text(self, text: str) -> TraceBuilder:
        """The text of an event, broken or not, put in the list as it is."""
        self.events.append(text)
        return self

    def top(self, key: str, value: Any) -> TraceBuilder:
        """A key beside traceEvents; replaces the one the builder would write."""
        self.head[key] = value
        return self

    def text(self) -> str:
        """The trace as an object, its header before the events as newer exporters write it."""
        return self._document(header_first=True)

    def text_header_last(self) -> str:
        """The trace with its header after the events, as older exporters wrote it."""
        return self._document(header_first=False)

    def text_list(self) -> str:
        """Only the list of events, as some exporters write it."""
        return "[\n" + ",\n".join(self.events) + "\n]\n"

    def write(self, path: Path) -> Path:
        """`text()` in a file, compressed by suffix (.json, .json.gz, .json.zst)."""
        return pack(path, self.text().encode())

    def _document(self, *, header_first: bool) -> str:
        header: dict[str, Any] = {"schemaVersion": 1} if self.dialect.schema_version else {}
        if self.rank is not None:
            header["distributedInfo"] = {
                "backend": self.backend,
                "rank": self.rank,
                "world_size": self.world_size,
            }
        if self.base_ns is not None:
            header["baseTimeNanoseconds"] = self.base_ns
        keys = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in (header | self.head).items()]
        events = '"traceEvents": [\n' + ",\n".join(self.events) + "\n]"
        return "{" + ",\n".join([*keys, events] if header_first else [events, *keys]) + "}\n"

    def _flow(self, phase: str, number: int, at: Micros, pid: int, tid: int | str) -> None:
        category, name = self.dialect.flow
        head: dict[str, Any] = {
            "ph": phase,
            "id": number,
            "pid": pid,
            "tid": tid,
            "cat": category,
            "name": name,
        }
        times = {"ts": self._number(self._at(at))}
        self._line(head, times, {"bp": "e"} if phase == "f" else {})

    def _line(
        self, head: Mapping[str, Any], times: Mapping[str, str], tail: Mapping[str, Any]
    ) -> TraceBuilder:
        parts = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
        parts += [f"{json.dumps(k)}: {v}" for k, v in times.items()]
        parts += [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in tail.items()]
        self.events.append("{" + ", ".join(parts) + "}")
        return self

    def _at(self, micros: Micros) -> int:
        return self.scene_ns - (self.base_ns or 0) + to_ns(micros)

    def _number(self, ns: int) -> str:
        if self.dialect.whole_micros:
            return str(ns // 1000)
        text = to_micros(ns)
        return f'"{text}"' if self.dialect.text_times else text

    def _tid(self, tid: int | str) -> int | str:
        return str(tid) if self.dialect.text_tids else tid

    def _next(self, correlation: int | None) -> int:
        if correlation is not None:
            return correlation
        self.last_correlation += 1
        return self.last_correlation


def trace(
    rank: int | None = 0,
    world_size: int = 1,
    *,
    device: int | None = None,
    dialect: Dialect = CUDA,
    base_ns: int | None = BASE_NS,
    scene_ns: int = SCENE_NS,
    backend: str = "nccl",
) -> TraceBuilder:
    """An empty trace. `rank` None: no distributedInfo. `device` None: the rank's number.

    `scene_ns` is when the scene's zero was (another value is another clock). `base_ns` is the
    baseTimeNanoseconds of the file: changing it changes the numbers written and no time; None
    writes no such key, and times are microseconds since the epoch.
    """
    return TraceBuilder(
        rank=rank,
        world_size=world_size,
        device=(rank or 0) if device is None else device,
        dialect=dialect,
        scene_ns=scene_ns,
        base_ns=None if dialect is OLD else base_ns,
        backend=backend,
    )
