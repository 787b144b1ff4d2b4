"""What does the page say? The whole report as one HTML file without scripts or references.

The templates hold the words and the order; this file prepares the charts and tables they place.
Every printed string is cleaned of control characters and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analyzer.render import (
    between_ranks,
    charts,
    gains,
    parts,
    path_words,
    plan_words,
    rank_tables,
    sentences,
    svg,
    turns,
)
from analyzer.render import format as form
from analyzer.render.curve import TRUSTED
from analyzer.render.format import StepScale
from analyzer.report.document import Report
from analyzer.report.part import Part

MOST_FINDINGS = 8
MOST_FILES = 64
LOUD = ("error", "warning")
TABLES = rank_tables.TABLES | {
    "in_turn": turns.in_turn,
    "edits": turns.every,
    "parts": parts.table,
    "path_classes": path_words.classes,
    "path_ranks": path_words.ranks,
    "path_places": path_words.places,
}
# A line never ends between a number and its unit.
_UNIT = re.compile(r"(?<=\d) (?=(%|ms|µs)(?!\w))")


class Row(NamedTuple):
    """A line of a table of times; `total` sets it in bold."""

    label: str
    ms: Mapping[str, float]
    step_ms: float
    hidden_ms: float = 0.0
    total: bool = False


def render(report: Report) -> str:
    """The page; the same report gives the same bytes."""
    return environment(sentences.scale_of(report)).get_template("report.html").render(_view(report))


def cell(report: Report) -> str:
    """What a notebook shows of a report: verdict, step by class, findings, loud caveats."""
    loud = [item for item in report.quality if item.severity in LOUD]
    template = environment(sentences.scale_of(report)).get_template("cell.html")
    return template.render(report=report, chart=charts.where(report), loud=loud)


def environment(scale: StepScale) -> Environment:
    """The templates with the words and numbers of one scale."""
    package = Path(__file__).resolve().parents[1]
    env = Environment(
        # a wheel carries the templates inside the package, an editable install beside it
        loader=FileSystemLoader([package / "templates", package.parent / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("significant", "percent", "multiple", "count", "plural", "data_size", "duration")
    env.filters.update(
        {name: getattr(form, name) for name in (*names, "worth", "clean", "shorten")}
    )
    env.filters.update(ms=scale.ms, bare=scale.bare)
    env.globals.update(look=form.look, say=sentences, between=between_ranks, scale=scale)
    env.globals.update(gains=gains, turns=turns, path_words=path_words, plan_words=plan_words)
    return env


def _printable(value: object) -> object:
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNIT.sub("\u00a0", form.clean(value))


def _view(report: Report) -> dict[str, Any]:
    findings = report.findings[:MOST_FINDINGS]
    view = {
        "report": report,
        "scaling": report.scaling,
        "plan": report.plan,
        "findings": findings,
        "first_noise": gains.first_noise(findings),
        "bars": charts.gain_bars(findings),
        "lowering": {item.id for item in findings if sentences.lowers_ceiling(report, item)},
        "noise": form.NOISE,
        "wording": form.WORDING,
        "loud": sorted(
            (item for item in report.quality if item.severity in LOUD),
            key=lambda item: LOUD.index(item.severity),
        ),
        "quiet": [item for item in report.quality if item.severity not in LOUD],
        "trusted": TRUSTED,
        "with_laws": any(row.amdahl is not None for row in report.scaling.predict),
        "with_duration": any(row.duration_s is not None for row in report.scaling.predict),
        "dark_rules": svg.dark_rules(),
        "embedded": embedded(report),
        "charts": charts.charts(report),
        "curves": charts.part_curves(report),
        "tables": {name: make(report) for name, make in TABLES.items()},
    }
    return view | _tables(report) | _inputs(report)


def _tables(report: Report) -> dict[str, Any]:
    parts = report.breakdown
    classes = svg.shown_classes([parts.measured, *(row.measured for row in parts.per_rank)])
    total = sum(parts.measured.values())
    picked = charts.picked_ranks(report)
    columns = charts.step_columns(report)
    merged = len(columns) < len(parts.per_step)
    return {
        "classes": classes,
        "empty_classes": [form.look(name).label for name in parts.measured if name not in classes],
        "rank_rows": [
            Row("all ranks", parts.measured, total, parts.hidden_comm_ms or 0.0, total=True),
            *(
                Row(words, row.measured, row.step_ms, row.hidden_comm_ms or 0.0)
                for words, row in picked
            ),
        ],
        "rows_note": " The other ranks are in the embedded report.json."
        if len(picked) < len(parts.per_rank)
        else "",
        "step_classes": svg.shown_classes([ms for _, ms in columns]),
        "step_rows": [Row(words, ms, sum(ms.values())) for words, ms in columns],
        "steps_note": " Each row is the mean of neighbouring steps." if merged else "",
    }


def _inputs(report: Report) -> dict[str, Any]:
    run, flags = report.run, report.run.flags
    skipped = [file for file in run.files if file.rank is None]
    read = [file for file in run.files if file.rank is not None]
    sentence = f"{form.plural(len(read), 'file')} read"
    switches = {
        "with_stack": flags.with_stack,
        "profile_memory": flags.profile_memory,
        "record_shapes": flags.record_shapes,
    }
    spoken = {True: "on", False: "off", None: "not recorded"}
    facts = [
        ("GPU", run.gpu or "not recorded"),
        ("Backend", run.backend or "not recorded"),
        ("PyTorch", run.torch or "not recorded"),
        ("Hosts", ", ".join(run.hosts[:8]) or "not recorded"),
        ("Parallelism", ", ".join(run.strategy) or "not recognised"),
        ("Profiler flags", ", ".join(f"{name} {spoken[on]}" for name, on in switches.items())),
        ("Written by", f"{report.tool.name} {report.tool.version}, {report.created}"),
    ]
    return {
        "inputs_sentence": f"{sentence}, {len(skipped)} skipped.",
        "facts": facts,
        "files": [*skipped, *read][:MOST_FILES],
    }


def embedded(report: Part) -> Markup:
    """The document as ASCII JSON without markup characters, so that no name in it ends it early."""
    text = msgspec.json.encode(report).decode()
    return Markup(re.sub(r"[^ -~]|[<>&]", _unicode_escape, text))


def _unicode_escape(found: re.Match[str]) -> str:
    digits = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4))
