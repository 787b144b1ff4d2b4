"""What each fix is worth, alone, in part and in turn, and when nothing is replayed at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from make import TraceBuilder, trace
from replayed import pooled, studied
from runs import GEMM, reported
from scenes import STEPS, alone, ddp, held

from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.whatif.edits import EDITS, NO_LOADER
from analyzer.whatif.study import CURVE_POINTS, Gain, Study, faster, study


def gain(base: Sequence[float], edited: Sequence[float]) -> Gain:
    return Gain(np.array(base), np.array(edited), {}, [])


def late() -> list[TraceBuilder]:
    """Today 850: two ranks wait 200 for the third's 500, transfer 100, then 200 and optimizer."""
    return ddp([300, 300, 500], optimizer=50)


def test_a_gain_is_the_part_of_the_mean_step_that_goes() -> None:
    assert gain([100, 200, 300], [100, 140, 210]).share == 0.25


def test_an_edit_that_lengthens_the_step_has_a_negative_gain() -> None:
    assert gain([100, 100], [110, 110]).share == pytest.approx(-0.1)


def test_a_gain_that_is_the_same_in_all_steps_is_sure() -> None:
    found = gain([100] * 5, [80] * 5)
    assert found.interval == ((found.share, found.share), "")
    assert found.sure == pytest.approx(0.2)


def test_the_interval_is_of_the_steps_gains() -> None:
    """Shares .1 .2 .3 .2 .2 with mean .2 and standard deviation .0707; t(4) is 2.776."""
    ends, reason = gain([100] * 5, [90, 80, 70, 80, 80]).interval
    assert reason == ""
    assert ends == pytest.approx((0.2 - 0.0878, 0.2 + 0.0878), abs=0.0001)


def test_few_steps_give_no_interval_but_the_reason(tmp_path: Path) -> None:
    found = gain([100, 100], [80, 80])
    assert found.interval == (None, "no interval: 5 steps are needed, the trace has 2")
    assert found.sure == found.share


@pytest.mark.parametrize("share, speedup", [(0, 1), (0.5, 2), (1, float("inf"))])
def test_a_share_that_goes_is_a_speedup(share: float, speedup: float) -> None:
    assert faster(share) == speedup


def test_noise_is_the_larger_of_two_percent_and_the_replays_error() -> None:
    assert Study(0.01, 0.0, "").noise(DEFAULT_THRESHOLDS) == 0.02
    assert Study(0.03, 0.0, "").noise(DEFAULT_THRESHOLDS) == 0.03


def test_every_edit_that_can_be_answered_has_a_gain(tmp_path: Path) -> None:
    found = studied(tmp_path, *late())
    assert found.replayed
    assert found.refused == {"no-data-loading": NO_LOADER}
    assert set(EDITS) - set(found.gains) == {"no-data-loading"}
    assert (found.error, found.class_error) == (0, 0)
    assert (found.ranks, [s.number for s in found.steps]) == ([0, 1, 2], [2, 3, 4, 5, 6])


def test_a_curve_is_the_speedup_at_a_part_of_the_cause(tmp_path: Path) -> None:
    curve = studied(tmp_path, *late()).gains["no-straggler"].curve
    assert [part for part, _ in curve] == [*CURVE_POINTS]
    assert [speedup for _, speedup in curve] == pytest.approx([
        850 / 830, 850 / 800, 850 / 750, 850 / 650
    ])  # fmt: skip


def test_an_edit_that_changes_nothing_has_a_flat_curve(tmp_path: Path) -> None:
    curve = studied(tmp_path, *late()).gains["no-host-sync"].curve
    assert curve == [(part, 1.0) for part in CURVE_POINTS]


def test_the_classes_after_an_edit_are_the_step_after_it(tmp_path: Path) -> None:
    classes = studied(tmp_path, *late()).gains["no-straggler"].classes
    found = {name: ns for name, ns in classes.items() if ns}
    assert found == pytest.approx(
        {"compute": 500_000, "optimizer": 50_000, "comm_transfer": 100_000}
    )


def test_the_best_edit_is_taken_then_the_best_after_it(tmp_path: Path) -> None:
    turns = studied(tmp_path, *late()).turns
    assert [turn.edit for turn in turns] == ["no-straggler", "no-optimizer", "bandwidth-x2"]
    left = [850 * turn.left for turn in turns]
    assert left == pytest.approx([650, 600, 600 - 42.5])


def test_the_sequence_sums_to_what_all_gain_together(tmp_path: Path) -> None:
    found = studied(tmp_path, *late())
    lefts = [1.0, *(turn.left for turn in found.turns)]
    gains = [a - b for a, b in pairwise(lefts)]
    assert sum(gains) == pytest.approx(1 - found.turns[-1].left)
    for turn in found.turns:
        assert sum(turn.classes.values()) == pytest.approx(850_000 * turn.left)


