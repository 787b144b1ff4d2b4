"""Our columns -> Holistic Trace Analysis: its notebook analyses without its parser.

    from analyzer.interop.hta import analysis
    analysis({0: kineto.read(path)}).get_idle_time_breakdown([0])

Times are us since the first event of all ranks, as floats to half a ns; its own parser rounds them.
Needs the extra `hta`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from analyzer.errors import UsageError
from analyzer.trace.schema import Kind, Trace

NS_PER_US = 1e3

# The names that its analyses ask for.
CATEGORIES = {
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
    Kind.RUNTIME: "cuda_runtime",
    Kind.OP: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.OVERHEAD: "overhead",
}


def module(name: str) -> Any:
    """A module of HTA; UsageError that names the extra when it is not installed."""
    # It brings 100 packages and a second of start-up: nobody else should wait for it.
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "hta":
            raise
        raise UsageError(
            "Holistic Trace Analysis is not installed", "pip install 'torch-ceiling[hta]'"
        ) from error


def analysis(traces: Mapping[int, Trace]) -> Any:
    """A TraceAnalysis of these traces by rank, all steps and all device work in it."""
    made = module("hta.trace_analysis").TraceAnalysis
    found = made.__new__(made)
    found.t = container(traces)
    return found


def container(traces: Mapping[int, Trace]) -> Any:
    """The Trace of HTA (its container of all ranks) with our columns."""
    its = module("hta.common.trace")
    found = its.Trace(trace_files={}, trace_dir=os.curdir)
    zero = min(int(t.ts.min()) for trace in traces.values()
               for t in (trace.device, trace.host) if len(t))  # fmt: skip
    for rank, trace in traces.items():
        names = [*CATEGORIES.values(), *trace.names]
        found.symbol_table.add_symbols(names)
        ids = found.symbol_table.get_sym_id_map()
        frame = _frame(trace, np.array([ids[name] for name in names], np.int64), zero)
        frame = its.transform_correlation_to_index(frame, found.symbol_table)
        its.add_iteration(frame, found.symbol_table)
        frame["end"] = frame["ts"] + frame["dur"]
        found.traces[rank] = frame
        found.meta_data[rank] = {}
    found.is_parsed = True
    return found


def _frame(trace: Trace, ids: Any, zero: int) -> Any:
    """One rank as its parser would leave it; `ids` are of the categories and then of our names."""
    device, host = trace.device, trace.host
    count = len(device) + len(host)

    def both(on_device: Any, on_host: Any) -> Any:
        return np.concatenate([np.broadcast_to(on_device, len(device)),
                               np.broadcast_to(on_host, len(host))])  # fmt: skip

    place = {kind: i for i, kind in enumerate(CATEGORIES)}
    category = np.array([place[Kind(k)] for k in both(device.kind, host.kind).tolist()], np.int64)
    streams = _numbers(trace.streams)
    threads = _numbers([thread for _, thread in trace.threads])
    processes = _numbers([process for process, _ in trace.threads])
    stream = streams[device.stream] if len(device) else np.zeros(0, np.int64)
    start = _micros(both(device.ts, host.ts) - zero)
    frame = module("pandas").DataFrame(
        {
            # From 1: as a link 0 means that the other end was not recorded.
            "index": np.arange(1, count + 1),
            "cat": ids[category] if count else category,
            "name": ids[both(device.name, host.name) + len(CATEGORIES)],
            "ts": start,
            "dur": _micros(both(device.end, host.end) - zero) - start,
            "pid": both(device.device, processes[host.thread] if len(host) else 0),
            "tid": both(stream, threads[host.thread] if len(host) else 0),
            "stream": both(stream, -1),
            "correlation": both(device.correlation, host.correlation),
            "bytes": both(device.nbytes, -1),
            "external_id": -1,
            "wait_on_stream": -1,
            "wait_on_cuda_event_record_corr_id": -1,
        }
    )
    length = np.maximum(frame["dur"], 1.0 / NS_PER_US)
    frame["memory_bw_gbps"] = np.where(frame["bytes"] > 0, frame["bytes"] / length / 1e3, 0.0)
    return frame.sort_values("ts", kind="stable").set_index("index", drop=False).rename_axis(None)


def _micros(ns: Any) -> Any:
    """Microseconds in 1,024ths: within half a ns, and sums of them are exact, so that what ends
    with the operator around it does not seem to end after it.
    """
    return np.rint(ns * (1024 / NS_PER_US)) / 1024


def _numbers(names: list[str]) -> Any:
    """Ids as numbers: their own where they are one, else such that no own one is met."""
    taken = {int(name) for name in names if name.isdigit()}
    free = iter(n for n in range(1, len(names) + len(taken) + 2) if n not in taken)
    return np.array([int(n) if n.isdigit() else next(free) for n in names], np.int64)
