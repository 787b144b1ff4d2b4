"""Where do ranks differ, and what does each do during a step? Heat rows and rows of marks, as SVG.

A heat row has one cell per rank, darker for more time; a timeline has one thin bar per rank with
its stretches of one class, in ms from the start of the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from analyzer.render.format import LOOKS, clean, look, shorten
from analyzer.render.svg import (
    LINE,
    WIDTH,
    defs,
    drawing,
    hatches,
    legend,
    number,
    segment,
    shown_classes,
    text,
)

MAX_COLUMNS = 240
MOST_LABELS = 16
# Of the least in the row: a cell that can still be told from the page.
_PALEST = 0.12
_HEAT_LABEL, _HEAT_NOTE, _HEAT_ROW = 150, 250, 26
_LABEL = 72

HeatRow = tuple[str, Sequence[float], str]
Marks = Sequence[tuple[str, float, float]]


def heat_rows(
    ident: str,
    rows: Sequence[HeatRow],
    *,
    ranks: Sequence[int],
    floor: float,
    title: str,
    desc: str,
) -> Markup:
    """One row of cells per class (id, value of each rank, words at the end), palest at its least
    value and darkest at its largest, or at `floor` above the least so that small differences stay
    small; neighbours share a cell (the largest of them) beyond `MAX_COLUMNS`.
    """
    parts: list[str] = []
    for index, (class_id, values, note) in enumerate(rows):
        top = index * _HEAT_ROW
        parts.append(text(0, top + 15, shorten(look(class_id).label, 22)))
        parts.append(_cells(class_id, values, top, floor))
        parts.append(text(WIDTH, top + 15, note, anchor="end", muted=True))
    bottom = len(rows) * _HEAT_ROW
    parts.append(_rank_axis(ranks, bottom + 13))
    return drawing(ident, title, desc, height=bottom + 20, body="".join(parts))


def _cells(class_id: str, values: Sequence[float], top: float, floor: float) -> str:
    merged = -(-len(values) // MAX_COLUMNS)
    cells = [max(values[at : at + merged]) for at in range(0, len(values), merged)]
    wide, low = (WIDTH - _HEAT_LABEL - _HEAT_NOTE) / len(cells), min(values)
    span = max(max(values) - low, floor) or 1.0
    # cells meet on whole pixels, or seams would show between them
    edges = [round(_HEAT_LABEL + at * wide) for at in range(len(cells) + 1)]
    gap = 2 if len(cells) <= MOST_LABELS else 0
    # an outline cannot be shaded: such classes take the grey of their group
    name = class_id if class_id in LOOKS and look(class_id).hatch != "outline" else "launch"
    drawn = [
        f'<rect x="{edges[at]}" y="{number(top)}" width="{edges[at + 1] - edges[at] - gap}"'
        f' height="20" fill-opacity="{_PALEST + (1 - _PALEST) * (cell - low) / span:.2f}"/>'
        for at, cell in enumerate(cells)
    ]
    return (
        f'<g fill="{look(name).light}" class="c-{name}" shape-rendering="crispEdges">'
        f"{''.join(drawn)}</g>"
    )


def _rank_axis(ranks: Sequence[int], y: float) -> str:
    every = -(-len(ranks) // MOST_LABELS)
    wide = (WIDTH - _HEAT_LABEL - _HEAT_NOTE) / len(ranks)
    labels = [
        text(_HEAT_LABEL + (at + 0.5) * wide, y, str(ranks[at]), anchor="middle", muted=True)
        for at in range(0, len(ranks), every)
    ]
    return text(0, y, "rank", muted=True) + "".join(labels)


def timeline(ident: str, rows: Sequence[tuple[str, Marks]], *, title: str, desc: str) -> Markup:
    """One bar per row of (label, marks), all on one axis of milliseconds from zero."""
    classes = shown_classes([{name: end - start for name, start, end in m} for _, m in rows])
    key, top = legend(ident, [(name, look(name).label) for name in classes])
    longest = max((end for _, marks in rows for _, _, end in marks), default=0.0) or 1.0
    tall, gap = (26.0, 6.0) if len(rows) == 1 else (14.0, 4.0)
    bottom = top + len(rows) * (tall + gap)
    pixels = (WIDTH - _LABEL - 24) / longest
    parts = [defs(ident, hatches(classes)), key, _time_axis(longest, pixels, top, bottom)]
    for index, (label, marks) in enumerate(rows):
        y = top + index * (tall + gap)
        parts.append(text(0, y + tall / 2 + 4.5, shorten(clean(label), 12)))
        parts += [
            segment(ident, name, (_LABEL + start * pixels, y, (end - start) * pixels, tall))
            for name, start, end in marks
        ]
    return drawing(ident, title, desc, height=bottom + 22, body="".join(parts))


def _time_axis(longest: float, pixels: float, top: float, bottom: float) -> str:
    step = _round_step(longest)
    decimals = max(0, -math.floor(math.log10(step)))
    parts = []
    for index in range(int(longest / step * (1 + 1e-9)) + 1):
        x = number(_LABEL + index * step * pixels)
        parts.append(f'<path d="M{x} {number(top)}V{number(bottom)}" stroke="{LINE}" class="l"/>')
        words = f"{index * step:,.{decimals}f}{' ms' if index == 0 else ''}"
        parts.append(text(float(x), bottom + 15, words, anchor="middle", muted=True))
    return "".join(parts)


def _round_step(longest: float) -> float:
    """1, 2 or 5 times a power of ten, at most eight of which fit."""
    power = 10.0 ** math.floor(math.log10(longest / 8))
    return next(power * part for part in (1, 2, 5, 10) if longest / (power * part) <= 8)
