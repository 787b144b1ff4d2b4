"""Job, laws and findings -> the Report: units become ms, tables are trimmed, reasons are added."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np
from msgspec.structs import replace

from analyzer import __version__
from analyzer.classify.classes import CLASSES, COMM_UNSPLIT, GROUPS
from analyzer.classify.idle import CAUSES
from analyzer.config import Settings
from analyzer.findings import detectors, ranking
from analyzer.findings.finding import Finding, View
from analyzer.findings.ranking import RankedFinding
from analyzer.ranks import parallelism
from analyzer.ranks.dimensions import TENSOR
from analyzer.ranks.parallelism import Group
from analyzer.ranks.pool import Job
from analyzer.ranks.unknown import unknown, work_lost
from analyzer.report import document as doc
from analyzer.report import kept, predicted, spots, together, whatifs
from analyzer.report.caveats import Note, caveats
from analyzer.report.ops import ops
from analyzer.report.planning import Wish
from analyzer.report.shares import NOTHING_LEFT
from analyzer.report.unmeasured import no_scaling, reasons
from analyzer.scaling.serial import (
    NOT_BOUNDED,
    WEAK_HAS_NO_CEILING,
    Mode,
    Setting,
    half_width,
    serial_fraction,
)
from analyzer.trace import filenames
from analyzer.trace.schema import TraceMeta
from analyzer.whatif.study import study

NS_PER_MS = 1e6
MOST_KERNELS = 40
MOST_SHAPES = 12

A_BOUND = "a share has no interval"
NO_BOUND = "shares cannot tell what fixing this is worth"


@dataclass(frozen=True)
class Request:
    """What was asked for beside the traces; `duration_s` is the whole run's length today, `n` the
    N of the laws where the traces' own is not wanted, `gpus_per_node` likewise. The rest is for the
    plan: GPUs to plan for, the price of a GPU-hour, and the length the run should have.
    """

    label: str
    created: str
    mode: Mode = "strong"
    shared_loader: bool = False
    duration_s: float | None = None
    n: int | None = None
    gpus: tuple[int, ...] = ()
    price: float | None = None
    target_s: float | None = None
    gpus_per_node: int | None = None

    @property
    def wish(self) -> Wish | None:
        """What is to be planned; None where the run's length is not known."""
        if self.duration_s is None:
            return None
        return Wish(self.duration_s, self.gpus, self.price, self.target_s)


def build(
    job: Job,
    files: Sequence[doc.InputFile],
    notes: Sequence[Note],
    request: Request,
    settings: Settings,
) -> doc.Report:
    """The report of a job; `files` are all inputs, `notes` say which file is which rank and how
    they were read.
    """
    limits = settings.thresholds
    rows = kept.ranks(job)
    groups = parallelism.groups(job)
    degree = parallelism.degree(job.size, groups, request.n)
    sharded = sharded_optimizer(groups)
    setting = Setting(degree.n, request.mode, sharded, request.shared_loader)
    per_step = {c: job.per_step[:, i] for i, c in enumerate(CLASSES)}
    replayed = study(job, limits)
    ranked = ranking.rank(detectors.detect(job, limits, replayed), job, setting, limits, replayed)
    ahead = predicted.ahead(job, setting, limits, request.gpus_per_node)
    fraction = serial_fraction(per_step, setting)
    text, finding, confidence = ranking.verdict(ranked, job, limits)
    quality = caveats(job, [*notes, *kept.notes(job, rows)], limits)
    doubted = any(caveat.severity == "error" for caveat in quality)
    run = _run(job, kept.files(files, rows), request.label, parallelism.strategy(groups))
    return doc.Report(
        schema_version=doc.SCHEMA_VERSION,
        tool=doc.Tool(name="torch-ceiling", version=__version__),
        created=request.created,
        verdict=doc.Verdict(
            text=text, finding=finding, confidence="low" if doubted else confidence
        ),
        run=run,
        quality=quality,
        steps=_steps(job),
        breakdown=_breakdown(job, rows),
        scaling=no_scaling(fraction, request.duration_s, degree.because)
        if work_lost(job)
        else predicted.scaling(fraction, ahead, degree.because, request.duration_s),
        whatif=whatifs.whatif(job, replayed, setting, limits),
        findings=[_finding(row, request.mode, job) for row in ranked.findings],
        idle=_idle(job),
        ranks=together.ranks(job, View(job, limits, replayed), groups),
        collectives=together.collectives(job, groups, run.gpu),
        kernels=_kernels(job),
        unknown=_unknown(job),
        passed=ranked.passed,
        thresholds={name: float(limit) for name, limit in limits.as_dict().items()},
        ops=ops(job),
        plan=None if work_lost(job) else predicted.planned(request.wish, ahead, replayed),
    )


