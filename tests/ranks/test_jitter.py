"""How much less than the others a rank waits, and how much of that jitter explains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.ranks.blame import Blame
from analyzer.ranks.jitter import explained, lateness, student_t


def waits(rows: list[list[float]]) -> Blame:
    """One group; rows are steps, columns ranks."""
    table = np.array(rows)
    ranks = list(range(table.shape[1]))
    steps = [(0, i) for i in range(len(rows))]
    return Blame([ranks], False, ranks, steps, {}, {}, {}, table)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("probability", "freedom", "tabled"),
    [(0.999, 4, 7.173), (0.9995, 8, 5.041), (0.999, 30, 3.385), (0.975, 10, 2.228)],
)
def test_quantiles_are_those_of_the_tables(probability: float, freedom: int, tabled: float) -> None:
    assert student_t(probability, freedom) == pytest.approx(tabled, rel=0.03)


def test_with_many_degrees_of_freedom_it_is_the_normal_quantile() -> None:
    assert student_t(0.975, 10**6) == pytest.approx(1.95996, abs=1e-4)


def test_lateness_is_what_a_rank_waits_less_than_the_median_of_the_others() -> None:
    blame = waits([[10, 30, 40, 20], [0, 30, 30, 90]])
    assert lateness(blame, 0) == pytest.approx((20 + 30) / 2)


def test_steps_that_a_rank_lacks_do_not_count() -> None:
    assert lateness(waits([[10, 30], [float("nan"), 500]]), 0) == 20


def test_equal_waits_leave_the_ordinary_jitter() -> None:
    # No scatter of its own in 4 steps of 2 ranks: 3 degrees of freedom beside the prior's 4.
    blame = waits([[5, 25]] * 4)
    spread = (4 * 2.0**2 / 7) ** 0.5
    expected = student_t(1 - 0.005 / 2, 7) * spread * (2 / 4) ** 0.5
    assert explained(blame, 0, 2.0) == pytest.approx(expected)


@given(st.lists(st.lists(st.floats(0, 100), min_size=4, max_size=4), min_size=2, max_size=6))
def test_jitter_explains_more_where_waits_vary_more(rows: list[list[float]]) -> None:
    wider = [[2 * x for x in row] for row in rows]
    assert explained(waits(wider), 0, 1.0) >= explained(waits(rows), 0, 1.0)
