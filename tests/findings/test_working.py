"""What is said of work that could be done faster, elsewhere or not at all."""

from __future__ import annotations

import pytest
from jobs import job

from analyzer.classify.kernels import Activity
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.findings.working import (
    compute_bound,
    exposed_copies,
    fp32_matmul,
    replicated_optimizer,
    tiny_kernels,
)
from analyzer.ranks.pool import Job

FOUR = [{"optimizer": 20.0}] * 4


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def told(outcome: Outcome) -> Finding:
    assert isinstance(outcome, Finding)
    return outcome


def test_sharding_over_four_ranks_saves_three_quarters_of_the_optimizer() -> None:
    finding = told(replicated_optimizer(view(job(FOUR))))
    assert finding.ns == 20_000_000
    assert finding.removes == {"optimizer": 15_000_000.0}
    assert finding.speedup_bound == pytest.approx(1 / 0.85)
    assert "Shared by 4 ranks, 15.0 ms of it would go." in finding.because


def test_the_world_size_counts_even_where_ranks_are_missing() -> None:
    finding = told(replicated_optimizer(view(job(FOUR, world_size=8))))
    assert finding.saved_ns == 17_500_000


def test_one_rank_repeats_nothing() -> None:
    assert replicated_optimizer(view(job(optimizer=20.0))) is None


def test_reduce_scatter_with_all_gather_shows_a_sharded_optimizer() -> None:
    kinds = [("reduce_scatter", 4, 1.0), ("all_gather", 4, 1.0)]
    assert replicated_optimizer(view(job(FOUR, collectives=kinds))) == Passed(
        "The optimizer is sharded: 20.0 ms per step (20.0 %)."
    )


def test_all_gather_alone_does_not_show_a_sharded_optimizer() -> None:
    told(replicated_optimizer(view(job(FOUR, collectives=[("all_gather", 4, 1.0)]))))


def test_gloo_collectives_on_the_host_show_it_as_well() -> None:
    gloo = [("gloo:reduce_scatter", 1, 1.0), ("gloo:all_gather", 1, 1.0)]
    host = job(FOUR, timeline="host", facts={"gloo": gloo})
    assert isinstance(replicated_optimizer(view(host)), Passed)


def test_groups_smaller_than_the_run_lower_the_confidence() -> None:
    whole = job(FOUR, collectives=[("all_reduce", 4, 1.0)])
    split = job(FOUR, collectives=[("all_reduce", 2, 1.0)])
    assert told(replicated_optimizer(view(whole))).confidence == "medium"
    assert told(replicated_optimizer(view(split))).confidence == "low"


def test_pageable_memory_is_named_where_it_is_half_of_the_copies() -> None:
    copies = [("Memcpy HtoD (Pageable -> Device)", 3, 4.0)]
    slow = job(copy=8.0, facts={"pageable_ms": 4.0, "copies": copies})
    finding = told(exposed_copies(view(slow)))
    assert finding.title == "Copies from or to pageable host memory run alone"
    assert "4.0 ms of it is from or to pageable host memory" in finding.because
    assert finding.where == [("Memcpy HtoD (Pageable -> Device)", 4_000_000.0, 3.0)]


def test_other_copies_are_not_blamed_on_pageable_memory() -> None:
    finding = told(exposed_copies(view(job(copy=8.0, facts={"pageable_ms": 3.9}))))
    assert finding.title == "Memory copies run alone"


def test_plain_matrix_kernels_are_a_part_of_kernel_time_and_promise_no_speedup() -> None:
    facts = {"matmul_ms": 40.0, "plain_ms": 30.0, "plain": [("ampere_sgemm", 8, 30.0)]}
    finding = told(fp32_matmul(view(job(launch=40.0, facts=facts))))
    assert finding.because.startswith(
        "30.0 ms per step (30.0 %) are spent in matrix kernels whose names say ordinary FP32 or "
        "FP64 units: 50.0 % of kernel time."
    )
    assert finding.speedup_bound is None
    assert finding.confidence == "medium"
    assert finding.where == [("ampere_sgemm", 30_000_000.0, 8.0)]


def test_tensor_cores_are_not_judged_without_matrix_kernels() -> None:
    assert fp32_matmul(view(job())) is None


def test_half_of_the_kernels_must_be_tiny() -> None:
    facts = {"tiny_ms": 10.0}
    assert isinstance(tiny_kernels(view(job(facts={**facts, "tiny": 499}))), Passed)
    told(tiny_kernels(view(job(facts={**facts, "tiny": 501}))))


def test_tiny_kernels_matter_where_launch_overhead_does() -> None:
    facts = {"tiny": 900, "tiny_ms": 3.0}
    assert isinstance(tiny_kernels(view(job(launch=9.9, facts=facts))), Passed)
    finding = told(tiny_kernels(view(job(launch=10.1, facts=facts))))
    assert finding.because == (
        "90.0 % of kernels are shorter than 10 µs (900 of 1,000 per step). They take 3.0 ms per "
        "step (3.0 %), beside 10.1 ms of launch overhead. What fusing saves cannot be told from "
        "shares."
    )


def test_places_of_tiny_kernels_are_short_compute_kernels() -> None:
    kernels = [
        ("add", Activity.COMPUTE, 900.0, 4.5),
        ("gemm", Activity.COMPUTE, 100.0, 50.0),
        ("nccl", Activity.COMMUNICATION, 900.0, 4.5),
    ]
    small = job(launch=20.0, facts={"tiny": 900, "tiny_ms": 4.5}, kernels=kernels)
    assert told(tiny_kernels(view(small))).where == [("add", 4_500_000, 900.0)]


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"matmul_ms": 40.0, "memory_ms": 10.0}, "Lower the precision"),
        ({"matmul_ms": 10.0, "memory_ms": 40.0}, "Fuse what moves memory"),
    ],
)
def test_compute_bound_says_which_kernels(facts: dict[str, float], advice: str) -> None:
    finding = told(compute_bound(view(job(facts=facts))))
    assert finding.so.startswith(advice)


def test_compute_bound_gives_both_parts_of_kernel_time() -> None:
    because = told(compute_bound(view(job(facts={"matmul_ms": 30.0, "memory_ms": 15.0})))).because
    assert because.startswith(
        "100.0 ms per step (100.0 %) compute. Of kernel time 50.0 % is matrix work and 25.0 % is"
    )
