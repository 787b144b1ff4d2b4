"""When the next batch is there: when it was asked for, or when the workers had made it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from replayed import Point, by_hand, host, pooled
from scenes import SINGLE, WORKERS, alone

from analyzer.classify.replayable import Call
from analyzer.ranks.member import Member
from analyzer.whatif.loading import arrivals

LAUNCH, LOADER = Call.LAUNCH, Call.LOADER


@pytest.fixture
def member(tmp_path: Path) -> Member:
    """A rank with worker processes."""
    return pooled(tmp_path, [alone(load=600, iterator=WORKERS)]).members[0]


def known(member: Member, *points: Point) -> list[float | None]:
    """Arrival at each point, us; None where the batch is made when it is asked for."""
    (found,) = arrivals([(member, host(*points), 0)])
    return [None if np.isnan(ns) else ns / 1000 for ns in found.tolist()]


def test_a_loop_that_waits_for_its_workers_gets_batches_at_their_pace(member: Member) -> None:
    points = (LOADER, 1000, 800), (LAUNCH, 1500), (LOADER, 2500, 600), (LAUNCH, 3000)
    assert known(member, *points) == [1000, None, 2500, None]


def test_arrivals_are_on_the_common_clock(member: Member) -> None:
    (found,) = arrivals([(member, host((LOADER, 1000, 800)), -300_000)])
    assert found.tolist() == [700_000]


def test_a_batch_that_was_there_has_no_arrival_of_its_own(member: Member) -> None:
    points = (LOADER, 1000, 800), (LOADER, 2000, 499), (LOADER, 3000, 700)
    assert known(member, *points) == [1000, None, 3000]


@pytest.mark.parametrize("batches, bound", [(4, True), (5, False)])
def test_one_slow_batch_in_five_is_no_pace(batches: int, bound: bool, member: Member) -> None:
    quick = [(LOADER, 2000.0 + 1000 * i, 0) for i in range(batches - 2)]
    slow = (LOADER, 2000.0 + 1000 * batches, 900)
    assert (known(member, (LOADER, 1000, 0), *quick, slow)[-1] is not None) is bound


@pytest.mark.parametrize("step, bound", [(11_000, True), (13_000, False)])
def test_little_of_the_time_is_no_pace(step: int, bound: bool, member: Member) -> None:
    points = [(LOADER, 1000 + step * i, 600) for i in range(5)]
    assert (known(member, *points)[-1] is not None) is bound


def test_workers_pace_is_not_changed_by_a_faster_loop(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone(load=600, iterator=WORKERS, optimizer=90))
    assert (found.step(), found.step("no-optimizer")) == (1197, 1197)


def test_a_loader_in_the_process_takes_its_time_after_a_faster_step(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone(load=600, iterator=SINGLE, optimizer=90))
    assert (found.step(), found.step("no-optimizer")) == (1197, 1107)


def test_workers_that_were_ahead_take_no_more_of_a_faster_step(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone(load=400, iterator=WORKERS, optimizer=90))
    assert found.step("no-optimizer") == found.step() - 90
