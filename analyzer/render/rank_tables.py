"""Which tables show the ranks together? Late ranks, differences, collectives, groups, efficiencies.

A table is words already, the same for the page and for Markdown. A column of which nothing is
known is left out and named below the table; a single unknown cell says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from analyzer.render.between_ranks import per_other_ms, picked_strips, timeline_axis
from analyzer.render.format import (
    NOT_MEASURABLE,
    clean,
    count,
    data_size,
    kind_label,
    look,
    percent,
    plural,
    ranges,
    shorten,
    significant,
)
from analyzer.render.sentences import scale_of
from analyzer.render.svg import shown_classes
from analyzer.report.document import Collective, ProcessGroup, Report

MOST_LATE, MOST_COLLECTIVES, MOST_GROUPS, MOST_OTHERS = 8, 15, 24, 3
# Of the dearest late rank: what costs less is left to report.json.
LEAST_COST = 0.05
NOT_RECORDED = "not recorded"
_DIMENSIONS = {"sharded-data": "sharded data", "unknown": "not recognised"}
_LEVELS = {"node": "inside a node", "nodes": "between nodes", "unknown": "unknown"}
# id -> name and what it means, most general first; useful time is computing.
EFFICIENCIES = {
    "parallel_efficiency": (
        "parallel",
        "useful part of all ranks' time: load balance times communication",
    ),
    "load_balance": ("load balance", "mean useful time over that of the rank with most"),
    "communication_efficiency": (
        "communication",
        "useful time of the rank with most over the step",
    ),
    "serialisation_efficiency": (
        "serialisation",
        "the same on an ideal network: what waiting leaves",
    ),
    "transfer_efficiency": (
        "transfer",
        "step on an ideal network over the step: what the network leaves",
    ),
    "device_parallel_efficiency": (
        "device: parallel",
        "useful part of all devices' time: the product of the three below",
    ),
    "device_load_balance": (
        "device: load balance",
        "mean useful time over that of the device with most",
    ),
    "device_communication_efficiency": (
        "device: communication",
        "most useful over most busy time: what exposed communication and copies leave",
    ),
    "device_orchestration_efficiency": (
        "device: orchestration",
        "most busy time over the step: what late launches, loading and blocking calls leave",
    ),
}


class Head(NamedTuple):
    """A column's name; columns of words stand left, of numbers right."""

    name: str
    words: bool = False


class Grid(NamedTuple):
    """A table of words with a note below it (empty when there is nothing to add)."""

    caption: str
    heads: list[Head]
    rows: list[list[str]]
    note: str = ""


class _Column(NamedTuple):
    """Cells of a column; None where a value is unknown, which `unknown` puts in words."""

    head: Head
    cells: list[str | None]
    unknown: str = NOT_MEASURABLE


def late(report: Report) -> Grid | None:
    """The late ranks, the dearest first; None without any."""
    scale, rows = scale_of(report), report.ranks.late
    if not rows:
        return None
    heads = [Head("rank"), Head("last in"), Head("ms each"), Head("share")]
    heads += [Head("ms together"), Head("steps", True), Head("because", True)]
    return Grid(
        "What the others wait per step where nothing hides it: each of them, and all together",
        heads,
        [
            [
                str(item.rank),
                percent(item.share_of_collectives),
                scale.bare(per_other_ms(report, item)),
                percent(item.share),
                scale.bare(item.ms),
                shorten(ranges(item.steps), 40) or NOT_RECORDED,
                shorten(item.because, 300),
            ]
            for item in rows[:MOST_LATE]
        ],
        " ".join(
            words
            for words in (_more(len(rows) - MOST_LATE, "more late rank"), _others(report))
            if words
        ),
    )


def _others(report: Report) -> str:
    """What ranks cost that are not late, the dearest few; empty where that is next to nothing."""
    late = {item.rank for item in report.ranks.late}
    costs = [(rank, ms) for rank, ms in report.ranks.costs if rank not in late]
    told = [(rank, ms) for rank, ms in costs if ms >= LEAST_COST * report.ranks.late[0].ms]
    listed = ", ".join(f"rank {rank} {scale_of(report).ms(ms)}" for rank, ms in told[:MOST_OTHERS])
    return f"Others that are not late cost, together: {listed}." if listed else ""


def spread(report: Report) -> Grid | None:
    """Least, median and most of each class over the ranks; None with one rank."""
    rows, scale = report.breakdown.per_rank, scale_of(report)
    if len(rows) < 2:
        return None
    lines = []
    for name in shown_classes([row.measured for row in rows]):
        values = [(row.measured.get(name, 0.0), row.rank) for row in rows]
        (least, quick), (most, slow) = min(values), max(values, key=lambda item: item[0])
        middle = median(ms for ms, _ in values)
        cells = [scale.bare(value) for value in (least, middle, most, most - least)]
        lines.append([look(name).label, cells[0], str(quick), cells[1], cells[2], str(slow)])
        lines[-1].append(cells[3])
    heads = [Head("class", True), Head("least"), Head("on rank"), Head("median"), Head("most")]
    heads += [Head("on rank"), Head("difference")]
    return Grid("Milliseconds per step over the ranks", heads, lines)


def marks(report: Report) -> Grid | None:
    """The stretches of the timeline in words; None without any."""
    strips, scale = picked_strips(report), scale_of(report)
    if not strips:
        return None
    rows = [
        [
            str(strip.rank),
            "; ".join(
                f"{clean(look(name).label)} {scale.bare(start)} to {scale.bare(end)}"
                for name, start, end in strip.marks
            ),
        ]
        for strip in strips
    ]
    return Grid(timeline_axis(report), [Head("rank"), Head("", True)], rows)


