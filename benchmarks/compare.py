"""How often does a comparison claim what is not so, or miss what is? Simulated runs of known truth.

Steps are a first-order autoregressive series around 100 ms. Each row: pairs of sides judged as the
program judges them, and the part that was called faster or slower.

    python benchmarks/compare.py
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from analyzer.scaling.difference import Floats, outcome, ratio

MARGIN = 0.02
# So few steps cannot show how much they resemble one another.
LIMITED = 20
STEP_MS = 100.0


@dataclass(frozen=True)
class Case:
    """Two sides: how many runs of how many steps, how the steps spread, what truly changed."""

    runs: int
    steps: int
    phi: float
    spread: float
    change: float = 0.0


def run(case: Case, mean: float, random: np.random.Generator) -> Floats:
    """Step times of one run; the series begins in its stationary state."""
    noise = random.standard_normal(case.steps)
    series = np.empty(case.steps)
    series[0] = noise[0]
    for i in range(1, case.steps):
        series[i] = case.phi * series[i - 1] + (1.0 - case.phi**2) ** 0.5 * noise[i]
    return mean * (1.0 + case.spread * series)


def verdicts(case: Case, pairs: int, seed: int) -> Counter[str]:
    """How often each verdict was given."""
    random = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for _ in range(pairs):
        before = [run(case, STEP_MS, random) for _ in range(case.runs)]
        after = [run(case, STEP_MS * (1.0 + case.change), random) for _ in range(case.runs)]
        found[outcome(ratio(before, after), MARGIN, case.steps)] += 1
    return found


def main() -> int:
    """Prints both tables; 1 where a limit is missed."""
    pairs, worst = 200, 0
    print(f"equal jobs: part called faster or slower (limit 5 % from {LIMITED} steps on)")
    for runs, steps in ((1, 5), (1, 10), (1, 20), (1, 50), (3, 20)):
        for spread in (0.02, 0.05):
            for phi in (0.0, 0.5, 0.8):
                found = verdicts(Case(runs, steps, phi, spread), pairs, seed=6)
                wrong = pairs - found["no-clear-change"]
                worst |= steps >= LIMITED and wrong > 0.05 * pairs
                print(f"  {runs} x {steps} steps, {spread:4.0%}, phi {phi}: {wrong / pairs:6.1%}")
    print("5 % shorter, 3 runs of 20 steps: part called faster (limit 80 %)")
    for spread in (0.01, 0.02, 0.03):
        for phi in (0.0, 0.5, 0.8):
            found = verdicts(Case(3, 20, phi, spread, -0.05), pairs, seed=6)
            right = found["faster"] / pairs
            worst |= spread <= 0.01 and right < 0.8
            print(f"  {spread:4.0%}, phi {phi}: {right:6.1%}")
    return worst


if __name__ == "__main__":
    sys.exit(main())
