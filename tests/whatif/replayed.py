"""Jobs of traces that a test has just built, replayed; times are microseconds.

`Hand` is such a job with its graph: what an edit makes of the mean step can be read off it. `work`
and `host` are the tables of one rank from literal rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from make import TraceBuilder

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import Call, Host, Work
from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.digest import digest
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job, pool
from analyzer.trace.schema import NO_ID
from analyzer.whatif.account import account
from analyzer.whatif.assemble import graph
from analyzer.whatif.edits import EDITS, Scene, inner, scene
from analyzer.whatif.graph import Graph
from analyzer.whatif.measure import Stopwatch
from analyzer.whatif.replay import Inputs, Run, recorded, replay
from analyzer.whatif.study import Study, study


def pooled(folder: Path, builders: Sequence[TraceBuilder]) -> Job:
    """The job of these ranks, in order."""
    members = []
    for rank, built in enumerate(builders):
        path = built.write(folder / f"rank{rank}.json")
        members.append(Member(rank, 0, digest(path, Settings())))
    return pool(members)


def studied(folder: Path, *builders: TraceBuilder) -> Study:
    """What the replay says of these ranks."""
    return study(pooled(folder, builders), DEFAULT_THRESHOLDS)


@dataclass(frozen=True)
class Hand:
    """A job with its graph."""

    job: Job
    graph: Graph
    scene: Scene
    watch: Stopwatch

    @property
    def today(self) -> Inputs:
        return recorded(self.graph)

    def run(self, inputs: Inputs | None = None) -> Run:
        return next(iter(replay(self.graph, [self.today if inputs is None else inputs])))

    def edited(self, *edits: str, part: float = 1.0) -> Inputs:
        """The recording after these edits, one after the other."""
        known = {**EDITS, **inner(self.job.size)}
        inputs = self.today
        for name in edits:
            inputs = known[name](self.scene, inputs, part)
        return inputs

    def steps(self, *edits: str, part: float = 1.0) -> list[float]:
        """Length of each step after these edits, us to the ns."""
        lengths = self.watch.lengths(self.run(self.edited(*edits, part=part)))
        return [round(ns / 1000, 3) for ns in lengths.tolist()]

    def step(self, *edits: str, part: float = 1.0) -> float:
        """The mean step after these edits, us to the ns."""
        steps = self.steps(*edits, part=part)
        return round(sum(steps) / len(steps), 3)

    def classes(self, *edits: str) -> dict[str, float]:
        """The replayed step by class, us; what is zero is left out."""
        inputs = self.edited(*edits)
        run = self.run(inputs)
        found = account(self.graph, run, inputs, self.watch, DEFAULT_THRESHOLDS, self.watch.settled)
        return {name: round(ns / 1000, 3) for name, ns in found.items() if ns}


def by_hand(folder: Path, *builders: TraceBuilder) -> Hand:
    """These ranks with their graph."""
    return hand(pooled(folder, builders))


def hand(job: Job) -> Hand:
    """A job with its graph."""
    made = graph(job.members, job.together)
    watch = Stopwatch(made, job.members, job.steps)
    return Hand(job, made, scene(made, job.together), watch)


# One row of each table: (start, end, stream, point that launched it) and (kind, time, waited).
Row = tuple[float, float, int, int]
Point = tuple[Call, float] | tuple[Call, float, float]


def work(*rows: Row, **columns: Sequence[int]) -> Work:
    """Work from rows; all computes in step 1 unless `columns` say otherwise."""
    count = len(rows)
    given = {
        "ts": [round(r[0] * 1000) for r in rows],
        "dur": [round((r[1] - r[0]) * 1000) for r in rows],
        "stream": [r[2] for r in rows],
        "host": [r[3] for r in rows],
        "step": [1] * count,
        "activity": [Activity.COMPUTE] * count,
        "record": [NO_ID] * count,
        "name": [0] * count,
        "op": [NO_ID] * count,
    }
    return Work(**{name: np.array(v, np.int64) for name, v in (given | columns).items()})


def host(*points: Point, **columns: Sequence[int]) -> Host:
    """A host from points; what passed between them, less the wait, is `rest`."""
    time = np.array([round(p[1] * 1000) for p in points], np.int64)
    wait = np.array([round(p[2] * 1000) if len(p) == 3 else 0 for p in points], np.int64)
    count = len(points)
    given = {
        "time": time,
        "kind": [p[0] for p in points],
        "rest": np.diff(time, prepend=time[:1]) - wait,
        "other": [0] * count,
        "unknown": [0] * count,
        "wait": wait,
        "thread": [1] * count,
        "awaited": [NO_ID] * count,
        "stream": [NO_ID] * count,
    }
    return Host(**{name: np.array(v, np.int64) for name, v in (given | columns).items()})
