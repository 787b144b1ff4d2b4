"""Which steps are worth a name? The one with most of a class of time, and those of each phase."""

from __future__ import annotations

from analyzer.ranks.pool import Job, StepId
from analyzer.report.document import Phase, Spot

NS_PER_MS = 1e6
NS_PER_US = 1e3


def spot(job: Job, time_class: str) -> Spot | None:
    """The used step with most of the class, on the rank with most of it; None where none has any.

    Of equal ones the first. Times are those of the rank's file, us.
    """
    used = set(job.steps)
    found = [
        (step.ns.get(time_class, 0), member, step)
        for member in job.members
        for step in member.digest.used
        if StepId(member.cycle, step.index) in used
    ]
    ns, member, step = max(found, key=lambda row: row[0])
    if not ns:
        return None
    base = member.digest.meta.base_ns or 0
    return Spot(
        rank=member.rank,
        step=step.index,
        cycle=member.cycle,
        file=member.digest.meta.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        start_us=(step.start - base) / NS_PER_US,
        end_us=(step.end - base) / NS_PER_US,
        ms=ns / NS_PER_MS,
    )


def phases(job: Job) -> list[Phase]:
    """The used steps of each phase of a serving engine, the first to come first; none otherwise."""
    phase_of = {
        StepId(m.cycle, step.index): step.phase for m in job.members for step in m.digest.used
    }
    rows: dict[str, list[tuple[int, float]]] = {}
    for step, ns in zip(job.steps, job.per_step.sum(axis=1).tolist(), strict=True):
        rows.setdefault(phase_of[step], []).append((step.number, ns / NS_PER_MS))
    return [
        Phase(
            name=name,
            steps=[number for number, _ in of],
            mean_ms=sum(ms for _, ms in of) / len(of),
        )
        for name, of in rows.items()
        if name
    ]
