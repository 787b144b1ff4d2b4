from __future__ import annotations

from xml.etree import ElementTree

from example import example, hostile
from example_whatif import hostile_replay, replayed

from analyzer.render import svg
from analyzer.render.charts import charts, picked_ranks, text_bar
from analyzer.render.curve import laws_curve
from analyzer.render.format import StepScale

SHAPES = {"rect", "path", "polyline", "circle", "text"}


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def bars(ms: dict[str, float], hidden: float = 0.0) -> ElementTree.Element:
    return parsed(
        svg.stacked_bars(
            "x",
            [svg.Bar("all ranks", ms, hidden)],
            title="T",
            desc="D",
            scale=StepScale.of(100.0),
        )
    )


def test_every_shape_has_its_colour_without_a_style_sheet() -> None:
    drawn = charts(example(40)) | {
        name: chart for name, chart in charts(replayed()).items() if name in ("turns", "path")
    }
    for name, chart in drawn.items():
        assert chart is not None, name
        above = {child: parent for parent in parsed(chart).iter() for child in parent}
        for shape, parent in above.items():
            if shape.tag in SHAPES:
                painted = {*shape.attrib, *parent.attrib}
                assert painted & {"fill", "stroke"}, ElementTree.tostring(shape)
                assert "style" not in shape.attrib


def test_charts_are_named_and_described_for_screen_readers() -> None:
    for chart in (*charts(hostile()).values(), *charts(hostile_replay()).values()):
        if chart is not None:
            root = parsed(chart)
            named = root.attrib["aria-labelledby"].split()
            assert root.attrib["role"] == "img"
            assert [root[0].tag, root[1].tag] == ["title", "desc"]
            assert named == [root[0].attrib["id"], root[1].attrib["id"]]
            assert root[1].text


def test_segments_are_as_long_as_their_time() -> None:
    root = bars({"compute": 75.0, "launch": 25.0})
    drawn = [rect for rect in root.iter("rect") if float(rect.attrib["height"]) == 30.0]
    assert [(rect.attrib["class"], float(rect.attrib["width"])) for rect in drawn] == [
        ("c-compute", 600.0),
        ("c-launch", 200.0),
    ]


def test_classes_without_time_are_not_drawn() -> None:
    words = [text.text for text in bars({"compute": 1.0, "copy": 0.0}).iter("text")]
    assert words == ["compute 1.0 ms", "all ranks", "1.0 ms"]


def test_a_hatched_class_carries_its_pattern() -> None:
    root = bars({"comm_wait": 1.0})
    patterns = {pattern.attrib["id"] for pattern in root.iter("pattern")}
    assert patterns == {"x-dense"}
    assert any(rect.attrib["fill"] == "url(#x-dense)" for rect in root.iter("rect"))


def test_a_wide_job_shows_slowest_median_and_fastest() -> None:
    labels = [label for label, _ in picked_ranks(example(64))]
    assert labels[:8] == [f"rank {rank}" for rank in (3, 11, 19, 27, 35, 43, 51, 59)]
    assert len(labels) == 13
    assert labels[8].startswith("median")


def test_a_bar_of_text_is_always_full() -> None:
    thirds = {"compute": 1.0, "copy": 1.0, "launch": 1.0}
    letters = "".join(part for _, part in text_bar(thirds, 10))
    assert len(letters) == 10
    assert set(letters) == {"C", "M", "L"}


def test_the_laws_are_drawn_as_a_file_of_their_own() -> None:
    rows = [(n, 1 / (0.1 + 0.9 / n), 0.1 + 0.9 * n) for n in (1, 2, 4, 8)]
    root = parsed(laws_curve(rows, 10.0))
    space = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in root.iter(f"{space}text")]
    assert root.tag == f"{space}svg"
    assert {"Amdahl", "Gustafson", "ideal", "GPUs"} <= set(words)


def test_predictions_beyond_four_times_the_run_are_dashed() -> None:
    curve = charts(example())["curve"]
    assert curve is not None
    lines = [
        line for line in parsed(curve).iter("polyline") if line.attrib["stroke-width"] == "2.5"
    ]
    assert ["stroke-dasharray" in line.attrib for line in lines] == [False, True]
    assert [len(line.attrib["points"].split()) for line in lines] == [6, 6]
