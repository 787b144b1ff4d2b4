"""What does a GitHub job read? Annotations on its page, and outputs for later steps.

Of the ten a step may give three are used at most: the verdict, the gates, and the worst caveat.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render.compare_words import gate
from analyzer.render.format import clean, shorten
from analyzer.report.comparison import Comparison, Gate
from analyzer.report.document import Report

TITLE = "ceiling"
LONGEST = 400
_LOUD = ("error", "warning")


def commands(found: Report | Comparison, gates: Sequence[Gate]) -> list[str]:
    """At most three lines: the verdict, the gates that were not met, what limits the data."""
    missed = [row for row in gates if not row.passed]
    failed = any(row.level == "fail" for row in missed)
    lines = [_line("notice", "verdict", found.verdict.text)]
    if missed:
        words = "; ".join(gate(row) for row in missed)
        lines.append(_line("error" if failed else "warning", "gates", words))
    if caveat := _caveat(found):
        lines.append(_line("warning", "data", caveat))
    return lines


def outputs(found: Report | Comparison, path: str) -> str:
    """Lines of name=value for later steps: verdict, step-ms, report-path."""
    if isinstance(found, Report):
        word, step = found.verdict.finding or "nothing-stands-out", found.steps.wall_ms.mean
    else:
        word, step = found.verdict.outcome, found.after.steps.wall_ms.mean
    return f"verdict={clean(word)}\nstep-ms={step:.6g}\nreport-path={clean(path)}\n"


def _caveat(found: Report | Comparison) -> str:
    if isinstance(found, Report):
        loud = [item for item in found.quality if item.severity in _LOUD]
        loud.sort(key=lambda item: _LOUD.index(item.severity))
        return loud[0].text if loud else ""
    rows = found.comparable.differences
    return f"{rows[0].title}: {rows[0].before} against {rows[0].after}" if rows else ""


def _line(level: str, title: str, words: str) -> str:
    text = shorten(words, LONGEST, "...")
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(char, code)
    return f"::{level} title={TITLE} {title}::{text}"
