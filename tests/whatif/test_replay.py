"""When everything happens again: as recorded if nothing is changed, and otherwise by the rules."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from make import trace
from replayed import Hand, by_hand, hand
from runs import GEMM
from scenes import STEPS, alone, ddp

from analyzer import api
from analyzer.config import Settings
from analyzer.whatif.replay import Inputs, recorded, replay

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from referee.plan import planned
from whatif import judged

SAMPLE_TRACES = Path(__file__).parents[2] / "sample_traces"
SAMPLES = ["healthy-ddp-4gpu", "launch-bound-4gpu", "loader-bound-4gpu", "slow-rank-4gpu"]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_replays_to_its_recorded_steps(name: str) -> None:
    settings = Settings()
    found = api.digests([str(SAMPLE_TRACES / name)], settings, jobs=1)
    job = api.load(found, settings=settings).job
    # Means over four ranks of whole ns.
    assert hand(job).steps() == pytest.approx((job.per_step.sum(axis=1) / 1000).tolist(), abs=0.001)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_jobs_with_jitter_replay_to_within_1_percent(seed: int, tmp_path: Path) -> None:
    error = judged(planned(seed), tmp_path).replay_error
    assert error is not None
    assert error < 0.01


@pytest.fixture
def loop(tmp_path: Path) -> Hand:
    return by_hand(tmp_path, alone(busy=200))


def test_work_and_hosts_are_where_they_were(loop: Hand) -> None:
    run = loop.run()
    assert run.start.tolist() == loop.graph.ts.tolist()
    assert run.host.tolist() == loop.graph.time.tolist()


def test_variants_are_replayed_in_order(loop: Hand) -> None:
    variants = [loop.today, loop.edited("no-launch-overhead"), loop.today]
    lengths = [loop.watch.lengths(run).mean() for run in replay(loop.graph, variants)]
    assert lengths == [706_000, 505_000, 706_000]


def test_variants_that_do_not_fit_at_once_are_the_same(
    loop: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = [loop.today, loop.edited("no-launch-overhead"), loop.today]
    together = [run.end.tolist() for run in replay(loop.graph, variants)]
    monkeypatch.setattr("analyzer.whatif.replay._MOST_VALUES", 1)
    assert [run.end.tolist() for run in replay(loop.graph, variants)] == together


def test_longer_work_delays_what_waits_for_it(loop: Hand) -> None:
    longer = replace(loop.today, dur=loop.graph.dur + 100_000)
    assert loop.watch.lengths(loop.run(longer)).tolist() == [806_000] * 5


def test_blocked_time_is_derived_again(loop: Hand) -> None:
    """Whatever the calls are said to have waited, they wait for the device."""
    other = replace(loop.today, wait=loop.today.wait * 7)
    assert loop.watch.lengths(loop.run(other)).tolist() == [706_000] * 5


def test_a_host_that_is_slow_enough_sets_the_pace(tmp_path: Path) -> None:
    """The device needs 800 us a step; a host of ten times its calls needs 100."""
    found = by_hand(tmp_path, *ddp([300, 500]))
    assert found.watch.lengths(found.run(slower(found, 10))).tolist() == [800_000] * 5
    assert found.watch.lengths(found.run(slower(found, 100))).tolist() == [1_000_000] * 5


def slower(found: Hand, times: int) -> Inputs:
    return replace(found.today, rest=found.graph.rest * times)


def test_a_late_rank_of_a_collective_delays_all(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *ddp([300, 500]))
    dur = found.graph.dur.copy()
    first = found.graph.actors[0].work
    slow = np.arange(first.start, first.stop)[found.graph.dur[first] == 300_000]
    dur[slow] = 900_000
    run = found.run(replace(found.today, dur=dur))
    assert found.watch.lengths(run).tolist() == [1_200_000] * 5
    assert np.nanmax(run.arrived - run.start) == 400_000


def test_a_launch_does_not_wait_again_for_room_in_the_queue(tmp_path: Path) -> None:
    """The last call took 2,002 us behind 512 that were queued; its work is where it was."""
    built = trace().kernel("long", 5, 5005, launch=(0, 2))
    for i in range(513):
        built.kernel("k", 5005 + i, 5006 + i, launch=(4 + 4 * i, 6 + 4 * i))
    built.kernel("k", 5518, 5519, launch=(2500, 4502))
    found = by_hand(tmp_path, built)
    run = found.run()
    assert run.end.tolist() == (found.graph.ts + found.graph.dur).tolist()
    assert (found.graph.time[-1], run.host[-1]) == (4_500_000, 2_500_000)


def test_two_streams_that_do_not_wait_run_side_by_side(tmp_path: Path) -> None:
    built = trace()
    for k in range(STEPS):
        at, called = 500 * k + 5, 10 * k
        built.step(k + 1, called, called + 9)
        built.kernel(GEMM, at, at + 500, launch=(called, called + 1))
        built.kernel("side", at + 2, at + 402, launch=(called + 2, called + 3), stream=9)
    found = by_hand(tmp_path, built)
    half = replace(found.today, dur=found.graph.dur * np.where(found.graph.dur == 500_000, 0.5, 1))
    assert (found.step(), found.watch.lengths(found.run(half)).mean()) == (500, 400_000)


def test_the_variant_that_changes_nothing_is_the_graphs_own(loop: Hand) -> None:
    today = recorded(loop.graph)
    assert today.dur is loop.graph.dur
    assert (today.latency, today.blocking, today.meeting, today.waiting) == (1, 1, 1, 1)


def test_waiting_for_a_short_collective_is_no_gap_between_queued_work(tmp_path: Path) -> None:
    """300 us of computing, 15 of transfer that the next 200 wait for: 515, not 15 more a kernel."""
    assert by_hand(tmp_path, *ddp([300, 300], transfer=15)).step() == 515


def test_a_launch_at_the_ns_the_loader_returns_comes_after_it(tmp_path: Path) -> None:
    built = trace()
    for k in range(STEPS):
        at = 805 * k
        built.step(k + 1, at, at + 805).loader(at, at + 300)
        built.kernel(GEMM, at + 300, at + 800, launch=(at + 300, at + 301)).sync(at + 302, at + 805)
    found = by_hand(tmp_path, built)
    assert found.step() == 805
    assert found.step("no-data-loading") == 505
