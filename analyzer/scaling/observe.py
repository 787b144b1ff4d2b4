"""What does one run say that a fit over world sizes needs? Means per step, ns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from analyzer.classify import classes as c
from analyzer.ranks.pool import CollectiveMean, Job
from analyzer.scaling.overlap import Traffic, traffic
from analyzer.scaling.serial import half_width

EXPOSED = (c.COMM_TRANSFER, c.COMM_UNSPLIT)
HOPS, BYTES = "hops", "bytes"


class Resize(Protocol):
    """The run replayed with its classes, and hops and bytes of its collectives, times factors."""

    def steps(self, sizes: Sequence[Mapping[str, float]]) -> list[float]:
        """ns of the mean step for each of these factors."""

    def classes(self, factors: Mapping[str, float]) -> dict[str, float]:
        """ns of each class for these factors."""


@dataclass(frozen=True)
class Observation:
    """A run on `n` GPUs. `half` is half of the 95 % interval of the mean step as a part of it, None
    (with `reason`) where there are too few steps. `resize` replays it at another size, where it can
    be replayed.
    """

    n: int
    classes: Mapping[str, float]
    traffic: Traffic
    half: float | None = None
    reason: str = ""
    steps: int = 1
    collectives: Sequence[CollectiveMean] = ()
    resize: Resize | None = None

    @property
    def step(self) -> float:
        """The mean step, ns."""
        return sum(self.classes.values())

    @property
    def moved(self) -> float:
        """ns of communication without waiting, hidden or not; where waiting could not be told from
        it, all that was seen.
        """
        known = [row.transfer_ns for row in self.collectives]
        moved = sum(ns for ns in known if ns is not None)
        return moved if known and None not in known else self.traffic.total


def observe(job: Job, n: int, resize: Resize | None = None) -> Observation:
    """The run as a point at `n` GPUs."""
    wall = job.per_step.sum(axis=1)
    half, reason = half_width(wall / float(wall.mean()) - 1.0)
    return Observation(
        n=n,
        classes=job.mean_ns,
        traffic=traffic(job.mean_ns, job.hidden_ns, room(job)),
        half=half,
        reason=reason,
        steps=len(wall),
        collectives=job.collectives,
        resize=resize,
    )


def room(job: Job) -> float:
    """ns of a mean step from its first collective's start to its last one's end, less what of that
    is exposed: the time beside which communication could run.
    """
    found = []
    for member in job.members:
        spans: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for record in member.digest.collectives:
            if record.step is not None:
                spans[record.step].append((record.start, record.end, record.exposed_ns))
        for of_step in spans.values():
            first, last = min(s for s, _, _ in of_step), max(e for _, e, _ in of_step)
            found.append(last - first - sum(exposed for _, _, exposed in of_step))
    return max(0.0, float(np.mean(found))) if found else 0.0
