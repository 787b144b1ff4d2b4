"""Findings of traces whose bottleneck is known: the project's samples and other people's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_traces import real_trace

from analyzer.api import digests, load
from analyzer.classify.classes import CLASSES
from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.digest import digest
from analyzer.findings.detectors import detect
from analyzer.findings.ranking import Ranked, Verdict, rank, verdict
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job, pool
from analyzer.scaling.serial import Setting
from analyzer.whatif.study import faster, study

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


def many(name: str) -> Job:
    """A folder of ranks."""
    return load(digests([str(real_trace(name))], Settings()), settings=Settings()).job


def ranked(job: Job) -> Ranked:
    limits = DEFAULT_THRESHOLDS
    replayed = study(job, limits)
    return rank(detect(job, limits, replayed), job, Setting(job.size), limits, replayed)


def said(job: Job) -> Verdict:
    return verdict(ranked(job), job, DEFAULT_THRESHOLDS)


def ids(job: Job) -> list[str]:
    return [row.finding.id for row in ranked(job).findings]


def worth(job: Job) -> float:
    """The speedup that fixing the first finding gives in the replay."""
    gain = ranked(job).findings[0].gain
    assert gain is not None
    return faster(gain.share)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy-ddp-4gpu", ["compute-bound"]),
        ("loader-bound-4gpu", ["data-loading"]),
        ("launch-bound-4gpu", ["kernel-launch", "tiny-kernels"]),
        ("slow-rank-4gpu", ["late-rank", "exposed-communication"]),
        ("recorded-gloo-2rank", ["data-loading", "rank-skew"]),
    ],
)
def test_samples_have_the_bottleneck_they_were_made_with(name: str, expected: list[str]) -> None:
    assert ids(sample(name)) == expected


@pytest.mark.parametrize(
    ("name", "speedup"),
    [("slow-rank-4gpu", 1.37), ("loader-bound-4gpu", 2.20), ("launch-bound-4gpu", 5.78)],
)
def test_the_cause_a_sample_was_made_with_is_worth_what_it_costs(name: str, speedup: float) -> None:
    """test_samples_whatif.py holds these against the samples made without their causes."""
    job = sample(name)
    assert round(worth(job), 2) == speedup
    assert f"worth {speedup:.2f}x." in said(job).text


def test_the_healthy_sample_raises_no_alarm() -> None:
    job = sample("healthy-ddp-4gpu")
    text, finding, _ = said(job)
    assert finding is None
    assert text.startswith("Nothing stands out: 97.9 % of the step (52.0 ms of 53.1 ms) computes")
    assert (
        "No rank is late: rank 1 makes the others wait most, <0.1 ms each per step (<0.1 %); a "
        "late one costs 2.0 % or more, and more than jitter explains." in ranked(job).passed
    )


def test_no_edit_of_the_healthy_sample_gains_more_than_noise() -> None:
    replayed = study(sample("healthy-ddp-4gpu"), DEFAULT_THRESHOLDS)
    noise = replayed.noise(DEFAULT_THRESHOLDS)
    assert noise == DEFAULT_THRESHOLDS.noise_share
    assert {name for name, gain in replayed.gains.items() if gain.share >= noise} == set()


def test_the_slow_rank_is_the_one_that_was_made_slow() -> None:
    assert said(sample("slow-rank-4gpu")).text == (
        "Fix rank 2 first: 5.6 ms of every 39.4 ms step, worth 1.37x. Ranks wait that long for "
        "this one, because computing takes longer there (10.4 ms more than on the others)."
    )


def test_a_gain_is_more_than_a_rank_that_never_waits_for_itself_shows() -> None:
    """What rank 0 does beside waiting is no longer than the step without rank 2."""
    job = sample("slow-rank-4gpu")
    without = job.step_ns - job.by_rank[0][CLASSES.index("comm_wait")]
    assert worth(job) >= 0.99 * job.step_ns / without > 1.2


def test_launching_is_what_eight_tensor_parallel_ranks_wait_for_most() -> None:
    """Two hosts are late, but without them the next is: all ranks launch too slowly."""
    job = many("megatron-tp8-a100")
    text, finding, _ = said(job)
    assert finding == "kernel-launch"
    assert text.startswith("Cut launch overhead first: 62.1 ms of every 625.1 ms step, worth 2.8")
    assert "Ranks 0 and 6 keep the others waiting" in text
    costs_ms = {rank: round(ns / 1e6) for rank, ns in job.together.cost_ns.items()}
    assert (costs_ms[0], costs_ms[6], costs_ms[2]) == (1533, 1219, 171)


def test_a_share_of_a_tenth_can_be_worth_most_of_the_step() -> None:
    rows = ranked(many("megatron-tp8-a100")).findings
    launching = next(row for row in rows if row.finding.id == "kernel-launch")
    assert launching.gain is not None
    assert launching.finding.share < DEFAULT_THRESHOLDS.launch_share < launching.gain.sure
    assert "since what waits for it comes earlier, too" in launching.finding.because


def test_one_slow_host_is_what_eight_data_parallel_ranks_wait_for() -> None:
    text = said(many("nanogpt-8xh100")).text
    assert "ank 1 keeps the others waiting" in text or text.startswith("Fix rank 1 first")
    assert "because kernels are launched late there (9.5 ms more than on the others)" in text


def test_two_ranks_of_128_are_not_judged_by_who_is_late() -> None:
    assert not {"late-rank", "rank-skew"} & {*ids(many("hta-recsys-sampled-2of128"))}


def test_without_workers_data_loading_is_found_with_its_cause() -> None:
    """Launching gains more, and still does with four workers (see test_whatif_real.py)."""
    assert ids(real(f"{RESNET}0"))[:3] == ["kernel-launch", "data-loading", "single-process-loader"]


def test_with_four_workers_data_loading_is_no_finding() -> None:
    found = ids(real(f"{RESNET}4"))
    assert "data-loading" not in found
    assert "single-process-loader" not in found


@pytest.mark.parametrize("gpu", ["h100", "mi300"])
def test_a_small_bert_is_bound_by_launches(gpu: str) -> None:
    assert ids(real(f"{HF}/{gpu}/{BERT}"))[0] == "kernel-launch"


@pytest.mark.parametrize("gpu", ["h100", "mi300"])
@pytest.mark.parametrize("name", [QWEN, TIMESFORMER])
def test_models_that_keep_the_device_busy_gain_little_from_launches(name: str, gpu: str) -> None:
    replayed = study(real(f"{HF}/{gpu}/{name}"), DEFAULT_THRESHOLDS)
    assert 0.0 <= replayed.gains["launching"].share < DEFAULT_THRESHOLDS.first_share
