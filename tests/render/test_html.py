from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from example import NASTY, bare, example, hostile, unjoined
from example_late import two_late
from example_whatif import hostile_replay, poor, replayed
from msgspec.structs import replace

from analyzer.render import console, html, markdown
from analyzer.report.document import Estimate, dumps, loads


class Page(HTMLParser):
    """Elements, text by element, and table rows of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
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


CASES = {
    "example": example,
    "late": two_late,
    "replayed": replayed,
    "poor": poor,
    "unjoined": unjoined,
    "bare": bare,
    "hostile": hostile,
    "hostile-replay": hostile_replay,
}


@pytest.mark.parametrize("name", CASES)
def test_the_page_refers_to_nothing_outside_itself(name: str) -> None:
    text = html.render(CASES[name]())
    page = Page(text)
    targets = [value for _, attrs in page.tags for key, value in attrs.items() if key in REFS]
    assert targets == ["#main"]
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)


REFS = {"src", "href", "srcset", "data", "action", "xlink:href"}


@pytest.mark.parametrize("name", CASES)
def test_the_page_needs_no_script(name: str) -> None:
    page = Page(html.render(CASES[name]()))
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "report-json"}]
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on")]


@pytest.mark.parametrize("name", CASES)
def test_no_element_carries_a_style_attribute(name: str) -> None:
    page = Page(html.render(CASES[name]()))
    assert not [tag for tag, attrs in page.tags if "style" in attrs]


@pytest.mark.parametrize("name", CASES)
def test_elements_close_in_order_and_ids_are_unique(name: str) -> None:
    page = Page(html.render(CASES[name]()))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert page.open == []
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["hostile", "hostile-replay"])
def test_names_cannot_add_elements(name: str) -> None:
    page = Page(html.render(CASES[name]()))
    assert "img" not in {tag for tag, _ in page.tags}
    assert "</script><img src=x onerror=alert(1)>|`a`|" in page.text


@pytest.mark.parametrize("name", ["hostile", "hostile-replay"])
def test_no_control_or_bidirectional_character_reaches_the_page(name: str) -> None:
    text = html.render(CASES[name]())
    assert not re.search("[\x00-\x09\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)


def test_the_page_carries_the_whole_report() -> None:
    report = hostile()
    data = Page(html.render(report)).data
    assert json.loads(data)["run"]["label"] == NASTY
    assert loads(data.encode()) == report


def test_characters_beyond_the_basic_plane_survive_in_the_embedded_report() -> None:
    report = replace(example(), run=replace(example().run, label="\U0001f680 é <"))
    data = Page(html.render(report)).data
    assert data.isascii()
    assert json.loads(data)["run"]["label"] == "\U0001f680 é <"


def test_the_title_is_the_verdict() -> None:
    text = html.render(example()).replace("\u00a0", " ")
    assert f"<title>{example().verdict.text}</title>" in text


def test_only_the_first_sentence_of_the_verdict_is_the_headline() -> None:
    report = example()
    text = "Fix rank 1 first: 8.8 ms. Ranks wait that long."
    page = html.render(replace(report, verdict=replace(report.verdict, text=text)))
    assert "<h1>Fix rank 1 first: 8.8\u00a0ms.</h1>" in page
    assert '<p class="lead">Ranks wait that long.</p>' in page


@pytest.mark.parametrize(
    "ranks, steps, limit", [(8, 10, 300_000), (1024, 10, 2_000_000)], ids=["8", "1024"]
)
def test_the_page_stays_within_its_budget(ranks: int, steps: int, limit: int) -> None:
    assert len(html.render(example(ranks, steps)).encode()) < limit


@pytest.mark.parametrize("name", CASES)
def test_the_same_report_gives_the_same_bytes(name: str) -> None:
    assert html.render(CASES[name]()) == html.render(CASES[name]())


@pytest.mark.parametrize("name", CASES)
def test_a_report_from_json_gives_the_same_page(name: str) -> None:
    report = CASES[name]()
    again = loads(dumps(report))
    assert dumps(again) == dumps(report)
    assert html.render(again) == html.render(report)


def rows_of(caption: str, text: str) -> list[list[str]]:
    table = text.split(caption, 1)[1].split("</table>", 1)[0].split("<tbody>", 1)[1]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in table.split("<tr")[1:]]
    return rows


@pytest.mark.parametrize("name", ["example", "late", "unjoined", "bare"])
def test_classes_of_every_row_add_up_to_its_step(name: str) -> None:
    rows = rows_of("the classes of a row add up", html.render(CASES[name]()))
    assert rows
    for row in rows:
        *parts, step, _hidden = map(float, row[1:])
        assert sum(parts) == pytest.approx(step, abs=0.05 * (len(parts) + 1))


NUMBER = re.compile(r"<?\d[\d.,]*\d(?: ?[x%])?|\d+(?: ?%)?")


@pytest.mark.parametrize("name", ["example", "late", "replayed", "poor", "unjoined", "bare"])
def test_numbers_of_the_summary_stand_in_page_and_comment(name: str) -> None:
    report = CASES[name]()
    numbers = set(NUMBER.findall(" ".join(console.render(report, color=False, width=200).split())))
    page = set(NUMBER.findall(Page(html.render(report)).text))
    comment = set(NUMBER.findall(markdown.summary(report)))
    assert len(numbers) > 5
    assert numbers - page == set()
    assert numbers - comment == set()


def test_empty_sections_explain_themselves() -> None:
    text = Page(html.render(bare())).text
    for sentence in (
        "No ceiling: One rank without communication",
        "No bottleneck with a known cause stands out.",
        "No communication runs beside compute.",
        "Only step 0 is used, so nothing can be said about change.",
        "Only one rank: nobody to wait for.",
        "No collective was found in these traces.",
        "No idle time of the device was found to explain.",
        "No prediction: One rank without communication: everything scales.",
        "What two fixes give together only a replay tells; shares do not simply add up.",
        "No what-if was tried.",
        "There is no replay: the report does not say why.",
        "No critical path was found.",
        "No kernel ran on a device in the used steps.",
    ):
        assert sentence in text


def test_late_ranks_lead_the_section_on_ranks() -> None:
    text = Page(html.render(two_late())).text
    assert (
        "Ranks and collectives Ranks 0 and 6 arrive last in 38.1 % and 33.3 % of the 84 "
        "all-reduces of a step; the others wait 219.0 ms and 174.1 ms each per step for them "
        "(35.0 % and 27.9 %)."
    ) in text


def test_each_picture_of_ranks_has_its_table() -> None:
    text = html.render(two_late())
    section = text[text.index('<h2 id="ranks"') : text.index('<h2 id="idle"')]
    drawn = re.findall(
        r'<div class="chart">.*?</div>\n<details class="fold"><summary>', section, re.S
    )
    assert [re.search(r'<title id="(\w+)', part)[1] for part in drawn] == ["spread", "timeline"]


def test_unjoined_ranks_say_why_waits_are_not_shown() -> None:
    assert unjoined().ranks.reason in Page(html.render(unjoined())).text


def test_a_step_without_time_gives_a_page() -> None:
    report = bare()
    empty = dict.fromkeys(report.breakdown.mean_ms, 0.0)
    parts = replace(report.breakdown, mean_ms=empty, per_rank=[], per_step=[])
    text = Page(html.render(replace(report, breakdown=parts))).text
    assert "No time was found in the steps" in text


def test_sections_stand_in_the_order_of_reading() -> None:
    text = html.render(example())
    ids = re.findall(r'<h2 id="(\w+)"', text)
    order = "trust attack where steps ranks idle scaling turns path kernels how inputs"
    assert ids == order.split()


def test_nothing_is_to_be_distrusted_without_a_warning() -> None:
    report = example()
    quiet = [item for item in report.quality if item.severity == "info"]
    text = Page(html.render(replace(report, quality=quiet))).text
    assert "Can you trust this?" not in text
    assert "5 steps: intervals are wide." in text


def test_shares_are_labelled_as_shares() -> None:
    assert (
        "a share, not a gain: what were left if just that time went"
        in Page(html.render(example())).text
    )


def test_a_replayed_gain_stands_with_its_interval_under_gain() -> None:
    text = Page(html.render(replayed())).text
    assert "share gain ceiling after" in text
    assert "14.0 ms 14.0 % 1.15x (1.14 to 1.16) 4.60x" in text
    assert "worth doing; replayed gain 1.15x (95 % interval 1.14 to 1.16); confidence" in text
    assert "Replayed as: no communication, no-communication ; then f 0.217, s 0.0336;" in text


def test_a_share_among_gains_says_by_share() -> None:
    assert "1.2 ms 1.2 % 1.01x by share" in Page(html.render(replayed())).text


def test_noise_begins_where_no_replayed_gain_follows() -> None:
    text = Page(html.render(replayed())).text
    border = text.index("From here on within noise")
    fourth = text.index("Optimizer is repeated on every rank")
    assert fourth < border < text.index("Ranks wait for a different one each time")


def test_every_picture_of_what_ifs_has_its_table() -> None:
    text = html.render(replayed())
    section = text[text.index('<h2 id="turns"') : text.index('<h2 id="kernels"')]
    drawn = re.findall(
        r'<div class="(?:chart|panels)">.*?</div>\n<details class="fold"><summary>', section, re.S
    )
    titles = [re.findall(r'<title id="([\w-]+)-t"', part) for part in drawn]
    assert titles == [["turns-chart"], ["part-1", "part-2", "part-3"], ["path-chart"]]


def test_a_replay_that_is_too_far_off_draws_no_waterfall() -> None:
    text = html.render(poor())
    assert "turns-chart" not in text
    assert "differs from the recorded step by 14.0 % (14.0 ms): poor (10 % or more)" in (
        Page(text).text
    )


def test_a_fix_that_lowers_the_ceiling_says_so() -> None:
    text = Page(html.render(example())).text
    assert "2.88x *" in text
    assert "removing it lowers the ceiling but still speeds up each step" in text


def test_an_unknown_value_is_never_a_zero() -> None:
    report = example()
    unknown = Estimate(value=None, reason="too few steps")
    text = Page(html.render(replace(report, scaling=replace(report.scaling, f=unknown)))).text
    assert "Does not scale, f: not measurable" in text
    assert "too few steps" in text


def test_a_finding_of_unknown_worth_says_so_once() -> None:
    report = example()
    gain = replace(report.findings[0].gain, speedup=None)
    unknown = replace(report.findings[0], gain=gain, ceiling_after=None)
    text = Page(html.render(replace(report, findings=[unknown]))).text
    assert "14.0 ms 14.0 % worth not measurable Because" in text


def test_weak_scaling_leaves_the_strong_laws_out() -> None:
    report = example()
    rows = [replace(row, amdahl=None, gustafson=None) for row in report.scaling.predict]
    scaling = replace(report.scaling, mode="weak", predict=rows)
    text = Page(html.render(replace(report, scaling=scaling))).text
    assert "Gustafson" not in text
    assert "weak mode: batch per GPU fixed" in text


def test_at_most_eight_findings_are_listed() -> None:
    report = example()
    many = [replace(report.findings[0], id=f"f-{n}", title=f"claim {n}.") for n in range(10)]
    text = Page(html.render(replace(report, findings=many))).text
    assert "claim 7." in text
    assert "claim 8." not in text
    assert "2 smaller findings in the embedded report.json." in text


def test_the_report_is_read_only() -> None:
    report = example()
    before = msgspec.json.encode(report)
    html.render(report)
    assert msgspec.json.encode(report) == before
