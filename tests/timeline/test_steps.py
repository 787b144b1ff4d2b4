"""Where steps begin and end, which of them count, and why the others do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from analysed import digested, linked, spans
from make import AUTOGRAD, OLD, SCENE_NS, TraceBuilder, trace

from analyzer.config import Settings, Thresholds
from analyzer.digest import RankDigest
from analyzer.timeline.intervals import union
from analyzer.timeline.steps import RULE_DEVICE, RULE_HOST, RULE_WHOLE, Used, find, is_mark
from analyzer.trace.schema import NO_ID

FIRST = "first recorded step: it starts with work that was not recorded"
LAST = "last profiled step: its end may be cut by the end of the recording"
EMPTY = "no device work recorded in it"


def step(scene: TraceBuilder, number: int, kernels: int = 5, lag: int = 0) -> TraceBuilder:
    """Marked for 1000 us; launches at its start, kernels of 100 us from 100 us + `lag` on."""
    at = 1000 * number
    scene.step(number, at, at + 1000)
    for i in range(kernels):
        start = at + 100 + lag + 100 * i
        call = at + 10 + 10 * i
        scene.kernel("gemm", start, start + 100, launch=(call, call + 5))
    return scene


def job(*kernels: int, lag: int = 0) -> TraceBuilder:
    scene = trace()
    for number, count in enumerate(kernels):
        step(scene, number, count, lag)
    return scene


def windows(found: RankDigest) -> dict[int, tuple[float, float]]:
    return {s.index: ((s.start - SCENE_NS) / 1000, (s.end - SCENE_NS) / 1000) for s in found.steps}


def dropped(found: RankDigest) -> dict[int, str]:
    return {s.index: s.dropped for s in found.steps if s.dropped}


def test_a_step_ends_with_the_device_work_launched_in_it(tmp_path: Path) -> None:
    found = digested(job(5, 5, 5), tmp_path)
    assert windows(found) == {0: (0, 600), 1: (600, 1600), 2: (1600, 2600)}
    assert (found.step_rule, found.marked) == (RULE_DEVICE, True)


def test_kernels_that_run_in_the_next_mark_belong_to_the_step_that_launched_them(
    tmp_path: Path,
) -> None:
    found = digested(job(5, 5, 5, lag=1000), tmp_path)
    assert windows(found) == {0: (0, 1600), 1: (1600, 2600), 2: (2600, 3600)}


def test_windows_tile_time(tmp_path: Path) -> None:
    steps = digested(job(5, 5, 0, 5, 5, 1, lag=700), tmp_path).steps
    assert [s.end for s in steps[:-1]] == [s.start for s in steps[1:]]


def test_launches_of_the_autograd_thread_belong_to_the_step_around_them(tmp_path: Path) -> None:
    scene = job(5, 5, 5)
    scene.kernel("backward", 1700, 1800, launch=(1500, 1505), thread=AUTOGRAD)
    assert windows(digested(scene, tmp_path))[1] == (600, 1800)


@pytest.mark.parametrize(
    ("count", "out"),
    [
        (1, {}),
        (2, {}),
        (3, {0: FIRST}),
        (4, {0: FIRST}),
        (5, {0: FIRST}),
        (6, {0: FIRST}),
        (7, {0: FIRST, 6: LAST}),
    ],
)
def test_edge_steps_are_left_out_where_enough_remain(
    tmp_path: Path, count: int, out: dict[int, str]
) -> None:
    assert dropped(digested(job(*[5] * count), tmp_path)) == out


def test_a_last_step_with_a_fifth_of_the_kernels_is_left_out_and_named(tmp_path: Path) -> None:
    found = digested(job(5, 5, 5, 1, lag=1000), tmp_path)
    lost = "only 1 device events where 5 are usual: records were lost"
    assert dropped(found) == {0: FIRST, 3: lost}


def test_a_step_with_four_fifths_of_the_kernels_counts(tmp_path: Path) -> None:
    assert dropped(digested(job(5, 5, 4, 5), tmp_path)) == {0: FIRST}


def test_first_steps_whose_kernels_were_lost_are_left_out_with_the_one_after(
    tmp_path: Path,
) -> None:
    scene = job(0, 0, 5, 5, 5, 5)
    for at in (10, 1010):
        scene.runtime("cudaLaunchKernel", at, at + 5)
    found = digested(scene, tmp_path)
    assert dropped(found) == {0: EMPTY, 1: EMPTY, 2: FIRST}
    assert [s.index for s in found.used] == [3, 4, 5]


def test_marks_projected_on_the_device_are_ignored(tmp_path: Path) -> None:
    scene = job(5, 5, 5)
    for number in range(3):
        at = 1000 * number + 100
        scene.gpu_annotation(f"ProfilerStep#{number}", at, at + 100)
    found = digested(scene, tmp_path)
    assert windows(found) == {0: (0, 600), 1: (600, 1600), 2: (1600, 2600)}


def test_without_marks_the_whole_recording_is_one_step(tmp_path: Path) -> None:
    scene = trace().kernel("a", 100, 200, launch=(0, 5)).kernel("b", 250, 400, launch=(6, 9))
    found = digested(scene, tmp_path)
    assert windows(found) == {0: (100, 400)}
    assert (found.step_rule, found.marked, dropped(found)) == (RULE_WHOLE, False, {})


def test_marks_that_hold_no_launches_are_no_steps(tmp_path: Path) -> None:
    scene = job(0, 0, 0, 0)
    for start in (5000, 5100, 5200):
        scene.kernel("replayed", start, start + 100, launch=(4500, 4505))
    found = digested(scene, tmp_path)
    assert windows(found) == {0: (5000, 5300)}
    assert not found.marked


@pytest.mark.parametrize(("outside", "marked"), [(5, True), (6, False)])
def test_steps_need_half_of_the_work_to_be_launched_in_their_marks(
    tmp_path: Path, outside: int, marked: bool
) -> None:
    scene = job(5)
    for i in range(outside):
        scene.kernel("outside", 2000 + 10 * i, 2005 + 10 * i, launch=(1500 + i, 1501 + i))
    assert digested(scene, tmp_path).marked is marked


def test_a_step_without_device_work_lasts_to_the_end_of_its_mark(tmp_path: Path) -> None:
    found = digested(job(5, 0, 5), tmp_path)
    assert windows(found) == {0: (0, 600), 1: (600, 2000), 2: (2000, 2600)}
    assert dropped(found) == {1: EMPTY}


def test_device_work_knows_the_step_it_was_launched_in(tmp_path: Path) -> None:
    scene = trace().kernel("of no launch", 20, 30)
    scene.step(7, 0, 100).step(9, 100, 200)
    scene.kernel("a", 50, 120, launch=(10, 12)).kernel("b", 130, 190, launch=(90, 92))
    scene.kernel("c", 200, 290, launch=(150, 152)).kernel("d", 300, 310, launch=(250, 252))
    read, launches = linked(scene, tmp_path)
    found = find(read, launches, None, Thresholds())
    assert found.launched.tolist() == [NO_ID, 7, 7, 9, NO_ID]


def test_without_marks_all_work_with_a_launch_is_of_the_one_step(tmp_path: Path) -> None:
    scene = trace().kernel("a", 100, 200, launch=(0, 5)).kernel("b", 250, 400)
    read, launches = linked(scene, tmp_path)
    assert find(read, launches, None, Thresholds()).launched.tolist() == [0, NO_ID]


def test_any_annotation_can_mark_steps(tmp_path: Path) -> None:
    scene = job(5, 5, 5)
    for number in (70, 71):
        at = 1500 * (number - 70)
        scene.annotation(f"train_step {number}", at, at + 1500)
    found = digested(scene, tmp_path, Settings(step_pattern=r"^train_step (\d+)$"))
    assert windows(found) == {70: (0, 1600), 71: (1600, 2600)}


def test_marks_without_a_number_are_counted(tmp_path: Path) -> None:
    scene = job(5, 5)
    scene.annotation("iteration", 0, 1000).annotation("iteration", 1000, 2000)
    found = digested(scene, tmp_path, Settings(step_pattern="^iteration$"))
    assert windows(found) == {0: (0, 600), 1: (600, 1600)}


def test_a_mark_seen_twice_is_one_step(tmp_path: Path) -> None:
    scene = job(5, 5, 5)
    scene.annotation("ProfilerStep#1", 1002, 1900, thread=AUTOGRAD)
    assert sorted(windows(digested(scene, tmp_path))) == [0, 1, 2]


def test_old_exporters_mark_steps_with_an_operator(tmp_path: Path) -> None:
    scene = trace(dialect=OLD)
    for number in range(3):
        step(scene, number)
    assert windows(digested(scene, tmp_path))[2] == (1600, 2600)


def test_a_mark_inside_a_mark_is_the_same_step(tmp_path: Path) -> None:
    scene = job(5, 5)
    scene.annotation("iteration", 0, 1000).annotation("iteration", 5, 900)
    scene.annotation("iteration", 1000, 2000)
    found = digested(scene, tmp_path, Settings(step_pattern="^iteration$"))
    assert windows(found) == {0: (0, 600), 1: (600, 1600)}


def test_a_number_that_comes_again_is_the_same_step(tmp_path: Path) -> None:
    scene = job(5, 5).annotation("ProfilerStep#0", 2000, 2100)
    assert windows(digested(scene, tmp_path)) == {0: (0, 600), 1: (600, 1600)}


@pytest.mark.parametrize("launch", [None, (900, 905)])
def test_the_first_window_begins_when_older_work_is_done(
    tmp_path: Path, launch: tuple[int, int] | None
) -> None:
    scene = trace().kernel("of the step before", 0, 1080, launch=launch)
    step(scene, 1)
    assert windows(digested(scene, tmp_path)) == {1: (1080, 1600)}


def test_the_first_window_begins_with_its_own_work_at_the_latest(tmp_path: Path) -> None:
    scene = trace().kernel("of the step before", 0, 1150, stream=9)
    step(scene, 1)
    assert windows(digested(scene, tmp_path)) == {1: (1100, 1600)}


def test_the_first_window_begins_at_its_mark_on_an_idle_device(tmp_path: Path) -> None:
    scene = trace().kernel("of the step before", 0, 700)
    step(scene, 1)
    assert windows(digested(scene, tmp_path)) == {1: (1000, 1600)}


def test_a_run_without_a_device_is_cut_at_its_marks(tmp_path: Path) -> None:
    scene = trace()
    for number in range(3):
        at = 1000 * number
        scene.step(number, at, at + 900).op("aten::mm", at + 100, at + 800)
    found = digested(scene, tmp_path)
    assert windows(found) == {0: (0, 1000), 1: (1000, 2000), 2: (2000, 2900)}
    assert (found.step_rule, found.timeline) == (RULE_HOST, "host")


def test_a_run_without_device_and_marks_lasts_from_first_to_last_operator(tmp_path: Path) -> None:
    scene = trace().op("aten::mm", 100, 300).op("aten::mm", 500, 700)
    scene.event("overhead", "Profiler start", 0, 50)
    assert windows(digested(scene, tmp_path)) == {0: (100, 700)}


def test_only_the_profilers_own_name_is_a_mark() -> None:
    assert is_mark("ProfilerStep#12")
    assert not is_mark("ProfilerStep")
    assert not is_mark("Optimizer.step#Adam.step")


def test_an_instant_belongs_to_the_used_step_around_it() -> None:
    start, end = np.array([10, 30], np.int64), np.array([20, 40], np.int64)
    used = Used(union(start, end), start, end, np.array([7, 9], np.int64))
    asked = np.array([9, 10, 19, 20, 30, 40], np.int64)
    assert used.step(asked).tolist() == [NO_ID, 7, 7, NO_ID, 9, NO_ID]


def test_no_used_step_holds_no_instant() -> None:
    none = np.zeros(0, np.int64)
    used = Used(union(none, none), none, none, none)
    assert used.step(np.array([5], np.int64)).tolist() == [NO_ID]
    assert spans(used.time.start, used.time.end) == []
