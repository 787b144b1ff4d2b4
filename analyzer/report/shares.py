"""What is each edit worth if the time it removes simply went? Upper bounds, labelled as shares."""

from __future__ import annotations

import numpy as np

from analyzer.classify.classes import CLASSES, COMM_TRANSFER, COMM_UNSPLIT, COMM_WAIT, GROUPS
from analyzer.ranks.pool import Job
from analyzer.report import document as doc
from analyzer.whatif.edits import refusals
from analyzer.whatif.study import CURVE_POINTS

NS_PER_MS = 1e6

NOT_REPLAYED = "not measurable from shares"
NOTHING_LEFT = "nothing else is measured"

# Edit -> the classes whose time it removes; None where only part of a class goes, or none.
EDITS: dict[str, tuple[str, ...] | None] = {
    "no-data-loading": ("data_loading",),
    "no-launch-overhead": ("launch",),
    "no-communication": GROUPS["communication"],
    "no-straggler": None,
    "no-host-sync": ("host_sync",),
    "no-optimizer": ("optimizer",),
    "bandwidth-x2": None,
    "perfect-overlap": None,
}


def edits(job: Job) -> list[doc.Edit]:
    """Every edit, in the order of EDITS."""
    refused = refusals(job)
    return [
        doc.Edit(id=name, step_ms=None, speedup=None, reason=refused[name])
        if name in refused
        else _edit(job, name, removed)
        for name, removed in EDITS.items()
    ]


def _edit(job: Job, name: str, removed: tuple[str, ...] | None) -> doc.Edit:
    if name == "perfect-overlap":
        return doc.Edit(id=name, step_ms=None, speedup=None, reason=NOT_REPLAYED)
    if removed is not None:
        ns = sum(job.mean_ns[c] for c in removed)
    else:
        ns = _waiting(job) if name == "no-straggler" else _half_of_transfer(job)
    if ns >= job.step_ns:
        return doc.Edit(id=name, step_ms=0.0, speedup=None, reason=NOTHING_LEFT)
    return doc.Edit(
        id=name,
        step_ms=(job.step_ns - ns) / NS_PER_MS,
        speedup=job.step_ns / (job.step_ns - ns),
        curve=[(part, job.step_ns / (job.step_ns - part * ns)) for part in CURVE_POINTS],
    )


def _waiting(job: Job) -> float:
    """Exposed waiting of the ranks that are not late: once the others are like them it goes."""
    late = {late.rank for late in job.together.late}
    column = CLASSES.index(COMM_WAIT)
    waits = [float(ns[column]) for rank, ns in job.by_rank.items() if rank not in late]
    return float(np.mean(waits)) if waits else job.mean_ns[COMM_WAIT]


def _half_of_transfer(job: Job) -> float:
    """Half of all that may be transfer."""
    return (job.mean_ns[COMM_TRANSFER] + job.mean_ns[COMM_UNSPLIT]) / 2
