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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from referee.draws import Draws
from referee.kineto import write
from referee.program import step_program
from referee.series import KINDS, Series, series
from referee.simulate import simulate

from analyzer import api
from analyzer.api import Loaded
from analyzer.config import Settings
from analyzer.report import predicted
from analyzer.scaling.fit import fit
from analyzer.scaling.observe import observe
from analyzer.scaling.serial import Mode, Setting
from analyzer.whatif.resize import resizer

MEASURED, HELD_OUT = (1, 2, 4, 8), (16, 32)
LARGEST_ERROR = {16: 0.05, 32: 0.10}
LARGEST_FROM_ONE = 0.10
FEWEST_WITHIN, FEWEST_COVERED = 0.90, 0.85


@dataclass(frozen=True)
class Outcome:
    """One series: relative errors and half widths of the fit, whether its interval holds the truth,
    and the error of the step on twice the GPUs foretold by the largest trace alone.
    """

    seed: int
    kind: str
    best: str
    error: dict[int, float]
    width: dict[int, float]
    covered: dict[int, bool]
    from_one: float

    @property
    def within(self) -> bool:
        """Whether both sizes held out are foretold well enough."""
        return all(abs(e) <= LARGEST_ERROR[n] for n, e in self.error.items())


def measured(of: Series, n: int, folder: Path) -> Loaded:
    """What the tool reads of the traces on `n` GPUs."""
    job = of.job(n)
    place = folder / str(n)
    place.mkdir(parents=True)
    write(job, simulate(Draws(job, step_program(job)), keep_calls=True), place)
    return api.load(api.digests([str(place)], Settings(), jobs=1), settings=Settings())


def outcome(seed: int) -> Outcome:
    """Simulates, analyses and judges the series of a seed."""
    of, limits = series(seed), Settings().thresholds
    mode: Mode = "weak" if of.weak else "strong"
    with tempfile.TemporaryDirectory(prefix="series-") as name:
        jobs = {n: measured(of, n, Path(name)).job for n in MEASURED}
    found = fit([observe(job, n, resizer(job, limits)) for n, job in jobs.items()], mode)
    largest = MEASURED[-1]
    sharded = of.kind.startswith("sharded")
    ahead = predicted.ahead(jobs[largest], Setting(largest, mode, sharded), limits, None)
    true = {n: of.step_ns(n) for n in HELD_OUT}
    at = {n: found.predict(n) for n in HELD_OUT}
    return Outcome(
        seed=seed,
        kind=of.kind,
        best=found.best or "none",
        error={n: (at[n].step or 0.0) / true[n] - 1.0 for n in HELD_OUT},
        width={n: found.half(n) for n in HELD_OUT},
        covered={n: (at[n].lo or 0.0) <= true[n] <= (at[n].hi or 0.0) for n in HELD_OUT},
        from_one=ahead.steps([], [2 * largest])[0] / true[2 * largest] - 1.0,
    )


def row(name: str, outcomes: Sequence[Outcome]) -> str:
    """Errors and coverage of some series as a line."""
    cells = [f"{name:16}{len(outcomes):4}"]
    for n in HELD_OUT:
        errors = np.abs([o.error[n] for o in outcomes])
        cells.append(f"{errors.mean():7.2%}{errors.max():8.2%}")
        cells.append(f"{np.median([o.width[n] for o in outcomes]):8.2%}")
        cells.append(f"{np.mean([o.covered[n] for o in outcomes]):7.0%}")
    alone = np.abs([o.from_one for o in outcomes])
    return " ".join([*cells, f"{alone.mean():9.2%}{alone.max():8.2%}"])


def print_all(outcomes: Sequence[Outcome]) -> bool:
    """Prints the tables; whether the limits are kept."""
    heads = [f"{n:>7}: mean   worst   width  holds" for n in HELD_OUT]
    print(f"{'':16}{'n':>4} {' '.join(heads)}  one trace at {HELD_OUT[0]}: mean, worst")
    for kind in KINDS:
        some = [o for o in outcomes if o.kind == kind]
        if some:
            print(row(kind, some))
    print(row("all", outcomes))
    for o in outcomes:
        if not o.within or abs(o.from_one) > LARGEST_FROM_ONE:
            errors = ", ".join(f"{e:+.1%} at {n}" for n, e in o.error.items())
            print(f"  --only {o.seed:<4} {o.kind}, {o.best}: {errors}; alone {o.from_one:+.1%}")
    within = float(np.mean([o.within for o in outcomes]))
    covered = float(np.mean([c for o in outcomes for c in o.covered.values()]))
    alone = float(np.mean([abs(o.from_one) <= LARGEST_FROM_ONE for o in outcomes]))
    kept = within >= FEWEST_WITHIN and covered >= FEWEST_COVERED and alone >= FEWEST_WITHIN
    print(
        f"within 5 % at 2x and 10 % at 4x: {within:.0%} (limit {FEWEST_WITHIN:.0%}); interval holds"
        f" the truth: {covered:.0%} (limit {FEWEST_COVERED:.0%}); one trace within 10 % at 2x: "
        f"{alone:.0%} (limit {FEWEST_WITHIN:.0%}): {'kept' if kept else 'NOT KEPT'}"
    )
    return kept


def main() -> int:
    """Runs the series asked for; 1 when over the limits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--series", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first series")
    parser.add_argument("--only", type=int, help="seed of the one series to run")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    first = arguments.seed if arguments.only is None else arguments.only
    seeds = range(first, first + (arguments.series if arguments.only is None else 1))
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            outcomes = list(pool.map(outcome, seeds))
    else:
        outcomes = [outcome(seed) for seed in seeds]
    return 0 if print_all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
