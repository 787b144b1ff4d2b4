"""The plan as text: a table and sentences for the terminal, 80 columns, and as Markdown."""

from __future__ import annotations

import textwrap

from analyzer.render import plan_words
from analyzer.render.github import escape, grid
from analyzer.render.inspection import WIDTH, plain_table
from analyzer.report.document import Plan

LONGEST = 600


def terminal(plan: Plan) -> list[str]:
    """The lines of the plan."""
    table = plan_words.short_rows(plan)
    heads = [(head.name, True) for head in table.heads]
    lines = [textwrap.fill(plan_words.lead(plan), WIDTH), ""]
    lines.append(plain_table(heads, table.rows).rstrip("\n"))
    if table.note:
        lines.append(textwrap.fill(table.note, WIDTH))
    lines.append("")
    lines += [
        textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ")
        for line in plan_words.lines(plan)
    ]
    return lines


def markdown(plan: Plan) -> str:
    """The same for a pull request."""
    lines = "\n".join(f"- {escape(line, LONGEST)}" for line in plan_words.lines(plan))
    parts = [escape(plan_words.lead(plan), LONGEST), grid(plan_words.rows(plan)), lines,
             escape(plan_words.basis(plan))]  # fmt: skip
    return "\n\n".join(part for part in parts if part)
