"""How long is a step of a job, today and in each what-if?

Nanoseconds. A step lasts from the end of the last device work launched in the step before to the
end of the last launched in it; means are over the ranks and the steps asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from referee.draws import Draws
from referee.job import WHAT_IFS, Job
from referee.program import step_program
from referee.simulate import Rank, simulate


@dataclass(frozen=True)
class Truth:
    """`ends[name][rank][step]`: end of the step's last device work, today and by what-if."""

    warmup: int
    ends: dict[str, list[list[int]]]

    def step_ns(self, name: str, recorded: Sequence[int]) -> float:
        """Mean step of "today" or a what-if over the recorded steps (counted from 0) given."""
        steps = [self.warmup + number for number in recorded]
        lengths = [row[k] - row[k - 1] for row in self.ends[name] for k in steps]
        return sum(lengths) / len(lengths)


def truth(job: Job) -> tuple[Truth, list[Rank]]:
    """The step ends of all worlds, and today's run with its calls."""
    draws = Draws(job, step_program(job))
    today = simulate(draws, keep_calls=True)
    ends = {"today": step_ends(today)}
    for name, world in WHAT_IFS.items():
        ends[name] = step_ends(simulate(draws, world))
    return Truth(job.warmup, ends), today


def step_ends(ranks: Sequence[Rank]) -> list[list[int]]:
    """By rank and step, the end of the last device work launched in the step."""
    rows = []
    for rank in ranks:
        edges = [*rank.first, len(rank.device.end)]
        rows.append([max(rank.device.end[a:b]) for a, b in pairwise(edges)])
    return rows
