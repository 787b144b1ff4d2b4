"""What-ifs of other people's jobs, held against what those jobs did once they were changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from real_traces import real_trace

from analyzer.api import digests, load
from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.ranks.pool import Job
from analyzer.whatif.study import Study, study

BUSY = ("compute", "optimizer", "copy", "comm_unsplit")
TORCHES = ["kineto-resnet50-workers-torch19", "kineto-resnet50-workers-torch180"]
ADAM_HOOK = [
    f"nanogpt-adamhook-pair/{version}/modded-nanogpt-current-gpu-rank-00-chrome-trace.json.gz"
    for version in ("v1-6steps", "v2-4steps")
]
REPLAYED = [
    "nanogpt-8xh100",
    "megatron-tp8-a100",
    "hta-resnet-ddp2-ncclargs",
    "tracelens-resnet18-mi300",
    *(f"{torch}/resnet50_num_workers_{n}" for torch in TORCHES for n in (0, 4)),
]


@cache
def job_of(path: Path) -> Job:
    return load(digests([str(path)], Settings()), settings=Settings()).job


@cache
def study_of(path: Path) -> Study:
    return study(job_of(path), DEFAULT_THRESHOLDS)


def predicted_ns(path: Path, edit: str) -> float:
    return job_of(path).step_ns * (1.0 - study_of(path).gains[edit].share)


@pytest.mark.parametrize("name", REPLAYED)
def test_the_unchanged_run_is_replayed_to_within_five_percent(name: str) -> None:
    found = study_of(real_trace(name))
    assert found.reason == ""
    assert found.error is not None
    assert found.class_error is not None
    assert max(found.error, found.class_error) < DEFAULT_THRESHOLDS.replay_fair_share == 0.05


@pytest.mark.parametrize("torch", TORCHES)
def test_without_data_loading_a_job_takes_no_longer_than_with_workers(torch: str) -> None:
    """With four workers hardly any loading is left to wait for, but some: the truth is below."""
    alone, workers = (real_trace(f"{torch}/resnet50_num_workers_{n}") for n in (0, 4))
    busy = sum(job_of(alone).mean_ns[name] for name in BUSY)
    assert busy < predicted_ns(alone, "no-data-loading") < job_of(workers).step_ns


@pytest.mark.parametrize("torch", TORCHES)
def test_without_launches_a_job_takes_as_long_whatever_its_loader_does(torch: str) -> None:
    """Both are then bound by the same device work."""
    alone, workers = (real_trace(f"{torch}/resnet50_num_workers_{n}") for n in (0, 4))
    assert predicted_ns(alone, "launching") == pytest.approx(
        predicted_ns(workers, "launching"), rel=0.03
    )


def test_two_recordings_of_one_job_predict_the_same_step_without_data_loading() -> None:
    first, second = sorted(real_trace(f"{TORCHES[0]}/resnet50_num_workers_0").iterdir())
    assert abs(job_of(first).step_ns / job_of(second).step_ns - 1.0) > 0.1
    assert predicted_ns(first, "no-data-loading") == pytest.approx(
        predicted_ns(second, "no-data-loading"), rel=0.05
    )


@pytest.mark.parametrize("name", ADAM_HOOK)
def test_a_job_whose_best_known_change_gained_half_a_percent_is_promised_little(name: str) -> None:
    """Communication that starts in the backward made that run 0.5 % shorter."""
    gains = study_of(real_trace(name)).gains
    assert max(gain.share for gain in gains.values()) < DEFAULT_THRESHOLDS.minor_share
    assert 0.0 <= gains["perfect-overlap"].share < 0.005
