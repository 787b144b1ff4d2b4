"""In which order a graph can be replayed, and when it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.trace.schema import NO_ID
from analyzer.whatif.tasks import (
    CIRCULAR,
    HostRun,
    LaneRun,
    Links,
    Meeting,
    NotReplayableError,
    Task,
    Wait,
    ordered,
)


def tasks(
    launch: Sequence[int],
    *,
    lanes: Sequence[int],
    points: int = 1,
    waits: Mapping[int, Sequence[int]] | None = None,
    awaited: Mapping[int, list[int]] | None = None,
    room: Mapping[int, int] | None = None,
    meetings: Sequence[tuple[list[int], bool]] = (),
) -> list[Task]:
    """The tasks of one rank; `lanes` is the number of slots of each, `launch` each slot's point."""
    firsts = set(np.cumsum([0, *lanes]).tolist())
    links = Links(
        launch=np.array(launch, np.int64),
        previous=np.array([NO_ID if s in firsts else s - 1 for s in range(len(launch))], np.int64),
        waits={s: [Wait(b, 0, False) for b in held] for s, held in (waits or {}).items()},
        awaited=dict(awaited or {}),
        room=np.array([(room or {}).get(p, NO_ID) for p in range(points)], np.int64),
        meetings=list(meetings),
    )
    return ordered([slice(0, points)], [slice(0, len(launch))], links)


def test_work_that_only_follows_is_one_run() -> None:
    assert tasks([0, 0, 0], lanes=[3]) == [HostRun(0, 1, (), True), LaneRun(0, 3, NO_ID, ())]


def test_a_wait_for_another_lane_begins_a_run() -> None:
    wait = Wait(0, 0, False)
    assert tasks([0, 0, 0, 0], lanes=[1, 3], waits={2: [0]})[-1] == LaneRun(2, 4, 1, (wait,))


def test_a_blocking_call_begins_a_run_of_the_host() -> None:
    assert tasks([0, 1], lanes=[2], points=2, awaited={1: [0]}) == [
        HostRun(0, 1, (), True),
        LaneRun(0, 1, NO_ID, ()),
        HostRun(1, 2, (0,), False),
        LaneRun(1, 2, 0, ()),
    ]


def test_a_host_is_cut_where_work_of_the_same_run_must_make_room() -> None:
    found = tasks([0, 1, 2, 3], lanes=[4], points=4, room={2: 1, 3: 0})
    hosts = [task for task in found if isinstance(task, HostRun)]
    assert hosts == [HostRun(0, 2, (), True), HostRun(2, 4, (), False)]


def test_room_that_is_made_only_by_what_comes_later_is_refused() -> None:
    with pytest.raises(NotReplayableError, match=CIRCULAR):
        tasks([0, 1], lanes=[2], points=2, room={1: 1})


def test_a_collective_is_one_task_of_all_its_ranks() -> None:
    found = tasks([0, 0, 0], lanes=[1, 2], meetings=[([0, 1], True)])
    runs = LaneRun(0, 1, NO_ID, ()), LaneRun(1, 2, NO_ID, ())
    assert found[1:] == [Meeting(runs, True), LaneRun(2, 3, 1, ())]


def test_work_that_waits_for_each_other_is_refused() -> None:
    with pytest.raises(NotReplayableError, match=CIRCULAR):
        tasks([0, 0], lanes=[1, 1], waits={0: [1], 1: [0]})


def test_a_host_that_waits_for_what_it_launches_later_is_refused() -> None:
    with pytest.raises(NotReplayableError, match=CIRCULAR):
        tasks([1], lanes=[1], points=2, awaited={1: [0]})


def test_collectives_in_another_order_on_another_rank_are_refused() -> None:
    with pytest.raises(NotReplayableError, match=CIRCULAR):
        tasks([0] * 4, lanes=[2, 2], meetings=[([0, 3], False), ([1, 2], False)])


class Possible(NamedTuple):
    """Points and slots in some order of time; each waits only for what came before it."""

    launch: list[int]
    lanes: list[int]
    points: int
    waits: dict[int, list[int]]
    awaited: dict[int, list[int]]
    room: dict[int, int]


@st.composite
def possible(draw: st.DrawFn) -> Possible:
    kinds = draw(st.lists(st.sampled_from(["point", "a", "b", "c"]), max_size=20))
    lanes = [kinds.count(lane) for lane in "abc"]
    number = dict(zip("abc", np.cumsum([0, *lanes]).tolist(), strict=False))
    launch, points, before = [0] * sum(lanes), 1, list[int]()
    waits, awaited = dict[int, list[int]](), dict[int, list[int]]()
    room = dict[int, int]()
    for kind in kinds:
        some = draw(st.lists(st.sampled_from(before), max_size=2)) if before else []
        if kind == "point":
            if len(some) == 1 and draw(st.booleans()):
                room[points] = some[0]
            elif some:
                awaited[points] = some
            points += 1
            continue
        slot = number[kind]
        number[kind] += 1
        launch[slot] = points - 1
        if some:
            waits[slot] = some
        before.append(slot)
    return Possible(launch, lanes, points, waits, awaited, room)


@given(possible())
def test_every_task_comes_after_what_it_needs(links: Possible) -> None:
    done_points, done_slots = set[int](), set[int]()
    for task in tasks(**links._asdict()):
        assert not isinstance(task, Meeting)
        if isinstance(task, HostRun):
            assert task.opens or task.first - 1 in done_points
            assert set(task.awaited) <= done_slots
            needed = {links.room[p] for p in range(task.first, task.last) if p in links.room}
            assert needed <= done_slots
            done_points.update(range(task.first, task.last))
        else:
            assert {task.previous, *(w.before for w in task.waits)} - {NO_ID} <= done_slots
            assert set(links.launch[task.first : task.last]) <= done_points
            done_slots.update(range(task.first, task.last))
    assert (len(done_points), len(done_slots)) == (links.points, len(links.launch))


@given(possible())
def test_within_a_run_nothing_is_waited_for(links: Possible) -> None:
    for task in tasks(**links._asdict()):
        assert not isinstance(task, Meeting)
        waits = links.awaited if isinstance(task, HostRun) else links.waits
        assert not [i for i in range(task.first + 1, task.last) if i in waits]
