"""What goes on the pull request after a change? The comparison as a comment that updates itself.

The verdict is the heading; whole sections are dropped from the bottom to stay in GitHub's limit.
"""

from __future__ import annotations

from analyzer.render import compare_tables as tables
from analyzer.render import compare_words as say
from analyzer.render.charts import text_bar
from analyzer.render.format import look
from analyzer.render.github import clean_lines, escape, grid
from analyzer.render.markdown import COMMENT_LIMIT, SUMMARY_LIMIT, fit, folded, marker, opened, safe
from analyzer.render.rank_tables import Grid
from analyzer.report.comparison import Comparison

BAR = 60
SENTENCES = 1_000


def comment(
    comparison: Comparison,
    comment_id: str = "default",
    report_url: str | None = None,
    picture: str | None = None,
) -> str:
    """The comment, at most 60,000 characters; the first line finds it again."""
    head = f"{marker(comparison.tool.name, 'compare', comment_id)}\n{_heading(comparison)}"
    body = [*_open_part(comparison, picture), *(folded(*part) for part in _parts(comparison))]
    return fit([head, *body], _foot(comparison, report_url), COMMENT_LIMIT)


def summary(comparison: Comparison) -> str:
    """The same for a job summary, every section open."""
    body = [*_open_part(comparison, None), *(opened(*part) for part in _parts(comparison))]
    return fit([_heading(comparison), *body], _foot(comparison, None), SUMMARY_LIMIT)


def _heading(comparison: Comparison) -> str:
    return f"## {escape(comparison.verdict.text)}"


def _open_part(comparison: Comparison, picture: str | None) -> list[str]:
    banner = say.banner(comparison)
    return [
        f"> [!CAUTION]\n> {escape(banner, SENTENCES)}" if banner else "",
        f"{escape(say.action(comparison))} {escape(say.sides(comparison))} "
        f"{escape(comparison.verdict.sure, SENTENCES)}",
        _warnings(comparison),
        _grid(tables.gates(comparison)),
        _grid(tables.waterfall(comparison)),
        f"![Step time by class, before and after](./{picture})" if picture else _bars(comparison),
    ]


def _warnings(comparison: Comparison) -> str:
    rows = comparison.comparable.differences[: tables.MOST_DIFFERENCES]
    if not rows:
        return ""
    kind = "CAUTION" if any(row.blocking for row in rows) else "WARNING"
    lines = "\n>\n".join(f"> {escape(say.differs(row), SENTENCES)}" for row in rows)
    return f"> [!{kind}]\n{lines}"


def _bars(comparison: Comparison) -> str:
    if not comparison.waterfall:
        return ""
    sides = (("before", comparison.before), ("after ", comparison.after))
    longest = max(side.steps.wall_ms.mean for _, side in sides)
    drawn, used = [], {}
    for role, side in sides:
        mean = side.breakdown.measured
        cells = text_bar(mean, round(BAR * sum(mean.values()) / longest))
        used.update({name: look(name) for name, letters in cells if letters})
        drawn.append(f"{role} |{''.join(letters for _, letters in cells)}|")
    key = "   ".join(f"{item.letter} {item.label}" for item in used.values())
    return f"```text\n{clean_lines(chr(10).join([*drawn, key]))}\n```"


def _parts(comparison: Comparison) -> list[tuple[str, str]]:
    if not comparison.waterfall:
        return []
    work = [
        (comparison.kernels, "kernel", tables.kernels),
        (comparison.collectives, "collective", tables.collectives),
        (comparison.ops, "op", tables.ops),
    ]
    moved = [
        "\n\n".join(
            filter(None, (escape(say.moved(comparison, rows, noun)), _grid(make(comparison))))
        )
        for rows, noun, make in work
    ]
    return [
        ("Bottlenecks", _with(say.findings(comparison), tables.findings(comparison))),
        ("Promised and measured", _forecasts(comparison)),
        (
            "Serial fraction and ceilings",
            _with(say.fractions(comparison), tables.fractions(comparison)),
        ),
        ("Kernels, collectives and ops that moved", "\n\n".join(moved)),
        ("Runs", _grid(tables.runs(comparison)) or "One run per side."),
    ]


def _forecasts(comparison: Comparison) -> str:
    if not comparison.forecasts:
        return (
            "No bottleneck with a what-if went, so there is no promise to hold against the times."
        )
    words = " ".join(item.text for item in comparison.forecasts)
    return _with(words, tables.forecasts(comparison))


def _with(words: str, table: Grid | None) -> str:
    return "\n\n".join(part for part in (escape(words, SENTENCES), _grid(table)) if part)


def _grid(table: Grid | None) -> str:
    return "" if table is None else grid(table)


def _foot(comparison: Comparison, url: str | None) -> str:
    tool = f"{comparison.tool.name} {comparison.tool.version}"
    return tool if url is None else f"[Full comparison (HTML)]({safe(url)}), {tool}"
