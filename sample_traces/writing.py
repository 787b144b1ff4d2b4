"""How a simulated rank becomes the text of a Kineto trace, as the profiler would have recorded it.

Times leave as exact decimal microseconds from integer nanoseconds. The profiler keeps what starts
after it was switched on, so kernels launched before come without their launch call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from device import COMM_STREAM, COMPUTE_STREAM, Activity
from job import Scenario
from schedule import AUTOGRAD, MAIN, Rank

BASE_NS = 1_759_300_074_000_000_000
RUN_START_NS = 1_764_000_000_123_456_789 - BASE_NS
PID = 71_300
GPU = "NVIDIA A100-SXM4-80GB"


def trace_text(rank: Rank, capture_start: int) -> str:
    """The trace of one rank from `capture_start` (ns of the run) on; one event a line."""
    head = _header(rank.scenario, rank.number)
    events = ",\n".join(_events(rank, capture_start))
    keys = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join(keys) + ',\n"traceEvents": [\n' + events + "\n]\n}\n"


def absolute_ns(run_ns: int) -> int:
    """Nanoseconds since the epoch of a time of the run."""
    return BASE_NS + RUN_START_NS + run_ns


def _header(scenario: Scenario, rank: int) -> dict[str, Any]:
    properties = {
        "name": GPU,
        "totalGlobalMem": 85_174_583_296,
        "computeMajor": 8,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "warpSize": 32,
        "numSms": 108,
    }
    members = list(range(scenario.ranks))
    group = {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cuda:nccl",
        "pg_size": scenario.ranks,
        "ranks": members,
    }
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": number, **properties} for number in members],
        "cuda_runtime_version": 12060,
        "cuda_driver_version": 12080,
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank,
            "world_size": scenario.ranks,
            "pg_count": 1,
            "pg_config": [group],
            "nccl_version": "2.27.3",
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }


def _events(rank: Rank, capture_start: int) -> Iterator[str]:
    thread = {MAIN: PID + rank.number, AUTOGRAD: PID + 400 + rank.number}
    pid = thread[MAIN]
    for event in sorted(rank.host, key=lambda e: (e.start, -e.end)):
        if event.start >= capture_start:
            times = (event.start, event.end)
            tid = thread[event.thread]
            yield _complete(event.category, event.name, (pid, tid), times, event.args)
    for activity in sorted(rank.device.done, key=lambda a: (a.start, a.stream)):
        if activity.start >= capture_start:
            on_autograd = activity.phase in ("backward", "comm")
            yield from _activity(rank, activity, pid, thread[AUTOGRAD if on_autograd else MAIN])
            if activity.launch_start >= capture_start:
                tid = thread[AUTOGRAD if on_autograd else MAIN]
                yield _flow("s", activity.correlation, (pid, tid), activity.launch_start)
    yield from _step_marks_on_device(rank, capture_start)
    yield from _names(rank.number, pid, thread, capture_start)


def _activity(rank: Rank, activity: Activity, pid: int, tid: int) -> Iterator[str]:
    track = (rank.number, activity.stream)
    times = (activity.start, activity.end)
    args = _activity_args(rank, activity)
    yield _complete(activity.category, activity.name, track, times, args)
    yield _flow("f", activity.correlation, track, activity.start)
    if activity.phase == "comm":
        label = {"External id": activity.external_id}
        yield _complete("gpu_user_annotation", "nccl:all_reduce", track, times, label)


def _activity_args(rank: Rank, activity: Activity) -> dict[str, Any]:
    args: dict[str, Any] = {
        "External id": activity.external_id,
        "device": rank.number,
        "context": 1,
        "stream": activity.stream,
        "correlation": activity.correlation,
    }
    if activity.category == "gpu_memcpy":
        speed = round(activity.size / activity.duration, 6)
        return args | {"bytes": activity.size, "memory bandwidth (GB/s)": speed}
    if activity.phase != "comm":
        return args | {"grid": [432, 1, 1], "block": [256, 1, 1]}
    members = list(range(rank.scenario.ranks))
    return args | {
        "grid": [24, 1, 1],
        "block": [544, 1, 1],
        "Collective name": "allreduce",
        "In msg nelems": activity.size,
        "Out msg nelems": activity.size,
        "Group size": len(members),
        "dtype": "Float",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(members),
        "Seq": activity.seq,
    }


def _step_marks_on_device(rank: Rank, capture_start: int) -> Iterator[str]:
    """The step marks as the profiler projects them: over the work the main thread launched."""
    spans: dict[int, tuple[int, int]] = {}
    for activity in rank.device.done:
        if activity.phase in ("input", "forward") and activity.launch_start >= capture_start:
            first, _ = spans.get(activity.step, (activity.start, 0))
            spans[activity.step] = (first, activity.end)
    for step, times in spans.items():
        track = (rank.number, COMPUTE_STREAM)
        yield _complete("gpu_user_annotation", f"ProfilerStep#{step}", track, times, {})


def _names(rank: int, pid: int, thread: dict[str, int], at: int) -> Iterator[str]:
    rows: list[tuple[str, int, int, dict[str, Any]]] = [
        ("process_name", pid, 0, {"name": "python"}),
        ("process_labels", pid, 0, {"labels": "CPU"}),
        ("process_sort_index", pid, 0, {"sort_index": pid}),
        ("process_name", rank, 0, {"name": "python"}),
        ("process_labels", rank, 0, {"labels": f"GPU {rank}"}),
        ("process_sort_index", rank, 0, {"sort_index": 5_000_000 + rank}),
        ("thread_name", pid, thread[MAIN], {"name": f"thread {thread[MAIN]} (python)"}),
        (
            "thread_name",
            pid,
            thread[AUTOGRAD],
            {"name": f"thread {thread[AUTOGRAD]} (pt_autograd_{rank})"},
        ),
    ]
    rows += [
        ("thread_name", rank, s, {"name": f"stream {s} "}) for s in (COMPUTE_STREAM, COMM_STREAM)
    ]
    for name, process, tid, args in rows:
        yield (
            f'{{"name": "{name}", "ph": "M", "ts": {_micros(at)}, '
            f'"pid": {process}, "tid": {tid}, "args": {json.dumps(args)}}}'
        )


def _complete(
    category: str, name: str, track: tuple[int, int], times: tuple[int, int], args: dict[str, Any]
) -> str:
    start, end = times
    length = f"{(end - start) // 1000}.{(end - start) % 1000:03d}"
    return (
        f'{{"ph": "X", "cat": "{category}", "name": {json.dumps(name)}, "pid": {track[0]}, '
        f'"tid": {track[1]}, "ts": {_micros(start)}, "dur": {length}, "args": {json.dumps(args)}}}'
    )


def _flow(phase: str, number: int, track: tuple[int, int], at: int) -> str:
    tail = ', "bp": "e"' if phase == "f" else ""
    return (
        f'{{"ph": "{phase}", "id": {number}, "pid": {track[0]}, "tid": {track[1]}, '
        f'"ts": {_micros(at)}, "cat": "ac2g", "name": "ac2g"{tail}}}'
    )


def _micros(run_ns: int) -> str:
    written = RUN_START_NS + run_ns
    return f"{written // 1000}.{written % 1000:03d}"
