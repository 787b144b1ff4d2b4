"""The replayed what-ifs as a part of the report: ms, speedups, intervals, what is left, reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import exposed, loaded
from studies import gain, studied

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.ranks.pool import Job
from analyzer.report import shares, whatifs
from analyzer.report.document import After, CriticalPath, Edit, Interaction, WhatIf
from analyzer.scaling.serial import Setting
from analyzer.whatif.edits import EDITS, NO_LOADER
from analyzer.whatif.study import CURVE_POINTS, NO_STUDY, Gain, Study, Together, Turn, study

NOTHING_GAINED = dict.fromkeys(EDITS, gain(0.0))
LEFT = {"compute": 60.0, "comm_transfer": 20.0}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Two ranks: 900 us of compute and 100 us of transfer a step; the host runs ahead."""
    return loaded(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)}).job


@pytest.fixture
def late_job(tmp_path: Path) -> Job:
    """Rank 1 computes 300 us longer than ranks 0 and 2, which wait for it that long."""
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    return loaded(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).job


def written(job: Job, of: Study) -> WhatIf:
    return whatifs.whatif(job, of, Setting(job.size), DEFAULT_THRESHOLDS)


def replayed(job: Job) -> WhatIf:
    return written(job, study(job, DEFAULT_THRESHOLDS))


def edit(found: WhatIf, id: str) -> Edit:
    return next(e for e in found.edits if e.id == id)


def every(first: Gain | float) -> dict[str, Gain | float]:
    """All edits; no-communication gains this, the others nothing."""
    nothing: dict[str, Gain | float] = dict.fromkeys(EDITS, 0.0)
    return nothing | {"no-communication": first}


def only(job: Job, of: Gain | float, error: float = 0.0) -> Edit:
    return edit(written(job, studied(every(of), error=error)), "no-communication")


def path(found: WhatIf) -> CriticalPath:
    assert found.path is not None
    return found.path


def test_every_edit_is_there_once_in_the_order_of_the_catalogue(job: Job) -> None:
    assert [e.id for e in replayed(job).edits] == list(EDITS)


def test_a_part_of_the_replayed_step_that_goes_goes_from_the_recorded_step(job: Job) -> None:
    """The study's steps take 100 ms, the job's 1 ms: a quarter goes of either."""
    said = only(job, 0.25)
    assert said.step_ms == pytest.approx(0.75)
    assert said.speedup == pytest.approx(4 / 3)


def test_an_edit_may_make_the_step_longer(job: Job) -> None:
    said = only(job, -0.25)
    assert (said.step_ms, said.speedup, said.noise) == (pytest.approx(1.25), 0.8, True)


def test_the_interval_of_the_speedup_is_that_of_the_share_over_the_steps(job: Job) -> None:
    """20 % of the step, by 1 point more or less: t(4) * 1 / sqrt(5) = 1.2416 points either way."""
    said = only(job, gain(0.2, varying=0.01))
    assert said.lo == pytest.approx(1 / (0.8 + 0.012416), rel=1e-5)
    assert said.hi == pytest.approx(1 / (0.8 - 0.012416), rel=1e-5)
    assert said.reason == ""


def test_too_few_steps_have_no_interval_but_the_reason(job: Job) -> None:
    said = only(job, gain(0.2, steps=3))
    assert (said.speedup, said.lo, said.hi) == (1.25, None, None)
    assert said.reason == "no interval: 5 steps are needed, the trace has 3"


def test_the_curve_is_the_speedup_when_a_part_of_the_cause_goes(job: Job) -> None:
    said = only(job, 0.5)
    assert said.curve == [(0.1, 1 / 0.95), (0.25, 1 / 0.875), (0.5, 1 / 0.75), (1.0, 2.0)]


def test_a_replayed_curve_rises_to_the_speedup_of_the_whole(late_job: Job) -> None:
    for said in replayed(late_job).edits:
        if said.step_ms is not None and not said.noise:
            assert [part for part, _ in said.curve] == list(CURVE_POINTS)
            assert said.curve == sorted(said.curve, key=lambda point: point[1])
            assert said.curve[-1][1] == pytest.approx(said.speedup)


