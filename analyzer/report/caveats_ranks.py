"""What is wrong with the ranks as a whole: missing, not joined, on other clocks, not of one run?

Each rule returns the sentence when its defect is there, else "".
"""

from __future__ import annotations

from analyzer.config import Thresholds
from analyzer.findings.finding import percent
from analyzer.ranks.agreement import MISMATCHES
from analyzer.ranks.pool import Job

# Below this share of collectives that were not joined, waits and late ranks hardly change.
UNMATCHED_SHARE = 0.05


def missing_ranks(job: Job, limits: Thresholds) -> str:
    """Ranks of the run that were not given."""
    if job.world_size is None or len(job.ranks) >= job.world_size:
        return ""
    # A group of which all ranks are here can be joined without the others.
    joined = "" if job.together.method else ", nor about who waits for whom"
    return (
        f"{len(job.ranks)} of {job.world_size} ranks present: nothing can be said about the "
        f"others{joined}."
    )


def one_rank(job: Job, limits: Thresholds) -> str:
    """A lone rank of a run that communicates."""
    alone = len(job.ranks) == 1 and job.world_size is None
    if not alone or not (job.collectives or job.group_ns["communication"]):
        return ""
    return (
        "One rank of a run that communicates: all numbers are of this rank, and others may wait "
        "for it or it for them."
    )


def not_joined(job: Job, limits: Thresholds) -> str:
    """Communication that is not split, and why most of it is not."""
    unsplit = job.share(job.mean_ns["comm_unsplit"])
    if len(job.ranks) < 2 or unsplit < limits.exposed_comm_share:
        return ""
    reasons = job.together.matching.left.most_common(1)
    why = f", most of it {reasons[0][0]}" if reasons else ""
    return (
        f"{percent(unsplit)} of the step is communication that is not split into waiting and "
        f"transfer{why}: it holds both, and waiting for a late rank is often the larger part."
    )


def clocks(job: Job, limits: Thresholds) -> str:
    """Clocks that contradict each other."""
    if job.together.clocks.aligned is not False:
        return ""
    return (
        "The ranks' clocks contradict each other: by them a collective would end on one rank "
        "before it began on another. Its shortest duration is taken for its transfer, and no rank "
        "is called late."
    )


def unmatched(job: Job, limits: Thresholds) -> str:
    """Records that could not be joined though their ranks were recorded, by reason."""
    matching = job.together.matching
    wrong = {why: matching.left[why] for why in MISMATCHES if matching.left[why]}
    if not wrong or sum(wrong.values()) < UNMATCHED_SHARE * matching.records:
        return ""
    reasons = "; ".join(f"{count:,} records, {why}" for why, count in wrong.items())
    return (
        f"Of {matching.records:,} records of collectives some could not be joined over the ranks: "
        f"{reasons}. What they cost is not split into waiting and transfer."
    )


def assumed(job: Job, limits: Thresholds) -> str:
    """Ranks without a named group that were joined as one."""
    if not job.together.perhaps_several:
        return ""
    return (
        "No process group is named: the collectives of all ranks are taken for those of one group, "
        "as they end together. Of several groups that run in step the waits would be overstated."
    )


def steps_differ(job: Job, limits: Thresholds) -> str:
    """Steps that not all ranks have."""
    if not job.common_steps:
        return "The ranks have no step number in common: each rank's own steps were averaged."
    counted = {(m.cycle, s.index) for m in job.members for s in m.digest.used}
    apart = sorted({index for _, index in counted - {tuple(step) for step in job.steps}})
    if not apart:
        return ""
    return (
        f"Steps {', '.join(map(str, apart[:6]))} are not on every rank: classes are over the steps "
        "that are, tables of kernels, collectives and idle causes over each rank's own."
    )


def ranks_disagree(job: Job, limits: Thresholds) -> str:
    """Ranks on different GPUs, or that meet and yet take different times."""
    gpus = {m.digest.meta.gpus[0] for m in job.members if m.digest.meta.gpus}
    if len(gpus) > 1:
        return f"The ranks ran on different GPUs ({', '.join(sorted(gpus))}): is this one run?"
    steps = {rank: float(ns.sum()) for rank, ns in job.by_rank.items()}
    ranges = [
        (min(alike), max(alike))
        for met in job.together.meeting(job.ranks)
        for alike in [[steps[rank] for rank in met]]
    ]
    least, most = max(ranges, key=lambda pair: pair[1] / max(pair[0], 1.0))
    if most - least <= limits.steps_agree_share * most:
        return ""
    return (
        f"Mean steps last {least / 1e6:.3g} to {most / 1e6:.3g} ms on different ranks: ranks that "
        "wait for each other in every step take the same time, so this may be several runs."
    )
