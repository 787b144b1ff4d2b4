"""Which work waits for which: one scene per rule; rows are numbered in order of start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replayed import host, work

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import Call, Host, Work
from analyzer.trace.schema import NO_ID
from analyzer.whatif.streams import TOLERANCE_NS, StreamWaits, is_comm

COMPUTE, OPTIMIZER = Activity.COMPUTE, Activity.OPTIMIZER
COMM = Activity.COMMUNICATION
LAUNCH, WAIT = Call.LAUNCH, Call.STREAM_WAIT


def pairs(work: Work, host: Host, held: Sequence[int] = ()) -> set[tuple[int, int]]:
    lane = work.stream * 2 + is_comm(work)
    chosen = np.isin(np.arange(len(lane)), list(held))
    return set(StreamWaits(work, host, lane, work.ts + work.dur, chosen).pairs())


def test_a_recorded_wait_holds_back_the_next_work_of_its_stream() -> None:
    found = work((0, 50, 1, 0), (5, 60, 3, 1), (50, 90, 2, 4), (52, 70, 3, 3))
    calls = host(
        (LAUNCH, 0), (LAUNCH, 1), (WAIT, 2), (LAUNCH, 3), (LAUNCH, 4),
        stream=[-1, -1, 2, -1, -1], awaited=[-1, -1, 0, -1, -1],
    )  # fmt: skip
    assert pairs(found, calls) == {(0, 2)}


def test_a_wait_in_front_of_a_collective_is_for_the_compute_before_it() -> None:
    found = work((0, 20, 1, 0), (20, 50, 1, 1), (50, 90, 2, 3), activity=[COMPUTE, COMPUTE, COMM])
    calls = host((LAUNCH, 0), (LAUNCH, 1), (WAIT, 2), (LAUNCH, 3))
    assert pairs(found, calls) == {(1, 2)}


def test_a_wait_in_front_of_compute_is_for_the_last_collective_of_each_stream() -> None:
    found = work(
        (0, 10, 2, 0), (10, 30, 2, 1), (12, 40, 3, 2), (15, 25, 4, 3), (40, 90, 1, 5),
        activity=[COMM, COMM, COMM, COMPUTE, COMPUTE],
    )  # fmt: skip
    calls = host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 2), (LAUNCH, 3), (WAIT, 4), (LAUNCH, 5))
    assert pairs(found, calls) == {(1, 4), (2, 4)}


def test_without_a_collective_a_wait_is_for_the_other_streams() -> None:
    found = work((0, 10, 1, 0), (5, 30, 2, 1), (30, 90, 1, 3))
    calls = host((LAUNCH, 0), (LAUNCH, 1), (WAIT, 2), (LAUNCH, 3))
    assert pairs(found, calls) == {(1, 2)}


def test_a_wait_is_for_the_next_launch_of_its_own_thread() -> None:
    found = work((0, 30, 2, 0), (5, 60, 1, 2), (60, 90, 1, 3), activity=[COMM, COMPUTE, COMPUTE])
    calls = host((LAUNCH, 0), (WAIT, 1), (LAUNCH, 2), (LAUNCH, 3), thread=[1, 1, 2, 1])
    assert pairs(found, calls) == {(0, 2)}


def test_without_wait_calls_a_collective_waits_for_the_compute_launched_before_it() -> None:
    found = work((0, 20, 1, 0), (20, 50, 2, 1), (20, 60, 1, 2), activity=[COMPUTE, COMM, COMPUTE])
    calls = host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 2))
    assert pairs(found, calls) == {(0, 1)}


BOTH = [COMPUTE, COMM, COMPUTE, COMPUTE, COMM, COMPUTE]


@pytest.mark.parametrize(
    "last, waited",
    [
        pytest.param(90, {(1, 2), (4, 5)}, id="never_overlaps"),
        pytest.param(85, set(), id="once_overlapped"),
        pytest.param(140, {(1, 2), (4, 5)}, id="once_far_behind"),
    ],
)
def test_without_wait_calls_what_follows_waits_for_collectives_that_never_overlap_it(
    last: int, waited: set[tuple[int, int]]
) -> None:
    found = work(
        (0, 20, 1, 0), (20, 40, 2, 1), (41, 50, 1, 2), (50, 70, 1, 3), (70, 90, 2, 4),
        (last, 150, 1, 5), activity=BOTH,
    )  # fmt: skip
    calls = host(*((LAUNCH, i) for i in range(6)))
    assert pairs(found, calls) == {(0, 1), (3, 4)} | waited


def test_without_wait_calls_a_kind_never_seen_to_be_waited_for_is_not() -> None:
    found = work((0, 20, 1, 0), (20, 40, 2, 1), (71, 90, 1, 2), activity=[COMPUTE, COMM, COMPUTE])
    assert pairs(found, host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 70))) == {(0, 1)}


def test_the_first_optimizer_work_of_a_step_waits_for_its_collectives() -> None:
    found = work(
        (0, 10, 2, 0), (20, 40, 2, 1), (25, 45, 3, 2), (100, 110, 1, 4), (110, 120, 1, 5),
        activity=[COMM, COMM, COMM, OPTIMIZER, OPTIMIZER], step=[1, 2, 2, 2, 2],
    )  # fmt: skip
    calls = host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 2), (WAIT, 3), (LAUNCH, 98), (LAUNCH, 99),
                 stream=[-1, -1, -1, 9, -1, -1])  # fmt: skip
    assert pairs(found, calls) == {(1, 3), (2, 3)}


def test_an_optimizer_waits_for_no_collective_launched_after_it() -> None:
    found = work((0, 10, 1, 0), (10, 40, 2, 1), activity=[OPTIMIZER, COMM])
    calls = host((LAUNCH, 0), (LAUNCH, 1), (WAIT, 2))
    assert pairs(found, calls) == set()


@pytest.mark.parametrize("start, waited", [(50, True), (79, True), (81, False), (48, False)])
def test_work_that_starts_when_other_work_ends_was_held_by_it(start: int, waited: bool) -> None:
    found = work((0, 50, 1, 0), (start, 90, 2, 1))
    assert pairs(found, host((LAUNCH, 0), (LAUNCH, 1)), held=[1]) == ({(0, 1)} if waited else set())


def test_work_was_not_held_by_its_own_lane_but_by_another_that_ended_before() -> None:
    found = work((0, 40, 1, 0), (0, 50, 2, 1), (51, 90, 2, 2))
    assert pairs(found, host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 2)), held=[2]) == {(0, 2)}


def test_work_that_its_launch_explains_was_not_held() -> None:
    found = work((0, 50, 1, 0), (51, 90, 2, 1))
    assert pairs(found, host((LAUNCH, 0), (LAUNCH, 47))) == set()


def test_collectives_and_compute_of_one_stream_keep_its_order() -> None:
    found = work((0, 20, 1, 0), (20, 40, 1, 1), (40, 50, 1, 2), activity=[COMPUTE, COMM, COMPUTE])
    calls = host((LAUNCH, 0), (LAUNCH, 1), (LAUNCH, 2), (WAIT, 3))
    assert pairs(found, calls) == {(0, 1), (1, 2)}


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Work, Host, list[int]]:
    """Any work and host without records of what was waited for."""
    count = draw(st.integers(1, 12))
    numbers = st.integers(0, 60)
    calls = [WAIT if draw(st.integers(0, 3)) == 0 else LAUNCH for _ in range(2 * count)]
    launches = [i for i, call in enumerate(calls) if call == LAUNCH]
    rows = []
    for _ in range(count):
        start, point = draw(numbers), draw(st.sampled_from([NO_ID, *launches]))
        rows.append((start, start + draw(numbers), draw(st.integers(1, 3)), point))
    activity = [draw(st.sampled_from([COMPUTE, COMM, OPTIMIZER])) for _ in rows]
    held = draw(st.lists(st.integers(0, count - 1)))
    return (
        work(*sorted(rows), activity=activity),
        host(*((c, i) for i, c in enumerate(calls))),
        held,
    )


@given(scenes())
def test_nothing_that_ends_later_is_a_dependency(scene: tuple[Work, Host, list[int]]) -> None:
    found, calls, held = scene
    end = found.ts + found.dur
    assert all(end[a] <= found.ts[b] + TOLERANCE_NS for a, b in pairs(found, calls, held))
