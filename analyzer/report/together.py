"""What joining the ranks gave -> the Report's sections on ranks and collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from analyzer.digest import Strip
from analyzer.findings.communicating import late_because
from analyzer.findings.finding import View
from analyzer.ranks.efficiencies import efficiencies
from analyzer.ranks.parallelism import NODE, Group
from analyzer.ranks.pool import Job
from analyzer.report import document as doc
from analyzer.scaling import comm_cost

NS_PER_MS = 1e6
NS_PER_US = 1e3
# Marks of the strip chart together: more cannot be told apart on a page.
MOST_MARKS = 300
MOST_STRIPS = 30

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
    together, factors = job.together, efficiencies(job)
    residual = together.clocks.residual_ns
    occupancy = _occupancy(job)
    return doc.Ranks(
        late=[
            doc.LateRank(
                rank=late.rank,
                ms=late.cost_ns / NS_PER_MS,
                share=late.step_share,
                share_of_collectives=late.last_share,
                steps=late.steps,
                because=late_because(view, late),
            )
            for late in together.late
        ],
        clock=doc.Clock(
            aligned=together.clocks.aligned,
            residual_us=None if residual is None else residual / NS_PER_US,
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
    )


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
                note=found.note,
            )
        )
    return rows


def _reason(job: Job) -> str:
    if len(job.ranks) == 1:
        return ONE_RANK
    if job.together.method is None:
        left = job.together.matching.left.most_common()
        counted = "; ".join(f"{n:,} {why}" for why, n in left)
        return f"{NOTHING_JOINED} ({counted})" if counted else NOTHING_JOINED
    return NO_COMMON_CLOCK if job.together.method == "clock-free" else ""


def _strips(job: Job) -> list[doc.Strip]:
    """One step of some ranks as marks: the late ones and an even choice, MOST_MARKS together."""
    found = {m.rank: m.digest.strip for m in job.members if m.digest.strip is not None}
    late = [late.rank for late in job.together.late if late.rank in found]
    even = list(found)[:: -(-len(found) // MOST_STRIPS) or 1]
    shown = list(dict.fromkeys([*late, *even]))[:MOST_STRIPS]
    room = MOST_MARKS // max(len(shown), 1)
    return [
        doc.Strip(rank=rank, step=found[rank].step, marks=_marks(found[rank], room))
        for rank in sorted(shown)
    ]


def _marks(strip: Strip, room: int) -> list[tuple[str, float, float]]:
    """Runs of one class as (class, start, end) in ms; as fine as `room` marks allow."""
    for size in range(1, len(strip.classes) + 1):
        pieces = [strip.classes[i : i + size] for i in range(0, len(strip.classes), size)]
        most = [Counter(piece).most_common(1)[0][0] for piece in pieces]
        runs = [(name, len(list(run))) for name, run in groupby(most)]
        if len(runs) <= room:
            break
    length = (strip.end - strip.start) / NS_PER_MS
    per_piece, at = length * size / len(strip.classes), 0
    marks = []
    for name, count in runs:
        marks.append((name, at * per_piece, min((at + count) * per_piece, length)))
        at += count
    return marks
