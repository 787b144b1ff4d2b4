"""How numbers are written in sentences, and how sure a finding is."""

from __future__ import annotations

import pytest
from jobs import job
from studies import gain, studied

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.finding import Finding, View, microseconds, multiple, percent
from analyzer.ranks.pool import Job


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def finding(ns: float, saved_ns: float | None) -> Finding:
    return Finding(
        id="host-sync",
        title="t",
        attack="a",
        time_class="host_sync",
        ns=ns,
        step_ns=100.0,
        saved_ns=saved_ns,
        because="b",
        so="s",
        check="c",
        where=[],
        confidence="high",
    )


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (14_000_000, "14.0 ms"),
        (100_000_000, "100.0 ms"),
        (0, "0.0 ms"),
        (40_000, "<0.1 ms"),
        (1_234_500_000, "1,234.5 ms"),
    ],
)
def test_times_of_a_100_ms_step_have_one_decimal(ns: float, text: str) -> None:
    assert view(job()).ms(ns) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.14, "14.0 %"), (0.0, "0.0 %"), (0.0004, "<0.1 %"), (1.0, "100.0 %")]
)
def test_shares_have_one_decimal_and_do_not_print_as_zero(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(("value", "text"), [(1.1628, "1.16x"), (12.34, "12.3x"), (250.4, "250x")])
def test_speedups_have_three_significant_digits(value: float, text: str) -> None:
    assert multiple(value) == text


@pytest.mark.parametrize(
    ("ns", "text"), [(3_800, "3.8 µs"), (67_449, "67.4 µs"), (1_500_000, "1,500 µs")]
)
def test_kernel_times_are_microseconds(ns: float, text: str) -> None:
    assert microseconds(ns) == text


def test_the_bound_of_a_fix_follows_from_what_it_can_save() -> None:
    assert finding(ns=20.0, saved_ns=20.0).speedup_bound == 1.25
    assert finding(ns=20.0, saved_ns=20.0).share == 0.2


def test_there_is_no_bound_where_shares_cannot_tell_or_nothing_is_left() -> None:
    assert finding(ns=20.0, saved_ns=None).speedup_bound is None
    assert finding(ns=100.0, saved_ns=100.0).speedup_bound is None


@pytest.mark.parametrize(
    ("of", "confidence"),
    [
        (job(), "high"),
        (job(steps=1), "medium"),
        (job(world_size=8), "medium"),
        (job(unexplained=10.0), "medium"),
        (job(facts={"graph_calls": 10, "graphs_recorded": 4}), "medium"),
        (job(steps=1, unexplained=10.0), "low"),
    ],
)
def test_confidence_falls_with_what_is_missing(of: Job, confidence: str) -> None:
    assert view(of).confidence() == confidence


def test_a_rank_that_loses_much_more_than_the_others_is_named() -> None:
    ranks = [{"data_loading": 3.0}] * 3 + [{"data_loading": 60.0}]
    sentence = view(job(ranks)).worst_rank("data_loading")
    assert sentence == "Rank 3 loses 60.0 ms, the others 3.0 ms in the median."


def test_ranks_that_are_alike_are_not_named() -> None:
    ranks = [{"data_loading": 20.0}, {"data_loading": 24.0}]
    assert view(job(ranks)).worst_rank("data_loading") == ""


def test_one_rank_is_not_held_against_others() -> None:
    assert view(job(data_loading=60.0)).worst_rank("data_loading") == ""


@pytest.mark.parametrize(
    ("share", "lower_end", "fires"),
    [(0.051, 0.0, True), (0.049, 0.0, False), (0.049, 0.051, True), (0.049, 0.049, False)],
)
def test_a_bottleneck_is_one_by_its_share_or_by_what_its_fix_gains(
    share: float, lower_end: float, fires: bool
) -> None:
    judged = View(job(), DEFAULT_THRESHOLDS, studied({"launching": lower_end}))
    assert judged.fires(share * 1e8, 0.05, "launching") is fires


def test_a_gain_that_single_steps_do_not_show_makes_no_bottleneck() -> None:
    """20 % give or take 24.8 points."""
    unsure = View(job(), DEFAULT_THRESHOLDS, studied({"launching": gain(0.2, varying=0.2)}))
    assert not unsure.fires(1e6, 0.05, "launching")


def test_without_a_replay_only_the_share_makes_a_bottleneck() -> None:
    assert view(job()).fires(5.1e6, 0.05, "launching")
    assert not view(job()).fires(4.9e6, 0.05, "launching")


@pytest.mark.parametrize(("worth", "said"), [(0.051, True), (0.049, False), (0.0, False)])
def test_a_gain_is_told_where_it_is_well_above_the_share(worth: float, said: bool) -> None:
    judged = View(job(), DEFAULT_THRESHOLDS, studied({"launching": 0.1 + worth}))
    text = (
        "Without it the step is 15.1 % shorter in the replay, since what waits for it comes "
        "earlier, too."
    )
    assert judged.beyond(1e7, "launching") == (text if said else "")


def test_nothing_is_beyond_the_share_without_a_replay() -> None:
    assert view(job()).beyond(1e7, "launching") == ""
