"""Do the what-ifs predict what would really happen when a cause is taken out of a job?

Jobs are simulated, their traces written and analysed, and every edit's predicted step is compared
with the same job simulated without the cause (benchmarks/referee). An error is the difference of
the predicted and the true step, both relative to today's step. The first cause is the edit with
the largest gain; the tool hits it when it names it, or one whose true gain is within 2 % of
today's step of it.

What the referee takes for physics:

- A host issues its calls one after the other, first on the main thread and in the backward on the
  autograd thread while main waits. A launch blocks while 1,024 launched activities have not begun.
- An activity starts when its stream is free (and a microsecond has passed), its launch has reached
  the device, and what its stream waits for is done (and another microsecond has passed).
- A collective starts on each rank by itself and ends on all at once: after the last start a latency
  and bytes over bandwidth. Communication does not slow compute down.
- A blocking call ends some microseconds after what it waits for. A loader in the process takes a
  fixed time a batch; workers are two batches ahead at most.
- Without data loading, asking for a batch takes no time, nor do the batches' copies. Without launch
  overhead, hosts only spend time in the loader and in blocking calls. Without communication,
  collectives take no time and join nobody. Without stragglers, slow ranks are as the others and a
  step's pace is the mean of all ranks; single kernels still vary. Without host syncs, no call
  waits for the device. Without optimizer, its kernels take no time. With twice the bandwidth, only
  the latency of a transfer stays. With perfect overlap, compute waits for communication only after
  the backward.

    python benchmarks/whatif.py                    # exit status 1 when over the limits
    python benchmarks/whatif.py --only 17 -v       # one job, edit by edit
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from referee.job import WHAT_IFS, Job
from referee.kineto import FIRST_STEP, write
from referee.plan import planned
from referee.truth import truth

from analyzer.api import Request, Settings, analyze

LARGEST_MEAN = 0.01
LARGEST_P95 = 0.04
FEWEST_HITS = 0.98
AS_GOOD = 0.02
SHOWN = 12
# They change nothing where there is one rank, so they would only thin the errors out.
OF_SEVERAL_RANKS = ("no-communication", "no-straggler", "bandwidth-x2", "perfect-overlap")


@dataclass(frozen=True)
class Outcome:
    """One job: true and predicted step of each edit relative to today's; None: not answered."""

    job: Job
    step_ms: float
    predicted_step_ms: float
    basis: str
    replay_error: float | None
    true: dict[str, float]
    predicted: dict[str, float | None]

    @property
    def errors(self) -> dict[str, float]:
        """Of the edits that were answered."""
        return {
            name: abs(p - self.true[name]) for name, p in self.predicted.items() if p is not None
        }

    @property
    def first(self) -> str:
        """The edit with the largest true gain."""
        return min(self.true, key=lambda name: self.true[name])

    @property
    def chosen(self) -> str | None:
        """The edit with the largest predicted gain; None where none was answered."""
        answered = {name: p for name, p in self.predicted.items() if p is not None}
        return min(answered, key=lambda name: answered[name]) if answered else None

    @property
    def hit(self) -> bool:
        """Whether the chosen edit gains as much as the best, nearly."""
        chosen = self.chosen
        return chosen is not None and self.true[chosen] - self.true[self.first] <= AS_GOOD


def outcome(seed: int, keep: Path | None = None) -> Outcome:
    """Simulates, writes and analyses the job of a seed; its traces stay under `keep`.

    RuntimeError that names the seed when the analysis fails.
    """
    with tempfile.TemporaryDirectory(prefix="referee-") as name:
        folder = Path(name) if keep is None else keep / f"job-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return judged(planned(seed), folder)
        except Exception as error:
            raise RuntimeError(f"job {seed} (--only {seed}) could not be judged") from error


def judged(job: Job, folder: Path) -> Outcome:
    """What the tool says of the job's traces, beside the truth over the steps that it used."""
    known, ranks = truth(job)
    write(job, ranks, folder)
    paths = [str(folder / f"rank{rank.number}.json") for rank in ranks]
    report = analyze(paths, Request(label=str(job.seed), created=""), Settings(), jobs=1)
    used = [number - FIRST_STEP - job.warmup for number in report.steps.used]
    today = known.step_ns("today", used)
    names = [name for name in WHAT_IFS if job.ranks > 1 or name not in OF_SEVERAL_RANKS]
    speedup = {edit.id: edit.speedup for edit in report.whatif.edits}
    found = Outcome(
        job=job,
        step_ms=today / 1e6,
        predicted_step_ms=report.steps.wall_ms.mean,
        basis=report.whatif.basis,
        replay_error=report.whatif.replay_error,
        true={name: known.step_ns(name, used) / today for name in names},
        predicted={name: 1 / s if (s := speedup.get(name)) else None for name in names},
    )
    text = json.dumps({"used": report.steps.used, "step_ms": found.step_ms, "steps": found.true,
                       "job": asdict(job)}, indent=1)  # fmt: skip
    (folder / "truth.json").write_text(text + "\n", encoding="utf-8")
    return found


