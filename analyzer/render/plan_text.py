"""How does the plan look on a terminal? A table and sentences, 80 columns."""

from __future__ import annotations

import textwrap

from analyzer.render import plan_words
from analyzer.render.inspection import WIDTH, plain_table
from analyzer.report.document import Plan


def terminal(plan: Plan) -> list[str]:
    """The lines of the plan."""
    table = plan_words.rows(plan)
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
