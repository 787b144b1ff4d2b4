"""What of one rank goes into the graph: its slots and points, which launch is whose, when there is
room for it, and which work may wait for communication even if all overlaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import Host, Program, Work
from analyzer.ranks.member import Member
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.dependencies import Dependencies
from analyzer.whatif.streams import is_comm

Bool = npt.NDArray[np.bool_]


@dataclass
class Rank:
    """A member while the graph is built."""

    member: Member
    program: Program
    work: Work
    host: Host
    found: Dependencies
    shift: int
    slot: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    points: int = 0
    slots: int = 0


def closing(rank: Rank) -> Bool:
    """Work that may wait for communication even if all overlaps: the optimizer, and what its thread
    launches before it after the last collective of the step (clipping, reading norms).
    """
    work, host = rank.work, rank.host
    optimizer = work.activity == Activity.OPTIMIZER
    closing = optimizer.copy()
    comm = is_comm(work)
    thread = np.where(work.host == NO_ID, NO_ID, host.thread[work.host])
    for step in np.unique(work.step[optimizer]).tolist():
        mine = work.step == step
        last = int(work.host[mine & comm].max(initial=NO_ID))
        updates = thread[np.flatnonzero(mine & optimizer)[0]]
        closing |= mine & (work.host > last) & (thread == updates)
    return np.asarray(closing)


def launching(rank: Rank) -> Int64:
    """The point that launched each row. Work without a record of it that follows work with one was
    launched no earlier than that.
    """
    point = rank.work.host.copy()
    for row in np.flatnonzero(point == NO_ID).tolist():
        before = int(rank.found.previous[row])
        point[row] = point[before] if before != NO_ID else NO_ID
    return np.where(point == NO_ID, NO_ID, point + rank.points)


def room(rank: Rank) -> Int64:
    """Per point of a host the slot that must be over before its launch finds room in the queue.

    Collectives have streams and queues of their own.
    """
    room = np.full(len(rank.host.time), NO_ID, np.int64)
    rows = np.flatnonzero((rank.work.host != NO_ID) & ~is_comm(rank.work))
    rows = rows[np.argsort(rank.work.host[rows], kind="stable")]
    deep = rank.program.queue
    points, first = np.unique(rank.work.host[rows], return_index=True)
    full = np.flatnonzero(first >= deep)
    makes = rows[first[full] - deep]
    # Streams go on at their own pace: what was not over in life made no room.
    over = rank.work.ts[makes] + rank.work.dur[makes] <= rank.host.time[points[full]]
    room[points[full][over]] = rank.slot[makes[over]]
    return room


Records = Mapping[tuple[str, int, int], int]


def records(rank: Rank) -> Records:
    """Slot of each collective record."""
    rows = np.flatnonzero(rank.work.record != NO_ID)
    records = rank.member.digest.collectives
    return {
        (r.stream, r.start, r.end): int(rank.slot[row])
        for row, r in ((row, records[rank.work.record[row]]) for row in rows.tolist())
    }
