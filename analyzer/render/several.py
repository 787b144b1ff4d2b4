"""What is said of several world sizes? Sentences and tables of a scaling report."""

from __future__ import annotations

from analyzer.render import sentences, turns
from analyzer.render.format import (
    MODES,
    NOT_BOUNDED,
    NOT_MEASURABLE,
    StepScale,
    count,
    kind_label,
    look,
    multiple,
    percent,
    plural,
    significant,
)
from analyzer.render.rank_tables import Grid, Head
from analyzer.report.scaling import FittedClass, FittedLaw, ScalePoint, ScalingReport

LAWS = {
    "classes": "class by class",
    "usl": "Universal Scalability Law",
    "amdahl": "Amdahl's law",
}
WEAK_LAWS = LAWS | {"amdahl": "a step that stays (Gustafson)"}


def scale_of(report: ScalingReport) -> StepScale:
    """Decimals of all milliseconds of the report."""
    return StepScale.of(min(point.step_ms for point in report.points))


def mode(report: ScalingReport) -> str:
    """The mode of scaling and what it holds fixed."""
    held = MODES.get(report.mode)
    return f"{report.mode} mode: {held}" if held else f"{report.mode} mode"


def law_name(report: ScalingReport, ident: str) -> str:
    """A law in words."""
    return (WEAK_LAWS if report.mode == "weak" else LAWS).get(ident, ident)


def best(report: ScalingReport) -> FittedLaw | None:
    """The law that is named, None without one."""
    return next((law for law in report.laws if law.best), None)


def quality(report: ScalingReport) -> str:
    """Which law fits best and how well it predicts what it has not seen."""
    law = best(report)
    if law is None:
        return f"No law is fitted: {report.reason}."
    return (
        f"The best law is {law_name(report, law.id)}: it predicts each size from the others with "
        f"an error of {percent(law.loo_error)}."
    )


def fractions(report: ScalingReport) -> str:
    """The serial fractions and what their drift means."""
    known = [p for p in report.points if p.karp_flatt is not None]
    if not known:
        return f"{report.series.text}."
    listed = ", ".join(f"{significant(p.karp_flatt)} on {p.n:,}" for p in known)
    base = "one GPU" if report.base == 1 else f"{report.base:,} GPUs"
    return f"Of the step on {base}: {listed}. It is {report.series.text}."


def ceiling(report: ScalingReport) -> str:
    """The range of the ceiling, and where the curve bends."""
    found = report.ceiling
    said = []
    if found.lo is not None:
        said.append(f"The ceiling's range is {significant(found.lo)} to {multiple(found.hi)}.")
    elif found.reason and not report.reason:
        said.append(f"{found.reason[:1].upper()}{found.reason[1:]}.")
    if report.knee is not None:
        said.append(sentences.bends(report.knee))
    return " ".join(said)


def points(report: ScalingReport) -> Grid:
    """What was measured."""
    scale, base = scale_of(report), report.points[0]
    heads = [Head("GPUs"), Head("run", True), Head("ms per step"), Head("95 % interval"),
             Head("steps"), Head("speedup"), Head("efficiency"), Head("GPU-seconds per sample"),
             Head("serial fraction")]  # fmt: skip
    rows = [
        [
            count(p.n),
            p.label,
            scale.bare(p.step_ms),
            "none" if p.lo is None or p.hi is None else f"{scale.bare(p.lo)} to {scale.bare(p.hi)}",
            count(p.steps),
            multiple(p.speedup),
            percent(p.efficiency),
            f"{significant(1 / p.efficiency)} of that on {base.n:,}" if p is not base else "1",
            _fraction(p),
        ]
        for p in report.points
    ]
    return Grid("Measured; speedup and efficiency against the smallest run", heads, rows)


def _fraction(point: ScalePoint) -> str:
    if point.karp_flatt is None:
        return "not defined"
    bounds = ""
    if point.karp_flatt_lo is not None and point.karp_flatt_hi is not None:
        low, high = significant(point.karp_flatt_lo), significant(point.karp_flatt_hi)
        bounds = f" ({low} to {high})"
    return f"{significant(point.karp_flatt)}{bounds}"


