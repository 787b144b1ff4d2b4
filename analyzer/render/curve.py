"""How does speedup grow with GPUs? Curves on two log2 axes, so that ideal scaling is a straight
line and a ceiling is where the others leave it.

Solid lines reach four times the measured size; beyond it they are dashed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from analyzer.render.format import LOOKS, multiple
from analyzer.render.svg import (
    INK,
    LINE,
    MUTED,
    WIDTH,
    axis_value,
    drawing,
    number,
    standalone,
    text,
)
from analyzer.report.document import Scaling
from analyzer.report.scaling import ScalingReport

TRUSTED = 4
_LEFT, _RIGHT, _TOP, _TALL = 48, 232, 12, 300
_RED, _TEAL = LOOKS["comm_transfer"].light, LOOKS["copy"].light
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Axes:
    most_n: float
    low: float
    high: float
    first: float = 1.0

    @property
    def right(self) -> float:
        return WIDTH - _RIGHT

    def x(self, n: float) -> float:
        span = max(1.0, math.log2(self.most_n / self.first))
        return _LEFT + (self.right - _LEFT) * math.log2(n / self.first) / span

    def y(self, speedup: float) -> float:
        span = math.log2(self.high / self.low)
        return _TOP + _TALL * (1 - math.log2(min(speedup, self.high) / self.low) / span)


@dataclass(frozen=True, slots=True)
class _Line:
    label: str
    points: Sequence[Point]
    stroke: str
    name: str
    width: float
    dash: str = ""


def _axes(most_n: int, speedups: Sequence[float], limit: float | None) -> _Axes:
    top = max(2.0, *speedups) if limit is None else max(2.0, limit)
    high = 2.0 ** min(math.ceil(math.log2(top)) + 1, math.ceil(math.log2(max(2, most_n))))
    high = max(high, 2.0 ** math.ceil(math.log2(top * 1.05)))
    low = 2.0 ** math.floor(math.log2(min(1.0, *speedups)))
    return _Axes(most_n=most_n, low=low, high=high)


def _grid(axes: _Axes, ticks: Sequence[int]) -> list[str]:
    parts = []
    for power in range(int(math.log2(axes.low)), int(math.log2(axes.high)) + 1):
        y = axes.y(2.0**power)
        parts.append(
            f'<path d="M{_LEFT} {number(y)}H{number(axes.right)}" stroke="{LINE}" class="l"/>'
        )
        parts.append(text(_LEFT - 8, y + 4.5, axis_value(2.0**power), anchor="end", muted=True))
    base = _TOP + _TALL + 20
    parts += [text(axes.x(n), base, f"{n:,}", anchor="middle", muted=True) for n in ticks]
    middle = (_LEFT + axes.right) / 2
    parts.append(text(middle, _TOP + _TALL + 42, "GPUs", anchor="middle", muted=True))
    return parts


def _path(axes: _Axes, line: _Line, points: Sequence[Point], dash: str) -> str:
    if len(points) < 2:
        return ""
    spots = " ".join(f"{number(axes.x(n))},{number(axes.y(value))}" for n, value in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{spots}" fill="none" stroke="{line.stroke}" class="{line.name}"'
        f' stroke-width="{line.width:g}"{dashed}/>'
    )


def _inside(axes: _Axes, points: Sequence[Point]) -> list[Point]:
    """Points up to the top edge, the crossing of the edge included."""
    kept: list[Point] = []
    for n, value in points:
        if value > axes.high:
            if kept:
                before_n, before = kept[-1]
                part = math.log2(axes.high / before) / math.log2(value / before)
                kept.append((before_n * (n / before_n) ** part, axes.high))
            break
        kept.append((n, value))
    return kept


def _draw(axes: _Axes, lines: Sequence[_Line], trusted_n: float) -> list[str]:
    parts, ends = [], []
    for line in lines:
        points = _inside(axes, line.points)
        near = [point for point in points if point[0] <= trusted_n]
        far = [point for point in points if point[0] >= (near[-1][0] if near else 0)]
        parts.append(_path(axes, line, near, line.dash))
        parts.append(_path(axes, line, far, line.dash or "6 5"))
        if points and points[-1][0] >= axes.most_n:
            ends.append((axes.y(points[-1][1]), line))
        elif points:
            x, y = axes.x(points[-1][0]), axes.y(points[-1][1])
            parts.append(text(x + 8, y + 13, line.label, muted=True))
    below = -math.inf
    for y, line in sorted(ends, key=lambda end: end[0]):
        below = max(y + 4.5, below + 18)
        parts.append(text(axes.right + 10, below, line.label))
    return parts


def _figure(
    ident: str,
    lines: Sequence[_Line],
    *,
    axes: _Axes,
    ticks: Sequence[int],
    trusted_n: float,
    marks: Sequence[str],
    words: tuple[str, str],
) -> Markup:
    body = [*_grid(axes, ticks), *_draw(axes, lines, trusted_n), *marks]
    title, desc = words
    return drawing(ident, title, desc, height=_TOP + _TALL + 52, body="".join(body))


def _ceiling(limit: float | None, most_n: int) -> list[_Line]:
    if limit is None:
        return []
    label = f"ceiling {multiple(limit)}"
    return [_Line(label, [(1, limit), (most_n, limit)], _RED, "s-comm_transfer", 1.5, "2 4")]


def scaling_curve(ident: str, scaling: Scaling, *, desc: str) -> Markup:
    """Ideal, this trace's prediction, Amdahl's law and the ceiling over one GPU; the measured size
    is a dot. `scaling.predict` has at least one row.
    """
    rows = scaling.predict
    most = max(row.n for row in rows)
    limit = scaling.ceiling_one_gpu.value
    amdahl = [(row.n, row.amdahl) for row in rows if row.amdahl is not None]
    values = [row.speedup for row in rows] + [value for _, value in amdahl]
    axes = _axes(most, values, limit)
    trusted = TRUSTED * scaling.n
    lines = [
        _Line("ideal", [(row.n, row.n) for row in rows], MUTED, "s-muted", 1.2, "2 3"),
        *_ceiling(limit, most),
        _Line("Amdahl's law", amdahl, _TEAL, "s-copy", 1.5),
        _Line("this job, predicted", [(row.n, row.speedup) for row in rows], INK, "s-ink", 2.5),
    ]
    marks = []
    if scaling.speedup is not None and scaling.n <= most:
        x, y = axes.x(scaling.n), axes.y(scaling.speedup)
        marks.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="5" fill="{INK}" class="f-ink"/>'
        )
        words = f"{multiple(scaling.speedup)} on {scaling.n} (this run)"
        # Beside the base line the words would lie on the axis, at the right on the legend.
        low, late = y > _TOP + _TALL - 40, x > axes.right - 150
        anchor, shift = ("end", -10) if late else ("start", 10)
        marks.append(text(x + shift, y - 10 if low else y + 20, words, anchor=anchor))
    return _figure(
        ident,
        lines,
        axes=axes,
        ticks=_apart([row.n for row in rows]),
        trusted_n=trusted,
        marks=marks,
        words=("Speedup over one GPU against the number of GPUs", desc),
    )


def two_curves(ident: str, before: Scaling, after: Scaling, *, desc: str) -> Markup | None:
    """What is predicted of two runs, each over its own one GPU; None unless both are predicted."""
    if min(len(before.predict), len(after.predict)) < 2:
        return None
    most = min(before.predict[-1].n, after.predict[-1].n)
    old, new = (
        [(row.n, row.speedup) for row in scaling.predict if row.n <= most]
        for scaling in (before, after)
    )
    ceilings = [(scaling.ceiling_one_gpu.value, scaling) for scaling in (before, after)]
    known = [value for value, _ in ceilings if value is not None]
    values = [value for _, value in (*old, *new)]
    axes = _axes(most, values, max(known) if len(known) == len(ceilings) else None)
    lines = [_Line("ideal", [(1, 1), (most, most)], MUTED, "s-muted", 1.2, "2 3")]
    styles = ((_TEAL, "s-copy", "before"), (INK, "s-ink", "after"))
    for (limit, _), (stroke, name, side) in zip(ceilings, styles, strict=True):
        if limit is not None:
            label = f"ceiling {side} {multiple(limit)}"
            lines.append(_Line(label, [(1, limit), (most, limit)], stroke, name, 1.2, "2 4"))
    lines.append(_Line("before, predicted", old, _TEAL, "s-copy", 2.5))
    lines.append(_Line("after, predicted", new, INK, "s-ink", 2.5))
    return _figure(
        ident,
        lines,
        axes=axes,
        ticks=_apart([row.n for row in after.predict if row.n <= most]),
        trusted_n=TRUSTED * min(before.n, after.n),
        marks=[],
        words=("Speedup over one GPU against the number of GPUs, before and after", desc),
    )


def series_curve(ident: str, report: ScalingReport, *, name: str, desc: str) -> Markup | None:
    """Measured sizes with their intervals, the law `name` with its range, and ideal scaling, over
    the smallest run; None without a law. Beyond four times the largest run it is dashed.
    """
    rows = [row for row in report.predict if row.speedup is not None]
    if len(rows) < 2:
        return None
    most, base = max(row.n for row in rows), report.base
    values = [row.speedup or 1.0 for row in rows] + [p.speedup for p in report.points]
    axes = replace(_axes(-(-most // base), values, None), most_n=most, first=base)
    low, high = [], []
    for row in rows:
        if row.step_ms and row.lo and row.hi and row.speedup:
            low.append((float(row.n), row.speedup * row.step_ms / row.hi))
            high.append((float(row.n), row.speedup * row.step_ms / row.lo))
    law = [(float(row.n), row.speedup or 1.0) for row in rows]
    lines = [
        _Line("ideal", [(row.n, row.n / base) for row in rows], MUTED, "s-muted", 1.2, "2 3"),
        _Line(name, law, INK, "s-ink", 2.2),
    ]
    spots = " ".join(
        f"{number(axes.x(n))},{number(axes.y(max(axes.low, v)))}" for n, v in [*high, *low[::-1]]
    )
    band = f'<polygon points="{spots}" fill="{MUTED}" fill-opacity="0.22" class="m"/>'
    return _figure(
        ident,
        lines,
        axes=axes,
        ticks=_apart([row.n for row in rows]),
        trusted_n=TRUSTED * report.points[-1].n,
        marks=[band, *_measured(axes, report)],
        words=(f"Speedup over {base:,} GPUs against the number of GPUs", desc),
    )


def _measured(axes: _Axes, report: ScalingReport) -> list[str]:
    marks = []
    for point in report.points:
        x = number(axes.x(point.n))
        if point.lo and point.hi:
            ends = [axes.y(point.speedup * point.step_ms / edge) for edge in (point.lo, point.hi)]
            marks.append(
                f'<path d="M{x} {number(ends[0])}V{number(ends[1])}" stroke="{INK}" class="s-ink"'
                ' stroke-width="1.5"/>'
            )
        marks.append(
            f'<circle cx="{x}" cy="{number(axes.y(point.speedup))}" r="4.5" fill="{INK}"'
            ' class="f-ink"/>'
        )
    return marks


def _apart(sizes: Sequence[int]) -> list[int]:
    """Sizes whose labels do not touch: powers of two, and others that are not beside one."""
    powers = {n for n in sizes if n & (n - 1) == 0}
    beside = {n for n in sizes if any(0.6 < n / p < 1.7 for p in powers if p != n)}
    return [n for n in sizes if n in powers or n not in beside]


def laws_curve(rows: Sequence[tuple[int, float, float]], limit: float | None) -> str:
    """An SVG file of Amdahl and Gustafson over `(n, amdahl, gustafson)`, with Amdahl's limit (None:
    unbounded).
    """
    most = max(n for n, _, _ in rows)
    axes = _axes(most, [value for _, *pair in rows for value in pair], None)
    lines = [
        _Line("ideal", [(n, n) for n, _, _ in rows], MUTED, "s-muted", 1.2, "2 3"),
        *_ceiling(limit, most),
        _Line("Amdahl", [(n, amdahl) for n, amdahl, _ in rows], INK, "s-ink", 2.5),
        _Line("Gustafson", [(n, scaled) for n, _, scaled in rows], _TEAL, "s-copy", 2),
    ]
    title = "Speedup by Amdahl's and Gustafson's laws against the number of GPUs"
    desc = f"Amdahl's law ends at {multiple(limit)}."
    figure = _figure(
        "laws",
        lines,
        axes=axes,
        ticks=[n for n, _, _ in rows],
        trusted_n=math.inf,
        marks=[],
        words=(title, desc),
    )
    return standalone(figure)
