"""Who is waited for, because of what, and what is said where nobody is late."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import job, late
from studies import studied

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.findings.lateness import late_rank
from analyzer.ranks.agreement import MISMATCHES
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
SECOND = late(1, 18.0, compute=6.0)


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def told(outcome: Outcome) -> Finding:
    assert isinstance(outcome, Finding)
    return outcome


def four(*found: Late, **more: Any) -> Job:
    said: dict[str, Any] = {"method": CLOCKED, "cost": COST, **more}
    return job(RANKS, found=found, **said)


def finding(*found: Late, **more: Any) -> Finding:
    return told(late_rank(view(four(*found, **more))))


def even(wait_ms: float, **more: Any) -> Job:
    return job([{"comm_wait": wait_ms}] * 4, **more)


def test_the_finding_is_the_waiting_for_the_ranks_it_names() -> None:
    """72 of 90 rank-ms are for rank 0: 18.0 of the 22.5 ms that each rank waits."""
    found = finding(FIRST)
    assert (found.time_class, found.ns) == ("comm_wait", 18_000_000)


def test_a_fix_takes_the_waiting_for_that_rank_and_what_delays_it() -> None:
    """72 of 90 rank-ms are for rank 0, so 18.0 of 22.5 ms, and 24 ms of launches over 4 ranks."""
    found = finding(FIRST)
    assert found.removes == {"comm_wait": 18_000_000.0, "launch": 6_000_000.0}
    assert found.saved_ns == 24_000_000


@given(st.lists(st.floats(1.0, 200.0), min_size=1, max_size=4), st.floats(0.0, 100.0))
def test_a_fix_never_takes_more_than_the_step_has(costs: list[float], more: float) -> None:
    of = four(*(late(rank, ms, launch=more, copy=more) for rank, ms in enumerate(costs)))
    found = late_rank(view(of))
    removes = found.removes if isinstance(found, Finding) else {}
    assert all(ns <= of.mean_ns[name] for name, ns in removes.items())


def test_a_fix_takes_no_more_of_a_class_than_there_is() -> None:
    assert finding(late(0, 72.0, launch=40.0)).removes["launch"] == 6_000_000


def test_the_headline_orders_the_rank_and_says_because_of_what() -> None:
    found = finding(FIRST)
    assert found.attack == "Fix rank 0"
    assert found.why == (
        "Ranks wait that long for this one, 80.0 % of all they wait, because kernels are launched "
        "late there (24.0 ms more than on the others)."
    )


def test_ranks_with_one_cause_share_a_clause_in_order_of_rank() -> None:
    found = finding(late(3, 50.0, launch=9.0), late(1, 40.0, launch=24.0))
    assert found.title == "Ranks 1 and 3 keep the others waiting"
    assert found.attack == "Fix ranks 1 and 3"
    assert found.why == (
        "Ranks wait that long for these two, because kernels are launched late there (24.0 and 9.0 "
        "ms more than on the others)."
    )


def test_ranks_with_different_causes_have_a_clause_each() -> None:
    assert "because kernels are launched late on rank 0 (24.0 ms more than on the others) and " in (
        why := finding(FIRST, SECOND).why
    )
    assert why.endswith("computing takes longer on rank 1 (6.0 ms more than on the others).")


def test_a_cause_is_put_to_its_rank_where_another_has_none() -> None:
    why = finding(FIRST, late(1, 18.0)).why
    assert "because kernels are launched late on rank 0 (24.0 ms more than on the others)." in why


def test_a_rank_without_a_reason_is_named_without_one() -> None:
    found = finding(late(0, 72.0))
    assert found.why.endswith("of all they wait, for a reason that is not in its trace.")
    assert "what delays it is not in its own trace." in found.because
    assert found.so.startswith("The trace does not tell why")
    assert found.confidence == "medium"


def test_the_headline_leaves_out_ranks_that_cost_under_a_quarter_of_the_dearest() -> None:
    found = finding(FIRST, late(1, 17.9, compute=6.0))
    assert found.attack == "Fix rank 0"
    assert "Rank 1: 17.9 ms of the others' time" in found.because
    assert [place.name for place in found.where] == ["rank 0", "rank 1"]


def test_a_long_list_of_late_ranks_is_cut() -> None:
    many = [late(rank, 15.0, launch=9.0) for rank in range(6)]
    assert finding(*many).title == "Ranks 0, 1, 2, 3 and 2 more keep the others waiting"


def test_because_says_what_a_rank_costs_how_often_when_and_of_what() -> None:
    assert finding(FIRST).because == (
        "22.5 ms per step (22.5 %) pass waiting for a rank that has not arrived. Rank 0: 72.0 ms "
        "of the others' time per step, summed over them; last in 50.0 % of its collectives, in "
        "every step; 24.0 ms more of late launches than the others in the median. "
        "With rank 0 like the others, 18.0 ms of waiting and 6.0 ms of what delays it would go, in "
        "the mean over the ranks."
    )


def test_with_a_replay_because_says_what_that_gains() -> None:
    replayed = View(four(FIRST), DEFAULT_THRESHOLDS, studied({"no-straggler": 0.15}))
    because = told(late_rank(replayed)).because
    assert because.endswith("With rank 0 like the others the step is 15.0 % shorter in the replay.")


def test_the_steps_in_which_a_rank_is_late_are_named() -> None:
    assert "in 3 of 5 steps (0, 2 and 3)" in finding(late(0, 72.0, [0, 2, 3])).because


def test_many_steps_are_named_only_in_part() -> None:
    found = finding(late(0, 72.0, range(8)), steps=10)
    assert "in 8 of 10 steps (0, 1, 2, 3, 4, 5 and others)" in found.because


def test_places_are_the_ranks_with_the_waiting_for_them() -> None:
    assert finding(FIRST, SECOND).where == [("rank 0", 18e6, None), ("rank 1", 4.5e6, None)]


@pytest.mark.parametrize(
    ("cause", "start"),
    [
        ("launch", "Late launches: the host of that rank is slow or shared."),
        ("data_loading", "Data loading: look at the storage"),
        ("compute", "Computing: look for hardware that is throttled"),
        ("unexplained", "Unexplained: record that rank once with with_stack=True."),
    ],
)
def test_advice_follows_the_cause(cause: str, start: str) -> None:
    assert finding(late(0, 72.0, **{cause: 24.0})).so.startswith(start)


def test_advice_is_given_once_per_cause() -> None:
    both = finding(FIRST, late(1, 18.0, launch=6.0))
    assert both.so == finding(FIRST).so


@pytest.mark.parametrize("why", MISMATCHES)
def test_records_that_did_not_match_lower_the_confidence(why: str) -> None:
    assert finding(FIRST).confidence == "high"
    assert finding(FIRST, left={why: 4}).confidence == "medium"


def test_a_group_that_could_be_several_lowers_the_confidence() -> None:
    assert finding(FIRST, perhaps_several=True).confidence == "medium"


def test_late_ranks_that_cost_little_are_no_finding() -> None:
    few = even(8.0, method=CLOCKED, found=[late(0, 12.0)])
    assert late_rank(view(few)) == Passed(
        "Waiting for late ranks: 3.0 ms per step (3.0 %), below 5.0 %."
    )


def test_nobody_late_is_said_with_the_rank_that_comes_nearest() -> None:
    few = even(1.0, method=CLOCKED, cost={0: 3.0, 1: 1.0})
    assert late_rank(view(few)) == Passed(
        "No rank is late: rank 0 makes the others wait most, 1.0 ms each per step (1.0 %); a "
        "late one costs 2.0 % or more, and more than jitter explains."
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "no more than jitter may explain"),
        ({"sole": late(0, 72.0, [3])}, "most of it in step 3"),
        ({"sole": late(0, 72.0, [1, 3])}, "most of it in steps 1 and 3"),
        ({"sole": late(0, 72.0)}, "no more than jitter may explain"),
        (
            {"collectives": [("send_recv", 2, 30.0)], "split": (21.0, 9.0)},
            "but works no longer than its peers",
        ),
    ],
)
def test_why_a_rank_that_costs_much_is_not_late_is_said(more: dict[str, Any], why: str) -> None:
    assert late_rank(view(four(**more))) == Passed(
        "No rank is late throughout: rank 0 makes the others wait most, 24.0 ms each per step "
        f"(24.0 %), {why}."
    )


def test_nobody_late_is_said_where_nobody_waits() -> None:
    calm = even(0.0, method=CLOCKED, cost={0: 0.0})
    assert late_rank(view(calm)) == Passed("No rank is late: none makes the others wait.")


@pytest.mark.parametrize("method", [None, CLOCK_FREE])
def test_without_a_common_clock_nobody_is_late_and_nobody_is_cleared(method: str | None) -> None:
    assert late_rank(view(even(30.0, method=method))) is None
