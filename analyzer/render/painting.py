"""How is a document painted in each format? One table for reports, comparisons and series alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analyzer.render import (
    charts,
    compare_charts,
    compare_console,
    compare_html,
    compare_markdown,
    console,
    html,
    markdown,
    scaling_page,
    scaling_text,
    svg,
)
from analyzer.report import comparison as comparison_file
from analyzer.report import document
from analyzer.report.comparison import Comparison
from analyzer.report.document import Report
from analyzer.report.scaling import ScalingReport
from analyzer.report.scaling import dumps as scaling_json


@dataclass(frozen=True)
class Mark:
    """What a comment carries beside the document: its id, the page's address, a picture beside."""

    comment_id: str = "default"
    report_url: str | None = None
    picture: str | None = None


UNMARKED = Mark()


@dataclass(frozen=True)
class Painting:
    """A document ready to be painted: `paint` by format, the terminal's text, a line, a summary.

    `stem` is the name of its files.
    """

    stem: str
    paint: Mapping[str, Callable[[Mark], str]]
    text: Callable[[bool, bool], str]
    line: str
    summary: Callable[[], str]


def of_report(report: Report) -> Painting:
    """The paintings of a report."""
    return Painting(
        stem="report",
        paint={
            "html": lambda mark: html.render(report),
            "json": lambda mark: document.dumps(report).decode(),
            "markdown": lambda mark: markdown.comment(
                report, mark.comment_id, mark.report_url, mark.picture
            ),
            "svg": lambda mark: svg.standalone(charts.where(report) or svg.nothing("report")),
        },
        text=lambda color, plain: console.render(report, color=color, ascii_only=plain),
        line=console.verdict_line(report),
        summary=lambda: markdown.summary(report),
    )


def of_comparison(found: Comparison) -> Painting:
    """The paintings of a comparison."""
    return Painting(
        stem="compare",
        paint={
            "html": lambda mark: compare_html.render(found),
            "json": lambda mark: comparison_file.dumps(found).decode(),
            "markdown": lambda mark: compare_markdown.comment(
                found, mark.comment_id, mark.report_url, mark.picture
            ),
            "svg": lambda mark: svg.standalone(
                compare_charts.bars(found) or svg.nothing("compare")
            ),
        },
        text=lambda color, plain: compare_console.render(found, color=color, ascii_only=plain),
        line=compare_console.verdict_line(found),
        summary=lambda: compare_markdown.summary(found),
    )


def of_scaling(report: ScalingReport) -> Painting:
    """The paintings of a report on several world sizes."""
    text = scaling_text.markdown
    return Painting(
        stem="scaling",
        paint={
            "html": lambda mark: scaling_page.render(report),
            "json": lambda mark: scaling_json(report).decode(),
            "markdown": lambda mark: text(report),
            "svg": lambda mark: svg.standalone(
                scaling_page.curve(report) or svg.nothing("scaling")
            ),
        },
        text=lambda color, plain: scaling_text.terminal(report, color=color, ascii_only=plain),
        line=scaling_text.verdict_line(report),
        summary=lambda: text(report),
    )
