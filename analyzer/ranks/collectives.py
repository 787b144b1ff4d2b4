"""The same collective on every rank: which kernels of different ranks may be one operation.

Ranks issue the collectives of a group in one order. So they are joined by the group's sequence
number where it was recorded, else by group, kind, the step they were launched in, and order. Counts
and sizes must agree; where they do not, nothing of that step is joined and the mismatch is told: a
shift by one would give believable waits between unrelated kernels. A send is joined with the
receive of the same source and destination by step and order alone: each rank numbers its own sends
and receives with all its peers. Whether what was joined by order can be one operation is checked in
agreement.py. Times in ns, each on its rank's own clock.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.member import Member
from analyzer.trace.schema import NO_ID, Int64

# Every member takes part from arrival to end; a broadcast can be over on one rank before another
# arrives, so arrivals say nothing about waiting there.
ALL_PARTICIPANT = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "dispatch", "combine"}
)
SEND_RECV = "send_recv"
# Earlier than any time of a trace, with room for differences in 64 bits.
LONG_AGO = -(2**60)
# Uneven by nature: sizes of members differ.
UNEVEN = frozenset({"all_to_all", "dispatch", "combine", "all_gather"})


class Key(NamedTuple):
    """What operations of different ranks must share to be one."""

    cycle: int
    group: str
    size: int | None
    kind: str
    step: int | None
    sequence: int | None
    stream: str
    ends: tuple[int, int] | None


class _Family(NamedTuple):
    """What operations have in common that are kept in one table."""

    group: str
    size: int | None
    ranks: tuple[int, ...]
    by_order: bool
    paired: bool


@dataclass(frozen=True)
class Joined:
    """Operations of one group, joined: `start` and `end` are [operation, rank], ns.

    `complete` says that every member of the group is here; without it the last arrival may be of a
    rank nobody recorded. `by_order` says that no sequence number told them apart; `assumed` that
    the trace names no group and all ranks of the run are taken for one. `step` is the cycle and the
    step that the first rank launched it in, NO_ID if not known. `paired` are sends with their
    receives; their ranks are source and destination.
    """

    group: str
    ranks: list[int]
    complete: bool
    by_order: bool
    assumed: bool
    paired: bool
    kind: list[str]
    nbytes: list[int | None]
    step: list[tuple[int, int]]
    records: list[list[CollectiveRecord]]
    start: Int64
    end: Int64

    @property
    def binding(self) -> Int64:
        """Arrivals before which no other rank can leave: of a pair only the sender's, as a small
        send is over once the network or the receiver's buffer has it.
        """
        if not self.paired:
            return self.start
        source = self.start[:, 0]
        return np.stack([source, np.full_like(source, LONG_AGO)], axis=1)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Joined:
        """These operations of it."""
        rows = np.flatnonzero(chosen).tolist()
        return replace(
            self,
            kind=[self.kind[i] for i in rows],
            nbytes=[self.nbytes[i] for i in rows],
            step=[self.step[i] for i in rows],
            records=[self.records[i] for i in rows],
            start=self.start[chosen],
            end=self.end[chosen],
        )


@dataclass(frozen=True)
class Matching:
    """All joined operations; `left` counts records by the reason they were not joined."""

    joined: list[Joined]
    records: int
    left: Counter[str]


NO_STEP = "launched before the recording or without a launch record"
NOT_ALL = "of kinds that not all members wait in"
NO_LENGTH = "recorded without a length on some rank"
UNEQUAL = "of steps in which the ranks' counts or sizes disagree"
ALONE = "of groups of which only one rank was recorded"
MISSING = "of groups of which a member's record is missing"
ONE_SIDE = "sent or received where the other side was not recorded"
TOO_MANY = "of groups whose name more ranks use than the group has members"


def match(members: Sequence[Member], world_size: int) -> Matching:
    """Joins the collectives of all ranks; a group without recorded members is the whole run."""
    left: Counter[str] = Counter()
    rows: dict[_Family, list[list[CollectiveRecord]]] = defaultdict(list)
    steps: dict[_Family, list[tuple[int, int]]] = defaultdict(list)
    for key, by_rank in _by_key(members, left).items():
        count = sum(map(len, by_rank.values()))
        if len(by_rank) < 2:
            left[ONE_SIDE if key.ends else ALONE] += count
        elif len(by_rank) > (_size(key.group, key.size) or world_size):
            left[TOO_MANY] += count
        elif not _agree(key.kind, by_rank.values()):
            left[UNEQUAL] += count
        else:
            ranks = key.ends or tuple(sorted(by_rank))
            by_order, paired = key.sequence is None, key.ends is not None
            family = _Family(key.group, key.size, ranks, by_order, paired)
            for row in zip(*(by_rank[r] for r in ranks), strict=True):
                if any(r.end <= r.start for r in row):
                    left[NO_LENGTH] += len(row)
                    continue
                rows[family].append(list(row))
                launched = row[0].launched
                steps[family].append((key.cycle, NO_ID if launched is None else launched))
    groups = [_joined(f, rows[f], steps[f], world_size) for f in rows]
    left[MISSING] += sum(g.start.size for g in groups if not g.complete)
    return Matching(groups, sum(len(m.digest.collectives) for m in members), +left)


def _by_key(
    members: Sequence[Member], left: Counter[str]
) -> dict[Key, dict[int, list[CollectiveRecord]]]:
    """Records by what they must share and by rank, in order of start; the rest goes to `left`."""
    found: dict[Key, dict[int, list[CollectiveRecord]]] = defaultdict(lambda: defaultdict(list))
    twins, streams = _twins(members), _streams(members)
    for member in members:
        seen = Counter(
            (r.ranks, r.group, r.kind, r.sequence)
            for r in member.digest.collectives
            if r.sequence is not None
        )
        for r in member.digest.collectives:
            ends = _ends(r, member.rank)
            # A replayed graph repeats the number it was captured with.
            number = None if ends else r.sequence
            unique = number is not None and seen[r.ranks, r.group, r.kind, number] == 1
            if r.kind not in ALL_PARTICIPANT and ends is None:
                left[NOT_ALL] += 1
            elif r.launched is None and not unique:
                left[NO_STEP] += 1
            else:
                group = r.ranks or r.group
                key = Key(
                    cycle=member.cycle,
                    # Groups of the same ranks count their operations apart.
                    group=f"{group} {r.group}" if r.ranks in twins else group,
                    size=r.group_size,
                    kind=r.kind,
                    step=None if unique else r.launched,
                    sequence=number,
                    stream=r.stream if streams and not (group or ends) else "",
                    ends=ends,
                )
                found[key][member.rank].append(r)
    return found


def _ends(record: CollectiveRecord, rank: int) -> tuple[int, int] | None:
    """Source and destination of a send or receive of this rank; None where not recorded."""
    if record.kind != SEND_RECV or (record.source is None and record.destination is None):
        return None
    # Kineto writes the other side alone.
    source = rank if record.source is None else record.source
    destination = rank if record.destination is None else record.destination
    return (source, destination) if rank in (source, destination) else None


def _twins(members: Sequence[Member]) -> set[str]:
    """Lists of ranks of which some rank is in more than one group."""
    twins: set[str] = set()
    for member in members:
        names: dict[str, set[str]] = defaultdict(set)
        for record in member.digest.collectives:
            if record.ranks:
                names[record.ranks].add(record.group)
        twins |= {ranks for ranks, found in names.items() if len(found) > 1}
    return twins


def _streams(members: Sequence[Member]) -> bool:
    """Whether streams tell operations without a group apart: all ranks use the same for them.

    Streams of one communicator are in order, those of two are not.
    """
    used = {
        frozenset(r.stream for r in member.digest.collectives if not (r.ranks or r.group))
        for member in members
    }
    return len(used) == 1


def _agree(kind: str, by_rank: Iterable[list[CollectiveRecord]]) -> bool:
    """Whether all ranks have as many operations, of the same sizes where sizes must be equal."""
    lists = list(by_rank)
    if len({len(records) for records in lists}) > 1:
        return False
    if kind in UNEVEN:
        return True
    sizes = ({r.nbytes for r in row if r.nbytes is not None} for row in zip(*lists, strict=True))
    return all(len(found) <= 1 for found in sizes)


def _joined(
    family: _Family,
    rows: list[list[CollectiveRecord]],
    steps: list[tuple[int, int]],
    world_size: int,
) -> Joined:
    stated = _size(family.group, family.size)
    return Joined(
        group=family.group,
        ranks=list(family.ranks),
        complete=family.paired or len(family.ranks) >= (stated or world_size),
        by_order=family.by_order,
        assumed=not stated and not family.paired,
        paired=family.paired,
        kind=[row[0].kind for row in rows],
        nbytes=[row[0].nbytes for row in rows],
        step=steps,
        records=rows,
        start=np.array([[r.start for r in row] for row in rows], np.int64),
        end=np.array([[r.end for r in row] for row in rows], np.int64),
    )


def _size(group: str, size: int | None) -> int | None:
    """Members of a group, by its own word or by its list of ranks; None if neither is recorded."""
    if size is not None or not group.startswith("["):
        return size
    try:
        ranks = json.loads(group[: group.find("]") + 1])
    except ValueError:
        # Long lists are cut by the exporter: "[0, 1, 2, ..., 63]".
        return None
    return len(ranks)
