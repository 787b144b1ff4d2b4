"""What does the terminal show of a comparison? Verdict, what differs, why, and how sure."""

from __future__ import annotations

import io
import textwrap

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analyzer.render import compare_words as say
from analyzer.render.adding import change, written
from analyzer.render.charts import text_bar, text_key
from analyzer.render.format import look, shorten
from analyzer.report.comparison import Comparison, Side

LONGEST = 300
MOST_LINES, MOST_FINDINGS, MOST_WARNINGS = 8, 8, 8


def verdict_line(comparison: Comparison) -> str:
    """The verdict as one clean line."""
    return say.ascii_signs(shorten(comparison.verdict.text, LONGEST, "..."))


def render(
    comparison: Comparison, *, color: bool, width: int = 80, ascii_only: bool = False
) -> str:
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
    _head(console, comparison)
    if comparison.waterfall:
        _bars(console, comparison, width)
        _why(console, comparison)
    _findings(console, comparison)
    _notes(console, comparison)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    text = say.ascii_signs("\n".join(lines).rstrip() + "\n")
    return text.encode("ascii", "replace").decode() if ascii_only else text


def _head(console: Console, comparison: Comparison) -> None:
    tool = comparison.tool
    console.print(Text(f"{tool.name} {tool.version}   {say.sides(comparison)}", "dim"))
    console.print()
    if banner := say.banner(comparison):
        console.print(Text(f"!! {banner}", "bold"))
    console.print(Text(verdict_line(comparison), "bold"))
    console.print(shorten(comparison.verdict.sure, LONGEST, "..."))
    if comparison.waterfall:
        console.print(say.fractions(comparison))
    console.print(say.action(comparison))
    console.print()


def _bars(console: Console, comparison: Comparison, width: int) -> None:
    sides = (("before", comparison.before), ("after", comparison.after))
    longest = max(side.steps.wall_ms.mean for _, side in sides)
    room = width - 12
    for role, side in sides:
        console.print(_bar(role, side, round(room * side.steps.wall_ms.mean / longest)))
    scale = say.scale_of(comparison)
    classes = {bar.class_: max(bar.before_ms, bar.after_ms) for bar in comparison.waterfall}
    key = [entry.rsplit(" ", 1)[0] for entry in text_key(classes, scale)]
    shown = {letters[0] for _, side in sides for _, letters in _cells(side, room) if letters}
    words = "   ".join(entry.replace(" ", "\u00a0") for entry in key if entry[0] in shown)
    for line in textwrap.wrap(words, width - 12):
        console.print(Padding(Text(line.replace("\u00a0", " "), no_wrap=True), (0, 0, 0, 10)))
    console.print()


def _cells(side: Side, width: int) -> list[tuple[str, str]]:
    return text_bar(side.breakdown.measured, width)


def _bar(role: str, side: Side, width: int) -> Text:
    bar = Text(f"  {role:7}|")
    for name, letters in _cells(side, width):
        bar.append(letters, look(name).terminal)
    return bar.append("|")


def _why(console: Console, comparison: Comparison) -> None:
    scale = say.scale_of(comparison)
    table = Table(box=None, padding=(0, 1), header_style="dim", pad_edge=True)
    table.add_column("class")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("")
    rows = say.lines(comparison)
    told, rest = rows[:MOST_LINES], rows[MOST_LINES:]
    for line in told:
        table.add_row(
            line.label,
            written(line.before, scale),
            written(line.after, scale),
            change(line.delta, scale),
            say.interval(line.bar, scale),
            say.UNSURE if say.unsure(line.bar) else "",
        )
    if rest:
        old, new = sum(line.before for line in rest), sum(line.after for line in rest)
        cells = (written(old, scale), written(new, scale), change(new - old, scale))
        table.add_row(f"{len(rest)} more", *cells, "", "")
    table.add_row(Text("step, ms", "bold"), *say.total(comparison), "", "")
    console.print(table)
    console.print()


def _findings(console: Console, comparison: Comparison) -> None:
    scale = say.scale_of(comparison)
    for row in comparison.findings[:MOST_FINDINGS]:
        words = f"  {row.status:6} {shorten(row.title, 48, '...')}  {say.finding(row, scale)} ms"
        console.print(Text(words))
        if row.note:
            console.print(Padding(Text(row.note, "dim"), (0, 0, 0, 9)))
    for item in comparison.forecasts:
        console.print(Padding(Text(f"promised: {item.text}"), (0, 0, 0, 2)))
    if comparison.findings:
        console.print()


def _notes(console: Console, comparison: Comparison) -> None:
    for row in comparison.comparable.differences[:MOST_WARNINGS]:
        mark = "!!" if row.blocking else "!"
        console.print(Padding(Text(f"{mark} {say.differs(row)}"), (0, 0, 0, 2)))
    for gate in comparison.gates:
        console.print(Padding(Text(f"gate {say.gate(gate)}"), (0, 0, 0, 2)))
