"""What does the terminal show? The verdict, the ceilings, the ranked table, the step as a bar.

Letters carry the classes, so nothing is lost without colour; names from a trace are cleaned of
control sequences before they reach the terminal.
"""

from __future__ import annotations

import io
import textwrap

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyzer.render import between_ranks, charts, gains, plan_text, sentences, turns
from analyzer.render.format import (
    look,
    percent,
    plural,
    shorten,
    significant,
)
from analyzer.report.document import Caveat, Finding, Report

MOST_FINDINGS = 8
MOST_CAVEATS = 8
LONGEST = 300
NEXT = "fix one thing, record again, then: ceiling compare BEFORE AFTER"
_GLUE = "\u00a0"
_MARKS = {"error": "!!", "warning": "!"}


def verdict_line(report: Report) -> str:
    """The verdict as one clean line."""
    return shorten(report.verdict.text, LONGEST, "...")


def render(report: Report, *, color: bool, width: int = 80, ascii_only: bool = False) -> str:
    """The summary, `width` columns wide; `ascii_only` for terminals without UTF-8."""
    page = io.StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    _head(console, report)
    _attack(console, report)
    _step(console, report, width)
    _notes(console, report)
    if report.plan is not None:
        console.print(Text("\n".join(plan_text.terminal(report.plan))))
    lines = [line.replace(_GLUE, " ").rstrip() for line in page.getvalue().splitlines()]
    text = "\n".join(lines).rstrip() + "\n"
    return text.encode("ascii", "replace").decode() if ascii_only else text


def _head(console: Console, report: Report) -> None:
    tool, label = report.tool, shorten(report.run.label, 24, "...")
    facts = f"{sentences.ranks(report)}, {sentences.steps(report)}, {sentences.step_time(report)}"
    console.print(Text(f"{tool.name} {tool.version}   run: {label}", "dim"))
    console.print(Text(facts, "dim"))
    if apart := sentences.phases(report):
        console.print(Text(apart, "dim"))
    console.print()
    console.print(Text(verdict_line(report), "bold"))
    console.print(sentences.ceilings(report))
    if numbers := _numbers(report):
        console.print(numbers)
    held = f"{sentences.mode(report)}. {sentences.whole_run(report)}"
    console.print(held[0].upper() + held[1:])
    console.print()


def _numbers(report: Report) -> str:
    facts = report.scaling
    efficiency = f"efficiency {percent(facts.efficiency)}" if facts.n > 1 else ""
    if facts.f.value is None:
        return f"{efficiency[:1].upper()}{efficiency[1:]}." if efficiency else ""
    parts = f"f {significant(facts.f.value)} today, s {significant(facts.s.value)} on one GPU"
    return f"Does not scale: {'; '.join(filter(None, (parts, efficiency)))}."


def _attack(console: Console, report: Report) -> None:
    listed = report.findings[:MOST_FINDINGS]
    loud = [item for item in listed if not gains.noisy(item)]
    if loud:
        console.print(_table(report, loud))
    if not report.findings:
        console.print(sentences.findings(report))
    scale = sentences.scale_of(report)
    remarks = [
        f"{shorten(item.title, 60, '...')} ({scale.ms(item.ms)}) is within noise"
        for item in listed
        if gains.noisy(item)
    ]
    if len(report.findings) > len(listed):
        remarks.append(f"{plural(len(report.findings) - len(listed), 'smaller finding')} not shown")
    if report.findings and report.passed:
        remarks.append(f"{plural(len(report.passed), 'check')} passed")
    if in_turn := turns.line(report):
        console.print(Padding(Text(in_turn), (0, 0, 0, 5)))
    if remarks:
        console.print(Padding(Text("; ".join(remarks), "dim"), (0, 0, 0, 5)))
    for late in report.ranks.late[: between_ranks.MOST_TOLD]:
        line = shorten(between_ranks.late_line(report, late), LONGEST, "...")
        console.print(Padding(Text(line), (0, 0, 0, 5)))
    console.print()


def _table(report: Report, findings: list[Finding]) -> Table:
    scale = sentences.scale_of(report)
    table = Table(box=None, padding=(0, 1), header_style="dim", expand=True, pad_edge=True)
    table.add_column("#", justify="right")
    table.add_column("bottleneck", ratio=1, overflow="ellipsis")
    for name in ("ms/step", "share", gains.column(report), "ceiling"):
        table.add_column(name, justify="right", no_wrap=True)
    for place, item in enumerate(findings, start=1):
        starred = sentences.lowers_ceiling(report, item)
        ceiling = sentences.ceiling_after(item)
        table.add_row(
            str(place),
            Text(shorten(item.title, 60, "...")),
            scale.bare(item.ms),
            percent(item.share),
            gains.worth(report, item.gain),
            ceiling + (f"{_GLUE}*" if starred else 2 * _GLUE),
        )
    return table


def _step(console: Console, report: Report, width: int) -> None:
    mean = report.breakdown.measured
    if sum(mean.values()) <= 0:
        console.print(sentences.where(report))
        return
    bar = Text("  step  |")
    for name, letters in charts.text_bar(mean, width - 20):
        bar.append(letters, look(name).terminal)
    console.print(bar.append("|"))
    entries = charts.text_key(mean, sentences.scale_of(report))
    key = "   ".join(entry.replace(" ", _GLUE) for entry in entries)
    # rich breaks lines at the glue too, textwrap keeps an entry whole
    for line in textwrap.wrap(f"{key}{_GLUE}ms", width - 11):
        console.print(Padding(Text(line, no_wrap=True), (0, 0, 0, 9)))
    console.print()


def _notes(console: Console, report: Report) -> None:
    order = list(_MARKS)
    loud = [item for item in report.quality if item.severity in _MARKS]
    loud.sort(key=lambda item: order.index(item.severity))
    for caveat in loud[:MOST_CAVEATS]:
        console.print(Padding(_caveat(caveat), (0, 0, 0, 2)))
    listed = [item for item in report.findings[:MOST_FINDINGS] if not gains.noisy(item)]
    if any(sentences.lowers_ceiling(report, item) for item in listed):
        console.print(Padding(Text(f"* {sentences.LOWERS}"), (0, 0, 0, 2)))
    if listed and report.whatif.basis == "share":
        console.print(Padding(Text(sentences.findings(report)), (0, 0, 0, 2)))
    if listed:
        console.print()
        console.print(Text(f"Next: {NEXT}", "dim"))


def _caveat(caveat: Caveat) -> Text:
    text = Text(f"{_MARKS[caveat.severity]} ", "bold")
    text.append(shorten(caveat.text, LONGEST, "..."), "not bold")
    return text.append(f" {shorten(sentences.forbids(caveat), LONGEST, '...')}", "not bold")
