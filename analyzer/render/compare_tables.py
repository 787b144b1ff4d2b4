"""Which tables show a comparison? The same for the page and for Markdown; None without rows."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render import compare_words as say
from analyzer.render.adding import change, signed, written
from analyzer.render.format import (
    NOT_MEASURABLE,
    count,
    multiple,
    percent,
    plural,
    shorten,
)
from analyzer.render.rank_tables import Grid, Head
from analyzer.report.comparison import Comparison, Moved

MOST_MOVED, MOST_DIFFERENCES, MOST_FINDINGS, MOST_RUNS = 12, 12, 12, 12


def differences(comparison: Comparison) -> Grid | None:
    """What is not the same on both sides."""
    rows = comparison.comparable.differences
    if not rows:
        return None
    heads = [Head("what differs", True), Head("before", True), Head("after", True)]
    heads += [Head("weight", True), Head("so", True)]
    return Grid(
        "What differs besides the change",
        heads,
        [
            [
                row.title,
                shorten(row.before, 80),
                shorten(row.after, 80),
                "forbids it" if row.blocking else "warning",
                row.why,
            ]
            for row in rows[:MOST_DIFFERENCES]
        ],
    )


def waterfall(comparison: Comparison) -> Grid | None:
    """The classes before and after; columns and rows add up as printed."""
    if not comparison.waterfall:
        return None
    scale = say.scale_of(comparison)
    rows = [
        [
            line.label,
            written(line.before, scale),
            written(line.after, scale),
            change(line.delta, scale),
            say.interval(line.bar, scale) or NOT_MEASURABLE,
            "yes" if line.bar.clear else say.UNSURE if say.unsure(line.bar) else "by itself",
        ]
        for line in say.lines(comparison)
    ]
    rows.append(["step", *say.total(comparison), "", ""])
    heads = [Head("class", True), Head("before"), Head("after"), Head("change")]
    heads += [Head("95 % interval"), Head("beyond chance", True)]
    return Grid(
        "Milliseconds per step; rows and columns add up",
        heads,
        rows,
        f"{say.UNSURE}: the interval holds zero or is unknown. yes: with all classes judged "
        "together (Holm). by itself: by its own interval only.",
    )


def findings(comparison: Comparison) -> Grid | None:
    """Bottlenecks by what became of them."""
    rows, scale = comparison.findings, say.scale_of(comparison)
    if not rows:
        return None
    heads = [Head("bottleneck", True), Head("now", True), Head("before, ms"), Head("after, ms")]
    heads += [Head("change"), Head("worth before"), Head("worth after")]
    crossed = [f"{row.title}: {row.note}." for row in rows[:MOST_FINDINGS] if row.note]
    return Grid(
        "Bottlenecks by id; milliseconds per step",
        heads,
        [
            [
                shorten(row.title, 80),
                row.status,
                "none" if row.before_ms is None else scale.bare(row.before_ms),
                "none" if row.after_ms is None else scale.bare(row.after_ms),
                signed(row.delta_ms, scale),
                multiple(row.before_gain, ""),
                multiple(row.after_gain, ""),
            ]
            for row in rows[:MOST_FINDINGS]
        ],
        " ".join(filter(None, (_more(len(rows) - MOST_FINDINGS, "more finding"), *crossed))),
    )


def forecasts(comparison: Comparison) -> Grid | None:
    """What was promised and what was measured."""
    rows, scale = comparison.forecasts, say.scale_of(comparison)
    if not rows:
        return None
    heads = [Head("what if", True), Head("how much of it went"), Head("promised, ms")]
    heads += [Head("step is shorter by, ms"), Head("from", True)]
    note = (
        "Several causes changed, so the measured time is not that of one of them alone."
        if any(row.shared for row in rows)
        else ""
    )
    return Grid(
        "Promised before, measured after",
        heads,
        [
            [
                row.whatif,
                percent(row.part),
                scale.bare(row.promised_ms),
                signed(row.measured_ms, scale),
                "replay" if row.basis == "replay" else "share, so at most",
            ]
            for row in rows
        ],
        note,
    )


def fractions(comparison: Comparison) -> Grid:
    """Serial fractions, ceilings and efficiency on both sides."""
    old, new = comparison.before.scaling, comparison.after.scaling
    rows = [
        ["does not scale, f (of the step)", say.estimate(old.f), say.estimate(new.f)],
        ["serial fraction, s (of one GPU's step)", say.estimate(old.s), say.estimate(new.s)],
        ["ceiling, times the step", say.ceiling(old.ceiling_today), say.ceiling(new.ceiling_today)],
        [
            "ceiling, times one GPU",
            say.ceiling(old.ceiling_one_gpu),
            say.ceiling(new.ceiling_one_gpu),
        ],
        ["efficiency", percent(old.efficiency), percent(new.efficiency)],
    ]
    heads = [Head("", True), Head("before"), Head("after")]
    return Grid(f"In {old.mode} mode, at {plural(old.n, 'GPU')}; 95 % intervals", heads, rows)


def runs(comparison: Comparison) -> Grid | None:
    """Every run of both sides; None where there is one each."""
    sides = (("before", comparison.before), ("after", comparison.after))
    if sum(len(side.runs) for _, side in sides) <= 2:
        return None
    scale = say.scale_of(comparison)
    rows = [
        [
            role,
            shorten(run.label, 48),
            str(run.n),
            scale.bare(run.mean_ms),
            scale.bare(run.median_ms),
        ]
        for role, side in sides
        for run in side.runs[:MOST_RUNS]
    ]
    heads = [Head("side", True), Head("run", True), Head("steps"), Head("mean, ms"), Head("median")]
    left = sum(max(0, len(side.runs) - MOST_RUNS) for _, side in sides)
    return Grid("Steps of every run", heads, rows, _more(left, "more run"))


def kernels(comparison: Comparison) -> Grid | None:
    """Kernels that moved most."""
    return _moved(comparison, comparison.kernels, "Kernels: milliseconds per rank and step")


def collectives(comparison: Comparison) -> Grid | None:
    """Collectives that moved most."""
    return _moved(comparison, comparison.collectives, "Collectives: milliseconds per rank and step")


def ops(comparison: Comparison) -> Grid | None:
    """Ops whose device work moved most."""
    return _moved(comparison, comparison.ops, "Device work by the op that launched it")


def _moved(comparison: Comparison, rows: Sequence[Moved], caption: str) -> Grid | None:
    scale = say.scale_of(comparison)
    loud = [row for row in rows if say.noticed(row, comparison)]
    if not loud:
        return None
    heads = [Head("name", True), Head("seen", True), Head("times"), Head("before"), Head("after")]
    heads += [Head("change"), Head("more often"), Head("longer each")]
    return Grid(
        caption,
        heads,
        [
            [
                shorten(row.name, 64),
                say.status(row),
                f"{count(_round(row.before_count))} {say.ARROW} {count(_round(row.after_count))}",
                scale.bare(row.before_ms),
                scale.bare(row.after_ms),
                signed(row.delta_ms, scale),
                signed(row.by_count_ms, scale),
                signed(row.by_duration_ms, scale),
            ]
            for row in loud[:MOST_MOVED]
        ],
        _more(len(loud) - MOST_MOVED, "more name"),
    )


def _round(value: float) -> float:
    """A mean count; one that is whole but for the rounding of a mean is whole."""
    return float(round(value)) if abs(value - round(value)) < 1e-9 else value


def gates(comparison: Comparison) -> Grid | None:
    """Every gate with what was expected and found."""
    if not comparison.gates:
        return None
    heads = [Head("gate", True), Head("level", True), Head("result", True)]
    heads += [Head("expected", True), Head("found", True)]
    return Grid(
        "Gates, judged by the near end of the interval",
        heads,
        [
            [
                shorten(row.expression, 60),
                row.level,
                "passed" if row.passed else "not met",
                row.expected,
                shorten(row.found, 120),
            ]
            for row in comparison.gates
        ],
    )


def _more(left: int, noun: str) -> str:
    return f"{plural(left, noun)} in compare.json." if left > 0 else ""


TABLES = {
    "differences": differences,
    "waterfall": waterfall,
    "findings": findings,
    "forecasts": forecasts,
    "fractions": fractions,
    "runs": runs,
    "kernels": kernels,
    "collectives": collectives,
    "ops": ops,
    "gates": gates,
}
