"""What one rank's work waited for, and the latencies read off its trace; times in microseconds."""

from __future__ import annotations

import pytest
from replayed import Point, Row, host, work

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, WHOLE_DEVICE, Call
from analyzer.trace.schema import NO_ID, Int64
from analyzer.whatif.dependencies import Edge, depend

COMPUTE, COMM = Activity.COMPUTE, Activity.COMMUNICATION
LAUNCH, SYNC, WAIT = Call.LAUNCH, Call.SYNC, Call.STREAM_WAIT


def micros(column: Int64) -> list[float]:
    return [ns / 1000 for ns in column.tolist()]


def test_a_collective_follows_the_collective_before_it_on_its_stream() -> None:
    found = work((0, 9, 1, 0), (9, 20, 1, 1), (20, 30, 1, 2), (30, 40, 1, 3),
                 activity=[COMPUTE, COMM, COMPUTE, COMM])  # fmt: skip
    calls = host(*((LAUNCH, i) for i in range(4)))
    assert depend(found, calls).previous.tolist() == [NO_ID, NO_ID, 0, 1]


def test_latency_is_the_median_from_launch_to_start_on_an_idle_device() -> None:
    rows: list[Row] = [(100 * i + d, 100 * i + 50, 1, i) for i, d in enumerate((4, 6, 9, 30))]
    found = depend(work(*rows), host(*((LAUNCH, 100 * i) for i in range(4))))
    assert micros(found.latency) == [7.5] * 4


def test_copies_have_a_latency_of_their_own() -> None:
    rows: list[Row] = [(100 * i + (4 if i % 2 else 12), 100 * i + 50, 1, i) for i in range(6)]
    found = work(*rows, activity=[BATCH, COMPUTE, Activity.COPY, COMPUTE, BATCH, COMPUTE])
    calls = host(*((LAUNCH, 100 * i) for i in range(6)))
    assert micros(depend(found, calls).latency) == [12, 4] * 3


def test_queued_work_tells_nothing_of_the_latency() -> None:
    found = work((2, 500, 1, 0), (500, 600, 1, 1), (600, 700, 1, 2), (700, 800, 1, 3))
    calls = host(*((LAUNCH, i) for i in range(4)))
    assert micros(depend(found, calls).latency) == [5] * 4


def test_the_gap_is_the_mean_of_queued_work() -> None:
    found = work((2, 100, 1, 0), (101, 200, 1, 1), (202, 300, 1, 2), (306, 400, 1, 3))
    calls = host(*((LAUNCH, i) for i in range(4)))
    assert micros(depend(found, calls).gap) == [0, 3, 3, 3]


def test_work_that_came_late_tells_nothing_of_the_gap() -> None:
    found = work((5, 10, 1, 0), (105, 110, 1, 1), (205, 210, 1, 2), (305, 310, 1, 3))
    calls = host(*((LAUNCH, 100 * i) for i in range(4)))
    assert micros(depend(found, calls).gap) == [0, 1, 1, 1]


def test_overlapping_work_of_one_stream_keeps_its_overlap() -> None:
    found = work((5, 50, 1, 0), (30, 90, 1, 1))
    assert micros(depend(found, host((LAUNCH, 0), (LAUNCH, 1))).gap) == [0, -20]


def test_work_without_a_launch_record_starts_as_far_behind_as_it_did() -> None:
    found = work((5, 50, 1, NO_ID), (73, 90, 1, NO_ID), (91, 95, 1, 0))
    assert micros(depend(found, host((LAUNCH, 60))).gap) == [0, 23, 1]


def test_an_edge_is_delayed_as_the_waits_that_show_are() -> None:
    found = work((5, 50, 1, 0), (53, 80, 2, 1), activity=[COMPUTE, COMM])
    assert depend(found, host((LAUNCH, 0), (LAUNCH, 1))).edges == [Edge(0, 1, 3000)]


def test_a_wait_that_does_not_show_has_no_delay() -> None:
    found = work((5, 50, 1, 0), (105, 130, 2, 1), activity=[COMPUTE, COMM])
    assert depend(found, host((LAUNCH, 0), (LAUNCH, 100))).edges == [Edge(0, 1, 0)]


@pytest.mark.parametrize("stream, said", [(2, True), (NO_ID, False)])
def test_it_says_whether_waits_were_recorded(stream: int, said: bool) -> None:
    found = work((5, 50, 1, 0), (53, 80, 2, 2), activity=[COMPUTE, COMM])
    calls = host((LAUNCH, 0), (WAIT, 1), (LAUNCH, 2), stream=[NO_ID, stream, NO_ID])
    assert depend(found, calls).recorded is said


@pytest.mark.parametrize(
    "point, awaited, rows",
    [
        pytest.param((SYNC, 96, 80), WHOLE_DEVICE, [1, 2], id="all_lanes"),
        pytest.param((SYNC, 96, 80), NO_ID, [2], id="the_last_to_end"),
        pytest.param((SYNC, 54, 40), 1, [1], id="as_recorded"),
        pytest.param((SYNC, 16, 0), WHOLE_DEVICE, None, id="nothing_was_over"),
        pytest.param((SYNC, 16, 0), NO_ID, None, id="it_returned_at_once"),
        pytest.param((SYNC, 16, 0), 1, None, id="staged_by_the_driver"),
    ],
)
def test_what_a_blocking_call_waited_for(
    point: Point, awaited: int, rows: list[int] | None
) -> None:
    found = work((30, 40, 1, 0), (40, 50, 1, 1), (42, 90, 2, 2), (100, 110, 1, 4))
    calls = host((LAUNCH, 3), (LAUNCH, 4), (LAUNCH, 5), point, (LAUNCH, 98),
                 awaited=[NO_ID, NO_ID, NO_ID, awaited, NO_ID])  # fmt: skip
    assert depend(found, calls).awaited.get(3) == rows


def test_a_call_returns_as_long_after_the_work_as_calls_that_blocked_did() -> None:
    found = work((5, 50, 1, 0), (105, 150, 1, 2), (205, 250, 1, 4))
    calls = host((LAUNCH, 0), (SYNC, 54, 40), (LAUNCH, 100), (SYNC, 158, 40), (LAUNCH, 200),
                 (SYNC, 256, 40))  # fmt: skip
    assert depend(found, calls).returning == 6000


def test_a_call_that_did_not_block_tells_nothing_of_the_return() -> None:
    found = work((5, 50, 1, 0), (205, 210, 1, 2))
    calls = host((LAUNCH, 0), (SYNC, 100, 1), (LAUNCH, 200))
    assert depend(found, calls).returning == 5000
