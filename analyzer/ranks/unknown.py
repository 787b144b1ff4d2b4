"""Which classes of time can the traces not tell at all? Their 0 means unknown, not none.

A class that took time is measured; where it took none it is a fact only if it could have been seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.classify import classes as c
from analyzer.ranks.pool import Job

NO_DEVICE = "not measurable: no device work was recorded"
NO_LAUNCHES = "not measurable: no launch was recorded, and idle time is told apart by launches"
NO_LOADER = "not measurable: no call of a data loader was recorded"
NO_COLLECTIVES = "not measurable: no collective was recorded"
ON_THE_HOST_ONLY = "not measurable: collectives were recorded on the host only"
WORK_LOST = (
    "not measurable: launched work was not recorded, so the device may have been busy where it "
    "looks idle"
)

# Classes of idle time that has a cause.
_IDLE = (c.DATA_LOADING, c.LAUNCH, c.HOST_SYNC, c.HOST_OTHER, c.DEPENDENCY)
_COMMUNICATION = c.GROUPS["communication"]


def unknown(job: Job) -> dict[str, str]:
    """Class -> why it is not known, in the order of CLASSES."""
    found: dict[str, str] = {}

    def forbid(names: Iterable[str], why: str) -> None:
        found.update({n: why for n in names if not job.mean_ns[n] and n not in found})

    if job.timeline == "host":
        forbid((c.COPY, c.LAUNCH, c.HOST_SYNC, c.HOST_OTHER, c.DEPENDENCY), NO_DEVICE)
    elif work_lost(job):
        forbid(_IDLE, WORK_LOST)
    elif not job.total(lambda e: e.launches.calls):
        forbid(_IDLE, NO_LAUNCHES)
    if not job.any(lambda e: e.loader.events):
        forbid((c.DATA_LOADING,), NO_LOADER)
    if why := no_collectives(job):
        forbid(_COMMUNICATION, why)
    return {name: found[name] for name in c.CLASSES if name in found}


def work_lost(job: Job) -> bool:
    """Whether launches of a rank lack their work: what looks idle then may be busy."""
    return job.any(lambda e: e.launches.coverage.lost)


def no_collectives(job: Job) -> str:
    """Why the communication of several ranks is not known; "" where it is, or of one rank."""
    if job.size < 2 or job.collectives or job.group_ns["communication"] or job.hidden_ns:
        return ""
    seen = job.any(lambda e: e.host.collective_calls)
    return ON_THE_HOST_ONLY if seen else NO_COLLECTIVES
