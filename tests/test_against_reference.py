"""On real traces the analyzer splits device time as the independent sweep does.

Within 0.01 points of the window, though both count nanoseconds: they are in fact equal.
`tests/reference.py` knows no steps and no causes, so windows are handed to it; which kernels
communicate is handed to it too, except where "nccl" in the name says so.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from analysed import windows
from real_traces import real_trace
from reference import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    Classify,
    Interval,
    by_nccl_in_the_name,
    device_intervals,
    sweep,
)

from analyzer.classify.breakdown import classify
from analyzer.classify.kernels import Activity, KernelRules
from analyzer.config import Settings
from analyzer.digest import RankDigest, reduce
from analyzer.timeline.launches import link
from analyzer.trace import kineto
from analyzer.trace.schema import Kind, Trace

POINTS = 0.01

# Traces of steps, whole recordings, CUDA and ROCm, old and new; True: collectives all say nccl.
TRACES = {
    "hta-resnet-ddp2-ncclargs/nccl_data.json.gz": True,
    "hta-resnet-ws1-nanosecond/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": True,
    "hta-recsys-sampled-2of128/sampled_rank-0.json.gz": True,
    "hta-recsys-diff-pair/control.json.gz": True,
    "hta-recsys-diff-pair/test.json.gz": True,
    "kineto-resnet50-workers-torch19/resnet50_num_workers_0/"
    "worker0.1623143089861.pt.trace.json.gz": True,
    "megatron-tp8-a100/megatron_kineto_3.json.gz": True,
    "nanogpt-adamhook-pair/v1-6steps/modded-nanogpt-hook-gpu-rank-00-chrome-trace.json.gz": True,
    "deepseek-dualpipe-ep64/train.json.gz": False,
    "tracelens-hf-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz": True,
    "tracelens-vllm-b200-rank0of8/eager_trace.json.gz": False,
    "tracelens-qwen30b-decode-b300-mi300/MI300/1782859605.7198358-TP-0-DECODE.trace.json.gz": False,
    "tracelens-torchcompile-triton/trace.json.gz": True,
}
STEPPED = [
    "hta-resnet-ddp2-ncclargs/nccl_data.json.gz",
    "hta-recsys-diff-pair/control.json.gz",
    "hta-recsys-diff-pair/test.json.gz",
    "nanogpt-adamhook-pair/v1-6steps/modded-nanogpt-hook-gpu-rank-00-chrome-trace.json.gz",
]
# Percent of the recording counted by others: idle, compute, exposed communication.
PUBLISHED = {
    "hta-resnet-ddp2-ncclargs/nccl_data.json.gz": (76.16, 17.51, 5.99),
    "hta-resnet-ws1-nanosecond/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (1.58, 97.53, 0),
    "hta-recsys-sampled-2of128/sampled_rank-0.json.gz": (55.21, 17.20, 27.56),
    "hta-recsys-diff-pair/control.json.gz": (16.36, 60.56, 18.92),
    "hta-recsys-diff-pair/test.json.gz": (3.66, 73.55, 9.84),
    "hta-sync-micro/benchmark_result_2869224_1695835535_trace.json.gz": (99.49, 0.08, 0),
    "tracelens-hf-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz": (
        92.08,
        7.86,
        0,
    ),
    "tracelens-vllm-piecewise-mi300/graph_execution.json.gz": (0.24, 99.71, 0),
    "tracelens-sd35-mi300/profile_trace_rank_0.json.gz": (39.19, 60.77, 0),
    "tracelens-torchcompile-triton/trace.json.gz": (0.00, 100.00, 0),
}


@cache
def analysed(name: str) -> tuple[Trace, RankDigest]:
    trace = kineto.read(real_trace(name))
    return trace, reduce(trace, Settings())


def by_the_rules(category: str, name: str) -> str | None:
    """The reference's classes, with communication, and copies filed as kernels, by our rules."""
    found = by_nccl_in_the_name(category, name)
    if found is None:
        return None
    kind = Kind.KERNEL if found != COPY else Kind.MEMCPY
    activity = KernelRules().activity(name, kind)
    if activity in (Activity.COMMUNICATION, Activity.FUSED):
        return COMMUNICATION
    return COPY if activity == Activity.COPY else COMPUTE


@cache
def intervals(name: str, rule: Classify) -> tuple[Interval, ...]:
    return tuple(device_intervals(real_trace(name), cache(rule)))


