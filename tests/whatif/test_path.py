"""What a replayed step waited for, all the way back; microseconds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import TraceBuilder
from replayed import Hand, by_hand
from scenes import SINGLE, WORKERS, alone, ddp

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.whatif.account import account
from analyzer.whatif.path import Path as Critical
from analyzer.whatif.path import critical_path


def critical(found: Hand) -> Critical:
    """The path of the recorded run."""
    run = found.run()
    step = found.watch.steps[len(found.watch.steps) // 2]
    step_ns = account(found.graph, run, found.today, found.watch, DEFAULT_THRESHOLDS, [step])
    path = critical_path(found.graph, run, found.watch, step, step_ns)
    assert path is not None
    return path


def path_of(folder: Path, *builders: TraceBuilder) -> Critical:
    return critical(by_hand(folder, *builders))


def micros(ns: object) -> dict[object, float]:
    assert hasattr(ns, "items")
    return {name: value / 1000 for name, value in ns.items() if value}


@settings(max_examples=25, deadline=None)
@given(
    st.fixed_dictionaries(
        {name: st.integers(0, 900) for name in ("load", "alloc", "batch", "busy", "optimizer")}
        | {"iterator": st.sampled_from([SINGLE, WORKERS])}
    )
)
def test_the_path_of_one_rank_is_as_long_as_its_step(scene: dict[str, int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = by_hand(Path(folder), alone(**scene))  # type: ignore[arg-type]
    path = critical(found)
    assert path.ns / 1000 == pytest.approx(found.step(), abs=0.01)
    assert sum(path.by_class.values()) == pytest.approx(path.ns)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(50, 900), min_size=2, max_size=4), st.integers(30, 400))
def test_the_path_of_several_ranks_is_as_long_as_the_step(
    compute: list[int], transfer: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = by_hand(Path(folder), *ddp(compute, transfer=transfer))
    path = critical(found)
    assert path.ns / 1000 == pytest.approx(found.step(), abs=0.01)
    assert sum(path.by_rank.values()) == pytest.approx(path.ns)


def test_the_path_is_of_the_middle_step(tmp_path: Path) -> None:
    assert path_of(tmp_path, alone()).step.number == 4


def test_one_rank_by_class(tmp_path: Path) -> None:
    path = path_of(tmp_path, alone(load=300, batch=40, optimizer=90))
    # After the sync the host takes 1 us until it loads, 1 us from there to the launch: that, too,
    # passes only since the queue had been drained.
    assert micros(path.by_class) == {
        "compute": 500, "optimizer": 90, "data_loading": 340, "host_sync": 7
    }  # fmt: skip


def test_allocation_on_the_path_is_other_host_time(tmp_path: Path) -> None:
    path = path_of(tmp_path, alone(alloc=70, busy=200))
    found = micros(path.by_class)
    assert (found["host_other"], found["host_sync"], found["compute"]) == (70, 206, 500)


def test_a_host_that_runs_ahead_is_not_on_the_path(tmp_path: Path) -> None:
    path = path_of(tmp_path, *ddp([300, 500]))
    assert micros(path.by_class) == {"compute": 700, "comm_transfer": 100}


def test_the_path_goes_over_the_late_rank(tmp_path: Path) -> None:
    path = path_of(tmp_path, *ddp([300, 500, 310]))
    # From the collective back it is the late rank's 500.
    assert path.by_rank[1] >= 500_000
    assert sum(path.by_rank.values()) == 800_000
    assert "comm_wait" not in path.by_class


def test_the_others_wait_off_the_path(tmp_path: Path) -> None:
    path = path_of(tmp_path, *ddp([300, 500]))
    assert micros(path.slack) == {"comm_wait": 100}


def test_places_are_kernels_with_their_time_on_the_path(tmp_path: Path) -> None:
    path = path_of(tmp_path, *ddp([300, 500], optimizer=50))
    assert [(p.time_class, p.ns / 1000, p.count) for p in path.places] == [
        ("compute", 700, 2), ("comm_transfer", 100, 1), ("optimizer", 50, 1)
    ]  # fmt: skip
    assert [p.name for p in path.places][2] == "adam"


def test_the_operator_that_launched_it_is_named(tmp_path: Path) -> None:
    built = alone(busy=200)
    for k in range(7):
        built.op("aten::mm", 706 * k + 200, 706 * k + 202)
    place = path_of(tmp_path, built).places[0]
    assert (place.op, place.ns) == ("aten::mm", 500_000)
