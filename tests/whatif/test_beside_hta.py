"""The critical path beside that of Holistic Trace Analysis, which reads one rank's trace alone.

Skipped where it is not installed (`pip install HolisticTraceAnalysis "pandas<3"`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from real_traces import real_trace

from analyzer import api
from analyzer.config import DEFAULT_THRESHOLDS, Settings
from analyzer.whatif.study import study

hta = pytest.importorskip("hta.trace_analysis", reason="Holistic Trace Analysis is not installed")

FOLDER = "hta-resnet-ws1-nanosecond"
FILE = "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
FIRST_STEP = 101
ON_DEVICE = ("compute", "optimizer", "copy")


@pytest.mark.filterwarnings("ignore")
def test_a_device_bound_step_has_the_same_path(tmp_path: Path) -> None:
    source = real_trace(f"{FOLDER}/{FILE}")
    settings = Settings()
    job = api.load(api.digests([str(source)], settings, jobs=1), settings=settings).job
    path = study(job, DEFAULT_THRESHOLDS).path
    assert path is not None
    copy = shutil.copy(source, tmp_path / FILE)
    other, found = hta.TraceAnalysis(
        trace_files={0: str(copy)}, trace_dir=str(tmp_path)
    ).critical_path_analysis(
        rank=0, annotation="ProfilerStep", instance_id=path.step.number - FIRST_STEP
    )
    assert found
    us = other.get_critical_path_breakdown().groupby("bound_by").duration.sum()
    on_device = sum(path.by_class[name] for name in ON_DEVICE) / 1000
    # It cuts times to whole us, which takes up to 1 us off each of the step's 870 activities.
    assert float(us["gpu_compute_bound"]) == pytest.approx(on_device - 435, abs=870)
    assert float(us.sum()) == pytest.approx(path.ns / 1000, rel=0.001)
