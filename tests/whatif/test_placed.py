"""The critical path lies where its work is in the recording, in microseconds of the scene."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from make import BASE_NS, SCENE_NS
from replayed import by_hand
from scenes import alone, ddp

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.whatif.account import account
from analyzer.whatif.path import Path as Critical
from analyzer.whatif.path import critical_path
from analyzer.whatif.placed import Placed


def pieces(folder: Path, *builders: object) -> tuple[Critical, list[Placed]]:
    found = by_hand(folder, *builders)  # type: ignore[arg-type]
    run = found.run()
    step = found.watch.steps[len(found.watch.steps) // 2]
    step_ns = account(found.graph, run, found.today, found.watch, DEFAULT_THRESHOLDS, [step])
    path = critical_path(found.graph, run, found.watch, step, step_ns)
    assert path is not None
    return path, path.pieces


def test_pieces_follow_each_other_and_sum_to_the_path(tmp_path: Path) -> None:
    path, found = pieces(tmp_path, alone(load=300, optimizer=90))
    assert [p.end for p in found[:-1]] == [p.start for p in found[1:]]
    assert sum(p.end - p.start for p in found) == pytest.approx(path.ns, abs=1000)


def test_a_kernel_on_the_path_lies_where_it_was_recorded(tmp_path: Path) -> None:
    built = alone(compute=500)
    recorded = [
        (e["ts"], e["ts"] + e["dur"], e["name"])
        for e in map(json.loads, built.events)
        if e.get("cat") == "kernel"
    ]
    _, found = pieces(tmp_path, built)
    kernels = [p for p in found if p.time_class == "compute"]
    assert kernels
    for piece in kernels:
        assert any(
            (piece.start - BASE_NS) / 1000 == pytest.approx(start)
            and (piece.end - BASE_NS) / 1000 == pytest.approx(end)
            and piece.name == name
            for start, end, name in recorded
        )


def test_what_the_host_is_waited_for_lies_on_the_host(tmp_path: Path) -> None:
    _, found = pieces(tmp_path, alone(load=300, batch=40))
    sides = {(p.time_class, p.on_host, bool(p.name)) for p in found}
    # The loader's time and the batch's copy are one class, on two sides.
    assert {("compute", False, True), ("data_loading", True, True)} <= sides
    assert ("data_loading", False, True) in sides


def test_the_path_of_several_ranks_goes_on_with_the_last_to_come(tmp_path: Path) -> None:
    _, found = pieces(tmp_path, *ddp([200, 700], transfer=100))
    slow = [p for p in found if p.rank == 1 and p.time_class == "compute"]
    assert sum(p.end - p.start for p in slow) >= 700_000
    assert all(p.start > SCENE_NS for p in found)
