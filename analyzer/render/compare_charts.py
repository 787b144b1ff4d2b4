"""Which pictures show a comparison? Two stacked bars on one axis, and the fall between them.

Where little moved beside a long step the fall is drawn on a cut axis, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from analyzer.render import compare_words as say
from analyzer.render.adding import change
from analyzer.render.curve import two_curves
from analyzer.render.format import StepScale, look, shorten
from analyzer.render.svg import (
    INK,
    MUTED,
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
from analyzer.report.comparison import Comparison, Side

_LABEL, _VALUE, _TALL, _GAP = 112, 88, 30, 10
_WIDE, _NAMES, _WORDS, _ROW, _BAR = 860, 170, 250, 30, 18
# Of the step: a fall smaller than this is drawn on a cut axis.
_SMALL = 0.25
_MOST_ROWS = 10


def bars(comparison: Comparison) -> Markup | None:
    """Both steps by class, one above the other on one axis; None without times."""
    sides = (("before", comparison.before), ("after", comparison.after))
    longest = max(sum(side.breakdown.measured.values()) for _, side in sides)
    if longest <= 0:
        return None
    scale = say.scale_of(comparison)
    classes = shown_classes([side.breakdown.measured for _, side in sides])
    entries = [(name, look(name).label) for name in classes]
    key, y = legend("sides-chart", entries)
    pixels = (WIDTH - _LABEL - _VALUE) / longest
    parts = [defs("sides-chart", hatches(classes)), key]
    for role, side in sides:
        parts += _stack(role, side, classes, y, pixels)
        parts.append(
            text(
                WIDTH,
                y + _TALL / 2 + 4.5,
                scale.ms(side.steps.wall_ms.mean),
                anchor="end",
                muted=True,
            )
        )
        y += _TALL + _GAP
    return drawing(
        "sides-chart",
        "Step time by class, before and after",
        comparison.verdict.text,
        height=y,
        body="".join(parts),
    )


def _stack(role: str, side: Side, classes: Sequence[str], y: float, pixels: float) -> list[str]:
    parts = [text(0, y + _TALL / 2 + 4.5, role)]
    x = float(_LABEL)
    for name in classes:
        width = side.breakdown.measured.get(name, 0.0) * pixels
        if width > 0:
            parts.append(segment("sides-chart", name, (x, y, width, _TALL)))
        x += width
    return parts


def curves(comparison: Comparison) -> Markup | None:
    """What is predicted of both sides on more GPUs; None unless both were predicted."""
    if not comparison.waterfall:
        return None
    return two_curves(
        "both-chart",
        comparison.before.scaling,
        comparison.after.scaling,
        desc=say.fractions(comparison),
    )


def waterfall(comparison: Comparison) -> Markup | None:
    """From the step before, class by class, to the step after; None where nothing was compared."""
    rows = say.lines(comparison)
    if not rows:
        return None
    scale = say.scale_of(comparison)
    told = [row for row in rows if row.delta][:_MOST_ROWS]
    rest = [row for row in rows if row not in told]
    base, end = (side.steps.wall_ms.mean for side in (comparison.before, comparison.after))
    levels = [base]
    for row in told:
        levels.append(levels[-1] + row.bar.delta_ms)
    reach = [*levels, end, *_ends(comparison, told, levels)]
    low, high = _axis(reach, base)
    pixels = (_WIDE - _NAMES - _WORDS) / (high - low)

    def x(value: float) -> float:
        return _NAMES + (min(max(value, low), high) - low) * pixels

    first, last, total = say.total(comparison)
    parts = [defs("fall-chart", hatches([row.bar.class_ for row in told]))]
    parts += _total("before", x(base), f"{first} ms", 0)
    for place, row in enumerate(told, start=1):
        start, stop = levels[place - 1], levels[place]
        y = float(place * _ROW)
        left, right = sorted((x(start), x(stop)))
        parts.append(_link(x(start), y))
        parts.append(segment("fall-chart", row.bar.class_, (left, y, max(right - left, 1.0), _BAR)))
        if row.bar.lo is not None and row.bar.hi is not None:
            parts.append(_whisker(x(start + row.bar.lo), x(start + row.bar.hi), y))
        parts += _words(row.label, _change(row, scale), y)
    place = len(told) + 1
    if rest and sum(row.delta for row in rest):
        words = f"{change(sum(row.delta for row in rest), scale)} ms"
        parts += [_link(x(levels[-1]), place * _ROW), *_words("the rest", words, place * _ROW)]
        place += 1
    parts.append(_link(x(end), place * _ROW))
    parts += _total("after", x(end), f"{last} ms ({total})", place)
    bottom = place * _ROW + _BAR + 4.0
    if low > 0:
        parts.append(text(_NAMES, bottom + 14, f"axis begins at {scale.ms(low)}", muted=True))
        bottom += 20
    return drawing(
        "fall-chart",
        "What changed the step, by class",
        say.why(comparison),
        height=bottom,
        body="".join(parts),
        width=_WIDE,
    )


def _ends(comparison: Comparison, told: Sequence[say.Line], levels: Sequence[float]) -> list[float]:
    """Ends of the intervals, as far as they are not longer than the step itself."""
    base = comparison.before.steps.wall_ms.mean
    found = []
    for row, start in zip(told, levels, strict=False):
        found += [
            start + end for end in (row.bar.lo, row.bar.hi) if end is not None and abs(end) < base
        ]
    return found


def _axis(reach: Sequence[float], base: float) -> tuple[float, float]:
    """Ends of the axis: from zero, or cut where all that moved is small beside the step."""
    low, high = min(reach), max(reach)
    if high - low < _SMALL * base:
        room = max(high - low, 0.02 * base)
        return max(0.0, low - room), high + 0.05 * room
    return 0.0, high


def _change(row: say.Line, scale: StepScale) -> str:
    bounds = say.interval(row.bar, scale)
    mark = f" {say.UNSURE}" if say.unsure(row.bar) else ""
    return f"{change(row.delta, scale)} ms" + (f" ({bounds})" if bounds else "") + mark


def _words(label: str, value: str, y: float) -> list[str]:
    middle = y + _BAR / 2 + 4.5
    return [
        text(0, middle, shorten(label, 26)),
        text(_WIDE, middle, value, anchor="end", muted=True),
    ]


def _total(label: str, to: float, value: str, row: int) -> list[str]:
    place = f'x="{_NAMES}" y="{row * _ROW}" width="{number(to - _NAMES)}" height="{_BAR}"'
    return [f'<rect {place} fill="{MUTED}" class="m"/>', *_words(label, value, row * _ROW)]


def _link(x: float, y: float) -> str:
    return (
        f'<path d="M{number(x)} {number(y - _ROW + _BAR)}V{number(y)}" stroke="{MUTED}"'
        ' class="s-muted"/>'
    )


def _whisker(left: float, right: float, y: float) -> str:
    """The 95 % interval of where the bar ends."""
    middle = number(y + _BAR / 2)
    ends = "".join(f"M{number(at)} {number(y + 5)}V{number(y + _BAR - 5)}" for at in (left, right))
    place = f'd="M{number(left)} {middle}H{number(right)}{ends}" fill="none"'
    # a light edge, so that the line is seen on a dark bar
    return (
        f'<path {place} stroke="#FFF" stroke-width="3" class="h"/>'
        f'<path {place} stroke="{INK}" class="s-ink"/>'
    )
