"""The same job on other numbers of GPUs: which series does a seed stand for?

With the global batch fixed a kernel has a fixed part and one that shrinks with the GPUs; sharded
optimizers shrink, too. The latency of a collective grows with the hops of a ring or a tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from referee.draws import Draws, wire_ns
from referee.job import Job, Loader
from referee.plan import compute_us
from referee.program import step_program
from referee.simulate import simulate
from referee.truth import step_ends

KINDS = ("ddp strong", "ddp weak", "sharded strong", "sharded weak")


@dataclass(frozen=True)
class Series:
    """One job at every size; `one` is the job on one GPU with the batch of one GPU."""

    kind: str
    one: Job
    fixed_us: float
    hop_us: float
    tree: bool

    @property
    def weak(self) -> bool:
        """Whether the batch of a GPU is fixed."""
        return self.kind.endswith("weak")

    def job(self, n: int) -> Job:
        """The job on `n` GPUs."""
        if n == 1:
            return self.one
        work = 1.0 if self.weak else 1.0 / n
        one, hops = self.one, 2 * math.log2(n) if self.tree else 2 * (n - 1)
        sharded = self.kind.startswith("sharded")
        return replace(
            one,
            strategy="fsdp" if sharded else "ddp",
            ranks=n,
            kernel_us=self.fixed_us + (one.kernel_us - self.fixed_us) * work,
            collective_latency_us=one.collective_latency_us + hops * self.hop_us,
            optimizer_us=one.optimizer_us / n if sharded else one.optimizer_us,
            loader=replace(one.loader, copy_us=one.loader.copy_us * work),
        )

    def step_ns(self, n: int) -> float:
        """The true mean step on `n` GPUs over the recorded steps and all ranks."""
        job = self.job(n)
        ends = step_ends(simulate(Draws(job, step_program(job))))
        steps = range(job.warmup, job.warmup + job.recorded)
        lengths = [row[k] - row[k - 1] for row in ends for k in steps]
        return sum(lengths) / len(lengths)


def series(seed: int) -> Series:
    """The series of a seed."""
    draw = Random(f"series {seed}")
    kind = KINDS[seed % len(KINDS)]
    weak = kind.endswith("weak")
    # Kernels stay long enough for the host to keep ahead at the largest size.
    kernel_us = draw.uniform(60, 150) if weak else draw.uniform(1200, 3000)
    one = Job(
        seed=seed,
        layers=draw.randint(3, 6),
        kernel_us=kernel_us,
        dispatch_us=draw.uniform(4, 7),
        call_us=draw.uniform(2, 4),
        latency_us=draw.uniform(4, 9),
        collective_latency_us=draw.uniform(8, 25),
        step_end=draw.choice(("none", "lagged", "item")),
        jitter=draw.uniform(0.005, 0.03),
        skew=draw.choice((0.0, draw.uniform(0.005, 0.02))),
        loader=Loader(2, 100.0, "pinned", kernel_us * draw.uniform(0.05, 0.3)),
        bytes_per_ns=draw.uniform(20, 250),
        warmup=3,
        recorded=draw.randint(7, 12),
    )
    compute = compute_us(one)
    one = replace(one, optimizer_us=compute * draw.uniform(0.002, 0.01) * (6 if weak else 1))
    found = Series(kind, one, draw.uniform(0.0, 1.5), draw.uniform(0.3, 3.0), draw.random() < 0.4)
    return replace(found, one=_with_traffic(found, draw, compute))


def _with_traffic(of: Series, draw: Random, compute: float) -> Job:
    """As much to send that eight GPUs spend this share of their compute time on the wire."""
    share = draw.uniform(0.1, 1.2)
    job = of.job(8)
    wire = sum(wire_ns(job, op) for op in step_program(job))
    wanted = share * compute * 1000 * (1.0 if of.weak else 1 / 8)
    return replace(of.one, layer_bytes=round(job.layer_bytes * wanted / wire))