def test_what_is_left_of_the_run_is_told_with_both_fractions_and_ceilings(job: Job) -> None:
    """20 of 80 ms do not scale: of one GPU's step of 2 * 60 + 20 ms a seventh."""
    assert only(job, gain(0.2, classes=LEFT)).after == After(
        f=0.25,
        s=pytest.approx(1 / 7),
        ceiling_today=4.0,
        ceiling_one_gpu=pytest.approx(7.0),
    )


def test_a_run_that_is_no_longer_bounded_says_so(job: Job) -> None:
    assert only(job, 0.2).after == After(
        f=0.0,
        s=0.0,
        ceiling_today=None,
        ceiling_one_gpu=None,
        reason="not bounded by this trace",
    )


def test_weak_scaling_has_no_ceilings_after_an_edit_and_says_so(job: Job) -> None:
    weak = Setting(job.size, "weak")
    found = whatifs.whatif(job, studied(every(0.2)), weak, DEFAULT_THRESHOLDS)
    after = edit(found, "no-communication").after
    assert after is not None
    assert (after.f, after.s, after.ceiling_today, after.ceiling_one_gpu) == (None,) * 4
    assert "weak scaling" in after.reason


def test_an_edit_after_which_nothing_is_left_has_no_speedup_but_the_reason(job: Job) -> None:
    said = only(job, gain(1.0))
    assert (said.step_ms, said.speedup, said.lo, said.hi) == (0.0, None, None, None)
    assert [part for part, _ in said.curve] == [0.1, 0.25, 0.5]
    assert said.reason == shares.NOTHING_LEFT
    assert said.after is not None
    assert (said.after.f, said.after.reason) == (None, shares.NOTHING_LEFT)


@pytest.mark.parametrize(
    ("share", "error", "noise"),
    [(0.021, 0.0, False), (0.019, 0.0, True), (0.05, 0.06, True), (0.07, 0.06, False)],
)
def test_a_gain_under_two_percent_or_under_the_replays_error_is_noise(
    job: Job, share: float, error: float, noise: bool
) -> None:
    assert only(job, share, error).noise is noise


def test_a_gain_whose_lower_end_is_within_noise_is_noise(job: Job) -> None:
    assert only(job, gain(0.1, varying=0.08)).noise
    assert not only(job, gain(0.1, varying=0.06)).noise


def test_an_edit_that_the_traces_cannot_answer_says_why(job: Job) -> None:
    gains = every(0.1)
    del gains["no-data-loading"]
    found = written(job, studied(gains, refused={"no-data-loading": NO_LOADER}))
    assert edit(found, "no-data-loading") == Edit(
        id="no-data-loading", step_ms=None, speedup=None, reason=NO_LOADER
    )


def test_a_lone_rank_is_not_told_what_its_waits_are_worth(tmp_path: Path) -> None:
    found = replayed(loaded(tmp_path, {"rank0.json": exposed(0)}).job)
    refused = [e for e in found.edits if e.step_ms is None]
    assert [e.id for e in refused] == ["no-straggler", "bandwidth-x2"]
    assert all("could not be joined" in e.reason for e in refused)


@pytest.mark.parametrize(("error", "quality"), [(0.05, "good"), (0.051, "fair")])
def test_the_quality_is_that_of_the_unchanged_run(job: Job, error: float, quality: str) -> None:
    found = written(job, studied(every(0.2), error=error))
    assert (found.basis, found.replay_error, found.quality) == ("replay", error, quality)
    assert (found.class_error, found.reason) == (error, "")


def test_a_poor_replay_gives_way_to_shares_and_says_how_poor_it_is(job: Job) -> None:
    found = written(job, Study(0.12, 0.2, "not measurable: 12 % off"))
    assert (found.basis, found.replay_error, found.class_error) == ("share", 0.12, 0.2)
    assert (found.quality, found.reason) == ("poor", "not measurable: 12 % off")
    assert found.edits == shares.edits(job)


def test_without_a_replay_there_is_no_quality_but_the_reason(job: Job) -> None:
    found = written(job, NO_STUDY)
    assert (found.basis, found.replay_error, found.quality) == ("share", None, None)
    assert found.reason == NO_STUDY.reason
    assert (found.sequence, found.interaction, found.path) == ([], None, None)


