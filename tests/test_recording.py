"""What today's PyTorch records is understood: steps, loader, operators, gloo. Needs torch."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from jsonschema import Draft202012Validator
from runs import CREATED

from analyzer import api
from analyzer.config import Settings
from analyzer.report import scaling
from analyzer.report.build import Request
from analyzer.report.document import Report

torch: Any = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

RECORDER = Path(__file__).parent.parent / "sample_traces" / "record_gloo.py"
GLOO_PORT = 29_511  # fixed in the recorder


def reported(folder: Path) -> Report:
    return api.analyze([str(folder)], Request("", CREATED), Settings(), jobs=1)


def record(folder: Path, active: int) -> None:
    """A small network trained on the CPU, `active` steps of it recorded."""
    profiler, data = torch.profiler, torch.utils.data
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = data.TensorDataset(torch.randn(64 * (active + 4), 64))
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=active, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(folder / "trace.json")),
        record_shapes=True,
    ) as running:
        for (batch,) in data.DataLoader(samples, batch_size=64):
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            running.step()


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One process, six recorded steps."""
    folder = tmp_path_factory.mktemp("single")
    record(folder, active=6)
    return reported(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One process and two over gloo, each with a loader process: a folder for each."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", GLOO_PORT)) == 0:
            pytest.skip(f"port {GLOO_PORT} is in use")
    folder = tmp_path_factory.mktemp("runs")
    for ranks in ("1", "2"):
        command = [sys.executable, str(RECORDER), str(folder / ranks), ranks]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def pair(runs: Path) -> Report:
    """The two processes."""
    return reported(runs / "2")


def test_a_recording_without_a_device_is_read_on_the_host_timeline(single: Report) -> None:
    assert single.breakdown.timeline == "host"
    assert "no-device-work" in {caveat.id for caveat in single.quality}


def test_recorded_steps_are_found_and_used_but_for_the_edges(single: Report) -> None:
    seen = sorted([*single.steps.used, *(step.index for step in single.steps.dropped)])
    assert seen == [2, 3, 4, 5, 6, 7]
    assert len(single.steps.used) >= 4


def test_operators_are_compute_and_the_optimizer_is_its_own(single: Report) -> None:
    assert single.breakdown.mean_ms["compute"] > 0
    assert single.breakdown.mean_ms["optimizer"] > 0


def test_a_loader_in_the_training_process_is_seen(single: Report) -> None:
    assert single.breakdown.mean_ms["data_loading"] > 0
    assert "no-loader-events" not in {caveat.id for caveat in single.quality}


def test_the_flags_of_the_recording_are_read(single: Report) -> None:
    assert single.run.flags.record_shapes is True
    assert single.run.flags.with_stack in (None, False)


def test_one_process_communicates_with_nobody(single: Report) -> None:
    assert single.collectives == []
    assert single.breakdown.group_ms["communication"] == 0


def test_classes_sum_to_every_recorded_step(single: Report) -> None:
    for row in single.breakdown.per_rank:
        assert sum(row.measured.values()) == pytest.approx(row.step_ms, abs=1e-9)


def test_two_processes_are_two_ranks_by_what_the_files_say(pair: Report) -> None:
    used = {file.rank: file.rank_rule for file in pair.run.files}
    assert used == {0: "distributedInfo", 1: "distributedInfo"}
    assert (pair.run.world_size, pair.run.backend) == (2, "gloo")


def test_gloo_is_seen_as_communication(pair: Report) -> None:
    assert pair.breakdown.group_ms["communication"] > 0
    assert "no-collectives" not in {caveat.id for caveat in pair.quality}


def test_a_loader_of_other_processes_is_seen(pair: Report) -> None:
    assert pair.breakdown.mean_ms["data_loading"] > 0
    assert "single-process-loader" not in {finding.id for finding in pair.findings}


def test_one_and_two_processes_are_a_series(runs: Path, ceiling: Run) -> None:
    ran = ceiling("scaling", runs, "--mode", "weak", "--duration", "1h", "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    Draft202012Validator(scaling.schema()).validate(found)
    assert [point["n"] for point in found["points"]] == [1, 2]
    assert found["points"][0]["ms"]["comm_wait"] + found["points"][0]["ms"]["comm_transfer"] == 0
    assert found["points"][1]["karp_flatt"] is not None
    assert found["points"][1]["speedup"] == pytest.approx(
        2 * found["points"][0]["step_ms"] / found["points"][1]["step_ms"]
    )
    assert "at least 3 are needed" in found["reason"]
    assert found["verdict"]["text"].startswith("From 1 to 2 GPUs a step")