def predictions(report: ScalingReport) -> Grid | None:
    """The best law at each size, and after fixes; None without a law."""
    law = best(report)
    if law is None:
        return None
    scale = scale_of(report)
    counts = sorted({fixes for row in report.predict for fixes, _ in row.after})
    heads = [Head("GPUs"), Head("ms per step"), Head("interval"), Head("speedup"),
             Head("efficiency")]  # fmt: skip
    heads += [Head("after fix 1" if k == 1 else f"after fixes 1 to {k}") for k in counts]
    measured = {p.n for p in report.points}
    rows = []
    for row in report.predict:
        after = dict(row.after)
        name = count(row.n) + (" (measured)" if row.n in measured else " *" if row.beyond else "")
        if row.step_ms is None or row.lo is None or row.hi is None:
            rows.append([name, "refused", *[""] * (3 + len(counts))])
            continue
        rows.append(
            [
                name,
                scale.bare(row.step_ms),
                f"{scale.bare(row.lo)} to {scale.bare(row.hi)}",
                multiple(row.speedup),
                percent(row.efficiency),
                *(scale.bare(after.get(k)) for k in counts),
            ]
        )
    notes = list(dict.fromkeys(f"{row.reason[:1].upper()}{row.reason[1:]}; --beyond forces it."
                               for row in report.predict if row.reason))  # fmt: skip
    if any(row.beyond and row.step_ms is not None for row in report.predict):
        notes.append("* more than four times the largest run: a guess.")
    return Grid(f"Predicted, {law_name(report, law.id)}", heads, rows, " ".join(notes))


def fixes(report: ScalingReport) -> str:
    """Which fixes the columns after fixes mean; empty where there are none."""
    if not report.order:
        return ""
    listed = "; ".join(f"{at}. {turns.name(edit)}" for at, edit in enumerate(report.order, start=1))
    return f"Fixes, those of the largest run, in the order in which they gain: {listed}."


def laws(report: ScalingReport) -> Grid | None:
    """All laws with their parameters and errors."""
    if not report.laws:
        return None
    heads = [Head("law", True), Head("leave-one-out error"), Head("parameters", True),
             Head("remark", True)]  # fmt: skip
    rows = [
        [
            law_name(report, law.id) + (" (best)" if law.best else ""),
            percent(law.loo_error),
            ", ".join(f"{name} {_parameter(name, value)}" for name, value in law.parameters.items())
            or ("see the classes" if law.id == "classes" else "none"),
            law.reason or "none",
        ]
        for law in report.laws
    ]
    return Grid("Laws, and how well each predicts a size that it has not seen", heads, rows)


def _parameter(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return f"{significant(value)} ms" if name.endswith("_ms") else significant(value)


def classes(report: ScalingReport) -> Grid:
    """Each class at each size with its growth."""
    scale = scale_of(report)
    heads = [Head("class", True), *(Head(f"{p.n:,} GPUs") for p in report.points),
             Head("trend", True), Head("growth", True)]  # fmt: skip
    rows = [
        [
            look(item.class_).label,
            *(scale.bare(ms) for _, ms in item.points),
            item.trend,
            formula(item, scale),
        ]
        for item in report.classes
    ]
    note = "Growth of exposed transfer is that of all communication, hidden or not."
    return Grid(
        "Milliseconds per step by class, and how they grow", heads, rows,
        note if any(item.class_ == "comm_transfer" for item in report.classes) else "",
    )  # fmt: skip


def formula(item: FittedClass, scale: StepScale) -> str:
    """The fit as a sum of shapes of N."""
    parts = [
        scale.ms(ms) if shape == "1" else f"{scale.ms(ms)} x {shape}" for shape, ms in item.terms
    ]
    return " + ".join(parts) or NOT_MEASURABLE


def attack(report: ScalingReport) -> str:
    """Which class to attack at the next size: the largest that does not fall, or, where the batch
    of a GPU is fixed and none is meant to, that grows.
    """
    wanted = ("grows",) if report.mode == "weak" else ("grows", "flat")
    growing = [item for item in report.classes if item.trend in wanted]
    if not growing:
        weak = report.mode == "weak"
        return "No class grows with the GPUs." if weak else "Every class falls with more GPUs."
    first = max(growing, key=lambda item: item.points[-1][1])
    scale, last = scale_of(report), report.points[-1]
    moves = "grows" if first.trend == "grows" else "does not fall"
    return (
        f"The largest class that {moves} is {look(first.class_).label}: "
        f"{scale.ms(first.points[-1][1])} of {scale.ms(last.step_ms)} on {plural(last.n, 'GPU')}."
    )


def links(report: ScalingReport) -> Grid | None:
    """Latency and bandwidth by kind and group; None without collectives."""
    if not report.links:
        return None
    heads = [Head("kind", True), Head("group", True), Head("rows"), Head("latency per hop, us"),
             Head("bandwidth, GB/s"), Head("residual"), Head("remark", True)]  # fmt: skip
    rows = [
        [
            kind_label(link.kind),
            link.group or "not named",
            count(link.rows),
            significant(link.latency_us),
            significant(link.bandwidth_gbs),
            percent(link.residual),
            link.reason or "none",
        ]
        for link in report.links
    ]
    return Grid("What a hop and a byte cost (alpha and beta), from transfer times", heads, rows)


def findings(report: ScalingReport) -> list[str]:
    """The largest run's first findings, each with its gain."""
    return [
        f"{at}. {item.title} ({multiple(item.gain.speedup, NOT_BOUNDED)} "
        f"{'replayed' if item.gain.basis == 'replay' else 'at most'})"
        for at, item in enumerate(report.findings, start=1)
    ]
