"""Which ranks are replayed, and on which clock? All where they are few, else the late and some."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together
from analyzer.ranks.unknown import NO_DEVICE, WORK_LOST
from analyzer.whatif.tasks import NotReplayableError

# So many ranks are replayed, the late ones among them: the others are like one of these.
MOST_RANKS = 64
# Less of the work's launches recorded: a replay would only repeat the recording.
LEAST_LINKED = 0.8

TOO_MUCH = "not measurable: one step of a rank is more work than is kept for a replay"
UNLINKED = "not measurable: too much work lacks the record of its launch"


def chosen(members: Sequence[Member], together: Together) -> list[Member]:
    """The members to replay; NotReplayableError with the reason where one cannot be."""
    programs = [m.digest.program for m in members]
    if any(p is None for p in programs):
        none = any(m.digest.timeline != "device" for m in members)
        raise NotReplayableError(NO_DEVICE if none else TOO_MUCH)
    if any(m.digest.evidence.launches.coverage.lost for m in members):
        raise NotReplayableError(WORK_LOST)
    if any(p.linked < LEAST_LINKED for p in programs if p is not None):
        raise NotReplayableError(UNLINKED)
    ranks = sorted({m.rank for m in members})
    if len(ranks) > MOST_RANKS:
        late = [late.rank for late in together.late[: MOST_RANKS // 2]]
        others = [r for r in ranks if r not in late]
        spread = np.linspace(0, len(others) - 1, MOST_RANKS - len(late)).round().astype(int)
        ranks = sorted({*late, *(others[i] for i in spread.tolist())})
    return [m for m in members if m.rank in ranks]


def shifts(members: Sequence[Member], together: Together) -> list[int]:
    """What is added to each member's times to read them on one clock, ns.

    Without a common clock the ends of collectives, which are close together, give one.
    """
    clocks = together.clocks
    if clocks.aligned:
        return [
            int(clocks.of(m.rank, np.array([m.digest.span.start]))[0]) - m.digest.span.start
            if m.rank in clocks.offset
            else 0
            for m in members
        ]
    shift: dict[int, int] = {}
    for part in together.parts:
        ends = part.group.end
        ready = [i for i, r in enumerate(part.group.ranks) if r in shift]
        if not ready:
            shift[part.group.ranks[0]], ready = 0, [0]
        known = ends[:, ready[0]] + shift[part.group.ranks[ready[0]]]
        for i, rank in enumerate(part.group.ranks):
            shift.setdefault(rank, int(np.median(known - ends[:, i])))
    return [shift.get(m.rank, 0) for m in members]
