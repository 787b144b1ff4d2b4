"""Jobs with known truth: what edits predict, and what happens when the cause is really gone."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from whatif import outcome

SEEDS = (10, 11, 12)


def test_three_jobs_are_predicted_to_within_1_percent_of_their_step() -> None:
    found = [outcome(seed) for seed in SEEDS]
    errors = [error for job in found for error in job.errors.values()]
    assert len(errors) >= 5 * len(SEEDS)
    assert sum(errors) / len(errors) < 0.01
    assert all(job.hit for job in found)
