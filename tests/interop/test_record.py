"""The recorder leaves one trace per rank that the report is content with. Needs torch."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runs import CREATED

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.document import Report

torch: Any = pytest.importorskip("torch")
record: Any = pytest.importorskip("analyzer.record")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two ranks started by torchrun."""
    folder = tmp_path_factory.mktemp("pair")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    # Its own choice of a port: one that was free a moment ago need not be.
    script = ["--standalone", str(Path(__file__).with_name("loops.py"))]
    ran = subprocess.run(
        [*torchrun, *script, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def report(pair: Path) -> Report:
    return api.analyze([str(pair)], Request("", CREATED), Settings(), jobs=1)


def header(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def looped(folder: Path, steps: int, length_s: float = 0.0, **how: int) -> Any:
    """A recorder after a loop of steps that last at least `length_s`."""
    with record.Recorder(folder, **how) as recorder:
        for _ in range(steps):
            torch.ones(8).sum()
            time.sleep(length_s)
            recorder.step()
    return recorder


def test_each_rank_writes_its_own_file_and_nothing_else(pair: Path) -> None:
    names = sorted(path.name for path in pair.iterdir())
    assert names == ["rank0-of-2_dp0.json.gz", "rank1-of-2_dp1.json.gz"]


def test_the_report_knows_both_ranks_by_what_the_files_say(report: Report) -> None:
    assert {f.rank: f.rank_rule for f in report.run.files} == {
        0: "distributedInfo",
        1: "distributedInfo",
    }
    assert report.run.world_size == 2


def test_the_active_steps_are_recorded_and_no_other(report: Report) -> None:
    seen = [*report.steps.used, *(step.index for step in report.steps.dropped)]
    assert sorted(seen) == [6, 7, 8, 9, 10, 11]


def test_the_report_says_what_the_profiler_cost(report: Report) -> None:
    assert "profiler-slowdown" in {caveat.id for caveat in report.quality}


def test_flags_that_distort_are_off(report: Report) -> None:
    flags = report.run.flags
    assert not any([flags.with_stack, flags.profile_memory, flags.record_shapes])


def test_the_timed_steps_are_the_ones_after_those_skipped(tmp_path: Path) -> None:
    with record.Recorder(tmp_path, skip=2, timed=2, warmup=1, active=2) as recorder:
        for step in range(7):
            # Only steps 2 and 3 last; a recorder that timed others would find less.
            time.sleep(0.05 if step in (2, 3) else 0.0)
            recorder.step()
    assert header(recorder.path)["ceiling"]["unprofiled_steps"] == 2
    assert header(recorder.path)["ceiling"]["unprofiled_step_ns"] >= 50_000_000


def test_without_timed_steps_nothing_is_said_of_them(tmp_path: Path) -> None:
    recorder = looped(tmp_path, 4, skip=0, timed=0, warmup=1, active=2)
    assert "ceiling" not in header(recorder.path)


def test_a_loop_that_ends_while_recording_leaves_what_was_recorded(tmp_path: Path) -> None:
    recorder = looped(tmp_path, 4, skip=1, timed=0, warmup=1, active=8)
    marks = {e["name"] for e in header(recorder.path)["traceEvents"] if e.get("ph") == "X"}
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= marks


def test_a_loop_that_ends_before_recording_is_told_why_there_is_nothing(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="ended after 3 steps, recording begins after 18"):
        assert looped(tmp_path, 3).path is None
    assert list(tmp_path.iterdir()) == []


def test_the_rank_of_the_launcher_is_in_the_name_without_a_process_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    recorder = looped(tmp_path, 3, skip=0, timed=0, warmup=1, active=1)
    assert recorder.path.name == "rank5-of-8.json.gz"


def test_no_step_to_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="active at least one"):
        record.Recorder(tmp_path, active=0)


HOOKS = {
    "LightningRecorder": ("on_train_start", "on_train_batch_end", "on_train_end"),
    "TrainerRecorder": ("on_train_begin", "on_step_end", "on_train_end"),
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_callback_records_the_steps_its_trainer_tells_it_of(name: str, tmp_path: Path) -> None:
    callback = getattr(record, name)(tmp_path, skip=0, timed=1, warmup=1, active=2)
    begin, step, end = (getattr(callback, hook) for hook in HOOKS[name])
    begin(None, None, None) if name == "TrainerRecorder" else begin(None, None)
    for _ in range(5):
        torch.ones(8).sum()
        step(None, None, None)
    end(None, None, None) if name == "TrainerRecorder" else end(None, None)
    assert callback.recorder.path == tmp_path / "rank0.json.gz"


@pytest.mark.parametrize("name", HOOKS)
def test_a_callback_answers_to_hooks_it_does_not_need_and_to_nothing_else(
    name: str, tmp_path: Path
) -> None:
    callback = getattr(record, name)(tmp_path)
    assert callback.on_validation_epoch_end("trainer", metrics={}) is None
    with pytest.raises(AttributeError):
        callback.best_model_path  # noqa: B018


def test_lightning_finds_nothing_of_it_in_a_checkpoint(tmp_path: Path) -> None:
    callback = record.LightningRecorder(tmp_path)
    assert (callback.state_key, callback.state_dict()) == ("LightningRecorder", {})
