"""What must collectives of different ranks share to be one operation, and which were lost?

A key holds it; what can have none is counted with its reason. An operation that a rank lacks while
it holds those before and after was lost there; at the edges of a recording nothing was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.member import Member

# Every member takes part from arrival to end; a broadcast can be over on one rank before another
# arrives, so arrivals say nothing about waiting there.
ALL_PARTICIPANT = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "dispatch", "combine"}
)
SEND_RECV, UNSPECIFIED = "send_recv", "unspecified"
NOT_ALL = "of kinds that not all members wait in"
NO_KIND = "of a kind that was not recorded"
NO_STEP = "launched before the recording or without a launch record"


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


def by_key(
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
                left[NO_KIND if r.kind == UNSPECIFIED else NOT_ALL] += 1
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


Spans = dict[Key, dict[int, tuple[int, int]]]


def _place(key: Key) -> tuple[Key, int]:
    """What an operation's neighbours share with it, and its place among them."""
    at = key.sequence if key.step is None else key.step
    if key.step is None:
        return key._replace(sequence=None), -1 if at is None else at
    return key._replace(step=None, sequence=None), key.step


def spans_of(found: Mapping[Key, Mapping[int, object]]) -> Spans:
    """Of each rank the first and last place in a series of operations."""
    spans: Spans = defaultdict(dict)
    for key, by_rank in found.items():
        series, at = _place(key)
        for rank in by_rank:
            low, high = spans[series].get(rank, (at, at))
            spans[series][rank] = (min(low, at), max(high, at))
    return spans


def lost(key: Key, by_rank: Mapping[int, object], spans: Spans) -> bool:
    """Whether a rank without this operation has those before and after: not an edge but a loss."""
    series, at = _place(key)
    return any(
        low < at < high for rank, (low, high) in spans[series].items() if rank not in by_rank
    )
