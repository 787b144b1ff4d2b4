"""How does the step shrink from fix to fix, and with part of one? A waterfall, small curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analyzer.render import gains
from analyzer.render.format import StepScale, shorten
from analyzer.render.svg import (
    INK,
    LINE,
    MUTED,
    defs,
    drawing,
    hatches,
    number,
    segment,
    text,
)
from analyzer.report.document import Gain

_WIDE, _LABEL, _VALUE, _ROW, _BAR = 760, 260, 88, 30, 20
_PANEL, _LEFT, _RIGHT, _TOP, _TALL = 320, 48, 16, 10, 130
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True, slots=True)
class Fall:
    """What an edit takes off, from the step before it to the step it leaves."""

    label: str
    class_: str
    before_ms: float
    after_ms: float


def waterfall(
    ident: str, falls: Sequence[Fall], *, title: str, desc: str, scale: StepScale
) -> Markup:
    """Today's step, each fall below the other, and what is left; `falls` has at least one."""
    base, left = falls[0].before_ms, falls[-1].after_ms
    longest = max([base, *(fall.after_ms for fall in falls)]) or 1.0
    pixels = (_WIDE - _LABEL - _VALUE) / longest
    parts = [defs(ident, hatches([fall.class_ for fall in falls]))]
    parts += _total("step today", base * pixels, scale.ms(base), 0)
    for row, fall in enumerate(falls, start=1):
        y = row * _ROW
        low, high = sorted((fall.before_ms, fall.after_ms))
        box = (_LABEL + low * pixels, y, (high - low) * pixels, _BAR)
        gone = fall.before_ms - fall.after_ms
        words = f"{'−' if gone > 0 else '+'}{scale.ms(abs(gone))}"
        parts += [_link(_LABEL + fall.before_ms * pixels, y), segment(ident, fall.class_, box)]
        parts += _words(shorten(f"{row}. {fall.label}", 42), words, y)
    end = len(falls) + 1
    parts.append(_link(_LABEL + left * pixels, end * _ROW))
    parts += _total("what is left", left * pixels, scale.ms(left), end)
    return drawing(
        ident, title, desc, height=end * _ROW + _BAR + 4, body="".join(parts), width=_WIDE
    )


def _words(label: str, value: str, y: float) -> list[str]:
    middle = y + _BAR / 2 + 4.5
    return [text(0, middle, label), text(_WIDE, middle, value, anchor="end", muted=True)]


def _total(label: str, width: float, value: str, row: int) -> list[str]:
    place = f'x="{_LABEL}" y="{row * _ROW}" width="{number(width)}" height="{_BAR}"'
    bar = f'<rect {place} fill="{MUTED}" class="m"/>'
    return [bar, *_words(label, value, row * _ROW)]


def _link(x: float, y: float) -> str:
    """The edge of a bar carried down to the next one."""
    return (
        f'<path d="M{number(x)} {number(y - _ROW + _BAR)}V{number(y)}" stroke="{MUTED}"'
        ' class="s-muted"/>'
    )


def levels(gains: Sequence[Gain]) -> list[float]:
    """Round speedups for one axis that holds every curve and interval of `gains`."""
    values = [1.0, *(value for gain in gains for _, value in gain.curve)]
    values += [value for gain in gains for value in (gain.lo, gain.hi) if value is not None]
    low, high = min(values), max(values)
    room = next((step for step in _STEPS if high - low <= 4 * step), (high - low) / 4)
    first, last = math.floor(low / room + 1e-9), math.ceil(high / room - 1e-9)
    return [room * at for at in range(first, max(last, first + 1) + 1)]


def part_curve(ident: str, gain: Gain, axis: Sequence[float], *, title: str, desc: str) -> Markup:
    """Speedup against the part of the cause that goes; dashed: if each part took off as much."""
    low, high = axis[0], axis[-1]

    def x(part: float) -> float:
        return _LEFT + (_PANEL - _LEFT - _RIGHT) * part

    def y(value: float) -> float:
        return _TOP + _TALL * (1 - (value - low) / (high - low))

    points = [(0.0, 1.0), *gain.curve]
    even = gains.removed(points[-1][1])
    straight = [(at / 20, 1 / (1 - even * at / 20)) for at in range(21)]
    parts = [_grid(y(value), f"{value:.{_digits(axis)}f}x") for value in axis]
    parts += [
        text(x(part), _TOP + _TALL + 20, f"{part:.0%}".replace("%", " %"), anchor=side, muted=True)
        for part, side in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
    parts.append(_line([(x(part), y(value)) for part, value in straight], MUTED, "s-muted", "3 4"))
    parts.append(_line([(x(part), y(value)) for part, value in points], INK, "s-ink", ""))
    parts += [
        f'<circle cx="{number(x(part))}" cy="{number(y(value))}" r="3.5" fill="{INK}"'
        ' class="f-ink"/>'
        for part, value in points
    ]
    if gain.lo is not None and gain.hi is not None:
        bounds = [(x(1.0), y(gain.lo)), (x(1.0), y(gain.hi))]
        parts.append(_line(bounds, INK, "s-ink", ""))
    return drawing(ident, title, desc, height=_TOP + _TALL + 28, body="".join(parts), width=_PANEL)


def _digits(axis: Sequence[float]) -> int:
    """Decimals that tell the levels of an axis apart."""
    return max(0, -math.floor(math.log10(axis[1] - axis[0]) + 1e-9))


def _grid(y: float, label: str) -> str:
    rule = f'<path d="M{_LEFT} {number(y)}H{_PANEL - _RIGHT}" stroke="{LINE}" class="l"/>'
    return rule + text(_LEFT - 8, y + 4.5, label, anchor="end", muted=True)


def _line(points: Sequence[tuple[float, float]], stroke: str, name: str, dash: str) -> str:
    spots = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    width = "1.2" if dash else "2.2"
    return (
        f'<polyline points="{spots}" fill="none" stroke="{stroke}" class="{name}"'
        f' stroke-width="{width}"{dashed}/>'
    )
