from __future__ import annotations

import unicodedata

import golden_files
import pytest
from example import bare, example, hostile, unjoined
from example_late import two_late
from example_whatif import hostile_replay, replayed
from msgspec.structs import replace

from analyzer.render import console
from analyzer.report.document import Report

CASES = {
    "example": example,
    "late": two_late,
    "replayed": replayed,
    "unjoined": unjoined,
    "bare": bare,
}


@pytest.mark.parametrize("name", CASES)
def test_the_summary_reads_as_kept(name: str) -> None:
    golden_files.check(f"{name}.txt", console.render(CASES[name](), color=False))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("report", [hostile(), hostile_replay()], ids=["shares", "replay"])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int) -> None:
    lines = console.render(report, color=False, width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_without_colour_there_is_no_control_character() -> None:
    text = console.render(hostile(), color=False)
    assert not [char for char in text if char != "\n" and unicodedata.category(char)[0] == "C"]


def test_a_name_cannot_send_control_sequences_to_a_colour_terminal() -> None:
    assert "[31mgnp" in console.render(hostile(), color=True)
    assert "\x1b[31mgnp" not in console.render(hostile(), color=True)


def test_colour_adds_nothing_but_colour() -> None:
    colored = console.render(example(), color=True)
    plain = console.render(example(), color=False)
    assert "\x1b[34mCCC" in colored
    assert "CCC" in plain


def test_a_terminal_without_unicode_gets_ascii() -> None:
    report = replace(example(), verdict=replace(example().verdict, text="naïve"))
    assert console.render(report, color=False, ascii_only=True).isascii()


def test_the_legend_keeps_its_entries_whole() -> None:
    lines = console.render(example(), color=False).splitlines()
    legend = [line.split("   ") for line in lines if line.startswith(" " * 9)]
    assert [entry for line in legend for entry in line if entry] == [
        "C compute 60.0",
        "O optimizer 6.0",
        "X exposed transfer 14.0",
        "w wait for ranks 2.0",
        "I data loading 8.0",
        "L late launches 10.0 ms",
    ]


def test_the_turns_stand_under_the_table_of_gains() -> None:
    text = " ".join(console.render(replayed(), color=False).split())
    assert "share gain ceiling" in text
    assert (
        "3.62x in turn: no communication, then no late launches, then no waiting for input: 1.45x "
        "(100.0 to 69.0 ms)"
    ) in text


def test_shares_have_no_turns() -> None:
    assert "in turn" not in console.render(example(), color=False)


def test_a_share_among_gains_says_so_in_its_cell() -> None:
    report = replayed()
    share = replace(report.findings[4], gain=example().findings[0].gain, share=0.14)
    text = console.render(replace(report, findings=[report.findings[0], share]), color=False)
    assert "1.16x by share" in text


def test_at_most_three_late_ranks_are_told() -> None:
    report = two_late()
    more = [replace(report.ranks.late[2], rank=rank) for rank in (3, 4)]
    ranks = replace(report.ranks, late=[*report.ranks.late, *more])
    text = console.render(replace(report, ranks=ranks), color=False)
    told = [line.split()[1] for line in text.splitlines() if line.startswith("     rank ")]
    assert told == ["0", "6", "2"]


def test_the_verdict_is_one_line() -> None:
    report = replace(example(), verdict=replace(example().verdict, text="one\ntwo\x1b[2J"))
    assert console.verdict_line(report) == "one two[2J"


def test_both_ceilings_stand_in_one_sentence() -> None:
    text = console.render(example(), color=False)
    assert "Ceiling 3.12x today, 18.0x over one GPU" in text
