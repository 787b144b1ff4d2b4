from __future__ import annotations

from xml.etree import ElementTree

from example_whatif import edit

from analyzer.render import falls
from analyzer.render.format import StepScale


def drawn() -> ElementTree.Element:
    """100 ms, less 30, less 20."""
    rows = [
        falls.Fall("no communication", "comm_transfer", 100.0, 70.0),
        falls.Fall("no late launches", "launch", 70.0, 50.0),
    ]
    scale = StepScale.of(100.0)
    svg = falls.waterfall("x", rows, title="T", desc="D", scale=scale)
    return ElementTree.fromstring(str(svg))


def test_each_fall_starts_where_the_one_before_ended() -> None:
    boxes = [(float(r.attrib["x"]), float(r.attrib["width"])) for r in drawn().iter("rect")]
    today, first, second, left = boxes
    assert today[1] == first[0] - today[0] + first[1]
    assert first[0] == second[0] + second[1]
    assert second[0] == left[0] + left[1]
    assert (first[1], second[1], left[1]) == (0.3 * today[1], 0.2 * today[1], 0.5 * today[1])


def test_the_waterfall_reads_from_today_to_what_is_left() -> None:
    assert [text.text for text in drawn().iter("text")] == [
        *("step today", "100.0 ms", "1. no communication", "\u221230.0 ms"),
        *("2. no late launches", "\u221220.0 ms", "what is left", "50.0 ms"),
    ]


def test_a_curve_starts_at_no_gain_and_marks_every_point() -> None:
    item = edit("no-communication", 80.0, 10.0, (2.0, 5.0, 10.0))
    svg = falls.part_curve("x", item, falls.levels([item]), title="T", desc="D")
    root = ElementTree.fromstring(str(svg))
    spots = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter("circle")]
    assert len(spots) == 5
    left, right = spots[0][0], spots[-1][0]
    assert [round((x - left) / (right - left), 2) for x, _ in spots] == [0.0, 0.1, 0.25, 0.5, 1.0]
    assert [y for _, y in spots] == sorted((y for _, y in spots), reverse=True)
