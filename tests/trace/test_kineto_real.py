from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_traces import real_trace
from reference import events_of, nanoseconds

from analyzer.trace import kineto
from analyzer.trace.dialect import NOT_WORK
from analyzer.trace.schema import Kind

REAL = [
    "ascend-npu-trace-view/trace_view.json.gz",
    "aorta-mi350-micro",
    "deepseek-dualpipe-ep64",
    "hta-gloo-cpu-rank34of300/trimmed",
    "hta-mtia-inference",
    "hta-recsys-sampled-2of128",
    "hta-resnet-ws1-nanosecond",
    "kineto-fix-pair-h100",
    "kineto-resnet50-workers-torch180",
    "megatron-tp8-a100/megatron_kineto_3.json.gz",
    "torchbench-a100-memcpy",
    "tracelens-hf-h100-mi300",
    "xpu-randn-matmul",
]


def _first_trace(path: Path) -> Path:
    if path.is_file():
        return path
    return min(p for p in path.rglob("*") if p.suffix in (".json", ".gz"))


def _category(event: dict[str, Any]) -> str:
    said = event.get("cat")
    return str(said) if said is not None else (
        "kernel" if "Task Type" in event.get("args", {}) else ""
    )  # fmt: skip


def _is_half(micros: str) -> bool:
    """Whether the text is between two nanoseconds; a float may round it to either."""
    return len(micros.partition(".")[2]) > 3


@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_sums_like_the_json_module_reads_it(name: str) -> None:
    path = _first_trace(real_trace(name))
    events = events_of(path)
    count, total, halves = Counter[str](), Counter[str](), Counter[str]()
    kernels = []
    for event in (e for e in events if e.get("ph") == "X"):
        category = _category(event)
        count[category] += 1
        total[category] += max(0, nanoseconds(event["dur"]))
        halves[category] += _is_half(str(event["dur"]))
        if category.lower() in ("kernel", "mtia_ccp_events") and event["name"] not in NOT_WORK:
            kernels.append(nanoseconds(event["ts"]))
    found = kineto.read(path)
    assert (found.meta.events, found.meta.malformed) == (len(events), 0)
    assert {c.name: c.count for c in found.meta.categories} == count
    for category in found.meta.categories:
        assert abs(category.total_ns - total[category.name]) <= halves[category.name]
    rows = found.device.kind == Kind.KERNEL
    starts = found.device.ts[rows] - (found.meta.base_ns or 0)
    assert starts.tolist() == sorted(kernels)
