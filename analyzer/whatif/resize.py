"""How long is the step if the same job runs on other numbers of GPUs? Replayed from its own traces.

Compute, copies, batches and collectives last longer or shorter by given factors; the host's calls
stay. What overlaps what, who waits, and whether the host still keeps up is derived again, so that
communication which shrinking compute no longer hides comes out. Named edits can be made before.
Times in ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from analyzer.classify import classes as c
from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, Call
from analyzer.config import Thresholds
from analyzer.ranks.pool import Job
from analyzer.whatif.account import account
from analyzer.whatif.assemble import graph
from analyzer.whatif.edits import EDITS, Scene, scene, transfer_latency
from analyzer.whatif.graph import Graph
from analyzer.whatif.measure import Stopwatch
from analyzer.whatif.replay import Inputs, recorded, replay
from analyzer.whatif.tasks import NotReplayableError

Floats = npt.NDArray[np.float64]
# What each factor scales beside the classes of that name: hops and bytes of collectives.
HOPS, BYTES = "hops", "bytes"
_WORK = {
    Activity.COMPUTE: c.COMPUTE,
    Activity.OPTIMIZER: c.OPTIMIZER,
    Activity.COPY: c.COPY,
    BATCH: c.DATA_LOADING,
}


@dataclass(frozen=True)
class Resizer:
    """Replays the job, after `edits` in their order, with its parts made longer or shorter. `error`
    is how far the replay of the unchanged job is from the recorded step, a fraction.
    """

    job: Job
    scene: Scene
    watch: Stopwatch
    limits: Thresholds
    edits: tuple[str, ...] = ()

    @property
    def graph(self) -> Graph:
        """What is replayed."""
        return self.scene.graph

    def after(self, edits: Sequence[str]) -> Resizer:
        """The same job once these edits are made."""
        key = tuple(edits)
        if key not in self._others:
            self._others[key] = replace(self, edits=key)
        return self._others[key]

    @cached_property
    def _others(self) -> dict[tuple[str, ...], Resizer]:
        return {self.edits: self}

    @cached_property
    def _unchanged(self) -> tuple[float, dict[str, float]]:
        inputs = recorded(self.graph)
        run = next(replay(self.graph, [inputs]))
        found = account(self.graph, run, inputs, self.watch, self.limits, self.watch.settled)
        return float(self.watch.lengths(run).mean()), found

    @cached_property
    def _known(self) -> dict[tuple[tuple[str, float], ...], float]:
        """Steps replayed before: fits, curves and plans ask for the same sizes again."""
        return {}

    @cached_property
    def _edited(self) -> Inputs:
        run = recorded(self.graph)
        for name in self.edits:
            run = EDITS[name](self.scene, run, 1.0)
        return run

    @cached_property
    def _latency(self) -> Floats:
        return transfer_latency(self.graph)

    @property
    def error(self) -> float:
        """Of the unchanged job's step."""
        return abs(self._unchanged[0] / self.job.step_ns - 1.0)

    def steps(self, sizes: Sequence[Mapping[str, float]]) -> list[float]:
        """ns per step, for each of `sizes`: factors of the classes named, and of the hops and bytes
        of collectives.
        """
        base, _ = self._unchanged
        keys = [tuple(sorted(factors.items())) for factors in sizes]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        runs = replay(self.graph, (self._resized(dict(key)) for key in new))
        for key, run in zip(new, runs, strict=True):
            self._known[key] = self.job.step_ns * float(self.watch.lengths(run).mean()) / base
        return [self._known[key] for key in keys]

    def classes(self, factors: Mapping[str, float]) -> dict[str, float]:
        """Class -> ns of one of these steps: as recorded, changed by what the replay changes."""
        inputs = self._resized(factors)
        run = next(replay(self.graph, [inputs]))
        base, simulated = self._unchanged
        edited = account(self.graph, run, inputs, self.watch, self.limits, self.watch.settled)
        mean = self.job.mean_ns
        moved = {name: max(0.0, mean[name] + edited[name] - simulated[name]) for name in c.CLASSES}
        step = self.job.step_ns * float(self.watch.lengths(run).mean()) / base
        total = sum(moved.values())
        return {name: ns * step / total if total else 0.0 for name, ns in moved.items()}

    def _resized(self, factors: Mapping[str, float]) -> Inputs:
        made, run = self.graph, self._edited
        dur = run.dur.copy()
        for activity, name in _WORK.items():
            dur[made.activity == activity] *= factors.get(name, 1.0)
        communicates = made.lane % 2 == 1
        latency = np.minimum(self._latency, run.dur)
        moved = latency * factors.get(HOPS, 1.0) + (run.dur - latency) * factors.get(BYTES, 1.0)
        dur = np.where(communicates, moved, dur)
        loading = factors.get(c.DATA_LOADING, 1.0)
        wait = np.where(made.kind == Call.LOADER, run.wait * loading, run.wait)
        return replace(
            run,
            dur=dur,
            wait=wait,
            arrival=self._arrivals(run, loading),
            rest=run.rest * factors.get(c.LAUNCH, 1.0),
        )

    def _arrivals(self, run: Inputs, loading: float) -> Floats:
        """Batches that come at a pace of their own come at another."""
        arrival = run.arrival.copy()
        for actor in self.graph.actors:
            at = arrival[actor.host]
            known = np.flatnonzero(~np.isnan(at))
            if len(known):
                first = at[known[0]]
                at[known] = first + (at[known] - first) * loading
        return arrival


def resizer(job: Job, limits: Thresholds) -> Resizer | None:
    """The resizer of a job; None where it cannot be replayed well enough."""
    try:
        made = graph(job.members, job.together)
    except NotReplayableError:
        return None
    watch = Stopwatch(made, job.members, job.steps)
    if len(watch.steps) < 2:
        # The only window begins where the recording did, whatever is resized in it.
        return None
    found = Resizer(job, scene(made, job.together), watch, limits)
    return found if found.error <= limits.replay_poor_share else None
