"""The Report's sections on ranks and collectives: what joining them gave, in ms and GB/s."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import TraceBuilder
from runs import exposed, healthy, reported

from analyzer.report.document import Report

H100 = [{"id": i, "name": "NVIDIA H100 80GB HBM3"} for i in range(8)]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Rank 1 of three computes 300 us longer; 100 us of all-reduce, 4,096 bytes."""
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    return reported(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)})


def test_a_collective_is_counted_per_rank_and_step(report: Report) -> None:
    (row,) = report.collectives
    assert (row.kind, row.group, row.group_size, row.count) == ("all_reduce", "0", 3, 1.0)
    assert row.ms == pytest.approx(0.3)
    assert row.exposed_ms == pytest.approx(0.3)
    assert row.wait_ms == pytest.approx(0.2)
    assert row.transfer_ms == pytest.approx(0.1)


def test_rates_are_of_the_transfer_alone(report: Report) -> None:
    (row,) = report.collectives
    assert row.bytes == 4096.0
    assert row.algbw_gbs == pytest.approx(0.04096)
    assert row.busbw_gbs == pytest.approx(0.04096 * 4 / 3)
    assert (row.reason, row.note) == ("", "")


def test_a_lone_rank_has_no_rates_and_says_why(tmp_path: Path) -> None:
    (row,) = reported(tmp_path, {"rank0.json": exposed(0)}).collectives
    assert (row.wait_ms, row.transfer_ms, row.algbw_gbs, row.busbw_gbs) == (None,) * 4
    assert row.reason == "its transfer cannot be told from waiting"


def large(rank: int, transfer: int) -> TraceBuilder:
    """Seven steps with an all-reduce of 128 MB of `transfer` us on a node of eight H100."""
    built = healthy(rank, without=["collectives"]).top("deviceProperties", H100)
    for k in range(7):
        at = 1000 * k + 500
        launch = (at - 480, at - 475)
        built.collective("allreduce", at, at + transfer, elements=32_000_000, launch=launch)
    return built


def test_a_large_slow_collective_is_below_reference(tmp_path: Path) -> None:
    # 128 MB in 400 us on two ranks: 320 GB/s, less than 0.8 of 460.
    report = reported(tmp_path, {f"rank{r}.json": large(r, 400) for r in (0, 1)})
    (row,) = report.collectives
    assert row.busbw_gbs == pytest.approx(320)
    assert row.note.startswith("Below reference: 320 GB/s where 460 to 480 are usual")


def test_a_large_fast_collective_is_not(tmp_path: Path) -> None:
    # 128 MB in 340 us: 376 GB/s, more than 0.8 of 460.
    report = reported(tmp_path, {f"rank{r}.json": large(r, 340) for r in (0, 1)})
    assert report.collectives[0].note == ""


def test_a_process_group_is_told_with_its_dimension_and_what_shows_it(report: Report) -> None:
    (group,) = report.ranks.groups
    assert (group.name, group.size, group.ranks) == ("0", 3, [0, 1, 2])
    assert (group.dimension, group.level) == ("data", "unknown")
    assert (group.kinds, group.count) == (["all_reduce"], 1.0)
    assert group.ms == pytest.approx(0.3)
    assert group.because == "all-reduces, 1 per step, none of note before the backward pass"


def test_efficiencies_are_told_with_what_is_missing(report: Report) -> None:
    pop = report.ranks.pop
    # Computing 0.9, 1.2 and 0.9 of 1.3 ms.
    assert pop["load_balance"] == pytest.approx(1.0 / 1.2)
    assert pop["communication_efficiency"] == pytest.approx(1.2 / 1.3)
    assert pop["parallel_efficiency"] == pytest.approx(1.0 / 1.3)
    assert (pop["serialisation_efficiency"], pop["transfer_efficiency"]) == (None, None)
    assert "replay" in report.ranks.pop_reason
    assert sum(report.ranks.pop_loss.values()) == pytest.approx(2.0)


def test_the_late_rank_is_named_with_its_cost(report: Report) -> None:
    (late,) = report.ranks.late
    assert (late.rank, late.share_of_collectives, late.steps) == (1, 1.0, [2, 3, 4, 5, 6])
    assert late.ms == pytest.approx(0.6)
    assert late.because.startswith("0.30 ms more of computing")
    assert (report.ranks.method, report.ranks.joined_share) == ("clocked", 1.0)


def test_the_marks_of_a_strip_tile_its_step(report: Report) -> None:
    assert [strip.rank for strip in report.ranks.strips] == [0, 1, 2]
    for strip in report.ranks.strips:
        ends = [0.0, *(end for _, _, end in strip.marks)]
        assert [start for _, start, _ in strip.marks] == ends[:-1]
        assert ends[-1] == pytest.approx(1.3)
    assert sum(len(strip.marks) for strip in report.ranks.strips) <= 300


def test_occupancy_is_weighted_by_the_time_of_the_ranks_kernels(tmp_path: Path) -> None:
    built = [exposed(0, 2, compute=600), exposed(1, 2, compute=200)]
    for one, percent in zip(built, (50, 10), strict=True):
        one.events = [
            event.replace('"context": 1', f'"context": 1, "est. achieved occupancy %": {percent}')
            for event in one.events
        ]
    ranks = reported(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).ranks
    assert ranks.occupancy == pytest.approx(0.4)
    assert ranks.occupancy_reason == ""


def test_without_an_estimate_occupancy_says_why(report: Report) -> None:
    assert report.ranks.occupancy is None
    assert report.ranks.occupancy_reason == "not measurable: the traces hold no estimate of it"


def test_a_lone_rank_has_nobody_to_wait_for(tmp_path: Path) -> None:
    ranks = reported(tmp_path, {"rank0.json": exposed(0)}).ranks
    assert (ranks.method, ranks.late, ranks.clock.aligned) == (None, [], None)
    assert ranks.reason.startswith("not measurable: only one rank was recorded")
    assert set(ranks.pop.values()) == {None}
