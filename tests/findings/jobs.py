"""Pooled jobs from literal numbers: steps of 100 ms in which compute fills what is not named.

Times are milliseconds per rank and step, counts are per rank and step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    Named,
)
from analyzer.classify.kernels import Activity
from analyzer.digest import DIGEST_VERSION, DeviceSpan, RankDigest, StepRecord
from analyzer.ranks.clocks import Clocks
from analyzer.ranks.collectives import Matching
from analyzer.ranks.member import Member
from analyzer.ranks.pool import CauseMean, CollectiveMean, Job, KernelMean, StepId
from analyzer.ranks.stragglers import CLOCKED, Late, Together
from analyzer.trace.schema import TraceMeta

STEP_MS = 100.0
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def ns(ms: float) -> int:
    return round(ms * 1_000_000)


def step_ns(ms: dict[str, float]) -> dict[str, int]:
    """Every class of one step, compute as the rest of 100 ms."""
    given = {"compute": STEP_MS - sum(ms.values()), **ms}
    return {name: ns(given.get(name, 0.0)) for name in CLASSES}


def evidence(steps: int, **facts: Any) -> Evidence:
    """Evidence of one rank: 1,000 kernels of 60 ms a step, unless said otherwise."""

    def total(name: str, default: float) -> int:
        return ns(facts.get(name, default)) * steps

    def count(name: str, default: int) -> int:
        return facts.get(name, default) * steps

    def named(name: str) -> list[Named]:
        return [Named(n, c * steps, ns(ms) * steps) for n, c, ms in facts.get(name, [])]

    loader = facts.get("loader", "")
    return Evidence(
        loader=LoaderFacts(
            events=steps if loader else 0,
            ns=total("loader_ms", 0.0),
            names=[loader] if loader else [],
            single_process=loader == SINGLE,
        ),
        kernels=KernelFacts(
            count=count("kernels", 1000),
            ns=total("kernel_ms", 60.0),
            tiny_count=count("tiny", 0),
            tiny_ns=total("tiny_ms", 0.0),
            matmul_ns=total("matmul_ms", 0.0),
            memory_ns=total("memory_ms", 0.0),
            plain_matmul_ns=total("plain_ms", 0.0),
            plain_matmul=named("plain"),
            devices=1,
        ),
        launches=LaunchFacts(
            calls=count("calls", 1000),
            interval_ns=facts.get("interval_ns", 20_000),
            idle_ns=total("idle_ms", 20.0),
            late_idle_ns=total("late_ms", 20.0),
            starts_before_launch=0,
            coverage=Coverage(
                graph_calls=count("graph_calls", 0),
                graph_calls_recorded=count("graphs_recorded", 0),
            ),
        ),
        copies=CopyFacts(exposed=named("copies"), pageable_ns=total("pageable_ms", 0.0)),
        host=HostFacts(
            gloo_ns=total("gloo_ms", 0.0),
            gloo=named("gloo"),
            collective_calls=0,
            blocking=named("blocking"),
            profiler_ns=0,
        ),
    )


def member(
    rank: int,
    ms: dict[str, float],
    steps: int,
    timeline: str,
    flags: dict[str, bool],
    facts: Evidence,
) -> Member:
    records = [
        StepRecord(index=i, start=0, end=ns(STEP_MS), dropped="", ns=step_ns(ms), hidden_ns=0)
        for i in range(steps)
    ]
    digest = RankDigest(
        version=DIGEST_VERSION,
        meta=TraceMeta(name=f"rank{rank}.json", size=1, events=1, flags=flags),
        timeline=timeline,
        step_rule="marks",
        marked=True,
        steps=records,
        span=DeviceSpan(start=0, end=1, ns=step_ns({}), hidden_ns=0),
        causes=[],
        kernels=[],
        collectives=[],
        exposed_comm=[],
        strip=None,
        evidence=facts,
        unlinked_share=0.0,
        program=None,
    )
    return Member(rank, 0, digest)


def late(rank: int, cost_ms: float, steps: Sequence[int] = (0, 1, 2, 3, 4), **more: float) -> Late:
    """A rank that costs the others this much per step and spends `more` of these classes."""
    return Late(
        rank=rank,
        cost_ns=ns(cost_ms),
        step_share=0.1,
        last_share=0.5,
        steps=list(steps),
        because=[(name, ns(ms)) for name, ms in more.items()],
    )


def together(
    method: str | None,
    found: Sequence[Late],
    cost: dict[int, float],
    left: dict[str, int],
    sole: Late | None = None,
    perhaps_several: bool = False,
) -> Together:
    """What joining gave: of two records more than are `left`; cost: rank -> ms, late or not."""
    aligned = None if method is None else method == CLOCKED
    return Together(
        matching=Matching([], 2 + sum(left.values()), Counter(left)),
        clocks=Clocks(offset={}, drift={}, at_ns={}, aligned=aligned, residual_ns=None),
        method=method,
        parts=[],
        late=list(found),
        cost_ns={rank: ns(ms) for rank, ms in cost.items()},
        sole=sole,
        perhaps_several=perhaps_several,
    )


def job(
    ranks: Sequence[dict[str, float]] = (),
    *,
    steps: int = 5,
    world_size: int | None = None,
    timeline: str = "device",
    hidden_ms: float = 0.0,
    causes: dict[str, tuple[float, list[tuple[str, float]]]] | None = None,
    kernels: Sequence[tuple[str, Activity, float, float]] = (),
    collectives: Sequence[tuple[str, int, float]] = (),
    split: tuple[float, float] | None = None,
    method: str | None = None,
    found: Sequence[Late] = (),
    cost: dict[int, float] | None = None,
    left: dict[str, int] | None = None,
    sole: Late | None = None,
    perhaps_several: bool = False,
    flags: dict[str, bool] | None = None,
    facts: dict[str, Any] | None = None,
    **classes: float,
) -> Job:
    """A job of these ranks, or of one with `classes`; everything else is the same on all of them.

    causes: id -> (ms, [(op, ms)]); kernels: (name, activity, count, ms), all of it exposed;
    collectives: (kind, group size, exposed ms), each with `split` into waiting and transfer ms;
    method, found, cost, left, sole, perhaps_several: what joining the ranks gave, see `together`.
    """
    rows = list(ranks) or [classes]
    seen = evidence(steps, **(facts or {}))
    members = [member(i, ms, steps, timeline, flags or {}, seen) for i, ms in enumerate(rows)]
    by_rank = {i: np.array([*step_ns(ms).values()], np.float64) for i, ms in enumerate(rows)}
    wait, transfer = (None, None) if split is None else map(ns, split)
    mean = np.mean(list(by_rank.values()), axis=0)
    return Job(
        members=members,
        world_size=world_size,
        steps=[StepId(0, i) for i in range(steps)],
        common_steps=True,
        per_step=np.tile(mean, (steps, 1)),
        hidden_ns=ns(hidden_ms),
        by_rank=by_rank,
        hidden_by_rank=dict.fromkeys(by_rank, float(ns(hidden_ms))),
        kernels=[
            KernelMean(name, "kind", activity, count, ns(ms), ns(ms))
            for name, activity, count, ms in kernels
        ],
        collectives=[
            CollectiveMean(kind, "0", size, 1.0, None, ns(ms), ns(ms), wait, transfer)
            for kind, size, ms in collectives
        ],
        causes=[
            CauseMean(cause, ns(ms), [(op, ns(part)) for op, part in ops])
            for cause, (ms, ops) in (causes or {}).items()
        ],
        together=together(method, found, cost or {}, left or {}, sole, perhaps_several),
    )
