"""What is said of waiting that is not for a late rank: for one that stalled, by turns, a bubble."""

from __future__ import annotations

from typing import Any

from jobs import job, late

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.findings.lateness import late_rank
from analyzer.findings.skew import rank_skew
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import CLOCK_FREE, CLOCKED, Late

# Four ranks: the others wait 24 ms each for rank 0, and 6 ms each for rank 1.
RANKS = [
    {"comm_wait": 6.0, "launch": 24.0},
    {"comm_wait": 24.0},
    {"comm_wait": 30.0},
    {"comm_wait": 30.0},
]
COST = {0: 72.0, 1: 18.0}
FIRST = late(0, 72.0, launch=24.0)


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def told(outcome: Outcome) -> Finding:
    assert isinstance(outcome, Finding)
    return outcome


def four(*found: Late, **more: Any) -> Job:
    said: dict[str, Any] = {"method": CLOCKED, "cost": COST, **more}
    return job(RANKS, found=found, **said)


def even(wait_ms: float, **more: Any) -> Job:
    return job([{"comm_wait": wait_ms}] * 4, **more)


def test_waiting_without_a_late_rank_is_by_turns() -> None:
    found = told(rank_skew(view(four())))
    assert found.title == "Ranks wait for each other by turns"
    assert found.ns == found.saved_ns == 22_500_000
    assert found.removes == {"comm_wait": 22_500_000.0}
    assert "No rank is late throughout: rank 0 makes the others wait most" in found.because


def test_without_a_common_clock_it_is_not_said_to_be_by_turns() -> None:
    found = told(rank_skew(view(even(30.0, method=CLOCK_FREE))))
    assert found.title == "Ranks wait for each other"
    assert "Which rank is late cannot be told: the clocks contradict each other." in found.because
    assert found.confidence == "medium"


def test_beside_a_late_rank_only_other_waiting_is_told() -> None:
    """54 of 90 rank-ms are for rank 0: 13.5 of 22.5 ms are told there."""
    found = told(rank_skew(view(four(late(0, 54.0, launch=24.0)))))
    assert (found.ns, found.removes) == (9_000_000, {"comm_wait": 9_000_000.0})
    assert found.because.startswith(
        "9.0 ms per step (9.0 %) pass waiting for a rank that has not arrived, late ones aside."
    )


def test_little_waiting_beside_a_late_rank_is_no_finding() -> None:
    assert rank_skew(view(four(FIRST))) == Passed(
        "Waiting of ranks for each other beside that for late ones: 4.5 ms per step (4.5 %), below "
        "5.0 %."
    )


def test_one_rank_that_stalled_once_is_named_with_its_step_and_cause() -> None:
    stalled = late(1, 80.0, [3], data_loading=400.0)
    found = told(rank_skew(view(four(sole=stalled))))
    assert found.title == "Ranks wait for rank 1 in step 3"
    assert found.attack == "Find what stops rank 1 in step 3"
    assert "in 1 of 5 steps (3); 400.0 ms more of data loading than the others" in found.because
    assert found.so.startswith("Data loading: ")


def test_one_rank_that_stalls_in_every_step_is_named_without_them() -> None:
    assert told(rank_skew(view(four(sole=late(1, 80.0))))).title == "Ranks wait for rank 1"


def test_a_pipelines_waiting_is_its_bubble() -> None:
    stages = four(collectives=[("send_recv", 2, 30.0)], split=(21.0, 9.0), sole=late(1, 80.0))
    found = told(rank_skew(view(stages)))
    assert found.title == "Stages of the pipeline wait for each other"
    assert found.attack == "Shorten the pipeline's bubble"
    assert "more micro-batches or an interleaved schedule" in found.so


def test_a_group_that_could_be_several_lowers_the_confidence() -> None:
    assert told(rank_skew(view(four(perhaps_several=True)))).confidence == "medium"


def test_waiting_that_late_ranks_hardly_cause_is_skew() -> None:
    mixed = four(late(2, 9.0, launch=9.0))
    assert isinstance(late_rank(view(mixed)), Passed)
    assert told(rank_skew(view(mixed))).id == "rank-skew"


def test_skew_is_not_judged_where_nothing_was_split() -> None:
    assert rank_skew(view(even(0.0))) is None


def test_places_of_skew_are_the_kinds_that_wait() -> None:
    kinds = [("all_reduce", 4, 30.0)]
    assert told(rank_skew(view(four(collectives=kinds, split=(21.0, 9.0))))).where == [
        ("all_reduce (hidden or not)", 21_000_000, 1.0)
    ]
