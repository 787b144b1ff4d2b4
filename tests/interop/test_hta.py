"""HTA's analyses run on our columns, and its figures are explained down to ours. Needs HTA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from make import TraceBuilder, trace
from real_traces import real_trace
from runs import GEMM, healthy

from analyzer.config import Settings
from analyzer.interop import crosscheck, hta
from analyzer.interop.crosscheck import (
    LAST_STEP,
    NAMED,
    ROUNDED,
    STREAMED,
    UNEXPLAINED,
    UNLAUNCHED,
    Check,
    Figures,
    check,
)
from analyzer.trace import kineto

pytest.importorskip("hta.trace_analysis", exc_type=ImportError)
pytestmark = [pytest.mark.hta, pytest.mark.filterwarnings("default")]

REAL = [
    "hta-resnet-ddp2-ncclargs/nccl_data.json.gz",
    "hta-sync-micro/simple_add/trace.json.gz",
    "tracelens-hf-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens-hf-h100-mi300/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens-vllm-b200-rank0of8/eager_trace.json.gz",
    "tracelens-torchcompile-triton/trace.json.gz",
    "tracelens-vllm-piecewise-mi300/graph_execution.json.gz",
    "megatron-tp8-a100/megatron_kineto_0.json.gz",
    "part-a100-batch-series/single_epoch_forward_pass_batch_size_64.json.gz",
    "tracelens-resnet18-mi300/train_resnet18.json.gz",
]
REASONS = (LAST_STEP, UNLAUNCHED, STREAMED, ROUNDED, NAMED)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with crosscheck.silence():
        yield


def checked(folder: Path, built: TraceBuilder) -> Check:
    return check(built.write(folder / "trace.json"), Settings())


def reasons(found: Check) -> list[str]:
    return [line.reason for line in found.lines[1:] if line.reason]


@pytest.fixture
def resnet() -> Any:
    """HTA's analysis of a real rank, from our columns."""
    path = real_trace("hta-resnet-ddp2-ncclargs/nccl_data.json.gz")
    return hta.analysis({0: kineto.read(path)})


def test_its_temporal_breakdown_runs_on_our_columns(resnet: Any) -> None:
    (row,) = resnet.get_temporal_breakdown(visualize=False).to_dict("records")
    # Integer arithmetic over the file's own decimals: peers' reference for this trace.
    assert row["idle_time_pctg"] == 76.16
    assert row["compute_time_pctg"] == 17.51


def test_its_overlap_runs_on_our_columns(resnet: Any) -> None:
    (row,) = resnet.get_comm_comp_overlap(visualize=False).to_dict("records")
    assert row["comp_comm_overlap_pctg"] == 15.61


def test_its_idle_breakdown_runs_on_our_columns(resnet: Any) -> None:
    found, _ = resnet.get_idle_time_breakdown(ranks=[0], visualize=False)
    assert set(found["idle_category"]) == {"host_wait", "kernel_wait", "other"}


def test_its_kernel_breakdown_runs_on_our_columns(resnet: Any) -> None:
    kinds, kernels = resnet.get_gpu_kernel_breakdown(visualize=False)
    assert "COMPUTATION" in set(kinds["kernel_type"])
    assert any(name.startswith("nccl") for name in kernels["name"])


def test_its_queue_length_and_launch_statistics_run_on_our_columns(resnet: Any) -> None:
    assert not resnet.get_queue_length_summary(ranks=[0]).empty
    assert not resnet.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0].empty


def test_its_critical_path_runs_on_our_columns(resnet: Any) -> None:
    graph, done = resnet.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
    assert done
    assert len(graph.critical_path_nodes) > 0


def test_its_trace_diff_runs_on_our_columns() -> None:
    path = real_trace("tracelens-hf-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz")
    one, two = (hta.container({0: kineto.read(path)}) for _ in range(2))
    diff = hta.module("hta.trace_diff").TraceDiff
    found = diff.compare_traces(one, two, 0, 0, use_short_name=False)
    assert set(found["diff_counts"]) == {0}


def test_several_ranks_share_one_time_and_one_table_of_names(tmp_path: Path) -> None:
    paths = [healthy(r).write(tmp_path / f"rank{r}.json") for r in (0, 1)]
    found = hta.container({r: kineto.read(path) for r, path in enumerate(paths)})
    assert found.get_ranks() == [0, 1]
    assert min(frame["ts"].min() for frame in found.traces.values()) == 0


def test_a_trace_of_one_step_and_whole_microseconds_agrees(tmp_path: Path) -> None:
    found = checked(tmp_path, healthy(0, 1, steps=range(1, 2)))
    assert found.agree
    assert reasons(found) == []


def test_the_last_step_is_a_reason(tmp_path: Path) -> None:
    found = checked(tmp_path, healthy(0, 1).kernel(GEMM, 7500, 7600, launch=(6900, 6901)))
    assert found.lines[1].reason == LAST_STEP


def test_work_without_its_launch_is_a_reason(tmp_path: Path) -> None:
    found = checked(tmp_path, healthy(0, 1).kernel("early", -500, -100))
    assert UNLAUNCHED in reasons(found)


def test_kernels_of_other_libraries_are_a_reason_that_names_them(tmp_path: Path) -> None:
    built = trace().step(1, 0, 900).kernel(GEMM, 10, 500, launch=(0, 1))
    built.kernel("cross_device_reduce_1stage<half>(int)", 500, 800, launch=(2, 3))
    last = checked(tmp_path, built).lines[-1]
    assert last.reason == f"{NAMED}: cross_device_reduce_1stage<half>(int) is communication"
    assert last.figures == Figures(790_000, 0.0, 490 / 790, 300 / 790, 0.0)


def test_what_hta_cannot_read_is_told_in_its_words(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    built = healthy(0, 1).text()
    path.write_text(built[: built.rindex("}") - 40])
    found = check(path, Settings())
    assert found.failure.startswith("JSONDecodeError: ")
    assert [line.name for line in found.lines] == ["ours"]


@pytest.mark.parametrize("name", REAL)
def test_every_difference_on_other_peoples_traces_has_its_reason(name: str) -> None:
    found = check(real_trace(name), Settings())
    assert not found.failure
    for before, line in zip(found.lines, found.lines[1:], strict=False):
        assert before.figures.agrees(line.figures) == (line.reason == "")
        assert line.reason == "" or line.reason.startswith(REASONS)
    assert UNEXPLAINED not in reasons(found)


def test_the_command_prints_both_and_the_reasons(tmp_path: Path, ceiling: Run) -> None:
    path = healthy(0, 1).kernel("early", -500, -100).write(tmp_path / "rank0.json")
    ran = ceiling("crosscheck", path)
    assert ran.code == 0
    assert ran.out.startswith("rank0.json\n")
    assert "HTA reports" in ran.out
    assert "ours" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_run_without_a_device_is_refused_with_the_reason(tmp_path: Path, ceiling: Run) -> None:
    path = trace().step(1, 0, 100).op("aten::add", 1, 50).write(tmp_path / "rank0.json")
    ran = ceiling("crosscheck", path)
    assert ran.code == 3
    assert "no device work was recorded" in ran.err
