"""What does a comparison say in words? The same for page, comment and terminal.

Milliseconds come first, percent beside them. A change whose interval holds zero carries a "~".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from analyzer.render.adding import MINUS, apportioned, change, signed, units, written
from analyzer.render.format import (
    StepScale,
    look,
    multiple,
    percent,
    plural,
    shorten,
    significant,
)
from analyzer.report.comparison import Bar, Comparison, Differs, FindingChange, Gate, Moved, Side
from analyzer.report.document import Estimate

NOT_COMPARABLE = "not-comparable"
_QUIET = ("faster", "no-clear-change")
# A change below this part of the step is left to compare.json.
LEAST_MOVED = 0.0005
UNSURE = "~"
ARROW = "\u2192"


class Line(NamedTuple):
    """A class of the waterfall as printed: counts of the last digit shown, which add up."""

    bar: Bar
    label: str
    before: int
    after: int

    @property
    def delta(self) -> int:
        """After minus before."""
        return self.after - self.before


def scale_of(comparison: Comparison) -> StepScale:
    """The one scale of all times: that of the shorter step, so that both have three digits."""
    return StepScale.of(
        min(comparison.before.steps.wall_ms.mean, comparison.after.steps.wall_ms.mean)
    )


def lines(comparison: Comparison) -> list[Line]:
    """The classes of the waterfall, the largest change first; their counts add up to the steps."""
    scale = scale_of(comparison)
    bars = sorted(comparison.waterfall, key=lambda bar: -abs(bar.delta_ms))
    first = {bar.class_: bar.before_ms for bar in bars}
    second = {bar.class_: bar.after_ms for bar in bars}
    old = apportioned(first, comparison.before.steps.wall_ms.mean, scale)
    new = apportioned(second, comparison.after.steps.wall_ms.mean, scale)
    rows = [Line(b, shorten(look(b.class_).label, 40), old[b.class_], new[b.class_]) for b in bars]
    return [row for row in rows if row.before or row.after]


def total(comparison: Comparison) -> tuple[str, str, str]:
    """Both steps and their difference, as printed."""
    scale = scale_of(comparison)
    old = units(comparison.before.steps.wall_ms.mean, scale)
    new = units(comparison.after.steps.wall_ms.mean, scale)
    return written(old, scale), written(new, scale), change(new - old, scale)


def unsure(bar: Bar) -> bool:
    """Whether the change of a class may be none: no interval, or one that holds zero."""
    return bar.lo is None or bar.hi is None or bar.lo <= 0.0 <= bar.hi


def interval(bar: Bar, scale: StepScale) -> str:
    """The interval of a class's change, empty without one."""
    if bar.lo is None or bar.hi is None:
        return ""
    return f"{signed(bar.lo, scale)} to {signed(bar.hi, scale)}"


def action(comparison: Comparison) -> str:
    """Whether the reader must act, and why."""
    failed = [gate for gate in comparison.gates if not gate.passed and gate.level == "fail"]
    if failed:
        return f"Action needed: {plural(len(failed), 'gate')} failed."
    if comparison.verdict.outcome == NOT_COMPARABLE:
        return "Action needed: record the sides alike, or compare them all the same with --force."
    if comparison.verdict.outcome not in _QUIET:
        return "Action needed: look at what became slower."
    return "No action needed."


def sides(comparison: Comparison) -> str:
    """Labels, runs and steps of both sides."""
    return f"{_side('Before', comparison.before)}; {_side('after', comparison.after)}."


def _side(role: str, side: Side) -> str:
    name = shorten(side.label, 40)
    named = "" if name == role.lower() else f"{name}, "
    steps = plural(sum(run.n for run in side.runs), "step")
    return f"{role}: {named}{plural(len(side.runs), 'run')} with {steps}"


def banner(comparison: Comparison) -> str:
    """What stands above a comparison that was forced; empty else."""
    if not comparison.comparable.forced:
        return ""
    names = ", ".join(row.title for row in comparison.comparable.differences if row.blocking)
    return (
        f"Compared by force although the sides differ in: {names}. Read it as two runs, not as "
        "one change."
    )


def differences(comparison: Comparison) -> str:
    """Leads the table of what differs."""
    rows = comparison.comparable.differences
    if not rows:
        return "Nothing that was recorded differs between the sides but the times."
    blocking = sum(row.blocking for row in rows)
    if blocking:
        verb = "forbids" if blocking == 1 else "forbid"
        return f"{plural(blocking, 'difference')} {verb} a comparison, {len(rows) - blocking} warn."
    return (
        f"{plural(len(rows), 'difference')}: none forbids a comparison, but each can be the cause."
    )


