"""Jobs of the simulator behind the samples, each rank's trace with a clock and time base of its
own, digested and pooled as the command line does.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analyzer.config import Settings
from analyzer.digest import digest
from analyzer.ranks.pool import Job, Member, pool

sys.path.append(str(Path(__file__).parents[2] / "sample_traces"))
job = importlib.import_module("job")
simulator = importlib.import_module("simulate")
writing = importlib.import_module("writing")

SMALL: dict[str, Any] = {
    "layers": 2,
    "profiled_steps": 6,
    "kernel_scale": 0.5,
    "dispatch_us": 14,
    "layers_per_bucket": 1,
    "bucket_elements": 7_087_872,
    "last_bucket_elements": 786_432,
    "bus_gb_per_s": 100,
    "batch_bytes": 131_072,
    "loader_prep_us": 1_000,
    "loader_workers": 4,
    "loss_read": "lagged",
}


def simulate(
    folder: Path,
    *,
    clock_ns: Mapping[int, int] | None = None,
    base_ns: Mapping[int, int] | None = None,
    **what: Any,
) -> tuple[Job, dict[str, Any]]:
    """The pooled job and the truth about it; a rank's clock is ahead by `clock_ns`, and its file's
    base is later by `base_ns` (which changes the numbers written and no time).
    """
    scenario = job.Scenario(name="test", **SMALL | what)
    ranks = simulator.simulate(scenario)
    mark = f"ProfilerStep#{scenario.first_step}"
    members = []
    for rank in ranks:
        first = next(event.start for event in rank.host if event.name == mark)
        base = (base_ns or {}).get(rank.number, 0)
        text = moved(
            writing.trace_text(rank, first - 2_000), (clock_ns or {}).get(rank.number, 0), base
        )
        path = folder / f"rank{rank.number}.json"
        path.write_text(text)
        members.append(Member(rank.number, 0, digest(path, Settings())))
    return pool(members), simulator.truth_document(scenario, ranks)


def moved(text: str, clock_ns: int, base_ns: int) -> str:
    """The trace by a clock that is ahead, counted from another base."""

    def later(found: re.Match[str]) -> str:
        ns = int(found[1]) * 1000 + int(found[2]) + clock_ns - base_ns
        return f'"ts": {ns // 1000}.{ns % 1000:03d}'

    base = f'"baseTimeNanoseconds": {writing.BASE_NS}'
    text = text.replace(base, f'"baseTimeNanoseconds": {writing.BASE_NS + base_ns}')
    return re.sub(r'"ts": (\d+)\.(\d{3})', later, text)
