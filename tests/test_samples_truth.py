"""The simulated samples keep their promises: reproducible, readable, and a truth that adds up."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parent.parent / "sample_traces"
SIMULATED = ("healthy-ddp-4gpu", "launch-bound-4gpu", "loader-bound-4gpu", "slow-rank-4gpu")
ALL = (*SIMULATED, "recorded-gloo-2rank")


def read_trace(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    return document


def read_truth(sample: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SAMPLES / sample / "truth.json").read_text("utf-8"))
    return document


def written_ns(event: dict[str, Any], key: str) -> Decimal:
    return Decimal(event[key]) * 1000


def test_simulating_again_gives_the_same_bytes(tmp_path: Path) -> None:
    script = str(SAMPLES / "simulate.py")
    command = [sys.executable, "-B", script, str(tmp_path), "slow-rank-4gpu"]
    subprocess.run(command, check=True)
    stored, again = SAMPLES / "slow-rank-4gpu", tmp_path / "slow-rank-4gpu"
    assert (again / "truth.json").read_bytes() == (stored / "truth.json").read_bytes()
    for rank in range(4):
        name = f"rank{rank}.json.gz"  # the text is compared: builds of zlib compress differently
        assert gzip.decompress((again / name).read_bytes()) == gzip.decompress(
            (stored / name).read_bytes()
        )


@pytest.mark.parametrize("sample", ALL)
def test_every_file_says_which_rank_it_is(sample: str) -> None:
    paths = sorted((SAMPLES / sample).glob("rank*.json.gz"))
    info = [read_trace(path)["distributedInfo"] for path in paths]
    assert [entry["rank"] for entry in info] == list(range(info[0]["world_size"]))


@pytest.mark.parametrize("sample", SIMULATED)
def test_truth_classes_sum_to_their_window_exactly(sample: str) -> None:
    windows = read_truth(sample)["windows"]
    assert len(windows) == 4 * 5
    for window in windows:
        assert sum(window["classes_ns"].values()) == window["end_ns"] - window["start_ns"]


@pytest.mark.parametrize("sample", SIMULATED)
def test_truth_windows_of_a_rank_tile_time(sample: str) -> None:
    ends: dict[int, int] = {}
    for window in read_truth(sample)["windows"]:
        assert window["start_ns"] == ends.get(window["rank"], window["start_ns"])
        ends[window["rank"]] = window["end_ns"]
    assert sorted(ends) == [0, 1, 2, 3]


@pytest.mark.parametrize("sample", SIMULATED)
def test_an_all_reduce_ends_at_the_same_time_on_all_ranks(sample: str) -> None:
    ends: dict[int, list[Decimal]] = defaultdict(list)
    for path in sorted((SAMPLES / sample).glob("rank*.json.gz")):
        for event in read_trace(path)["traceEvents"]:
            if "Collective name" in event.get("args", {}):
                end = written_ns(event, "ts") + written_ns(event, "dur")
                ends[event["args"]["Seq"]].append(end)
    complete = [group for group in ends.values() if len(group) == 4]
    assert len(complete) >= 6 * 3
    assert all(len(set(group)) == 1 for group in complete)


@pytest.mark.parametrize("sample", SIMULATED)
def test_work_of_one_stream_never_overlaps(sample: str) -> None:
    for path in sorted((SAMPLES / sample).glob("rank*.json.gz")):
        free: dict[int, Decimal] = {}
        for event in read_trace(path)["traceEvents"]:
            if event.get("cat") in ("kernel", "gpu_memcpy"):
                start = written_ns(event, "ts")
                assert start >= free.get(event["tid"], start)
                free[event["tid"]] = start + written_ns(event, "dur")


def test_each_sample_is_bound_by_what_its_name_says() -> None:
    healthy = read_truth("healthy-ddp-4gpu")
    exposed = healthy["mean_ms"]["comm_transfer"] + healthy["mean_ms"]["comm_wait"]
    assert exposed / healthy["mean_step_ms"] < 0.03
    assert healthy["mean_ms"]["compute"] / healthy["mean_step_ms"] > 0.95
    loader = read_truth("loader-bound-4gpu")["mean_ms"]
    assert max(loader, key=lambda name: loader[name]) == "data_loading"
    launch = read_truth("launch-bound-4gpu")["mean_ms"]
    assert max(launch, key=lambda name: launch[name]) == "launch"


def test_only_the_slow_rank_waits_for_nobody() -> None:
    waits: dict[int, int] = defaultdict(int)
    for window in read_truth("slow-rank-4gpu")["windows"]:
        waits[window["rank"]] += window["classes_ns"]["comm_wait"]
    assert [rank for rank, wait in waits.items() if wait == 0] == [2]


def test_all_samples_together_stay_under_three_megabytes() -> None:
    files = [path for sample in ALL for path in (SAMPLES / sample).iterdir()]
    assert sum(path.stat().st_size for path in files) < 3_000_000
