"""Printed parts add up to the printed whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.render.adding import apportioned, change, units, written
from analyzer.render.format import StepScale

TENTHS = StepScale(1)


@pytest.mark.parametrize(
    ("parts", "whole", "printed"),
    [
        ({"a": 1.04, "b": 2.04, "c": 3.04}, 6.12, {"a": 10, "b": 20, "c": 31}),
        ({"a": 1.06, "b": 2.06, "c": 3.06}, 6.18, {"a": 11, "b": 21, "c": 30}),
        ({"a": 50.0, "b": 50.0}, 100.0, {"a": 500, "b": 500}),
    ],
)
def test_what_rounding_leaves_goes_to_the_least_telling_part(
    parts: dict[str, float], whole: float, printed: dict[str, int]
) -> None:
    assert apportioned(parts, whole, TENTHS) == printed


def test_a_part_that_shows_nothing_is_given_nothing() -> None:
    assert apportioned({"a": 10.02, "b": 0.02, "c": 0.02}, 10.06, TENTHS)["b"] == 0


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=12), st.integers(0, 4))
def test_the_parts_add_up_and_none_is_off_by_a_whole_digit(
    values: list[float], decimals: int
) -> None:
    scale = StepScale(decimals)
    parts = {str(place): value + 10.0 for place, value in enumerate(values)}
    printed = apportioned(parts, sum(parts.values()), scale)
    assert sum(printed.values()) == units(sum(parts.values()), scale)
    for name, value in parts.items():
        assert abs(printed[name] - value * 10**decimals) <= 1.0 + 1e-6


def test_counts_are_written_with_sign_and_digits() -> None:
    assert [
        written(12_345, TENTHS),
        change(-433, TENTHS),
        change(7, TENTHS),
        change(0, TENTHS),
    ] == [
        "1,234.5",
        "−43.3",
        "+0.7",
        "0.0",
    ]
