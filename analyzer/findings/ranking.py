"""What should be attacked first? Findings by the gain of their fix, and the first sentence.

Where the run could not be replayed the order is by shares: 1/(1 - share) is the most a fix can
give, not what it will give.
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
from analyzer.scaling.serial import Remaining, Setting, fixed
from analyzer.whatif.study import Gain, Study, faster

MOST_FINDINGS = 8

# Findings whose fix is not all of a public edit, or of none: the study's own edit for them.
_EDIT_OF = {
    "exposed-communication": "transfer",
    "kernel-launch": "launching",
    "replicated-optimizer": "sharded-optimizer",
    "exposed-copies": "copies",
    "allocation": "allocation",
}


class RankedFinding(NamedTuple):
    """A finding, its replayed gain (None without one), whether that is noise, and what is left of
    the run once it is fixed; None where the finding does not tell what it removes.
    """

    finding: Finding
    gain: Gain | None
    noise: bool
    after: Remaining | None

    @property
    def ceiling_after(self) -> float | None:
        """The ceiling over today once it is fixed; None if unbounded or unknown."""
        return None if self.after is None else self.after.ceiling_today


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
    outcomes: Sequence[Finding | Passed],
    job: Job,
    setting: Setting,
    limits: Thresholds,
    study: Study,
) -> Ranked:
    """At most MOST_FINDINGS findings above the noise: by the lower end of the replayed gain, then
    those of which only a bound is known, by that, then replayed gains within noise, then the rest.

    Ties go by the catalogue. Being bound by computing is told only where nothing else is.
    """
    found = [_ranked(f, job, setting, limits, study) for f in outcomes if isinstance(f, Finding)]
    told = [
        row
        for row in found
        if row.finding.share >= limits.noise_share or (row.gain is not None and not row.noise)
    ]
    others = [row for row in told if row.finding.id != "compute-bound"]
    rows = others or told
    return Ranked(
        findings=sorted(rows, key=_order)[:MOST_FINDINGS],
        passed=[p.text for p in outcomes if isinstance(p, Passed)],
    )


_PLACE = {name: i for i, name in enumerate(CATALOGUE)}


def _order(row: RankedFinding) -> tuple[int, float, int]:
    finding = row.finding
    place = _PLACE[finding.id]
    if row.gain is not None:
        return (2 if row.noise else 0, -row.gain.sure, place)
    if finding.saved_ns is not None:
        return (1, -finding.saved_ns, place)
    return (3, -finding.ns, place)


def _ranked(
    finding: Finding, job: Job, setting: Setting, limits: Thresholds, study: Study
) -> RankedFinding:
    edit = _EDIT_OF.get(finding.id, finding.whatif)
    gain = study.gains.get(edit) if edit else None
    if gain is not None:
        after = fixed(gain.classes, setting, {}) if sum(gain.classes.values()) else None
        return RankedFinding(finding, gain, gain.sure < study.noise(limits), after)
    removes = finding.removes
    return RankedFinding(
        finding, None, False, fixed(job.mean_ns, setting, removes) if removes else None
    )


def verdict(ranked: Ranked, job: Job, limits: Thresholds) -> Verdict:
    """What to attack first, or that nothing stands out, or that the trace does not tell."""
    view = View(job, limits)
    rows = [row for row in ranked.findings if row.finding.id != "compute-bound"]
    row = next((row for row in rows if not row.noise), None)
    first = row.finding if row else None
    unexplained = job.mean_ns[UNEXPLAINED]
    dominates = job.share(unexplained) >= limits.unexplained_share
    if dominates and unexplained > (first.ns if first else 0.0):
        return Verdict(_unexplained(view, unexplained, first), None, "low")
    if row is None or first is None:
        hidden = _no_gain(view, rows[0]) if rows else ""
        return Verdict(sentences(_nothing(view), hidden), None, view.confidence())
    text = (
        f"{first.attack} first: {view.ms(first.ns)} of every {view.ms(job.step_ns)} step, "
        f"{_worth(row)}."
    )
    late = next((r for r in rows if r.finding.id == "late-rank" and r is not row), None)
    return Verdict(
        sentences(text, first.why, _despite(view, late) if late else ""), first.id, first.confidence
    )


def _despite(view: View, late: RankedFinding) -> str:
    """What of the waiting for late ranks, where something else gains more."""
    finding = late.finding
    gain = "" if late.gain is None else percent(max(late.gain.share, 0.0))
    alone = f"; mending only that makes the step {gain} shorter" if gain else ""
    return f"{finding.title}, {view.both(finding.ns)}, {finding.clause}{alone}."


def _worth(row: RankedFinding) -> str:
    if row.gain is not None:
        return f"worth {multiple(faster(row.gain.share))}"
    if row.finding.speedup_bound is None:
        return "what that is worth cannot be told from shares"
    return f"at most {multiple(row.finding.speedup_bound)} (share, not gain)"


def _no_gain(view: View, row: RankedFinding) -> str:
    """That the largest share is no gain: without it the run waits for something else."""
    assert row.gain is not None
    return (
        f"{row.finding.title}, {view.both(row.finding.ns)}, but a replay without it is only "
        f"{percent(max(row.gain.share, 0.0))} shorter."
    )


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
