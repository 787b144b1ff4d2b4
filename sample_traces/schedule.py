"""When each host call of the simulated job happens, step by step over all ranks.

Integer nanoseconds since the start of the run. The one idea: a host runs straight on, issues work
without waiting for it, and only stops for the loader or for a blocking call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from device import COMM_STREAM, COMPUTE_STREAM, Activity, Device, run_devices
from job import ALL_REDUCE, Bucket, Launch, Scenario, all_reduce_ns, step_work

COPY_BYTES_PER_NS = 24
MAIN = "main"
AUTOGRAD = "autograd"


@dataclass(frozen=True)
class HostEvent:
    """A range on a host thread; `args` are Kineto's."""

    category: str
    name: str
    start: int
    end: int
    thread: str
    args: dict[str, object]


@dataclass
class Rank:
    """One rank as it runs: where its host is, what it has done, and its device."""

    scenario: Scenario
    number: int
    random: Random
    now: int = 0
    external_id: int = 0
    correlation: int = 0
    seq: int = 0
    last_loss_end: int = 0
    loss_read_start: int = 0
    device: Device = field(default_factory=Device)
    host: list[HostEvent] = field(default_factory=list)
    batch_ready: list[int] = field(default_factory=list)
    batch_taken: list[int] = field(default_factory=list)

    def spend(self, micros: float) -> None:
        """Let the host be busy for about that long (10 % of jitter either way)."""
        self.now += round(micros * 1000 * self.random.uniform(0.9, 1.1))

    def note(self, category: str, name: str, start: int, thread: str, **args: object) -> None:
        """Record the host range from `start` to now."""
        self.host.append(HostEvent(category, name, start, self.now, thread, args))

    def next_id(self) -> int:
        """A fresh external id, as every op has."""
        self.external_id += 1
        return self.external_id

    def call(self, name: str, micros: float, thread: str) -> tuple[int, int, int]:
        """A runtime call of about that length; returns its start, end and correlation."""
        self.correlation += 3
        start = self.now
        self.spend(micros)
        args = {"External id": self.external_id, "cbid": 211, "correlation": self.correlation}
        self.note("cuda_runtime", name, start, thread, **args)
        return start, self.now, self.correlation


def simulate(scenario: Scenario) -> list[Rank]:
    """All ranks after the warm-up and the profiled steps have run."""
    ranks = [Rank(scenario, r, Random(f"{scenario.name}/{r}")) for r in range(scenario.ranks)]
    first = scenario.first_step - scenario.warmup_steps
    for step in range(first, scenario.first_step + scenario.profiled_steps):
        begins = [rank.now for rank in ranks]
        for rank in ranks:
            _issue_step(rank, step)
        run_devices([rank.device for rank in ranks])
        for rank, begin in zip(ranks, begins, strict=True):
            _finish_step(rank)
            rank.note("user_annotation", f"ProfilerStep#{step}", begin, MAIN)
            rank.spend(12)
    for rank in ranks:
        start = rank.now
        rank.now = max([start + 20_000, *(end + 9_000 for end in rank.device.stream_free.values())])
        rank.note("cuda_runtime", "cudaDeviceSynchronize", start, MAIN, cbid=165)
    return ranks


def _issue_step(rank: Rank, step: int) -> None:
    scenario = rank.scenario
    pace = scenario.compute_factor.get(rank.number, 1.0)
    pace *= 1 + rank.random.uniform(-scenario.step_jitter, scenario.step_jitter)
    rank.spend(6)
    _load_batch(rank)
    _issue_copy(rank, step, "Memcpy HtoD (Pinned -> Device)", scenario.batch_bytes, "input")
    phase, optimizer_start = "forward", 0
    for work in step_work(scenario):
        if isinstance(work, Bucket):
            _issue_all_reduce(rank, step, work)
            continue
        if work.phase != phase:
            rank.spend(18)
            phase, optimizer_start = work.phase, rank.now
        _issue_kernel(rank, step, work, pace)
    rank.note("user_annotation", "Optimizer.step#AdamW.step", optimizer_start, MAIN)
    start = rank.now
    rank.spend(9)
    rank.note("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", start, MAIN)
    rank.loss_read_start = rank.now
    if scenario.loss_read == "lagged":
        _issue_copy(rank, step, "Memcpy DtoH (Device -> Pinned)", 4, "loss")
    elif scenario.loss_read == "item":
        _issue_copy(rank, step, "Memcpy DtoH (Device -> Pageable)", 4, "loss")


def _finish_step(rank: Rank) -> None:
    """Read the loss: not at all, the one of the step before by its event, or this one's, blocking.

    A blocked call returns some microseconds after the device is done.
    """
    losses = [a.end for a in rank.device.done[-1:] if a.phase == "loss"]
    start = rank.now
    if losses and rank.scenario.loss_read == "lagged":
        rank.now = max(start + 3_000, rank.last_loss_end + 9_000)
        rank.note("cuda_runtime", "cudaEventSynchronize", start, MAIN, cbid=137)
        rank.last_loss_end = losses[0]
    elif losses:
        rank.now = max(start + 3_000, losses[0] + 9_000)
        rank.note("cuda_runtime", "cudaStreamSynchronize", start, MAIN, cbid=131)
        rank.spend(2)
        rank.note("cpu_op", "aten::item", rank.loss_read_start, MAIN)
    rank.spend(15)


