"""Steps in which ranks hold other counts: what ends together is joined, the rest is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from crew import joined, member, record

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.collectives import UNEQUAL
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together

STEPS = range(1, 4)


def rows(rank: int, period: float, late: float, ahead: float) -> list[CollectiveRecord]:
    """Three steps of six operations of 400 us, `period` apart; rank 1 comes `late` into each."""
    return [
        record(at + late * (rank == 1) + ahead, at + 400 + ahead, launched=step)
        for step in STEPS
        for at in (10_000.0 * step + period * i for i in range(6))
    ]


def told(
    lost: dict[int, Sequence[int]],
    *,
    period: float = 1500,
    ahead: float = 0,
    hosts: Sequence[str | None] = (None, None, None),
) -> Together:
    """Three ranks, each without the operations `lost` (0 to 17); rank 2's clock is `ahead`."""
    members: list[Member] = []
    for rank in range(3):
        shift = ahead * (rank == 2)
        kept = [
            r for i, r in enumerate(rows(rank, period, 100, shift)) if i not in lost.get(rank, ())
        ]
        steps = {s: (10_000.0 * s + shift, 10_000.0 * s + 10_000 + shift) for s in STEPS}
        members.append(member(rank, kept, steps=steps, host=hosts[rank]))
    return joined(members)


def operations(found: Together) -> int:
    return sum(len(p.group.kind) for p in found.parts)


@pytest.mark.parametrize("lost", [6, 8, 11])
def test_one_lost_record_costs_one_operation(lost: int) -> None:
    found = told({1: [lost]})
    assert (operations(found), found.matching.left) == (17, {UNEQUAL: 2})


@pytest.mark.parametrize("lost", [6, 8, 11])
def test_waits_beside_a_loss_are_those_without_it(lost: int) -> None:
    waits = {tuple(row) for p in told({1: [lost]}).parts for row in p.wait.tolist()}
    assert waits == {(100_000, 0, 100_000)}


def test_a_rank_that_lost_one_in_each_step_is_still_joined() -> None:
    found = told({1: [2, 8, 14]})
    assert (operations(found), found.method) == (15, "clocked")
    assert found.matching.left == {UNEQUAL: 6}


def test_clocks_of_the_steps_that_agree_are_used() -> None:
    found = told({1: [8]}, ahead=3000, hosts=("a", "a", "b"))
    assert (operations(found), found.clocks.offset[2]) == (17, -3_000_000)


def test_clocks_apart_that_no_step_tells_join_nothing() -> None:
    found = told({1: [2, 8, 14]}, ahead=700, hosts=("a", "a", "b"))
    assert (found.method, found.matching.left) == (None, {UNEQUAL: 51})


def test_operations_too_close_to_tell_are_left() -> None:
    # Ends 40 us apart: the slack would take either.
    found = told({1: [8]}, period=40)
    assert (operations(found), found.matching.left) == (12, {UNEQUAL: 17})
