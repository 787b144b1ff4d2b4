"""Which work was launched but not recorded, and which cannot be held against its launch?

Each rule returns the sentence when its defect is there, else "".
"""

from __future__ import annotations

from analyzer.classify.coverage import Coverage
from analyzer.config import Thresholds
from analyzer.findings.finding import percent
from analyzer.ranks.pool import Job
from analyzer.report.damage import ranks_text

FORBIDDEN = ("idle time", "launch overhead", "what-ifs", "scaling")
# Below this share of device work whose launch is that of other work too, launch times hardly change
SHARED_SHARE = 0.05


def _coverages(job: Job) -> dict[int, list[Coverage]]:
    found: dict[int, list[Coverage]] = {}
    for member in job.members:
        found.setdefault(member.rank, []).append(member.digest.evidence.launches.coverage)
    return found


def graphs(job: Job, limits: Thresholds) -> str:
    """Graph launches of which most have no work."""
    bad = {r: cs for r, cs in _coverages(job).items() if any(c.graphs_lost for c in cs)}
    if not bad:
        return ""
    calls = sum(c.graph_calls for cs in bad.values() for c in cs)
    done = sum(c.graph_calls_recorded for cs in bad.values() for c in cs)
    return (
        f"Of {calls:,} graph launches only {done:,} have recorded work ({ranks_text([*bad])}): the "
        "device was busier than shown, so idle and launch times are not given."
    )


def kernels(job: Job, limits: Thresholds) -> str:
    """Kernel launches of the used steps of which many have no kernel."""
    bad = {r: cs for r, cs in _coverages(job).items() if any(c.kernels_lost for c in cs)}
    if not bad:
        return ""
    calls = sum(c.kernel_calls for cs in bad.values() for c in cs)
    done = sum(c.kernel_calls_recorded for cs in bad.values() for c in cs)
    return (
        f"Of {calls:,} kernel launches only {done:,} have a recorded kernel "
        f"({ranks_text([*bad])}): records were lost, or a graph was being captured. The device may "
        "have been busier than shown, so idle and launch times are not given."
    )


def shared(job: Job, limits: Thresholds) -> str:
    """Device work whose launch record is that of other work, though it is no graph launch."""
    all_ = [c for cs in _coverages(job).values() for c in cs]
    count, linked = sum(c.shared for c in all_), sum(c.linked for c in all_)
    if not count or count < SHARED_SHARE * linked:
        return ""
    return (
        f"{percent(count / linked)} of the device work shares its launch record with other work, "
        "and no graph launched it: which launch it waited for is not certain."
    )
