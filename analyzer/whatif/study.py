"""What is each fix worth? The edits replayed on the run, alone, in part, and in turn.

Gains are always of one replay against another (methods 6.3), so that the replay's own error goes
out of them; where it is too large nothing is replayed and the shares have to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from analyzer.classify.classes import CLASSES
from analyzer.config import Thresholds
from analyzer.ranks.pool import Job, StepId
from analyzer.scaling.serial import half_width
from analyzer.whatif.account import account, worst
from analyzer.whatif.assemble import graph
from analyzer.whatif.edits import EDITS, Edit, Scene, inner, refusals, scene
from analyzer.whatif.measure import Stopwatch
from analyzer.whatif.path import Path, critical_path
from analyzer.whatif.replay import Inputs, Run, recorded, replay
from analyzer.whatif.tasks import NotReplayableError

Floats = npt.NDArray[np.float64]

CURVE_POINTS = (0.10, 0.25, 0.50, 1.0)
# An edit that changes the step by less changes nothing.
_MOVES = 0.001
# A bound, not a fix: the others say how communication could get cheaper.
NOT_IN_TURN = frozenset({"no-communication"})


@dataclass(frozen=True)
class Gain:
    """One edit: ns of each replayed step with it and without, and the step by class, ns.

    `classes` is the recorded mean step, changed as the replay changes.
    """

    base: Floats
    edited: Floats
    classes: Mapping[str, float]
    curve: list[tuple[float, float]]

    @cached_property
    def share(self) -> float:
        """Part of the step that goes; negative where the edit makes it longer."""
        return 1.0 - float(self.edited.mean() / self.base.mean())

    @cached_property
    def interval(self) -> tuple[tuple[float, float] | None, str]:
        """95 % interval of the share over the steps, or why there is none."""
        shares = 1.0 - self.edited / self.base
        half, reason = half_width(shares - shares.mean())
        return (None if half is None else (self.share - half, self.share + half)), reason

    @property
    def sure(self) -> float:
        """The lower end of the interval, the share itself without one."""
        ends, _ = self.interval
        return self.share if ends is None else ends[0]


@dataclass(frozen=True)
class Turn:
    """An edit of the sequence, the part of today's step that is left after it, and its classes."""

    edit: str
    left: float
    classes: Mapping[str, float]


@dataclass(frozen=True)
class Together:
    """The first two edits together: parts of the step that both gain, and beyond their sum."""

    first: str
    second: str
    both: float
    beyond: float


@dataclass(frozen=True)
class Study:
    """What the replay says; without one `reason` says why and the rest is empty.

    `refused` are edits that the traces cannot answer.
    """

    error: float | None
    class_error: float | None
    reason: str
    steps: list[StepId] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    recorded_waits: bool = False
    gains: dict[str, Gain] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    together: Together | None = None
    path: Path | None = None

    @property
    def replayed(self) -> bool:
        """Whether gains are of a replay."""
        return not self.reason

    def noise(self, limits: Thresholds) -> float:
        """A share below this cannot be told from noise or from the replay's own error."""
        return max(limits.noise_share, self.error or 0.0)


NO_STUDY = Study(None, None, "not measurable from shares: the run was not replayed")


def study(job: Job, limits: Thresholds) -> Study:
    """The study of a job."""
    try:
        made = graph(job.members, job.together)
    except NotReplayableError as why:
        return Study(None, None, str(why))
    watch = Stopwatch(made, job.members, job.steps)
    if not watch.steps:
        return Study(None, None, "not measurable: no used step has work in the replay")
    return _Study(job, scene(made, job.together.late), watch, limits).result()


