"""Reports of two sides -> the Comparison: what changed, by how much, how sure, and why.

Everything is taken from finished reports, so saved ones compare like fresh traces. A side's number
is the mean over its runs; the classes of a side tile its step, so their deltas add up to its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from analyzer import __version__
from analyzer.config import Thresholds
from analyzer.report import comparison as doc
from analyzer.report import moved
from analyzer.report.changes import changes, forecasts
from analyzer.report.comparable import differences, inside
from analyzer.report.document import Breakdown, RankRow, Report, StepRow, Tool
from analyzer.report.outcome import outcome
from analyzer.scaling import difference
from analyzer.scaling.difference import Floats

WAIT, TRANSFER, UNSPLIT = "comm_wait", "comm_transfer", "comm_unsplit"


def compare(
    before: Sequence[Report],
    after: Sequence[Report],
    *,
    labels: tuple[str, str],
    created: str,
    limits: Thresholds,
    force: bool = False,
) -> doc.Comparison:
    """The comparison of the runs of two sides, at least one each; `force` compares what blocks."""
    if any(_unsplit(run.breakdown) for run in (*before, *after)):
        before, after = (
            [replace(run, breakdown=_folded(run.breakdown)) for run in side]
            for side in (before, after)
        )
    differ = _differences(before, after)
    ok = not any(row.blocking for row in differ)
    old, new = _side(before, labels[0]), _side(after, labels[1])
    stands = ok or force
    change = difference.ratio(_totals(before), _totals(after))
    bars = _waterfall(before, after, old, new) if stands else []
    rows = changes(before, after, limits) if stands else []
    return doc.Comparison(
        schema_version=doc.SCHEMA_VERSION,
        tool=Tool(name="torch-ceiling", version=__version__),
        created=created,
        verdict=outcome(old, new, change, bars, differ, limits, stands=stands),
        comparable=doc.Comparable(ok=ok, differences=differ, forced=force and not ok),
        before=old,
        after=new,
        waterfall=bars,
        findings=rows,
        forecasts=forecasts(middle(before), rows, old, new) if stands else [],
        kernels=moved.moved(moved.kernels(before), moved.kernels(after)) if stands else [],
        collectives=moved.moved(moved.collectives(before), moved.collectives(after))
        if stands
        else [],
        ops=moved.moved(moved.ops(before), moved.ops(after)) if stands else [],
        gates=[],
        runs_needed=difference.runs_needed(change, limits.equal_share) if stands else None,
        margin=limits.equal_share,
    )


def middle(runs: Sequence[Report]) -> Report:
    """The run whose step is the middle one, the shorter of two."""
    return sorted(runs, key=lambda run: run.steps.wall_ms.mean)[(len(runs) - 1) // 2]


def _differences(before: Sequence[Report], after: Sequence[Report]) -> list[doc.Differs]:
    found = {row.id: row for row in differences(middle(before), middle(after))}
    for side, name in ((before, "before"), (after, "after")):
        for row in inside(side):
            why = f"the runs of {name} are not alike; {row.why}"
            found.setdefault(row.id, replace(row, why=why))
    return sorted(found.values(), key=lambda row: not row.blocking)


def _side(runs: Sequence[Report], label: str) -> doc.Side:
    chosen = middle(runs)
    totals = _totals(runs)
    steps = chosen.steps
    if len(runs) > 1:
        several, mean = np.concatenate(totals), difference.mean(totals)
        half, reason = difference.half_width(totals)
        wall = replace(
            steps.wall_ms,
            mean=mean,
            median=float(np.median(several)),
            lo=None if half is None else mean - half,
            hi=None if half is None else mean + half,
            n=len(several),
            reason=reason,
        )
        steps = replace(steps, wall_ms=wall)
    return doc.Side(
        label=label,
        runs=[
            doc.RunRow(
                label=run.run.label,
                mean_ms=run.steps.wall_ms.mean,
                median_ms=run.steps.wall_ms.median,
                lo=run.steps.wall_ms.lo,
                hi=run.steps.wall_ms.hi,
                n=run.steps.wall_ms.n,
            )
            for run in runs
        ],
        run=chosen.run,
        steps=steps,
        breakdown=_mean_breakdown(runs, chosen.breakdown),
        scaling=chosen.scaling,
    )


def _mean_breakdown(runs: Sequence[Report], chosen: Breakdown) -> Breakdown:
    """Classes as means over the runs; rows by rank and step of the middle run."""
    parts = [run.breakdown for run in runs]
    mean = {name: _mean([p.mean_ms.get(name, 0.0) for p in parts]) for name in chosen.mean_ms}
    groups = {group: _mean([p.group_ms.get(group) for p in parts]) for group in chosen.groups}
    hidden = _mean([p.hidden_comm_ms for p in parts])
    return replace(chosen, mean_ms=mean, group_ms=groups, hidden_comm_ms=hidden)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if known else None


def _totals(runs: Sequence[Report]) -> list[Floats]:
    return [np.array([sum(row.measured.values()) for row in _rows(run)]) for run in runs]


def _rows(run: Report) -> Sequence[StepRow]:
    """The steps of a run; its mean where a report without steps was given."""
    return run.breakdown.per_step or [StepRow(step=0, ms=run.breakdown.mean_ms)]


def _waterfall(
    before: Sequence[Report], after: Sequence[Report], old: doc.Side, new: doc.Side
) -> list[doc.Bar]:
    names = dict.fromkeys([*old.breakdown.classes, *new.breakdown.classes])
    first, second = old.breakdown.measured, new.breakdown.measured
    used = [name for name in names if first.get(name, 0.0) or second.get(name, 0.0)]
    moves = [difference.shift(_series(before, name), _series(after, name)) for name in used]
    return [
        doc.Bar(
            class_=name,
            before_ms=first.get(name, 0.0),
            after_ms=second.get(name, 0.0),
            delta_ms=second.get(name, 0.0) - first.get(name, 0.0),
            lo=move.lo,
            hi=move.hi,
            clear=sure,
            reason=move.reason,
        )
        for name, move, sure in zip(used, moves, difference.clear(moves), strict=True)
    ]


def _series(runs: Sequence[Report], name: str) -> list[Floats]:
    return [np.array([row.measured.get(name, 0.0) for row in _rows(run)]) for run in runs]


def _unsplit(parts: Breakdown) -> bool:
    """Whether waiting and transfer were not told apart, so that other runs must not be either."""
    rows: list[Mapping[str, float | None]] = [parts.mean_ms, *(row.ms for row in parts.per_step)]
    return any(row.get(WAIT, 0.0) is None for row in rows)


def _folded(parts: Breakdown) -> Breakdown:
    """The breakdown with waiting and transfer joined to what was not split."""

    def fold(ms: Mapping[str, float | None]) -> dict[str, float | None]:
        joined = sum(ms.get(name) or 0.0 for name in (WAIT, TRANSFER, UNSPLIT))
        return {**ms, WAIT: None, TRANSFER: None, UNSPLIT: joined}

    ranks: list[RankRow] = [replace(row, ms=fold(row.ms)) for row in parts.per_rank]
    steps: list[StepRow] = [replace(row, ms=fold(row.ms)) for row in parts.per_step]
    mean = fold(parts.mean_ms)
    return replace(parts, mean_ms=mean, per_rank=ranks, per_step=steps)
