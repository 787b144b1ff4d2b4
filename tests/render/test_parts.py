from __future__ import annotations

import pytest
from example import example
from example_whatif import edit, gain, replayed
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from analyzer.render import falls, parts


@pytest.mark.parametrize(
    "saved, words",
    [
        ((5.0, 9.9, 10.0), "A quarter of it already gives the full gain (9.9 of 10.0 ms)."),
        ((9.9, 9.9, 10.0), "A tenth of it already gives the full gain (9.9 of 10.0 ms)."),
        ((2.0, 4.0, 9.2), "Half of it already gives nearly the full gain (9.2 of 10.0 ms)."),
        ((1.0, 2.5, 5.0), "Half of it gives half the gain (5.0 of 10.0 ms)."),
        ((2.0, 4.0, 7.0), "Half of it gives 70.0 % of the gain (7.0 of 10.0 ms)."),
        ((0.1, 0.5, 3.0), "Half of it gives only 30.0 % of the gain (3.0 of 10.0 ms)."),
        (
            (0.0, 0.1, 0.2),
            "Half of it gives next to nothing (0.2 of 10.0 ms): only all of it pays.",
        ),
    ],
)
def test_a_curve_reads_as_one_sentence(saved: tuple[float, ...], words: str) -> None:
    assert parts.enough(replayed(), gain(edit("no-communication", 90.0, 20.0, saved))) == words


def test_a_curve_of_one_point_promises_nothing_of_parts() -> None:
    whole = replace(gain(edit("no-communication", 90.0, 20.0)), curve=[(1.0, 100 / 90)])
    assert parts.enough(replayed(), whole) == "All of it gives 10.0 ms; parts were not replayed."


def test_curves_are_those_of_the_first_three_findings_that_gain() -> None:
    drawn = [(place, item.whatif) for place, item in parts.picked(replayed())]
    assert drawn == [(1, "no-communication"), (2, "no-launch-overhead"), (3, "no-data-loading")]


def test_a_what_if_of_two_findings_is_drawn_once() -> None:
    report = replayed()
    again = replace(report.findings[1], whatif="no-communication")
    report = replace(report, findings=[report.findings[0], again, report.findings[2]])
    drawn = [(place, item.whatif) for place, item in parts.picked(report)]
    assert drawn == [(1, "no-communication"), (3, "no-data-loading")]


def test_noise_and_shares_have_no_curve() -> None:
    report = replayed()
    assert parts.picked(replace(report, findings=report.findings[4:])) == []
    assert parts.picked(example()) == []
    assert parts.table(example()) is None


def test_the_table_holds_the_points_of_the_curves() -> None:
    table = parts.table(replayed())
    assert table is not None
    assert [head.name for head in table.heads[2:]] == ["10.0 %", "25.0 %", "50.0 %", "100.0 %"]
    assert table.rows[1] == ["2", replayed().findings[1].title, "1.04x", "1.09x", "1.09x", "1.09x"]


@given(st.floats(1.001, 50.0), st.floats(0.2, 1.0))
def test_the_axis_holds_every_value_in_few_round_steps(high: float, low: float) -> None:
    drawn = replace(gain(edit("x", 90.0, 20.0)), lo=low, hi=high, curve=[(1.0, high)])
    levels = falls.levels([drawn])
    assert levels[0] <= low + 1e-6
    assert levels[-1] >= high - 1e-6
    assert 2 <= len(levels) <= 7
