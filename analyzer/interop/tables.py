"""Which tables does a Report hold, as rows of documented columns?

One row is one thing, one column one quantity. Times are ms, shares fractions of the step, speedups
multiples of today's step, rates decimal GB per second; what is not measurable is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from analyzer.report.document import Breakdown, Report

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]


class Column(NamedTuple):
    """A column: its pandas type, and what it holds with its unit."""

    name: str
    dtype: str
    says: str


class Kind(NamedTuple):
    """A table: its columns and how its rows are read off a report."""

    columns: tuple[Column, ...]
    rows: Callable[[Report], Iterator[Row]]


def _steps(report: Report) -> Iterator[Row]:
    sums = {row.step: sum(row.measured.values()) for row in report.breakdown.per_step}
    why = {step.index: step.why for step in report.steps.dropped}
    phase = {step: of.name for of in report.steps.phases for step in of.steps}
    for step in sorted({*report.steps.used, *why}):
        yield {
            "step": step,
            "phase": phase.get(step),
            "used": step in sums,
            "step_ms": sums.get(step),
            "why_dropped": None if step in sums else why.get(step),
        }


def _classes(report: Report) -> Iterator[Row]:
    parts = report.breakdown
    yield from _tiled(parts, "run", None, parts.mean_ms)
    for rank in parts.per_rank:
        yield from _tiled(parts, "rank", rank.rank, rank.ms)
    for step in parts.per_step:
        yield from _tiled(parts, "step", step.step, step.ms)


def _tiled(
    parts: Breakdown, of: str, number: int | None, by_class: Mapping[str, float | None]
) -> Iterator[Row]:
    group_of = {name: group for group, names in parts.groups.items() for name in names}
    total = sum(ms for ms in by_class.values() if ms is not None)
    for name, ms in by_class.items():
        yield {
            "of": of,
            "rank": number if of == "rank" else None,
            "step": number if of == "step" else None,
            "class": name,
            "group": group_of.get(name),
            "ms": ms,
            "share": None if ms is None or not total else ms / total,
        }


def _ranks(report: Report) -> Iterator[Row]:
    late = {row.rank: row for row in report.ranks.late}
    costs = dict(report.ranks.costs)
    for row in report.breakdown.per_rank:
        blamed = late.get(row.rank)
        yield {
            "rank": row.rank,
            "step_ms": row.step_ms,
            "hidden_comm_ms": row.hidden_comm_ms,
            "costs_others_ms": costs.get(row.rank),
            "late": blamed is not None,
            "last_in_share_of_collectives": blamed.share_of_collectives if blamed else None,
            "because": blamed.because if blamed else None,
        }


def _of_struct(*names: str) -> Callable[[Any], Row]:
    return lambda part: {name: getattr(part, name) for name in names}


_COLLECTIVE = _of_struct(
    *("kind", "group", "group_size", "count", "bytes", "ms", "wait_ms", "transfer_ms"),
    *("exposed_ms", "algbw_gbs", "busbw_gbs", "reason", "note"),
)
_KERNEL = _of_struct("name", "kind", "count", "ms", "share")
_FINDING = _of_struct(
    *("id", "title", "ms", "share", "whatif", "ceiling_after", "confidence"),
    *("because", "so", "check", "reason"),
)


def _findings(report: Report) -> Iterator[Row]:
    for place, item in enumerate(report.findings, start=1):
        yield {
            **_FINDING(item),
            "place": place,
            "class": item.class_,
            "speedup": item.gain.speedup,
            "speedup_lo": item.gain.lo,
            "speedup_hi": item.gain.hi,
            "basis": item.gain.basis,
            "noise": item.gain.noise,
        }


def _edits(report: Report) -> Iterator[Row]:
    for edit in report.whatif.edits:
        after = edit.after
        yield {
            "id": edit.id,
            "step_ms": edit.step_ms,
            "speedup": edit.speedup,
            "speedup_lo": edit.lo,
            "speedup_hi": edit.hi,
            "basis": report.whatif.basis,
            "noise": edit.noise,
            "f_after": after.f if after else None,
            "s_after": after.s if after else None,
            "ceiling_today_after": after.ceiling_today if after else None,
            "ceiling_one_gpu_after": after.ceiling_one_gpu if after else None,
            "reason": edit.reason,
        }


def _number(name: str, says: str) -> Column:
    return Column(name, "float64", says)


def _whole(name: str, says: str) -> Column:
    return Column(name, "Int64", says)


def _text(name: str, says: str) -> Column:
    return Column(name, "string", says)


def _flag(name: str, says: str) -> Column:
    return Column(name, "bool", says)


_SPEEDUP = (
    _number("speedup", "multiple of today's step that the fix gives"),
    _number("speedup_lo", "lower end of its 95 % interval over the steps"),
    _number("speedup_hi", "upper end of its 95 % interval over the steps"),
    _text("basis", "replay (a gain) or share (an upper bound)"),
    _flag("noise", "whether it cannot be told from noise"),
)
_REASON = _text("reason", "why a value of the row is missing")

TABLES: dict[str, Kind] = {
    "steps": Kind(
        (
            _whole("step", "number of the step in the trace"),
            _text("phase", "prefill, decode or mixed, of a serving engine's iteration"),
            _flag("used", "whether it counts in the means"),
            _number("step_ms", "ms, mean over the ranks; missing where it was not used"),
            _text("why_dropped", "why it was not used"),
        ),
        _steps,
    ),
    "classes": Kind(
        (
            _text("of", "what is tiled: run (mean step), rank (its mean step), step (over ranks)"),
            _whole("rank", "the rank, where one is tiled"),
            _whole("step", "the step, where one is tiled"),
            _text("class", "time class; the classes of one run, rank or step sum to its length"),
            _text("group", "group of classes"),
            _number("ms", "ms per step"),
            _number("share", "fraction of the step"),
        ),
        _classes,
    ),
    "ranks": Kind(
        (
            _whole("rank", "global rank"),
            _number("step_ms", "ms, mean over the used steps"),
            _number("hidden_comm_ms", "ms per step of communication beside computing"),
            _number("costs_others_ms", "ms per step that others wait for it, summed over them"),
            _flag("late", "whether it keeps the others waiting throughout"),
            _number("last_in_share_of_collectives", "fraction of collectives it came last to"),
            _text("because", "what delays it"),
        ),
        _ranks,
    ),
    "collectives": Kind(
        (
            _text("kind", "all_reduce and the like"),
            _text("group", "process group"),
            _whole("group_size", "ranks in the group"),
            _number("count", "per rank and step"),
            _number("bytes", "mean size of one"),
            _number("ms", "ms per rank and step, waiting included"),
            _number("wait_ms", "ms before the last rank had come"),
            _number("transfer_ms", "ms after it had"),
            _number("exposed_ms", "ms that no computing hides"),
            _number("algbw_gbs", "GB per second of the transfer"),
            _number("busbw_gbs", "the same as load on each link (bus bandwidth)"),
            _REASON,
            _text("note", "what is remarkable about the rates"),
        ),
        lambda report: map(_COLLECTIVE, report.collectives),
    ),
    "kernels": Kind(
        (
            _text("name", "kernel, copy or set"),
            _text("kind", "matmul, all_reduce and the like"),
            _number("count", "per rank and step"),
            _number("ms", "ms per rank and step"),
            _number("share", "fraction of the step; kernels beside each other add up to more"),
        ),
        lambda report: map(_KERNEL, report.kernels),
    ),
    "findings": Kind(
        (
            _whole("place", "order in which to attack"),
            _text("id", "for ceiling explain"),
            _text("title", "the claim"),
            _text("class", "time class it lives in"),
            _number("ms", "ms per step"),
            _number("share", "fraction of the step"),
            *_SPEEDUP,
            _text("whatif", "the edit that was replayed"),
            _number("ceiling_after", "1/f once it is fixed"),
            _text("confidence", "high, medium or low"),
            _text("because", "evidence"),
            _text("so", "what to do"),
            _text("check", "what shows that it is gone"),
            _REASON,
        ),
        _findings,
    ),
    "edits": Kind(
        (
            _text("id", "for ceiling explain"),
            _number("step_ms", "ms of the step with the edit"),
            *_SPEEDUP,
            _number("f_after", "share of the step left that does not shrink with more GPUs"),
            _number("s_after", "the same on one GPU"),
            _number("ceiling_today_after", "1/f after the edit"),
            _number("ceiling_one_gpu_after", "1/s after the edit"),
            _REASON,
        ),
        _edits,
    ),
}
