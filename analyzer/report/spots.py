"""Where in which file should one look? The step of one rank that has most of a class of time."""

from __future__ import annotations

from analyzer.ranks.pool import Job, StepId
from analyzer.report.document import Spot

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
