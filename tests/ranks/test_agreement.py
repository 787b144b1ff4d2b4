"""What was joined by order is split only where it can have been one operation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from crew import Block, Model, joined, member, named, record, run

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.agreement import APART, FAR, IMPOSSIBLE, SHIFTED
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together

TENSOR = [[0, 1, 2, 3], [4, 5, 6, 7]]


def rank(
    number: int, first_step: int = 1, *, lost: Sequence[tuple[int, int]] = (), says: bool = False
) -> Member:
    """Six steps of 10 ms, four operations of 400 us in each."""
    rows: list[CollectiveRecord] = []
    for step in range(6):
        for i in range(4):
            start, end = 10_000 * step + 2000 * i + 10 * number, 10_000 * step + 2000 * i + 400
            what = {"launched": step + first_step}
            if (step, i) in lost:
                continue
            rows.append(
                named(start, end, 4 * step + i, [0, 1, 2], **what)
                if says
                else record(start, end, **what)
            )
    steps = {s + first_step: (10_000.0 * s, 10_000.0 * s + 10_000) for s in range(6)}
    return member(number, rows, steps=steps, host="node")


def operations(found: Together) -> int:
    return sum(len(p.group.kind) for p in found.parts)


def test_ranks_that_agree_are_split_whole() -> None:
    found = joined([rank(0), rank(1), rank(2)])
    assert (operations(found), found.joined_share, found.matching.left) == (24, 1.0, {})


def test_a_step_in_which_two_ranks_lost_different_records_is_let_go_and_told() -> None:
    members = [rank(0, lost=[(2, 1)]), rank(1, lost=[(2, 2)]), rank(2, lost=[(2, 1)])]
    found = joined(members)
    assert (operations(found), found.method) == (20, "clocked")
    assert found.matching.left == {IMPOSSIBLE: 9}
    assert {step for p in found.parts for step in p.group.step} == {(0, s) for s in (1, 2, 4, 5, 6)}


def test_steps_counted_differently_are_never_joined_by_order() -> None:
    found = joined([rank(0), rank(1), rank(2, first_step=2)])
    assert (found.method, found.parts) == (None, [])
    assert found.matching.left[IMPOSSIBLE] == 60  # those of steps 2 to 6, which all ranks have


def test_steps_counted_differently_are_joined_by_sequence() -> None:
    members = [rank(0, says=True), rank(1, says=True), rank(2, first_step=2, says=True)]
    found = joined(members)
    assert (operations(found), found.method) == (24, "clocked")


def test_operations_that_would_end_at_different_times_are_not_one() -> None:
    # Two communicators on streams that each rank numbers itself, started in another order.
    def of(at: float, first: tuple[int, int], second: tuple[int, int], stream: int) -> list[object]:
        return [
            record(at + start, at + end, launched=int(at / 10_000), stream=str(stream + i))
            for i, (start, end) in enumerate((first, second))
        ]

    at = [10_000.0 * s for s in range(1, 7)]
    rows = [
        [r for t in at for r in of(t, (1000, 6000), (2000, 9000), 20)],
        [r for t in at for r in of(t, (1500, 9000), (4000, 6000), 32)],
    ]
    steps = {s: (10_000.0 * s, 10_000.0 * s + 10_000) for s in range(1, 7)}
    found = joined([member(r, x, steps=steps) for r, x in enumerate(rows)])
    assert (found.method, found.clocks.aligned) == (None, None)
    assert found.matching.left == {FAR: 24}


def test_one_operation_whose_ends_lie_apart_is_let_go_alone() -> None:
    # Half of 400 us is the most that ends may be apart; one of 24 has them 300 apart.
    rows = [[*rank(r).digest.collectives] for r in range(3)]
    odd = rows[2][5]
    rows[2][5] = record(odd.start / 1000, odd.end / 1000 + 300, launched=odd.launched)
    steps = {s: (10_000.0 * s - 10_000, 10_000.0 * s) for s in range(1, 7)}
    found = joined([member(r, x, steps=steps, host="node") for r, x in enumerate(rows)])
    assert (operations(found), found.matching.left) == (23, {FAR: 3})


def test_a_clock_that_would_be_a_whole_step_ahead_is_a_step_counted_differently() -> None:
    # No host names: an offset of 10 ms would fit, and steps are 10 ms long.
    def unnamed(number: int, first_step: int) -> Member:
        given = rank(number, first_step)
        steps = {s.index: (s.start / 1000, s.end / 1000) for s in given.digest.steps}
        return member(number, given.digest.collectives, steps=steps)

    found = joined([unnamed(0, 1), unnamed(1, 2)])
    assert (found.method, found.late, found.matching.left[SHIFTED]) == (None, [], 40)
    assert joined([unnamed(0, 1), unnamed(1, 1)]).joined_share == 1.0


def test_a_recording_that_starts_later_is_joined_from_there() -> None:
    late = rank(2, lost=[(s, i) for s in (0, 1) for i in range(4)])
    found = joined([rank(0), rank(1), late])
    assert operations(found) == 16


@pytest.mark.parametrize("hosts", [{}, dict.fromkeys(range(8), "node")])
def test_two_groups_that_do_the_same_are_not_one(hosts: dict[int, str]) -> None:
    tensor = Model(
        [Block(2000, 300, groups=TENSOR)] * 4, says_groups=False, jitter=0.05, hosts=hosts
    )
    found = joined(run(tensor).members)
    assert (found.method, found.late) == (None, [])
    assert set(found.matching.left) <= {APART, IMPOSSIBLE}
    assert found.matching.left.total() == found.matching.records


def test_two_groups_that_meet_in_every_step_are_not_one_either() -> None:
    blocks = [*[Block(2000, 300, groups=TENSOR)] * 4, Block(500, 900, kind="reduce_scatter")]
    model = Model(blocks, says_groups=False, jitter=0.05, hosts=dict.fromkeys(range(8), "node"))
    found = joined(run(model).members)
    left = found.matching.left
    assert left[APART] + left[IMPOSSIBLE] >= 8 * 5 * 4
    assert all("all_reduce" not in p.group.kind for p in found.parts)


@pytest.mark.parametrize("seed", range(5))
def test_one_group_whose_ends_scatter_stays_one(seed: int) -> None:
    model = Model([Block(2000, 300)] * 4, says_groups=False, scatter_us=60)
    found = joined(run(model, seed).members)
    assert found.joined_share == 1.0


def test_two_named_groups_are_split_each_by_itself() -> None:
    model = Model([Block(2000, 300, groups=TENSOR)] * 4)
    assert joined(run(model).members).joined_share == 1.0
