"""What is said of the ranks together? Who keeps whom waiting, and how far clocks can be trusted.

Waiting is told as what each other rank loses of a step, so that it compares with the step; the
sum over the others is in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render.format import (
    NOT_MEASURABLE,
    count,
    kind_label,
    percent,
    plural,
    ranges,
    shorten,
    significant,
)
from analyzer.render.sentences import scale_of
from analyzer.report.document import LateRank, Report, Strip

MOST_TOLD = 3
MOST_STRIPS = 32
# A late rank that costs less than this part of the dearest one is left to the table.
_WORTH_TELLING = 0.25


def lead(report: Report) -> str:
    """First who is late, or why that is not known, then how communication splits."""
    facts = report.ranks
    if facts.late:
        first = _who_is_late(report)
    elif facts.reason:
        first = _sentence(facts.reason)
    elif facts.stalled:
        first = _who_stalled(report, facts.stalled[0])
    elif facts.method is None:
        first = "The ranks were not joined, so nothing is known about who waits for whom."
    else:
        first = "No rank keeps the others waiting for longer than noise."
    rest = _sentence(facts.reason) if facts.late and facts.reason else ""
    return " ".join(part for part in (first, rest, _split(report)) if part)


def late_line(report: Report, late: LateRank) -> str:
    """One late rank in one line: what it costs each other rank, and because of what."""
    return (
        f"rank {late.rank} keeps the others waiting {_per_other(report, late)} each per step "
        f"({percent(late.share)}): {late.because}"
    )


def per_other_ms(report: Report, late: LateRank) -> float:
    """What one of the other ranks waits for it per step, in the mean."""
    return late.ms / max(len(report.run.ranks_present) - 1, 1)


def clock(report: Report) -> str:
    """How far instants of different ranks can be compared; empty when there is one rank."""
    facts = report.ranks.clock
    if len(report.run.ranks_present) < 2:
        return ""
    if facts.aligned is None:
        return "Clocks of the ranks were not compared: no collective joins them."
    if not facts.aligned:
        return "The ranks' clocks are not aligned: no offset between them fits all collectives."
    spread = f"{significant(facts.residual_us)} µs"
    if len(report.run.hosts) == 1 and not facts.moved:
        known = f": ends of a collective lie {spread} apart in the median"
        return f"All ranks share one host's clock{known if facts.residual_us is not None else ''}."
    if facts.residual_us is None:
        return "The ranks' clocks are aligned."
    moved = _listed([f"{name} by {_signed(ms)}" for name, ms in facts.moved[:MOST_TOLD]])
    rest = len(facts.moved) - MOST_TOLD
    after = f", after moving {moved}{f' and {rest} more by less' if rest > 0 else ''}"
    return (
        f"The ranks' clocks agree within {spread}, the median spread of ends that should coincide"
        f"{after if moved else ''}."
    )


def timeline(report: Report) -> str:
    """Which step the timeline shows, of which ranks; `report` has at least one strip."""
    steps = {strip.step for strip in report.ranks.strips}
    which = f"Step {steps.pop()}" if len(steps) == 1 else "One step"
    drawn = len(picked_strips(report))
    present = len(report.run.ranks_present)
    if present == 1:
        return f"{which} as it went"
    whom = "every rank" if drawn == present else f"{drawn} of {plural(present, 'rank')}"
    return f"{which} on {whom}"


def picked_strips(report: Report) -> list[Strip]:
    """Every strip up to `MOST_STRIPS`; beyond it those of late ranks and an even choice of more."""
    every = report.ranks.strips
    if len(every) <= MOST_STRIPS:
        return every
    late = {item.rank for item in report.ranks.late[: MOST_STRIPS // 2]}
    named = [strip for strip in every if strip.rank in late]
    others = [strip for strip in every if strip.rank not in late]
    room = MOST_STRIPS - len(named)
    even = [others[at * len(others) // room] for at in range(room)]
    return sorted([*named, *even], key=lambda strip: strip.rank)


def timeline_axis(report: Report) -> str:
    """What the timeline's axis counts."""
    starts = {strip.marks[0][1] for strip in report.ranks.strips if strip.marks}
    whose = "the" if len(report.run.ranks_present) == 1 else "each rank's own"
    if len(starts) > 1:
        whose = "the first rank's"
    return (
        f"Milliseconds from {whose} start of the step; stretches too short to draw are added to "
        "others of their class."
    )


