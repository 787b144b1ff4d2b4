"""Does a run pass what a project demands of it? Conditions such as step_ms>105 or slower:5%.

A gate says what must not be. It is judged by the end of the interval that is nearest to passing, so
noise alone fails nobody; without an interval by the value itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.errors import UsageError
from analyzer.findings.detectors import CATALOGUE
from analyzer.report.comparison import Comparison, Gate
from analyzer.report.document import Breakdown, Estimate, Report, Scaling, Steps
from analyzer.scaling.difference import DECIDING_STEPS
from analyzer.scaling.serial import half_width

COMPARED = ("slower", "faster")
_MEASURES = ("step_ms", "f", "s", "serial_fraction", "ceiling_today", "ceiling_one_gpu")
NAMES = (*_MEASURES, "efficiency", "gain", *CLASSES, *GROUPS, *CATALOGUE)
_CONDITION = re.compile(r"\s*([A-Za-z][\w-]*)\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*(%|ms|x)?\s*")
_AGAINST = re.compile(r"\s*(slower|faster)\s*:\s*(\d+(?:\.\d+)?)\s*(%|ms)\s*")
_HOW = "write step_ms>105, exposed-communication>15%, gain>10%, or in a comparison slower:5%"
_FLIPPED: dict[str, Callable[[float, float], bool]] = {
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
}


@dataclass(frozen=True)
class Condition:
    """What must not be: `name` compared with `limit` (a fraction where `unit` is %)."""

    text: str
    name: str
    sign: str
    limit: float
    unit: str

    @property
    def compared(self) -> bool:
        """Whether it needs a run before."""
        return self.name in COMPARED


@dataclass(frozen=True)
class Demand:
    """A condition and what happens when it is met: level fail or warn."""

    condition: Condition
    level: str


@dataclass(frozen=True)
class Value:
    """A number that a gate can name, with its interval, in its own unit: ms, x or none.

    `whole` is what a percentage of it refers to; None where % is the number's own unit. `reason`
    says why there is no value.
    """

    value: float | None
    lo: float | None = None
    hi: float | None = None
    unit: str = ""
    whole: float | None = None
    reason: str = "not measurable"


def condition(text: str) -> Condition:
    """The condition that a text states; ValueError with how to write one."""
    found = _AGAINST.fullmatch(text)
    if found is not None:
        name, number, unit = found.groups()
        return Condition(text.strip(), name, ">", _scaled(number, unit), unit)
    found = _CONDITION.fullmatch(text)
    if found is None or found[1] in COMPARED:
        raise ValueError(f"{text!r} is no gate: {_HOW}")
    name, sign, number, unit = found.groups()
    return Condition(text.strip(), name, sign, _scaled(number, unit), unit or "")


def configured(text: str, level: str) -> Condition:
    """A condition of the configuration; UsageError with how to write one."""
    try:
        return condition(text)
    except ValueError as error:
        raise UsageError(f"{level}_on in [tool.ceiling]: {error}") from error


def _scaled(number: str, unit: str | None) -> float:
    return float(number) / 100.0 if unit == "%" else float(number)


def check(demands: Sequence[Demand], *, compared: bool) -> None:
    """UsageError for a name that is neither a measure, a time class nor a finding's id, and for
    slower and faster where no run before is given.
    """
    for demand in demands:
        asked = demand.condition
        if asked.compared and not compared:
            raise UsageError(
                f"{asked.text!r} needs a run before", "compare two runs, or pass --baseline"
            )
        if not asked.compared and asked.name not in NAMES:
            near = difflib.get_close_matches(asked.name, [*NAMES, *COMPARED], n=3, cutoff=0.5)
            raise UsageError(
                f"{asked.text!r}: nothing is called {asked.name!r}",
                f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(NAMES)}",
            )


def judge(demands: Sequence[Demand], found: Report | Comparison) -> list[Gate]:
    """Every demand on a report, or on the side after of a comparison; names are checked before."""
    values = _of_comparison(found) if isinstance(found, Comparison) else _of_report(found)
    return [_judged(demand, values) for demand in demands]


def _judged(demand: Demand, values: Mapping[str, Value]) -> Gate:
    asked = demand.condition
    # what a report does not have takes no time in it: a finding that is none, a class of later
    value = _in_unit(asked, values.get(asked.name, Value(0.0, unit="ms", whole=1.0)))
    up = asked.sign.startswith(">")
    end = value.lo if up else value.hi
    judged = value.value if end is None else end
    met = judged is not None and _FLIPPED[asked.sign](judged, asked.limit)
    opposite = {">": "at most", ">=": "below", "<": "at least", "<=": "above"}[asked.sign]
    return Gate(
        expression=asked.text,
        level=demand.level,
        passed=not met,
        expected=f"{opposite} {_written(asked.limit, value.unit)}",
        found=_found(value, end),
    )


def _found(value: Value, end: float | None) -> str:
    if value.value is None:
        return value.reason
    text = _written(value.value, value.unit)
    if end is None:
        return f"{text}, no interval"
    return f"{text}, judged by the near end of its interval, {_written(end, value.unit)}"


def _in_unit(asked: Condition, value: Value) -> Value:
    """The value in the unit of the limit: a part of the whole for %."""
    if asked.unit == "%":
        if value.unit in ("%", ""):
            return Value(value.value, value.lo, value.hi, "%")
        if value.whole:
            ends = (value.value, value.lo, value.hi)
            share, lo, hi = (None if end is None else end / value.whole for end in ends)
            return Value(share, lo, hi, "%", reason=value.reason)
    elif asked.unit in ("", value.unit):
        return value
    raise UsageError(
        f"{asked.text!r}: {asked.name} is not measured in {asked.unit}",
        f"leave the unit out, or write {value.unit or '%'}",
    )


def _written(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.1f} %"
    text = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{text}x" if unit == "x" else f"{text} {unit}".strip()


def _of_report(report: Report) -> dict[str, Value]:
    step = report.steps.wall_ms.mean
    values = _measures(report.steps, report.breakdown, report.scaling)
    values |= {item.id: Value(item.ms, unit="ms", whole=step) for item in report.findings}
    gains = [(g.speedup, g.lo, g.hi) for g in (item.gain for item in report.findings)]
    return values | {"gain": _largest(gains)}


def _of_comparison(found: Comparison) -> dict[str, Value]:
    after = found.after
    step = after.steps.wall_ms.mean
    values = _measures(after.steps, after.breakdown, after.scaling)
    values |= {row.id: Value(row.after_ms or 0.0, unit="ms", whole=step) for row in found.findings}
    values["gain"] = _largest([(row.after_gain, None, None) for row in found.findings])
    return values | _change(found)


def _change(found: Comparison) -> dict[str, Value]:
    """How much slower and how much faster, ms with the step before as the whole; not known where
    the comparison itself claims nothing for want of steps.
    """
    before = found.before.steps.wall_ms.mean
    ratio = found.verdict.ratio
    shortest = min(run.n for side in (found.before, found.after) for run in side.runs)
    reason = ""
    if ratio is None:
        reason = "not comparable"
    elif ratio.lo is None or ratio.hi is None:
        reason = ratio.reason or "no interval"
    elif ratio.basis == "steps" and shortest < DECIDING_STEPS:
        reason = f"fewer than {DECIDING_STEPS} steps of a run decide nothing"
    if ratio is None or ratio.lo is None or ratio.hi is None or reason:
        missing = Value(None, unit="ms", whole=before, reason=reason)
        return {"slower": missing, "faster": missing}
    value, lo, hi = (before * (end - 1.0) for end in (ratio.value, ratio.lo, ratio.hi))
    return {
        "slower": Value(value, lo, hi, "ms", before),
        "faster": Value(-value, -hi, -lo, "ms", before),
    }


def _measures(steps: Steps, parts: Breakdown, scaling: Scaling) -> dict[str, Value]:
    wall = steps.wall_ms
    step = wall.mean
    values = {"step_ms": Value(step, wall.lo, wall.hi, "ms", step)}
    shares = {"f": scaling.f, "s": scaling.s, "serial_fraction": scaling.s}
    values |= {name: _estimated(share, "") for name, share in shares.items()}
    values["ceiling_today"] = _estimated(scaling.ceiling_today, "x")
    values["ceiling_one_gpu"] = _estimated(scaling.ceiling_one_gpu, "x")
    values["efficiency"] = Value(scaling.efficiency)
    values |= {name: _class(parts, [name], step) for name in parts.classes}
    groups = {g: names for g, names in parts.groups.items() if g not in parts.classes}
    return values | {group: _class(parts, names, step) for group, names in groups.items()}


def _class(parts: Breakdown, names: Sequence[str], step: float) -> Value:
    """Time of some classes together, with the interval of its mean over the steps."""
    if all(parts.mean_ms.get(name) is None for name in names):
        return Value(None, unit="ms", whole=step)
    mean = sum(parts.measured.get(name, 0.0) for name in names)
    rows = np.array([sum(row.measured.get(n, 0.0) for n in names) for row in parts.per_step])
    half = half_width(rows - rows.mean())[0] if len(rows) else None
    if half is None:
        return Value(mean, unit="ms", whole=step)
    return Value(mean, max(0.0, mean - half), mean + half, "ms", step)


def _estimated(share: Estimate, unit: str) -> Value:
    return Value(share.value, share.lo, share.hi, unit)


def _largest(gains: Sequence[tuple[float | None, float | None, float | None]]) -> Value:
    """The part of the step that the most worthwhile fix takes off."""
    known = [tuple(map(_saved, ends)) for ends in gains if ends[0] is not None]
    best = max(known, key=lambda ends: ends[0] or 0.0, default=(0.0, None, None))
    return Value(best[0], best[1], best[2], "%")


def _saved(speedup: float | None) -> float | None:
    return None if not speedup else 1.0 - 1.0 / speedup
