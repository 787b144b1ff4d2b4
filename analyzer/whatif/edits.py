"""What does each named fix change in the replay? The edits of a what-if (public ids).

An edit of strength 1 takes its cause away, of strength 0.25 a quarter of it. Edits can follow each
other. Device work that is not edited lasts as long as it did, and blocking is derived again, so
that what was hidden behind the cause comes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, Call
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import Together
from analyzer.ranks.unknown import NO_LAUNCHES, NO_LOADER, WORK_LOST, no_collectives, work_lost
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.replay import Inputs

Floats = npt.NDArray[np.float64]

NOT_SPLIT = (
    "not measurable: waiting and transfer cannot be told apart, since the ranks' collectives could "
    "not be joined"
)


# Collectives of a few bytes take 10 to 20 us inside a node (NVIDIA/nccl-tests, published tables).
_SMALLEST_NS = 15_000.0


# Ranks that launch as much work in a step, up to this part of it, do the same.
_ALIKE = 0.05


@dataclass(frozen=True)
class Scene:
    """What the edits look at beside the numbers they change."""

    graph: Graph
    late: frozenset[int]


Edit = Callable[[Scene, Inputs, float], Inputs]


def no_data_loading(scene: Scene, run: Inputs, part: float) -> Inputs:
    """The loader never blocks, and the copies of batches take no time."""
    graph = scene.graph
    wait = np.where(graph.kind == Call.LOADER, run.wait * (1 - part), run.wait)
    arrival = run.arrival.copy()
    for actor in graph.actors:
        at = arrival[actor.host]
        known = np.flatnonzero(~np.isnan(at))
        if len(known):
            # Batches that come at a pace come at a faster one.
            first = at[known[0]] - run.wait[actor.host][known[0]]
            at[known] = np.nan if part == 1 else first + (at[known] - first) * (1 - part)
    dur = np.where(graph.activity == BATCH, run.dur * (1 - part), run.dur)
    return replace(run, wait=wait, arrival=arrival, dur=dur)


def no_launch_overhead(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Host time between launches, launch calls and launch latency go; waits for the loader,
    blocking calls and allocation stay.
    """
    return replace(_no_launching(scene, run, part), unknown=run.unknown * (1 - part))


