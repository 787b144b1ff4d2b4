"""Findings of traces whose bottleneck is known: the project's samples and other people's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_traces import real_trace

from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.digest import digest
from analyzer.findings.detectors import detect
from analyzer.findings.ranking import Ranked, rank, verdict
from analyzer.ranks.pool import Job, Member, pool
from analyzer.scaling.serial import Setting

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
HF = "tracelens-hf-h100-mi300"
RESNET = "kineto-resnet50-workers-torch19/resnet50_num_workers_"
QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
TIMESFORMER = "facebook_timesformer-base-finetuned-k400__1016002.json.gz"
BERT = "gaunernst_bert-small-uncased__1016001.json.gz"


def sample(name: str) -> Job:
    files = sorted((SAMPLES / name).glob("rank*.json.gz"))
    return pool([Member(rank, 0, digest(file, Settings())) for rank, file in enumerate(files)])


def real(name: str) -> Job:
    """A file, or a folder of cycles of one rank."""
    path = real_trace(name)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return pool([Member(0, cycle, digest(file, Settings())) for cycle, file in enumerate(files)])


def ranked(job: Job) -> Ranked:
    limits = DEFAULT_THRESHOLDS
    return rank(detect(job, limits), job, Setting(job.size), limits)


def ids(job: Job) -> list[str]:
    return [f.id for f, _ in ranked(job).findings]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy-ddp-4gpu", ["compute-bound"]),
        ("loader-bound-4gpu", ["data-loading"]),
        ("launch-bound-4gpu", ["kernel-launch", "tiny-kernels"]),
        ("slow-rank-4gpu", ["exposed-communication"]),
        ("recorded-gloo-2rank", ["data-loading", "exposed-communication"]),
    ],
)
def test_samples_have_the_bottleneck_they_were_made_with(name: str, expected: list[str]) -> None:
    assert ids(sample(name)) == expected


def test_the_healthy_sample_raises_no_alarm() -> None:
    job = sample("healthy-ddp-4gpu")
    text, finding, _ = verdict(ranked(job), job, DEFAULT_THRESHOLDS)
    assert finding is None
    assert text.startswith("Nothing stands out: 97.9 % of the step (52.0 ms of 53.1 ms) computes")


def test_the_slow_rank_is_the_one_that_was_made_slow() -> None:
    first = ranked(sample("slow-rank-4gpu")).findings[0].finding
    assert "Rank 2 has 2.4 ms of it" in first.because
    assert "after 10.4 ms more of computing" in first.because


def test_without_workers_data_loading_comes_first() -> None:
    assert ids(real(f"{RESNET}0"))[:2] == ["data-loading", "single-process-loader"]


def test_with_four_workers_data_loading_is_no_finding() -> None:
    found = ids(real(f"{RESNET}4"))
    assert "data-loading" not in found
    assert "single-process-loader" not in found


@pytest.mark.parametrize("gpu", ["h100", "mi300"])
def test_a_small_bert_is_bound_by_launches(gpu: str) -> None:
    assert ids(real(f"{HF}/{gpu}/{BERT}"))[0] == "kernel-launch"


@pytest.mark.parametrize("gpu", ["h100", "mi300"])
@pytest.mark.parametrize("name", [QWEN, TIMESFORMER])
def test_models_that_keep_the_device_busy_are_not_bound_by_launches(name: str, gpu: str) -> None:
    assert "kernel-launch" not in ids(real(f"{HF}/{gpu}/{name}"))
