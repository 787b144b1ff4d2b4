from __future__ import annotations

import pytest
from example import example
from example_whatif import poor, replayed
from msgspec.structs import replace

from analyzer.render import turns
from analyzer.report.document import Interaction, Report, WhatIf


def with_whatif(**changes: object) -> Report:
    """The replayed case with some of its what-if values changed."""
    report = replayed()
    return replace(report, whatif=replace(report.whatif, **changes))


def paired(ms: float) -> Report:
    pair = Interaction(first="no-communication", second="no-straggler", both_ms=20.0, ms=ms)
    return with_whatif(interaction=pair)


def test_the_lead_says_what_goes_and_what_stays() -> None:
    assert turns.lead(replayed()) == (
        "No communication, then no late launches, then no waiting for input gives 1.45x: "
        "31.0 of 100.0 ms go, 69.0 ms stay."
    )


def test_a_single_turn_says_that_nothing_follows() -> None:
    report = with_whatif(sequence=replayed().whatif.sequence[:1])
    assert turns.lead(report) == (
        "No communication gives 1.15x: 13.1 of 100.0 ms go, 86.9 ms stay; "
        "nothing after it gains more than noise."
    )


def test_without_a_turn_there_is_nothing_to_fix() -> None:
    report = with_whatif(sequence=[])
    assert turns.lead(report) == (
        "No what-if gains more than noise, so there is nothing to fix in turn."
    )
    assert turns.line(report) == ""
    assert turns.in_turn(report) is None


def test_gains_are_measured_from_the_replayed_step_not_from_the_recorded_one() -> None:
    edits = [
        replace(edit, step_ms=1.02 * edit.step_ms)
        for edit in replayed().whatif.edits
        if edit.step_ms is not None
    ]
    assert turns.base_ms(with_whatif(sequence=[], edits=edits)) == pytest.approx(102.0)


def test_shares_are_measured_from_the_recorded_step() -> None:
    assert turns.base_ms(poor()) == 100.0


@pytest.mark.parametrize(
    "ms, words",
    [
        (
            5.0,
            "5.0 ms more than the sum of each alone: one hides what the other frees, so both are "
            "needed.",
        ),
        (-5.0, "5.0 ms less than the sum of each alone: in part they free the same time."),
        (0.4, "as much as the sum of each alone: they do not touch each other."),
        (-0.4, "as much as the sum of each alone: they do not touch each other."),
    ],
)
def test_two_fixes_act_on_each_other(ms: float, words: str) -> None:
    assert turns.interaction(paired(ms)) == (
        f"Together, no communication and no late rank take 20.0 ms off the step, {words}"
    )


def test_without_a_pair_nothing_is_said_of_it() -> None:
    assert turns.interaction(example()) == ""


def test_the_quality_of_the_replay_has_milliseconds_and_its_limit() -> None:
    assert turns.quality(replayed()) == (
        "The replay of the unchanged run differs from the recorded step by 0.4 % (0.4 ms): good "
        "(under 5 %). The class that differs most is 1.1 % of the step (1.1 ms) off. "
        "Replayed: steps 3 to 6 on 8 ranks."
    )


def test_a_poor_replay_says_why_shares_are_given() -> None:
    assert turns.quality(poor()) == (
        "The replay of the unchanged run differs from the recorded step by 14.0 % (14.0 ms): poor "
        "(10 % or more). So shares are given instead: the files do not say which work waited for "
        "which."
    )


def test_without_a_replay_its_reason_is_told() -> None:
    shares = WhatIf(basis="share", replay_error=None, edits=[], reason="no device activity")
    report = replace(example(), whatif=shares)
    assert turns.quality(report) == "There is no replay: no device activity."


def test_the_table_of_turns_starts_with_today() -> None:
    table = turns.in_turn(replayed())
    assert table is not None
    assert table.rows[0] == [
        *("", "as it is", "", "100.0", "1.00x"),
        *("0.320", "0.0556", "3.12x", "18.0x"),
    ]
    assert table.rows[2][:5] == ["2", "no late launches", "9.8", "77.1", "1.30x"]


def test_an_edit_that_is_not_measurable_says_why_below_the_table() -> None:
    table = turns.every(replayed())
    assert table is not None
    assert table.rows[-1] == [
        "communication hidden as well as can be",
        *("not measurable", "not measurable", "", "", "", ""),
    ]
    assert table.note == (
        "Communication hidden as well as can be: not measurable: no collective starts before the "
        "backward pass has ended."
    )


def test_noise_is_marked_in_the_table_of_edits() -> None:
    table = turns.every(replayed())
    assert table is not None
    marked = [row[0] for row in table.rows if "within noise" in row[0]]
    assert marked == ["no late rank (within noise)", "no blocking calls (within noise)"]


def test_shares_have_no_columns_of_ceilings_after_the_fix() -> None:
    table = turns.every(poor())
    assert table is not None
    assert [head.name for head in table.heads] == ["what if", "ms/step", "by share"]
    assert table.note.endswith("Not measurable after the fix: f, s, ceiling 1/f, ceiling 1/s.")


def test_an_edit_this_program_does_not_know_keeps_its_id() -> None:
    assert turns.name("no-checkpointing") == "no-checkpointing"
    assert turns.class_of("no-checkpointing") == "unexplained"
