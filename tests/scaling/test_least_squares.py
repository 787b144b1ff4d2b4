"""The closest non-negative mix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.scaling.least_squares import non_negative, unbounded

ONE, HALVES = [1.0, 1.0, 1.0], [1.0, 0.5, 0.25]


def test_an_exact_mix_is_found() -> None:
    found = non_negative([ONE, HALVES], [12.0, 7.0, 4.5], [1.0] * 3)
    assert found.coefficients == pytest.approx((2.0, 10.0))
    assert found.rms == pytest.approx(0.0, abs=1e-12)


def test_a_coefficient_that_would_be_negative_is_zero() -> None:
    found = non_negative([ONE, HALVES], [1.0, 2.0, 3.0], [1.0] * 3)
    assert found.coefficients == pytest.approx((2.0, 0.0))


def test_without_the_bound_it_is_negative() -> None:
    assert unbounded([ONE, HALVES], [9.0, 9.5, 9.75], [1.0] * 3) == pytest.approx((10.0, -1.0))


def test_where_no_column_helps_all_are_zero() -> None:
    assert non_negative([ONE], [-1.0, -2.0, -3.0], [1.0] * 3).coefficients == (0.0,)


def test_rows_count_by_their_weight() -> None:
    found = non_negative([[1.0, 1.0]], [1.0, 3.0], [1.0, 0.0])
    assert found.coefficients == pytest.approx((1.0,))


positive = st.lists(st.floats(0.1, 10.0), min_size=4, max_size=4)


@given(st.lists(positive, min_size=1, max_size=3), positive)
@settings(max_examples=50)
def test_no_step_from_the_solution_comes_closer(
    columns: list[list[float]], target: list[float]
) -> None:
    """The conditions of Karush, Kuhn and Tucker: no feasible direction descends."""
    found = non_negative(columns, target, [1.0] * 4)
    gradient = -np.array(columns) @ np.array(found.residuals)
    for slope, value in zip(gradient.tolist(), found.coefficients, strict=True):
        assert slope >= -1e-6
        assert value == 0.0 or abs(slope) < 1e-6
