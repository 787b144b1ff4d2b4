from __future__ import annotations

import re

import golden_files
import pytest
from example import CLASSES, bare, example, finding, hostile, predict, unjoined
from example_late import two_late
from example_whatif import hostile_replay, replayed
from msgspec.structs import replace

from analyzer.render import markdown
from analyzer.report.document import Report

CASES = {
    "example": example,
    "late": two_late,
    "replayed": replayed,
    "unjoined": unjoined,
    "bare": bare,
}


def long_tables() -> str:
    """A comment for 1,024 ranks, 1,000 findings and 2,000 predictions."""
    report = example(1024, 10)
    many = [finding(f"f-{n}", f"claim {n} " + "w" * 400, "launch", 1.0, 2.0) for n in range(1000)]
    rows = [predict(n) for n in range(1, 2001)]
    scaling = replace(report.scaling, predict=rows)
    return markdown.comment(replace(report, findings=many, scaling=scaling))


@pytest.mark.parametrize("name", CASES)
def test_the_comment_reads_as_kept(name: str) -> None:
    golden_files.check(f"{name}.comment.md", markdown.comment(CASES[name]()))


def test_the_summary_reads_as_kept_with_sections_open() -> None:
    text = markdown.summary(example())
    assert "<details>" not in text
    golden_files.check("example.summary.md", text)


def test_the_first_line_finds_the_comment_again() -> None:
    text = markdown.comment(example(), comment_id="fsdp run-->2")
    assert text.splitlines()[0] == "<!-- ceiling:report:fsdp-run---2 -->"


def test_a_comment_stays_within_the_size_the_site_accepts() -> None:
    text = long_tables()
    assert len(text) <= 60_000


def test_whole_sections_are_left_out_from_the_bottom() -> None:
    text = long_tables()
    assert text.count("<details>") == text.count("</details>") == 2
    assert "\n5 sections left out, see the HTML report.\n" in text
    assert "<summary>How to attack and confirm</summary>" in text
    assert text.endswith("ceiling 0.1.0, ddp-8\n")


def test_the_report_is_linked_only_when_there_is_a_link() -> None:
    assert "Full report" not in markdown.comment(example())
    text = markdown.comment(example(), report_url="https://ci/run (1)")
    assert "[Full report (HTML)](https://ci/run%20%281%29)" in text


@pytest.mark.parametrize("report", [hostile(), hostile_replay()], ids=["shares", "replay"])
def test_names_bring_no_markup_into_the_comment(report: Report) -> None:
    text = markdown.comment(report)
    outside = re.sub(r"^```text\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    tags = set(re.findall(r"<[^>]*>", outside))
    assert tags == {
        "<!-- ceiling:report:default -->",
        *("<details>", "</details>", "<summary>", "</summary>"),
    }
    assert not re.search(r"(?<!\\)`", outside)


def test_the_numbers_after_the_first_fix_are_those_of_its_replay() -> None:
    text = markdown.comment(replayed())
    for row in (
        "|  | now | replayed, the first fixed |",
        "| step | 100.0 ms | 86.9 ms |",
        "| does not scale, f (of the step) | 0.320 | 0.217 |",
        "| ceiling 1/f (times faster than the step) | 3.12x | 4.60x |",
        "| ceiling 1/s (times faster than one GPU) | 18.0x | 29.8x |",
    ):
        assert row in text.splitlines()


def test_the_step_after_a_fix_is_the_recorded_one_over_the_gain() -> None:
    report = replayed()
    first = report.findings[0]
    half = replace(first, gain=replace(first.gain, speedup=2.0))
    text = markdown.comment(replace(report, findings=[half, *report.findings[1:]]))
    assert "| step | 100.0 ms | 50.0 ms |" in text


def test_names_keep_tables_whole() -> None:
    rows = [line for line in markdown.comment(hostile()).splitlines() if line.startswith("| 1 | ")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows][:1] == [8]


def test_classes_of_a_rank_add_up_to_its_step() -> None:
    lines = [
        line for line in markdown.comment(example()).splitlines() if re.match(r"\| rank \d", line)
    ]
    assert len(lines) == 8
    for line in lines:
        *parts, step = [float(cell) for cell in line.strip("| ").split(" | ")[1:]]
        assert sum(parts) == pytest.approx(step, abs=0.05 * (len(CLASSES) + 1))
