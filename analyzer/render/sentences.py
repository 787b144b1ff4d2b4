"""What does each section say in one sentence? The same words for page, comment and terminal.

Every percentage has milliseconds beside it, and a section with nothing to show says why.
"""

from __future__ import annotations

import math

from analyzer.render.format import (
    MODES,
    NOT_BOUNDED,
    NOT_MEASURABLE,
    StepScale,
    duration,
    look,
    multiple,
    percent,
    plural,
    significant,
)
from analyzer.report.document import Breakdown, Caveat, Estimate, Finding, Knee, Report

LOWERS = "This work scales: removing it lowers the ceiling but still speeds up each step."
# A smaller part of the step is not worth words; the table has it.
LEAST_TOLD = 0.005
# Two ceilings nearer to each other than this are told as one.
CLOSE = 0.97


def scale_of(report: Report) -> StepScale:
    """The scale of every time in `report`."""
    return StepScale.of(report.steps.wall_ms.mean)


def verdict(report: Report) -> tuple[str, str]:
    """The first sentence of the verdict, and the rest of it (may be empty)."""
    first, stop, rest = report.verdict.text.partition(". ")
    return first + stop.rstrip(), rest


def ranks(report: Report) -> str:
    """How many ranks were read, of how many there are."""
    present, world = len(report.run.ranks_present), report.run.world_size
    if world is None or world == present:
        return plural(present, "rank")
    return f"{present:,} of {plural(world, 'rank')}"


def steps(report: Report) -> str:
    """How many steps were used, of how many were seen."""
    used, dropped = len(report.steps.used), len(report.steps.dropped)
    said = f"{used:,} of {plural(used + dropped, 'step')} used" if dropped else plural(used, "step")
    kinds = ", ".join(f"{len(of.steps):,} {of.name}" for of in report.steps.phases)
    return f"{said} ({kinds})" if kinds else said


def phases(report: Report) -> str:
    """How long iterations of each phase are; empty where there are not several."""
    scale, found = scale_of(report), report.steps.phases
    each = "; ".join(f"{of.name} {scale.ms(of.mean_ms)} in the mean" for of in found)
    return f"Iterations: {each}." if len(found) > 1 else ""


def step_time(report: Report) -> str:
    """The mean step with its interval, or without one."""
    wall, scale = report.steps.wall_ms, scale_of(report)
    if wall.lo is None or wall.hi is None:
        return f"{scale.ms(wall.mean)} per step"
    bounds = f"{scale.bare(wall.lo)} to {scale.bare(wall.hi)}"
    return f"{scale.ms(wall.mean)} per step (95 % interval {bounds})"


def interval(estimate: Estimate) -> str:
    """The interval of an estimate, or why there is none."""
    if estimate.lo is None and estimate.hi is None:
        return estimate.reason.rstrip(".") or "no interval"
    upper = significant(estimate.hi, "unbounded")
    return f"95 % interval {significant(estimate.lo)} to {upper}"


def envelope(estimate: Estimate) -> str:
    """The structural envelope of an estimate, empty without one."""
    if estimate.envelope is None:
        return ""
    lo, hi = estimate.envelope
    return f"by other assumptions {significant(lo)} to {significant(hi, 'unbounded')}"


def mode(report: Report) -> str:
    """The mode of scaling and what it holds fixed."""
    held = MODES.get(report.scaling.mode)
    return f"{report.scaling.mode} mode: {held}" if held else f"{report.scaling.mode} mode"


def ceilings(report: Report) -> str:
    """Both ceilings, and the one that follows the first finding."""
    scaling = report.scaling
    today, one = scaling.ceiling_today, scaling.ceiling_one_gpu
    if report.scaling.n == 1 and today.value is not None:
        return f"Ceiling {multiple(today.value)}, of one GPU and of today alike: one GPU ran."
    if today.value is None and one.value is None:
        return f"No ceiling: {today.reason or one.reason or NOT_BOUNDED}."
    text = f"Ceiling {multiple(today.value)} today, {multiple(one.value)} over one GPU"
    first = headline(report)
    if first is not None and first.ceiling_after is not None:
        text += f"; another {multiple(first.ceiling_after)} once that is fixed"
    return text + "."


