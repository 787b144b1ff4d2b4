"""How long are the steps of a replayed run? By the rule of the recorded ones: a window ends when
the last work launched in it ends. Times in ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.ranks.member import Member
from analyzer.ranks.pool import StepId
from analyzer.trace.schema import Int64
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.replay import Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Window:
    """A step of one actor: the slots launched in it; `before` is where its window starts when the
    step before it is not replayed, and whether it counts.
    """

    step: StepId
    slots: Int64
    start: float
    used: bool


class Stopwatch:
    """Windows of all steps of a graph; `steps` are those that count on every rank replayed."""

    def __init__(self, graph: Graph, members: Sequence[Member], steps: Sequence[StepId]) -> None:
        known = {(m.rank, m.cycle): m for m in members}
        self._windows = [
            (actor, _windows(graph, actor, known[actor.rank, actor.cycle], set(steps)))
            for actor in graph.actors
        ]
        seen: dict[StepId, int] = defaultdict(int)
        for _, windows in self._windows:
            for window in windows:
                seen[window.step] += window.used
        ranks = len({a.rank for a in graph.actors})
        self.steps = [s for s in steps if seen[s] == ranks] or [s for s in steps if seen[s]]

    @property
    def settled(self) -> list[StepId]:
        """Steps with a step after them in the replay: work that reaches into the step after the
        last would have nothing beside it. The only step has to do.
        """
        return self.steps[:-1] or self.steps

    def edges(self, run: Run) -> list[tuple[Actor, dict[StepId, tuple[float, float]]]]:
        """Start and end of each actor's windows that count."""
        wanted = set(self.steps)
        found = []
        for actor, windows in self._windows:
            at, mine = -np.inf, {}
            for window in windows:
                start = at if np.isfinite(at) else window.start
                if len(window.slots):
                    at = max(at, float(run.end[window.slots].max()))
                if window.used and window.step in wanted:
                    mine[window.step] = (start, max(at, start))
            found.append((actor, mine))
        return found

    def lengths(self, run: Run) -> Floats:
        """Length of each step, the mean over its ranks."""
        lengths: Mapping[StepId, list[float]] = {s: [] for s in self.steps}
        for _, mine in self.edges(run):
            for step, (start, end) in mine.items():
                lengths[step].append(end - start)
        return np.array([np.mean(lengths[s]) for s in self.steps])


def _windows(graph: Graph, actor: Actor, member: Member, wanted: set[StepId]) -> list[_Window]:
    step = graph.step[actor.work]
    order = np.argsort(step, kind="stable")
    place = np.searchsorted(step[order], [[s.index, s.index + 1] for s in member.digest.steps])
    return [
        _Window(
            step=StepId(actor.cycle, s.index),
            slots=order[first:last] + actor.work.start,
            start=float(s.start + actor.shift),
            used=not s.dropped and last > first and StepId(actor.cycle, s.index) in wanted,
        )
        for s, (first, last) in zip(member.digest.steps, place.tolist(), strict=True)
    ]
