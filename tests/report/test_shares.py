"""What an edit is worth by shares: the time it removes, as a bound; unknown where that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import exposed, healthy, loaded

from analyzer.ranks.pool import Job
from analyzer.report.document import Edit
from analyzer.report.shares import EDITS, edits


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Two ranks that come together: 900 us of compute and 100 us of transfer a step."""
    return loaded(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)}).job


def edit(job: Job, id: str) -> Edit:
    return next(e for e in edits(job) if e.id == id)


def test_every_edit_is_there_and_what_shares_cannot_tell_says_so(job: Job) -> None:
    assert [e.id for e in edits(job)] == list(EDITS)
    (unknown,) = [e for e in edits(job) if e.step_ms is None]
    assert (unknown.id, unknown.speedup) == ("perfect-overlap", None)
    assert unknown.reason == "not measurable from shares"


def test_a_bound_has_neither_an_interval_nor_what_is_left_after(job: Job) -> None:
    bound = edit(job, "no-communication")
    assert (bound.lo, bound.hi, bound.after, bound.noise) == (None, None, None, False)


def test_a_share_below_two_percent_is_noise(job: Job) -> None:
    noise = {e.id for e in edits(job) if e.noise}
    assert noise == {
        "no-data-loading", "no-launch-overhead", "no-straggler", "no-host-sync", "no-optimizer"
    }  # fmt: skip


def test_an_edit_removes_its_time_and_no_other(job: Job) -> None:
    free = edit(job, "no-communication")
    assert free.step_ms == pytest.approx(0.9)
    assert free.speedup == pytest.approx(1 / 0.9)
    assert edit(job, "no-data-loading").speedup == 1.0


def test_an_edits_curve_ends_at_its_speedup(job: Job) -> None:
    free = edit(job, "no-communication")
    assert [part for part, _ in free.curve] == [0.10, 0.25, 0.50, 1.0]
    assert free.curve[0][1] == pytest.approx(1 / 0.99)
    assert free.curve[-1][1] == free.speedup


def test_twice_the_bandwidth_halves_the_transfer(job: Job) -> None:
    assert edit(job, "bandwidth-x2").step_ms == pytest.approx(0.95)


def test_ranks_that_come_together_wait_for_no_straggler(job: Job) -> None:
    assert edit(job, "no-straggler").speedup == 1.0


def test_without_its_straggler_a_step_loses_what_the_others_wait(tmp_path: Path) -> None:
    # Rank 1 computes 300 us longer than ranks 0 and 2, which wait for it that long.
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    job = loaded(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).job
    assert [late.rank for late in job.together.late] == [1]
    assert job.step_ns == pytest.approx(1_300_000)
    assert job.mean_ns["comm_wait"] == pytest.approx(200_000)
    assert edit(job, "no-straggler").step_ms == pytest.approx(1.0)
    assert edit(job, "bandwidth-x2").step_ms == pytest.approx(1.25)


def test_waits_of_a_lone_rank_are_not_worth_nothing(tmp_path: Path) -> None:
    job = loaded(tmp_path, {"rank0.json": exposed(0)}).job
    for id in ("no-straggler", "bandwidth-x2"):
        assert (edit(job, id).step_ms, edit(job, id).speedup) == (None, None)
        assert "told apart" in edit(job, id).reason


def test_a_job_without_communication_has_no_waits_to_lose(tmp_path: Path) -> None:
    job = loaded(tmp_path, {"rank0.json": healthy(0, 1, without=["collectives"])}).job
    assert edit(job, "no-straggler").speedup == 1.0
    assert edit(job, "bandwidth-x2").speedup == 1.0
