"""What each exporter calls things: category names and argument names, as data.

Kineto renamed its categories in 2022 and every vendor adds its own; matching is case-insensitive,
so the capitalised names of PyTorch 1.8 to 1.12 need rows only where the word itself changed.
"""

from __future__ import annotations

from analyzer.trace.schema import Kind

KIND_OF_CATEGORY: dict[str, Kind] = {
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "mtia_ccp_events": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "collective_comm": Kind.KERNEL,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "xpu_driver": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "privateuse1_driver": Kind.RUNTIME,
    "cpu_op": Kind.OP,
    "operator": Kind.OP,
    "user_annotation": Kind.ANNOTATION,
    "overhead": Kind.OVERHEAD,
}

# What a wait between streams, or of the host, waited for. Newer versions write it on request.
WAITS = frozenset({"cuda_sync", "xpu_sync"})

# Understood, and left out of the tables: copies of host marks on device tracks, waits (which are
# not work), Python frames (most of a trace with stacks), the profiler's own frame, queue marks.
LEFT_OUT = WAITS | frozenset(
    {
        "python_function",
        "gpu_user_annotation",
        "cuda_event",
        "cuda_profiler_range",
        "trace",
        "enqueue",
        "dequeue",
    }
)

# MTIA writes the waits of its queues beside the work.
NOT_WORK = frozenset({"event_wait", "event_record"})

FLAG_KEYS = ("with_stack", "profile_memory", "record_shapes", "with_flops", "with_modules")

# Categories that only a PyTorch profiler writes: a file without any of them is some other trace.
PROFILER_CATEGORIES = frozenset(KIND_OF_CATEGORY) | LEFT_OUT - {"trace"}
