"""Job, report and class times -> the tracks of an overlay, all ranks on one clock, in ns.

Full class times come from the traces; of a saved digest only one step is known, in stretches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from analyzer.classify.classes import COMM_TRANSFER, COMM_UNSPLIT, COMM_WAIT
from analyzer.digest import STRIP_BINS, StepRecord
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job
from analyzer.ranks.waits import exposed
from analyzer.report import overlay as doc
from analyzer.report import overlay_waits
from analyzer.report.document import Report
from analyzer.timeline.intervals import Intervals
from analyzer.whatif.chosen import shifts
from analyzer.whatif.placed import Placed

# A viewer that has to lay out more of a rank becomes slow; the first steps tell as much.
MOST_SLICES = 40_000

NO_CLOCK = "The ranks' clocks contradict each other: times of different ranks are not comparable."
FROM_ENDS = "The ranks share no known clock: the ends of their collectives are laid together."
NO_PATH = "No critical path: "
STRIPS_ONLY = f"Of saved digests the classes are those of one step, in {STRIP_BINS} stretches."
CUT = f"Of some ranks only the first {MOST_SLICES:,} stretches of classes are shown."

Classes = Mapping[str, Intervals]
Key = tuple[int, int]


def overlay(
    job: Job, report: Report, path: Sequence[Placed], times: Mapping[Key, Classes]
) -> doc.Overlay:
    """The overlay of a job; `times` are the class times by rank and cycle, of those that are known,
    on the ranks' own clocks.
    """
    clock = dict(
        zip([(m.rank, m.cycle) for m in job.members], shifts(job.members, job.together),
            strict=True)
    )  # fmt: skip
    waits, some = overlay_waits.waits(job, clock)
    pieces = _path(path, clock)
    notes = _notes(job, report, times, some)
    split = exposed(job.members, job.together.parts)
    ranks = [
        doc.RankTracks(
            rank=rank,
            tracks=[
                track
                for track in (
                    doc.Track(number=doc.STEPS, name="steps", slices=_steps(members, clock)),
                    _class_track(members, times, split, clock),
                    _finding_track(report, members, clock),
                    *_path_tracks([piece for piece in pieces if piece[0] == rank]),
                    *overlay_waits.tracks([wait for wait in waits if wait.rank == rank]),
                )
                if track.slices
            ],
        )
        for rank, members in _by_rank(job).items()
    ]
    if any(len(t.slices) == MOST_SLICES for r in ranks for t in r.tracks):
        notes = [*notes, CUT]
    base = job.members[0].digest.meta.base_ns or 0
    return doc.Overlay(
        label=report.run.label,
        base_ns=base,
        ranks=ranks,
        arrows=[*_path_arrows(pieces), *overlay_waits.arrows(waits, ranks)],
        notes=notes,
    )


def _by_rank(job: Job) -> dict[int, list[Member]]:
    return {rank: [m for m in job.members if m.rank == rank] for rank in job.ranks}


def _notes(job: Job, report: Report, times: Mapping[Key, Classes], some: bool) -> list[str]:
    aligned = job.together.clocks.aligned
    notes = []
    if len(job.ranks) > 1 and aligned is False:
        notes.append(NO_CLOCK)
    elif len(job.ranks) > 1 and aligned is None:
        notes.append(FROM_ENDS)
    if report.whatif.path is None:
        notes.append(NO_PATH + (report.whatif.path_reason or report.whatif.reason))
    if any((m.rank, m.cycle) not in times for m in job.members):
        notes.append(STRIPS_ONLY)
    if some:
        notes.append(overlay_waits.FEW)
    return notes


def _steps(members: Iterable[Member], clock: Mapping[Key, int]) -> list[doc.Slice]:
    return [
        doc.Slice(
            start=step.start + clock[m.rank, m.cycle],
            end=step.end + clock[m.rank, m.cycle],
            name=f"step {step.index}",
            details=_step_details(step),
        )
        for m in members
        for step in m.digest.steps
        if step.end > step.start
    ]


def _step_details(step: StepRecord) -> dict[str, str | float]:
    if step.dropped:
        return {"not used": step.dropped}
    return {f"{name} ms": ns / 1e6 for name, ns in step.ns.items() if ns}


def _class_track(
    members: Iterable[Member],
    times: Mapping[Key, Classes],
    split: Mapping[Key, tuple[Intervals, Intervals]],
    clock: Mapping[Key, int],
) -> doc.Track:
    slices: list[doc.Slice] = []
    for member in members:
        key = member.rank, member.cycle
        known = times.get(key)
        slices += _strip(member, clock[key]) if known is None else [
            doc.Slice(start=start + clock[key], end=end + clock[key], name=name)
            for name, when in _split(known, split.get(key)).items()
            for start, end in zip(when.start.tolist(), when.end.tolist(), strict=True)
        ]  # fmt: skip
    slices.sort(key=lambda s: s.start)
    return doc.Track(number=doc.CLASSES, name="where the time goes", slices=slices[:MOST_SLICES])


def _split(times: Classes, split: tuple[Intervals, Intervals] | None) -> Classes:
    """The classes with exposed communication split as the report splits it."""
    if split is None:
        return times
    waiting, moving = split
    rest = times[COMM_UNSPLIT] - waiting - moving
    return {**times, COMM_UNSPLIT: rest, COMM_WAIT: waiting, COMM_TRANSFER: moving}


def _strip(member: Member, shift: int) -> list[doc.Slice]:
    strip = member.digest.strip
    if strip is None:
        return []
    length, count = strip.end - strip.start, len(strip.classes)
    # Whole numbers: floats of times since 1970 are off by a hundred ns.
    edges = [strip.start + shift + length * i // count for i in range(count + 1)]
    rows: list[doc.Slice] = []
    for name, (start, end) in zip(strip.classes, pairwise(edges), strict=True):
        if rows and rows[-1].name == name:
            start = rows.pop().start
        rows.append(doc.Slice(start=start, end=end, name=name))
    return rows


def _finding_track(
    report: Report, members: Iterable[Member], clock: Mapping[Key, int]
) -> doc.Track:
    """Findings on the step where each takes most, if it is one of these; some share a slice."""
    rows: dict[int, doc.Slice] = {}
    known = {(m.rank, m.cycle, s.index): s for m in members for s in m.digest.steps}
    for place, item in enumerate(report.findings, start=1):
        spot = item.spot
        step = known.get((spot.rank, spot.cycle, spot.step)) if spot else None
        if spot is None or step is None:
            continue
        shift, before = clock[spot.rank, spot.cycle], rows.get(step.start)
        name = f"{place}. {item.title}"
        rows[step.start] = doc.Slice(
            start=step.start + shift,
            end=step.end + shift,
            name=f"{before.name}; {name}" if before else name,
            details={**(before.details if before else {}), item.id: item.because},
        )
    return doc.Track(
        number=doc.FINDINGS, name="findings", slices=sorted(rows.values(), key=lambda s: s.start)
    )


_Piece = tuple[int, bool, doc.Slice]


def _path(path: Sequence[Placed], clock: Mapping[Key, int]) -> list[_Piece]:
    """The path's pieces (rank, on the host, slice) in order of time."""
    rows = []
    for piece in path:
        shift = clock.get((piece.rank, piece.cycle), 0)
        named = {"kernel": piece.name, "operator": piece.op}
        item = doc.Slice(
            start=piece.start + shift,
            end=piece.end + shift,
            name=piece.time_class,
            details={key: value for key, value in named.items() if value},
        )
        rows.append((piece.rank, piece.on_host, item))
    return rows


def _path_tracks(pieces: Sequence[_Piece]) -> list[doc.Track]:
    sides = ((doc.PATH_DEVICE, "device", False), (doc.PATH_HOST, "host", True))
    return [
        doc.Track(
            number=number,
            name=f"critical path: {side}",
            slices=[item for _, on_host, item in pieces if on_host == host],
        )
        for number, side, host in sides
    ]


def _path_arrows(pieces: Sequence[_Piece]) -> Iterable[doc.Arrow]:
    """An arrow wherever the path goes on elsewhere: to another rank, from host to device or back.

    It leaves in the last ns of a piece: at its end no slice of its row is open any more.
    """
    for (rank, host, before), (to, to_host, after) in pairwise(pieces):
        if (rank, host) == (to, to_host):
            continue
        yield doc.Arrow(
            name="critical path",
            start=doc.Point(rank=rank, track=_row(host), at=before.end - 1),
            end=doc.Point(rank=to, track=_row(to_host), at=after.start),
        )


def _row(on_host: bool) -> int:
    return doc.PATH_HOST if on_host else doc.PATH_DEVICE