def test_the_sequence_ends_before_noise(tmp_path: Path) -> None:
    """After the straggler the optimizer's 10 of 610 are less than 2 % of today's 810."""
    found = studied(tmp_path, *ddp([300, 300, 500], transfer=100, optimizer=10))
    assert [turn.edit for turn in found.turns] == ["no-straggler", "bandwidth-x2"]


def test_the_bound_of_all_communication_is_not_in_the_sequence(tmp_path: Path) -> None:
    found = studied(tmp_path, *ddp([300, 300], transfer=400))
    assert found.gains["no-communication"].share == pytest.approx(400 / 900)
    assert "no-communication" not in [turn.edit for turn in found.turns]


def test_two_causes_in_a_row_gain_their_sum(tmp_path: Path) -> None:
    together = studied(tmp_path, *late()).together
    assert together is not None
    assert (together.first, together.second) == ("no-straggler", "no-optimizer")
    assert together.both == pytest.approx(250 / 850)
    assert together.beyond == pytest.approx(0, abs=1e-9)


def test_two_edits_that_free_the_same_time_gain_less_than_their_sum(tmp_path: Path) -> None:
    """Either the host does not wait or it takes no time: 205 or 201 of the 706, both 206."""
    together = studied(tmp_path, alone(busy=200)).together
    assert together is not None
    assert {together.first, together.second} == {"no-host-sync", "no-launch-overhead"}
    assert together.beyond == pytest.approx(-201 / 706, abs=1e-5)


def test_two_causes_side_by_side_gain_more_than_their_sum(tmp_path: Path) -> None:
    """The host takes 500 a step, the device 80 and the optimizer's 400 meanwhile."""
    built = trace()
    for k in range(STEPS):
        at = 500 * k + 490
        built.step(k + 1, at - 490, at + 10).op("aten::busy", at - 490, at)
        built.kernel(GEMM, at, at + 80, launch=(at, at + 1))
        built.annotation("Optimizer.step#AdamW.step", at + 2, at + 4)
        built.kernel("adam", at + 80, at + 480, launch=(at + 2, at + 3))
    found = studied(tmp_path, built)
    assert found.gains["no-launch-overhead"].share == pytest.approx(20 / 500)
    assert found.gains["no-optimizer"].share == 0
    assert found.together is not None
    assert found.together.both == pytest.approx(420 / 500)
    assert found.together.beyond == pytest.approx(400 / 500)


def test_the_slack_of_the_path_is_of_its_own_step(tmp_path: Path) -> None:
    """Rank 1 is 200 late in the middle step only: 100 of waiting there, the mean over two ranks."""
    built = [trace(r, 2) for r in range(2)]
    at = 100
    for k in range(STEPS):
        called, longest = 10 * k, 500 if k == 3 else 300
        for rank, us in zip(built, (300, longest), strict=True):
            rank.step(k + 1, called, called + 9)
            rank.kernel(GEMM, at, at + us, launch=(called, called + 1))
            rank.collective(
                "allreduce", at + us, at + longest + 100, launch=(called + 2, called + 3)
            )
        at += longest + 100
    found = studied(tmp_path, *built).path
    assert found is not None
    assert (found.step.number, found.slack["comm_wait"]) == (4, 100_000)


def test_a_replay_that_is_far_off_is_not_used(tmp_path: Path) -> None:
    found = studied(tmp_path, held(300))
    assert found.reason == (
        "not measurable: the replay of the unchanged run is 29.9 % off the recorded step"
    )
    assert found.error == pytest.approx(0.299)
    assert (found.replayed, found.gains, found.turns, found.path) == (False, {}, [], None)


def test_the_report_falls_back_to_shares_and_says_why(tmp_path: Path) -> None:
    found = reported(tmp_path, {"rank0.json": held(300)}).whatif
    assert (found.basis, found.quality) == ("share", "poor")
    assert "29.9 % off the recorded step" in found.reason


@pytest.mark.parametrize("us, quality", [(100, "fair"), (71, "fair"), (50, "good"), (0, "good")])
def test_the_report_says_how_good_the_replay_is(us: int, quality: str, tmp_path: Path) -> None:
    """1 us of what was held is taken for the switch between queued kernels."""
    found = reported(tmp_path, {"rank0.json": held(us)}).whatif
    assert (found.basis, found.quality) == ("replay", quality)
    assert found.replay_error == pytest.approx(max(0, us - 1) / 1000)


def test_stricter_limits_refuse_a_fair_replay(tmp_path: Path) -> None:
    job = pooled(tmp_path, [held(71)])
    assert study(job, Thresholds(replay_poor_share=0.06)).reason.startswith("not measurable")
    assert study(job, DEFAULT_THRESHOLDS).replayed