def differs(row: Differs) -> str:
    """One difference as a sentence."""
    old, new = shorten(row.before, 80), shorten(row.after, 80)
    return f"{row.title}: {old} against {new}; {row.why}."


def why(comparison: Comparison) -> str:
    """Leads the waterfall: what the step lost and gained, and how much of that is sure."""
    if not comparison.waterfall:
        return "The sides are not compared, so there is nothing to split."
    scale, rows = scale_of(comparison), lines(comparison)
    down = sum(row.delta for row in rows if row.delta < 0)
    up = sum(row.delta for row in rows if row.delta > 0)
    clear = [row.label for row in rows if row.bar.clear and row.delta]
    words = f"{written(-down, scale)} ms went and {written(up, scale)} ms came"
    if clear:
        return f"{words}; beyond chance: {', '.join(clear)}."
    alone = [row.label for row in rows if not unsure(row.bar) and row.delta]
    if alone:
        return f"{words}; beyond chance, each by its own interval: {', '.join(alone)}."
    return f"{words}; no class moved beyond chance."


def findings(comparison: Comparison) -> str:
    """How many bottlenecks of each status there are."""
    rows = comparison.findings
    if not rows:
        return "Neither side has a bottleneck that stands out."
    order = ("fixed", "better", "new", "worse", "same")
    counts = {name: sum(row.status == name for row in rows) for name in order}
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n) + "."


def finding(row: FindingChange, scale: StepScale) -> str:
    """Times of a finding on both sides."""
    old = "none" if row.before_ms is None else scale.bare(row.before_ms)
    new = "none" if row.after_ms is None else scale.bare(row.after_ms)
    return f"{old} {ARROW} {new}"


def estimate(value: Estimate) -> str:
    """A share with its interval."""
    text = significant(value.value)
    if value.lo is None or value.hi is None:
        return text
    return f"{text} ({significant(value.lo)} to {significant(value.hi)})"


def ceiling(value: Estimate) -> str:
    """A ceiling with its interval."""
    text = multiple(value.value)
    if value.lo is None or value.hi is None:
        return text
    return f"{text} ({significant(value.lo)} to {significant(value.hi)})"


def fractions(comparison: Comparison) -> str:
    """What became of the share that does not scale."""
    old, new = comparison.before.scaling, comparison.after.scaling
    if old.f.value is None or new.f.value is None:
        return f"No serial fraction: {old.reason or new.reason or 'not measurable'}"
    scale = scale_of(comparison)
    first, second = (
        units(side.steps.wall_ms.mean * (side.scaling.f.value or 0.0), scale)
        for side in (comparison.before, comparison.after)
    )
    before = f"{written(first, scale)} ms (f {significant(old.f.value)})"
    after = f"{written(second, scale)} ms (f {significant(new.f.value)})"
    if first == second:
        return f"The part of the step that more GPUs do not shrink stays at {after}."
    verb = "fell" if second < first else "rose"
    return f"The part of the step that more GPUs do not shrink {verb} from {before} to {after}."


def noticed(row: Moved, comparison: Comparison) -> bool:
    """Whether the change of a name is worth a line."""
    return abs(row.delta_ms) >= LEAST_MOVED * comparison.before.steps.wall_ms.mean


def moved(comparison: Comparison, rows: Sequence[Moved], noun: str) -> str:
    """Leads a table of work that moved."""
    if not rows:
        return f"No {noun} was recorded on either side."
    first, scale = rows[0], scale_of(comparison)
    if not noticed(first, comparison):
        part = percent(LEAST_MOVED)
        return f"No {noun} changed by {part} of the step or more."
    gone = sum(row.status == "removed" for row in rows)
    new = sum(row.status == "added" for row in rows)
    names = f"; {new} new, {gone} gone" if gone or new else ""
    delta = signed(first.delta_ms, scale)
    return f"Most moved {shorten(first.name, 60)}: {delta} ms{names}."


def status(row: Moved) -> str:
    """On which sides the name is."""
    if row.status == "unlisted":
        return "new or small before" if row.after_ms else "gone or small after"
    return {"added": "new", "removed": "gone"}.get(row.status, "both")


def gate(row: Gate) -> str:
    """One gate: expected and found."""
    word = "passed" if row.passed else "failed" if row.level == "fail" else "warned"
    asked, found = shorten(row.expression, 80), shorten(row.found, 200)
    return f"{word}: {asked}: expected {row.expected}, found {found}"


def ascii_signs(text: str) -> str:
    """The text with hyphens for the minus sign and in the arrow."""
    return text.replace(MINUS, "-").replace(ARROW, "->")
