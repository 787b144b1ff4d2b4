"""Work that moved: more often apart from longer each time, and what is on one side only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sides import collective, kernel, run

from analyzer.report import moved
from analyzer.report.comparison import Moved
from analyzer.report.document import Kernel, Report


def kernels(before: list[Kernel], after: list[Kernel]) -> list[Moved]:
    old, new = replace(run(), kernels=before), replace(run(), kernels=after)
    return moved.moved(moved.kernels([old]), moved.kernels([new]))


def test_a_change_splits_into_count_and_duration() -> None:
    (row,) = kernels([kernel("k", 1000.0, 10_000.0)], [kernel("k", 600.0, 7_200.0)])
    assert (row.delta_ms, row.by_count_ms, row.by_duration_ms) == (-2800.0, -4400.0, 1600.0)


@given(*[st.floats(0.1, 1e6)] * 4)
def test_both_parts_add_up_to_the_change(n0: float, ms0: float, n1: float, ms1: float) -> None:
    (row,) = kernels([kernel("k", n0, ms0)], [kernel("k", n1, ms1)])
    assert row.by_count_ms is not None
    assert row.by_duration_ms is not None
    total = row.by_count_ms + row.by_duration_ms
    size = max(abs(row.by_count_ms), abs(row.by_duration_ms), ms0, ms1)
    assert total == pytest.approx(row.delta_ms, abs=1e-9 * size)


def test_names_of_one_side_are_added_or_removed_and_not_split() -> None:
    rows = kernels([kernel("old", 1.0, 3.0)], [kernel("new", 1.0, 2.0)])
    assert [(row.name, row.status, row.delta_ms) for row in rows] == [
        ("old", "removed", -3.0),
        ("new", "added", 2.0),
    ]
    assert all(row.by_count_ms is None for row in rows)


def test_a_name_may_be_below_a_list_that_was_cut() -> None:
    rest = kernel("(7 more names)", 70.0, 1.0)
    rows = kernels([kernel("old", 1.0, 3.0), rest], [kernel("new", 1.0, 2.0)])
    assert {row.name: row.status for row in rows} == {"old": "removed", "new": "unlisted"}


def test_the_largest_change_comes_first() -> None:
    before = [kernel("a", 1.0, 10.0), kernel("b", 1.0, 10.0)]
    after = [kernel("a", 1.0, 11.0), kernel("b", 1.0, 4.0)]
    assert [row.name for row in kernels(before, after)] == ["b", "a"]


def test_the_runs_of_a_side_are_averaged() -> None:
    sides = [replace(run(), kernels=[kernel("k", 2.0, ms)]) for ms in (10.0, 14.0)]
    table = moved.kernels(sides)
    assert table.rows["k"] == ("matrix", 2.0, 12.0)


def test_collectives_go_by_kind_and_size_of_group() -> None:
    def with_count(count: float) -> Report:
        return replace(run(), collectives=[collective(count), collective(1.0)])

    (row,) = moved.moved(moved.collectives([with_count(6.0)]), moved.collectives([with_count(8.0)]))
    assert (row.name, row.kind) == ("all-reduce of 8 ranks", "collective")
    assert (row.before_count, row.after_count) == (7.0, 9.0)


def test_ops_are_compared_too() -> None:
    (row,) = moved.moved(moved.ops([run()]), moved.ops([run()]))
    assert (row.name, row.kind, row.delta_ms) == ("aten::mm", "op", 0.0)
