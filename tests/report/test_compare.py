"""What two sides are found to be: the verdict, its cause, how sure, and the fall by class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sides import compared, loading_fixed, run, steps

from analyzer.report.comparison import Comparison


def bars(found: Comparison) -> dict[str, tuple[float, float, float]]:
    return {
        bar.class_: (round(bar.before_ms, 6), round(bar.after_ms, 6), round(bar.delta_ms, 6))
        for bar in found.waterfall
    }


def test_a_step_that_lost_its_waiting_is_faster_because_of_it() -> None:
    found = loading_fixed()
    assert found.verdict.outcome == "faster"
    assert found.verdict.causes == ["data_loading"]
    assert found.verdict.text == (
        "Faster: 100.0 → 86.0 ms per step (14.0 % less), because data loading fell by 14.0 ms."
    )


def test_the_other_way_round_it_is_slower() -> None:
    found = compared(run(steps(data_loading=2.0)), run())
    assert found.verdict.text == (
        "Slower: 86.0 → 100.0 ms per step (16.3 % more), because data loading rose by 14.0 ms."
    )


def test_two_causes_are_named_where_one_is_not_most_of_it() -> None:
    found = compared(run(), run(steps(data_loading=6.0, comm_transfer=6.0)))
    assert found.verdict.causes == ["data_loading", "comm_transfer"]
    assert found.verdict.text.endswith(
        "because data loading fell by 10.0 ms and exposed transfer fell by 8.0 ms."
    )


def test_equal_runs_are_as_long_as_before_and_need_no_more_runs() -> None:
    found = compared(run(), run())
    assert found.verdict.text == "No clear change: 100.0 → 100.0 ms per step (the same)."
    assert found.verdict.causes == []
    assert found.verdict.sure == (
        "95 % interval of the change −0.8 % to +0.8 %, by the steps' own spread. The step is as "
        "long as before, within 2.0 %."
    )


def test_one_run_per_side_claims_only_that_these_runs_differ() -> None:
    sure = loading_fixed().verdict.sure
    assert "One run per side says that these two runs differ, not that the change did it." in sure


def test_several_runs_per_side_are_the_unit() -> None:
    before = [run(steps(compute=60.0 + more)) for more in (-1.0, 0.0, 1.0)]
    after = [run(steps(compute=50.0 + more)) for more in (-1.0, 0.0, 1.0)]
    found = compared(before, after)
    assert found.verdict.ratio is not None
    assert found.verdict.ratio.basis == "runs"
    assert found.verdict.text.startswith("Faster: 100.0 → 90.0 ms")
    assert found.verdict.sure.endswith("5 runs per side would make it a general claim.")
    assert [len(side.runs) for side in (found.before, found.after)] == [3, 3]


def test_how_many_more_runs_would_settle_it_is_told() -> None:
    before = [run(steps(compute=60.0 + more)) for more in (-3.0, 3.0)]
    after = [run(steps(compute=54.0 + more)) for more in (-3.0, 3.0)]
    found = compared(before, after)
    assert found.verdict.outcome == "no-clear-change"
    assert found.runs_needed == 10
    assert found.verdict.sure.endswith("About 8 more runs per side would tell.")


def test_without_steps_enough_there_is_no_interval_and_no_claim() -> None:
    found = compared(run(steps([0.0])), run(steps([0.0], data_loading=0.0)))
    assert found.verdict.outcome == "no-clear-change"
    assert found.verdict.ratio is not None
    assert found.verdict.ratio.lo is None
    assert found.runs_needed is None
    assert found.verdict.sure == (
        "There is no interval: 3 steps of each run are needed, one has 1. Record at least 5 "
        "steps, and several runs of each side."
    )


def test_a_class_that_moves_against_a_faster_step_makes_it_mixed() -> None:
    found = compared(run(), run(steps(data_loading=0.0, compute=69.0)))
    assert found.verdict.outcome == "mixed"
    assert found.verdict.text == (
        "Mixed: step faster (100.0 → 93.0 ms), but data loading fell by 16.0 ms and computing "
        "rose by 9.0 ms."
    )


def test_classes_that_cancel_each_other_are_mixed_and_not_no_change() -> None:
    found = compared(run(), run(steps(data_loading=6.0, compute=70.0)))
    assert found.verdict.outcome == "mixed"
    assert found.verdict.causes == ["data_loading", "compute"]


def test_a_small_move_against_the_step_leaves_it_faster() -> None:
    assert compared(run(), run(steps(data_loading=0.0, compute=64.0))).verdict.outcome == "faster"


def test_every_class_is_before_after_and_difference() -> None:
    assert bars(loading_fixed()) == {
        "compute": (60.0, 60.0, 0.0),
        "comm_transfer": (14.0, 14.0, 0.0),
        "data_loading": (16.0, 2.0, -14.0),
        "launch": (10.0, 10.0, 0.0),
    }


@given(
    st.lists(st.floats(0.0, 1e4), min_size=5, max_size=5),
    st.lists(st.floats(0.0, 1e4), min_size=5, max_size=5),
)
def test_the_changes_of_the_classes_are_the_change_of_the_step(
    old: list[float], new: list[float]
) -> None:
    found = compared(
        run([{"compute": 1.0 + ms, "launch": ms / 3} for ms in old]),
        run([{"compute": 1.0 + ms, "copy": ms / 7} for ms in new]),
    )
    change = found.after.steps.wall_ms.mean - found.before.steps.wall_ms.mean
    assert sum(bar.delta_ms for bar in found.waterfall) == pytest.approx(change, abs=1e-8)


def test_waiting_and_transfer_are_one_where_a_side_could_not_split_them() -> None:
    unsplit = [
        {**row, "comm_transfer": None, "comm_wait": None, "comm_unsplit": 14.0} for row in steps()
    ]
    found = compared(run(), run(unsplit))
    assert bars(found)["comm_unsplit"] == (14.0, 14.0, 0.0)
    assert "comm_transfer" not in bars(found)


def test_a_side_of_several_runs_is_their_mean_and_shows_the_middle_one() -> None:
    runs = [
        run(steps(compute=ms), label=name) for name, ms in (("c", 80.0), ("a", 50.0), ("b", 53.0))
    ]
    side = compared(runs, run()).before
    assert side.steps.wall_ms.mean == pytest.approx(101.0)
    assert side.breakdown.mean_ms["compute"] == pytest.approx(61.0)
    assert side.run.label == "b"
    assert [row.label for row in side.runs] == ["c", "a", "b"]


def test_what_blocks_leaves_no_numbers_to_misread() -> None:
    found = compared(run(), run(world_size=16))
    assert found.verdict.outcome == "not-comparable"
    assert found.verdict.text == "Not comparable: ranks of the job: 8 against 16."
    assert found.verdict.ratio is None
    assert (found.waterfall, found.findings, found.kernels, found.runs_needed) == ([], [], [], None)
    assert not found.comparable.ok


def test_force_compares_what_blocks_and_says_so() -> None:
    found = compared(run(), run(steps(data_loading=2.0), world_size=16), force=True)
    assert found.verdict.outcome == "faster"
    assert (found.comparable.ok, found.comparable.forced) == (False, True)


def test_force_changes_nothing_where_nothing_blocks() -> None:
    assert not compared(run(), run(), force=True).comparable.forced
