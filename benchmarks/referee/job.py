"""Everything that decides how one simulated job runs and how its profiler writes.

Times in microseconds where the name says so. A job is plain values: the same job simulates alike,
and a what-if is the same job in another `World`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dialect:
    """What the profiler of this job writes: records of waits, calls for events, arguments."""

    sync_events: bool = False
    event_calls: bool = True
    collective_args: bool = True


@dataclass(frozen=True)
class Loader:
    """`workers` 0: each batch takes `batch_us` of the main thread; else of one of the workers."""

    workers: int = 0
    batch_us: float = 0.0
    copy: str = "pinned"  # "pinned", "pinned-sync" (the host waits for it) or "pageable"
    copy_us: float = 0.0


@dataclass(frozen=True)
class Job:
    """One job. `kernel_us` is the mean kernel of a layer, `dispatch_us` the host time before a
    launch, `optimizer_us` the device time of all optimizer kernels, `layer_bytes` what a layer
    communicates at a time, `jitter` the widest relative deviation of a kernel and `skew` that of a
    rank in a step. `layers_read` layers end with a blocking read in the forward pass.
    """

    seed: int
    strategy: str = "ddp"  # ddp, accumulate, clip, fsdp, tp or single
    cause: str = "healthy"
    ranks: int = 1
    layers: int = 4
    micro_batches: int = 1
    layers_per_bucket: int = 1
    kernel_us: float = 60.0
    dispatch_us: float = 8.0
    call_us: float = 4.0
    latency_us: float = 6.0
    return_us: float = 8.0
    queue_gap_us: float = 1.0
    event_us: float = 1.2
    layer_bytes: int = 20_000_000
    bytes_per_ns: float = 100.0
    collective_latency_us: float = 15.0
    optimizer_us: float = 100.0
    optimizer_kernels: int = 4
    optimizer_fused: bool = True
    step_end: str = "none"  # "none", "lagged", "item" or "device"
    log_us: float = 0.0
    layers_read: int = 0
    copy_call_blocks: bool = True
    loader: Loader = field(default_factory=Loader)
    jitter: float = 0.01
    host_jitter: float = 0.1
    skew: float = 0.0
    compute_factor: dict[int, float] = field(default_factory=dict)
    host_factor: dict[int, float] = field(default_factory=dict)
    loader_factor: dict[int, float] = field(default_factory=dict)
    clock_offset_ns: dict[int, int] = field(default_factory=dict)
    dialect: Dialect = field(default_factory=Dialect)
    warmup: int = 3
    recorded: int = 6
    queue_slots: int = 1024


@dataclass(frozen=True)
class World:
    """What is physically different in a what-if; the default is the job as it is."""

    loader_free: bool = False
    host_free: bool = False
    communication_free: bool = False
    ranks_alike: bool = False
    never_blocks: bool = False
    optimizer_free: bool = False
    bandwidth: float = 1.0
    compute_waits: bool = True


TODAY = World()
WHAT_IFS: dict[str, World] = {
    "no-data-loading": World(loader_free=True),
    "no-launch-overhead": World(host_free=True),
    "no-communication": World(communication_free=True),
    "no-straggler": World(ranks_alike=True),
    "no-host-sync": World(never_blocks=True),
    "no-optimizer": World(optimizer_free=True),
    "bandwidth-x2": World(bandwidth=2.0),
    "perfect-overlap": World(compute_waits=False),
}
