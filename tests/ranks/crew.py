"""Ranks as digests from literal microseconds, and whole jobs of them from a model.

`record` and `member` write down what a test says. `Model` is a synchronous job: in each step every
rank computes each block for its length, times its own pace, times a Gaussian factor of its own for
that step; then it meets its group, whose transfer begins with the last to arrive and ends within
`scatter_us` on all. Everything is exposed, so waiting and transfer are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from analyzer.classify.classes import CLASSES
from analyzer.classify.coverage import Coverage
from analyzer.classify.evidence import (
    CopyFacts,
    Evidence,
    HostFacts,
    KernelFacts,
    LaunchFacts,
    LoaderFacts,
)
from analyzer.classify.tables import CollectiveRecord
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.digest import DIGEST_VERSION, DeviceSpan, RankDigest, StepRecord
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together, join
from analyzer.timeline.intervals import Intervals, union
from analyzer.trace.schema import TraceMeta

NOTHING = Evidence(
    loader=LoaderFacts(events=0, ns=0, names=[], single_process=False),
    kernels=KernelFacts(
        count=0,
        ns=0,
        tiny_count=0,
        tiny_ns=0,
        matmul_ns=0,
        memory_ns=0,
        plain_matmul_ns=0,
        plain_matmul=[],
        devices=1,
    ),
    launches=LaunchFacts(
        calls=0,
        interval_ns=None,
        idle_ns=0,
        late_idle_ns=0,
        starts_before_launch=0,
        coverage=Coverage(),
    ),
    copies=CopyFacts(exposed=[], pageable_ns=0),
    host=HostFacts(gloo_ns=0, gloo=[], collective_calls=0, blocking=[], profiler_ns=0),
)


def ns(us: float) -> int:
    return round(us * 1000)


def record(start: float, end: float, **what: Any) -> CollectiveRecord:
    """A collective from `start` to `end` us; without more, one that says nothing, of step 1."""
    given = {
        "kind": "all_reduce",
        "name": "nccl",
        "group": "",
        "group_size": None,
        "ranks": "",
        "sequence": None,
        "nbytes": None,
        "stream": "20",
        "exposed_ns": ns(end) - ns(start),
        "step": 1,
        "launched": 1,
    }
    return CollectiveRecord(start=ns(start), end=ns(end), **given | what)


def named(start: float, end: float, sequence: int, ranks: Sequence[int], **what: Any) -> Any:
    """A collective that says its group and its place in it."""
    group = {"group": "0", "group_size": len(ranks), "ranks": str(list(ranks))}
    return record(start, end, sequence=sequence, **group | what)


def spans(records: Sequence[CollectiveRecord]) -> Intervals:
    start, end = (np.array([getattr(r, s) for r in records], np.int64) for s in ("start", "end"))
    return union(start, end)


def member(
    rank: int,
    records: Sequence[CollectiveRecord],
    *,
    steps: Mapping[int, tuple[float, float]] | None = None,
    busy: Sequence[tuple[float, float]] = (),
    loading: Mapping[int, float] | None = None,
    host: str | None = None,
    world_size: int | None = None,
    cycle: int = 0,
) -> Member:
    """A rank with these collectives; `busy` hides them, the rest of each step is computing.

    Steps are number -> (start, end) us, `loading` us of the computing that is data loading.
    """
    windows = {1: (0.0, 1000.0)} if steps is None else dict(steps)
    bare = spans(records) - Intervals(*np.array([*busy], np.int64).reshape(-1, 2).T * 1000)
    ordered = sorted(records, key=lambda r: r.start)
    digest = RankDigest(
        version=DIGEST_VERSION,
        meta=TraceMeta(name=f"rank{rank}.json", size=1, events=1, host=host, world_size=world_size),
        timeline="device",
        step_rule="marks",
        marked=True,
        steps=[_step(i, a, b, bare, (loading or {}).get(i, 0)) for i, (a, b) in windows.items()],
        span=DeviceSpan(start=0, end=1, ns=dict.fromkeys(CLASSES, 0), hidden_ns=0),
        causes=[],
        kernels=[],
        collectives=ordered,
        exposed_comm=list(zip(bare.start.tolist(), bare.end.tolist(), strict=True)),
        strip=None,
        evidence=NOTHING,
        unlinked_share=0.0,
        program=None,
    )
    return Member(rank, cycle, digest)


def _step(index: int, start: float, end: float, bare: Intervals, loading: float) -> StepRecord:
    window = np.array([ns(start), ns(end)], np.int64)
    exposed = int(bare.within(window)[0])
    times = dict.fromkeys(CLASSES, 0) | {"comm_unsplit": exposed, "data_loading": ns(loading)}
    times["compute"] = ns(end) - ns(start) - exposed - ns(loading)
    return StepRecord(index=index, start=ns(start), end=ns(end), dropped="", ns=times, hidden_ns=0)


def joined(members: Sequence[Member], world_size: int | None = None) -> Together:
    """What joining these ranks gives; they are the whole run unless said otherwise."""
    return join(members, world_size or len({m.rank for m in members}), DEFAULT_THRESHOLDS)[1]


@dataclass(frozen=True)
class Block:
    """Computing, then an operation of each group at once; `rest` of the ranks go on."""

    compute_us: float
    transfer_us: float
    kind: str = "all_reduce"
    groups: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True)
class Model:
    """A job; `pace` is of single ranks, `loading_us` the most that one's loader is late by, evenly
    from nothing, `clock_us` what a rank's clock is ahead.
    """

    blocks: Sequence[Block]
    ranks: int = 8
    steps: int = 5
    jitter: float = 0.02
    pace: Mapping[int, float] = field(default_factory=dict)
    loading_us: Mapping[int, float] = field(default_factory=dict)
    clock_us: Mapping[int, float] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    scatter_us: float = 10.0
    says_groups: bool = True


@dataclass
class Run:
    """What a model did: its members and, by rank, waiting and transfer per step in us."""

    members: list[Member]
    wait: dict[int, float]
    transfer: dict[int, float]
    step_us: float


def run(model: Model, seed: int = 0) -> Run:
    """The model's steps with random numbers from `seed`."""
    random = Random(seed)
    ranks = range(model.ranks)
    now = [0.0] * model.ranks
    records: dict[int, list[CollectiveRecord]] = defaultdict(list)
    wait, transfer = dict.fromkeys(ranks, 0.0), dict.fromkeys(ranks, 0.0)
    windows: dict[int, dict[int, tuple[float, float]]] = defaultdict(dict)
    loading: dict[int, dict[int, float]] = defaultdict(dict)
    sequence = 0
    for step in range(1, model.steps + 1):
        began = list(now)
        for r in ranks:
            loading[r][step] = random.uniform(0, model.loading_us.get(r, 0))
            now[r] += loading[r][step]
        pace = [model.pace.get(r, 1.0) * random.gauss(1, model.jitter) for r in ranks]
        for block in model.blocks:
            sequence += 1
            for r in ranks:
                now[r] += block.compute_us * pace[r]
            for group in block.groups or [ranks]:
                arrived = max(now[r] for r in group)
                for r in group:
                    end = arrived + block.transfer_us + random.uniform(0, model.scatter_us)
                    ahead = model.clock_us.get(r, 0)
                    says = {"group": "0", "group_size": len(group), "ranks": str(list(group))}
                    says["sequence"] = sequence
                    what = says if model.says_groups else {}
                    at = (now[r] + ahead, end + ahead)
                    records[r].append(record(*at, kind=block.kind, launched=step, **what))
                    wait[r] += (arrived - now[r]) / model.steps
                    transfer[r] += (end - arrived) / model.steps
                    now[r] = end
        for r in ranks:
            ahead = model.clock_us.get(r, 0)
            windows[r][step] = (began[r] + ahead, now[r] + ahead)
    members = [
        member(
            r,
            records[r],
            steps=windows[r],
            loading=loading[r],
            host=model.hosts.get(r),
            world_size=model.ranks,
        )
        for r in ranks
    ]
    return Run(members, wait, transfer, max(now) / model.steps)