class _Study:
    """One study while it is made."""

    def __init__(self, job: Job, scene: Scene, watch: Stopwatch, limits: Thresholds) -> None:
        self.job, self.scene, self.watch, self.limits = job, scene, watch, limits
        self.graph = scene.graph
        self.inputs = recorded(self.graph)
        self.run = next(replay(self.graph, [self.inputs]))
        self.base = watch.lengths(self.run)
        self.simulated = self._account(self.run, self.inputs)

    def result(self) -> Study:
        """Everything, as far as the replay is good enough."""
        wall = sum(self._recorded(self.watch.steps).values())
        error = float(abs(self.base.mean() / wall - 1.0))
        class_error = worst(self.simulated, self._recorded(self.watch.settled), CLASSES)
        if error > self.limits.replay_poor_share:
            reason = (
                f"not measurable: the replay of the unchanged run is {100 * error:.1f} % off the "
                "recorded step"
            )
            return Study(error, class_error, reason)
        refused = refusals(self.job)
        edits = {n: e for n, e in {**EDITS, **inner(self.job.size)}.items() if n not in refused}
        gains = self._gains(edits)
        turns = self._in_turn(gains)
        return Study(
            error=error,
            class_error=class_error,
            reason="",
            steps=self.watch.steps,
            ranks=sorted({a.rank for a in self.graph.actors}),
            recorded_waits=any(a.recorded for a in self.graph.actors),
            gains=gains,
            refused=refused,
            turns=turns,
            together=self._together(gains, turns),
            path=critical_path(self.graph, self.run, self.watch, self.simulated),
        )

    def _recorded(self, steps: Sequence[StepId]) -> dict[str, float]:
        """Classes of these steps as recorded, the mean over the ranks replayed."""
        wanted, ranks = set(steps), {a.rank for a in self.graph.actors}
        rows = [
            s.ns
            for m in self.job.members
            if m.rank in ranks
            for s in m.digest.used
            if StepId(m.cycle, s.index) in wanted
        ]
        return {c: float(np.mean([row[c] for row in rows])) for c in CLASSES}

    def _account(self, run: Run, inputs: Inputs) -> dict[str, float]:
        return account(self.graph, run, inputs, self.watch, self.limits)

    def _gains(self, edits: Mapping[str, Edit]) -> dict[str, Gain]:
        """Each edit at full strength, and in part where it changes anything."""
        variants = [edit(self.scene, self.inputs, 1.0) for edit in edits.values()]
        gains, parts = {}, []
        runs = replay(self.graph, variants)
        for name, inputs, run in zip(edits, variants, runs, strict=True):
            lengths = self.watch.lengths(run)
            left = self._left(lengths)
            moved = abs(left - 1.0) > _MOVES
            classes = self._after(run, inputs, left) if moved else self.job.mean_ns
            curve = [(part, faster(1.0 - left)) for part in CURVE_POINTS]
            gains[name] = Gain(self.base, lengths, classes, curve)
            parts += [(name, i) for i in range(len(CURVE_POINTS) - 1) if moved]
        some = (edits[name](self.scene, self.inputs, CURVE_POINTS[i]) for name, i in parts)
        for (name, i), run in zip(parts, replay(self.graph, some), strict=True):
            left = self._left(self.watch.lengths(run))
            gains[name].curve[i] = CURVE_POINTS[i], faster(1.0 - left)
        return gains

    def _left(self, lengths: Floats) -> float:
        return float(lengths.mean() / self.base.mean())

    def _after(self, run: Run, inputs: Inputs, left: float) -> dict[str, float]:
        """The recorded step by class once an edit is made: changed by what the replay changes, and
        scaled to the part of the step that the replay leaves.
        """
        edited = self._account(run, inputs)
        moved = {c: max(0.0, self.job.mean_ns[c] + edited[c] - self.simulated[c]) for c in CLASSES}
        total = sum(moved.values())
        return {c: ns * self.job.step_ns * left / total if total else 0.0
                for c, ns in moved.items()}  # fmt: skip

    def _in_turn(self, gains: Mapping[str, Gain]) -> list[Turn]:
        """The edit that gains most, then that which gains most after it, and so on."""
        names = [n for n in EDITS if n in gains and n not in NOT_IN_TURN]
        state, share = self.inputs, 1.0
        turns: list[Turn] = []
        while names:
            variants = [EDITS[name](self.scene, state, 1.0) for name in names]
            runs = replay(self.graph, variants)
            lefts = [self._left(self.watch.lengths(run)) for run in runs]
            best = int(np.argmin(lefts))
            name, left = names[best], lefts[best]
            if share - left < self.limits.noise_share:
                break
            state, share = variants[best], left
            run = next(replay(self.graph, [state]))
            turns.append(Turn(name, left, self._after(run, state, left)))
            names.remove(name)
        return turns

    def _together(self, gains: Mapping[str, Gain], turns: Sequence[Turn]) -> Together | None:
        """The two edits that gain most alone; where only one gains, with the next in turn.

        Methods 6.5: positive where both are needed, negative where both free the same time.
        """
        names = [n for n in EDITS if n in gains and n not in NOT_IN_TURN]
        names = [n for n in names if gains[n].share >= self.limits.noise_share]
        names.sort(key=lambda n: -gains[n].share)
        pair = names if len(names) > 1 else [turn.edit for turn in turns]
        if len(pair) < 2:
            return None
        first, second = pair[:2]
        state = EDITS[second](self.scene, EDITS[first](self.scene, self.inputs, 1.0), 1.0)
        run = next(replay(self.graph, [state]))
        both = 1.0 - self._left(self.watch.lengths(run))
        return Together(first, second, both, both - gains[first].share - gains[second].share)


def faster(share: float) -> float:
    """The speedup when this part of the step goes; without end when nothing is left."""
    return 1.0 / (1.0 - share) if share < 1.0 else float("inf")
