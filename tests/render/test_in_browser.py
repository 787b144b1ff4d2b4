"""What a reader sees: the page as laid out by a headless Chromium."""

from __future__ import annotations

import html as markup
import json
import re
from pathlib import Path

import pytest
from example import example
from example_compare import CASES, hostile_compare
from render_in_browser import BROWSER, NAMES, opened

from analyzer.render import compare_html, html

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(NAMES)} is installed"),
]
FOLDED = (
    "Try smaller buckets or start the reduction earlier",
    "Record 5 steps again; exposed transfer should fall below 3 ms.",
    "fp32-matrix-kernels",
    "The optimizer is replicated on every rank",
    "not a trace: no traceEvents",
    "thin_step_ratio",
)


def ask(folder: Path, page: str, expression: str, *flags: str) -> object:
    """The value of a script expression in the laid-out page."""
    script = (
        "<script>addEventListener('load', () => { const pre = document.createElement('pre');"
        f" const value = JSON.stringify({expression}); pre.id = 'answer';"
        " pre.textContent = value; document.body.append(pre); })</script></body>"
    )
    dom = opened(folder, page.replace("</body>", script), "--dump-dom", *flags)
    found = re.search(r'<pre id="answer">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(markup.unescape(found[1]))


def test_verdict_to_findings_fit_one_laptop_screen(tmp_path: Path) -> None:
    bottom = ask(
        tmp_path,
        html.render(example()),
        "document.querySelector('.findings').getBoundingClientRect().bottom",
    )
    assert isinstance(bottom, float | int)
    assert 300 < bottom <= 768


def test_a_strict_policy_leaves_colours_and_labels(tmp_path: Path) -> None:
    # the script is let in only to look; style sheets stay out as under Jenkins
    policy = "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'unsafe-inline'"
    page = html.render(example()).replace(
        "<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'
    )
    fills, margin, words = ask(
        tmp_path,
        page,
        "[[...document.querySelectorAll('#where ~ .chart rect[class]')]"
        ".map(r => getComputedStyle(r).fill), getComputedStyle(document.body).margin,"
        " document.querySelector('.numbers').innerText]",
    )
    assert margin == "8px"
    assert {"rgb(99, 146, 241)", "rgb(147, 38, 1)", "rgb(79, 14, 138)"} <= set(fills)
    assert "0.320 of today's step" in words


def test_a_dark_screen_gets_the_dark_palette(tmp_path: Path) -> None:
    fill, back = ask(
        tmp_path,
        html.render(example()),
        "[getComputedStyle(document.querySelector('.c-compute')).fill,"
        " getComputedStyle(document.body).backgroundColor]",
        "--blink-settings=preferredColorScheme=0",
    )
    assert (fill, back) == ("rgb(57, 181, 255)", "rgb(17, 20, 24)")


def test_print_rules_show_what_is_folded(tmp_path: Path) -> None:
    page = html.render(example())
    folded = ask(tmp_path, page, "document.body.innerText")
    printed = ask(tmp_path, page.replace("@media print", "@media all"), "document.body.innerText")
    assert [text for text in FOLDED if text in str(folded).replace("\u00a0", " ")] == []
    words = str(printed).replace("\u00a0", " ")
    assert [text for text in FOLDED if text not in words] == []


def test_the_page_prints_to_several_pages(tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    opened(tmp_path, html.render(example()), f"--print-to-pdf={target}")
    assert len(re.findall(rb"/Type\s*/Page\b", target.read_bytes())) > 3


def test_the_page_looks_the_same_without_scripts(tmp_path: Path) -> None:
    shots = [tmp_path / "with.png", tmp_path / "without.png"]
    page = html.render(example())
    opened(tmp_path, page, f"--screenshot={shots[0]}")
    policy = "<head><meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
    opened(tmp_path, page.replace("<head>", policy), f"--screenshot={shots[1]}")
    assert shots[0].read_bytes() == shots[1].read_bytes()


@pytest.mark.parametrize("name", ["fixed", "several", "blocked", "hostile"])
@pytest.mark.parametrize("width", [1366, 500])
def test_a_comparison_is_no_wider_than_the_window(name: str, width: int, tmp_path: Path) -> None:
    page = compare_html.render({**CASES, "hostile": hostile_compare}[name]())
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert ask(tmp_path, page, wide, f"--window-size={width},768") == 0


def test_the_verdict_of_a_comparison_and_its_bars_fit_one_laptop_screen(tmp_path: Path) -> None:
    page = compare_html.render(CASES["several"]())
    bottom = (
        "document.querySelector('#sides-chart-t').closest('svg').getBoundingClientRect().bottom"
    )
    found = ask(tmp_path, page, bottom)
    assert isinstance(found, int | float)
    assert found <= 768
