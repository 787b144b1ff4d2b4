"""Planted faults are found again: who is late, how long the others wait, what the clocks are off.

Data-parallel jobs go through the sample simulator's traces and the whole map and reduce; sharded
and tensor-parallel ones through digests made from a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from crew import Block, Model, run
from simulated import simulate

from analyzer.ranks.pool import Job, pool

CLOCKS = {1: 350_000, 2: -350_000, 3: 120_000}
BASES = {1: 5_000_000_000, 3: -7_000_000_000}
SHARDED = [
    *[Block(3000, 500, kind="all_gather")] * 4,
    *[Block(6000, 500, kind="reduce_scatter")] * 4,
]
TENSOR = [Block(1500, 200)] * 12
TENSOR_PAIRS = [[0, 1, 2, 3], [4, 5, 6, 7]]
DATA_PAIRS = [[0, 4], [1, 5], [2, 6], [3, 7]]
MESH = [*[Block(1500, 200, groups=TENSOR_PAIRS)] * 8, Block(300, 2000, groups=DATA_PAIRS)]
JOBS = {"sharded": SHARDED, "tensor": TENSOR, "mesh": MESH}


def late(job: Job) -> list[int]:
    return [one.rank for one in job.together.late]


def offsets(job: Job, truth: Mapping[int, float]) -> list[float]:
    """By how much each rank's offset to rank 0 misses the truth, ns."""
    return [abs(ns + truth.get(rank, 0)) for rank, ns in job.together.clocks.offset.items()]


def missed(job: Job, truth: dict[str, Any]) -> float:
    """The largest error of a rank's waiting or transfer, of its mean step."""
    errors = []
    for rank in job.ranks:
        rows = [row for row in truth["windows"] if row["rank"] == rank]
        step = sum(row["end_ns"] - row["start_ns"] for row in rows) / len(rows)
        found = dict(zip(job.mean_ns, job.by_rank[rank].tolist(), strict=True))
        for name in ("comm_wait", "comm_transfer"):
            true = sum(row["classes_ns"][name] for row in rows) / len(rows)
            errors.append(abs(found[name] - true) / step)
    return max(errors)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_slow_rank_of_a_data_parallel_job(tmp_path: Path, ranks: int) -> None:
    job, truth = simulate(
        tmp_path, ranks=ranks, compute_factor={1: 1.15}, clock_ns=CLOCKS, base_ns=BASES
    )
    (found,) = job.together.late
    assert (found.rank, found.because[0][0]) == (1, "compute")
    assert missed(job, truth) < 0.02
    assert max(offsets(job, CLOCKS)) < 5_000


def test_loader_jitter_on_one_rank(tmp_path: Path) -> None:
    job, truth = simulate(
        tmp_path, ranks=4, loader_delay_us={2: 20_000}, clock_ns=CLOCKS, loss_read="item"
    )
    (found,) = job.together.late
    assert (found.rank, found.because[0][0]) == (2, "data_loading")
    assert missed(job, truth) < 0.02


def test_a_slow_link_blames_nobody(tmp_path: Path) -> None:
    job, truth = simulate(tmp_path, ranks=4, bus_gb_per_s=4, clock_ns=CLOCKS)
    assert job.share(job.mean_ns["comm_transfer"]) > 0.3
    assert late(job) == []
    assert missed(job, truth) < 0.02


def test_on_one_clock_waiting_and_transfer_are_exact(tmp_path: Path) -> None:
    job, truth = simulate(tmp_path, ranks=4, compute_factor={2: 1.15}, base_ns=BASES)
    assert missed(job, truth) == 0
    assert set(job.together.clocks.offset.values()) == {0}


def planted(kind: str, ranks: Sequence[int] = range(8), **fault: Any) -> Model:
    clocks = {rank: 350 * (-1) ** rank for rank in ranks if rank}
    return Model(JOBS[kind], jitter=0.01, clock_us=clocks, scatter_us=8, **fault)


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize(
    "fault", [{"pace": {5: 1.15}}, {"loading_us": {5: 20_000}}], ids=["slow", "loader"]
)
@pytest.mark.parametrize("seed", range(5))
def test_the_late_rank_of_sharded_and_tensor_jobs(
    kind: str, fault: dict[str, Any], seed: int
) -> None:
    model = planted(kind, **fault)
    truth = run(model, seed)
    job = pool(truth.members)
    (found,) = job.together.late
    assert found.rank == 5
    assert found.because[0][0] == ("compute" if "pace" in fault else "data_loading")
    assert max(offsets(job, {r: 1000 * us for r, us in model.clock_us.items()})) < 5_000
    for rank in job.ranks:
        means = dict(zip(job.mean_ns, job.by_rank[rank].tolist(), strict=True))
        assert abs(means["comm_wait"] / 1000 - truth.wait[rank]) < 0.02 * truth.step_us
        assert abs(means["comm_transfer"] / 1000 - truth.transfer[rank]) < 0.02 * truth.step_us


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("seed", range(5))
def test_healthy_sharded_and_tensor_jobs_name_nobody(kind: str, seed: int) -> None:
    assert late(pool(run(planted(kind), seed).members)) == []
