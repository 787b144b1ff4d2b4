"""Device work by the op that launched it."""

from __future__ import annotations

from pathlib import Path

from make import trace
from runs import GEMM, healthy, loaded

from analyzer.report.ops import NO_OP, ops


def test_the_work_of_an_op_is_per_rank_and_step(tmp_path: Path) -> None:
    job = loaded(tmp_path, {f"rank{rank}.json": healthy(rank) for rank in range(2)}).job
    rows = {row.name: (row.count, round(row.ms, 6)) for row in ops(job)}
    assert rows["aten::linear"] == (1.0, 1.0)


def test_work_outside_of_ops_is_told_as_such(tmp_path: Path) -> None:
    built = trace(rank=0, world_size=1)
    for k in range(6):
        built.step(k, 1000 * k, 1000 * k + 1000)
        built.kernel(GEMM, 1000 * k + 20, 1000 * k + 920, launch=(1000 * k + 5, 1000 * k + 10))
    (row,) = ops(loaded(tmp_path, {"rank0.json": built}).job)
    assert (row.name, row.count, round(row.ms, 6)) == (NO_OP, 1.0, 0.9)


def test_a_run_without_a_device_has_none(tmp_path: Path) -> None:
    built = trace(rank=0, world_size=1)
    for k in range(6):
        built.step(k, 1000 * k, 1000 * k + 1000).op("aten::mm", 1000 * k + 10, 1000 * k + 900)
    assert ops(loaded(tmp_path, {"rank0.json": built}).job) == []