def expected(
    name: str, rule: Classify, window: tuple[int, int] | None = None
) -> tuple[dict[str, float], int]:
    """Shares of the window in percent, and its length; the reference adds no base to times."""
    base = analysed(name)[0].meta.base_ns or 0
    shifted = None if window is None else (window[0] - base, window[1] - base)
    split = sweep(list(intervals(name, rule)), shifted)
    states = ("compute", "exposed_communication", "hidden_communication", "idle")
    return {state: 100 * split[state] / split["window"] for state in states}, split["window"]


def whole(trace: Trace, found: RankDigest) -> dict[str, float]:
    """Shares of the recording in percent; idle time is what has a cause."""
    start, end = found.span.start, found.span.end
    rules, limits = KernelRules(), Settings().thresholds
    causes = classify(trace, link(trace), rules, start, end, limits).causes.values()
    ns = {
        "compute": found.span.ns["compute"] + found.span.ns["optimizer"],
        "exposed_communication": found.span.ns["comm_unsplit"],
        "hidden_communication": found.span.hidden_ns,
        "idle": sum(times.total for times in causes),
    }
    return {state: 100 * value / (end - start) for state, value in ns.items()}


@pytest.mark.parametrize("name", TRACES)
def test_the_recording_splits_as_an_independent_sweep_counts_it(name: str) -> None:
    trace, found = analysed(name)
    shares, length = expected(name, by_the_rules)
    assert found.span.end - found.span.start == length
    assert whole(trace, found) == pytest.approx(shares, abs=POINTS)


@pytest.mark.parametrize("name", [name for name, plain in TRACES.items() if plain])
def test_where_all_collectives_say_nccl_no_rule_of_ours_is_needed(name: str) -> None:
    trace, found = analysed(name)
    shares, _ = expected(name, by_nccl_in_the_name)
    assert whole(trace, found) == pytest.approx(shares, abs=POINTS)


@pytest.mark.parametrize("name", STEPPED)
def test_every_step_splits_as_an_independent_sweep_counts_it(name: str) -> None:
    _, found = analysed(name)
    assert len(found.used) >= 2
    for step in found.used:
        shares, length = expected(name, by_the_rules, (step.start, step.end))
        ours = {
            "compute": step.ns["compute"] + step.ns["optimizer"],
            "exposed_communication": step.ns["comm_unsplit"],
            "hidden_communication": step.hidden_ns,
        }
        found_shares = {state: 100 * ns / length for state, ns in ours.items()}
        assert found_shares == pytest.approx({s: shares[s] for s in ours}, abs=POINTS)


@pytest.mark.parametrize("name", STEPPED)
def test_idle_time_of_the_used_steps_is_all_given_a_cause(name: str) -> None:
    _, found = analysed(name)
    idle = 0.0
    for step in found.used:
        shares, length = expected(name, by_the_rules, (step.start, step.end))
        idle += shares["idle"] * length / 100
    length = sum(step.end - step.start for step in found.used)
    ours = 100 * sum(cause.ns for cause in found.causes) / length
    assert ours == pytest.approx(100 * idle / length, abs=POINTS)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_recording_splits_as_others_have_counted(name: str) -> None:
    shares = whole(*analysed(name))
    states = ("idle", "compute", "exposed_communication")
    # The published figures are rounded to two decimals.
    assert [shares[s] for s in states] == pytest.approx(PUBLISHED[name], abs=0.005 + 1e-9)


def test_all_reduces_in_the_switch_that_others_count_as_compute_are_communication() -> None:
    shares = whole(*analysed("tracelens-vllm-b200-rank0of8/eager_trace.json.gz"))
    assert shares["idle"] == pytest.approx(86.27, abs=0.005 + 1e-9)
    assert shares["compute"] == pytest.approx(12.75 - 2.51, abs=POINTS)
    assert shares["exposed_communication"] == pytest.approx(0.03 + 2.51, abs=POINTS)


@pytest.mark.parametrize("name", TRACES)
def test_classes_of_every_window_sum_to_it(name: str) -> None:
    _, found = analysed(name)
    for window in windows(found):
        assert sum(window.ns.values()) == window.end - window.start
        assert min(window.ns.values()) >= 0


@pytest.mark.parametrize("name", TRACES)
def test_every_recorded_kernel_counts_whether_its_launch_was_recorded_or_not(name: str) -> None:
    trace, _ = analysed(name)
    recorded = [end - start for start, end, _ in intervals(name, by_the_rules)]
    assert (len(trace.device), int(np.sum(trace.device.dur))) == (len(recorded), sum(recorded))
