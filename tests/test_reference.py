"""The reference counts right: on a scene worked out by hand, and on traces counted by others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from real_traces import real_trace
from reference import COMMUNICATION, COMPUTE, COPY, device_split, nanoseconds, sweep

SCENE = [
    (100, 500, COMPUTE),
    (620, 800, COMPUTE),
    (450, 700, COMMUNICATION),
    (60, 100, COPY),
    (780, 830, COPY),
]

# file: window ms, then idle, compute, communication and exposed communication in percent of it
COUNTED = {
    "hta-resnet-ddp2-ncclargs/nccl_data.json.gz": (660.6, 76.16, 17.51, 7.10, 5.99),
    "hta-resnet-ws1-nanosecond/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (
        480.0,
        1.58,
        97.53,
        0,
        0,
    ),
    "hta-recsys-sampled-2of128/sampled_rank-0.json.gz": (1222.8, 55.21, 17.20, 32.40, 27.56),
    "hta-recsys-diff-pair/control.json.gz": (464.6, 16.36, 60.56, 35.20, 18.92),
    "hta-recsys-diff-pair/test.json.gz": (745.2, 3.66, 73.55, 33.73, 9.84),
    "hta-sync-micro/benchmark_result_2869224_1695835535_trace.json.gz": (
        12920.2,
        99.49,
        0.08,
        0,
        0,
    ),
    "tracelens-hf-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz": (
        3.9,
        92.08,
        7.86,
        0,
        0,
    ),
    "tracelens-vllm-b200-rank0of8/eager_trace.json.gz": (84.5, 86.27, 12.75, 0.03, 0.03),
    "tracelens-vllm-piecewise-mi300/graph_execution.json.gz": (156.5, 0.24, 99.71, 0, 0),
    "tracelens-sd35-mi300/profile_trace_rank_0.json.gz": (1171.6, 39.19, 60.77, 0, 0),
    "tracelens-torchcompile-triton/trace.json.gz": (12.5, 0, 100, 0, 0),
}


def test_every_nanosecond_of_the_window_has_the_state_worked_out_by_hand() -> None:
    assert sweep(SCENE, (0, 1000)) == {
        "idle": 230,
        "compute": 580,
        "communication": 250,
        "exposed_communication": 120,
        "hidden_communication": 130,
        "exposed_copy": 70,
        "window": 1000,
    }


def test_without_a_window_it_runs_from_the_first_start_to_the_last_end() -> None:
    split = sweep(SCENE)
    assert (split["window"], split["idle"]) == (770, 0)


def test_nothing_outside_the_window_counts() -> None:
    split = sweep(SCENE, (480, 630))
    assert (split["compute"], split["exposed_communication"], split["idle"]) == (30, 120, 0)


def test_times_beyond_the_precision_of_a_float_are_exact() -> None:
    assert nanoseconds("1682725898237042.043") == 1682725898237042043


def test_old_category_names_and_quoted_times_are_read(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "Kernel", "name": "gemm", "ts": "10.5", "dur": "2"},
        {"ph": "X", "cat": "Kernel", "name": "ncclKernel_AllReduce", "ts": 11, "dur": 3},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "ts": 15, "dur": 1},
        {"ph": "X", "cat": "Operator", "name": "nccl:all_reduce", "ts": 0, "dur": 100},
    ]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(events).encode()))
    assert device_split(path) == {
        "idle": 1000,
        "compute": 2000,
        "communication": 3000,
        "exposed_communication": 1500,
        "hidden_communication": 1500,
        "exposed_copy": 1000,
        "window": 5500,
    }


@pytest.mark.parametrize("name", COUNTED)
def test_real_traces_split_as_others_have_counted(name: str) -> None:
    split = device_split(real_trace(name))
    states = ("idle", "compute", "communication", "exposed_communication")
    shares = [round(100 * split[state] / split["window"], 2) for state in states]
    assert (round(split["window"] / 1e6, 1), *shares) == COUNTED[name]
