"""Pieces of a time line, each named by one class, keep the shares of all."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.timeline.sampling import carried


def test_a_class_with_a_third_of_every_piece_names_a_third_of_them() -> None:
    assert carried(np.array([[60, 40]] * 5)) == [0, 1, 0, 1, 0]


def test_pieces_of_one_class_keep_it() -> None:
    assert carried(np.array([[9, 0], [9, 0], [0, 9], [9, 0]])) == [0, 0, 1, 0]


def test_a_piece_is_never_named_by_what_it_has_nothing_of() -> None:
    # Nearly half of the first is of the second class, which no other piece has.
    assert carried(np.array([[6, 4, 0], [0, 0, 10], [9, 0, 1]])) == [0, 2, 0]


def test_a_piece_of_nothing_is_named_by_the_first() -> None:
    assert carried(np.zeros((2, 3), np.int64)) == [0, 0]


@given(st.lists(st.integers(1, 99), min_size=1, max_size=40))
def test_two_classes_in_every_piece_are_named_as_often_as_their_share(parts: list[int]) -> None:
    chosen = carried(np.array([[part, 100 - part] for part in parts]))
    assert abs(chosen.count(0) - sum(parts) / 100) <= 1
