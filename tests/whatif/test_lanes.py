"""When a launch finds room in the queue, and what launched work without a record; microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from make import TraceBuilder, trace
from msgspec import structs
from replayed import Hand, Row, by_hand, hand, host, pooled, work
from runs import GEMM
from scenes import STEPS, alone

from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import Call, Program
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job
from analyzer.trace.schema import NO_ID
from analyzer.whatif.dependencies import depend
from analyzer.whatif.lanes import Rank, room

COMPUTE, COMM = Activity.COMPUTE, Activity.COMMUNICATION
ROWS: list[Row] = [(0, 10, 1, 0), (10, 20, 1, 1), (20, 30, 1, 2), (30, 40, 1, 3)]


@pytest.fixture
def member(tmp_path: Path) -> Member:
    return pooled(tmp_path, [alone()]).members[0]


def rooms(
    member: Member,
    rows: Sequence[Row],
    calls: Sequence[float],
    *,
    queue: int,
    activity: Sequence[int] = (),
) -> list[int]:
    """The slot that makes room for each call; slots are numbered from 100 on."""
    table = work(*rows, activity=[*activity] or [COMPUTE] * len(rows))
    points = host(*((Call.LAUNCH, at) for at in calls))
    program = Program(names=[], ops=[], linked=1.0, queue=queue, work={}, host={})
    slots = np.arange(len(rows)) + 100
    return room(Rank(member, program, table, points, depend(table, points), 0, slots)).tolist()


def test_a_launch_needs_the_work_over_that_fills_the_queue_before_it(member: Member) -> None:
    assert rooms(member, ROWS, [0, 9, 19, 29], queue=2) == [NO_ID, NO_ID, 100, 101]


def test_a_queue_that_is_never_full_always_has_room(member: Member) -> None:
    assert rooms(member, ROWS, [0, 9, 19, 29], queue=4) == [NO_ID] * 4


def test_work_that_was_not_over_in_life_makes_no_room(member: Member) -> None:
    assert rooms(member, ROWS, [0, 1, 9, 29], queue=2) == [NO_ID, NO_ID, NO_ID, 101]


def test_collectives_take_no_room(member: Member) -> None:
    kinds = [COMPUTE, COMM, COMM, COMPUTE]
    assert rooms(member, ROWS, [0, 9, 19, 29], queue=2, activity=kinds) == [NO_ID] * 4
    assert rooms(member, ROWS, [0, 9, 19, 29], queue=1, activity=kinds) == [*[NO_ID] * 3, 100]


def test_a_launch_of_much_work_needs_room_for_its_first(member: Member) -> None:
    rows: list[Row] = [(0, 10, 1, 0), (10, 20, 1, 1), (20, 30, 1, 1), (30, 40, 1, 1)]
    assert rooms(member, rows, [0, 11], queue=1) == [NO_ID, 100]


def paced() -> TraceBuilder:
    """Six kernels of 100 us, each launched as the one before it ends."""
    built = trace()
    for i in range(6):
        at = 100 * i
        built.kernel(GEMM, at, at + 100, launch=(at, at + 1)).op("aten::busy", at + 1, at + 100)
    return built


def queueing(job: Job, queue: int) -> Hand:
    """The job on a device that queues so much work."""
    (member,) = job.members
    assert member.digest.program is not None
    program = structs.replace(member.digest.program, queue=queue)
    digest = structs.replace(member.digest, program=program)
    return hand(replace(job, members=[replace(member, digest=digest)]))


@pytest.mark.parametrize(
    "queue, calls",
    [
        (1, [0, 100, 200, 300, 400, 500]),
        (2, [0, 0, 100, 200, 300, 400]),
        (4, [0, 0, 0, 0, 100, 200]),
        (6, [0] * 6),
    ],
)
def test_a_host_runs_no_further_ahead_than_the_queue(
    queue: int, calls: list[int], tmp_path: Path
) -> None:
    found = queueing(pooled(tmp_path, [paced()]), queue)
    run = found.run(found.edited("no-launch-overhead"))
    assert (run.host / 1000).tolist() == calls
    assert (run.end / 1000).tolist() == [100, 200, 300, 400, 500, 600]


def test_lost_launch_records_do_not_keep_their_idle_gaps(tmp_path: Path) -> None:
    """A step of 1,200: five kernels of 100, 100 idle, 50 without a record, and 550 of the host."""
    built = trace()
    for k in range(STEPS):
        at = 1200 * k
        built.step(k + 1, at, at + 1199)
        for i in range(5):
            start = at + 100 * i
            built.kernel(GEMM, start, start + 100, launch=(at + 2 * i, at + 2 * i + 1))
        built.kernel("lost", at + 600, at + 650).op("aten::busy", at + 10, at + 1200)
    found = by_hand(tmp_path, built)
    assert (found.step(), found.step("no-launch-overhead")) == (1200, 550)
