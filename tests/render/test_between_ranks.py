from __future__ import annotations

import pytest
from example import bare, example, unjoined
from example_late import two_late
from example_ranks import strip
from msgspec.structs import replace

from analyzer.render import between_ranks
from analyzer.report.document import Clock, Ranks, Report


def ranks_of(report: Report, **changes: object) -> Report:
    return replace(report, ranks=replace(report.ranks, **changes))


def test_one_late_rank_is_told_with_its_cost_to_each_other_rank() -> None:
    assert between_ranks.lead(example()).startswith(
        "Rank 3 arrives last in 82.9 % of the 7 collectives of a step; the others wait 2.2 ms each "
        "per step for it (2.2 %)."
    )


def test_a_late_rank_that_costs_little_is_only_mentioned() -> None:
    assert "(35.0 % and 27.9 %). Rank 2 costs less." in between_ranks.lead(two_late())


def test_the_lead_tells_waiting_from_transfer() -> None:
    assert between_ranks.lead(two_late()).endswith(
        "Of 417.0 ms of exposed communication per step 367.0 ms (88.0 %) are waiting and 50.0 ms "
        "(12.0 %) transfer."
    )


def test_what_could_not_be_split_is_told() -> None:
    report = example()
    ms = report.breakdown.mean_ms | {"comm_unsplit": 4.0}
    report = replace(report, breakdown=replace(report.breakdown, mean_ms=ms))
    assert between_ranks.lead(report).endswith("(70.0 %) transfer, 4.0 ms could not be split.")


def test_shares_of_joined_collectives_say_that_some_were_not() -> None:
    report = ranks_of(two_late(), joined_share=0.7)
    assert "38.1 % and 33.3 % of the all-reduces that could be joined;" in between_ranks.lead(
        report
    )


@pytest.mark.parametrize("report", [unjoined(), bare()], ids=["unjoined", "one rank"])
def test_without_a_split_only_the_reason_is_given(report: Report) -> None:
    assert between_ranks.lead(report) == report.ranks.reason


def test_the_three_levels_are_told_with_what_works_in_each() -> None:
    group = example().ranks.groups[0]
    levels = {"node": ("tensor", "tensor", "unknown"), "nodes": ("sharded-data",)}
    groups = [
        replace(group, dimension=name, level=level) for level in levels for name in levels[level]
    ]
    report = ranks_of(example(), groups=groups, occupancy=0.227)
    assert between_ranks.levels(report) == (
        "Inside a GPU: computing kernels hold 22.7 % of the threads it has room for, by the "
        "profiler's estimate and weighted by their time; more is not faster in itself. "
        "Inside a node: tensor and groups of no recognised dimension. "
        "Between nodes: sharded data."
    )


def test_a_level_that_is_not_recorded_is_said_to_be() -> None:
    group = replace(example().ranks.groups[0], dimension="pipeline", level="unknown")
    report = ranks_of(example(), groups=[group], occupancy_reason="not measurable: no estimate")
    assert between_ranks.levels(report) == (
        "Inside a GPU: occupancy not measurable: no estimate. "
        "Inside a node or between nodes, which is not recorded: pipeline."
    )


def test_of_levels_that_nothing_is_known_of_nothing_is_told() -> None:
    assert between_ranks.levels(ranks_of(example(), groups=[])) == ""


def test_a_joined_run_without_late_ranks_says_so() -> None:
    report = ranks_of(example(), late=[])
    assert between_ranks.lead(report).startswith("No rank keeps the others waiting for longer")


def test_a_rank_that_stalled_is_told_with_its_steps() -> None:
    stalled = replace(example().ranks.late[0], steps=[4])
    report = ranks_of(example(), late=[], stalled=[stalled])
    assert between_ranks.lead(report).startswith(
        "No rank is late throughout; most waiting is for rank 3 in step 4: the others wait 2.2 ms "
        "each per step for it (2.2 %)."
    )


def test_a_timeline_counts_from_where_its_rows_start() -> None:
    own = between_ranks.timeline_axis(example())
    assert own.startswith("Milliseconds from each rank's own start of the step;")
    later = [(name, start + 3.0, end + 3.0) for name, start, end in strip(1, 4).marks]
    strips = [strip(0, 4), replace(strip(1, 4), marks=later)]
    shared = between_ranks.timeline_axis(ranks_of(example(), strips=strips))
    assert shared.startswith("Milliseconds from the first rank's start of the step;")


