from __future__ import annotations

import pytest
from example import example
from example_whatif import path, poor, replayed
from msgspec.structs import replace

from analyzer.render import path_words
from analyzer.report.document import CriticalPath, PathClass, PathRank, Report


def with_path(new: CriticalPath) -> Report:
    """The replayed case with another path."""
    report = replayed()
    return replace(report, whatif=replace(report.whatif, path=new))


def test_the_lead_names_the_largest_class_and_the_ranks() -> None:
    assert path_words.lead(replayed()) == (
        "58.0 of the 100.0 ms of the path through step 4 are compute (58.0 %). It runs for 61.4 ms "
        "on rank 3 and 38.6 ms on 3 other ranks."
    )


@pytest.mark.parametrize(
    "ms, words",
    [
        ([100.0], "All of it is on rank 0."),
        ([60.0, 40.0], "It runs for 60.0 ms on rank 0 and 40.0 ms on rank 1."),
        ([60.0, 25.0, 15.0], "It runs for 60.0 ms on rank 0 and 40.0 ms on 2 other ranks."),
        (
            [25.0, 25.0, 25.0, 25.0],
            "It runs over 4 ranks, on none much longer than on the others.",
        ),
        ([], "On which ranks it runs is not known."),
    ],
)
def test_the_ranks_of_the_path(ms: list[float], words: str) -> None:
    ranks = [PathRank(rank=rank, ms=value) for rank, value in enumerate(ms)]
    assert path_words.lead(with_path(replace(path(), ranks=ranks))).endswith(f"(58.0 %). {words}")


def test_slack_is_told_most_first() -> None:
    assert path_words.slack(replayed()) == (
        "Off the path, so that saving it alone shortens nothing: 22.4 ms of exposed transfer, "
        "21.0 ms of late launches and 3.9 ms of compute."
    )


def test_a_path_without_slack_says_so() -> None:
    tight = replace(path(), classes=[PathClass(class_="compute", ms=100.0, slack_ms=0.0)])
    assert path_words.slack(with_path(tight)) == (
        "Nothing is off the path: any time saved shortens the step."
    )


def test_without_a_path_the_reason_is_told() -> None:
    assert path_words.lead(poor()) == (
        "No critical path: the files do not say which work waited for which."
    )
    assert path_words.lead(example()) == "No critical path was found."
    tables = (path_words.classes, path_words.ranks, path_words.places)
    assert [make(poor()) for make in tables] == [None, None, None]
    assert path_words.slack(poor()) == ""


def test_the_table_by_class_adds_up_to_the_path() -> None:
    table = path_words.classes(replayed())
    assert table is not None
    assert sum(float(row[1]) for row in table.rows) == pytest.approx(100.0)
    assert table.rows[2] == ["exposed transfer", "13.6", "13.6 %", "22.4"]


def test_a_place_without_an_op_says_so() -> None:
    table = path_words.places(replayed())
    assert table is not None
    assert table.rows[3] == ["wait for the loader", "not recorded", "data loading", "8.0", "1"]


def test_ranks_of_a_wide_path_are_cut_and_counted() -> None:
    many = [PathRank(rank=rank, ms=1.0) for rank in range(100)]
    table = path_words.ranks(with_path(replace(path(), ranks=many)))
    assert table is not None
    assert len(table.rows) == 8
    assert table.note == "92 more ranks in report.json."
