"""Digests of many ranks and cycles -> means per rank and step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from crew import member, named
from make import TraceBuilder, trace

from analyzer.classify.classes import CLASSES
from analyzer.config import Settings
from analyzer.digest import RankDigest, digest
from analyzer.ranks.pool import Job, Member, StepId, pool

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job_of(
    folder: Path, lengths: Mapping[tuple[int, int], Mapping[int, int]], world_size: int = 2
) -> Job:
    """(rank, cycle) -> {step: us of compute in it}; each step is followed by 100 us of all-reduce,
    half of it beside 50 us of compute.
    """
    members = []
    for (rank, cycle), steps in lengths.items():
        scene = trace(rank=rank, world_size=world_size)
        at = 0
        for number, compute in steps.items():
            _step(scene, number, at, compute)
            at += compute + 150
        path = scene.write(folder / f"rank{rank}-{cycle}.json")
        members.append(Member(rank, cycle, digest(path, Settings())))
    return pool(members)


def _step(scene: TraceBuilder, number: int, at: int, compute: int) -> None:
    end = at + compute
    scene.step(number, at, end + 150)
    scene.kernel("gemm", at, end, launch=(at, at + 1))
    scene.collective("allreduce", end, end + 100, elements=1000, launch=(at + 2, at + 3))
    scene.kernel("gemm", end + 50, end + 150, launch=(at + 4, at + 5))


def classes(values: Mapping[str, float]) -> dict[str, float]:
    return {name: ns / 1000 for name, ns in values.items() if ns}


def test_a_mean_is_over_ranks_and_steps(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100, 2: 300}, (1, 0): {1: 200, 2: 400}})
    assert job.ranks == [0, 1]
    assert job.steps == [StepId(0, 1), StepId(0, 2)]
    assert classes(job.mean_ns) == {"compute": 350, "comm_wait": 25, "comm_transfer": 25}
    assert (job.step_ns, job.hidden_ns) == (400_000, 50_000)
    assert job.per_step.sum(axis=1).tolist() == [300_000, 500_000]


def test_each_ranks_classes_sum_to_its_step(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100, 2: 300}, (1, 0): {1: 200, 2: 500}})
    assert {r: float(row.sum()) for r, row in job.by_rank.items()} == {0: 350_000, 1: 500_000}
    assert job.hidden_by_rank == {0: 50_000, 1: 50_000}
    assert job.share(job.step_ns / 4) == 0.25


def test_the_classes_stand_in_their_public_order(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100}})
    assert tuple(job.mean_ns) == CLASSES
    assert job.per_step.shape == (1, len(CLASSES))


def test_groups_sum_their_classes(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100}})
    assert classes(job.group_ns) == {"compute": 200, "communication": 50}


def test_cycles_of_a_rank_are_more_steps_of_it(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100}, (0, 1): {1: 300}, (1, 0): {1: 100}, (1, 1): {1: 500}})
    assert job.ranks == [0, 1]
    assert job.steps == [StepId(0, 1), StepId(1, 1)]
    assert job.per_step.sum(axis=1).tolist() == [250_000, 550_000]


def test_only_steps_that_all_ranks_have_are_used(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100, 2: 300}, (1, 0): {2: 400}})
    assert (job.steps, job.common_steps) == ([StepId(0, 2)], True)
    assert job.step_ns == 500_000


def test_ranks_without_a_step_in_common_each_count_their_own(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100}, (1, 0): {2: 400}})
    assert (job.steps, job.common_steps) == ([StepId(0, 1), StepId(0, 2)], False)
    assert job.per_step.sum(axis=1).tolist() == [250_000, 550_000]
    assert {r: float(row.sum()) for r, row in job.by_rank.items()} == {0: 250_000, 1: 550_000}


def test_missing_ranks_leave_the_size_of_the_run(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(2, 0): {1: 100}, (5, 0): {1: 100}}, world_size=8)
    assert (job.ranks, job.world_size, job.size) == ([2, 5], 8, 8)


def test_without_a_world_size_the_ranks_here_are_the_run(tmp_path: Path) -> None:
    path = trace(rank=None).kernel("gemm", 0, 9).write(tmp_path / "trace.json")
    job = pool([Member(0, 0, digest(path, Settings()))])
    assert (job.world_size, job.size) == (None, 1)


def test_the_order_of_the_files_changes_nothing(tmp_path: Path) -> None:
    lengths = {(0, 0): {1: 100, 2: 300}, (1, 0): {1: 200, 2: 400}, (2, 0): {1: 50, 2: 60}}
    there = job_of(tmp_path, lengths)
    back = job_of(tmp_path, dict(reversed(lengths.items())))
    assert there.per_step.tolist() == back.per_step.tolist()
    assert (there.ranks, there.kernels, there.causes) == (back.ranks, back.kernels, back.causes)


def test_kernels_are_means_per_rank_and_step(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100, 2: 300}, (1, 0): {1: 200, 2: 400}})
    gemm, nccl = job.kernels
    assert (gemm.name, gemm.count, gemm.ns, gemm.exposed_ns) == ("gemm", 2, 350_000, 0)
    assert (nccl.kind, nccl.count, nccl.ns, nccl.exposed_ns) == ("all_reduce", 1, 100_000, 50_000)


def test_collectives_are_means_by_kind_and_group(tmp_path: Path) -> None:
    job = job_of(tmp_path, {(0, 0): {1: 100, 2: 300}, (1, 0): {1: 200, 2: 400}})
    (mean,) = job.collectives
    assert (mean.kind, mean.group, mean.group_size) == ("all_reduce", "0", 2)
    assert (mean.count, mean.nbytes) == (1, 4000)
    assert (mean.ns, mean.exposed_ns) == (100_000, 50_000)


def test_waiting_and_transfer_of_a_row_are_those_of_the_part_that_was_split() -> None:
    # Of four operations rank 1 lost one: 100 us of waiting in each of the others, on rank 0.
    rows = [
        [named(1000 * i + 100 * r, 1000 * i + 500, i, [0, 1]) for i in range(4) if (r, i) != (1, 2)]
        for r in range(2)
    ]
    job = pool([member(r, x, steps={1: (0, 4000)}) for r, x in enumerate(rows)])
    (mean,) = job.collectives
    assert mean.split_share == 6 / 7
    # 3.5 operations of each rank and step, that wait 50 us in the mean and transfer for 400.
    assert (mean.wait_ns, mean.transfer_ns) == (pytest.approx(175_000), pytest.approx(1_400_000))


def test_a_row_of_which_nothing_was_split_has_neither() -> None:
    (mean,) = pool([member(0, [named(0, 500, 1, [0, 1])])]).collectives
    assert (mean.wait_ns, mean.transfer_ns, mean.split_share) == (None, None, 0)


def test_collectives_without_a_size_have_no_mean_size(tmp_path: Path) -> None:
    path = trace().kernel(NCCL, 0, 9).write(tmp_path / "trace.json")
    (mean,) = pool([Member(0, 0, digest(path, Settings()))]).collectives
    assert mean.nbytes is None


def late(folder: Path, rank: int, gap: int) -> RankDigest:
    scene = trace(rank=rank, world_size=2).kernel("a", 0, 100, launch=(-20, -15))
    scene.op("aten::add", 90, 110 + gap)
    scene.kernel("b", 110 + gap, 200 + gap, launch=(100 + gap, 105 + gap))
    return digest(scene.write(folder / f"{rank}.json"), Settings())


def test_causes_are_means_per_rank_and_step_with_their_ops(tmp_path: Path) -> None:
    job = pool([Member(r, 0, late(tmp_path, r, gap)) for r, gap in enumerate((40, 60))])
    assert [(c.cause, c.ns, c.ops) for c in job.causes if c.ns] == [
        ("dispatch", 50_000, [("aten::add", 50_000)]),
        ("launch_call", 5_000, [("aten::add", 5_000)]),
        ("launch_latency", 5_000, [("aten::add", 5_000)]),
    ]
    assert job.cause_ns("launch_call", "dispatch") == 55_000


def test_facts_are_means_or_held_by_any_rank(tmp_path: Path) -> None:
    job = pool([Member(r, 0, late(tmp_path, r, gap)) for r, gap in enumerate((40, 60))])
    assert job.total(lambda e: e.kernels.ns) == 190_000
    assert job.pairs == 2
    assert not job.any(lambda e: e.loader.events)
    assert job.any(lambda e: e.launches.late_idle_ns > 60_000)


@pytest.mark.parametrize(("scene", "timeline"), [("kernel", "device"), ("op", "host")])
def test_the_job_is_on_the_timeline_of_its_ranks(tmp_path: Path, scene: str, timeline: str) -> None:
    path = getattr(trace(), scene)("work", 0, 9).write(tmp_path / "trace.json")
    assert pool([Member(0, 0, digest(path, Settings()))]).timeline == timeline
