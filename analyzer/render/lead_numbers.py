"""Which numbers lead the comment? The run now, and once the first finding is fixed."""

from __future__ import annotations

from analyzer.render import gains, sentences
from analyzer.render.format import multiple, percent, significant
from analyzer.render.github import escape, table
from analyzer.report.document import Finding, Report

_NUMBERS = (
    "step",
    "does not scale, f (of the step)",
    "serial fraction, s (of one GPU's step)",
    "ceiling 1/f (times faster than the step)",
    "ceiling 1/s (times faster than one GPU)",
    "efficiency",
)


def numbers(report: Report) -> str:
    """What was measured in a line, and the table of step, serial fractions and ceilings."""
    facts, scale, first = report.scaling, sentences.scale_of(report), sentences.headline(report)
    wall = report.steps.wall_ms
    lines = [
        f"{sentences.ranks(report)}, {sentences.steps(report)}, {sentences.step_time(report)}; "
        f"{sentences.mode(report)}. Confidence: {escape(report.verdict.confidence)}."
    ]
    now = [
        scale.ms(wall.mean),
        significant(facts.f.value),
        significant(facts.s.value),
        multiple(facts.ceiling_today.value, sentences.no_ceiling(report)),
        multiple(facts.ceiling_one_gpu.value, sentences.no_ceiling(report)),
        percent(facts.efficiency),
    ]
    if first is None:
        rows = [list(row) for row in zip(_NUMBERS, now, strict=True)]
        return "\n\n".join([*lines, table("< | now", rows)])
    column = "replayed, the first fixed" if gains.replayed(first) else "by share, the first fixed"
    fixed = [*_fixed(report, first), ""]
    rows = [list(row) for row in zip(_NUMBERS, now, fixed, strict=True)]
    return "\n\n".join([*lines, table(f"< | now | {column}", rows)])


def _fixed(report: Report, first: Finding) -> list[str]:
    """Step, f, s and both ceilings once the first finding is fixed; empty where not known."""
    scale, wall = sentences.scale_of(report), report.steps.wall_ms
    after = multiple(first.ceiling_after) if first.ceiling_after is not None else ""
    if not gains.replayed(first):
        return [
            scale.ms(wall.mean / first.gain.speedup) if first.gain.speedup else "",
            "",
            "",
            after,
            "",
        ]
    left = first.after
    return [
        # the recorded step over the replayed gain: the replay itself may differ by its error
        scale.ms(wall.mean / first.gain.speedup) if first.gain.speedup else "",
        significant(left.f, "") if left else "",
        significant(left.s, "") if left else "",
        after,
        gains.ceiling(left, left.ceiling_one_gpu) if left else "",
    ]
