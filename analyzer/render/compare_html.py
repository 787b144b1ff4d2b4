"""What does the page of a comparison say? One HTML file without scripts or references."""

from __future__ import annotations

from typing import Any

from analyzer.render import compare_charts, compare_tables, html, svg
from analyzer.render import compare_words as say
from analyzer.render.format import plural, shorten
from analyzer.report.comparison import Comparison, Side


def render(comparison: Comparison) -> str:
    """The page; the same comparison gives the same bytes."""
    env = html.environment(say.scale_of(comparison))
    env.globals["said"] = say
    return env.get_template("compare.html").render(_view(comparison))


def _view(comparison: Comparison) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "tables": {name: make(comparison) for name, make in compare_tables.TABLES.items()},
        "charts": {
            "sides": compare_charts.bars(comparison),
            "fall": compare_charts.waterfall(comparison),
            "curve": compare_charts.curves(comparison),
        },
        "work": [
            ("Kernels", "kernels", say.moved(comparison, comparison.kernels, "kernel")),
            (
                "Collectives",
                "collectives",
                say.moved(comparison, comparison.collectives, "collective"),
            ),
            ("Operators", "ops", say.moved(comparison, comparison.ops, "op")),
        ],
        "facts": [_facts("Before", comparison.before), _facts("After", comparison.after)],
        "dark_rules": svg.dark_rules(),
        "embedded": html.embedded(comparison),
    }


def _facts(role: str, side: Side) -> tuple[str, list[tuple[str, str]]]:
    run = side.run
    read = [file for file in run.files if file.rank is not None]
    return f"{role}: {shorten(side.label, 60)}", [
        ("Runs", ", ".join(shorten(row.label, 40) for row in side.runs[:8])),
        ("GPU", run.gpu or "not recorded"),
        ("PyTorch", run.torch or "not recorded"),
        ("Ranks", f"{len(run.ranks_present)} of {run.world_size or len(run.ranks_present)}"),
        ("Parallelism", ", ".join(run.strategy) or "not recognised"),
        ("Files", f"{plural(len(read), 'file')} of the middle run"),
    ]
