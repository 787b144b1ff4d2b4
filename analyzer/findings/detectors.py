"""Which bottlenecks are looked for? The catalogue, in the order that breaks ties.

A detector says Finding, Passed (with the numbers that made it pass), or None where the trace cannot
tell or the question does not arise. Its thresholds come from the configuration only.
"""

from __future__ import annotations

from collections.abc import Callable

from analyzer.config import Thresholds
from analyzer.findings import communicating, lateness, skew, waiting, working
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.ranks.pool import Job
from analyzer.whatif.study import NO_STUDY, Study

CATALOGUE: dict[str, Callable[[View], Outcome]] = {
    "late-rank": lateness.late_rank,
    "rank-skew": skew.rank_skew,
    "exposed-communication": communicating.exposed_communication,
    "data-loading": waiting.data_loading,
    "kernel-launch": waiting.kernel_launch,
    "host-sync": waiting.host_sync,
    "replicated-optimizer": working.replicated_optimizer,
    "exposed-copies": working.exposed_copies,
    "allocation": waiting.allocation,
    "gloo-on-gpu": communicating.gloo_on_gpu,
    "fp32-matmul": working.fp32_matmul,
    "tiny-kernels": working.tiny_kernels,
    "single-process-loader": waiting.single_process_loader,
    "compute-bound": working.compute_bound,
}


def detect(job: Job, limits: Thresholds, study: Study = NO_STUDY) -> list[Finding | Passed]:
    """What every detector says of the job, in catalogue order, without those that cannot tell."""
    view = View(job, limits, study)
    said = (detector(view) for detector in CATALOGUE.values())
    return [outcome for outcome in said if outcome is not None]
