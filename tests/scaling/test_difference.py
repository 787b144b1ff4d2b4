"""Whether a step changed: intervals by hand, few false alarms, true changes found."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.scaling.difference import (
    Difference,
    Floats,
    clear,
    half_width,
    mean,
    outcome,
    ratio,
    runs_needed,
    shift,
)
from analyzer.scaling.student import student_t_975, two_sided_p

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from compare import Case, verdicts


def runs(*means: float) -> list[Floats]:
    """Runs of two steps, one above and one below the mean."""
    return [np.array([value - 1.0, value + 1.0]) for value in means]


def test_runs_are_the_unit_where_there_are_two_or_more_on_both_sides() -> None:
    change = shift(runs(99.0, 101.0), runs(89.0, 91.0))
    # both sides spread by sqrt(2); t for two degrees of freedom is 4.3027
    assert change.basis == "runs"
    assert (change.value, change.lo, change.hi) == pytest.approx(
        (-10.0, -10.0 - 4.302653 * 2**0.5, -10.0 + 4.302653 * 2**0.5), abs=1e-5
    )


def test_the_spread_of_the_side_with_several_runs_stands_for_the_other() -> None:
    change = ratio(runs(99.0, 101.0, 100.0), runs(90.0))
    assert (change.basis, change.value) == ("runs", pytest.approx(0.9))


def test_one_run_per_side_is_judged_by_its_steps() -> None:
    steps = [np.array([100.0, 102.0, 98.0, 101.0, 99.0])]
    change = ratio(steps, [0.8 * steps[0]])
    assert change.basis == "steps"
    assert change.value == pytest.approx(0.8)
    assert outcome(change, 0.02, 5) == "faster"


def test_the_interval_of_a_ratio_is_one_of_its_logarithm() -> None:
    change = ratio(runs(99.0, 101.0), runs(49.0, 51.0))
    assert change.lo is not None
    assert change.hi is not None
    assert change.lo * change.hi == pytest.approx(change.value**2)


def test_a_long_run_counts_as_much_as_a_short_one() -> None:
    assert mean([np.full(100, 10.0), np.full(2, 20.0)]) == 15.0


def test_the_mean_of_three_runs_has_an_interval_and_that_of_two_says_why_not() -> None:
    # the runs spread by 1, t for two degrees of freedom is 4.3027
    half, reason = half_width(runs(99.0, 100.0, 101.0))
    assert (half, reason) == (pytest.approx(4.302653 / 3**0.5, abs=1e-5), "")
    assert half_width(runs(99.0, 101.0)) == (None, "no interval: 3 runs are needed, there are 2")


def test_two_steps_give_no_interval_and_say_so() -> None:
    change = ratio([np.array([100.0, 100.0])], [np.array([50.0, 50.0])])
    assert (change.lo, change.hi, change.basis) == (None, None, "none")
    assert change.reason == "no interval: 3 steps of each run are needed, one has 2"
    assert outcome(change, 0.02, 2) == "no-clear-change"
    assert runs_needed(change, 0.02) is None


def test_fewer_than_five_steps_decide_nothing_however_clear() -> None:
    change = ratio([np.full(4, 100.0)], [np.full(4, 50.0)])
    assert (change.lo, change.hi) == (0.5, 0.5)
    assert outcome(change, 0.02, 4) == "no-clear-change"
    assert outcome(change, 0.02, 5) == "faster"


@pytest.mark.parametrize(
    ("lo", "hi", "said"),
    [
        (0.90, 0.97, "faster"),
        (0.90, 0.98, "no-clear-change"),
        (0.99, 1.01, "no-clear-change"),
        (1.02, 1.10, "no-clear-change"),
        (1.03, 1.10, "slower"),
    ],
)
def test_a_change_is_clear_when_its_whole_interval_is_beyond_the_margin(
    lo: float, hi: float, said: str
) -> None:
    assert outcome(Difference((lo + hi) / 2, lo, hi, "runs"), 0.02, 5) == said


def test_steps_that_resemble_their_neighbours_count_for_less() -> None:
    saw = np.array([101.0, 99.0] * 20)
    slope = np.sort(saw)
    wide, narrow = ratio([slope], [slope]), ratio([saw], [saw])
    assert wide.hi is not None
    assert narrow.hi is not None
    assert wide.hi - 1.0 > 5 * (narrow.hi - 1.0)


def test_runs_that_settle_a_change_are_counted() -> None:
    # beyond the margin by 8 %: t(2) * 1 % * 1 = 4.3 % with two runs per side
    near = Difference(np.exp(-0.10), 0.8, 1.0, "runs", spread=0.01)
    assert runs_needed(near, 0.02) == 2
    # 3 % to go: t(6) * 2 % * sqrt(2/4) = 3.5 %, t(8) * 2 % * sqrt(2/5) = 2.9 %
    far = Difference(np.exp(-0.05), 0.8, 1.0, "runs", spread=0.02)
    assert runs_needed(far, 0.02) == 5
    assert runs_needed(Difference(np.exp(-0.021), 0.8, 1.0, "runs", spread=0.5), 0.02) is None


def test_several_changes_are_judged_together() -> None:
    rows = [Difference(1.0, 0.5, 1.5, "runs", p=p) for p in (0.04, 0.001, 0.03)]
    assert clear(rows) == [False, True, False]
    assert clear([Difference(1.0, None, None, "none")]) == [False]


def test_the_chance_of_a_value_at_its_own_limit_is_five_percent() -> None:
    for freedom in (2.0, 4.5, 30.0):
        assert two_sided_p(student_t_975(freedom), freedom) == pytest.approx(0.05, abs=1e-8)


@given(
    st.lists(st.floats(1.0, 1e6), min_size=3, max_size=8),
    st.lists(st.floats(1.0, 1e6), min_size=3, max_size=8),
    st.floats(1e-3, 1e3),
)
def test_the_unit_of_time_changes_no_ratio(old: list[float], new: list[float], unit: float) -> None:
    before, after = np.array(old), np.array(new)
    plain, scaled = ratio([before], [after]), ratio([before * unit], [after * unit])
    assert scaled.value == pytest.approx(plain.value, rel=1e-9)
    assert scaled.hi == pytest.approx(plain.hi, rel=1e-6)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
@pytest.mark.parametrize(("count", "steps"), [(1, 20), (1, 50), (3, 20)])
def test_equal_jobs_raise_an_alarm_in_at_most_one_pair_of_twenty(
    count: int, steps: int, phi: float
) -> None:
    found = verdicts(Case(count, steps, phi, spread=0.05), pairs=200, seed=6)
    assert 200 - found["no-clear-change"] <= 10


@pytest.mark.parametrize(("phi", "spread"), [(0.0, 0.02), (0.5, 0.02), (0.8, 0.015)])
def test_five_percent_less_is_found_with_three_runs_of_twenty_steps(
    phi: float, spread: float
) -> None:
    found = verdicts(Case(3, 20, phi, spread, change=-0.05), pairs=200, seed=6)
    assert found["faster"] >= 160
    assert found["slower"] == 0
