"""What the what-ifs say of the simulated samples is what the same jobs do without the cause.

The jobs are simulated again, without a trace: the truth of a step is the schedule's.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.document import Edit, Report

sys.path.append(str(Path(__file__).parents[1] / "sample_traces"))

from schedule import Rank, simulate
from simulate import SCENARIOS, truth_document

SAMPLES = Path(__file__).parents[1] / "sample_traces"
# Of the step that the simulation gives.
CLOSE = 0.01


@cache
def report(sample: str) -> Report:
    return api.analyze([str(SAMPLES / sample)], Request("", ""), Settings(), jobs=1)


def edit(sample: str, id: str) -> Edit:
    return next(e for e in report(sample).whatif.edits if e.id == id)


def step_ms(sample: str, **otherwise: Any) -> float:
    """The true mean step of the sample's job, changed in these parts."""
    (scenario,) = (s for s in SCENARIOS if s.name == sample)
    changed = replace(scenario, **otherwise)
    mean: float = truth_document(changed, simulate(changed))["mean_step_ms"]
    return mean


@pytest.mark.parametrize("sample", [scenario.name for scenario in SCENARIOS])
def test_the_unchanged_replay_is_the_recorded_and_the_true_step(sample: str) -> None:
    found = report(sample)
    assert found.steps.wall_ms.mean == pytest.approx(step_ms(sample), rel=1e-6)
    assert found.whatif.basis == "replay"
    assert found.whatif.replay_error == pytest.approx(0.0, abs=1e-6)
    assert found.whatif.class_error == pytest.approx(0.0, abs=1e-3)


def test_without_its_slow_rank_a_job_takes_as_long_as_one_that_never_had_one() -> None:
    truth = step_ms("slow-rank-4gpu", compute_factor={})
    assert edit("slow-rank-4gpu", "no-straggler").step_ms == pytest.approx(truth, rel=CLOSE)


def test_a_job_that_had_no_slow_rank_gains_nothing_without_one() -> None:
    truth = step_ms("healthy-ddp-4gpu")
    assert edit("healthy-ddp-4gpu", "no-straggler").step_ms == pytest.approx(truth, rel=CLOSE)


def test_without_its_slow_loader_a_job_takes_as_long_as_with_a_fast_one() -> None:
    """The edit takes the copies of the batches away, too."""
    truth = step_ms("loader-bound-4gpu", loader_prep_us=1.0, batch_bytes=1)
    assert edit("loader-bound-4gpu", "no-data-loading").step_ms == pytest.approx(truth, rel=CLOSE)


def test_a_fast_loader_that_gets_faster_gains_nothing() -> None:
    truth = step_ms("healthy-ddp-4gpu", loader_prep_us=1.0, batch_bytes=1)
    assert edit("healthy-ddp-4gpu", "no-data-loading").step_ms == pytest.approx(truth, rel=CLOSE)


def test_without_launch_overhead_a_job_takes_as_long_as_with_a_host_that_needs_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then its device is the limit."""
    monkeypatch.setattr(Rank, "spend", lambda rank, micros: None)
    truth = step_ms("launch-bound-4gpu")
    found = edit("launch-bound-4gpu", "no-launch-overhead")
    assert found.step_ms == pytest.approx(truth, rel=CLOSE)


@pytest.mark.parametrize("sample", ["healthy-ddp-4gpu", "slow-rank-4gpu"])
def test_a_host_that_runs_ahead_gains_nothing_from_being_faster(
    monkeypatch: pytest.MonkeyPatch, sample: str
) -> None:
    monkeypatch.setattr(Rank, "spend", lambda rank, micros: None)
    truth = step_ms(sample)
    assert edit(sample, "no-launch-overhead").step_ms == pytest.approx(truth, rel=CLOSE)


@pytest.mark.parametrize("sample", ["healthy-ddp-4gpu", "slow-rank-4gpu"])
def test_twice_the_bandwidth_is_what_the_same_job_does_on_a_bus_of_twice_the_bandwidth(
    sample: str,
) -> None:
    (scenario,) = (s for s in SCENARIOS if s.name == sample)
    truth = step_ms(sample, bus_gb_per_s=2 * scenario.bus_gb_per_s)
    assert edit(sample, "bandwidth-x2").step_ms == pytest.approx(truth, rel=CLOSE)


def test_the_largest_true_gain_of_each_sample_is_its_first_finding() -> None:
    first = {s.name: report(s.name).verdict.finding for s in SCENARIOS}
    assert first == {
        "healthy-ddp-4gpu": None,
        "loader-bound-4gpu": "data-loading",
        "launch-bound-4gpu": "kernel-launch",
        "slow-rank-4gpu": "late-rank",
    }


def test_a_recording_without_a_device_is_not_replayed_and_says_so() -> None:
    found = report("recorded-gloo-2rank").whatif
    assert (found.basis, found.reason) == ("share", "not measurable: no device work was recorded")
