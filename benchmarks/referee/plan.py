"""Which job does a seed stand for? One dominant cause, or none, in a job that is else healthy."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from referee.draws import Draws, wire_ns
from referee.job import Dialect, Job, Loader, World
from referee.program import layer_us, step_program
from referee.simulate import simulate
from referee.truth import step_ends

STRATEGIES = ("ddp", "ddp", "fsdp", "fsdp", "tp", "single", "accumulate", "clip")
OF_ANY = ("healthy", "launch", "launch", "loader", "loader-workers", "sync", "sync", "optimizer")
OF_SEVERAL = ("slow-compute", "slow-compute", "slow-host", "slow-loader", "interconnect",
              "interconnect")  # fmt: skip


def planned(seed: int) -> Job:
    """The job of a seed."""
    draw = Random(f"job {seed}")
    strategy = draw.choice(STRATEGIES)
    cause = draw.choice(OF_ANY if strategy == "single" else OF_ANY + OF_SEVERAL)
    job = _sized(_healthy(draw, seed, strategy, cause), draw)
    job = _with_traffic(_with_cause(job, draw), draw)
    return _with_slow_workers(job, draw)


def _healthy(draw: Random, seed: int, strategy: str, cause: str) -> Job:
    waits = draw.random() < 0.4
    ranks = 1 if strategy == "single" else draw.choice((2, 2, 4, 4, 8))
    return Job(
        seed=seed,
        strategy=strategy,
        cause=cause,
        ranks=ranks,
        layers=draw.randint(3, 8 if ranks == 8 else 16),
        micro_batches=draw.randint(2, 4) if strategy == "accumulate" else 1,
        layers_per_bucket=draw.choice((1, 1, 2)),
        kernel_us=draw.uniform(30, 110),
        dispatch_us=draw.uniform(5, 11),
        call_us=draw.uniform(3, 6),
        latency_us=draw.uniform(4, 9),
        return_us=draw.uniform(5, 12),
        collective_latency_us=draw.uniform(8, 30),
        step_end=draw.choice(("none", "none", "none", "lagged", "lagged", "item", "item", "item",
                              "device")),
        copy_call_blocks=draw.random() < 0.5,
        jitter=draw.uniform(0.005, 0.03),
        skew=draw.uniform(0.01, 0.04) if ranks > 1 and draw.random() < 0.3 else 0.0,
        clock_offset_ns=_clocks(draw, ranks),
        dialect=Dialect(
            sync_events=waits,
            event_calls=waits or draw.random() < 0.7,
            collective_args=draw.random() < 0.75,
        ),
        warmup=draw.randint(3, 5),
        recorded=draw.randint(5, 8),
    )  # fmt: skip


def _clocks(draw: Random, ranks: int) -> dict[int, int]:
    """How far the clock of the second host is ahead, where there is one."""
    if ranks < 4 or draw.random() > 0.35:
        return {}
    ahead = draw.randint(-5_000_000, 5_000_000)
    return dict.fromkeys(range(ranks // 2, ranks), ahead)


def _sized(job: Job, draw: Random) -> Job:
    """With kernel and host costs, the optimizer and a loader that fit the cause."""
    if job.cause == "launch":
        job = replace(job, kernel_us=draw.uniform(3, 9), dispatch_us=draw.uniform(12, 30))
    elif job.cause == "slow-host":
        job = replace(job, kernel_us=draw.uniform(18, 30))
    elif job.cause == "sync":
        job = replace(job, kernel_us=draw.uniform(15, 50))
    compute = compute_us(job)
    job = replace(job, optimizer_us=compute * draw.uniform(0.02, 0.06))
    return replace(job, loader=_loader(job, draw, compute))


def compute_us(job: Job) -> float:
    """Device time of the forward and backward of a step."""
    return layer_us(job) * job.layers * job.micro_batches


def _loader(job: Job, draw: Random, compute: float) -> Loader:
    """One that is fast enough whatever else is mended; copies take under 2 ms."""
    workers = draw.choice((0, 2, 4, 8))
    micro = compute / job.micro_batches
    batch = micro * (draw.uniform(0.05, 0.2) * workers if workers else draw.uniform(0.005, 0.03))
    copy = draw.choice(("pinned", "pinned", "pinned-sync", "pageable"))
    return Loader(workers, batch, copy, micro * draw.uniform(0.005, 0.04))


def _with_cause(job: Job, draw: Random) -> Job:
    """With what is wrong with it."""
    slow = draw.sample(range(job.ranks), 2 if job.ranks == 8 and draw.random() < 0.3 else 1)
    micro = compute_us(job) / job.micro_batches
    loader = job.loader
    if job.cause == "loader":
        loader = replace(loader, workers=0, batch_us=micro * draw.uniform(0.3, 1.2))
        return replace(job, loader=loader)
    if job.cause == "slow-loader":
        loader = replace(loader, workers=0, batch_us=micro * draw.uniform(0.03, 0.06))
        return replace(job, loader=loader, loader_factor=_factor(draw, slow, 6, 14))
    if job.cause == "slow-compute":
        return replace(job, compute_factor=_factor(draw, slow, 1.12, 1.5))
    if job.cause == "slow-host":
        return replace(job, host_factor=_factor(draw, slow, 2, 3.5))
    if job.cause == "sync":
        return replace(job, step_end=draw.choice(("item", "device")),
                       layers_read=draw.choice((0, job.layers)),
                       log_us=micro * draw.uniform(0.1, 0.4))  # fmt: skip
    if job.cause == "optimizer":
        return replace(job, optimizer_fused=False, optimizer_kernels=10 * job.layers,
                       optimizer_us=compute_us(job) * draw.uniform(0.3, 1.0))  # fmt: skip
    return job


def _factor(draw: Random, ranks: list[int], least: float, most: float) -> dict[int, float]:
    factor = draw.uniform(least, most)
    return dict.fromkeys(ranks, factor)


# Share of the compute time that transfers take, healthy and not.
_SHARES = {"tp": ((0.05, 0.2), (0.5, 1.2)), "fsdp": ((0.2, 0.6), (0.9, 2.0)),
           "accumulate": ((0.05, 0.25), (0.8, 2.0))}  # fmt: skip


def _with_traffic(job: Job, draw: Random) -> Job:
    """With links, and as much to send over them as takes its share of the compute time."""
    if job.ranks == 1:
        return job
    healthy, slow = _SHARES.get(job.strategy, ((0.1, 0.4), (1.0, 2.5)))
    is_slow = job.cause == "interconnect"
    share = draw.uniform(*(slow if is_slow else healthy))
    job = replace(job, bytes_per_ns=draw.uniform(3, 15) if is_slow else draw.uniform(60, 250))
    wire = sum(wire_ns(job, op) for op in step_program(job))
    return replace(job, layer_bytes=round(job.layer_bytes * share * compute_us(job) * 1000 / wire))


def _with_slow_workers(job: Job, draw: Random) -> Job:
    """With workers that prepare batches slower than the rest of the job takes them.

    Were they hidden behind the rest, no trace could tell of them.
    """
    if job.cause != "loader-workers":
        return job
    ends = step_ends(simulate(Draws(job, step_program(job)), World(loader_free=True)))[0]
    batch_us = (ends[-1] - ends[0]) / (len(ends) - 1) / job.micro_batches / 1000
    workers = draw.choice((1, 2, 4))
    batch_us *= workers * draw.uniform(1.1, 2)
    return replace(job, loader=replace(job.loader, workers=workers, batch_us=batch_us))
