"""Which collectives of different ranks are one operation, and which are left alone and told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from crew import member, named, ns, record

from analyzer.classify.tables import CollectiveRecord
from analyzer.ranks.collectives import (
    ALONE,
    LOST,
    MISSING,
    NO_LENGTH,
    TOO_MANY,
    UNEQUAL,
    Joined,
    Matching,
    match,
)
from analyzer.ranks.keys import NO_KIND, NO_STEP, NOT_ALL


def matched(*ranks: Sequence[CollectiveRecord], world_size: int | None = None) -> Matching:
    members = [member(r, records) for r, records in enumerate(ranks)]
    return match(members, world_size or len(ranks))


def starts(group: Joined) -> list[list[float]]:
    """Of each operation the start on every rank, us."""
    return [[at / 1000 for at in row] for row in group.start.tolist()]


def test_a_sequence_number_tells_which_are_one_whatever_the_order() -> None:
    first = [named(0, 10, 7, [0, 1]), named(20, 30, 8, [0, 1])]
    second = [named(5, 30, 8, [0, 1]), named(40, 50, 7, [0, 1])]
    (group,) = matched(first, second).joined
    assert sorted(starts(group)) == [[0, 40], [20, 5]]
    assert (group.ranks, group.complete, group.by_order, group.assumed) == (
        [0, 1],
        True,
        False,
        False,
    )


def test_without_numbers_they_are_joined_in_order_within_the_step_they_were_launched_in() -> None:
    first = [record(0, 10), record(20, 30), record(40, 50, launched=2)]
    second = [record(3, 10), record(25, 30), record(41, 50, launched=2)]
    (group,) = matched(first, second).joined
    assert starts(group) == [[0, 3], [20, 25], [40, 41]]
    assert group.step == [(0, 1), (0, 1), (0, 2)]
    assert (group.by_order, group.assumed) == (True, True)


def test_the_list_of_ranks_goes_before_the_name() -> None:
    first = [named(0, 10, 1, [0, 1], group="3")]
    second = [named(2, 10, 1, [0, 1], group="dp")]
    (group,) = matched(first, second).joined
    assert starts(group) == [[0, 2]]


def test_a_name_used_for_other_ranks_is_another_group() -> None:
    rows = [[named(r, 10, 1, pair, group="tp")] for pair in ([0, 1], [2, 3]) for r in pair]
    assert [(g.ranks, g.complete) for g in matched(*rows).joined] == [
        ([0, 1], True),
        ([2, 3], True),
    ]


def test_a_name_that_more_ranks_use_than_it_has_members_joins_nothing() -> None:
    rows = [[record(r, 10, group="tp", group_size=2)] for r in range(4)]
    found = matched(*rows)
    assert (found.joined, found.left) == ([], {TOO_MANY: 4})


def test_two_groups_of_the_same_ranks_count_apart() -> None:
    def rank(at: float) -> list[CollectiveRecord]:
        return [
            named(at, at + 9, 1, [0, 1], group="default"),
            named(at + 10, at + 19, 1, [0, 1], group="mesh"),
        ]

    # On the second rank the other group's operation came first.
    swapped = [
        named(0, 9, 1, [0, 1], group="mesh"),
        named(10, 19, 1, [0, 1], group="default"),
    ]
    found = matched(rank(0), swapped).joined
    assert sorted(starts(g) for g in found) == [[[0, 10]], [[10, 0]]]
    assert all(g.complete for g in found)


def test_several_groups_of_a_rank_are_joined_each_with_its_own_members() -> None:
    tensor, data = ([0, 1], [2, 3]), ([0, 2], [1, 3])
    rows = []
    for rank in range(4):
        t = next(g for g in tensor if rank in g)
        d = next(g for g in data if rank in g)
        rows.append([named(rank, 50, 1, t, group="tp"), named(60 + rank, 90, 1, d, group="dp")])
    assert [(g.ranks, starts(g)) for g in matched(*rows).joined] == [
        ([0, 1], [[0, 1]]),
        ([0, 2], [[60, 62]]),
        ([1, 3], [[61, 63]]),
        ([2, 3], [[2, 3]]),
    ]


def test_kinds_are_joined_each_in_its_own_order() -> None:
    first = [record(0, 5, kind="all_gather"), record(10, 15, kind="reduce_scatter")]
    second = [record(8, 15, kind="all_gather"), record(1, 5, kind="reduce_scatter")]
    (group,) = matched(first, second).joined
    assert dict(zip(group.kind, starts(group), strict=True)) == {
        "all_gather": [0, 8],
        "reduce_scatter": [10, 1],
    }


def test_streams_that_all_ranks_use_tell_unnamed_operations_apart() -> None:
    first = [record(0, 5, stream="7"), record(1, 9, stream="20")]
    second = [record(2, 9, stream="20"), record(3, 5, stream="7")]
    (group,) = matched(first, second).joined
    assert sorted(starts(group)) == [[0, 3], [1, 2]]


def test_streams_numbered_by_each_rank_tell_nothing() -> None:
    (group,) = matched([record(0, 5, stream="23")], [record(2, 5, stream="37")]).joined
    assert starts(group) == [[0, 2]]


@pytest.mark.parametrize("lost", range(3))
def test_a_lost_record_leaves_its_step_alone_and_no_other(lost: int) -> None:
    full = [record(100 * i, 100 * i + 10, launched=1 + i // 3) for i in range(6)]
    damaged = [r for i, r in enumerate(full) if i != lost]
    found = matched(full, damaged)
    (group,) = found.joined
    assert starts(group) == [[300, 300], [400, 400], [500, 500]]
    assert found.left == {UNEQUAL: 5}


def test_sizes_that_disagree_leave_the_step_alone() -> None:
    first = [record(0, 5, nbytes=4000), record(10, 15, nbytes=8000)]
    second = [record(0, 5, nbytes=4000), record(10, 15, nbytes=16000)]
    found = matched(first, second)
    assert (found.joined, found.left) == ([], {UNEQUAL: 4})


@pytest.mark.parametrize("kind", ["all_to_all", "all_gather"])
def test_sizes_may_differ_where_members_give_uneven_parts(kind: str) -> None:
    rows = [[record(0, 5, kind=kind, nbytes=size)] for size in (4000, 9000)]
    assert len(matched(*rows).joined) == 1


def test_a_lost_record_with_numbers_leaves_its_operation_alone() -> None:
    full = [named(100 * i, 100 * i + 10, i, [0, 1, 2]) for i in range(3)]
    found = matched(full, full, [full[0], full[2]])
    (whole,) = [g for g in found.joined if g.complete]
    assert starts(whole) == [[0, 0, 0], [200, 200, 200]]
    assert found.left == {LOST: 2}


def test_of_two_ranks_too_a_lost_record_is_told_as_lost() -> None:
    full = [named(100 * i, 100 * i + 10, i, [0, 1]) for i in range(3)]
    assert matched(full, [full[0], full[2]]).left == {LOST: 1}


def test_a_record_lost_with_all_others_of_its_step_is_told_as_lost() -> None:
    full = [record(100 * i, 100 * i + 10, launched=i) for i in range(3)]
    assert matched(full, full, [full[0], full[2]]).left == {LOST: 2}


@pytest.mark.parametrize("lost", [0, 2])
def test_the_edges_of_a_recording_are_no_loss(lost: int) -> None:
    full = [named(100 * i, 100 * i + 10, i, [0, 1, 2]) for i in range(3)]
    assert matched(full, full, [r for i, r in enumerate(full) if i != lost]).left == {MISSING: 2}


def test_a_group_with_unrecorded_members_is_not_complete() -> None:
    rows = [[named(r, 10, 1, list(range(8)))] for r in range(2)]
    found = matched(*rows, world_size=8)
    assert [g.complete for g in found.joined] == [False]
    assert found.left == {MISSING: 2}


def test_a_long_list_of_ranks_that_was_cut_has_its_size_beside_it() -> None:
    cut = "[0, 1, 2, ..., 63]"
    rows = [[record(r, 10, sequence=1, group="0", ranks=cut, group_size=64)] for r in range(3)]
    assert [g.complete for g in matched(*rows, world_size=64).joined] == [False]


def test_one_rank_is_joined_with_nobody() -> None:
    found = matched([named(0, 10, 1, list(range(8)))], world_size=8)
    assert (found.joined, found.left) == ([], {ALONE: 1})


@pytest.mark.parametrize("kind", ["broadcast", "send_recv", "reduce"])
def test_kinds_that_a_rank_may_leave_early_are_not_joined(kind: str) -> None:
    found = matched(*[[record(0, 10, kind=kind)]] * 2)
    assert (found.joined, found.left) == ([], {NOT_ALL: 2})


def test_a_kind_that_was_not_recorded_is_not_called_one_that_ranks_may_leave() -> None:
    assert matched(*[[record(0, 10, kind="unspecified")]] * 2).left == {NO_KIND: 2}


def test_kernels_of_the_windows_edge_are_left_alone() -> None:
    # As in nanogpt-8xh100: what was launched before the recording has no arguments and no launch.
    first = [record(0, 5, launched=None), named(10, 15, 3, [0, 1])]
    second = [named(12, 15, 3, [0, 1])]
    found = matched(first, second)
    assert [starts(g) for g in found.joined] == [[[10, 12]]]
    assert found.left == {NO_STEP: 1}


def test_replays_of_a_graph_are_told_apart_by_their_step() -> None:
    def rank(shift: float, steps: Sequence[int]) -> list[CollectiveRecord]:
        return [named(100 * s + shift, 100 * s + 20, 5, [0, 1], launched=s) for s in steps]

    found = matched(rank(0, (1, 2, 3)), rank(2, (2, 3, 4)))
    (group,) = found.joined
    assert starts(group) == [[200, 202], [300, 302]]
    assert found.left == {ALONE: 2}


def test_collectives_of_graphs_without_arguments_are_joined_by_order() -> None:
    rows = [[record(at + r, at + 9) for at in (0, 10, 20)] for r in range(2)]
    (group,) = matched(*rows).joined
    assert starts(group) == [[0, 1], [10, 11], [20, 21]]


def test_cycles_are_joined_each_by_itself() -> None:
    rows = [(0, 0, 10), (0, 1, 500), (1, 0, 12), (1, 1, 502)]
    members = [member(r, [named(at, at + 9, 1, [0, 1])], cycle=cycle) for r, cycle, at in rows]
    (group,) = match(members, 2).joined
    assert sorted(starts(group)) == [[10, 12], [500, 502]]
    assert sorted(group.step) == [(0, 1), (1, 1)]


def test_a_collective_without_length_is_left_out_and_shifts_nothing() -> None:
    first = [record(0, 10), record(20, 20), record(30, 40)]
    second = [record(1, 10), record(21, 29), record(31, 40)]
    found = matched(first, second)
    assert [starts(g) for g in found.joined] == [[[0, 1], [30, 31]]]
    assert found.left == {NO_LENGTH: 2}


def test_every_record_is_joined_or_counted_with_its_reason() -> None:
    first = [named(0, 5, 1, [0, 1]), record(10, 15, launched=None), record(20, 25, kind="reduce")]
    second = [named(2, 5, 1, [0, 1]), record(30, 35)]
    found = matched(first, second)
    assert found.records == 5
    assert sum(g.start.size for g in found.joined) + found.left.total() == 5


def test_a_thousand_ranks_are_one_group() -> None:
    ranks = list(range(1024))
    rows = [[named(r / 100, 50, 1, ranks)] for r in ranks]
    (group,) = matched(*rows).joined
    assert (len(group.ranks), group.complete) == (1024, True)
    assert group.start.max() == ns(10.23)
