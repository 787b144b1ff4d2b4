"""What each edit makes of a run whose step can be reckoned by hand; microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from make import AUTOGRAD, TraceBuilder, trace
from replayed import by_hand, pooled
from runs import GEMM
from scenes import SINGLE, STEPS, WORKERS, alone, ddp

from analyzer.whatif.edits import EDITS, NO_LOADER, NOT_SPLIT, refusals, transfer_latency


def worker(load: int) -> list[TraceBuilder]:
    """Loading, the copy of the batch, 500 us of compute: 6 us and 1 us after the loader."""
    return [alone(load=load, iterator=WORKERS, batch=40)]


def process(load: int) -> list[TraceBuilder]:
    return [alone(load=load, iterator=SINGLE, batch=40)]


def mixed() -> list[TraceBuilder]:
    """Today 896: allocation 70, host 200, compute 500, copy 30, optimizer 90."""
    return [alone(alloc=70, busy=200, copy=30, optimizer=90)]


def silent() -> list[TraceBuilder]:
    """Today 8,506: 8,000 without any record before 500 of compute."""
    return [alone(silent=8000)]


def late() -> list[TraceBuilder]:
    """Today 850: two ranks wait 200 for the third's 500, transfer 100, then 200 and optimizer."""
    return ddp([300, 300, 500], optimizer=50)


def backward(transfer: int) -> list[TraceBuilder]:
    """300, the transfer, 200 that the autograd thread launched, and the optimizer's 50."""
    return ddp([300, 300], transfer=transfer, optimizer=50, thread=AUTOGRAD)


@pytest.mark.parametrize(
    "builders, edit, today, then",
    [
        (process(300), "no-data-loading", 847, 847 - 300 - 40 + 1),
        (worker(600), "no-data-loading", 1147, 1147 - 600 - 40 + 1),
        (mixed(), "no-data-loading", 896, 896),
        (mixed(), "no-launch-overhead", 896, 896 - 200 - 1),
        (silent(), "no-launch-overhead", 8506, 505),
        # The loader's 300 stay.
        (process(300), "no-launch-overhead", 847, 845),
        (late(), "no-launch-overhead", 850, 850),
        # Without joining, two ranks' steps are 550 and one's 750.
        (late(), "no-communication", 850, (550 + 550 + 750) / 3),
        (late(), "no-straggler", 850, 650),
        (mixed(), "no-straggler", 896, 896),
        # What the device has to do; the host's 270 go on meanwhile.
        (mixed(), "no-host-sync", 896, 500 + 30 + 90),
        (late(), "no-host-sync", 850, 850),
        (mixed(), "no-optimizer", 896, 806),
        (late(), "no-optimizer", 850, 800),
        # One size tells no latency: 15 of the 100 are taken for it.
        (late(), "bandwidth-x2", 850, 850 - 85 / 2),
        (mixed(), "bandwidth-x2", 896, 896),
        (backward(100), "perfect-overlap", 650, 550),
        # The optimizer still waits for all 400.
        (backward(400), "perfect-overlap", 950, 750),
        # What the optimizer's own thread launches after the last collective waits, too.
        (ddp([300, 300], optimizer=50), "perfect-overlap", 650, 650),
        (mixed(), "launching", 896, 695),
        (silent(), "launching", 8506, 8506),
        (late(), "transfer", 850, 750),
        (late(), "sharded-optimizer", 850, 850 - 50 * 2 / 3),
        (mixed(), "copies", 896, 866),
        (mixed(), "allocation", 896, 826),
    ],
)
def test_an_edit_makes_the_step_so_long(
    builders: Sequence[TraceBuilder], edit: str, today: float, then: float, tmp_path: Path
) -> None:
    found = by_hand(tmp_path, *builders)
    assert found.step() == today
    assert found.step(edit) == pytest.approx(then, abs=0.001)