def sharded_optimizer(groups: Sequence[Group]) -> bool:
    """Whether gradients are scattered and parameters gathered: each rank updates its own shard.

    Where tensors are split, activations are scattered and gathered too, which says nothing.
    """
    kinds = {kind for g in groups if g.dimension != TENSOR for kind in g.kinds}
    return {"reduce_scatter", "all_gather"} <= kinds


def _run(job: Job, files: Sequence[doc.InputFile], label: str, strategy: Sequence[str]) -> doc.Run:
    metas = [m.digest.meta for m in job.members]

    def most(values: list[str | None]) -> str | None:
        counted = Counter(v for v in values if v)
        return counted.most_common(1)[0][0] if counted else None

    def flag(name: str) -> bool | None:
        said = [m.flags[name] for m in metas if name in m.flags]
        return any(said) if said else None

    return doc.Run(
        label=_encodable(label),
        world_size=job.world_size,
        ranks_present=job.ranks,
        hosts=sorted({m.host for m in metas if m.host}),
        gpu=most([m.gpus[0] if m.gpus else None for m in metas]),
        backend=most([m.backend for m in metas]),
        torch=most([m.torch for m in metas]),
        flags=doc.Flags(
            with_stack=flag("with_stack"),
            profile_memory=flag("profile_memory"),
            record_shapes=flag("record_shapes"),
        ),
        strategy=list(strategy),
        files=[replace(file, name=_encodable(_local(file.name))) for file in files],
        shapes=_shapes(metas),
    )


def _local(name: str) -> str:
    """The name without where it lies: a report is passed on. In the folder given it keeps its path.

    A path or address is only in it where it was given and led nowhere.
    """
    inside = not re.match(r"[/\\~]|\.\.[/\\]|[A-Za-z]:[/\\]|[a-z0-9+.-]+://", name)
    return name if inside else re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def _shapes(metas: Sequence[TraceMeta]) -> dict[str, float]:
    """Parts of the matrix operators by name and input sizes, over all ranks."""
    counts: Counter[str] = Counter()
    for meta in metas:
        counts.update(meta.shapes)
    total = counts.total()
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return {_encodable(name): counts[name] / total for name in order[:MOST_SHAPES]}