def test_the_replay_of_an_ideal_run_has_no_error(job: Job) -> None:
    found = replayed(job)
    assert (found.basis, found.quality) == ("replay", "good")
    assert found.replay_error == pytest.approx(0.0, abs=1e-12)
    assert found.class_error == pytest.approx(0.0, abs=1e-12)
    assert (found.steps, found.ranks) == ([2, 3, 4, 5, 6], [0, 1])


def test_what_the_replay_supposes_is_told(job: Job) -> None:
    assert any("inferred from the calls" in text for text in replayed(job).assumptions)
    recorded = written(job, Study(0.0, 0.0, "", recorded_waits=True, gains=NOTHING_GAINED))
    assert any("was recorded" in text for text in recorded.assumptions)


@pytest.mark.parametrize(("linked", "said"), [(0.98, True), (0.99, False)])
def test_work_without_a_launch_record_is_told_where_it_is_more_than_a_percent(
    job: Job, linked: float, said: bool
) -> None:
    found = written(job, Study(0.0, 0.0, "", linked=linked, gains=NOTHING_GAINED))
    text = "2.0 % of the work lacks the record of its launch"
    assert any(one.startswith(text) for one in found.assumptions) is said


def test_ranks_that_are_not_replayed_are_counted(job: Job) -> None:
    some = written(job, Study(0.0, 0.0, "", ranks=[0], gains=NOTHING_GAINED))
    assert any(text.startswith("1 of 2 ranks are replayed") for text in some.assumptions)
    assert not any("ranks are replayed" in text for text in replayed(job).assumptions)


def test_turns_take_their_gain_off_the_step_that_is_left(job: Job) -> None:
    turns = [Turn("no-straggler", 0.6, LEFT), Turn("no-communication", 0.5, {"compute": 50.0})]
    first, second = written(job, studied(every(0.2), turns=turns)).sequence
    assert (first.edit, first.step_ms, first.gain_ms) == (
        "no-straggler",
        pytest.approx(0.6),
        pytest.approx(0.4),
    )
    assert (second.edit, second.step_ms, second.gain_ms) == (
        "no-communication",
        pytest.approx(0.5),
        pytest.approx(0.1),
    )
    assert (first.after.f, second.after.f) == (0.25, 0.0)


def test_a_replayed_sequence_goes_from_todays_step_to_its_last(late_job: Job) -> None:
    """Rank 1 costs 300 of 1,300 us; the transfer is next, but for 1 us from step to step."""
    turns = replayed(late_job).sequence
    assert turns[0].edit == "no-straggler"
    assert [turn.step_ms for turn in turns] == pytest.approx([1.0, 0.901])
    gained = sum(turn.gain_ms for turn in turns)
    assert late_job.step_ns / 1e6 - gained == pytest.approx(turns[-1].step_ms)


def test_the_first_pair_is_told_with_what_it_gains_beyond_the_sum(job: Job) -> None:
    pair = Together("no-straggler", "no-communication", both=0.5, beyond=-0.1)
    found = written(job, studied(every(0.2), together=pair))
    assert found.interaction == Interaction(
        first="no-straggler",
        second="no-communication",
        both_ms=pytest.approx(0.5),
        ms=pytest.approx(-0.1),
    )


def test_the_path_of_a_late_rank_is_its_computing_then_the_transfer(late_job: Job) -> None:
    found = path(replayed(late_job))
    on = {c.class_: (c.ms, c.slack_ms) for c in found.classes}
    assert on["compute"] == (pytest.approx(1.2), 0.0)
    assert on["comm_transfer"] == (pytest.approx(0.1), pytest.approx(0.0, abs=1e-9))
    assert on["comm_wait"] == (0.0, pytest.approx(0.2))
    assert {r.rank: r.ms for r in found.ranks}[1] == pytest.approx(1.2)


def test_classes_and_ranks_of_the_path_sum_to_its_step(late_job: Job) -> None:
    found = path(replayed(late_job))
    assert found.step_ms == pytest.approx(1.3)
    assert sum(c.ms for c in found.classes) == pytest.approx(found.step_ms)
    assert sum(r.ms for r in found.ranks) == pytest.approx(found.step_ms)
    assert sum(p.ms for p in found.places) == pytest.approx(found.step_ms)
    assert found.step in [2, 3, 4, 5, 6]
