"""What should be attacked first? Findings by what a fix is worth at most, and the first sentence.

For now the order is by shares: 1/(1 - share) is the most a fix can give, not what it will give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.classify.classes import COMPUTE, UNEXPLAINED
from analyzer.classify.idle import CAUSES
from analyzer.config import Thresholds
from analyzer.findings.detectors import CATALOGUE
from analyzer.findings.finding import Finding, Passed, View, multiple, percent, sentences
from analyzer.findings.working import work_kinds
from analyzer.ranks.pool import Job
from analyzer.scaling.serial import Setting, fixed

MOST_FINDINGS = 8


class RankedFinding(NamedTuple):
    """A finding and the ceiling over today once it is fixed; None if unbounded or unknown."""

    finding: Finding
    ceiling_after: float | None


@dataclass(frozen=True)
class Ranked:
    """Findings, most worth first, and the sentences on what was checked and is fine."""

    findings: list[RankedFinding]
    passed: list[str]


class Verdict(NamedTuple):
    """The first sentence, the id of the finding it orders to attack if any, and how sure it is."""

    text: str
    finding: str | None
    confidence: str


def rank(
    outcomes: Sequence[Finding | Passed], job: Job, setting: Setting, limits: Thresholds
) -> Ranked:
    """At most MOST_FINDINGS findings above the noise, by bound, then those that have none.

    Ties go by the catalogue. Being bound by computing is told only where nothing else is.
    """
    found = [f for f in outcomes if isinstance(f, Finding) and f.share >= limits.noise_share]
    others = [f for f in found if f.id != "compute-bound"]
    place = {name: i for i, name in enumerate(CATALOGUE)}
    ordered = sorted(
        others or found,
        key=lambda f: (
            f.saved_ns is None,
            -(f.ns if f.saved_ns is None else f.saved_ns),
            place[f.id],
        ),
    )
    return Ranked(
        findings=[RankedFinding(f, _ceiling(f, job, setting)) for f in ordered[:MOST_FINDINGS]],
        passed=[p.text for p in outcomes if isinstance(p, Passed)],
    )


def _ceiling(finding: Finding, job: Job, setting: Setting) -> float | None:
    if not finding.removes:
        return None
    return fixed(job.mean_ns, setting, finding.removes).ceiling_today


def verdict(ranked: Ranked, job: Job, limits: Thresholds) -> Verdict:
    """What to attack first, or that nothing stands out, or that the trace does not tell."""
    view = View(job, limits)
    first = next((f for f, _ in ranked.findings if f.id != "compute-bound"), None)
    unexplained = job.mean_ns[UNEXPLAINED]
    dominates = job.share(unexplained) >= limits.unexplained_share
    if dominates and unexplained > (first.ns if first else 0.0):
        return Verdict(_unexplained(view, unexplained, first), None, "low")
    if first is None:
        return Verdict(_nothing(view), None, view.confidence())
    worth = (
        "what that is worth cannot be told from shares"
        if first.speedup_bound is None
        else f"at most {multiple(first.speedup_bound)} (share, not gain)"
    )
    text = (
        f"{first.attack} first: {view.ms(first.ns)} of every {view.ms(job.step_ns)} step, {worth}."
    )
    return Verdict(sentences(text, first.why), first.id, first.confidence)


# Cause of unexplained idle time -> what would explain it.
_EXPLAIN = {
    "host_unknown": "Only operators and launches are read: Python code between them is not seen.",
    "held_unknown": "Another process on the same GPU may have held it.",
    "unlinked": "Launches are recorded with ProfilerActivity.CPU only.",
}


def _unexplained(view: View, ns: float, first: Finding | None) -> str:
    """Idle time without a cause is the largest item: says so instead of blaming something else."""
    causes = [c for c in view.job.causes if CAUSES[c.cause].time_class == UNEXPLAINED]
    largest = max(causes, key=lambda c: c.ns) if causes else None
    why = CAUSES[largest.cause].text if largest else "no operator ran"
    time = "idle time" if view.on_device else "time"
    return sentences(
        f"{percent(view.job.share(ns))} of the step ({view.ms(ns)} of {view.ms(view.job.step_ns)}) "
        f"is {time} that the trace does not explain: {why}.",
        _EXPLAIN[largest.cause] if largest else "",
        f"What comes next has a cause, {view.both(first.ns)}: {first.title}." if first else "",
    )


def _nothing(view: View) -> str:
    """The sentence on a run without findings: what its step does instead."""
    job, limits = view.job, view.limits
    computes, exposed = job.mean_ns[COMPUTE], job.group_ns["communication"]
    matrix, memory = work_kinds(job)
    kind = ""
    if matrix is not None and matrix > 0.5:
        kind = ", mostly in matrix kernels"
    elif memory is not None and memory > 0.5:
        kind = ", mostly in kernels that move memory"
    comm = ""
    if job.share(exposed) >= limits.noise_share:
        comm = f", and {percent(job.share(exposed))} is communication that nothing hides"
    elif job.hidden_ns > 0:
        comm = ", and communication is hidden"
    bound = job.share(computes) >= limits.compute_bound_share
    return sentences(
        f"Nothing stands out: {percent(job.share(computes))} of the step "
        f"({view.ms(computes)} of {view.ms(job.step_ns)}) computes{kind}{comm}.",
        f"Only faster or fewer {view.work}s would make it shorter." if bound else "",
    )
