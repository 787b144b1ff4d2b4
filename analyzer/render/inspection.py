"""Plain tables for the terminal: what the inputs hold, and the laws as numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table

from analyzer.render.format import clean, count, data_size, multiple, percent, shorten, significant
from analyzer.report.document import Report

WIDTH = 80
INDENT = " " * 10


def _text(table: Table) -> str:
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n"


def plain_table(headers: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text; headers are (title, right-aligned)."""
    # No lines: every terminal, whatever its encoding, shows letters and digits.
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for title, right in headers:
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return _text(table)


def render(report: Report, actions: Mapping[str, str]) -> str:
    """Files with rank and rule, steps, and what the data forbids to conclude; then, from `actions`
    by caveat, how to record what the capture lacks.
    """
    run = report.run
    used = plain_table(
        [("file", False), ("rank", True), ("by", False), ("events", True), ("size", True)],
        [
            (
                shorten(clean(f.name), 34, "..."),
                "-" if f.rank is None else str(f.rank) + (f"/{f.cycle}" if f.cycle else ""),
                clean(f.rank_rule or f.reason),
                count(f.events),
                data_size(f.bytes),
            )
            for f in run.files
        ],
    )
    size = "unknown" if run.world_size is None else str(run.world_size)
    facts = [
        f"ranks     {len(run.ranks_present)} present, world size {size}",
        f"device    {clean(run.gpu or 'not recorded')}",
        f"steps     used {_numbers(report.steps.used)}; {report.steps.rule}",
    ]
    facts += [f"          left out {d.index}: {clean(d.why)}" for d in report.steps.dropped]
    facts += [
        f"{c.severity:9} {c.id}: {clean(c.text)}"
        + (f" Forbids: {', '.join(c.forbids)}." if c.forbids else "")
        for c in report.quality
    ]
    lines = [
        line for fact in facts for line in textwrap.wrap(fact, WIDTH, subsequent_indent=INDENT)
    ]
    return used + "\n" + "\n".join([*lines, *_lacking(report, actions)]) + "\n"


def _lacking(report: Report, actions: Mapping[str, str]) -> list[str]:
    """What to do about each caveat that forbids a conclusion, each advice once."""
    said = dict.fromkeys(actions[c.id] for c in report.quality if c.forbids and c.id in actions)
    if not said:
        return ["", "Nothing is lacking that this tool could use."]
    points = [
        line
        for text in said
        for line in textwrap.wrap(text, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    ]
    return ["", "To be able to say more:", *points]


def _numbers(steps: Sequence[int]) -> str:
    shown = ", ".join(map(str, steps[:12]))
    return shown + (f" and {len(steps) - 12} more" if len(steps) > 12 else "")


def laws_table(
    serial: float,
    rows: Sequence[tuple[int, float, float, float, float | None]],
    limit: float | None,
    growth: float | None = None,
) -> str:
    """Rows of (N, Amdahl's speedup, Gustafson's scaled speedup, Amdahl's efficiency, Sun and Ni's
    speedup where work grows with N^`growth`).
    """
    heads = [("GPUs", True), ("Amdahl", True), ("efficiency", True), ("Gustafson", True)]
    cells = [[str(n), multiple(a), percent(e), multiple(g)] for n, a, g, e, _ in rows]
    meaning = (
        f"Serial fraction {significant(serial)} ({significant(100 * serial)} %). "
        "Amdahl: the work is fixed and that is the serial fraction of one GPU; "
        f"the ceiling is {multiple(limit, 'unbounded')}. "
        "Gustafson: the work grows with N and that is the serial fraction on N GPUs. "
        "The two answer different questions."
    )
    if growth is not None:
        heads.append(("Sun-Ni", True))
        cells = [[*line, multiple(memory)] for line, (*_, memory) in zip(cells, rows, strict=True)]
        meaning += (
            f" Sun and Ni: the parallel work grows with N^{growth:g}, as memory that grows with "
            "the GPUs may let it; 0 is Amdahl, 1 Gustafson."
        )
    return f"{plain_table(heads, cells)}\n{textwrap.fill(meaning, WIDTH)}\n"
