"""Why do ranks wait, if not for a late one? Each needs another cure.

One rank may have stalled in a step or two, the stages of a pipeline wait while others fill or drain
it, or jitter makes each rank last now and then. Times are ns per rank and step.
"""

from __future__ import annotations

from typing import NamedTuple

from analyzer.classify.classes import COMM_WAIT
from analyzer.findings.communicating import HIDE, kind_places, mismatched
from analyzer.findings.finding import Finding, Outcome, View, sentences
from analyzer.findings.lateness import (
    caused,
    cures,
    fires,
    headline,
    in_pipeline,
    in_steps,
    nobody,
    of_rank,
)
from analyzer.ranks.keys import SEND_RECV
from analyzer.ranks.stragglers import CLOCKED


def rank_skew(view: View) -> Outcome:
    """Waiting beside that for the late ranks told; None where nothing could be split."""
    job, limit = view.job, view.limits.late_rank_share
    if job.together.method is None:
        return None
    told = caused(job, headline(view)) if fires(view) else 0.0
    waited = job.mean_ns[COMM_WAIT] - told
    what = "Waiting of ranks for each other" + (" beside that for late ones" if told else "")
    if job.share(waited) < limit:
        return view.below(what, waited, limit)
    clocked = job.together.method == CLOCKED
    told_as = _told_as(view)
    return Finding(
        id="rank-skew",
        title=told_as.title,
        attack=told_as.attack,
        time_class=COMM_WAIT,
        ns=waited,
        step_ns=job.step_ns,
        saved_ns=waited,
        because=sentences(
            f"{view.both(waited)} pass waiting for a rank that has not arrived"
            f"{', late ones aside' if told else ''}.",
            told_as.because,
        ),
        so=told_as.so,
        check=view.check("waiting for other ranks", limit),
        where=kind_places((c, c.wait_ns) for c in job.collectives),
        confidence=view.confidence(not clocked, mismatched(job), job.together.perhaps_several),
        whatif="no-straggler",
        removes={COMM_WAIT: waited},
    )


class _Told(NamedTuple):
    """Waiting in words: of a pipeline, for one rank that stalled, or by turns."""

    title: str
    attack: str
    because: str
    so: str


def _told_as(view: View) -> _Told:
    job, sole = view.job, view.job.together.sole
    if in_pipeline(job):
        return _Told(
            "Stages of the pipeline wait for each other",
            "Shorten the pipeline's bubble",
            "Most of it is in sends and receives: a stage waits while others fill or drain the "
            "pipeline.",
            HIDE[SEND_RECV],
        )
    if sole is not None:
        when = f" in {in_steps(job, sole)}".removesuffix(" in ")
        return _Told(
            f"Ranks wait for rank {sole.rank}{when}",
            f"Find what stops rank {sole.rank}{when}",
            of_rank(view, sole),
            sentences(*cures(view, [sole])),
        )
    clocked = job.together.method == CLOCKED
    return _Told(
        "Ranks wait for each other by turns" if clocked else "Ranks wait for each other",
        "Even out the ranks",
        nobody(view)
        if clocked
        else "Which rank is late cannot be told: the clocks contradict each other.",
        "Give every rank the same work (samples sorted by length, equal padding), let them meet "
        "less often (gradient accumulation with no_sync(), fewer and larger collectives), and take "
        "away jitter: processes pinned to cores, no other jobs, garbage collection between steps.",
    )
