"""Which bottlenecks went, and did fixing them give what was promised? ms per rank and step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analyzer.config import Thresholds
from analyzer.report.comparison import FindingChange, Forecast, Side
from analyzer.report.document import Edit, Finding, Report
from analyzer.report.wording import NAMES, ms, percent

# What a run is, not what it loses: it has nothing to fix.
NO_LOSS = frozenset({"compute-bound"})
CROSSED = (
    "its time class moved by less than {share} of the step, so it may only have crossed its "
    "threshold"
)


def changes(
    before: Sequence[Report], after: Sequence[Report], limits: Thresholds
) -> list[FindingChange]:
    """All findings of either side by id, those fixed first, then better, new, worse, same."""
    old, new = _present(before), _present(after)
    step = sum(run.steps.wall_ms.mean for run in before) / len(before)
    noise = limits.equal_share * step
    rows = []
    for id in dict.fromkeys([*old, *new]):
        if id in NO_LOSS:
            continue
        first, second = old.get(id), new.get(id)
        shown = second or old[id]
        delta = (second.ms if second else 0.0) - (first.ms if first else 0.0)
        rows.append(
            FindingChange(
                id=id,
                title=shown.title,
                class_=shown.class_,
                status=_status(first, second, delta, noise),
                before_ms=first.ms if first else None,
                after_ms=second.ms if second else None,
                delta_ms=delta,
                after_share=second.share if second else None,
                before_gain=first.gain.speedup if first else None,
                after_gain=second.gain.speedup if second else None,
                note=_note(before, after, shown.class_, noise, limits)
                if (first is None) != (second is None)
                else "",
            )
        )
    order = ("fixed", "better", "new", "worse", "same")
    return sorted(rows, key=lambda row: (order.index(row.status), -abs(row.delta_ms)))


def _status(first: Finding | None, second: Finding | None, delta: float, noise: float) -> str:
    if second is None:
        return "fixed"
    if first is None:
        return "new"
    if abs(delta) <= noise:
        return "same"
    return "better" if delta < 0 else "worse"


def _note(
    before: Sequence[Report],
    after: Sequence[Report],
    class_: str,
    noise: float,
    limits: Thresholds,
) -> str:
    spent = [
        sum(run.breakdown.measured.get(class_, 0.0) for run in side) / len(side)
        for side in (before, after)
    ]
    if abs(spent[1] - spent[0]) > noise:
        return ""
    return CROSSED.format(share=percent(limits.equal_share))


def _present(runs: Sequence[Report]) -> dict[str, Finding]:
    """Findings of at least half of the runs, as the run has it in which they take most."""
    found: dict[str, list[Finding]] = {}
    for run in runs:
        for item in run.findings:
            found.setdefault(item.id, []).append(item)
    return {
        id: max(items, key=lambda item: item.ms)
        for id, items in found.items()
        if 2 * len(items) >= len(runs)
    }


def forecasts(
    before: Report, rows: Sequence[FindingChange], old: Side, new: Side
) -> list[Forecast]:
    """What was promised for each finding that is fixed or better, once for each what-if."""
    told: dict[str, Forecast] = {}
    moved = [row for row in rows if row.status in ("fixed", "better")]
    by_id = {item.id: item for item in before.findings}
    edits = {edit.id: edit for edit in before.whatif.edits}
    named = {by_id[row.id].whatif for row in moved if row.id in by_id} - {None}
    for row in moved:
        item = by_id.get(row.id)
        edit = edits.get(item.whatif or "") if item else None
        if item is None or edit is None or edit.id in told or edit.noise:
            continue
        found = _forecast(item, edit, before.whatif.basis, old, new, shared=len(named) > 1)
        if found is not None:
            told[edit.id] = found
    return list(told.values())


def _forecast(
    item: Finding, edit: Edit, basis: str, old: Side, new: Side, *, shared: bool
) -> Forecast | None:
    base, measured = old.steps.wall_ms.mean, old.steps.wall_ms.mean - new.steps.wall_ms.mean
    spent, left = (side.breakdown.measured.get(item.class_, 0.0) for side in (old, new))
    if edit.speedup is None or not spent:
        return None
    part = min(1.0, max(0.0, 1.0 - left / spent))
    curve = [(0.0, 1.0), *edit.curve] if edit.curve else [(0.0, 1.0), (1.0, edit.speedup)]
    promised = base * _saved(curve, part)
    lo, hi = (
        None if end is None else base * part * (1.0 - 1.0 / end) for end in (edit.lo, edit.hi)
    )
    bound = "replay promised" if basis == "replay" else "shares allowed at most"
    whose = ", for all that changed" if shared else ""
    text = (
        f"{percent(part)} of {NAMES.get(item.class_, item.class_)} went, for which the {bound} "
        f"{ms(promised, base)}; "
        f"the step is {ms(abs(measured), base)} {'shorter' if measured >= 0 else 'longer'}{whose}."
    )
    return Forecast(
        finding=item.id,
        whatif=edit.id,
        basis=basis,
        part=part,
        promised_ms=promised,
        measured_ms=measured,
        lo=lo,
        hi=hi,
        shared=shared,
        text=text,
    )


def _saved(curve: Sequence[tuple[float, float]], part: float) -> float:
    """Share of the step saved when `part` of the cause goes, between the points of the curve."""
    points = [(at, 1.0 - 1.0 / speedup) for at, speedup in sorted(curve)]
    for (x0, y0), (x1, y1) in pairwise(points):
        if part <= x1:
            return y0 + (y1 - y0) * (part - x0) / (x1 - x0)
    return points[-1][1]
