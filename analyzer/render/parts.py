"""How much of a fix is enough? One sentence per curve, in time saved, since time adds up."""

from __future__ import annotations

from analyzer.render import gains, turns
from analyzer.render.format import NOT_MEASURABLE, multiple, percent
from analyzer.render.rank_tables import Grid, Head
from analyzer.render.sentences import scale_of
from analyzer.report.document import Finding, Gain, Report

MOST_CURVES = 3
# Of the full gain: nearly all, about in proportion, next to nothing.
_FULL, _NEARLY, _EVEN, _LITTLE = 0.98, 0.9, 0.05, 0.05
_PARTS = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half"}


def picked(report: Report) -> list[tuple[int, Finding]]:
    """Place and finding of the first whose gain was replayed in parts, each what-if once."""
    chosen: dict[str, tuple[int, Finding]] = {}
    for place, item in enumerate(report.findings, start=1):
        gain = item.gain
        if gain.curve and not gain.noise and gains.removed(gain.speedup) > 0:
            chosen.setdefault(item.whatif or item.id, (place, item))
    return list(chosen.values())[:MOST_CURVES]


def enough(report: Report, gain: Gain) -> str:
    """What part of the fix gives most of the gain; `gain` has a curve that rises."""
    base, scale = turns.base_ms(report), scale_of(report)
    curve = [(part, gains.removed(value)) for part, value in gain.curve]
    full = curve[-1][1]
    most = scale.ms(full * base)
    if full <= 0:
        return "No part of it gains anything."
    for part, saved in curve[:-1]:
        if saved >= _NEARLY * full:
            how = "the full gain" if saved >= _FULL * full else "nearly the full gain"
            given = f"{scale.bare(saved * base)} of {most}"
            return f"{_part(part)} of it already gives {how} ({given})."
    half = next((saved for part, saved in curve if part == 0.5), None)
    if half is None:
        return f"All of it gives {most}; parts were not replayed."
    given = f"{scale.bare(half * base)} of {most}"
    if half <= _LITTLE * full:
        return f"Half of it gives next to nothing ({given}): only all of it pays."
    if abs(half / full - 0.5) <= _EVEN:
        return f"Half of it gives half the gain ({given})."
    only = "only " if half < full / 2 else ""
    return f"Half of it gives {only}{percent(half / full)} of the gain ({given})."


def table(report: Report) -> Grid | None:
    """The points of the curves; None without any."""
    chosen = picked(report)
    if not chosen:
        return None
    sizes = sorted({part for _, item in chosen for part, _ in item.gain.curve})
    heads = [Head("finding"), Head("bottleneck", True), *(Head(percent(part)) for part in sizes)]
    rows = []
    for place, item in chosen:
        at = dict(item.gain.curve)
        cells = [multiple(at[part]) if part in at else NOT_MEASURABLE for part in sizes]
        rows.append([str(place), item.title, *cells])
    return Grid("Speedup when this part of the cause goes", heads, rows)


def _part(part: float) -> str:
    words = _PARTS.get(part, percent(part))
    return words[:1].upper() + words[1:]
