"""The Report's sections on ranks and collectives: what joining them gave, in ms and GB/s."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import SCENE_NS, TraceBuilder, trace
from runs import GEMM, exposed, healthy, reported

from analyzer.report.document import Report
from analyzer.whatif.study import NO_STUDY

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


def test_efficiencies_are_split_by_the_replay_of_an_ideal_network(report: Report) -> None:
    """Without its transfer a step takes 1.2 ms of computing and 1 us to the next."""
    pop = report.ranks.pop
    # Computing 0.9, 1.2 and 0.9 of 1.3 ms.
    assert pop["load_balance"] == pytest.approx(1.0 / 1.2)
    assert pop["communication_efficiency"] == pytest.approx(1.2 / 1.3)
    assert pop["parallel_efficiency"] == pytest.approx(1.0 / 1.3)
    assert pop["serialisation_efficiency"] == pytest.approx(1.2 / 1.201)
    assert pop["transfer_efficiency"] == pytest.approx(1.201 / 1.3)
    assert report.ranks.pop_reason == ""
    assert sum(report.ranks.pop_loss.values()) == pytest.approx(2.0)


def test_efficiencies_are_told_with_what_is_missing_without_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyzer.report.build.study", lambda job, limits: NO_STUDY)
    ranks = reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)}).ranks
    pop = ranks.pop
    assert pop["communication_efficiency"] == pytest.approx(0.9)
    assert (pop["serialisation_efficiency"], pop["transfer_efficiency"]) == (None, None)
    assert "replay" in ranks.pop_reason


def test_the_late_rank_is_named_with_its_cost(report: Report) -> None:
    (late,) = report.ranks.late
    assert (late.rank, late.share_of_collectives, late.steps) == (1, 1.0, [2, 3, 4, 5, 6])
    assert late.ms == pytest.approx(0.6)
    assert late.because.startswith("0.30 ms more of computing")
    assert (report.ranks.method, report.ranks.joined_share) == ("clocked", 1.0)


def test_what_each_rank_costs_is_in_the_report(report: Report) -> None:
    assert report.ranks.costs == [(1, pytest.approx(0.6))]
    assert report.ranks.stalled == []


def test_classes_without_a_split_are_null_and_say_why(tmp_path: Path) -> None:
    parts = reported(tmp_path, {"rank0.json": exposed(0)}).breakdown
    for ms in (parts.mean_ms, parts.per_rank[0].ms, parts.per_step[0].ms):
        assert (ms["comm_wait"], ms["comm_transfer"]) == (None, None)
        assert ms["comm_unsplit"] == pytest.approx(0.1)
    assert parts.reason.startswith("not measurable: only one rank was recorded")


def test_a_process_that_communicates_with_nobody_waits_for_nobody(tmp_path: Path) -> None:
    alone = healthy(0, 1, without=["collectives"])
    parts = reported(tmp_path, {"rank0.json": alone}).breakdown
    assert (parts.mean_ms["comm_wait"], parts.mean_ms["comm_transfer"], parts.reason) == (0, 0, "")


def test_a_rank_of_which_nothing_was_split_is_null_beside_others_that_were(tmp_path: Path) -> None:
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    for one, ranks in zip(built, ("[0, 1]", "[0, 1]", "[2, 5]"), strict=True):
        one.events = [
            event.replace('"[0, 1, 2]"', f'"{ranks}"').replace('"Group size": 3', '"Group size": 2')
            for event in one.events
        ]
    parts = reported(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).breakdown
    assert [row.ms["comm_wait"] for row in parts.per_rank] == [pytest.approx(0.3), 0.0, None]
    assert parts.reason == "no collective of these could be joined over the ranks"


def test_a_row_split_in_part_says_of_how_much_its_rates_are(tmp_path: Path) -> None:
    built = [exposed(r, 2, wait=300 * (r == 0), compute=900 + 300 * r) for r in range(2)]
    of_steps = [i for i, e in enumerate(built[1].events) if '"Collective name"' in e]
    del built[1].events[of_steps[3]]
    (row,) = reported(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).collectives
    # Nine of ten records in used steps have their partner, and four of these wait for 0.3 ms.
    assert row.wait_ms == pytest.approx(4 * 0.3 / 9)
    assert row.note == "Waiting and transfer are those of the 90.0 % that could be split."


def hosted(rank: int, ahead: int) -> TraceBuilder:
    """Rank 1 comes 300 us late; `ahead` us is its clock and `rank` its host."""
    shift = ahead * 1000
    built = trace(rank, 2, scene_ns=SCENE_NS + shift).top("host_name", f"h{rank}")
    for k in range(7):
        at = 2000 * k
        built.step(k + 1, at, at + 2000).loader(at, at + 1)
        built.kernel(GEMM, at + 20, at + 1000 + 300 * rank, launch=(at + 5, at + 10))
        built.collective(
            "allreduce", at + 1000 + 300 * rank, at + 2000, seq=k + 1, launch=(at + 10, at + 15)
        )
    return built


def test_hosts_whose_clocks_were_moved_are_named(tmp_path: Path) -> None:
    built = {f"rank{r}.json": hosted(r, 3000 * r) for r in range(2)}
    assert reported(tmp_path, built).ranks.clock.moved == [("host h1", pytest.approx(-3.0))]


def test_strips_of_ranks_stand_on_the_common_clock(report: Report, tmp_path: Path) -> None:
    begun = [strip.marks[0][1] for strip in report.ranks.strips]
    assert begun == [0.0, 0.0, 0.0]
    built = {f"rank{r}.json": hosted(r, 3000 * r) for r in range(2)}
    first, second = reported(tmp_path / "moved", built).ranks.strips
    assert [first.marks[0][1], second.marks[0][1]] == [0.0, 0.0]
    assert first.marks[-1][2] == pytest.approx(second.marks[-1][2])


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