def collectives(report: Report) -> Grid | None:
    """Collectives by kind and group, most time first; None without any."""
    rows, scale = report.collectives[:MOST_COLLECTIVES], scale_of(report)
    if not rows:
        return None

    def column(
        head: Head,
        cell: Callable[[Collective], str],
        known: Callable[[Collective], object],
        unknown: str = NOT_MEASURABLE,
    ) -> _Column:
        return _Column(head, [None if known(r) is None else cell(r) for r in rows], unknown)

    columns = [
        _Column(Head("kind", True), [shorten(kind_label(row.kind), 40) for row in rows]),
        column(
            Head("group", True),
            lambda r: shorten(r.group, 32),
            lambda r: r.group or None,
            NOT_RECORDED,
        ),
        column(Head("ranks"), lambda r: count(r.group_size), lambda r: r.group_size, NOT_RECORDED),
        _Column(Head("times"), [count(row.count) for row in rows]),
        column(Head("size"), lambda r: data_size(r.bytes), lambda r: r.bytes, NOT_RECORDED),
        _Column(Head("ms"), [scale.bare(row.ms) for row in rows]),
        column(Head("wait ms"), lambda r: scale.bare(r.wait_ms), lambda r: r.wait_ms),
        column(Head("transfer ms"), lambda r: scale.bare(r.transfer_ms), lambda r: r.transfer_ms),
        _Column(Head("exposed ms"), [scale.bare(row.exposed_ms) for row in rows]),
        column(Head("bus GB/s"), lambda r: significant(r.busbw_gbs), lambda r: r.busbw_gbs),
    ]
    notes = [_more(len(report.collectives) - MOST_COLLECTIVES, "smaller row")]
    notes += _remarks(rows)
    return _grid("Times and milliseconds per rank and step", columns, notes)


def groups(report: Report) -> Grid | None:
    """The process groups and the parallel dimension each serves; None without any."""
    rows, scale = report.ranks.groups[:MOST_GROUPS], scale_of(report)
    if not rows:
        return None
    heads = [Head("group", True), Head("dimension", True), Head("level", True), Head("size")]
    heads += [Head("ranks", True), Head("kinds", True), Head("times"), Head("ms")]
    heads += [Head("because", True)]
    return Grid(
        "Groups of ranks that communicate; times and milliseconds per rank and step",
        heads,
        [_group(row, scale.bare(row.ms)) for row in rows],
        _more(len(report.ranks.groups) - MOST_GROUPS, "more group"),
    )


def efficiencies(report: Report) -> Grid | None:
    """Efficiencies of the POP methodology and of its device branch; None when none is known."""
    facts = report.ranks
    if all(value is None for value in facts.pop.values()):
        return None
    rows = []
    for name, value in facts.pop.items():
        label, meaning = EFFICIENCIES.get(name, (name.replace("_", " "), ""))
        lost = percent(facts.pop_loss[name]) if name in facts.pop_loss else ""
        rows.append([shorten(label, 60), percent(value), lost, meaning])
    heads = [Head("efficiency", True), Head("value"), Head("of the loss"), Head("meaning", True)]
    caption = "As the POP methodology defines them, with its device branch; 80 % and more is fine"
    return Grid(caption, heads, rows, shorten(facts.pop_reason, 300))


TABLES: dict[str, Callable[[Report], Grid | None]] = {
    "late": late,
    "spread": spread,
    "marks": marks,
    "collectives": collectives,
    "groups": groups,
    "efficiencies": efficiencies,
}


def _group(row: ProcessGroup, ms: str) -> list[str]:
    return [
        shorten(row.name, 32) or NOT_RECORDED,
        shorten(_DIMENSIONS.get(row.dimension, row.dimension), 24),
        shorten(_LEVELS.get(row.level, row.level), 24),
        NOT_RECORDED if row.size is None else count(row.size),
        shorten(ranges(row.ranks), 32) or NOT_RECORDED,
        shorten(", ".join(kind_label(kind) for kind in row.kinds), 60),
        count(row.count),
        ms,
        shorten(row.because, 200),
    ]


def _grid(caption: str, columns: Sequence[_Column], notes: Sequence[str]) -> Grid:
    kept = [c for c in columns if any(cell is not None for cell in c.cells)]
    gone = [c for c in columns if c not in kept]
    cells = [[c.unknown if cell is None else cell for cell in c.cells] for c in kept]
    words = []
    for unknown in dict.fromkeys(c.unknown for c in gone):
        names = ", ".join(c.head.name for c in gone if c.unknown == unknown)
        words.append(f"{unknown.capitalize()}: {names}.")
    words += [shorten(note, 300) for note in dict.fromkeys(notes) if note]
    return Grid(
        caption,
        [c.head for c in kept],
        [list(row) for row in zip(*cells, strict=True)],
        " ".join(words),
    )


def _remarks(rows: Sequence[Collective]) -> list[str]:
    """What was not measured or is slow, each remark once with the kinds it holds for."""
    kinds: dict[str, dict[str, None]] = {}
    for row in rows:
        for remark in (row.reason, row.note):
            kinds.setdefault(remark.rstrip("."), {})[kind_label(row.kind)] = None
    return [f"{', '.join(names)}: {remark}." for remark, names in kinds.items() if remark]


def _more(number: int, noun: str) -> str:
    return f"{plural(number, noun)} in report.json." if number > 0 else ""
