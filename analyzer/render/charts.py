"""Which pictures does a report need? Each is drawn from the document, or left out when empty.

Beyond `MOST_BARS` ranks the slowest, the fastest and the median stand for all, and the heat strip
shows every one; beyond `MOST_COLUMNS` steps neighbours are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from analyzer.render import (
    between_ranks,
    falls,
    gains,
    parts,
    path_words,
    sentences,
    strips,
    svg,
    turns,
)
from analyzer.render.curve import scaling_curve
from analyzer.render.format import StepScale, look
from analyzer.report.document import Finding, RankRow, Report

MOST_BARS = 32
MOST_COLUMNS = 40
SLOWEST, FASTEST = 8, 4
NARROW = 0.05


def charts(report: Report) -> dict[str, Markup | None]:
    """The pictures of the page by section; None where there is nothing to draw."""
    return {
        "where": where(report),
        "spread": _spread(report),
        "timeline": _timeline(report),
        "steps": _steps(report),
        "idle": _idle(report),
        "curve": scaling_curve("curve", report.scaling, desc=sentences.scaling(report))
        if len(report.scaling.predict) > 1
        else None,
        "turns": _turns(report),
        "path": _path(report),
    }


def where(report: Report) -> Markup | None:
    """The mean step and one bar per rank."""
    parts = report.breakdown
    if sum(parts.measured.values()) <= 0:
        return None
    bars = [svg.Bar("all ranks", parts.measured, parts.hidden_comm_ms or 0.0)]
    if len(parts.per_rank) > 1:
        bars += [
            svg.Bar(words, row.measured, row.hidden_comm_ms or 0.0)
            for words, row in picked_ranks(report)
        ]
    return svg.stacked_bars(
        "where-chart",
        bars,
        title="Step time by class and rank",
        desc=sentences.where(report),
        scale=sentences.scale_of(report),
    )


def picked_ranks(report: Report) -> list[tuple[str, RankRow]]:
    """Every rank up to `MOST_BARS`; beyond it the slowest, the median and the fastest by time
    outside exposed communication, since waiting makes all ranks equally long.
    """
    rows = report.breakdown.per_rank
    if len(rows) <= MOST_BARS:
        return [(f"rank {row.rank}", row) for row in rows]
    waiting = report.breakdown.groups.get("communication", [])

    def own(row: RankRow) -> float:
        return row.step_ms - sum(row.measured.get(name, 0.0) for name in waiting)

    ordered = sorted(rows, key=lambda row: (-own(row), row.rank))
    middle = ordered[len(ordered) // 2]
    return [
        *((f"rank {row.rank}", row) for row in ordered[:SLOWEST]),
        (f"median ({middle.rank})", middle),
        *((f"rank {row.rank}", row) for row in ordered[-FASTEST:]),
    ]


def _spread(report: Report) -> Markup | None:
    """A heat row for every class that is more than a trifle on some rank."""
    rows, scale = report.breakdown.per_rank, sentences.scale_of(report)
    if len(rows) < 2:
        return None
    step = report.steps.wall_ms.mean
    lines: list[strips.HeatRow] = []
    for name in svg.shown_classes([row.measured for row in rows]):
        values = [row.measured.get(name, 0.0) for row in rows]
        peak = max(values)
        if peak < sentences.LEAST_TOLD * step:
            continue
        least, most = scale.bare(min(values)), scale.ms(peak)
        worst = f"{least} to {most}, most on {rows[values.index(peak)].rank}"
        lines.append((name, values, f"{most} on all" if least == scale.bare(peak) else worst))
    if not lines:
        return None
    return strips.heat_rows(
        "spread-chart",
        lines,
        ranks=[row.rank for row in rows],
        floor=NARROW * step,
        title="Time by class on every rank",
        desc="Stronger where a rank spends more: "
        + "; ".join(f"{look(name).label} {words}" for name, _, words in lines),
    )


def _timeline(report: Report) -> Markup | None:
    if not report.ranks.strips:
        return None
    return strips.timeline(
        "timeline-chart",
        [(f"rank {strip.rank}", strip.marks) for strip in between_ranks.picked_strips(report)],
        title=between_ranks.timeline(report),
        desc=between_ranks.timeline_axis(report),
    )


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0.0) for row in rows) / len(rows) for name in names}


def step_columns(report: Report) -> list[tuple[str, Mapping[str, float]]]:
    """Label and milliseconds by class of each column of the step strip."""
    rows = report.breakdown.per_step
    merged = -(-len(rows) // MOST_COLUMNS)
    if merged <= 1:
        return [(str(row.step), row.measured) for row in rows]
    chunks = [rows[at : at + merged] for at in range(0, len(rows), merged)]
    return [(str(chunk[0].step), _mean([row.measured for row in chunk])) for chunk in chunks]


def _steps(report: Report) -> Markup | None:
    columns = step_columns(report)
    if len(columns) < 2:
        return None
    return svg.step_strip(
        "steps-chart",
        columns,
        median_ms=report.steps.wall_ms.median,
        title="Step time by class over the used steps",
        desc=sentences.over_time(report),
        scale=sentences.scale_of(report),
    )


def _idle(report: Report) -> Markup | None:
    by_class: dict[str, float] = {}
    for item in report.idle:
        by_class[item.class_] = by_class.get(item.class_, 0.0) + item.ms
    if sum(by_class.values()) <= 0:
        return None
    return svg.stacked_bars(
        "idle-chart",
        [svg.Bar("idle", by_class)],
        title="Idle time by class",
        desc=sentences.idle(report),
        scale=sentences.scale_of(report),
    )


def _turns(report: Report) -> Markup | None:
    if not report.whatif.sequence:
        return None
    drawn = [
        falls.Fall(
            turns.name(turn.edit),
            turns.class_of(turn.edit),
            turn.step_ms + turn.gain_ms,
            turn.step_ms,
        )
        for turn in report.whatif.sequence
    ]
    return falls.waterfall(
        "turns-chart",
        drawn,
        title="Step time as one fix follows the other",
        desc=turns.lead(report),
        scale=sentences.scale_of(report),
    )


def part_curves(report: Report) -> list[tuple[str, str, Markup]]:
    """Heading, sentence and curve of the first findings whose what-if was replayed in parts."""
    chosen = parts.picked(report)
    axis = falls.levels([item.gain for _, item in chosen])
    found = []
    for place, item in chosen:
        title, words = f"{place}. {item.title}", parts.enough(report, item.gain)
        curve = falls.part_curve(
            f"part-{place}", item.gain, axis, title=f"Speedup by part removed: {title}", desc=words
        )
        found.append((title, words, curve))
    return found


def _path(report: Report) -> Markup | None:
    path = report.whatif.path
    if path is None or sum(item.ms for item in path.classes) <= 0:
        return None
    return svg.stacked_bars(
        "path-chart",
        [svg.Bar("critical path", {item.class_: item.ms for item in path.classes})],
        title="The critical path by class",
        desc=path_words.lead(report),
        scale=sentences.scale_of(report),
    )


def gain_bars(findings: Sequence[Finding]) -> list[Markup]:
    """A bar per finding, the largest at full width: the part of the step that a replayed fix takes
    off, with its interval, or the share.
    """
    worth = [_saved(item) for item in findings]
    largest = max((max(part, *(bounds or (0.0,))) for part, bounds in worth), default=0.0)
    return [
        svg.share_bar(item.class_, part, largest, bounds)
        for item, (part, bounds) in zip(findings, worth, strict=True)
    ]


def _saved(item: Finding) -> tuple[float, tuple[float, float] | None]:
    gain = item.gain
    if gain.lo is None or gain.hi is None:
        return gains.part(item), None
    return gains.part(item), (gains.removed(gain.lo), gains.removed(gain.hi))


def text_bar(mean_ms: Mapping[str, float], width: int) -> list[tuple[str, str]]:
    """`(class, letters)` of a bar of `width` characters; remainders go to the largest fractions,
    so the letters always fill the bar.
    """
    shown = svg.shown_classes([mean_ms])
    total = sum(mean_ms.values())
    exact = {name: width * mean_ms[name] / total for name in shown}
    cells = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(shown, key=lambda name: cells[name] - exact[name])
    for name in by_rest[: width - sum(cells.values())]:
        cells[name] += 1
    return [(name, look(name).letter * cells[name]) for name in shown]


def text_key(mean_ms: Mapping[str, float], scale: StepScale) -> list[str]:
    """The legend of the text bar: letter, label and milliseconds."""
    return [
        f"{look(name).letter} {look(name).label} {scale.bare(mean_ms[name])}"
        for name in svg.shown_classes([mean_ms])
    ]
