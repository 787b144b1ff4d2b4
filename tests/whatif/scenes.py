"""Runs of seven steps whose length can be reckoned on one's fingers; times in microseconds.

Launches reach the device at once and a call takes 1 us. A step that ends with a blocking call is
what is asked for, the 5 us that the call takes to return, and 1 us until the next call (another one
after the loader). The first and the last step are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from make import MAIN, TraceBuilder, trace
from runs import GEMM

STEPS = 7
SINGLE = "_SingleProcessDataLoaderIter"
WORKERS = "_MultiProcessingDataLoaderIter"


def alone(
    *,
    load: int = 0,
    iterator: str = SINGLE,
    alloc: int = 0,
    silent: int = 0,
    batch: int = 0,
    busy: int = 0,
    compute: int = 500,
    copy: int = 0,
    optimizer: int = 0,
    sync: str = "cudaDeviceSynchronize",
) -> TraceBuilder:
    """One rank that does one thing after the other, and at each step's end waits for its device."""
    built = trace()
    t = 0
    for k in range(STEPS):
        begin = t
        if load:
            built.loader(t, t + load, iterator=iterator)
            t += load + 1
        if alloc:
            built.runtime("cudaMalloc", t, t + alloc)
            t += alloc
        t += silent
        free = t
        if batch:
            built.copy("HtoD", t, t + batch, launch=(t, t + 1))
            t, free = t + 1, t + batch
        if busy:
            built.op("aten::busy", t, t + busy)
            t += busy
        end = max(t, free) + compute
        built.kernel(GEMM, end - compute, end, launch=(t, t + 1))
        t += 1
        if copy:
            built.copy("DtoD", end, end + copy, launch=(t, t + 1))
            t, end = t + 1, end + copy
        if optimizer:
            built.annotation("Optimizer.step#AdamW.step", t, t + 2)
            built.kernel("adam", end, end + optimizer, launch=(t, t + 1))
            t, end = t + 2, end + optimizer
        built.sync(t, end + 5, call=sync)
        t = end + 6
        built.step(k + 1, begin, t)
    return built


def ddp(
    compute: Sequence[int],
    *,
    transfer: int = 100,
    after: int = 200,
    optimizer: int = 0,
    elements: int = 1024,
    clock_us: Sequence[int] = (),
    thread: int = MAIN,
) -> list[TraceBuilder]:
    """Ranks that compute for so long each, all-reduce, and compute `after` it; hosts run ahead.

    `thread` launches that last part; a rank's clock is ahead by its `clock_us`.
    """
    built = [trace(r, len(compute)) for r in range(len(compute))]
    ahead = [*clock_us, *[0] * (len(compute) - len(clock_us))]
    free = 100
    for k in range(STEPS):
        met = free + max(compute)
        for rank, length, by in zip(built, compute, ahead, strict=True):
            at, start = 10 * k + by, free + by
            rank.step(k + 1, at, at + 10)
            rank.kernel(GEMM, start, start + length, launch=(at, at + 1))
            rank.collective(
                "allreduce", start + length, met + transfer + by,
                launch=(at + 2, at + 3), elements=elements,
            )  # fmt: skip
            end = met + transfer + by
            rank.kernel(GEMM, end, end + after, launch=(at + 4, at + 5), thread=thread)
            if optimizer:
                rank.annotation("Optimizer.step#AdamW.step", at + 6, at + 8)
                rank.kernel("adam", end + after, end + after + optimizer, launch=(at + 6, at + 7))
        free = met + transfer + after + optimizer
    return built


def held(us: int) -> TraceBuilder:
    """Steps of 1,000 us in which launched work does not start for so long, and nothing says why."""
    built = trace()
    for k in range(STEPS):
        at = 1000 * k
        built.step(k + 1, 10 * k, 10 * k + 9)
        built.kernel(GEMM, at + us, at + 1000, launch=(10 * k, 10 * k + 1))
    return built