def percentile(errors: Sequence[float], share: int) -> float:
    return float(np.percentile(errors, share)) if errors else 0.0


def row(name: str, errors: Sequence[float], unanswered: int) -> str:
    if not errors:
        return f"{name:20} {'':8}{'':9}{'':9}{0:7} {unanswered:11}"
    mean = sum(errors) / len(errors)
    return (
        f"{name:20} {mean:8.2%} {percentile(errors, 95):8.2%} {max(errors):8.2%} "
        f"{len(errors):6} {unanswered:11}"
    )


def table(outcomes: Sequence[Outcome]) -> Iterable[str]:
    yield f"{'':20} {'mean':>8} {'p95':>8} {'worst':>8} {'n':>6} {'unanswered':>11}"
    for name in WHAT_IFS:
        asked = [o for o in outcomes if name in o.true]
        errors = [o.errors[name] for o in asked if name in o.errors]
        yield row(name, errors, len(asked) - len(errors))
    for title, key in GROUPS.items():
        yield f"by {title}"
        for value in sorted({key(o.job) for o in outcomes}):
            yield row(f"  {value}", *errors_of([o for o in outcomes if key(o.job) == value]))
    yield row("all", *errors_of(outcomes))


def dialect(job: Job) -> str:
    kind = job.dialect
    return "waits" if kind.sync_events else "event calls" if kind.event_calls else "neither"


GROUPS: dict[str, Callable[[Job], str]] = {
    "strategy": lambda job: job.strategy,
    "planted cause": lambda job: job.cause,
    "record of waits": dialect,
}


def errors_of(outcomes: Sequence[Outcome]) -> tuple[list[float], int]:
    """All errors of the jobs, and how many edits were not answered."""
    errors = [error for o in outcomes for error in o.errors.values()]
    return errors, sum(len(o.true) for o in outcomes) - len(errors)


def print_all(outcomes: Sequence[Outcome]) -> bool:
    """Prints the tables; whether the limits are kept."""
    print(*table(outcomes), sep="\n")
    identity = [o.replay_error for o in outcomes if o.replay_error is not None]
    print(f"identity error: mean {np.mean(identity or [0.0]):.2%}, largest "
          f"{max(identity, default=0.0):.2%}, none in {len(outcomes) - len(identity)} jobs; "
          f"basis is not replay in {sum(o.basis != 'replay' for o in outcomes)}")  # fmt: skip
    print("worst")
    cases = [(error, o, name) for o in outcomes for name, error in o.errors.items()]
    for error, o, name in sorted(cases, key=lambda case: -case[0])[:SHOWN]:
        print(f"  --only {o.job.seed:<6} {name:19} {error:7.2%}  {described(o, name)}")
    missed = [o for o in outcomes if not o.hit]
    for o in missed[:SHOWN]:
        print(f"missed --only {o.job.seed:<6} is {o.first}, said {o.chosen}  {about(o.job)}")
    errors, _ = errors_of(outcomes)
    mean, hits = float(np.mean(errors or [1.0])), 1 - len(missed) / len(outcomes)
    p95 = percentile(errors, 95)
    kept = mean <= LARGEST_MEAN and p95 <= LARGEST_P95 and hits >= FEWEST_HITS
    verdict = "kept" if kept else "NOT KEPT"
    print(f"mean {mean:.2%} (limit {LARGEST_MEAN:.0%}), p95 {p95:.2%} (limit {LARGEST_P95:.0%}), "
          f"first cause {hits:.1%} (limit {FEWEST_HITS:.0%}): {verdict}")  # fmt: skip
    return kept


def about(job: Job) -> str:
    return f"{job.strategy}, {job.ranks} ranks, {job.cause}, {dialect(job)}"


def described(o: Outcome, name: str) -> str:
    return f"true {o.true[name]:.3f} said {o.predicted[name]:.3f}  {about(o.job)}"


def print_one(o: Outcome) -> None:
    print(o.job)
    print(f"step {o.step_ms:.3f} ms, by the tool {o.predicted_step_ms:.3f} ms; basis {o.basis}, "
          f"identity error {o.replay_error}")  # fmt: skip
    for name, true in o.true.items():
        said = o.predicted[name]
        answer = "unanswered" if said is None else f"{said:9.4f}  {said - true:+.4f}"
        print(f"{name:20} {true:9.4f} {answer}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first job")
    parser.add_argument("--only", type=int, help="seed of the one job to run")
    parser.add_argument("--keep", type=Path, help="folder for traces and truth of every job")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every edit of each job")
    arguments = parser.parse_args()
    first = arguments.seed if arguments.only is None else arguments.only
    seeds = range(first, first + (arguments.jobs if arguments.only is None else 1))
    one = partial(outcome, keep=arguments.keep)
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            outcomes = list(pool.map(one, seeds))
    else:
        outcomes = [one(seed) for seed in seeds]
    if arguments.verbose:
        for o in outcomes:
            print_one(o)
    return 0 if print_all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
