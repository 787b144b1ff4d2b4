"""The time of a replayed run by class; microseconds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import TraceBuilder
from replayed import Hand, by_hand
from scenes import SINGLE, WORKERS, alone, ddp

from analyzer.whatif.account import worst
from analyzer.whatif.edits import EDITS


LENGTHS = st.integers(0, 900)
# Builders are made in the tests: hypothesis would print all their events.
ALONE = st.fixed_dictionaries(
    {name: LENGTHS for name in ("load", "alloc", "batch", "busy", "copy", "optimizer")}
    | {"compute": st.integers(1, 900), "iterator": st.sampled_from([SINGLE, WORKERS])}
)
DDP = st.fixed_dictionaries(
    {"compute": st.lists(st.integers(50, 900), min_size=2, max_size=3), "optimizer": LENGTHS}
    | {name: st.integers(30, 900) for name in ("transfer", "after")}
)


def built(scene: dict[str, Any]) -> Hand:
    builders = [alone(**scene)] if "busy" in scene else ddp(**scene)
    with tempfile.TemporaryDirectory() as folder:
        return by_hand(Path(folder), *builders)


@settings(max_examples=25, deadline=None)
@given(st.one_of(ALONE, DDP), st.lists(st.sampled_from([*EDITS]), max_size=2, unique=True))
def test_classes_tile_the_step_whatever_is_edited(scene: dict[str, Any], edits: list[str]) -> None:
    found = built(scene)
    assert sum(found.classes(*edits).values()) == pytest.approx(found.step(*edits), abs=0.01)


@settings(max_examples=25, deadline=None)
@given(st.one_of(ALONE, DDP))
def test_the_unchanged_run_has_the_recorded_classes(scene: dict[str, Any]) -> None:
    found = built(scene)
    recorded = {n: round(ns / 1000, 3) for n, ns in found.job.mean_ns.items() if ns}
    assert found.classes() == pytest.approx(recorded, abs=0.01)


@pytest.mark.parametrize(
    "scene, edits, classes",
    [
        (
            alone(alloc=70, busy=200, copy=30, optimizer=90),
            [],
            {"compute": 500, "copy": 30, "optimizer": 90, "host_other": 70, "host_sync": 206},
        ),
        (
            alone(alloc=70, busy=200, copy=30, optimizer=90),
            ["allocation", "no-optimizer"],
            {"compute": 500, "copy": 30, "host_sync": 206},
        ),
        (
            alone(load=300, batch=40),
            [],
            {"compute": 500, "data_loading": 340, "host_sync": 7},
        ),
        (
            alone(load=300, batch=40),
            ["no-data-loading"],
            # 1 us more: the empty copy does not begin the step any more, the kernel after it does.
            {"compute": 500, "host_sync": 8},
        ),
    ],
)
def test_one_rank(
    scene: TraceBuilder, edits: list[str], classes: dict[str, float], tmp_path: Path
) -> None:
    assert by_hand(tmp_path, scene).classes(*edits) == classes


@pytest.mark.parametrize(
    "edits, classes",
    [
        ([], {"compute": 600, "comm_wait": 100, "comm_transfer": 100}),
        (["no-straggler"], {"compute": 500, "comm_transfer": 100}),
        (["no-communication"], {"compute": 600}),
        (["transfer"], {"compute": 600, "comm_wait": 100}),
    ],
)
def test_two_ranks_of_which_one_is_200_late(
    edits: list[str], classes: dict[str, float], tmp_path: Path
) -> None:
    assert by_hand(tmp_path, *ddp([300, 500])).classes(*edits) == classes


def test_the_worst_class_is_in_parts_of_the_step() -> None:
    recorded = {"compute": 700.0, "launch": 300.0}
    assert worst({"compute": 690.0, "launch": 350.0}, recorded, ["compute", "launch"]) == 0.05
    assert worst(recorded, recorded, ["compute", "launch"]) == 0
