"""Sets of time: union, intersection, difference, and lengths inside windows."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.timeline.intervals import (
    EMPTY,
    Int64,
    Intervals,
    Spans,
    joined,
    sweep,
    union,
    where,
)

Pairs = list[tuple[int, int]]


def ints(*values: int) -> Int64:
    return np.array(values, np.int64)


def made(pairs: Pairs) -> Intervals:
    return union(ints(*(a for a, _ in pairs)), ints(*(b for _, b in pairs)))


def pairs_of(intervals: Intervals) -> Pairs:
    return list(zip(intervals.start.tolist(), intervals.end.tolist(), strict=True))


@pytest.mark.parametrize(
    ("given", "covered"),
    [
        ([(5, 9), (1, 3)], [(1, 3), (5, 9)]),
        ([(1, 5), (3, 9)], [(1, 9)]),
        ([(1, 9), (3, 5)], [(1, 9)]),
        ([(1, 5), (5, 9)], [(1, 9)]),
        ([(1, 5), (1, 5), (1, 5)], [(1, 5)]),
        ([(1, 4), (2, 3), (6, 8)], [(1, 4), (6, 8)]),
        ([(3, 3)], []),
        ([(3, 3), (2, 4)], [(2, 4)]),
        ([(4, 4), (2, 4), (4, 6)], [(2, 6)]),
        ([], []),
    ],
)
def test_union_covers_each_instant_once(given: Pairs, covered: Pairs) -> None:
    assert pairs_of(made(given)) == covered


def test_intersection_is_what_both_cover() -> None:
    both = made([(0, 10), (20, 30)]) & made([(5, 22), (29, 40)])
    assert pairs_of(both) == [(5, 10), (20, 22), (29, 30)]


def test_touching_sets_do_not_intersect() -> None:
    assert len(made([(0, 10)]) & made([(10, 20)])) == 0


def test_difference_is_what_only_the_first_covers() -> None:
    rest = made([(0, 10), (20, 30)]) - made([(3, 5), (8, 22)])
    assert pairs_of(rest) == [(0, 3), (5, 8), (22, 30)]


def test_sum_of_sets_joins_what_touches() -> None:
    assert pairs_of(made([(0, 10)]) | made([(10, 20), (30, 31)])) == [(0, 20), (30, 31)]


def test_empty_sets_take_part_in_everything() -> None:
    some = made([(1, 4)])
    assert pairs_of(some & EMPTY) == []
    assert pairs_of(some - EMPTY) == [(1, 4)]
    assert pairs_of(EMPTY - some) == []
    assert pairs_of(some | EMPTY) == [(1, 4)]
    assert pairs_of(joined([])) == []


def test_joining_a_list_is_the_union_of_all() -> None:
    assert pairs_of(joined([made([(0, 2)]), made([(5, 7)]), made([(1, 6)])])) == [(0, 7)]


def test_total_is_the_covered_length() -> None:
    assert made([(0, 10), (5, 12), (20, 21)]).total == 13


def test_windows_get_the_length_that_lies_in_them() -> None:
    covered = made([(0, 10), (15, 25)])
    assert covered.within(ints(-5, 5, 15, 20, 30)).tolist() == [5, 5, 5, 5]


def test_length_before_an_instant_ends_at_it() -> None:
    covered = made([(0, 10), (15, 25)])
    assert covered.before(ints(-1, 0, 4, 10, 12, 16, 99)).tolist() == [0, 0, 4, 10, 10, 11, 20]


def test_length_inside_any_interval_even_an_empty_one() -> None:
    covered = made([(0, 10), (15, 25)])
    assert covered.inside(ints(3, 12, 9), ints(20, 14, 9)).tolist() == [12, 0, 0]


def test_an_empty_set_has_no_length_anywhere() -> None:
    assert EMPTY.within(ints(0, 5, 9)).tolist() == [0, 0]
    assert EMPTY.contains(ints(0, 5)).tolist() == [False, False]


def test_a_start_is_inside_and_an_end_is_not() -> None:
    assert made([(2, 5), (7, 9)]).contains(ints(1, 2, 4, 5, 6, 7, 9)).tolist() == [
        False,
        True,
        True,
        False,
        False,
        True,
        False,
    ]


def test_holes_up_to_the_limit_are_bridged() -> None:
    assert pairs_of(made([(0, 1), (4, 5), (9, 10)]).bridged(3)) == [(0, 5), (9, 10)]
    assert pairs_of(EMPTY.bridged(3)) == []


def test_the_sweep_counts_how_many_cover_each_stretch() -> None:
    edges, (a, b) = sweep(Spans(ints(0, 2, 2), ints(4, 6, 2)), Spans(ints(3), ints(9)))
    assert edges.tolist() == [0, 2, 3, 4, 6, 9]
    assert a.tolist() == [1, 2, 2, 1, 0]
    assert b.tolist() == [0, 0, 1, 1, 1]


def test_neighbouring_stretches_are_joined() -> None:
    edges = ints(0, 1, 2, 5, 7)
    assert pairs_of(where(edges, np.array([True, True, False, True]))) == [(0, 2), (5, 7)]