def no_ceiling(report: Report) -> str:
    """The words for a ceiling that is null: nothing bounds the run, or that cannot be told."""
    unknown = report.scaling.f.value is None and report.scaling.mode != "weak"
    return NOT_MEASURABLE if unknown else NOT_BOUNDED


def headline(report: Report) -> Finding | None:
    """The finding the verdict speaks of, None when nothing stands out."""
    return next((item for item in report.findings if item.id == report.verdict.finding), None)


def forbids(caveat: Caveat) -> str:
    """What a caveat forbids to conclude, as a sentence; empty when it forbids nothing."""
    return f"Cannot be concluded: {'; '.join(caveat.forbids)}." if caveat.forbids else ""


def lowers_ceiling(report: Report, finding: Finding) -> bool:
    """Whether the fix removes work that scales, so that what stays is a larger share."""
    today, after = report.scaling.ceiling_today.value, finding.ceiling_after
    return today is not None and after is not None and after < today


def ceiling_after(finding: Finding) -> str:
    """The ceiling over the step as it is once the finding is fixed, or why there is none."""
    unbounded = finding.reason == NOT_BOUNDED
    return multiple(finding.ceiling_after, "unbounded" if unbounded else NOT_MEASURABLE)


def findings(report: Report) -> str:
    """Leads the list of findings, or says that nothing stands out."""
    if not report.findings:
        checked = f"{plural(len(report.passed), 'check')} passed." if report.passed else ""
        return f"No bottleneck with a known cause stands out. {checked}".strip()
    if report.whatif.basis == "share":
        return (
            "Each multiple is a share, not a gain: what were left if just that time went, and "
            "nothing took its place or waited for it."
        )
    return (
        "Each gain is replayed: the run without the cause against the run as it is; in brackets "
        "its 95 % interval."
    )


def where(report: Report) -> str:
    """The step in words, largest classes first, with both percent and milliseconds."""
    parts, scale = report.breakdown, scale_of(report)
    total = sum(parts.measured.values())
    if total <= 0:
        return "No time was found in the steps, so it cannot be split."
    spent = sorted(
        ((ms, name) for name, ms in parts.measured.items() if ms > 0), key=lambda item: -item[0]
    )
    told = [(ms, name) for ms, name in spent[:5] if ms >= LEAST_TOLD * total]
    words = [f"{percent(ms / total)} ({scale.ms(ms)}) {look(name).verb}" for ms, name in told]
    rest = sum(ms for ms, _ in spent[len(told) :])
    if rest > 0:
        words.append(f"{percent(rest / total)} ({scale.ms(rest)}) is the rest")
    line = "host timeline (no device activity in the trace)" if parts.timeline == "host" else ""
    return f"Of the step{', on the ' + line + ',' if line else ''} {', '.join(words)}."


def hidden(parts: Breakdown, scale: StepScale) -> str:
    """What is said of communication that ran beside compute."""
    if parts.hidden_comm_ms is None:
        return "Whether communication runs beside compute is not measurable."
    if parts.hidden_comm_ms <= 0:
        return "No communication runs beside compute."
    time = scale.ms(parts.hidden_comm_ms)
    return f"Another {time} of communication run beside compute and are not counted here."


def over_time(report: Report) -> str:
    """Which steps were used, how steady they are, and what was dropped."""
    totals = [sum(row.measured.values()) for row in report.breakdown.per_step]
    used = report.steps.used
    if not used:
        return "No step was used."
    names = (
        f"Steps {used[0]} to {used[-1]} are used"
        if len(used) > 1
        else f"Only step {used[0]} is used, so nothing can be said about change"
    )
    if len(totals) > 1:
        spread = max(totals) - min(totals)
        part = spread / (sum(totals) / len(totals)) if sum(totals) else 0.0
        names += f"; they spread by {scale_of(report).ms(spread)} ({percent(part)})"
    return f"{names}. {dropped(report)}".strip()