def _encodable(name: str) -> str:
    """The name as Unicode: a file's may hold bytes that are no UTF-8, and JSON cannot."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _steps(job: Job) -> doc.Steps:
    used = {step.number for step in job.steps}
    dropped: dict[int, str] = {}
    recorded = [step for member in job.members for step in member.digest.steps]
    for step in recorded:
        if step.dropped:
            dropped.setdefault(step.index, step.dropped)
    for step in recorded:
        if step.index not in used:
            dropped.setdefault(step.index, "not recorded on every rank")
    wall = job.per_step.sum(axis=1)
    mean = float(wall.mean())
    half, reason = half_width(wall / mean - 1.0)
    return doc.Steps(
        used=[step.number for step in job.steps],
        dropped=[doc.DroppedStep(index=i, why=why) for i, why in sorted(dropped.items())],
        wall_ms=doc.WallTime(
            mean=mean / NS_PER_MS,
            median=float(np.median(wall)) / NS_PER_MS,
            lo=None if half is None else mean * (1.0 - half) / NS_PER_MS,
            hi=None if half is None else mean * (1.0 + half) / NS_PER_MS,
            n=len(wall),
            reason=reason,
        ),
        rule=job.members[0].digest.step_rule,
        phases=spots.phases(job),
    )


def _breakdown(job: Job, listed: Sequence[int]) -> doc.Breakdown:
    unsplit, unmeasured = together.unsplit(job), unknown(job)
    silent = COMM_UNSPLIT in unmeasured
    nulls = set(unmeasured) | (set(together.SPLIT) if unsplit.all else set())

    def ms(values: Sequence[float], split: bool = True) -> dict[str, float | None]:
        """By class; waiting and transfer are not known where nothing was split."""
        no = set(unmeasured) if split else {*unmeasured, *together.SPLIT}
        rows = zip(CLASSES, values, strict=True)
        return {c: None if c in no else float(v) / NS_PER_MS for c, v in rows}

    return doc.Breakdown(
        timeline=job.timeline,
        classes=list(CLASSES),
        groups={group: list(members) for group, members in GROUPS.items()},
        mean_ms=ms([*job.mean_ns.values()], not unsplit.all),
        group_ms={
            g: None if nulls.issuperset(GROUPS[g]) else ns / NS_PER_MS
            for g, ns in job.group_ns.items()
        },
        hidden_comm_ms=None if silent else job.hidden_ns / NS_PER_MS,
        per_rank=[
            doc.RankRow(
                rank=rank,
                step_ms=float(ns.sum()) / NS_PER_MS,
                ms=ms(ns.tolist(), rank not in unsplit.ranks),
                hidden_comm_ms=None if silent else job.hidden_by_rank[rank] / NS_PER_MS,
            )
            for rank, ns in ((rank, job.by_rank[rank]) for rank in listed)
        ],
        per_step=[
            doc.StepRow(step=step.number, ms=ms(row, step not in unsplit.steps))
            for step, row in zip(job.steps, job.per_step.tolist(), strict=True)
        ],
        reason=reasons(unsplit.reason, unmeasured),
    )


def _finding(row: RankedFinding, mode: Mode, job: Job) -> doc.Finding:
    finding, after = row.finding, row.ceiling_after
    no_ceiling = WEAK_HAS_NO_CEILING if mode == "weak" else NOT_BOUNDED
    return doc.Finding(
        id=finding.id,
        title=finding.title,
        class_=finding.time_class,
        ms=finding.ns / NS_PER_MS,
        share=finding.share,
        gain=_bound(finding) if row.gain is None else whatifs.gain(row.gain, noise=row.noise),
        whatif=finding.whatif,
        ceiling_after=after,
        after=None if row.after is None else whatifs.after(row.after),
        because=finding.because,
        so=finding.so,
        check=finding.check,
        where=[
            doc.Place(name=name, ms=ns / NS_PER_MS, count=count)
            for name, ns, count in finding.where
        ],
        confidence=finding.confidence,
        reason="" if after else NO_BOUND if row.after is None else no_ceiling,
        spot=spots.spot(job, finding.time_class),
    )


def _bound(finding: Finding) -> doc.Gain:
    bound = finding.speedup_bound
    no_bound = NO_BOUND if finding.saved_ns is None else NOTHING_LEFT
    reason = no_bound if bound is None else A_BOUND
    return doc.Gain(speedup=bound, lo=None, hi=None, basis="share", reason=reason)


def _idle(job: Job) -> list[doc.IdleCause]:
    return [
        doc.IdleCause(
            cause=c.cause,
            class_=CAUSES[c.cause].time_class,
            text=CAUSES[c.cause].text,
            ms=c.ns / NS_PER_MS,
            ops=[(name, ns / NS_PER_MS) for name, ns in c.ops],
        )
        for c in job.causes
        if c.ns
    ]


def _kernels(job: Job) -> list[doc.Kernel]:
    """The largest names, and the rest as one row."""
    rows = [
        doc.Kernel(
            name=k.name, kind=k.kind, count=k.count, ms=k.ns / NS_PER_MS, share=job.share(k.ns)
        )
        for k in job.kernels[:MOST_KERNELS]
    ]
    rest = job.kernels[MOST_KERNELS:]
    if rest:
        ns = sum(k.ns for k in rest)
        rows.append(
            doc.Kernel(
                name=f"({len(rest)} more names)",
                kind="other",
                count=sum(k.count for k in rest),
                ms=ns / NS_PER_MS,
                share=job.share(ns),
            )
        )
    return rows


def _unknown(job: Job) -> list[doc.Unknown]:
    total: Counter[str] = Counter()
    for member in job.members:
        for category in member.digest.meta.categories:
            if not category.known:
                total[category.name] += category.total_ns
    return [
        doc.Unknown(name="", category=name, ms=ns / NS_PER_MS) for name, ns in total.most_common()
    ]


def label_of(paths: Sequence[PurePath]) -> str:
    """A name for the run: the folder that holds all its files, else the file's own name."""
    if len(paths) == 1:
        return filenames.stem(paths[0].name)
    return Path(os.path.commonpath([os.path.abspath(p) for p in paths])).name