def _load_batch(rank: Rank) -> None:
    """Take the next batch: workers prepare in turn and each keeps two batches ahead."""
    workers, prep_us = rank.scenario.loader_workers, rank.scenario.loader_prep_us
    number = len(rank.batch_ready)
    spread = 1 + rank.random.uniform(-rank.scenario.loader_jitter, rank.scenario.loader_jitter)
    prep = round(prep_us * 1000 * spread)
    if number < workers:  # the workers of a job long under way are spread evenly
        ready = round(prep * (number + 1) / workers)
    else:
        asked = rank.batch_taken[number - 2 * workers] if number >= 2 * workers else 0
        ready = max(rank.batch_ready[number - workers], asked) + prep
    if rank.number in rank.scenario.loader_delay_us:
        most = rank.scenario.loader_delay_us[rank.number]
        ready = max(ready, rank.now) + round(most * 1000 * rank.random.random())
    start = rank.now
    rank.spend(70)
    rank.now = max(rank.now, ready + 40_000)
    rank.batch_ready.append(ready)
    rank.batch_taken.append(rank.now)
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    rank.note("user_annotation", name, start, MAIN)
    rank.spend(8)


def _issue_copy(rank: Rank, step: int, name: str, size: int, phase: str) -> None:
    op, outer = rank.now, rank.next_id()
    rank.spend(7)
    inner, inner_id = rank.now, rank.next_id()
    rank.spend(5)
    start, end, correlation = rank.call("cudaMemcpyAsync", 6, MAIN)
    rank.spend(1)
    rank.note("cpu_op", "aten::copy_", inner, MAIN, **{"External id": inner_id})
    rank.note("cpu_op", "aten::to", op, MAIN, **{"External id": outer})
    duration = 1_400 + size // COPY_BYTES_PER_NS
    rank.device.queue.append(
        Activity(
            category="gpu_memcpy",
            name=name,
            stream=COMPUTE_STREAM,
            phase=phase,
            step=step,
            duration=duration,
            launch_start=start,
            launch_end=end,
            correlation=correlation,
            external_id=inner_id,
            size=size,
        )
    )
    rank.spend(3)


def _issue_kernel(rank: Rank, step: int, work: Launch, pace: float) -> None:
    thread = AUTOGRAD if work.phase == "backward" else MAIN
    dispatch = rank.scenario.dispatch_us
    op, outer = rank.now, rank.next_id()
    rank.spend(dispatch * 0.4)
    inner, inner_id = rank.now, rank.next_id()
    rank.spend(dispatch * 0.6)
    start, end, correlation = rank.call("cudaLaunchKernel", 5, thread)
    rank.spend(0.5)
    rank.note("cpu_op", work.inner, inner, thread, **{"External id": inner_id})
    rank.spend(0.5)
    backward = f"autograd::engine::evaluate_function: {work.op}"
    name = backward if work.phase == "backward" else work.op
    rank.note("cpu_op", name, op, thread, **{"External id": outer})
    rank.device.queue.append(
        Activity(
            category="kernel",
            name=work.kernel,
            stream=COMPUTE_STREAM,
            phase=work.phase,
            step=step,
            duration=round(work.device_us * 1000 * pace * rank.random.uniform(0.99, 1.01)),
            launch_start=start,
            launch_end=end,
            correlation=correlation,
            external_id=inner_id,
        )
    )
    rank.spend(1.5)


def _issue_all_reduce(rank: Rank, step: int, bucket: Bucket) -> None:
    op, outer = rank.now, rank.next_id()
    rank.spend(6)
    annotation, inner_id = rank.now, rank.next_id()
    rank.call("cudaStreamWaitEvent", 1.2, AUTOGRAD)
    start, end, correlation = rank.call("cudaLaunchKernelExC", 7, AUTOGRAD)
    rank.note("user_annotation", "nccl:all_reduce", annotation, AUTOGRAD)
    rank.note("cpu_op", "record_param_comms", op + 2_000, AUTOGRAD, **{"External id": inner_id})
    rank.spend(1)
    rank.note("cpu_op", "c10d::allreduce_", op, AUTOGRAD, **{"External id": outer})
    rank.seq += 1
    rank.device.queue.append(
        Activity(
            category="kernel",
            name=ALL_REDUCE,
            stream=COMM_STREAM,
            phase="comm",
            step=step,
            duration=all_reduce_ns(rank.scenario, bucket.elements),
            launch_start=start,
            launch_end=end,
            correlation=correlation,
            external_id=inner_id,
            size=bucket.elements,
            seq=rank.seq,
        )
    )
    rank.spend(2)
