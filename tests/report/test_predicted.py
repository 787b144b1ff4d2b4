"""One trace at other sizes, and its plan, in the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run
from runs import CREATED, exposed, healthy, loaded

from analyzer import api
from analyzer.config import Settings
from analyzer.ranks.pool import Job
from analyzer.report.build import Request
from analyzer.report.document import Report
from analyzer.report.predicted import ahead
from analyzer.scaling.serial import Setting

DAY = 86_400.0
LIMITS = Settings().thresholds


def job(folder: Path, ranks: int = 2) -> Job:
    """0.9 ms of compute and 0.1 ms of exposed transfer on each of the ranks."""
    return loaded(folder, {f"rank{r}.json": exposed(r, ranks) for r in range(ranks)}).job


def reported(folder: Path, **wish: object) -> Report:
    files = {f"rank{r}.json": exposed(r) for r in (0, 1)}
    request = Request("mine", CREATED, **wish)  # type: ignore[arg-type]
    return api.report(loaded(folder, files), request, Settings())


def test_half_the_compute_is_replayed(tmp_path: Path) -> None:
    report = reported(tmp_path)
    assert report.scaling.basis == "replay"
    at = {row.n: row for row in report.scaling.predict}
    # 0.45 ms of compute, 0.1 ms times (3/4)/(1/2) and hops of a collective of unknown size.
    assert 0.6 < at[4].step_ms < 0.71
    assert at[2].step_ms == pytest.approx(report.steps.wall_ms.mean)


def test_the_curve_bends_in_gpus(tmp_path: Path) -> None:
    knee = reported(tmp_path).scaling.knee
    assert knee is not None
    assert knee.up_to == 1024
    assert knee.half is not None
    assert knee.nine_tenths is not None
    assert 1.0 < knee.nine_tenths < knee.half < 1024


def test_without_a_length_there_is_no_plan(tmp_path: Path) -> None:
    assert reported(tmp_path).plan is None


def test_the_plan_starts_from_this_run(tmp_path: Path) -> None:
    plan = reported(tmp_path, duration_s=10 * DAY, gpus=(2, 4), price=2.0).plan
    assert plan is not None
    assert (plan.n, plan.price) == (2, 2.0)
    today = next(row for row in plan.rows if (row.n, row.fixes) == (2, 0))
    assert today.duration_s == pytest.approx(10 * DAY)
    assert today.cost == pytest.approx(2 * 240 * 2.0)
    assert [road.id for road in plan.roads] == ["amdahl", "gustafson"]


def test_after_fixes_todays_size_takes_what_the_sequence_says(tmp_path: Path) -> None:
    report = reported(tmp_path, duration_s=10 * DAY, gpus=(2,))
    assert report.plan is not None
    assert report.plan.order == [turn.edit for turn in report.whatif.sequence]
    for row in report.plan.rows[1:]:
        turn = report.whatif.sequence[row.fixes - 1]
        assert row.step_ms == pytest.approx(turn.step_ms, rel=1e-6)


@pytest.mark.parametrize(("given", "per_node"), [(None, None), (4, 4)])
def test_gpus_of_a_node_are_as_given_where_the_trace_names_one(
    tmp_path: Path, given: int | None, per_node: int | None
) -> None:
    assert ahead(job(tmp_path), Setting(2), LIMITS, given).network.per_node == per_node


def test_a_replica_of_two_gpus_halves_the_ranks_of_a_node(tmp_path: Path) -> None:
    found = ahead(job(tmp_path, 4), Setting(2), LIMITS, 8)
    assert (found.unit, found.network.per_node) == (2, 4)


def test_a_run_without_a_device_is_predicted_by_its_classes(tmp_path: Path) -> None:
    files = {f"rank{r}.json": healthy(r, without=("kernels", "collectives")) for r in (0, 1)}
    found = ahead(loaded(tmp_path, files).job, Setting(2), LIMITS, None)
    assert found.resize is None
    (step,) = found.steps([], [2])
    assert step == pytest.approx(found.job.step_ns)


def test_the_command_line_plans(tmp_path: Path, ceiling: Run) -> None:
    for rank in (0, 1):
        exposed(rank).write(tmp_path / f"rank{rank}.json")
    ran = ceiling("analyze", tmp_path, "--duration", "30d", "--gpus", "2,4", "--price",
                  "2.5/gpu-hour", "--target", "20d", "--gpus-per-node", "2")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Today the whole run takes 30.0 d on 2 GPUs, 1,440 GPU-hours or 3,600 at 2.5" in ran.line
    assert "20.0 d (1.50x today's speed) is reached on 4 GPUs" in ran.line


@pytest.mark.parametrize("wish", [("--gpus", "8"), ("--price", "2"), ("--target", "3d")])
def test_a_plan_needs_the_length_of_the_run(
    wish: tuple[str, str], folder: Path, ceiling: Run
) -> None:
    ran = ceiling("analyze", folder, *wish)
    assert ran.code == 2
    assert "add it: --duration 30d" in ran.err


@pytest.mark.parametrize("price", ["two", "-1", "2.5/day"])
def test_a_price_that_is_none_is_refused(price: str, folder: Path, ceiling: Run) -> None:
    ran = ceiling("analyze", folder, "--duration", "3d", f"--price={price}")
    assert ran.code == 2
    assert "is no price: write 2.5 or 2.5/gpu-hour" in ran.err