def no_groups(report: Report) -> str:
    """Why there is no process group to list."""
    if any(row.group or row.group_size for row in report.collectives):
        return "No process group was recognised."
    return "None: these traces do not say which ranks a collective joins."


def levels(report: Report) -> str:
    """The three levels of parallelism: inside a GPU, inside a node, between nodes; empty where
    nothing is known of any.
    """
    found = [_inside_gpu(report)]
    for level, where in _LEVELS.items():
        groups = [g for g in report.ranks.groups if g.level == level]
        names = dict.fromkeys(_DIMENSIONS.get(g.dimension, g.dimension) for g in groups)
        if names:
            found.append(f"{where}: {shorten(_listed(list(names)), 120)}.")
    return " ".join(part for part in found if part)


_DIMENSIONS = {"sharded-data": "sharded data", "unknown": "groups of no recognised dimension"}
_LEVELS = {
    "node": "Inside a node",
    "nodes": "Between nodes",
    "unknown": "Inside a node or between nodes, which is not recorded",
}


def _inside_gpu(report: Report) -> str:
    facts = report.ranks
    if facts.occupancy is None:
        reason = facts.occupancy_reason
        return f"Inside a GPU: occupancy {shorten(reason, 200)}." if reason else ""
    return (
        f"Inside a GPU: computing kernels hold {percent(facts.occupancy)} of the threads it has "
        "room for, by the profiler's estimate and weighted by their time; more is not faster in "
        "itself."
    )


def no_efficiencies(report: Report) -> str:
    """Why there is no efficiency to list."""
    return _sentence(report.ranks.pop_reason or NOT_MEASURABLE)


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _who_is_late(report: Report) -> str:
    late = report.ranks.late
    told = [item for item in late if item.ms >= _WORTH_TELLING * late[0].ms][:MOST_TOLD]
    one = len(told) == 1
    names = _listed([str(item.rank) for item in told])
    shares = _listed([percent(item.share_of_collectives) for item in told])
    costs = _listed([_per_other(report, item) for item in told])
    parts = _listed([percent(item.share) for item in told])
    text = (
        f"Rank{'' if one else 's'} {names} arrive{'s' if one else ''} last in {shares} of "
        f"{_operations(report)}; the others wait {costs} each per step for "
        f"{'it' if one else 'them'} ({parts})."
    )
    rest = len(late) - len(told)
    return (
        f"{text} {plural(rest, 'more late rank')} cost less."
        if rest > 1
        else (f"{text} Rank {late[-1].rank} costs less." if rest else text)
    )


def _signed(ms: float) -> str:
    """ "+3.00 ms", "-350 µs"."""
    size = f"{significant(abs(ms))} ms" if abs(ms) >= 1 else f"{significant(1000 * abs(ms))} µs"
    return f"{'-' if ms < 0 else '+'}{size}"


def _who_stalled(report: Report, item: LateRank) -> str:
    few = len(item.steps) < len(report.steps.used)
    when = f" in step{'s' if len(item.steps) > 1 else ''} {ranges(item.steps)}" if few else ""
    return (
        f"No rank is late throughout; most waiting is for rank {item.rank}{when}: the others wait "
        f"{_per_other(report, item)} each per step for it ({percent(item.share)})."
    )


def _operations(report: Report) -> str:
    """The operations that shares of them are of, counted where the count is one number."""
    kinds = {row.kind for row in report.collectives}
    noun = f"{kind_label(kinds.pop())}s" if len(kinds) == 1 else "collectives"
    if report.ranks.joined_share != 1.0:
        return f"the {noun} that could be joined"
    number = sum(row.count for row in report.collectives)
    whole = abs(number - round(number)) < 1e-6
    return f"the {count(round(number))} {noun} of a step" if whole else f"the {noun}"


def _per_other(report: Report, late: LateRank) -> str:
    return scale_of(report).ms(per_other_ms(report, late))


def _split(report: Report) -> str:
    mean, scale = report.breakdown.measured, scale_of(report)
    wait, transfer, unsplit = (
        mean.get(name, 0.0) for name in ("comm_wait", "comm_transfer", "comm_unsplit")
    )
    total = wait + transfer + unsplit
    if report.ranks.method is None or total <= 0 or unsplit == total:
        return ""
    rest = f", {scale.ms(unsplit)} could not be split" if unsplit > 0 else ""
    return (
        f"Of {scale.ms(total)} of exposed communication per step {scale.ms(wait)} "
        f"({percent(wait / total)}) are waiting and {scale.ms(transfer)} "
        f"({percent(transfer / total)}) transfer{rest}."
    )


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
