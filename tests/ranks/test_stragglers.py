"""Who is waited for, what that costs, why, and when it is no more than jitter."""

from __future__ import annotations

import msgspec
import pytest
from crew import Block, Model, joined, member, named, record, run

from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Late, Together

TENSOR = [[0, 1, 2, 3], [4, 5, 6, 7]]
DATA = [[0, 4], [1, 5], [2, 6], [3, 7]]
STEP = [Block(8000, 400)] * 4


def only(found: Together) -> Late:
    (late,) = found.late
    return late


def test_the_rank_with_the_shortest_collective_is_the_one_to_blame() -> None:
    # PyProf #33, TraceLens #599: the others spin in theirs until it arrives.
    starts = [100, 110, 900, 105]
    rows = [[named(at, 1000, 0, range(4))] for at in starts]
    late = only(joined([member(r, x) for r, x in enumerate(rows)]))
    assert (late.rank, late.last_share, late.steps) == (2, 1.0, [1])
    assert late.cost_ns == (800 + 790 + 795) * 1000
    assert late.step_share == pytest.approx(2385 / 3000)


def test_of_a_collective_of_long_kernels_only_the_end_is_transfer() -> None:
    # NVIDIA/nccl #1025: an "all-reduce of 900 us" that moves data for 100.
    rows = [[named(at, 1000, 0, range(2))] for at in (100, 900)]
    (part,) = joined([member(r, x) for r, x in enumerate(rows)]).parts
    assert part.transfer.tolist() == [[100_000, 100_000]]
    assert part.wait.tolist() == [[800_000, 0]]


def test_the_class_it_had_more_of_than_the_others_is_why() -> None:
    rows = [[named(at, 1000, 0, range(3))] for at in (300, 310, 900)]
    loading = [{}, {}, {1: 550.0}]
    members = [member(r, x, loading=loading[r]) for r, x in enumerate(rows)]
    late = only(joined(members))
    # Computing: 350 us against 300 and 310; the rest of its 900 us is the loader's.
    assert late.because == [("data_loading", 550_000), ("compute", 45_000)]


def test_how_often_it_was_last_counts_what_it_took_part_in() -> None:
    rows: dict[int, list[object]] = {r: [] for r in range(4)}
    for i in range(4):
        for r in (0, 1):
            late = 200 if r == 1 and i < 3 else 0
            rows[r].append(named(1000 * i + late, 1000 * i + 300, i, [0, 1]))
        for r in (2, 3):
            rows[r].append(named(1000 * i, 1000 * i + 300, i, [2, 3]))
    members = [member(r, x, steps={1: (0, 4000)}) for r, x in rows.items()]
    assert only(joined(members)).last_share == 0.75


def test_steps_are_those_in_which_others_waited_for_it() -> None:
    rows: list[list[object]] = [[], []]
    for step in range(1, 7):
        for r in range(2):
            late = 400 * r if step != 3 else 0
            at = 1000.0 * step
            rows[r].append(named(at + late, at + 500, step, [0, 1], launched=step))
    steps = {s: (1000.0 * s, 1000.0 * s + 1000) for s in range(1, 7)}
    late = only(joined([member(r, x, steps=steps) for r, x in enumerate(rows)]))
    assert (late.rank, late.steps) == (1, [1, 2, 4, 5, 6])


def test_operations_of_steps_that_are_not_used_blame_nobody() -> None:
    rows = [[named(at, 1000, 0, range(2), launched=9)] for at in (100, 900)]
    found = joined([member(r, x) for r, x in enumerate(rows)])
    assert (found.method, found.late, found.cost_ns) == ("clocked", [], {})


def test_the_cost_of_every_rank_is_known_late_or_not() -> None:
    rows = [[named(100 + r, 1000, 0, range(2))] for r in range(2)]
    found = joined([member(r, x) for r, x in enumerate(rows)])
    assert (found.cost_ns, found.late) == ({1: 1000}, [])


def test_waits_within_the_clocks_error_cost_nothing() -> None:
    # Ends 40 us apart in turns, arrivals 30 us: an offset of that size would explain them.
    rows: list[list[object]] = [[], []]
    for i in range(8):
        for r in range(2):
            at = 5_000_000.0 * r + 1000 * i
            rows[r].append(named(at + 30 * r, at + 100 + 40 * ((i + r) % 2), i, [0, 1]))
    members = [
        member(r, x, steps={1: (5_000_000.0 * r, 5_000_000.0 * r + 8000)})
        for r, x in enumerate(rows)
    ]
    found = joined(members)
    assert found.clocks.error_ns == 40_000
    assert found.late == []


@pytest.mark.parametrize("meetings", [1, 8])
def test_who_was_late_only_by_waiting_elsewhere_passes_the_blame_on(meetings: int) -> None:
    blocks = [*[Block(1000, 50, groups=TENSOR)] * meetings, Block(500, 900, groups=DATA)]
    late = only(joined(run(Model(blocks, pace={2: 1.3}, jitter=0.005)).members))
    assert late.rank == 2
    # All seven others wait for it: those of its tensor group, and for these the other group.
    excess = 300 * meetings + 150
    step = 1350 * meetings + 650 + 900
    assert late.step_share == pytest.approx(excess / step, rel=0.1)


@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize("seed", range(10))
def test_a_rank_slower_by_a_third_is_always_named(seed: int, steps: int) -> None:
    late = only(joined(run(Model(STEP, steps=steps, pace={5: 1.33}), seed).members))
    assert (late.rank, late.because[0][0]) == (5, "compute")


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_a_rank_slower_by_a_twentieth_is_named_from_five_steps(seed: int, ranks: int) -> None:
    model = Model(STEP, ranks=ranks, pace={1: 1.05}, jitter=0.005)
    assert only(joined(run(model, seed).members)).rank == 1


