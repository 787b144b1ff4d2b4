from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.trace.filenames import (
    last_number,
    only_dimension,
    process,
    rank_in_name,
    without_cycle,
    without_time,
)


@pytest.mark.parametrize(
    "name, rank",
    [
        ("rank7_trace.json", 7),
        ("Baseline - 12-11 - 220ff-rank6-chrome-trace.json.gz", 6),
        ("1712345678.123-rank-34.trace.json.gz", 34),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0),
        ("trace_rank[3].json", 3),
        ("rank-12.json.gz", 12),
        ("gpu-rank-00-chrome-trace.json.gz", 0),
        ("profile_trace_rank_0.json.gz", 0),
        ("graph_capture_rank_5.1773709679453551615.pt.trace.json.gz", 5),
        ("dp0_pp1_tp3_dcp0_ep0_rank11.1700000000000000000.pt.trace.json.gz", 11),
        ("TP-0-DP-1-PP-0-EP-0-rank-9.trace.json.gz", 9),
        ("tp1_pp2_dp0_13.json", 13),
        ("r5t01_88231.json", 5),
        ("tp_rank_1_global_rank_17.json", 17),
        ("traceRank4.json", 4),
        ("http_rank_3.json", 3),
    ],
)
def test_global_rank_is_read_in_every_spelling(name: str, rank: int) -> None:
    found = rank_in_name(name)
    assert found is not None
    assert found.rank == rank


@pytest.mark.parametrize(
    "name",
    [
        "smci350-zts-gtu-c6-25_200691.1758927066581847260.pt.trace.json",
        "worker0.1623143089861.pt.trace.json.gz",
        "iteration_10.json",
        "lora_rank_16.json",
        "lowrank8.json",
        "tp_rank_1.json",
        "1782799835.6885648-TP-0-DECODE.trace.json.gz",
        "TP-0-DP-1-PP-0-EP-0.trace.json.gz",
        "benchmark_result_2869224_1695835535_trace.json.gz",
        "rank1623143089861.json",
    ],
)
def test_other_numbers_are_not_a_global_rank(name: str) -> None:
    assert rank_in_name(name) is None


@pytest.mark.parametrize(
    "name, rank",
    [
        ("1782799835.6885648-TP-3-DECODE.trace.json.gz", 3),
        ("tp_rank_1.json", 1),
        ("local_rank-2.json", 2),
        ("TP-0-DP-1.json", None),
        ("node-2.json", None),
        ("node-2_local_rank-1.json", None),
        ("llama_tp8.json", None),
    ],
)
def test_one_parallel_dimension_alone_is_its_number(name: str, rank: int | None) -> None:
    found = only_dimension(name)
    assert (found and found.rank) == rank


def test_recordings_of_one_process_have_one_name_without_time() -> None:
    assert without_time("h_77.1758927066581847260.pt.trace.json") == "h_77.*"
    assert without_time("worker0.1623143089861.pt.trace.json.gz") == "worker0.*"
    assert without_time("rank-0.Jul_15_10_52_41.1074.pt.trace.json") == "rank-0.*.1074"
    assert without_time("run_2025-01-31_10-20-30.json") == "run_*"
    assert without_time("run_20250131.json") == "run_*"


@pytest.mark.parametrize(
    "one, other",
    [
        ("trace_step_10.json", "trace_step_20.json"),
        ("rank0_cycle1.json", "rank0_cycle2.json"),
        ("trace_4.json", "trace_8.json"),
        ("trace_4_rank3.json", "trace_8_rank3.json"),
        ("rank12_100.json", "rank12_200.json"),
    ],
)
def test_step_and_cycle_numbers_do_not_make_another_process(one: str, other: str) -> None:
    assert without_cycle(one) == without_cycle(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("bench_batch_size_2.json", "bench_batch_size_4.json"),
        ("rank0_before.json", "rank0_after.json"),
        ("host_71.1758927066581847260.json", "host_72.1758927066581847260.json"),
        ("rank1.json", "rank2.json"),
    ],
)
def test_settings_words_and_process_ids_do(one: str, other: str) -> None:
    assert without_cycle(one) != without_cycle(other)


def test_iteration_folders_belong_to_one_run() -> None:
    assert process(Path("/r/iteration_5/a.json")) == process(Path("/r/iteration_10/a.json"))
    assert process(Path("/r/before/a.json")) != process(Path("/r/after/a.json"))


def test_last_number_is_none_for_a_setting() -> None:
    assert last_number("megatron_kineto_3.json.gz") == ("megatron_kineto_", 3)
    assert last_number("worker0.1623143089861.pt.trace.json.gz") == ("worker", 0)
    assert last_number("resnet50_num_workers_4.json") is None
    assert last_number("forward_batch_size_64.json") is None
    assert last_number("trace.json") is None


@given(st.integers(0, 99_999), st.sampled_from(["rank{}", "x-rank-{}", "rank[{}]", "p_rank_{}_q"]))
def test_any_rank_survives_any_timestamp(rank: int, pattern: str) -> None:
    found = rank_in_name(pattern.format(rank) + ".1758927066581847260.pt.trace.json.gz")
    assert found is not None
    assert found.rank == rank
