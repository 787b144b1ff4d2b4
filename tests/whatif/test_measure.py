"""How long the steps of a replayed run are: from end to end of the last work launched in each."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import trace
from replayed import by_hand
from runs import GEMM
from scenes import STEPS, alone, ddp

from analyzer.classify import program


def test_the_first_and_the_last_step_are_not_measured(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone())
    assert [step.number for step in found.watch.steps] == [2, 3, 4, 5, 6]


def test_a_window_begins_where_the_one_before_it_ends(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone(busy=200))
    for edits in ([], ["no-launch-overhead"], ["no-host-sync"]):
        ((_, windows),) = found.watch.edges(found.run(found.edited(*edits)))
        edges = [windows[step] for step in found.watch.steps]
        assert [a for a, _ in edges[1:]] == [b for _, b in edges[:-1]]


def test_a_step_is_the_mean_over_its_ranks(tmp_path: Path) -> None:
    """Apart from each other one rank's steps are 500 and the other's 700."""
    found = by_hand(tmp_path, *ddp([300, 500]))
    run = found.run(found.edited("no-communication"))
    first, second = (windows for _, windows in found.watch.edges(run))
    for step in found.watch.steps:
        assert first[step][1] - first[step][0] == 500_000
        assert second[step][1] - second[step][0] == 700_000
    assert found.watch.lengths(run).tolist() == [600_000] * 5


def test_steps_beyond_those_kept_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_STEPS", 3)
    found = by_hand(tmp_path, alone())
    assert [step.number for step in found.watch.steps] == [2, 3, 4]


def test_work_launched_outside_of_all_marks_belongs_to_no_step(tmp_path: Path) -> None:
    built = trace()
    for k in range(STEPS):
        at = 1000 * k
        built.step(k + 1, at, at + 500).kernel(GEMM, at, at + 600, launch=(at, at + 1))
        built.kernel("between", at + 700, at + 800, launch=(at + 700, at + 701))
    found = by_hand(tmp_path, built)
    ((_, windows),) = found.watch.edges(found.run())
    assert [(b - a) / 1000 for a, b in windows.values()] == [1000] * 5
    assert windows[found.watch.steps[0]][1] / 1000 == 1600


def test_without_marks_the_whole_recording_is_one_step(tmp_path: Path) -> None:
    built = trace().kernel(GEMM, 5, 505, launch=(0, 1)).kernel(GEMM, 705, 905, launch=(700, 701))
    found = by_hand(tmp_path, built)
    assert found.steps() == [900]
