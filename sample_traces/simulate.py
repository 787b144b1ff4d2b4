"""Makes the simulated sample traces and the truth about them: `simulate.py OUT_DIR [SAMPLE...]`.

Same bytes on every run: seeded, integer nanoseconds, no clock is read.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from job import Scenario
from schedule import Rank, simulate
from truth import CLASSES, classes, windows
from writing import absolute_ns, trace_text

SCENARIOS = (
    Scenario(
        name="healthy-ddp-4gpu",
        layers=6,
        profiled_steps=6,
        kernel_scale=1.0,
        dispatch_us=14,
        layers_per_bucket=1,
        bucket_elements=7_087_872,
        last_bucket_elements=786_432,
        bus_gb_per_s=200,
        batch_bytes=131_072,
        loader_prep_us=90_000,
        loader_workers=4,
        loss_read="lagged",
    ),
    Scenario(
        name="loader-bound-4gpu",
        layers=5,
        profiled_steps=6,
        kernel_scale=0.6,
        dispatch_us=14,
        layers_per_bucket=1,
        bucket_elements=7_087_872,
        last_bucket_elements=786_432,
        bus_gb_per_s=200,
        batch_bytes=38_000_000,
        loader_prep_us=240_000,
        loader_workers=4,
        loss_read="item",
    ),
    Scenario(
        name="launch-bound-4gpu",
        layers=8,
        profiled_steps=6,
        kernel_scale=0.012,
        dispatch_us=16,
        layers_per_bucket=4,
        bucket_elements=524_288,
        last_bucket_elements=65_536,
        bus_gb_per_s=100,
        batch_bytes=16_384,
        loader_prep_us=3_000,
        loader_workers=4,
        loss_read="none",
        step_jitter=0.0,
    ),
    Scenario(
        name="slow-rank-4gpu",
        layers=6,
        profiled_steps=6,
        kernel_scale=0.5,
        dispatch_us=14,
        layers_per_bucket=1,
        bucket_elements=7_087_872,
        last_bucket_elements=7_087_872,
        bus_gb_per_s=36,
        batch_bytes=131_072,
        loader_prep_us=90_000,
        loader_workers=4,
        loss_read="lagged",
        compute_factor={2: 1.4},
    ),
)


def truth_document(scenario: Scenario, ranks: list[Rank]) -> dict[str, Any]:
    """What is true of the run, without the first profiled step: its beginning is not recorded."""
    steps = range(scenario.first_step + 1, scenario.first_step + scenario.profiled_steps)
    rows: list[dict[str, Any]] = []
    for rank in ranks:
        for step, (start, end) in windows(rank).items():
            if step in steps:
                parts = classes(rank, (start, end))
                hidden = parts.pop("hidden_comm")
                row: dict[str, Any] = {
                    "rank": rank.number,
                    "step": step,
                    "start_ns": absolute_ns(start),
                }
                row |= {"end_ns": absolute_ns(end), "hidden_comm_ns": hidden}
                rows.append(row | {"classes_ns": parts})
    total = sum(row["end_ns"] - row["start_ns"] for row in rows)
    return {
        "sample": scenario.name,
        "world_size": scenario.ranks,
        "profiled_steps": [scenario.first_step, *steps],
        "measured_steps": list(steps),
        "late_ranks": sorted(scenario.compute_factor),
        "mean_step_ms": round(total / len(rows) / 1e6, 6),
        "mean_ms": {
            name: round(sum(row["classes_ns"][name] for row in rows) / len(rows) / 1e6, 6)
            for name in CLASSES
        },
        "windows": rows,
    }


def write_sample(scenario: Scenario, folder: Path) -> None:
    """Write rankN.json.gz of all ranks and truth.json into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks = simulate(scenario)
    mark = f"ProfilerStep#{scenario.first_step}"
    for rank in ranks:
        first = next(event.start for event in rank.host if event.name == mark)
        data = trace_text(rank, first - 2_000).encode()
        path = folder / f"rank{rank.number}.json.gz"
        path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))
    text = json.dumps(truth_document(scenario, ranks), indent=1)
    (folder / "truth.json").write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the named samples, or all of them, below the first argument."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    wanted = arguments[1:] or [scenario.name for scenario in SCENARIOS]
    for scenario in SCENARIOS:
        if scenario.name in wanted:
            write_sample(scenario, Path(arguments[0]) / scenario.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
