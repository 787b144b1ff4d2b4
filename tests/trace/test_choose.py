"""Only some ranks: no more files are read than have to be, and a rank that is not there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.trace import choose
from analyzer.trace.assign import Assignment
from analyzer.trace.discover import Found


def found(*names: str, digests: tuple[str, ...] = ()) -> Found:
    return Found(tuple(map(Path, names)), tuple(map(Path, digests)), ())


def test_files_whose_names_state_another_rank_are_not_read() -> None:
    four = found("rank0.json", "rank1.json", digests=("rank2.digest", "rank3.digest"))
    assert choose.named(four, [1, 2]) == found("rank1.json", digests=("rank2.digest",))


def test_all_are_read_where_one_name_states_no_rank() -> None:
    some = found("rank0.json", "rank1.json", "trace.json")
    assert choose.named(some, [1]) == some


def test_all_are_read_where_no_name_states_a_rank_that_was_asked_for() -> None:
    some = found("rank0.json", "rank1.json")
    assert choose.named(some, [1, 5]) == some


def test_without_ranks_all_are_read() -> None:
    some = found("rank0.json", "rank1.json")
    assert choose.named(some, []) == some


def assignments(*ranks: int) -> list[Assignment]:
    return [Assignment(Path(f"{r}.json"), r, 0, "name", "") for r in ranks]


def test_of_the_assigned_those_asked_for_stay_in_order() -> None:
    assert choose.assigned(assignments(0, 1, 2, 3), [3, 1]) == assignments(1, 3)


def test_a_rank_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError) as refused:
        choose.assigned(assignments(0, 1, 2, 5), [1, 7, 8])
    assert refused.value.message == "no trace is of rank 7-8; there are 0-2,5"


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([15, 8, 9, 0, 3, 10], "0,3,8-10,15")],
)
def test_ranks_are_written_as_they_are_asked_for(ranks: list[int], text: str) -> None:
    assert choose.as_text(ranks) == text