def dropped(report: Report) -> str:
    """The steps left out, grouped by reason; empty when none was."""
    by_reason: dict[str, list[str]] = {}
    for step in report.steps.dropped:
        by_reason.setdefault(step.why, []).append(str(step.index))
    listed = [f"{', '.join(which)} ({why})" for why, which in by_reason.items()]
    return f"Left out: {'; '.join(listed)}." if listed else ""


def idle(report: Report) -> str:
    """The largest cause of idle time, or that there is none."""
    if report.breakdown.timeline == "host":
        return "No device work was recorded, so there is no idle time of a device to explain."
    if not report.idle:
        return "No idle time of the device was found to explain."
    scale, total = scale_of(report), sum(item.ms for item in report.idle)
    first = max(report.idle, key=lambda item: item.ms)
    return f"{scale.bare(first.ms)} of {scale.bare(total)} idle ms: {first.text}"


def scaling(report: Report) -> str:
    """What to expect of twice and four times the GPUs."""
    facts = report.scaling
    ahead = [row for row in facts.predict if row.n in (2 * facts.n, 4 * facts.n)]
    if not ahead:
        reason = facts.ceiling_today.reason or facts.f.reason
        return f"No prediction: {reason}" if reason else "No prediction could be made."
    expected = " and ".join(f"{multiple(row.speedup)} at {plural(row.n, 'GPU')}" for row in ahead)
    ceiling = facts.ceiling_one_gpu.value
    end = f"never above {multiple(ceiling)}" if ceiling is not None else f"a ceiling {NOT_BOUNDED}"
    grown = facts.limit.ceiling_one_gpu if facts.limit else None
    if ceiling is not None and grown is not None and grown < CLOSE * ceiling:
        end += f", {multiple(grown)} {_why(report)}"
    return f"Over one GPU expect {expected}, {end}, if what does not scale stays as it is."


def _why(report: Report) -> str:
    """Why the prediction ends before the ceiling does."""
    if report.scaling.basis == "replay":
        return "replayed with communication and a host that do not shrink"
    return "as communication grows with the GPUs"


def knee(report: Report) -> str:
    """Where this trace's curve bends; empty where nothing is predicted."""
    found = report.scaling.knee
    if found is None:
        return ""
    pays = (
        f" Beyond {_gpus(found.pays)} each percent of speed costs more than one percent of "
        "GPU-hours."
        if found.pays is not None
        else ""
    )
    return bends(found) + pays


def bends(knee: Knee) -> str:
    """Where the curve bends, in GPUs."""
    said = []
    if knee.nine_tenths is not None:
        said.append(f"90 % efficient up to {_gpus(knee.nine_tenths)}")
    if knee.half is not None:
        said.append(f"50 % up to {_gpus(knee.half)}")
    if knee.fastest is not None:
        said.append(f"the step is shortest on about {_gpus(knee.fastest)}")
    if not said:
        return f"Efficiency stays above 50 % up to {knee.up_to:,} GPUs."
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _gpus(value: float) -> str:
    return plural(max(1, math.floor(value)), "GPU")


def whole_run(report: Report) -> str:
    """The length of the whole run now and at the ceiling; empty when it was not given."""
    length = report.scaling.duration
    if length is None:
        return ""
    now = f"The whole run takes {duration(length.today_s)} today"
    if report.scaling.mode == "weak":
        return f"{now}."
    end = duration(length.ceiling_s, NOT_BOUNDED)
    grown, ceiling = length.limit_s, length.ceiling_s
    if grown is not None and ceiling is not None and ceiling < CLOSE * grown:
        end += f", {duration(grown)} {_why(report)}"
    return f"{now}; at the ceiling {end}."


def kernels(report: Report) -> str:
    """How much of the step the listed kernels are."""
    if not report.kernels:
        return "No kernel ran on a device in the used steps."
    listed, scale = report.kernels[:15], scale_of(report)
    first = listed[0]
    line = f"The longest takes {scale.ms(first.ms)} of a step ({percent(first.share)})"
    rest = report.kernels[15:]
    if not rest:
        return f"{line}."
    ms, part = sum(item.ms for item in rest), sum(item.share for item in rest)
    return f"{line}; rest: {plural(len(rest), 'name')}, {scale.ms(ms)} ({percent(part)})."