def no_communication(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Collectives take no time and join nobody; their launches stay. In part they take less time,
    but still wait for the last of their ranks: who arrives a little can leave no earlier.
    """
    dur = np.where(_communicates(scene.graph), run.dur * (1 - part), run.dur)
    return replace(run, dur=dur, meeting=0.0 if part == 1 else run.meeting)


def no_host_sync(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Blocking calls do not block the host."""
    return replace(run, blocking=run.blocking * (1 - part))


def no_optimizer(scene: Scene, run: Inputs, part: float) -> Inputs:
    """The optimizer's device time goes, its launches stay."""
    optimizer = scene.graph.activity == Activity.OPTIMIZER
    return replace(run, dur=np.where(optimizer, run.dur * (1 - part), run.dur))


def bandwidth_x2(scene: Scene, run: Inputs, part: float) -> Inputs:
    """The transfer of every collective, less its latency, halves."""
    graph = scene.graph
    slots = np.flatnonzero(graph.joined)
    moved = np.maximum(run.dur[slots] - transfer_latency(graph)[slots], 0.0)
    dur = run.dur.copy()
    dur[slots] -= part * moved / 2
    return replace(run, dur=dur)


def perfect_overlap(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Compute waits for communication only before the optimizer."""
    return replace(run, waiting=run.waiting * (1 - part))


def no_straggler(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Every rank computes, loads and is busy on its host, step by step, for as long as the ranks
    that are not late on average; the jitter of the single pieces stays.

    Where all ranks launch the same work in the same order a late one takes the times of another, so
    that a stall goes wherever it was; else its own are scaled.
    """
    graph = scene.graph
    dur, wait, arrival = run.dur.copy(), run.wait.copy(), run.arrival.copy()
    host = {name: getattr(run, name).copy() for name in ("rest", "other", "unknown")}
    by_step: dict[tuple[int, int], list[_Row]] = defaultdict(list)
    for actor in graph.actors:
        for step, slots, points in _by_step(graph, actor):
            by_step[actor.cycle, step].append((actor, slots, points))
    for rows in _peers(by_step.values()):
        good = [a.rank not in scene.late for a, _, _ in rows]
        if len(rows) < 2 or not any(good):
            continue
        _level(dur, [s for _, s, _ in rows], good, part)
        for column in host.values():
            _level(column, [p for _, _, p in rows], good, part)
        loads = [p[graph.kind[p] == Call.LOADER] for _, _, p in rows]
        if len({len(r) for r in loads}) == 1:
            _level(wait, loads, good, part)
            _level_arrivals(arrival, loads, good, part)
    return replace(run, dur=dur, wait=wait, arrival=arrival, **host)


_Row = tuple[Actor, Int64, Int64]


def _peers(steps: Iterable[list[_Row]]) -> Iterator[list[_Row]]:
    """Of each step the ranks that do about as much work: stages of a pipeline are no peers."""
    for rows in steps:
        left = sorted(rows, key=lambda row: len(row[1]))
        while left:
            most = len(left[0][1]) * (1 + _ALIKE)
            yield [row for row in left if len(row[1]) <= most]
            left = [row for row in left if len(row[1]) > most]


def _by_step(graph: Graph, actor: Actor) -> list[tuple[int, Int64, Int64]]:
    """Of each step the slots of its work that does not communicate, in order of launch, and the
    points of the host up to its last launch.
    """
    slots = np.arange(actor.work.start, actor.work.stop)
    slots = slots[~_communicates(graph)[slots] & (graph.launch[slots] != NO_ID)]
    slots = slots[np.lexsort((graph.ts[slots], graph.launch[slots]))]
    found = []
    begin = actor.host.start
    for step in np.unique(graph.step[slots]).tolist():
        mine = slots[graph.step[slots] == step]
        end = int(graph.launch[mine].max()) + 1
        if step != NO_ID and end > begin:
            found.append((step, mine, np.arange(begin, end)))
            begin = end
    return found


def _level(values: Floats, rows: Sequence[Int64], good: Sequence[bool], part: float) -> None:
    """Moves each row's values to the mean sum of the good rows, late ones by way of a good one."""
    alike = len({len(r) for r in rows}) == 1
    models = [r for r, g in zip(rows, good, strict=True) if g]
    mean = float(np.mean([values[r].sum() for r in models]))
    old = [values[r] for r in rows]
    for i in range(len(rows)):
        model = old[i] if good[i] or not alike else values[models[i % len(models)]]
        total = float(model.sum())
        target = model * (mean / total) if total else model
        old[i] = (1 - part) * old[i] + part * target
    for row, new in zip(rows, old, strict=True):
        values[row] = new


def _level_arrivals(
    arrival: Floats, rows: Sequence[Int64], good: Sequence[bool], part: float
) -> None:
    """Moves the arrival of batches that come at a pace to the mean of the good rows; where theirs
    come when asked for, those of the others do, too.
    """
    table = np.stack([arrival[r] for r in rows])
    known = ~np.isnan(table)
    paced = known & np.array(good)[:, None]
    count = paced.sum(axis=0)
    mean = np.where(paced, table, 0.0).sum(axis=0) / np.maximum(count, 1)
    target = np.where(count > 0, mean, np.nan)
    for row, old, had in zip(rows, table, known, strict=True):
        moved = (1 - part) * old + part * target
        arrival[row] = np.where(had, np.where(np.isnan(moved) & (part < 1), old, moved), old)


def _communicates(graph: Graph) -> npt.NDArray[np.bool_]:
    comm: npt.NDArray[np.bool_] = graph.lane % 2 == 1
    return comm


def transfer_latency(graph: Graph) -> Floats:
    """Per slot the part of its transfer that does not shrink with bandwidth: the intercept of the
    line through transfer over size of its kind and group (methods 1.9); where one size tells none,
    what a collective of a few bytes takes, at most half of the transfer.
    """
    latency = np.zeros(len(graph.ts))
    alike: dict[str, list[int]] = defaultdict(list)
    for slot, kind in graph.kinds.items():
        if np.isfinite(graph.nbytes[slot]):
            alike[kind].append(slot)
    for slots in alike.values():
        latency[slots] = _intercept(graph.nbytes[slots], graph.dur[slots])
    return latency


def _intercept(nbytes: Floats, transfer: Floats) -> float:
    sizes = np.unique(nbytes)
    if len(sizes) < 2 or sizes[-1] < 2 * sizes[0]:
        return min(_SMALLEST_NS, float(np.median(transfer)) / 2)
    typical = np.array([np.median(transfer[nbytes == size]) for size in sizes])
    i, j = np.triu_indices(len(sizes), 1)
    slope = float(np.median((typical[j] - typical[i]) / (sizes[j] - sizes[i])))
    intercept = float(np.median(typical - slope * sizes))
    return min(max(intercept, 0.0), float(transfer.min()))


EDITS: dict[str, Edit] = {
    "no-data-loading": no_data_loading,
    "no-launch-overhead": no_launch_overhead,
    "no-communication": no_communication,
    "no-straggler": no_straggler,
    "no-host-sync": no_host_sync,
    "no-optimizer": no_optimizer,
    "bandwidth-x2": bandwidth_x2,
    "perfect-overlap": perfect_overlap,
}


def inner(size: int) -> dict[str, Edit]:
    """Edits behind findings whose fix is no public edit: see findings/ranking.py."""
    return {
        "launching": _no_launching,
        "transfer": _no_transfer,
        "sharded-optimizer": lambda scene, run, part: no_optimizer(
            scene, run, part * (1 - 1 / size)
        ),
        "copies": _no_copies,
        "allocation": _no_allocation,
    }


def _no_launching(scene: Scene, run: Inputs, part: float) -> Inputs:
    """As no_launch_overhead, but long stretches without a record, which may be anything, stay."""
    return replace(run, rest=run.rest * (1 - part), latency=run.latency * (1 - part))


def _no_transfer(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Collectives take no time, but wait for the last of their ranks: an ideal network."""
    return replace(no_communication(scene, run, part), meeting=run.meeting)


def _no_copies(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Copies and sets take no time, batches excepted."""
    copies = scene.graph.activity == Activity.COPY
    return replace(run, dur=np.where(copies, run.dur * (1 - part), run.dur))


def _no_allocation(scene: Scene, run: Inputs, part: float) -> Inputs:
    """Host time in allocation calls and in the profiler goes."""
    return replace(run, other=run.other * (1 - part))


_OF_COMMUNICATION = ("no-communication", "no-straggler", "bandwidth-x2", "perfect-overlap")


def refusals(job: Job) -> dict[str, str]:
    """Edits that this job's traces cannot answer, and why."""
    if work_lost(job):
        return dict.fromkeys(EDITS, WORK_LOST)
    found = {}
    if not job.any(lambda e: e.loader.events):
        found["no-data-loading"] = NO_LOADER
    if job.timeline == "device" and not job.total(lambda e: e.launches.calls):
        found["no-launch-overhead"] = found["no-host-sync"] = NO_LAUNCHES
        found["no-data-loading"] = NO_LAUNCHES
    if why := no_collectives(job):
        found |= dict.fromkeys(_OF_COMMUNICATION, why)
    if job.together.method is None and (job.group_ns["communication"] or job.hidden_ns):
        found["no-straggler"] = found["bandwidth-x2"] = NOT_SPLIT
    return found


def scene(graph: Graph, together: Together) -> Scene:
    """The scene of a graph: late are also ranks that stalled once."""
    stalled = [] if together.sole is None else [together.sole]
    return Scene(graph, frozenset(one.rank for one in [*together.late, *stalled]))
