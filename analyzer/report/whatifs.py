"""The study of what-ifs -> its part of the report: ns become ms, gains speedups, with reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping

from analyzer.config import Thresholds
from analyzer.ranks.pool import Job
from analyzer.report import document as doc
from analyzer.report import shares
from analyzer.scaling.serial import Setting, fixed
from analyzer.whatif.chosen import MOST_RANKS
from analyzer.whatif.edits import EDITS
from analyzer.whatif.path import Path
from analyzer.whatif.study import Gain, Study, faster

NS_PER_MS = 1e6

_ASSUMPTIONS = (
    "Device work lasts as long as it did, and the host needs as long between its calls, except "
    "where an edit says otherwise; blocking and waiting are derived again.",
    "Communication and computing do not slow each other down.",
)
NO_SECOND = "there are no two fixes that gain more than noise, alone or in turn"
NO_PATH = "not measurable: no step ends with work that was replayed"
_RECORDED = "Which stream waits for which was recorded (synchronisation events)."
_INFERRED = (
    "Which stream waits for which is inferred from the calls and from times: synchronisation "
    "events were not recorded."
)


def whatif(job: Job, study: Study, setting: Setting, limits: Thresholds) -> doc.WhatIf:
    """The replayed what-ifs; those of shares, with the reason, where there is no replay."""
    if not study.replayed:
        return doc.WhatIf(
            basis="share",
            replay_error=study.error,
            class_error=study.class_error,
            quality=None if study.error is None else "poor",
            edits=shares.edits(job),
            interaction_reason=study.reason,
            path_reason=study.reason,
            reason=study.reason,
        )
    return doc.WhatIf(
        basis="replay",
        replay_error=study.error,
        class_error=study.class_error,
        quality="good" if (study.error or 0.0) <= limits.replay_fair_share else "fair",
        edits=[_edit(name, job, study, setting, limits) for name in EDITS],
        steps=[step.number for step in study.steps],
        ranks=study.ranks,
        assumptions=_assumptions(job, study),
        sequence=_sequence(job, study, setting),
        interaction=_interaction(job, study),
        interaction_reason="" if study.together else NO_SECOND,
        path=None if study.path is None else _path(study.path),
        path_reason="" if study.path else NO_PATH,
    )


def gain(of: Gain, *, noise: bool) -> doc.Gain:
    """A replayed gain as a speedup."""
    ends, reason = of.interval
    lo, hi = ends if ends is not None else (None, None)
    return doc.Gain(
        speedup=_finite(faster(of.share)),
        lo=None if lo is None else _finite(faster(lo)),
        hi=None if hi is None else _finite(faster(hi)),
        basis="replay",
        curve=[(part, speedup) for part, speedup in of.curve if math.isfinite(speedup)],
        noise=noise,
        reason=reason if of.share < 1.0 else shares.NOTHING_LEFT,
    )


def _finite(speedup: float) -> float | None:
    return speedup if math.isfinite(speedup) else None


def _edit(name: str, job: Job, study: Study, setting: Setting, limits: Thresholds) -> doc.Edit:
    if name in study.refused:
        return doc.Edit(id=name, step_ms=None, speedup=None, reason=study.refused[name])
    of = study.gains[name]
    said = gain(of, noise=of.sure < study.noise(limits))
    return doc.Edit(
        id=name,
        step_ms=job.step_ns * (1.0 - of.share) / NS_PER_MS,
        speedup=said.speedup,
        lo=said.lo,
        hi=said.hi,
        curve=said.curve,
        after=_after(of.classes, setting),
        noise=said.noise,
        reason=said.reason,
    )


def _after(classes: Mapping[str, float], setting: Setting) -> doc.After:
    left = fixed(classes, setting, {}) if sum(classes.values()) else None
    if left is None:
        return doc.After(
            f=None, s=None, ceiling_today=None, ceiling_one_gpu=None, reason=shares.NOTHING_LEFT
        )
    return doc.After(
        f=left.f,
        s=left.s,
        ceiling_today=left.ceiling_today,
        ceiling_one_gpu=left.ceiling_one_gpu,
        reason=left.reason,
    )


def _assumptions(job: Job, study: Study) -> list[str]:
    said = [*_ASSUMPTIONS, _RECORDED if study.recorded_waits else _INFERRED]
    if len(study.ranks) < len(job.ranks):
        said.append(
            f"{len(study.ranks)} of {len(job.ranks)} ranks are replayed, the late ones among them: "
            f"{MOST_RANKS} at most."
        )
    return said


def _sequence(job: Job, study: Study, setting: Setting) -> list[doc.Turn]:
    left, turns = 1.0, []
    for turn in study.turns:
        turns.append(
            doc.Turn(
                edit=turn.edit,
                step_ms=job.step_ns * turn.left / NS_PER_MS,
                gain_ms=job.step_ns * (left - turn.left) / NS_PER_MS,
                after=_after(turn.classes, setting),
            )
        )
        left = turn.left
    return turns


def _interaction(job: Job, study: Study) -> doc.Interaction | None:
    pair = study.together
    if pair is None:
        return None
    return doc.Interaction(
        first=pair.first,
        second=pair.second,
        both_ms=job.step_ns * pair.both / NS_PER_MS,
        ms=job.step_ns * pair.beyond / NS_PER_MS,
    )


def _path(path: Path) -> doc.CriticalPath:
    return doc.CriticalPath(
        step=path.step.number,
        step_ms=path.ns / NS_PER_MS,
        classes=[
            doc.PathClass(
                class_=name, ms=path.by_class.get(name, 0.0) / NS_PER_MS, slack_ms=ns / NS_PER_MS
            )
            for name, ns in path.slack.items()
        ],
        ranks=[
            doc.PathRank(rank=rank, ms=ns / NS_PER_MS)
            for rank, ns in sorted(path.by_rank.items())
            if ns
        ],
        places=[
            doc.PathPlace(
                name=p.name, op=p.op, class_=p.time_class, ms=p.ns / NS_PER_MS, count=p.count
            )
            for p in path.places
        ],
    )
