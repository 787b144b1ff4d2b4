"""Digests of many ranks -> one Job: means over ranks and steps that everything after quotes.

Cycles of a rank (the profiler's `repeat`) are more steps of that rank, not more ranks. A mean is
over the (rank, step) pairs that every rank has; "per step" below means per rank and step, in ns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.classify.evidence import Evidence
from analyzer.classify.tables import CollectiveRecord
from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.digest import StepRecord
from analyzer.ranks.member import NO_TURN, Member
from analyzer.ranks.stragglers import Together, join

Floats = npt.NDArray[np.float64]
# A collective and where waiting for others ends in it.
Turned = tuple[CollectiveRecord, int]

# Collectives of one kind and group are one row up to this ratio of sizes.
SIZE_RATIO = 10


class StepId(NamedTuple):
    """A step of the run: its cycle and the number in its mark."""

    cycle: int
    number: int


@dataclass(frozen=True)
class KernelMean:
    """Device work by name: occurrences, summed and uncovered ns, per rank and step."""

    name: str
    kind: str
    activity: int
    count: float
    ns: float
    exposed_ns: float


@dataclass(frozen=True)
class CollectiveMean:
    """Collectives of a kind, group and class of size, per rank and step; `nbytes` is the mean size.

    Waiting and transfer, hidden or not, are those of a mean one that could be split (`split_share`
    of them, 0 to 1) times their number; None where none could.
    """

    kind: str
    group: str
    group_size: int | None
    count: float
    nbytes: float | None
    ns: float
    exposed_ns: float
    wait_ns: float | None
    transfer_ns: float | None
    split_share: float = 1.0


@dataclass(frozen=True)
class CauseMean:
    """Idle ns per rank and step by cause, with the ops seen with it (name, ns)."""

    cause: str
    ns: float
    ops: list[tuple[str, float]]


@dataclass(frozen=True)
class Job:
    """All ranks of a run. `per_step` is [step, class], the mean over ranks, in CLASSES order."""

    members: list[Member]
    world_size: int | None
    steps: list[StepId]
    common_steps: bool
    per_step: Floats
    hidden_ns: float
    by_rank: dict[int, Floats]
    hidden_by_rank: dict[int, float]
    kernels: list[KernelMean]
    collectives: list[CollectiveMean]
    causes: list[CauseMean]
    together: Together

    @property
    def ranks(self) -> list[int]:
        """Ranks present."""
        return list(self.by_rank)

    @property
    def serving(self) -> bool:
        """Whether the steps are iterations of a serving engine: nothing is trained."""
        return any(step.phase for m in self.members for step in m.digest.steps)

    @property
    def size(self) -> int:
        """GPUs of the run: the world size the files give, else the ranks that are here."""
        return self.world_size or len(self.by_rank)

    @property
    def timeline(self) -> str:
        """ "device", or "host" when no rank recorded device work."""
        return self.members[0].digest.timeline

    @cached_property
    def mean_ns(self) -> dict[str, float]:
        """Class -> ns per step."""
        return dict(zip(CLASSES, self.per_step.mean(axis=0).tolist(), strict=True))

    @cached_property
    def group_ns(self) -> dict[str, float]:
        """Group -> ns per step."""
        return {g: sum(self.mean_ns[c] for c in members) for g, members in GROUPS.items()}

    @cached_property
    def step_ns(self) -> float:
        """Mean step, ns."""
        return float(self.per_step.sum(axis=1).mean())

    @cached_property
    def pairs(self) -> int:
        """How many (rank, step) pairs the digests' own sums are over."""
        return sum(len(m.digest.used) for m in self.members)

    def share(self, ns: float) -> float:
        """Part of the mean step."""
        return ns / self.step_ns

    def total(self, fact: Callable[[Evidence], int]) -> float:
        """A fact of the digests' evidence, per rank and step."""
        return sum(fact(m.digest.evidence) for m in self.members) / self.pairs

    def any(self, fact: Callable[[Evidence], object]) -> bool:
        """Whether a fact holds on some rank."""
        return any(fact(m.digest.evidence) for m in self.members)

    def cause_ns(self, *names: str) -> float:
        """Idle ns per step of these causes."""
        return sum(cause.ns for cause in self.causes if cause.cause in names)


