"""Traces of one event given as text, or of one event of each kind; and how to read them."""

from __future__ import annotations

from pathlib import Path

from make import TraceBuilder, pack, trace

from analyzer.trace import kineto
from analyzer.trace.schema import Trace


def reading(folder: Path, text: str | bytes, name: str = "trace.json") -> Trace:
    data = text.encode() if isinstance(text, str) else text
    return kineto.read(pack(folder / name, data))


def one(folder: Path, event: str, head: str = "") -> Trace:
    """A trace of this event text and one operator at 1 ns that makes it a profiler's."""
    mark = '{"ph": "X", "cat": "cpu_op", "name": "mark", "ts": 0.001, "dur": 1, "pid": 0, "tid": 0}'
    return reading(folder, f'{{{head}"traceEvents": [{mark}, {event}]}}')


def kernel(ts: str, dur: str = "2.500", args: str = "{}") -> str:
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 3, "tid": 9, '
        f'"ts": {ts}, "dur": {dur}, "args": {args}}}'
    )


def busy() -> TraceBuilder:
    """A step with each kind of event, so that two readings of it can be compared whole."""
    made = trace(rank=1, world_size=4).metadata("process_name", "python")
    made.step(1, 0, 100).op("aten::mm", 1, "9.001").python("train.py(3): f", 0, 99)
    made.kernel("gemm", 10, "20.5", launch=(2, 3), args={"inputs": [{"a": 1}, {"b": [{}, {}]}]})
    made.collective("allreduce", 20, 30, launch=(4, 5)).copy("HtoD", 31, 35, launch=(6, 7))
    made.memset(36, 37, launch=(8, "8.5")).sync(40, 50).loader(50, 60)
    return made.op('odd "}, {" [name', 61, 62).top("deviceProperties", [{"id": 0, "name": "H"}])
