"""Two recorded runs, a slow loader and then more workers: faster because of data loading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from runs import CREATED

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.comparison import Comparison

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

RECORDER = Path(__file__).parent / "record_loader.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two processes over gloo without loader workers, and with two each."""
    folders = []
    for workers in (0, 2):
        folder = tmp_path_factory.mktemp(f"workers{workers}")
        command = [sys.executable, str(RECORDER), str(folder), str(workers)]
        subprocess.run(command, check=True, capture_output=True, timeout=180)
        folders.append(str(folder))
    return api.compare(folders[:1], folders[1:], Request("", CREATED), Settings(), jobs=1)


def test_more_workers_are_faster_because_data_loading_fell(found: Comparison) -> None:
    assert found.verdict.outcome == "faster"
    assert found.verdict.causes[0] == "data_loading"


def test_nothing_but_the_times_forbids_the_comparison(found: Comparison) -> None:
    assert found.comparable.ok
    assert found.before.run.world_size == found.after.run.world_size == 2


def test_most_of_32_ms_of_loading_went_and_the_bottleneck_with_it(found: Comparison) -> None:
    loading = next(bar for bar in found.waterfall if bar.class_ == "data_loading")
    assert loading.clear
    assert loading.delta_ms < -20.0
    status = {row.id: row.status for row in found.findings}
    assert status["single-process-loader"] == "fixed"
