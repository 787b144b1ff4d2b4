"""Why do the printed parts add up to the printed whole? Rounding that keeps sums.

Each number is a whole count of the last digit shown. Parts are rounded to the nearest; what the
whole then lacks goes to parts that were rounded the other way, the least telling first, and never
to one that shows nothing. So no part is off by a whole digit.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.render.format import StepScale

MINUS = "\u2212"


def units(value: float, scale: StepScale) -> int:
    """The value as it is printed, in units of its last digit."""
    return int(f"{value:.{scale.decimals}f}".replace(".", ""))


def apportioned(parts: Mapping[str, float], whole: float, scale: StepScale) -> dict[str, int]:
    """The parts, the most telling first, in units of the last digit; they add up to the printed
    whole.
    """
    exact = {name: value * 10**scale.decimals for name, value in parts.items()}
    found = {name: units(value, scale) for name, value in parts.items()}
    lacking = units(whole, scale) - sum(found.values())
    sign = 1 if lacking > 0 else -1
    shown = [name for name in reversed(found) if found[name]]
    order = [name for name in shown if sign * (exact[name] - found[name]) > 0]
    order += [name for name in shown if name not in order]
    for turn in range(abs(lacking)):
        if order:
            found[order[turn % len(order)]] += sign
    return found


def written(count: int, scale: StepScale) -> str:
    """A count of units as milliseconds without unit."""
    return f"{count / 10**scale.decimals:,.{scale.decimals}f}"


def change(count: int, scale: StepScale) -> str:
    """The same with its sign; no sign for no change."""
    sign = "+" if count > 0 else MINUS if count < 0 else ""
    return sign + written(abs(count), scale)


def signed(value: float | None, scale: StepScale) -> str:
    """Milliseconds with a sign; empty for None."""
    return "" if value is None else change(units(value, scale), scale)
