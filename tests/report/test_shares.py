"""What an edit is worth by shares: the time it removes, as a bound; unknown where that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import exposed, healthy, reported

from analyzer.report.document import Edit, Report
from analyzer.report.shares import EDITS


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Two ranks that come together: 900 us of compute and 100 us of transfer a step."""
    return reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)})


def edit(report: Report, id: str) -> Edit:
    return next(e for e in report.whatif.edits if e.id == id)


def test_every_edit_is_there_and_what_shares_cannot_tell_says_so(report: Report) -> None:
    assert [e.id for e in report.whatif.edits] == list(EDITS)
    assert report.whatif.basis == "share"
    (unknown,) = [e for e in report.whatif.edits if e.step_ms is None]
    assert (unknown.id, unknown.speedup) == ("perfect-overlap", None)
    assert "replay" in unknown.reason


def test_an_edit_removes_its_time_and_no_other(report: Report) -> None:
    free = edit(report, "no-communication")
    assert free.step_ms == pytest.approx(0.9)
    assert free.speedup == pytest.approx(1 / 0.9)
    assert edit(report, "no-data-loading").speedup == 1.0


def test_an_edits_curve_ends_at_its_speedup(report: Report) -> None:
    free = edit(report, "no-communication")
    assert [part for part, _ in free.curve] == [0.10, 0.25, 0.50, 1.0]
    assert free.curve[0][1] == pytest.approx(1 / 0.99)
    assert free.curve[-1][1] == free.speedup


def test_twice_the_bandwidth_halves_the_transfer(report: Report) -> None:
    assert edit(report, "bandwidth-x2").step_ms == pytest.approx(0.95)


def test_ranks_that_come_together_wait_for_no_straggler(report: Report) -> None:
    assert edit(report, "no-straggler").speedup == 1.0


def test_without_its_straggler_a_step_loses_what_the_others_wait(tmp_path: Path) -> None:
    # Rank 1 computes 300 us longer than ranks 0 and 2, which wait for it that long.
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    report = reported(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)})
    assert [late.rank for late in report.ranks.late] == [1]
    assert report.steps.wall_ms.mean == pytest.approx(1.3)
    assert report.breakdown.mean_ms["comm_wait"] == pytest.approx(0.2)
    assert edit(report, "no-straggler").step_ms == pytest.approx(1.0)
    assert edit(report, "bandwidth-x2").step_ms == pytest.approx(1.25)


def test_waits_of_a_lone_rank_are_not_worth_nothing(tmp_path: Path) -> None:
    report = reported(tmp_path, {"rank0.json": exposed(0)})
    for id in ("no-straggler", "bandwidth-x2"):
        assert (edit(report, id).step_ms, edit(report, id).speedup) == (None, None)
        assert "told apart" in edit(report, id).reason


def test_a_job_without_communication_has_no_waits_to_lose(tmp_path: Path) -> None:
    report = reported(tmp_path, {"rank0.json": healthy(0, 1, without=["collectives"])})
    assert edit(report, "no-straggler").speedup == 1.0
    assert edit(report, "bandwidth-x2").speedup == 1.0