def test_a_healthy_job_names_nobody_in_fifty_runs() -> None:
    named_ranks = [joined(run(Model(STEP), seed).members).late for seed in range(50)]
    assert named_ranks == [[]] * 50


@pytest.mark.parametrize("steps", [1, 3])
def test_a_healthy_job_of_few_steps_names_nobody(steps: int) -> None:
    runs = [joined(run(Model(STEP, steps=steps), seed).members).late for seed in range(20)]
    assert runs == [[]] * 20


def test_a_healthy_job_of_two_jittery_ranks_and_one_step_names_nobody() -> None:
    # One observation tells little of how far they vary: a normal quantile names 6 of these.
    model = Model([Block(10_000, 1500)] * 4, ranks=2, steps=1, jitter=0.05)
    assert [seed for seed in range(40) if joined(run(model, seed).members).late] == []


def test_one_stall_in_five_steps_makes_no_late_rank() -> None:
    rows: dict[int, list[object]] = {r: [] for r in range(4)}
    for step in range(1, 6):
        for r in range(4):
            stall = 5000 if (r, step) == (3, 2) else 0
            at = 10_000.0 * step
            rows[r].append(named(at + stall, at + 5100, step, range(4), launched=step))
    steps = {s: (10_000.0 * s, 10_000.0 * s + 10_000) for s in range(1, 6)}
    found = joined([member(r, x, steps=steps) for r, x in rows.items()])
    assert (found.late, found.cost_ns) == ([], {3: 3_000_000})
    assert found.sole is not None
    assert (found.sole.rank, found.sole.steps) == (3, [2])
    # Of that step alone: 5 ms before its collective, of which the others computed nothing.
    assert found.sole.because == [("compute", 5_000_000)]


def test_ranks_that_stall_by_turns_have_no_sole_cause() -> None:
    rows: dict[int, list[object]] = {r: [] for r in range(4)}
    for step in range(1, 6):
        for r in range(4):
            stall = 5000 if r == step % 4 else 0
            at = 10_000.0 * step
            rows[r].append(named(at + stall, at + 5100, step, range(4), launched=step))
    steps = {s: (10_000.0 * s, 10_000.0 * s + 10_000) for s in range(1, 6)}
    assert joined([member(r, x, steps=steps) for r, x in rows.items()]).sole is None


def test_a_share_is_of_the_steps_in_which_anything_was_joined() -> None:
    # In step 2 the other rank's record is missing: what rank 1 costs there is not known.
    rows: list[list[object]] = [[], []]
    for step in (1, 2):
        for r in range(2):
            at = 1000.0 * step
            if (step, r) != (2, 0):
                rows[r].append(named(at + 400 * r, at + 500, step, [0, 1], launched=step))
    steps = {s: (1000.0 * s, 1000.0 * s + 1000) for s in (1, 2)}
    late = only(joined([member(r, x, steps=steps) for r, x in enumerate(rows)]))
    assert (late.cost_ns, late.step_share) == (400_000, pytest.approx(0.4))


def test_a_step_with_a_lost_record_is_still_judged() -> None:
    slow = Model(STEP, ranks=4, pace={3: 1.2}, says_groups=False)
    members = run(slow).members
    digest = members[1].digest
    kept = [r for i, r in enumerate(digest.collectives) if i != 5]
    members[1] = Member(1, 0, msgspec.structs.replace(digest, collectives=kept))
    assert only(joined(members)).steps == [1, 2, 3, 4, 5]


def test_ranks_of_no_named_group_that_end_no_better_than_they_arrive_may_be_several() -> None:
    # Two groups in step would look like this: ends 15 us apart by turns, arrivals 10 us.
    even = [
        [record(100 * i + 10 * r, 100 * i + 75 + 15 * ((i + r) % 2)) for i in range(4)]
        for r in range(4)
    ]
    assert joined([member(r, x) for r, x in enumerate(even)]).perhaps_several


def test_ranks_that_all_leave_when_one_has_come_are_one_group() -> None:
    late = [[record(200 * i + 90 * (r == 3), 200 * i + 100) for i in range(4)] for r in range(4)]
    assert not joined([member(r, x) for r, x in enumerate(late)]).perhaps_several


def test_two_late_ranks_are_named_the_dearer_first() -> None:
    # As in megatron-tp8-a100: six ranks wait in every operation, for the one or for the other.
    rows: dict[int, list[object]] = {r: [] for r in range(8)}
    for i in range(8):
        slow = {0: 600, 6: 300} if i % 2 else {0: 100, 6: 400}
        for r in range(8):
            rows[r].append(named(1000 * i + slow.get(r, 0), 1000 * i + 800, i, range(8)))
    members = [member(r, x, steps={1: (0, 8000)}) for r, x in rows.items()]
    assert [late.rank for late in joined(members).late] == [0, 6]


def test_ranks_meet_directly_or_over_others() -> None:
    blocks = [Block(1000, 50, groups=TENSOR)] * 2
    apart = joined(run(Model(blocks)).members)
    assert apart.meeting(range(8)) == [{0, 1, 2, 3}, {4, 5, 6, 7}]
    over = joined(run(Model([*blocks, Block(500, 900, groups=DATA)])).members)
    assert over.meeting(range(8)) == [set(range(8))]


def test_ranks_that_nothing_joins_are_taken_for_one_set() -> None:
    assert joined([member(0, []), member(1, [])]).meeting([0, 1]) == [{0, 1}]