def pool(members: Sequence[Member], limits: Thresholds = DEFAULT_THRESHOLDS) -> Job:
    """The job of these digests, each of which has a used step, joined over ranks.

    Steps that all ranks have are used; where the ranks have none in common each counts its own.
    """
    sizes = [m.digest.meta.world_size for m in members if m.digest.meta.world_size]
    size = max(sizes) if sizes else len({m.rank for m in members})
    ordered, together = join(sorted(members, key=lambda m: (m.rank, m.cycle)), size, limits)
    by_rank: dict[int, dict[StepId, StepRecord]] = defaultdict(dict)
    for member in ordered:
        for step in member.digest.used:
            by_rank[member.rank][StepId(member.cycle, step.index)] = step
    shared = set.intersection(*(set(steps) for steps in by_rank.values()))
    ids = sorted(shared or {i for steps in by_rank.values() for i in steps})
    rows = {r: [steps[i] for i in ids if i in steps] for r, steps in by_rank.items()}
    per_step = np.array(
        [_mean_classes(s[i] for s in by_rank.values() if i in s) for i in ids], np.float64
    )
    hidden = {r: float(np.mean([s.hidden_ns for s in steps])) for r, steps in rows.items()}
    return Job(
        members=ordered,
        world_size=max(sizes) if sizes else None,
        steps=ids,
        common_steps=bool(shared),
        per_step=per_step,
        hidden_ns=float(np.mean(list(hidden.values()))),
        by_rank={r: _mean_classes(steps) for r, steps in rows.items()},
        hidden_by_rank=hidden,
        kernels=_kernels(ordered),
        collectives=_collectives(ordered),
        causes=_causes(ordered),
        together=together,
    )


def _mean_classes(steps: Iterable[StepRecord]) -> Floats:
    table: Floats = np.array([[s.ns[c] for c in CLASSES] for s in steps], np.float64)
    mean: Floats = table.mean(axis=0)
    return mean


def _pairs(members: Sequence[Member]) -> int:
    return sum(len(m.digest.used) for m in members)


def _kernels(members: Sequence[Member]) -> list[KernelMean]:
    sums: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for member in members:
        for k in member.digest.kernels:
            row = sums[(k.name, k.kind, k.activity)]
            row[0] += k.count
            row[1] += k.ns
            row[2] += k.exposed_ns
    pairs = _pairs(members)
    means = [
        KernelMean(name, kind, activity, count / pairs, ns / pairs, exposed / pairs)
        for (name, kind, activity), (count, ns, exposed) in sums.items()
    ]
    return sorted(means, key=lambda k: (-k.ns, k.name))


def _collectives(members: Sequence[Member]) -> list[CollectiveMean]:
    rows: dict[tuple[str, str, int | None], list[Turned]] = defaultdict(list)
    for member in members:
        records = member.digest.collectives
        turns = repeat(NO_TURN) if member.turns is None else member.turns.tolist()
        for record, turn in zip(records, turns, strict=False):
            if record.step is not None:
                rows[(record.kind, record.group, record.group_size)].append((record, turn))
    pairs = _pairs(members)
    means = [_collective(records, pairs) for alike in rows.values() for records in _by_size(alike)]
    return sorted(means, key=lambda c: (-c.ns, c.kind, c.group, c.nbytes or 0.0))


def _by_size(records: list[Turned]) -> list[list[Turned]]:
    """The records by power of ten of their size where sizes differ by more than SIZE_RATIO: a rate
    over latency-bound and large ones together is of neither. Unknown sizes stand alone.
    """
    sizes = [r.nbytes for r, _ in records if r.nbytes]
    apart = bool(sizes) and max(sizes) > SIZE_RATIO * min(sizes)
    classes: dict[int | None, list[Turned]] = defaultdict(list)
    for turned in records:
        size = turned[0].nbytes
        classes[size if size is None else len(str(size)) if apart else 0].append(turned)
    return list(classes.values())


def _collective(records: list[Turned], pairs: int) -> CollectiveMean:
    first, _ = records[0]
    sizes = [r.nbytes for r, _ in records if r.nbytes is not None]
    turns = [(r, at) for r, at in records if at != NO_TURN]
    each = len(records) / pairs / len(turns) if turns else None
    return CollectiveMean(
        kind=first.kind,
        group=first.group,
        group_size=first.group_size,
        count=len(records) / pairs,
        nbytes=sum(sizes) / len(sizes) if sizes else None,
        ns=sum(r.end - r.start for r, _ in records) / pairs,
        exposed_ns=sum(r.exposed_ns for r, _ in records) / pairs,
        wait_ns=None if each is None else sum(at - r.start for r, at in turns) * each,
        transfer_ns=None if each is None else sum(r.end - at for r, at in turns) * each,
        split_share=len(turns) / len(records),
    )


def _causes(members: Sequence[Member]) -> list[CauseMean]:
    total: Counter[str] = Counter()
    ops: dict[str, Counter[str]] = defaultdict(Counter)
    for member in members:
        for record in member.digest.causes:
            total[record.cause] += record.ns
            ops[record.cause].update(dict(record.ops))
    pairs = _pairs(members)
    return [
        CauseMean(cause, ns / pairs, [(name, n / pairs) for name, n in ops[cause].most_common(5)])
        for cause, ns in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    ]
