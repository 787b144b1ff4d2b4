"""A comparison on the terminal, in a comment and on a page: the same numbers, nothing broken."""

from __future__ import annotations

import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import golden_files
import pytest
from example import NASTY
from example_compare import CASES, fixed, hostile_compare, large, several

from analyzer.render import (
    compare_charts,
    compare_console,
    compare_html,
    compare_markdown,
    compare_tables,
    painting,
    svg,
)
from analyzer.render import compare_words as say
from analyzer.render.painting import Mark
from analyzer.report import comparison as document

ALL = {**CASES, "hostile": hostile_compare}


class Page(HTMLParser):
    """Every element must be closed; texts, attributes and the embedded document are kept."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.data += data
        elif self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.parametrize("name", CASES)
def test_the_terminal_reads_as_kept(name: str) -> None:
    golden_files.check(f"compare-{name}.txt", compare_console.render(CASES[name](), color=False))


@pytest.mark.parametrize("name", CASES)
def test_the_comment_reads_as_kept(name: str) -> None:
    golden_files.check(f"compare-{name}.md", compare_markdown.comment(CASES[name]()))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    lines = compare_console.render(ALL[name](), color=False, width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_a_terminal_without_utf_8_is_given_ascii() -> None:
    text = compare_console.render(several(), color=False, ascii_only=True)
    assert text.isascii()
    assert "Slower: 100.0 -> 110.0 ms" in text
    assert "?" not in text.splitlines()[2]


def test_hostile_names_bring_no_control_characters() -> None:
    text = compare_console.render(hostile_compare(), color=False)
    assert not [char for char in text if char != "\n" and unicodedata.category(char)[0] == "C"]


def test_the_first_line_finds_the_comment_again() -> None:
    text = compare_markdown.comment(fixed(), comment_id="fsdp run-->2")
    assert text.splitlines()[0] == "<!-- ceiling:compare:fsdp-run---2 -->".replace(
        "ceiling", "torch-ceiling"
    )


@pytest.mark.parametrize("make", [large, hostile_compare])
def test_a_comment_stays_within_the_size_the_site_accepts(make: type) -> None:
    text = compare_markdown.comment(make())
    assert len(text) <= 60_000
    assert text.count("<details>") == text.count("</details>")


def test_whole_sections_are_left_out_from_the_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare_markdown.comment(fixed())
    monkeypatch.setattr(compare_markdown, "COMMENT_LIMIT", len(whole) - 1)
    cut = compare_markdown.comment(fixed())
    assert "1 section left out, see the HTML report." in cut
    assert cut.count("<details>") == whole.count("<details>") - 1


def test_the_summary_has_every_section_open() -> None:
    text = compare_markdown.summary(fixed())
    assert "<details>" not in text
    assert "### Kernels, collectives and ops that moved" in text


def test_names_do_not_format_mention_or_link() -> None:
    text = compare_markdown.comment(hostile_compare())
    assert "<img" not in text
    assert "</script>" not in text
    assert "@user" not in text
    assert "#12" not in text


def test_a_picture_takes_the_place_of_the_letters() -> None:
    paint = painting.of_comparison(fixed()).paint["markdown"]
    with_picture = paint(Mark(picture="compare.svg", report_url="https://ci/x y"))
    assert "![Step time by class, before and after](./compare.svg)" in with_picture
    assert "```text" not in with_picture
    assert "[Full comparison (HTML)](https://ci/x%20y)" in with_picture
    assert "```text" in paint(Mark())


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_whole_and_loads_nothing(name: str) -> None:
    text = compare_html.render(ALL[name]())
    page = Page(text)
    assert page.open == []
    assert not [attrs for _, attrs in page.tags if {"src", "href"} & set(attrs) - {"href"}]
    assert {attrs["href"] for _, attrs in page.tags if "href" in attrs} == {"#main"}
    assert "http" not in re.sub(r"<script.*</script>", "", text, flags=re.DOTALL)
    assert [tag for tag, _ in page.tags].count("script") == 1


@pytest.mark.parametrize("name", ALL)
def test_the_document_is_embedded_as_it_was(name: str) -> None:
    found = ALL[name]()
    embedded = json.loads(Page(compare_html.render(found)).data)
    assert document.loads(json.dumps(embedded).encode()) == found


@pytest.mark.parametrize("name", ALL)
def test_twice_the_same_gives_the_same_page(name: str) -> None:
    assert compare_html.render(ALL[name]()) == compare_html.render(ALL[name]())


def test_sizes_stay_small() -> None:
    assert len(compare_html.render(fixed()).encode()) < 100_000
    assert len(compare_html.render(large()).encode()) < 2_000_000


def test_every_number_of_the_terminal_is_on_the_page_and_in_the_comment() -> None:
    found = several()
    terminal = compare_console.render(found, color=False, width=200)
    page, comment = Page(compare_html.render(found)).text, compare_markdown.comment(found)
    for number in re.findall(r"\d+\.\d+", terminal.split("\n\n", 1)[1]):
        assert number in page
        assert number in comment


@pytest.mark.parametrize("name", ["fixed", "several", "unclear", "forced"])
def test_the_waterfall_sums_to_the_last_digit_shown(name: str) -> None:
    grid = compare_tables.waterfall(CASES[name]())
    assert grid is not None
    *rows, total = [[cell.replace("−", "-").replace(",", "") for cell in row] for row in grid.rows]
    for column in (1, 2, 3):
        summed = sum(round(10 * float(row[column])) for row in rows)
        assert summed == round(10 * float(total[column]))
    for row in (*rows, total):
        change = round(10 * float(row[3]))
        assert round(10 * float(row[2])) - round(10 * float(row[1])) == change


@pytest.mark.parametrize("name", ALL)
def test_the_pictures_are_drawings_with_a_title_and_a_sentence(name: str) -> None:
    found = ALL[name]()
    for make in (compare_charts.bars, compare_charts.waterfall, compare_charts.curves):
        drawn = make(found)
        if drawn is None:
            continue
        root = ET.fromstring(svg.standalone(drawn))
        tags = [element.tag.rpartition("}")[2] for element in root]
        assert tags[:2] == ["style", "title"]
        assert "desc" in tags
        for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert float(shape.get("width", "-1")) >= 0


def test_nothing_is_drawn_of_sides_that_were_not_compared() -> None:
    assert compare_charts.waterfall(CASES["blocked"]()) is None


def test_a_change_that_may_be_none_is_marked() -> None:
    lines = {line.bar.class_: say.unsure(line.bar) for line in say.lines(several())}
    assert lines == {"compute": False, "comm_transfer": True, "data_loading": True, "launch": True}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fixed", "No action needed."),
        ("several", "Action needed: look at what became slower."),
        ("unclear", "No action needed."),
        ("blocked", "Action needed: record the sides alike, or compare them all the same with "
                    "--force."),
    ],
)  # fmt: skip
def test_the_reader_is_told_whether_to_act(name: str, words: str) -> None:
    assert say.action(CASES[name]()) == words


def test_a_forced_comparison_carries_a_banner() -> None:
    for text in (
        compare_console.render(CASES["forced"](), color=False),
        compare_markdown.comment(CASES["forced"]()),
        Page(compare_html.render(CASES["forced"]())).text,
    ):
        assert "Compared by force although the sides differ in: ranks of the job." in " ".join(
            text.split()
        )


def test_no_name_is_printed_whole_where_it_is_endless() -> None:
    assert NASTY[-3000:] not in compare_console.render(hostile_compare(), color=False)
