"""Reports of runs before and after a change, with only what a comparison reads.

A run is a list of steps in ms by class; everything else says what a test wants it to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.report.compare import compare
from analyzer.report.comparison import Comparison
from analyzer.report.document import (
    Breakdown,
    Clock,
    Collective,
    Edit,
    Estimate,
    Finding,
    Flags,
    Gain,
    InputFile,
    Kernel,
    Op,
    RankRow,
    Ranks,
    Report,
    Run,
    Scaling,
    StepRow,
    Steps,
    Tool,
    Verdict,
    WallTime,
    WhatIf,
)

CREATED = "2026-03-14T09:26:53Z"
# One step of the worked case, ms; the five that are recorded differ in their launches.
STEP = {"compute": 60.0, "comm_transfer": 14.0, "data_loading": 16.0, "launch": 10.0}
JITTER = (-0.4, 0.2, 0.4, -0.3, 0.1)


def steps(jitter: Sequence[float] = JITTER, **changes: float) -> list[dict[str, float]]:
    """Steps of the worked case with these classes set otherwise; `jitter` goes to the launches."""
    mean = {**STEP, **changes}
    return [{**mean, "launch": mean["launch"] + more} for more in jitter]


def run(
    rows: Sequence[Mapping[str, float | None]] | None = None,
    *,
    label: str = "run",
    findings: Sequence[Finding] = (),
    edits: Sequence[Edit] = (),
    **facts: Any,
) -> Report:
    """The report of a run; `facts` replace those of its `run`."""
    rows = steps() if rows is None else rows
    full = [{name: row.get(name, 0.0) for name in CLASSES} for row in rows]
    mean = {
        name: None
        if any(row[name] is None for row in full)
        else float(np.mean([row[name] or 0.0 for row in full]))
        for name in CLASSES
    }
    wall = [sum(ms or 0.0 for ms in row.values()) for row in full]
    step = float(np.mean(wall))
    about = Run(
        label=label,
        world_size=8,
        ranks_present=[0],
        hosts=["node-a"],
        gpu="NVIDIA H100 80GB HBM3",
        backend="nccl",
        torch="2.9.1",
        flags=Flags(),
        strategy=["DDP"],
        files=[InputFile(name="rank0.json", rank=0, bytes=1_000, events=100)],
    )
    return Report(
        schema_version=1,
        tool=Tool(name="ceiling", version="0.1.0"),
        created=CREATED,
        verdict=Verdict(text="Nothing stands out.", finding=None, confidence="high"),
        run=replace(about, **facts),
        quality=[],
        steps=Steps(
            used=list(range(len(rows))),
            dropped=[],
            wall_ms=WallTime(
                mean=step, median=float(np.median(wall)), lo=None, hi=None, n=len(rows)
            ),
            rule="marks",
        ),
        breakdown=Breakdown(
            timeline="device",
            classes=list(CLASSES),
            groups={group: list(names) for group, names in GROUPS.items()},
            mean_ms=mean,
            group_ms={g: sum(mean[c] or 0.0 for c in names) for g, names in GROUPS.items()},
            hidden_comm_ms=0.0,
            per_rank=[RankRow(rank=0, step_ms=step, ms=mean, hidden_comm_ms=0.0)],
            per_step=[StepRow(step=i, ms=row) for i, row in enumerate(full)],
        ),
        scaling=scaling(),
        whatif=WhatIf(basis="replay", replay_error=0.01, edits=list(edits)),
        findings=list(findings),
        idle=[],
        ranks=Ranks(late=[], clock=Clock(aligned=None, residual_us=None), pop={}, reason=""),
        collectives=[collective()],
        kernels=[kernel("gemm", 10.0, 40.0), kernel("softmax", 20.0, 20.0)],
        unknown=[],
        passed=[],
        thresholds={},
        ops=[Op(name="aten::mm", count=10.0, ms=40.0)],
    )


def scaling(f: float = 0.24) -> Scaling:
    s = f / (f + 8 * (1 - f))
    return Scaling(
        mode="strong",
        n=8,
        f=Estimate(value=f, lo=0.9 * f, hi=1.1 * f),
        s=Estimate(value=s),
        P=1 - s,
        ceiling_today=Estimate(value=1 / f),
        ceiling_one_gpu=Estimate(value=1 / s),
        speedup=6.0,
        efficiency=0.75,
        gustafson=None,
        roles={},
        assumptions=[],
        predict=[],
    )


def kernel(name: str, count: float, ms: float) -> Kernel:
    return Kernel(name=name, kind="matrix", count=count, ms=ms, share=ms / 100)


def collective(count: float = 6.0, mbytes: float = 140.0) -> Collective:
    return Collective(
        kind="all_reduce",
        group="default",
        group_size=8,
        count=count,
        bytes=mbytes * 1e6,
        ms=38.0,
        wait_ms=None,
        transfer_ms=None,
        exposed_ms=14.0,
        algbw_gbs=None,
        busbw_gbs=None,
    )


def finding(
    id: str, ms: float, *, class_: str = "data_loading", whatif: str | None = None
) -> Finding:
    """A bottleneck of the 100 ms step, worth its share."""
    return Finding(
        id=id,
        title=f"The step waits: {id}",
        class_=class_,
        ms=ms,
        share=ms / 100,
        gain=Gain(speedup=1 / (1 - ms / 100), lo=None, hi=None, basis="replay"),
        whatif=whatif,
        ceiling_after=4.0,
        because="It does.",
        so="Change it.",
        check="Compare.",
        where=[],
        confidence="high",
    )


def compared(
    before: Report | Sequence[Report],
    after: Report | Sequence[Report],
    *,
    force: bool = False,
    labels: tuple[str, str] = ("before", "after"),
) -> Comparison:
    """The comparison of one run or several on each side."""
    return compare(
        [before] if isinstance(before, Report) else before,
        [after] if isinstance(after, Report) else after,
        labels=labels,
        created=CREATED,
        limits=DEFAULT_THRESHOLDS,
        force=force,
    )


def loading_fixed() -> Comparison:
    """The worked comparison: 100 -> 86 ms, because data loading fell from 16 to 2 ms."""
    edit = Edit(id="no-data-loading", step_ms=84.0, speedup=1 / 0.84, lo=1.18, hi=1.2)
    before = run(
        findings=[
            finding("data-loading", 16.0, whatif="no-data-loading"),
            finding("kernel-launch", 10.0, class_="launch"),
        ],
        edits=[edit],
    )
    after = run(steps(data_loading=2.0), findings=[finding("kernel-launch", 10.0, class_="launch")])
    return compared(before, replace(after, kernels=[kernel("gemm", 12.0, 42.0)]))