def test_classes_that_were_not_measured_are_in_no_total() -> None:
    report = unjoined()
    ms = report.breakdown.mean_ms | {"comm_wait": None, "comm_transfer": None}
    report = replace(report, breakdown=replace(report.breakdown, mean_ms=ms))
    assert set(report.breakdown.measured) == set(ms) - {"comm_wait", "comm_transfer"}
    assert between_ranks.lead(report) == report.ranks.reason


def test_nothing_is_claimed_of_ranks_that_were_not_joined() -> None:
    report = ranks_of(unjoined(), reason="")
    assert between_ranks.lead(report).startswith("The ranks were not joined, so nothing is known")


@pytest.mark.parametrize(
    "hosts, clock, words",
    [
        (["a"], Clock(aligned=True, residual_us=30.0), "share one host's clock: ends of a coll"),
        (["a"], Clock(aligned=True, residual_us=None), "All ranks share one host's clock."),
        (["a", "b"], Clock(aligned=True, residual_us=29.4), "clocks agree within 29.4 µs"),
        ([], Clock(aligned=True, residual_us=0.0), "clocks agree within 0 µs"),
        (["a", "b"], Clock(aligned=False, residual_us=None), "clocks are not aligned"),
        (["a", "b"], Clock(aligned=None, residual_us=None), "were not compared"),
    ],
)
def test_the_clocks_are_told(hosts: list[str], clock: Clock, words: str) -> None:
    report = ranks_of(example(), clock=clock)
    report = replace(report, run=replace(report.run, hosts=hosts))
    assert words in between_ranks.clock(report)


def test_hosts_whose_clocks_were_moved_are_told_with_how_far() -> None:
    moved = [("host b", -3.0), ("host c", 0.35), ("rank 7", 0.0061), ("host d", 0.001)]
    report = ranks_of(example(), clock=Clock(aligned=True, residual_us=2.0, moved=moved))
    report = replace(report, run=replace(report.run, hosts=["a", "b", "c", "d"]))
    assert between_ranks.clock(report) == (
        "The ranks' clocks agree within 2.00 µs, the median spread of ends that should coincide, "
        "after moving host b by -3.00 ms, host c by +350 µs and rank 7 by +6.10 µs and 1 more by "
        "less."
    )


def test_hosts_of_one_name_whose_clocks_were_moved_share_none() -> None:
    clock = Clock(aligned=True, residual_us=2.0, moved=[("rank 1", -3.0)])
    report = ranks_of(example(), clock=clock)
    report = replace(report, run=replace(report.run, hosts=["localhost"]))
    assert between_ranks.clock(report).endswith("after moving rank 1 by -3.00 ms.")


def test_one_rank_has_no_clocks_to_compare() -> None:
    assert between_ranks.clock(bare()) == ""


def test_a_timeline_says_how_many_ranks_it_shows() -> None:
    assert between_ranks.timeline(example()) == "Step 4 on every rank"
    assert between_ranks.timeline(example(64)) == "Step 4 on 30 of 64 ranks"


def test_late_ranks_are_among_the_strips_of_a_wide_job() -> None:
    late = [replace(example().ranks.late[0], rank=rank) for rank in (7, 55)]
    strips = [strip(rank, 4) for rank in range(64)]
    picked = between_ranks.picked_strips(ranks_of(example(64), late=late, strips=strips))
    shown = [item.rank for item in picked]
    assert len(shown) == len(set(shown)) == 32
    assert shown == sorted(shown)
    assert {7, 55} < set(shown)


def test_groups_that_the_traces_name_are_not_called_unnamed() -> None:
    assert between_ranks.no_groups(example()) == "No process group was recognised."
    assert "do not say which ranks" in between_ranks.no_groups(two_late())


def test_why_no_efficiency_is_known_is_told() -> None:
    report = ranks_of(bare(), pop_reason="not measurable: only one rank was recorded")
    assert between_ranks.no_efficiencies(report) == "Not measurable: only one rank was recorded."


def test_a_report_from_before_joining_gives_a_lead() -> None:
    ranks = Ranks(late=[], clock=Clock(aligned=None, residual_us=None), pop={}, reason="why not")
    assert between_ranks.lead(replace(example(), ranks=ranks)) == "Why not."
