"""How a simulated rank becomes the text of a Kineto trace, as the profiler would have recorded it.

Times leave as exact decimal microseconds from integer nanoseconds. The profiler keeps what starts
after it was switched on, so work launched before comes without its launch call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from referee.job import Job
from referee.ops import AUTOGRAD, COMMUNICATION, COMPUTE, MAIN, SUBMITS, Do, Op
from referee.simulate import Call, Rank

BASE_NS = 1_759_300_074_000_000_000
RUN_START_NS = 5_000_000_123_456_789
PID = 71_300
FIRST_STEP = 10
_SYNC_KINDS = {
    Do.WAIT: "Stream Wait Event",
    Do.SYNC_STREAM: "Stream Sync",
    Do.SYNC_EVENT: "Event Sync",
    Do.SYNC_DEVICE: "Context Sync",
}


def write(job: Job, ranks: list[Rank], folder: Path) -> None:
    """One trace a rank into `folder`."""
    for rank in ranks:
        text = _Trace(job, rank).text()
        (folder / f"rank{rank.number}.json").write_text(text, encoding="utf-8")


class _Trace:
    """The trace of one rank."""

    def __init__(self, job: Job, rank: Rank) -> None:
        self._job = job
        self._rank = rank
        self._pid = PID + rank.number
        self._tid = {MAIN: self._pid, AUTOGRAD: self._pid + 400}
        self._clock = RUN_START_NS + job.clock_offset_ns.get(rank.number, 0)
        self._correlation = 1000
        self._correlation_of: dict[int, int] = {}
        self._op_of: dict[int, Op] = {}
        self._record: dict[int, tuple[int, int]] = {}
        self._sequence = 0
        self._sequence_of: dict[int, int] = {}
        self._opened: list[int] = []

    def text(self) -> str:
        """The whole file, one event a line."""
        keys = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in self._header().items()]
        events = ",\n".join(self._events())
        return "{\n" + ",\n".join(keys) + ',\n"traceEvents": [\n' + events + "\n]\n}\n"

    def _header(self) -> dict[str, Any]:
        job, number = self._job, self._rank.number
        header: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}],
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
            "host_name": "node1" if number in job.clock_offset_ns else "node0",
        }
        if job.ranks > 1:
            group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                     "pg_size": job.ranks, "ranks": list(range(job.ranks))}  # fmt: skip
            header["distributedInfo"] = {"backend": "nccl", "rank": number, "pg_count": 1,
                                         "world_size": job.ranks, "pg_config": [group]}  # fmt: skip
        return header

    def _events(self) -> Iterator[str]:
        job, rank = self._job, self._rank
        for step, calls in enumerate(rank.calls):
            recorded = step >= job.warmup
            for call in calls:
                self._number(call)
                if recorded:
                    yield from self._call(call, step)
        end = rank.calls[-1][-1].end
        done = max(end + 5_000, max(rank.device.end) + round(job.return_us * 1000))
        yield self._complete("cuda_runtime", "cudaDeviceSynchronize", MAIN, end + 1_000, done,
                             {"cbid": 165, "correlation": self._correlation + 1})  # fmt: skip
        capture = rank.calls[job.warmup][0].start
        for n, start in enumerate(rank.device.start):
            if start >= capture:
                yield self._activity(n, self._op_of[n])
        yield from self._names()

    def _number(self, call: Call) -> None:
        """Gives the call its correlation, and what it queues its own."""
        self._correlation += 3
        if call.op.do is Do.RECORD:
            self._record[call.op.event] = self._correlation, call.op.stream
        elif call.op.do in SUBMITS:
            self._correlation_of[call.activity] = self._correlation
            self._op_of[call.activity] = call.op
            if call.op.do is Do.COLLECTIVE:
                self._sequence += 1
                self._sequence_of[call.activity] = self._sequence

    def _call(self, call: Call, step: int) -> Iterator[str]:
        op = call.op
        if op.do is Do.OPEN:
            self._opened.append(call.start)
        elif op.do is Do.CLOSE:
            begin = self._opened.pop()
            name = op.name.format(step + FIRST_STEP)
            yield self._complete("user_annotation", name, MAIN, begin, call.end, {})
        elif op.do is Do.LOAD:
            yield self._complete("user_annotation", op.name, MAIN, call.start, call.end, {})
        elif op.call:
            yield from self._operators(call)
            if self._job.dialect.event_calls or op.do not in (Do.RECORD, Do.WAIT):
                args = {"External id": self._correlation, "cbid": 211,
                        "correlation": self._correlation}  # fmt: skip
                yield self._complete("cuda_runtime", op.call, op.thread, call.start, call.end, args)
            if self._job.dialect.sync_events and op.do in _SYNC_KINDS:
                yield self._sync(call)

    def _operators(self, call: Call) -> Iterator[str]:
        """Operators around the call; a part of the host time before it is Python's."""
        host = call.start - call.begin
        for part, name in zip((4, 2), call.op.ops, strict=False):
            begin = call.start - host * part // 5
            args = {"External id": self._correlation + (part == 4)}
            yield self._complete("cpu_op", name, call.op.thread, begin, call.end, args)

    def _sync(self, call: Call) -> str:
        op = call.op
        stream = -1 if op.do is Do.SYNC_DEVICE else op.stream
        args = {"cuda_sync_kind": _SYNC_KINDS[op.do], "stream": stream, "device": 0, "context": 1,
                "correlation": self._correlation}  # fmt: skip
        if op.event >= 0 and op.event in self._record:
            record, on = self._record[op.event]
            args |= {"wait_on_stream": on, "wait_on_cuda_event_record_corr_id": record,
                     "wait_on_cuda_event_id": op.event}  # fmt: skip
        end = call.start if op.do is Do.WAIT else call.end
        return self._event("cuda_sync", _SYNC_KINDS[op.do], 0, stream, call.start, end, args)

    def _activity(self, n: int, op: Op) -> str:
        start, end = self._rank.device.start[n], self._rank.device.end[n]
        correlation = self._correlation_of[n]
        args: dict[str, Any] = {"External id": correlation, "device": 0, "context": 1,
                                "stream": op.stream, "correlation": correlation}  # fmt: skip
        category = "kernel"
        if op.do is Do.COPY:
            category = "gpu_memcpy"
            args["bytes"] = op.size
        elif op.do is Do.COLLECTIVE and self._job.dialect.collective_args:
            args |= self._collective(n, op)
        return self._event(category, op.name, 0, op.stream, start, end, args)

    def _collective(self, n: int, op: Op) -> dict[str, Any]:
        ranks = self._job.ranks
        whole = op.size // 2
        part = whole // ranks
        return {
            "Collective name": op.kind,
            "In msg nelems": part if op.kind == "_allgather_base" else whole,
            "Out msg nelems": part if op.kind == "_reduce_scatter_base" else whole,
            "Group size": ranks,
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(ranks))),
            "Seq": self._sequence_of[n],
        }

    def _names(self) -> Iterator[str]:
        for pid, name, labels in ((self._pid, "python", "CPU"), (0, "python", "GPU 0")):
            yield self._meta("process_name", pid, 0, {"name": name})
            yield self._meta("process_labels", pid, 0, {"labels": labels})
        for stream in (COMPUTE, COMMUNICATION):
            yield self._meta("thread_name", 0, stream, {"name": f"stream {stream}"})

    def _meta(self, name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
        return json.dumps({"name": name, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args})

    def _complete(
        self, category: str, name: str, thread: str, start: int, end: int, args: dict[str, Any]
    ) -> str:
        return self._event(category, name, self._pid, self._tid[thread], start, end, args)

    def _event(
        self, category: str, name: str, pid: int, tid: int, start: int, end: int,
        args: dict[str, Any],
    ) -> str:  # fmt: skip
        at, length = self._clock + start, end - start
        # No name here holds a character that JSON escapes.
        return (
            f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
            f'"ts": {at // 1000}.{at % 1000:03d}, "dur": {length // 1000}.{length % 1000:03d}, '
            f'"args": {json.dumps(args)}}}'
        )
