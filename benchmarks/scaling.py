"""Do fits to small world sizes foretell larger ones, and what does a single trace foretell?

Series of jobs are simulated on 1 to 32 GPUs (benchmarks/referee): data parallel with the global
batch or the batch of a GPU fixed, and sharded, with latency that grows like a ring's or a tree's,
jitter, and kernels that do not shrink all the way. Traces of 1, 2, 4 and 8 GPUs are analysed; the
steps on 16 and 32 are held out. An error is relative to the true step.

    python benchmarks/scaling.py                # exit status 1 when over the limits
    python benchmarks/scaling.py --only 17      # one series
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.kineto import write
from referee.ops import Op
from referee.program import step_program
from referee.draws import Draws
from referee.series import KINDS, Series, series
from referee.simulate import simulate

from analyzer import api
from analyzer.config import Settings
from analyzer.scaling.fit import ScalingFit, fit
from analyzer.scaling.observe import Observation, observe
from analyzer.whatif.resize import resizer

MEASURED, HELD_OUT = (1, 2, 4, 8), (16, 32)
LARGEST_ERROR = {16: 0.05, 32: 0.10}
LARGEST_FROM_ONE = 0.10
FEWEST_WITHIN, FEWEST_COVERED = 0.90, 0.85


@dataclass(frozen=True)
class Outcome:
    """Relative errors of one series at the sizes held out, by the fit and from one trace of 8."""

    seed: int
    kind: str
    best: str
    error: dict[int, float]
    width: dict[int, float]
    covered: dict[int, bool]
    from_one: float


def measured(of: Series, n: int, folder: Path) -> Observation:
    """What the tool sees of the traces on `n` GPUs."""
    job = of.job(n)
    place = folder / str(n)
    place.mkdir(parents=True)
    write(job, simulate(Draws(job, step_program(job)), keep_calls=True), place)
    settings = Settings()
    loaded = api.load(api.digests([str(place)], settings, jobs=1), settings=settings)
    return observe(loaded.job, n, resizer(loaded.job, settings.thresholds))
