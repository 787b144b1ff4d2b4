"""The same collective on every rank: which kernels of different ranks may be one operation.

Ranks issue the collectives of a group in one order. So they are joined by the group's sequence
number where it was recorded, else by group, kind, the step they were launched in, and order. Counts
and sizes must agree; where they do not, nothing of that step is joined by order and the mismatch is
told: a shift by one would give believable waits between unrelated kernels (losses.py joins what
ends together). A send is joined with the receive of the same source and destination by step and
order alone: each rank numbers its own sends and receives with all its peers. Whether what was
joined by order can be one operation is checked in agreement.py. Times in ns, each on its rank's
own clock.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.keys import by_key, lost, spans_of
from analyzer.ranks.member import Member
from analyzer.trace.schema import NO_ID, Int64

# Earlier than any time of a trace, with room for differences in 64 bits.
LONG_AGO = -(2**60)
# Uneven by nature: sizes of members differ.
UNEVEN = frozenset({"all_to_all", "dispatch", "combine", "all_gather"})


class Family(NamedTuple):
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


def merged(groups: Iterable[Joined]) -> list[Joined]:
    """The groups with tables of one family as one."""
    alike: dict[tuple[object, ...], list[Joined]] = defaultdict(list)
    for g in groups:
        alike[g.group, tuple(g.ranks), g.complete, g.by_order, g.assumed, g.paired].append(g)
    return [
        replace(
            first,
            kind=[kind for g in same for kind in g.kind],
            nbytes=[nbytes for g in same for nbytes in g.nbytes],
            step=[step for g in same for step in g.step],
            records=[row for g in same for row in g.records],
            start=np.concatenate([g.start for g in same]),
            end=np.concatenate([g.end for g in same]),
        )
        for same in alike.values()
        for first in same[:1]
    ]


@dataclass(frozen=True)
class Uneven:
    """Collectives of one step that order cannot join: the ranks hold other counts or sizes."""

    cycle: int
    family: Family
    kind: str
    records: list[list[CollectiveRecord]]


@dataclass(frozen=True)
class Matching:
    """All joined operations; `left` counts records by the reason they were not joined, `uneven`
    are those of them that disagree within a step.
    """

    joined: list[Joined]
    records: int
    left: Counter[str]
    uneven: list[Uneven] = field(default_factory=list)


NO_LENGTH = "recorded without a length on some rank"
UNEQUAL = "of steps in which the ranks' counts or sizes disagree"
ALONE = "of groups of which only one rank was recorded"
MISSING = "of groups of which a member's record is missing"
LOST = "of operations of which a rank that holds those before and after lost its own"
ONE_SIDE = "sent or received where the other side was not recorded"
TOO_MANY = "of groups whose name more ranks use than the group has members"


def match(members: Sequence[Member], world_size: int) -> Matching:
    """Joins the collectives of all ranks; a group without recorded members is the whole run."""
    left: Counter[str] = Counter()
    rows: dict[Family, list[list[CollectiveRecord]]] = defaultdict(list)
    steps: dict[Family, list[tuple[int, int]]] = defaultdict(list)
    uneven: list[Uneven] = []
    found = by_key(members, left)
    spans = spans_of(found)
    for key, by_rank in found.items():
        count = sum(map(len, by_rank.values()))
        members_of = _size(key.group, key.size) or world_size
        short = 2 if key.ends else members_of
        gone = len(by_rank) < short and lost(key, by_rank, spans)
        if len(by_rank) < 2:
            left[LOST if gone else ONE_SIDE if key.ends else ALONE] += count
            continue
        if len(by_rank) > members_of:
            left[TOO_MANY] += count
            continue
        ranks = key.ends or tuple(sorted(by_rank))
        family = Family(key.group, key.size, ranks, key.sequence is None, key.ends is not None)
        if not agree(key.kind, by_rank.values()):
            left[UNEQUAL] += count
            if family.by_order and not family.paired and len(by_rank) == members_of:
                uneven.append(Uneven(key.cycle, family, key.kind, [by_rank[r] for r in ranks]))
            continue
        for row in zip(*(by_rank[r] for r in ranks), strict=True):
            if any(r.end <= r.start for r in row):
                left[NO_LENGTH] += len(row)
                continue
            left[LOST if gone else MISSING] += len(row) if len(by_rank) < short else 0
            rows[family].append(list(row))
            steps[family].append((key.cycle, launched(row)))
    groups = [joined(f, rows[f], steps[f], world_size) for f in rows]
    return Matching(groups, sum(len(m.digest.collectives) for m in members), +left, uneven)


def launched(row: Sequence[CollectiveRecord]) -> int:
    """The step that the first rank launched an operation in; NO_ID where not known."""
    return NO_ID if row[0].launched is None else row[0].launched


def agree(kind: str, by_rank: Iterable[list[CollectiveRecord]]) -> bool:
    """Whether all ranks have as many operations, of the same sizes where sizes must be equal."""
    lists = list(by_rank)
    if len({len(records) for records in lists}) > 1:
        return False
    if kind in UNEVEN:
        return True
    sizes = ({r.nbytes for r in row if r.nbytes is not None} for row in zip(*lists, strict=True))
    return all(len(found) <= 1 for found in sizes)


def joined(
    family: Family,
    rows: list[list[CollectiveRecord]],
    steps: list[tuple[int, int]],
    world_size: int,
) -> Joined:
    """Operations of one family, each with the records of its ranks and its step, as one table."""
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
