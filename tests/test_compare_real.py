"""Before and after in traces that other people published; each is skipped where it is not there."""

from __future__ import annotations

from functools import cache

import pytest
from real_traces import real_trace
from runs import CREATED

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.comparison import Comparison

WORKERS = "kineto-resnet50-workers-torch"
ADAM = "nanogpt-adamhook-pair"
HARDWARE = "tracelens-hf-h100-mi300"
MODELS = (
    "gaunernst_bert-small-uncased__1016001",
    "Qwen_Qwen1.5-0.5B-Chat__1016005",
    "facebook_timesformer-base-finetuned-k400__1016002",
)


@cache
def compared(before: str, after: str) -> Comparison:
    paths = [str(real_trace(path)) for path in (before, after)]
    return api.compare(paths[:1], paths[1:], Request("", CREATED), Settings(), jobs=1)


@pytest.mark.parametrize(
    ("version", "medians"),
    # The catalogue's median steps by the host's marks, ms; of two cycles the mean of both.
    [("19", ((176.3 + 152.5) / 2, (126.5 + 125.1) / 2)), ("180", (211.7, 173.8))],
)
def test_more_loader_workers_are_faster_because_data_loading_fell(
    version: str, medians: tuple[float, float]
) -> None:
    folder = f"{WORKERS}{version}/resnet50_num_workers_"
    found = compared(f"{folder}0", f"{folder}4")
    assert found.verdict.outcome == "faster"
    assert found.verdict.causes == ["data_loading"]
    assert {row.id: row.status for row in found.findings}["data-loading"] == "fixed"
    for side, median in zip((found.before, found.after), medians, strict=True):
        assert side.steps.wall_ms.median == pytest.approx(median, rel=0.03)


@pytest.mark.parametrize("version", ["19", "180"])
def test_the_promise_of_the_replay_is_held_against_what_came(version: str) -> None:
    folder = f"{WORKERS}{version}/resnet50_num_workers_"
    (row,) = compared(f"{folder}0", f"{folder}4").forecasts
    # nine tenths of the loading went; what the loaders cost the launches was not promised
    assert row.whatif == "no-data-loading"
    assert row.part > 0.9
    assert 0.75 < row.measured_ms / row.promised_ms < 1.0


@pytest.mark.parametrize("capture", ["v1-6steps", "v2-4steps"])
def test_half_a_percent_is_no_clear_change_and_inside_the_interval(capture: str) -> None:
    name = f"{ADAM}/{capture}/modded-nanogpt-{{}}-gpu-rank-00-chrome-trace.json.gz"
    found = compared(name.format("current"), name.format("hook"))
    assert found.verdict.outcome == "no-clear-change"
    ratio = found.verdict.ratio
    assert ratio is not None
    assert ratio.lo is not None
    assert ratio.hi is not None
    assert ratio.lo < 140.81 / 141.51 < ratio.hi
    assert found.comparable.differences == []


def test_jobs_of_another_size_and_gpu_are_not_comparable() -> None:
    found = compared("hta-recsys-diff-pair/control.json.gz", "hta-recsys-diff-pair/test.json.gz")
    assert found.verdict.outcome == "not-comparable"
    assert found.verdict.text == "Not comparable: ranks of the job: 8 against 2."
    assert "gpu" in {row.id for row in found.comparable.differences}


@pytest.mark.parametrize("model", MODELS)
def test_another_gpu_is_warned_of(model: str) -> None:
    found = compared(f"{HARDWARE}/h100/{model}.json.gz", f"{HARDWARE}/mi300/{model}.json.gz")
    assert found.comparable.ok
    assert "gpu" in {row.id for row in found.comparable.differences if not row.blocking}
    # one step each decides nothing
    assert found.verdict.outcome == "no-clear-change"
