"""What joining the ranks gave -> the Report's sections on ranks and collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from analyzer.classify.classes import CLASSES, COMM_TRANSFER, COMM_UNSPLIT, COMM_WAIT
from analyzer.digest import Strip
from analyzer.findings.communicating import late_because
from analyzer.findings.finding import View, percent, sentences
from analyzer.ranks.efficiencies import efficiencies
from analyzer.ranks.parallelism import NODE, Group
from analyzer.ranks.pool import CollectiveMean, Job, StepId
from analyzer.ranks.stragglers import Late
from analyzer.report import document as doc
from analyzer.scaling import comm_cost
from analyzer.timeline.sampling import carried

NS_PER_MS = 1e6
NS_PER_US = 1e3
# Marks of the strip chart together: more cannot be told apart on a page.
MOST_MARKS = 300
MOST_STRIPS = 30
# The classes that communication is split into.
SPLIT = (COMM_WAIT, COMM_TRANSFER)

ONE_RANK = "not measurable: only one rank was recorded, and waiting is for others"
NOTHING_JOINED = (
    "not measurable: no collective could be joined over the ranks, so waiting and transfer cannot "
    "be told apart and no late rank can be named"
)
NO_OCCUPANCY = "not measurable: the traces hold no estimate of it"
NO_COMMON_CLOCK = (
    "The ranks' clocks contradict each other, so a collective's shortest duration is taken for its "
    "transfer and no late rank is named."
)


def ranks(job: Job, view: View, groups: Sequence[Group]) -> doc.Ranks:
    """Late ranks, clocks, groups and strips; `reason` where waiting is not measurable."""
    together = job.together
    transfer = view.study.gains.get("transfer") if together.method else None
    factors = efficiencies(job, None if transfer is None else 1.0 - max(0.0, transfer.share))
    residual = together.clocks.residual_ns
    occupancy = _occupancy(job)
    return doc.Ranks(
        late=[_late(view, late) for late in together.late],
        clock=doc.Clock(
            aligned=together.clocks.aligned,
            residual_us=None if residual is None else residual / NS_PER_US,
            moved=_moved(job),
        ),
        pop=factors.values,
        reason=_reason(job),
        method=together.method,
        joined_share=together.joined_share,
        groups=[_group(group) for group in groups],
        strips=_strips(job),
        pop_loss=factors.loss,
        pop_reason=factors.reason,
        occupancy=occupancy,
        occupancy_reason=NO_OCCUPANCY if occupancy is None else "",
        stalled=[] if together.sole is None else [_late(view, together.sole)],
        costs=[
            (rank, ns / NS_PER_MS)
            for rank, ns in sorted(together.cost_ns.items(), key=lambda item: -item[1])
            if ns > 0
        ],
    )


def _late(view: View, late: Late) -> doc.LateRank:
    return doc.LateRank(
        rank=late.rank,
        ms=late.cost_ns / NS_PER_MS,
        share=late.step_share,
        share_of_collectives=late.last_share,
        steps=late.steps,
        because=late_because(view, late),
    )


def _moved(job: Job) -> list[tuple[str, float]]:
    """Hosts, or ranks where their offsets differ, whose clocks were moved, the furthest first."""
    offset = job.together.clocks.offset
    hosts: dict[str, set[int]] = {}
    for member in job.members:
        if member.rank in offset and member.digest.meta.host:
            hosts.setdefault(member.digest.meta.host, set()).add(offset[member.rank])
    moved: dict[str, int] = {}
    for member in job.members:
        host = member.digest.meta.host
        if member.rank in offset:
            same = host and len(hosts[host]) == 1
            moved[f"host {host}" if same else f"rank {member.rank}"] = offset[member.rank]
    found = [(name, ns / NS_PER_MS) for name, ns in moved.items() if ns]
    return sorted(found, key=lambda item: -abs(item[1]))


class Unsplit(NamedTuple):
    """What has communication of which nothing could be split, and why; `all` is the whole job."""

    all: bool
    ranks: set[int]
    steps: set[StepId]
    reason: str


def unsplit(job: Job) -> Unsplit:
    """Where waiting and transfer are not measurable: what is 0 there is only not known."""
    column = CLASSES.index(COMM_UNSPLIT)
    parts = job.together.parts
    if not parts:
        # One process alone has none of either; of several nothing recorded is not none.
        unknown = job.size > 1 or job.mean_ns[COMM_UNSPLIT] > 0
        ranks, steps = (set(job.ranks), set(job.steps)) if unknown else (set(), set())
        return Unsplit(unknown, ranks, steps, _reason(job) if unknown else "")
    split = {rank for p in parts for rank in p.group.ranks}
    done = {step for p in parts for step in p.group.step}
    ranks = {r for r, ns in job.by_rank.items() if ns[column] > 0 and r not in split}
    rows = zip(job.steps, job.per_step, strict=True)
    steps = {step for step, ns in rows if ns[column] > 0 and tuple(step) not in done}
    reason = "no collective of these could be joined over the ranks" if ranks or steps else ""
    return Unsplit(False, ranks, steps, reason)


def _occupancy(job: Job) -> float | None:
    """Mean over the ranks that have an estimate, weighted by the time of their kernels."""
    facts = [m.digest.evidence.kernels for m in job.members]
    known = [(k.occupancy, k.ns) for k in facts if k.occupancy is not None]
    time = sum(ns for _, ns in known)
    return sum(part * ns for part, ns in known) / time if time else None


def _group(group: Group) -> doc.ProcessGroup:
    return doc.ProcessGroup(
        name=group.name,
        size=group.size,
        ranks=group.ranks,
        dimension=group.dimension,
        level=group.level,
        because=group.because,
        kinds=group.kinds,
        count=group.count,
        ms=group.ns / NS_PER_MS,
    )


def collectives(job: Job, groups: Sequence[Group], gpu: str | None) -> list[doc.Collective]:
    """Collectives with the rates of their transfer, and why there is none."""
    uneven = comm_cost.imbalance(job)
    rows = []
    for c in job.collectives:
        # A row without a name holds the kernels of all groups the trace does not name.
        same = [g for g in groups if g.name == c.group and c.kind in g.kinds]
        sizes = {g.size for g in same}
        inside = all(g.level == NODE for g in same) and bool(same)
        found = comm_cost.of_row(
            c,
            c.group_size or (next(iter(sizes)) if len(sizes) == 1 else None),
            comm_cost.reference(gpu) if inside else None,
            uneven.get((c.kind, c.group)),
        )
        rows.append(
            doc.Collective(
                kind=c.kind,
                group=c.group,
                group_size=c.group_size,
                count=c.count,
                bytes=c.nbytes,
                ms=c.ns / NS_PER_MS,
                wait_ms=None if c.wait_ns is None else c.wait_ns / NS_PER_MS,
                transfer_ms=None if c.transfer_ns is None else c.transfer_ns / NS_PER_MS,
                exposed_ms=c.exposed_ns / NS_PER_MS,
                algbw_gbs=found.algbw,
                busbw_gbs=found.busbw,
                reason=found.reason,
                note=sentences(_share_split(c), found.note),
            )
        )
    return rows


def _share_split(row: CollectiveMean) -> str:
    """Of how many waiting and transfer are known, where it is a part."""
    if row.wait_ns is None or row.split_share == 1.0:
        return ""
    return f"Waiting and transfer are those of the {percent(row.split_share)} that could be split."


def _reason(job: Job) -> str:
    if len(job.ranks) == 1:
        return ONE_RANK
    if job.together.method is None:
        left = job.together.matching.left.most_common()
        counted = "; ".join(f"{n:,} records, {why}" for why, n in left)
        return f"{NOTHING_JOINED} ({counted})" if counted else NOTHING_JOINED
    return NO_COMMON_CLOCK if job.together.method == "clock-free" else ""


def _strips(job: Job) -> list[doc.Strip]:
    """One step of some ranks as marks: the late ones and an even choice, MOST_MARKS together."""
    found = {m.rank: m.digest.strip for m in job.members if m.digest.strip is not None}
    late = [late.rank for late in job.together.late if late.rank in found]
    even = list(found)[:: -(-len(found) // MOST_STRIPS) or 1]
    shown = list(dict.fromkeys([*late, *even]))[:MOST_STRIPS]
    room = MOST_MARKS // max(len(shown), 1)
    begin = _begins(job, {rank: found[rank] for rank in shown})
    return [
        doc.Strip(rank=rank, step=found[rank].step, marks=_marks(found[rank], room, begin[rank]))
        for rank in sorted(shown)
    ]


def _begins(job: Job, shown: Mapping[int, Strip]) -> dict[int, float]:
    """How many ms after the first rank each begins, on the common clock; 0 without one."""
    clocks = job.together.clocks
    together = clocks.aligned and len({strip.step for strip in shown.values()}) == 1
    if not together or not shown.keys() <= clocks.offset.keys():
        return dict.fromkeys(shown, 0.0)
    at = {r: int(clocks.of(r, np.array([s.start]))[0]) for r, s in shown.items()}
    first = min(at.values())
    return {rank: (ns - first) / NS_PER_MS for rank, ns in at.items()}


def _marks(strip: Strip, room: int, begin: float) -> list[tuple[str, float, float]]:
    """Runs of one class as (class, start, end) in ms from `begin` on; as fine as `room` marks
    allow.
    """
    names = [*dict.fromkeys(strip.classes)]
    ones = np.eye(len(names), dtype=np.int64)[[names.index(c) for c in strip.classes]]
    for size in range(1, len(strip.classes) + 1):
        pieces = np.add.reduceat(ones, range(0, len(ones), size))
        runs = [(names[i], len(list(run))) for i, run in groupby(carried(pieces))]
        if len(runs) <= room:
            break
    length = (strip.end - strip.start) / NS_PER_MS
    per_piece, at = length * size / len(strip.classes), 0
    marks = []
    for name, count in runs:
        end = min((at + count) * per_piece, length)
        marks.append((name, begin + at * per_piece, begin + end))
        at += count
    return marks
