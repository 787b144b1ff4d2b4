"""One small picture a class: does its time fall, stay or grow with the GPUs? And the efficiency.

All panels share the axis of GPUs (log2); those of times share the axis of milliseconds, so that the
class to attack at the next size is the one that stands high on the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analyzer.render import several
from analyzer.render.format import LOOKS, look, percent, significant
from analyzer.render.svg import INK, LINE, MUTED, drawing, number, text
from analyzer.report.scaling import ScalingReport

MOST_PANELS = 9
_PANEL, _TALL, _TOP, _LEFT, _RIGHT = 320, 110, 10, 62, 12
Point = tuple[float, float]


@dataclass(frozen=True)
class _Panel:
    """`points` are dots, `line` joins what was fitted, `bars` are intervals (n, low, high)."""

    ident: str
    title: str
    desc: str
    points: Sequence[Point]
    line: Sequence[Point]
    bars: Sequence[tuple[float, float, float]]
    top: float
    low: float
    stroke: tuple[str, str]
    say: Callable[[float], str]


def panels(report: ScalingReport) -> list[tuple[str, str, Markup]]:
    """Heading, sentence and picture of every class that is more than a trifle."""
    scale = several.scale_of(report)
    last = report.points[-1]
    shown = [
        item
        for item in report.classes
        if max(ms / p.step_ms for (_, ms), p in zip(item.points, report.points, strict=True))
        >= 0.01
    ][:MOST_PANELS]
    found = []
    for item in shown:
        label = look(item.class_).label
        ms = item.points[-1][1]
        words = f"{scale.ms(ms)} on {last.n:,} GPUs, {percent(ms / last.step_ms)}; {item.trend}"
        hue = LOOKS.get(item.class_)
        panel = _Panel(
            ident=f"class-{item.class_}",
            title=f"{label} against the number of GPUs",
            desc=words,
            points=item.points,
            line=item.fit,
            bars=[],
            top=max(value for _, value in (*item.points, *item.fit)),
            low=0.0,
            stroke=(hue.light if hue else MUTED, f"c-{item.class_}" if hue else "m"),
            say=scale.bare,
        )
        found.append((label[:1].upper() + label[1:], f"{words}.", _draw(panel)))
    return found


def efficiency(report: ScalingReport) -> Markup:
    """Measured and predicted efficiency."""
    line = [(float(row.n), row.efficiency) for row in report.predict if row.efficiency]
    dots = [(float(p.n), p.efficiency) for p in report.points]
    return _draw(
        _Panel(
            ident="efficiency",
            title="Efficiency against the number of GPUs",
            desc="; ".join(f"{percent(value)} on {n:,.0f}" for n, value in dots),
            points=dots,
            line=line,
            bars=[],
            # What a law misses of the smallest run is no efficiency above one.
            top=max(1.0, *(value for _, value in dots)),
            low=0.0,
            stroke=(INK, "f-ink"),
            say=lambda value: f"{100 * value:.0f} %",
        )
    )


def fractions(report: ScalingReport) -> Markup | None:
    """The serial fraction at each size with its interval; None without two."""
    known = [(float(p.n), p.karp_flatt) for p in report.points if p.karp_flatt is not None]
    if len(known) < 2:
        return None
    bars = [
        (float(p.n), p.karp_flatt_lo, p.karp_flatt_hi)
        for p in report.points
        if p.karp_flatt_lo is not None and p.karp_flatt_hi is not None
    ]
    values = [value for _, value in known] + [v for _, lo, hi in bars for v in (lo, hi)]
    return _draw(
        _Panel(
            ident="fractions",
            title="Experimentally determined serial fraction against the number of GPUs",
            desc=several.fractions(report),
            points=known,
            line=known,
            bars=bars,
            top=max(0.0, *values),
            low=min(0.0, *values),
            stroke=(INK, "f-ink"),
            say=significant,
        )
    )


def _draw(panel: _Panel) -> Markup:
    sizes = [n for n, _ in (*panel.points, *panel.line)]
    first, last = math.log2(min(sizes)), math.log2(max(sizes))
    top = panel.top if panel.top > panel.low else panel.low + 1.0

    def x(n: float) -> float:
        part = (math.log2(n) - first) / ((last - first) or 1.0)
        return _LEFT + (_PANEL - _LEFT - _RIGHT) * part

    def y(value: float) -> float:
        return _TOP + _TALL * (1 - (value - panel.low) / (top - panel.low))

    parts = []
    for level in (panel.low, (panel.low + top) / 2, top):
        at = number(y(level))
        parts.append(f'<path d="M{_LEFT} {at}H{_PANEL - _RIGHT}" stroke="{LINE}" class="l"/>')
        label = "0" if level == 0 else panel.say(level)
        parts.append(text(_LEFT - 8, y(level) + 4.5, label, anchor="end", muted=True))
    for n in sorted(set(sizes)):
        side = "end" if n == max(sizes) else "middle"
        parts.append(text(x(n), _TOP + _TALL + 20, f"{n:,.0f}", anchor=side, muted=True))
    line = " ".join(f"{number(x(n))},{number(y(v))}" for n, v in panel.line)
    parts.append(
        f'<polyline points="{line}" fill="none" stroke="{MUTED}" class="s-muted"'
        ' stroke-width="1.5" stroke-dasharray="4 3"/>'
    )
    for n, low, high in panel.bars:
        parts.append(
            f'<path d="M{number(x(n))} {number(y(low))}V{number(y(high))}" stroke="{INK}"'
            ' class="s-ink" stroke-width="1.5"/>'
        )
    hue, name = panel.stroke
    parts += [
        f'<circle cx="{number(x(n))}" cy="{number(y(value))}" r="4" fill="{hue}" class="{name}"/>'
        for n, value in panel.points
    ]
    return drawing(
        panel.ident,
        panel.title,
        panel.desc,
        height=_TOP + _TALL + 28,
        body="".join(parts),
        width=_PANEL,
    )
