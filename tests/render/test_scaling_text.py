"""The report on several world sizes as people read it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import golden_files
import pytest
from example_series import series
from msgspec.structs import replace

from analyzer.errors import UnusableInput
from analyzer.render import plan_words, scaling_page, scaling_text, several, small_multiples
from analyzer.render.curve import series_curve
from analyzer.report import scaling
from analyzer.report.document import Knee, Verdict


def test_the_comment_reads_as_kept() -> None:
    golden_files.check("series.comment.md", scaling_text.markdown(series()))


def test_the_terminal_reads_as_kept() -> None:
    text = scaling_text.terminal(series(), color=False, ascii_only=False)
    assert max(map(len, text.splitlines())) <= 80
    golden_files.check("series.txt", text)


def test_the_document_survives_the_way_to_json_and_back() -> None:
    assert scaling.loads(scaling.dumps(series())) == series()


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"{}", "not a scaling report"), (b"\xff", "not a scaling report")],
)
def test_another_document_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(UnusableInput, match=words):
        scaling.loads(text)


def test_a_newer_document_is_refused() -> None:
    newer = scaling.dumps(replace(series(), schema_version=2))
    with pytest.raises(UnusableInput, match="schema_version is 2, this program reads 1"):
        scaling.loads(newer)


def test_every_part_of_the_page_is_there_and_names_are_escaped() -> None:
    hostile = replace(series(), label="<script>alert(1)</script>")
    page = scaling_page.render(hostile)
    assert "<script>alert" not in page
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert headings == [
        "Can you trust this?",
        "Speedup against the number of GPUs",
        "Which class stands in the way at the next size",
        "Efficiency and serial fraction",
        "Predicted",
        "Plan",
        "How good the fit is",
    ]


def test_without_a_law_or_a_plan_the_page_says_why() -> None:
    bare = replace(series(), laws=[], plan=None, knee=None, reason="2 sizes: three are needed",
                   order=[])  # fmt: skip
    page = scaling_page.render(bare)
    assert "No law is fitted: 2 sizes: three are needed." in page
    assert 'id="plan"' not in page


def test_the_curve_has_a_dot_for_each_size_and_is_dashed_beyond_four_times() -> None:
    drawn = series_curve("curve", series(), name="class by class", desc="d")
    assert drawn is not None
    root = ElementTree.fromstring(drawn)
    assert len(root.findall("circle")) == 3
    assert root.find("polygon") is not None


def test_a_curve_needs_a_law() -> None:
    assert series_curve("curve", replace(series(), predict=[]), name="", desc="") is None


def test_every_class_has_its_small_picture() -> None:
    titles = [title for title, _, _ in small_multiples.panels(series())]
    assert titles == ["Exposed transfer", "Compute", "Late launches"]


def test_a_single_fraction_is_not_drawn() -> None:
    two = replace(series(), points=series().points[:2])
    assert small_multiples.fractions(two) is None


def test_the_largest_class_that_does_not_fall_is_to_be_attacked() -> None:
    assert several.attack(series()) == (
        "The largest class that grows is exposed transfer: 15.5 ms of 50.5 ms on 32 GPUs."
    )
    falling = [item for item in series().classes if item.trend == "falls"]
    assert several.attack(replace(series(), classes=falling)) == "Every class falls with more GPUs."


def test_a_curve_that_does_not_bend_says_so() -> None:
    knee = Knee(nine_tenths=None, half=None, fastest=None, pays=None, up_to=1024)
    assert several.ceiling(replace(series(), knee=knee)).endswith(
        "Efficiency stays above 50 % up to 1,024 GPUs."
    )


def test_the_plan_tells_paths_before_roads() -> None:
    plan = series().plan
    assert plan is not None
    lines = plan_words.lines(plan)
    assert lines[0].startswith("21.0 d (1.43x today's speed) is reached on 64 GPUs after fix 1:")
    assert "Amdahl" in lines[1]
    assert "Gustafson" in lines[2]
    assert plan_words.basis(plan) == "Every factor is fitted or replayed, none is a rule of thumb."


def test_a_verdict_line_is_one_line() -> None:
    verdict = Verdict(text="a\nb", finding=None, confidence="low")
    assert scaling_text.verdict_line(replace(series(), verdict=verdict)) == "a b"
