"""How long does each operation of one rank and step take, in a given world?

Integer nanoseconds. Chance is keyed by (job, rank, step, purpose) and the operation's place, so a
what-if draws the same numbers as the job itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from referee.job import Job, World
from referee.ops import Do, Op

Floats = npt.NDArray[np.float64]
HOST, CALL, DEVICE, LATENCY, SKEW, TRANSFER = range(6)
EVERY_RANK = 10_000
_RETURNS = frozenset({Do.SYNC_STREAM, Do.SYNC_EVENT, Do.SYNC_DEVICE})


@dataclass(frozen=True)
class Times:
    """By operation: host time before the call and in it, device time of what it queues, and the
    latency from the call to the device (of a blocking call: from the device back to the host).
    """

    host: list[int]
    call: list[int]
    device: list[int]
    latency: list[int]


class Draws:
    """The times of all ranks and steps of a job, each of which runs `ops`."""

    def __init__(self, job: Job, ops: Sequence[Op]) -> None:
        self.job = job
        self.ops = ops
        self._static: dict[str, Floats] = {
            name: np.array([getattr(op, name) for op in self.ops], np.float64)
            for name in ("host_ns", "call_ns", "device_ns")
        }
        self._chance: dict[tuple[int, int, int], Floats] = {}

    def _uniform(self, rank: int, step: int, purpose: int) -> Floats:
        """One number in [-1, 1) for each operation."""
        key = rank, step, purpose
        if key not in self._chance:
            draw = np.random.default_rng([self.job.seed, *key])
            self._chance[key] = draw.uniform(-1, 1, len(self.ops))
        return self._chance[key]

    @cached_property
    def _is(self) -> dict[str, npt.NDArray[np.bool_]]:
        def which(chosen: list[bool]) -> npt.NDArray[np.bool_]:
            return np.array(chosen)

        return {
            "compute": which([op.do is Do.LAUNCH for op in self.ops]),
            "collective": which([op.do is Do.COLLECTIVE for op in self.ops]),
            "load": which([op.do is Do.LOAD for op in self.ops]),
            "returns": which([op.do in _RETURNS for op in self.ops]),
            "optimizer": which([op.optimizer for op in self.ops]),
            "batch": which([op.batch for op in self.ops]),
        }

    def times(self, rank: int, step: int, world: World) -> Times:
        """What one rank's step takes."""
        job, which = self.job, self._is
        slow = 1.0 if world.ranks_alike else job.host_factor.get(rank, 1.0)
        host = self._static["host_ns"] * (
            slow * (1 + job.host_jitter * self._uniform(rank, step, HOST))
        )
        call = self._static["call_ns"] * (
            slow * (1 + job.host_jitter * self._uniform(rank, step, CALL))
        )
        base = np.where(which["returns"], job.return_us, job.latency_us) * 1000
        latency = base * (1 + job.host_jitter * self._uniform(rank, step, LATENCY))
        if world.host_free:
            host = np.zeros_like(host)
            call = np.where(which["load"], call, 0)
            latency = np.where(which["returns"], latency, 0)
        device = np.where(
            which["collective"], self._transfers(step, world), self._work(rank, step, world)
        )
        return Times(*(np.rint(c).astype(np.int64).tolist() for c in (host, call, device, latency)))

    def _work(self, rank: int, step: int, world: World) -> Floats:
        """Kernels, copies and batches."""
        job, which = self.job, self._is
        device = self._static["device_ns"] * (1 + job.jitter * self._uniform(rank, step, DEVICE))
        if not world.ranks_alike:
            pace = job.compute_factor.get(rank, 1.0) * self._skew(rank, step)
            loading = job.loader_factor.get(rank, 1.0)
            device = device * np.where(which["compute"], pace, np.where(which["load"], loading, 1))
        if world.optimizer_free:
            device = np.where(which["optimizer"], 0, device)
        if world.loader_free:
            device = np.where(which["batch"], 0, device)
        return device

    def _skew(self, rank: int, step: int) -> float:
        """The rank's pace in the step against the mean of all ranks, which is 1."""
        draw = np.random.default_rng([self.job.seed, EVERY_RANK, step, SKEW])
        paces = draw.uniform(-1, 1, self.job.ranks)
        return 1 + self.job.skew * float(paces[rank] - paces.mean())

    def _transfers(self, step: int, world: World) -> Floats:
        """Latency and time on the wire of each collective, the same for all ranks."""
        if world.communication_free:
            return np.zeros(len(self.ops))
        job = self.job
        wire = np.array([wire_ns(job, op) for op in self.ops])
        wire = wire * (1 + job.jitter * self._uniform(EVERY_RANK, step, TRANSFER))
        return job.collective_latency_us * 1000 + wire / world.bandwidth


def wire_ns(job: Job, op: Op) -> float:
    """Time of a ring's traffic: a gather or scatter passes the data once, an all-reduce twice."""
    if op.do is not Do.COLLECTIVE:
        return 0.0
    passes = 2 if op.kind == "allreduce" else 1
    return passes * op.size * (job.ranks - 1) / job.ranks / job.bytes_per_ns