@pytest.mark.parametrize(
    "builders, edit, part, then",
    [
        (process(300), "no-data-loading", 0.5, 847 - 150 - 20),
        (mixed(), "no-launch-overhead", 0.25, 896 - 201 / 4),
        (mixed(), "no-optimizer", 0.5, 896 - 45),
        (mixed(), "allocation", 0.1, 896 - 7),
        (late(), "no-communication", 0.5, 850 - 50),
        (late(), "no-straggler", 0.5, 850 - 100),
        (late(), "bandwidth-x2", 0.5, 850 - 85 / 4),
        (backward(100), "perfect-overlap", 0.5, 650 - 50),
    ],
)
def test_in_part_a_part_of_the_cause_goes(
    builders: Sequence[TraceBuilder], edit: str, part: float, then: float, tmp_path: Path
) -> None:
    assert by_hand(tmp_path, *builders).step(edit, part=part) == pytest.approx(then, abs=0.001)


@pytest.mark.parametrize("scene", [mixed, late, lambda: process(300), lambda: backward(100)])
def test_edits_of_nothing_change_nothing(
    scene: Callable[[], list[TraceBuilder]], tmp_path: Path
) -> None:
    found = by_hand(tmp_path, *scene())
    assert {name: found.step(name, part=0.0) for name in EDITS} == dict.fromkeys(
        EDITS, found.step()
    )


def test_batches_at_half_the_distance_come_at_twice_the_pace(tmp_path: Path) -> None:
    found = by_hand(tmp_path, alone(load=2000, iterator=WORKERS))
    assert found.step() == 2507
    assert found.steps("no-data-loading", part=0.5) == [2507 / 2] * 5


def test_edits_follow_each_other_in_any_order(tmp_path: Path) -> None:
    one = by_hand(tmp_path / "one", alone(load=100, busy=200, alloc=70, optimizer=90))
    two = by_hand(tmp_path / "two", *backward(400))
    # No straggler sets times anew, so what was taken away before it stays away.
    names = [name for name in EDITS if name != "no-straggler"]
    for found in (one, two):
        for first, second in combinations(names, 2):
            assert found.step(first, second) == found.step(second, first)


def test_two_causes_in_a_row_go_one_after_the_other(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *mixed())
    assert found.step("no-optimizer", "allocation") == 896 - 90 - 70


def loading(*load: int) -> list[TraceBuilder]:
    """Ranks that load, compute 200, all-reduce 100, and wait for it."""
    built = [trace(r, len(load)) for r in range(len(load))]
    t = 0
    for k in range(STEPS):
        met = t + max(load) + 201
        for rank, us in zip(built, load, strict=True):
            at = t + us + 1
            rank.step(k + 1, t, met + 106).loader(t, t + us, iterator=SINGLE)
            rank.kernel(GEMM, at, at + 200, launch=(at, at + 1))
            rank.collective("allreduce", at + 200, met + 100, launch=(at + 2, at + 3))
            rank.sync(at + 4, met + 105)
        t = met + 106
    return built


def test_a_rank_that_loads_late_loads_as_the_others(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *loading(100, 400))
    assert found.scene.late == {1}
    assert (found.step(), found.step("no-straggler")) == (707, 407)


def test_without_a_late_rank_all_take_the_mean_step_by_step(tmp_path: Path) -> None:
    """In each step another rank is slow, so none is late."""
    built = [trace(r, 2) for r in range(2)]
    for k in range(STEPS):
        at = 600 * k + 5
        for r, rank in enumerate(built):
            us = 300 if k % 2 == r else 500
            rank.step(k + 1, 10 * k, 10 * k + 9)
            rank.kernel(GEMM, at, at + us, launch=(10 * k, 10 * k + 1))
            rank.collective("allreduce", at + us, at + 600, launch=(10 * k + 2, 10 * k + 3))
    found = by_hand(tmp_path, *built)
    assert found.scene.late == frozenset()
    assert (found.step(), found.step("no-straggler")) == (600, 500)


def test_latency_is_what_transfers_of_two_sizes_say(tmp_path: Path) -> None:
    """1,000 elements take 20 us and 9,000 take 100: 10 us are latency."""
    built = [trace(r, 2) for r in range(2)]
    for k in range(STEPS):
        at, called = 500 * k, 10 * k
        for rank in built:
            rank.step(k + 1, called, called + 9)
            rank.kernel(GEMM, at, at + 380, launch=(called, called + 1))
            for start, end, elements in ((380, 400, 1000), (400, 500, 9000)):
                rank.collective("allreduce", at + start, at + end, elements=elements,
                                launch=(called + 2, called + 3))  # fmt: skip
    found = by_hand(tmp_path, *built)
    slots = np.flatnonzero(found.graph.joined)
    assert transfer_latency(found.graph)[slots] == pytest.approx(10_000)
    halved = found.edited("bandwidth-x2").dur[slots][:2]
    assert halved == pytest.approx([15_000, 55_000])


