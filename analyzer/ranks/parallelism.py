"""Which parallel dimensions does the job use, with which groups, and how many GPUs do they split?

The groups are those the collectives name, or that joining them over the ranks showed; their number
of ranks gives the N that scaling laws speak of. Times in ns.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analyzer.classify.classes import DATA_LOADING
from analyzer.classify.tables import CollectiveRecord
from analyzer.digest import StepRecord
from analyzer.ranks.dimensions import (
    DATA,
    ONE_SIZE_SHARE,
    PIPELINE,
    SHARDED,
    TENSOR,
    UNKNOWN,
    Seen,
    classify,
)
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import CLOCKED

NODE, NODES = "node", "nodes"


@dataclass(frozen=True)
class Group:
    """Ranks that communicate. `count` and `ns` are per rank of the group and step; `pairs` is over
    how many of them that mean is. `size` is None and `ranks` empty where no trace says.
    """

    name: str
    size: int | None
    ranks: list[int]
    dimension: str
    level: str
    because: str
    kinds: list[str]
    count: float
    ns: float
    pairs: int


@dataclass(frozen=True)
class Degree:
    """How many GPUs, or groups of GPUs, share the work the laws speak of, as a sentence too."""

    n: int
    because: str


class _Key(NamedTuple):
    """A group as a trace names it; `family` parts the collectives of those it does not name."""

    name: str
    ranks: str
    size: int | None
    family: str


_FAMILIES = {"all_gather": "reduce_scatter", "combine": "dispatch"}


def groups(job: Job) -> list[Group]:
    """All groups of more than one rank with collectives in used steps, most time first."""
    found: dict[_Key, dict[tuple[int, int], list[CollectiveRecord]]]
    found = defaultdict(lambda: defaultdict(list))
    for place, member in enumerate(job.members):
        for record in member.digest.collectives:
            if record.step is not None and record.group_size != 1 and job.size > 1:
                family = "" if record.group else _FAMILIES.get(record.kind, record.kind)
                key = _Key(record.group, record.ranks, record.group_size, family)
                found[key][place, record.step].append(record)
    described = {
        name: text
        for member in job.members
        for name, text, _ in member.digest.meta.groups
        if text not in ("", "undefined", "default_pg")
    }
    rows = [
        _group(job, key, records, described.get(key.name, "")) for key, records in found.items()
    ]
    return sorted(rows, key=lambda g: (-g.ns * g.pairs, g.name, g.ranks))


def strategy(found: Sequence[Group]) -> list[str]:
    """The dimensions in use, most time first; only "unknown" where none was recognised."""
    time: Counter[str] = Counter()
    for group in found:
        time[group.dimension] += round(group.ns * group.pairs)
    known = [dimension for dimension, _ in time.most_common() if dimension != UNKNOWN]
    return known or ([UNKNOWN] if found else [])


def _group(
    job: Job,
    key: _Key,
    records: Mapping[tuple[int, int], list[CollectiveRecord]],
    description: str,
) -> Group:
    members = {place for place, _ in records}
    pairs = sum(len(job.members[place].digest.used) for place in members)
    time: Counter[str] = Counter()
    for record in (r for rows in records.values() for r in rows):
        time[record.kind] += record.end - record.start
    ranks = _listed(key.ranks) or _joined_ranks(job, key, set(time))
    size = key.size or len(ranks) or None
    dimension, because = classify(seen(job.members, records, pairs, description))
    return Group(
        name=key.name,
        size=size,
        ranks=ranks,
        dimension=dimension,
        level=_level(job, ranks, size),
        because=because,
        kinds=[kind for kind, _ in time.most_common()],
        count=sum(map(len, records.values())) / pairs,
        ns=sum(time.values()) / pairs,
        pairs=pairs,
    )


def _listed(ranks: str) -> list[int]:
    try:
        listed = json.loads(ranks or "[]")
    except ValueError:
        # Long lists are cut by the exporter: "[0, 1, 2, ..., 63]".
        return []
    return [int(rank) for rank in listed]


def _joined_ranks(job: Job, key: _Key, kinds: set[str]) -> list[int]:
    """Ranks whose kernels were found to be one operation, where the trace names no group."""
    if key.name or job.together.method != CLOCKED:
        return []
    fitting = {
        tuple(p.group.ranks)
        for p in job.together.parts
        if not p.group.group and kinds & set(p.group.kind)
    }
    return list(fitting.pop()) if len(fitting) == 1 else []


def seen(
    members: Sequence[Member],
    records: Mapping[tuple[int, int], list[CollectiveRecord]],
    pairs: int,
    description: str,
) -> Seen:
    """The facts that rules judge; `records` by (place of the member, used step)."""
    kinds = Counter(r.kind for rows in records.values() for r in rows)
    steps = {(place, s.index): s for place, m in enumerate(members) for s in m.digest.used}
    reductions: dict[int, list[float]] = defaultdict(list)
    time: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    leading: list[int] = []
    for at, rows in records.items():
        reduced = [r for r in rows if r.kind == "all_reduce"]
        reductions[at[0]] += [_place(r, steps[at]) for r in reduced]
        time[at[0]] += sum(r.end - r.start for r in reduced)
        sizes.update(r.nbytes for r in reduced if r.nbytes is not None)
        order = [r.kind for r in sorted(rows, key=lambda r: r.start)]
        if "reduce_scatter" in order:
            leading.append(order[: order.index("reduce_scatter")].count("all_gather"))
    # Long waits push what follows them back: the rank that waits least shows the job's own order.
    places = reductions[min(reductions, key=lambda place: time[place])]
    first, last = np.quantile(places, [0.1, 0.9]).tolist() if places else (None, None)
    return Seen(
        description=description,
        kinds={kind: count / pairs for kind, count in kinds.items()},
        first=first,
        last=last,
        one_size=not sizes or max(sizes.values()) >= ONE_SIZE_SHARE * sizes.total(),
        leading=float(np.median(leading)) if leading else None,
    )


def _place(record: CollectiveRecord, step: StepRecord) -> float:
    """Where in the step a collective starts, 0 to 1, the wait for the batch at its start aside."""
    loading = step.ns[DATA_LOADING]
    return max(0.0, record.start - step.start - loading) / max(1, step.end - step.start - loading)


def _level(job: Job, ranks: Sequence[int], size: int | None) -> str:
    """Inside one node or between nodes, by host names, else by how many GPUs a node has."""
    hosts = {m.rank: m.digest.meta.host for m in job.members}
    known = {hosts[rank] for rank in ranks if hosts.get(rank)}
    if len(known) > 1:
        return NODES
    if known and all(hosts.get(rank) for rank in ranks):
        return NODE
    in_node = max(len(m.digest.meta.gpus) for m in job.members)
    if in_node < 2:
        return UNKNOWN
    if ranks:
        return NODE if len({rank // in_node for rank in ranks}) == 1 else NODES
    if size is not None and size > in_node:
        return NODES
    return NODE if size is not None and job.size <= in_node else UNKNOWN


def degree(size: int, found: Sequence[Group], given: int | None = None) -> Degree:
    """N of the laws in a run of `size` GPUs: the data-parallel degree over 1, else that of the
    only dimension there is, else the size.
    """
    if given is not None:
        return Degree(given, f"N is {given} because it was given so.")
    known = [d for d in strategy(found) if d != UNKNOWN]
    data, unclear = _data_degree(size, found)
    if unclear:
        return Degree(size, f"N is the world size, {size}: {unclear}.")
    if data is None and {DATA, SHARDED} & set(known):
        split = _largest(found, TENSOR) * _largest(found, PIPELINE)
        data = size // split if size % split == 0 else None
    if data is not None and 1 < data < size:
        return Degree(
            data,
            f"N counts the {data} replicas of data parallelism; the GPUs that share one replica "
            "count as one processor.",
        )
    if data == size > 1:
        return Degree(size, f"N is the {size} GPUs, all of which share the batch.")
    why = "how the GPUs share the work could not be told"
    if len(known) == 1:
        n = _largest(found, known[0])
        if n > 1:
            return Degree(n, f"N is the {n} GPUs of the only parallel dimension seen, {known[0]}.")
        why = f"how many GPUs the only parallel dimension seen ({known[0]}) has was not recorded"
    return Degree(size, f"N is the world size, {size}: {why}." if size > 1 else "N is one GPU.")


_NOT_CROSSED = (
    "whether replicas are sharded too could not be told, as the lists of their ranks were cut"
)


def _largest(found: Iterable[Group], dimension: str) -> int:
    return max((g.size or 1 for g in found if g.dimension == dimension), default=1)


def _data_degree(size: int, found: Sequence[Group]) -> tuple[int | None, str]:
    """Replicas times shards where a group of each shares one rank only, else the larger; where the
    lists of ranks were cut, what fills the run. None without such groups, or, with the reason,
    where neither fills it.
    """
    plain = [g for g in found if g.dimension == DATA and g.size]
    sharded = [g for g in found if g.dimension == SHARDED and g.size]
    if not plain and not sharded:
        return None, ""
    replicas, shards = _largest(plain, DATA), _largest(sharded, SHARDED)
    either, both = max(replicas, shards), replicas * shards
    listed = [(set(a.ranks), set(b.ranks)) for a in plain for b in sharded if a.ranks and b.ranks]
    if any(len(a & b) == 1 for a, b in listed):
        return both, ""
    if listed or not plain or not sharded:
        return either, ""
    split = _largest(found, TENSOR) * _largest(found, PIPELINE)
    filling = [n for n in (both, either) if n * split == size]
    return (filling[0], "") if filling else (None, _NOT_CROSSED)
