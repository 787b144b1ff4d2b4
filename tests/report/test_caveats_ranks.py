"""Defects that only ranks together show: records one of them lost, and groups that never meet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from make import TraceBuilder, trace
from runs import GEMM, STEP, healthy, loaded

from analyzer.config import Thresholds
from analyzer.report.caveats import caveats
from analyzer.report.document import Caveat

Files = Mapping[str, TraceBuilder | str]


def told(folder: Path, files: Files) -> list[Caveat]:
    job = loaded(folder, files)
    return caveats(job.job, job.notes, Thresholds())


def test_records_that_one_rank_lost_are_told(tmp_path: Path) -> None:
    files: dict[str, TraceBuilder | str] = {}
    for rank in range(2):
        built = healthy(rank, without=["collectives"])
        for k in range(7):
            at = k * STEP
            launch = (at + 20, at + 25)
            if (rank, k) != (1, 3):
                built.collective("allreduce", at + 500, at + 800, seq=k + 1, launch=launch)
        files[f"rank{rank}.json"] = built
    (found,) = [c for c in told(tmp_path, files) if c.id == "collectives-unmatched"]
    assert "1 records, of operations of which a rank that holds those before and after lost" in (
        found.text
    )


def paired(pace: Mapping[int, int]) -> Files:
    """Four ranks in two groups of two; a rank's step lasts as its group's slower rank does."""
    files: dict[str, TraceBuilder | str] = {}
    for rank in range(4):
        group = [0, 1] if rank < 2 else [2, 3]
        length = max(pace[r] for r in group)
        built = trace(rank=rank, world_size=4)
        for k in range(7):
            at = k * (length + 100)
            built.step(k + 1, at, at + length + 100).loader(at, at + 1)
            built.kernel(GEMM, at + 20, at + pace[rank], launch=(at + 10, at + 15))
            launch, name = (at + 15, at + 20), str(group[0])
            end = at + length + 100
            built.collective(
                "allreduce", at + pace[rank], end, ranks=group, group=name, seq=k + 1, launch=launch
            )
        files[f"rank{rank}.json"] = built
    return files


def test_groups_that_never_meet_may_take_different_times(tmp_path: Path) -> None:
    found = {caveat.id for caveat in told(tmp_path, paired({0: 900, 1: 900, 2: 1200, 3: 1100}))}
    assert "ranks-disagree" not in found


def test_ranks_that_nothing_joins_should_take_the_same_time(tmp_path: Path) -> None:
    files: dict[str, TraceBuilder | str] = {}
    for rank, length in enumerate((1000, 1500)):
        built = trace(rank=rank, world_size=2)
        for k in range(7):
            at = k * length
            built.step(k + 1, at, at + length).loader(at, at + 1)
            built.kernel(GEMM, at + 20, at + length, launch=(at + 10, at + 15))
        files[f"rank{rank}.json"] = built
    (found,) = [c for c in told(tmp_path, files) if c.id == "ranks-disagree"]
    assert found.text.startswith("Mean steps last 1 to 1.5 ms on different ranks")
