"""The report on several world sizes as Markdown for a pull request, and for the terminal."""

from __future__ import annotations

import textwrap

from analyzer.render import plan_text, several
from analyzer.render.format import multiple, percent, shorten
from analyzer.render.github import escape, grid
from analyzer.render.inspection import plain_table
from analyzer.render.rank_tables import Grid
from analyzer.report.scaling import ScalingReport

LONGEST = 600
WIDTH = 80


def verdict_line(report: ScalingReport) -> str:
    """The verdict as one clean line."""
    return shorten(report.verdict.text, LONGEST, "...")


def markdown(report: ScalingReport) -> str:
    """The comment: verdict, measured and predicted, plan; fits and laws folded."""
    tables = [several.points(report), several.predictions(report)]
    told = [several.ceiling(report), several.quality(report), several.fractions(report),
            several.attack(report)]  # fmt: skip
    held = several.mode(report)
    words = " ".join(escape(line, LONGEST) for line in told if line)
    parts = [
        f"<!-- {report.tool.name}:scaling:default -->",
        f"## {escape(report.verdict.text, LONGEST)}",
        f"{held[:1].upper()}{held[1:]}. {words}",
        *_differences(report),
        *(grid(table) for table in tables if table is not None),
        escape(several.fixes(report), LONGEST),
        f"### Plan\n\n{plan_text.markdown(report.plan)}" if report.plan else "",
        _folded("Class against number of GPUs", [several.classes(report)]),
        _folded("Laws and links", [several.laws(report), several.links(report)]),
        _folded_lines("Assumptions", report.assumptions),
        f"{report.tool.name} {report.tool.version}, {escape(report.label, 60)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _differences(report: ScalingReport) -> list[str]:
    return [f"> [!WARNING]\n> {escape(line, LONGEST)}" for line in report.differences]


def _folded(title: str, tables: list[Grid | None]) -> str:
    drawn = "\n\n".join(grid(table) for table in tables if table is not None)
    return f"<details><summary>{title}</summary>\n\n{drawn}\n\n</details>" if drawn else ""


def _folded_lines(title: str, lines: list[str]) -> str:
    listed = "\n".join(f"- {escape(line, LONGEST)}" for line in lines)
    return f"<details><summary>{title}</summary>\n\n{listed}\n\n</details>"


def terminal(report: ScalingReport, *, color: bool, ascii_only: bool) -> str:
    """The summary, 80 columns, without colour: the words carry everything."""
    scale = several.scale_of(report)
    rows = [
        (
            f"{row.n:,}",
            "refused" if row.step_ms is None else scale.bare(row.step_ms),
            ""
            if row.lo is None or row.hi is None
            else f"{scale.bare(row.lo)} to {scale.bare(row.hi)}",
            "" if row.speedup is None else multiple(row.speedup),
            "" if row.efficiency is None else percent(row.efficiency),
            _measured(report, row.n),
        )
        for row in report.predict
    ]
    heads = [("GPUs", True), ("ms/step", True), ("interval", True), ("speedup", True),
             ("efficiency", True), ("measured", True)]  # fmt: skip
    words = [
        report.verdict.text,
        several.ceiling(report),
        several.quality(report),
        several.fractions(report),
        several.attack(report),
        *report.differences,
    ]
    lines = [f"{report.tool.name} {report.tool.version}   {several.mode(report)}", ""]
    lines += [textwrap.fill(shorten(line, LONGEST, "..."), WIDTH) for line in words if line]
    lines += ["", plain_table(heads, rows).rstrip("\n")]
    if report.plan is not None:
        lines += ["", *plan_text.terminal(report.plan)]
    said = "\n".join(lines) + "\n"
    return said.encode("ascii", "replace").decode() if ascii_only else said


def _measured(report: ScalingReport, n: int) -> str:
    scale = several.scale_of(report)
    return next((scale.bare(p.step_ms) for p in report.points if p.n == n), "")
