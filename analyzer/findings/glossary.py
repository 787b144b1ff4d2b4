"""What does an id in a report mean? What `ceiling explain` says, kept as data in glossary.toml."""

from __future__ import annotations

import difflib
import textwrap
from functools import cache
from importlib import resources

import msgspec

from analyzer.classify.idle import CAUSES
from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.errors import UsageError

WIDTH = 80
_EDIT_FORMULA = "speedup = step / step with the edit; from replay, or else from shares"
_EDIT_LIMITS = "From shares: what else would take its place, and what waits for it."
_CAVEAT_FORMULA = "told where the data show it"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An id: what it is and of what it is a part, how it is computed, what does not follow, what to
    do. `thresholds` names the fields of Thresholds that it is judged by.
    """

    id: str
    kind: str
    title: str
    meaning: str
    formula: str
    limits: str
    action: str
    thresholds: tuple[str, ...] = ()


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry as it is written; what a whole kind has in common is left out there."""

    title: str
    action: str
    meaning: str = ""
    formula: str = ""
    limits: str = ""
    thresholds: tuple[str, ...] = ()


@cache
def entries() -> dict[str, Entry]:
    """All entries by id: classes, groups, findings, causes, edits, methods, measures, caveats."""
    text = resources.files("analyzer.findings").joinpath("glossary.toml").read_bytes()
    kinds = msgspec.toml.decode(text, type=dict[str, dict[str, _Row]])
    return {id: _entry(id, kind, row) for kind, rows in kinds.items() for id, row in rows.items()}


def _entry(id: str, kind: str, row: _Row) -> Entry:
    meaning, formula, limits = row.meaning, row.formula, row.limits
    if kind == "cause":
        cause = CAUSES[id]
        text = f"{cause.text[0].upper()}{cause.text[1:]}."
        meaning = f"{text} Idle time of the device, part of the class {cause.time_class}."
        formula = formula or f"idle time in which {cause.text}"
    elif kind == "edit":
        formula, limits = formula or _EDIT_FORMULA, limits or _EDIT_LIMITS
    elif kind == "caveat":
        formula = formula or _CAVEAT_FORMULA
    return Entry(
        id=id,
        kind=kind,
        title=row.title,
        meaning=meaning,
        formula=formula,
        limits=limits,
        action=row.action,
        thresholds=row.thresholds,
    )


def entry(id: str) -> Entry:
    """The entry of an id; UsageError with the nearest ids when there is none."""
    known = entries()
    if id not in known:
        near = difflib.get_close_matches(id.lower().replace(" ", "-"), known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`ceiling explain` lists all ids."
        raise UsageError(f"nothing is called {id!r}", hint)
    return known[id]


def explain(id: str | None, limits: Thresholds = DEFAULT_THRESHOLDS) -> str:
    """The text of `ceiling explain`: one entry, or without an id all ids by kind."""
    return _listing() if id is None else _text(entry(id), limits)


def _text(found: Entry, limits: Thresholds) -> str:
    values, sources = limits.as_dict(), Thresholds.sources()
    lines = [f"{found.id} ({found.kind}): {found.title}", ""]
    lines += _paragraph("", found.meaning)
    lines += _paragraph("How: ", found.formula)
    for name in found.thresholds:
        lines += _paragraph(f"{name} = {values[name]:g}: ", sources[name])
    lines += _paragraph("Does not say: ", found.limits)
    lines += _paragraph("What to do: ", found.action)
    return "\n".join(lines) + "\n"


def _paragraph(label: str, text: str) -> list[str]:
    return textwrap.wrap(label + text, WIDTH, subsequent_indent="  " if label else "")


def _listing() -> str:
    lines: list[str] = []
    width = max(map(len, entries()))
    kind = ""
    for item in entries().values():
        if item.kind != kind:
            kind = item.kind
            lines += ["", f"{kind}:"] if lines else [f"{kind}:"]
        lines.append(f"  {item.id:{width}}  {item.title}")
    return "\n".join(lines) + "\n"
