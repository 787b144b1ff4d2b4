from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.render import strips


def heat(values: list[float], class_id: str = "launch") -> ElementTree.Element:
    rows = [(class_id, values, "words")]
    ranks = range(len(values))
    return ElementTree.fromstring(
        strips.heat_rows("h", rows, ranks=ranks, floor=1.0, title="T", desc="D")
    )


def timeline(*rows: tuple[str, list[tuple[str, float, float]]]) -> ElementTree.Element:
    return ElementTree.fromstring(strips.timeline("t", rows, title="T", desc="D"))


def shades(root: ElementTree.Element) -> list[str]:
    return [cell.attrib["fill-opacity"] for cell in root.iter("rect")]


def test_a_cell_is_darker_for_more_time() -> None:
    assert shades(heat([10.0, 15.0, 20.0])) == ["0.12", "0.56", "1.00"]


def test_small_differences_stay_pale() -> None:
    assert shades(heat([10.0, 10.1])) == ["0.12", "0.21"]


def test_a_heat_row_has_at_most_240_cells_and_shows_the_largest_of_each() -> None:
    values = [0.0] * 1024
    values[700] = 9.0
    cells = shades(heat(values))
    assert len(cells) <= 240
    assert [at for at, shade in enumerate(cells) if shade == "1.00"] == [700 // 5]


def test_cells_of_a_wide_job_leave_no_seam() -> None:
    cells = [(int(c.attrib["x"]), int(c.attrib["width"])) for c in heat([1.0] * 999).iter("rect")]
    assert all(x + wide == after for (x, wide), (after, _) in pairwise(cells))


def test_at_most_16_ranks_are_written_below_the_heat_rows() -> None:
    words = [text.text for text in heat([1.0] * 1024).iter("text")][2:]
    assert words == ["rank", *(str(rank) for rank in range(0, 1024, 64))]


def test_a_class_drawn_as_outline_is_shaded_like_its_group() -> None:
    group = heat([1.0, 2.0], "unexplained").find("g")
    assert group is not None
    assert group.attrib["class"] == "c-launch"


def test_marks_of_all_ranks_share_one_axis_from_zero() -> None:
    root = timeline(
        ("rank 0", [("compute", 0.0, 50.0), ("launch", 50.0, 100.0)]),
        ("rank 1", [("launch", 25.0, 50.0)]),
    )
    bars = [rect.attrib for rect in root.iter("rect") if rect.attrib["height"] == "14"]
    drawn = [(bar["class"], float(bar["x"]), float(bar["width"])) for bar in bars]
    assert drawn == [
        ("c-compute", 72.0, 452.0),
        ("c-launch", 524.0, 452.0),
        ("c-launch", 298.0, 226.0),
    ]


def test_the_legend_names_the_classes_that_are_drawn() -> None:
    root = timeline(("rank 0", [("comm_wait", 0.0, 3.0), ("compute", 3.0, 4.0)]))
    words = [text.text for text in root.iter("text")]
    assert words[:2] == ["compute", "wait for ranks"]
    assert [pattern.attrib["id"] for pattern in root.iter("pattern")] == ["t-dense"]


@pytest.mark.parametrize(
    "longest, labels",
    [
        (625.0, ["0 ms", "100", "200", "300", "400", "500", "600"]),
        (0.4, ["0.00 ms", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30", "0.35", "0.40"]),
        (14_523.0, [f"{at:,}" + " ms" * (at == 0) for at in range(0, 14_001, 2_000)]),
    ],
)
def test_the_axis_has_round_milliseconds(longest: float, labels: list[str]) -> None:
    root = timeline(("rank 0", [("compute", 0.0, longest)]))
    found = [text.text for text in root.iter("text") if text.attrib.get("text-anchor") == "middle"]
    assert found == labels


@given(st.floats(min_value=1e-3, max_value=1e7))
def test_the_axis_has_two_to_nine_labels(longest: float) -> None:
    root = timeline(("rank 0", [("compute", 0.0, longest)]))
    found = [text for text in root.iter("text") if text.attrib.get("text-anchor") == "middle"]
    assert 2 <= len(found) <= 9