def test_without_a_loader_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert refusals(pooled(tmp_path, mixed())) == {"no-data-loading": NO_LOADER}


def test_without_joined_collectives_nothing_is_said_of_waiting_and_transfer(
    tmp_path: Path,
) -> None:
    found = refusals(pooled(tmp_path, late()[:2]))
    assert found == {
        "no-data-loading": NO_LOADER, "no-straggler": NOT_SPLIT, "bandwidth-x2": NOT_SPLIT
    }  # fmt: skip


def test_a_job_that_loads_and_joins_gets_all_answers(tmp_path: Path) -> None:
    assert refusals(pooled(tmp_path, loading(100, 400))) == {}


def test_the_loader_before_the_only_step_goes(tmp_path: Path) -> None:
    """30 ms of loading before 40 ms of kernels: 30/70 of the step."""
    built = trace().step(1, 0, 70_000).loader(0, 30_000, iterator=SINGLE)
    for i in range(4):
        at, latency = 30_000 + 10_000 * i, 0 if i else 5
        built.kernel(GEMM, at + latency, at + 10_000, launch=(30_000 + i, 30_001 + i))
    found = by_hand(tmp_path, built)
    assert (found.step(), found.step("no-data-loading")) == (70_000, 40_000)


def test_host_time_before_the_first_launch_of_the_only_step_goes(tmp_path: Path) -> None:
    """300 of the host and 5 until the launch reaches the device."""
    built = trace().step(1, 0, 700).op("aten::busy", 0, 300)
    for i in range(4):
        at, latency = 300 + 100 * i, 0 if i else 5
        built.kernel(GEMM, at + latency, at + 100, launch=(300 + i, 301 + i))
    found = by_hand(tmp_path, built)
    assert (found.step(), found.step("no-launch-overhead")) == (700, 395)


def unlike(*pieces: int) -> list[TraceBuilder]:
    """The first rank computes 200, the second 400, in so many kernels; both all-reduce for 100."""
    built = [trace(r, 2) for r in range(2)]
    for k in range(STEPS):
        at, called = 500 * k, 100 * k
        for rank, count, us in zip(built, pieces, (200, 400), strict=True):
            rank.step(k + 1, called, called + 99)
            edges = [at + us * i // count for i in range(count + 1)]
            for i in range(count):
                rank.kernel(GEMM, edges[i], edges[i + 1], launch=(called + i, called + i + 1))
            rank.collective("allreduce", at + us, at + 500, launch=(called + 50, called + 51))
    return built


@pytest.mark.parametrize("pieces, then", [((20, 20), 300), ((20, 21), 300), ((20, 22), 500)])
def test_only_ranks_that_launch_about_as_much_are_peers(
    pieces: tuple[int, int], then: int, tmp_path: Path
) -> None:
    """Stages of a pipeline launch less or more, and none of them is a model for the others."""
    found = by_hand(tmp_path, *unlike(*pieces))
    assert found.step() == 500
    assert found.step("no-straggler") == pytest.approx(then, abs=0.001)


@pytest.mark.parametrize("twice, levelled", [(False, True), (True, False)])
def test_loading_is_levelled_only_where_all_ranks_ask_as_often(
    twice: bool, levelled: bool, tmp_path: Path
) -> None:
    built = [trace(r, 2) for r in range(2)]
    for k in range(STEPS):
        t = 800 * k
        for rank, us in zip(built, (100, 401), strict=True):
            at = t + us + 1
            rank.step(k + 1, t, t + 799)
            if us == 401 and twice:
                rank.loader(t, t + 200, iterator=SINGLE).loader(t + 201, at - 1, iterator=SINGLE)
            else:
                rank.loader(t, at - 1, iterator=SINGLE)
            rank.kernel(GEMM, at, at + 200, launch=(at, at + 1))
            rank.collective("allreduce", at + 200, t + 702, launch=(at + 2, at + 3))
            rank.sync(at + 4, t + 707)
    found = by_hand(tmp_path, *built)
    changed = found.edited("no-straggler").wait != found.today.wait
    assert bool(changed.any()) is levelled
