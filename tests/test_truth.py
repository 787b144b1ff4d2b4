"""The analyzer finds in the samples what their simulator knows, to the nanosecond.

Exact, because the simulator's schedule and the trace share one clock and one rule: idle time
belongs to the launch of what ended it. Waiting and transfer are one class in one rank's digest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.classify.classes import CLASSES
from analyzer.config import Settings
from analyzer.digest import digest

SAMPLES = Path(__file__).parent.parent / "sample_traces"
SIMULATED = ("healthy-ddp-4gpu", "launch-bound-4gpu", "loader-bound-4gpu", "slow-rank-4gpu")


def true_windows(sample: str, rank: int) -> dict[int, tuple[int, int, dict[str, int], int]]:
    """Step -> start, end, classes and hidden communication as the simulator has them."""
    text = (SAMPLES / sample / "truth.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["windows"]
    truth = {}
    for row in rows:
        if row["rank"] == rank:
            ns = dict.fromkeys(CLASSES, 0) | row["classes_ns"]
            ns["comm_unsplit"] = ns["comm_wait"] + ns["comm_transfer"]
            ns["comm_wait"] = ns["comm_transfer"] = 0
            truth[row["step"]] = (row["start_ns"], row["end_ns"], ns, row["hidden_comm_ns"])
    return truth


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("sample", SIMULATED)
def test_windows_and_classes_are_the_simulators(sample: str, rank: int) -> None:
    found = digest(SAMPLES / sample / f"rank{rank}.json.gz", Settings())
    windows = {s.index: (s.start, s.end, s.ns, s.hidden_ns) for s in found.steps}
    truth = true_windows(sample, rank)
    assert sorted(truth) == [11, 12, 13, 14, 15]
    assert {step: windows[step] for step in truth} == truth


@pytest.mark.parametrize("sample", SIMULATED)
def test_only_the_first_step_is_left_out(sample: str) -> None:
    found = digest(SAMPLES / sample / "rank0.json.gz", Settings())
    assert [s.index for s in found.steps if s.dropped] == [10]


@pytest.mark.parametrize("rank", range(2))
def test_the_recorded_run_waits_for_its_loader_most(rank: int) -> None:
    found = digest(SAMPLES / "recorded-gloo-2rank" / f"rank{rank}.json.gz", Settings())
    assert found.timeline == "host"
    total = {name: sum(step.ns[name] for step in found.used) for name in CLASSES}
    assert max(total, key=lambda name: total[name]) == "data_loading"
