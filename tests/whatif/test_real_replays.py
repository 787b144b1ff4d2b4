"""Replays of other people's jobs: near what was recorded, and what is known of their fixes."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_traces import real_trace

from analyzer import api
from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.ranks.pool import Job
from analyzer.whatif.study import Study, study

RESNET = "kineto-resnet50-workers-"
WORKERS = [
    "torch19/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
    "torch19/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",
    "torch19/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
    "torch19/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
    "torch180/resnet50_num_workers_0/worker0.pt.trace.json.gz",
    "torch180/resnet50_num_workers_4/worker0.pt.trace.json.gz",
]
NANOGPT = [
    f"nanogpt-adamhook-pair/{folder}/modded-nanogpt-{what}-gpu-rank-00-chrome-trace.json.gz"
    for folder in ("v1-6steps", "v2-4steps")
    for what in ("current", "hook")
]
BUSY = ("compute", "optimizer", "copy")


def replayed(relative: str) -> tuple[Job, Study]:
    settings = Settings()
    path: Path = real_trace(relative)
    job = api.load(api.digests([str(path)], settings, jobs=1), settings=settings).job
    return job, study(job, DEFAULT_THRESHOLDS)


def step_ms(relative: str) -> float:
    return replayed(RESNET + relative)[0].step_ns / 1e6


def without_loading(relative: str) -> float:
    """The step in ms that is predicted without data loading."""
    job, found = replayed(RESNET + relative)
    return job.step_ns * (1 - found.gains["no-data-loading"].share) / 1e6


@pytest.mark.parametrize(
    "relative",
    [
        "nanogpt-8xh100",
        "megatron-tp8-a100",
        "hta-resnet-ddp2-ncclargs",
        "tracelens-resnet18-mi300",
        *(RESNET + name for name in WORKERS),
        *NANOGPT,
    ],
)
def test_the_unchanged_job_is_within_5_percent(relative: str) -> None:
    _, found = replayed(relative)
    assert found.replayed
    assert found.error is not None
    assert found.error < 0.05
    assert found.class_error is not None
    assert found.class_error < 0.05


@pytest.mark.parametrize(
    "single, workers",
    [
        pytest.param(WORKERS[0], WORKERS[3], id="torch19_first"),
        pytest.param(WORKERS[1], WORKERS[3], id="torch19_second"),
        pytest.param(WORKERS[4], WORKERS[5], id="torch180"),
    ],
)
def test_without_loading_a_step_is_between_the_device_and_four_workers(
    single: str, workers: str
) -> None:
    job, _ = replayed(RESNET + single)
    busy = sum(job.mean_ns[name] for name in BUSY) / 1e6
    assert busy < without_loading(single) < step_ms(workers)


def test_two_cycles_of_one_job_predict_one_step() -> None:
    first, second = (without_loading(name) for name in WORKERS[:2])
    assert first == pytest.approx(second, rel=0.05)


@pytest.mark.parametrize("relative", NANOGPT)
def test_no_large_gain_is_promised_where_none_was_found(relative: str) -> None:
    """Its authors' change of the optimizer made the run 0.5 % faster."""
    _, found = replayed(relative)
    assert max(gain.share for gain in found.gains.values()) < 0.05
    assert found.gains["no-optimizer"].share < 0.02
