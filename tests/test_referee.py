"""The referee of the what-ifs does what it takes for physics, in cases one can reckon by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from referee.device import Device, Meeting
from referee.draws import Draws
from referee.job import TODAY, Dialect, Job, Loader, World
from referee.ops import COMMUNICATION, COMPUTE, LOSS, Do, Op
from referee.plan import planned
from referee.program import step_program
from referee.simulate import Rank, simulate
from referee.truth import step_ends
from whatif import Outcome, judged, outcome

LAUNCH = Op(Do.LAUNCH, call_ns=100, device_ns=1_000)
CALM = {
    "seed": 1, "warmup": 0, "recorded": 1, "jitter": 0.0, "host_jitter": 0.0, "latency_us": 0.0,
    "return_us": 0.5, "queue_gap_us": 0.0, "event_us": 0.0, "collective_latency_us": 0.2,
    "bytes_per_ns": 1.0,
}  # fmt: skip


def ran(ops: list[Op], world: World = TODAY, **job: object) -> list[Rank]:
    calm = Job(**{**CALM, **job})  # type: ignore[arg-type]
    return simulate(Draws(calm, ops), world, keep_calls=True)


def call_ends(rank: Rank) -> list[int]:
    return [call.end for calls in rank.calls for call in calls]


def test_work_starts_after_stream_launch_and_event() -> None:
    device = Device(queue_gap=10, event_delay=20)
    device.submit(COMPUTE, ready=100, duration=50)
    device.submit(COMPUTE, ready=120, duration=50)
    device.await_activity(COMMUNICATION, 1)
    device.submit(COMMUNICATION, ready=130, duration=50)
    device.submit(COMPUTE, ready=900, duration=50)
    assert device.start == [100, 160, 230, 900]


def test_a_collective_ends_on_all_ranks_a_transfer_after_the_last_came() -> None:
    early, late = Device(10, 20), Device(10, 20)
    meeting = Meeting(members=2, duration=500)
    for device, ready in ((early, 100), (late, 700)):
        device.submit(COMMUNICATION, ready, 0, meeting)
        device.await_activity(COMPUTE, 0)
        device.submit(COMPUTE, ready, 50)
    assert late.full == [meeting]
    meeting.end()
    early.settle()
    late.settle()
    assert (early.start, early.end) == ([100, 1220], [1200, 1270])
    assert (late.start, late.end) == ([700, 1220], [1200, 1270])


def test_a_launch_waits_while_the_queue_is_full() -> None:
    (rank,) = ran([LAUNCH] * 3, queue_slots=1)
    assert call_ends(rank) == [100, 200, 1_100]
    assert rank.device.start == [0, 1_000, 2_000]


def test_workers_prepare_batches_side_by_side() -> None:
    load = Op(Do.LOAD, device_ns=100_000)
    (rank,) = ran([load, LAUNCH], loader=Loader(workers=2), recorded=4)
    # A batch every 50 us, and 30 us to hand it over.
    assert call_ends(rank)[::2] == [80_000, 130_000, 180_000, 230_000]


def test_a_worker_is_two_batches_ahead_at_most() -> None:
    load, pause = Op(Do.LOAD, device_ns=100_000), Op(Do.HOST, host_ns=1_000_000)
    (rank,) = ran([load, load, load, pause, LAUNCH], loader=Loader(workers=1), recorded=2)
    # After the pause two batches are there; the third was asked for when the first was taken.
    assert [end - 1_330_100 for end in call_ends(rank)[5:8]] == [0, 0, 130_000]


def test_a_batch_of_the_main_thread_takes_its_time_there() -> None:
    (rank,) = ran([Op(Do.LOAD, device_ns=70_000), LAUNCH])
    assert call_ends(rank) == [70_000, 70_100]


@pytest.mark.parametrize("do", [Do.SYNC_STREAM, Do.SYNC_DEVICE])
def test_a_blocking_call_ends_after_the_work_and_the_return(do: Do) -> None:
    ops = [LAUNCH, Op(do, call_ns=50)]
    assert call_ends(ran(ops)[0]) == [100, 1_500]
    assert call_ends(ran(ops, World(never_blocks=True))[0]) == [100, 150]


def test_an_event_is_awaited_as_it_was_recorded_in_the_step_before() -> None:
    ops = [LAUNCH, Op(Do.SYNC_EVENT, event=LOSS), Op(Do.RECORD, event=LOSS)]
    (rank,) = ran(ops, recorded=3)
    assert call_ends(rank)[1::3] == [100, 1_500, 2_500]


REDUCED = [
    LAUNCH,
    Op(Do.RECORD, event=1),
    Op(Do.WAIT, event=1, stream=COMMUNICATION),
    Op(Do.COLLECTIVE, stream=COMMUNICATION, size=600, kind="allreduce"),
    Op(Do.RECORD, event=2, stream=COMMUNICATION),
    Op(Do.WAIT, event=2, early=True),
    LAUNCH,
]


# Two ranks pass 2 * 600 * 1/2 bytes at 1 byte a ns, after 200 ns; rank 1 computes twice as long.
@pytest.mark.parametrize(
    "world, ends",
    [
        (TODAY, [2_800 + 1_000, 2_800 + 2_000]),
        (World(ranks_alike=True), [1_800 + 1_000] * 2),
        (World(bandwidth=2.0), [2_500 + 1_000, 2_500 + 2_000]),
        (World(communication_free=True), [2_000, 4_000]),
        (World(compute_waits=False), [2_000, 4_000]),
    ],
)
def test_two_ranks_and_one_collective(world: World, ends: list[int]) -> None:
    ranks = ran(REDUCED, world, ranks=2, compute_factor={1: 2.0})
    assert [rank.device.end[-1] for rank in ranks] == ends


def test_free_hosts_still_load_and_block() -> None:
    ops = [
        Op(Do.LOAD, device_ns=5_000),
        Op(Do.HOST, host_ns=900),
        LAUNCH,
        Op(Do.SYNC_STREAM, call_ns=50),
    ]
    (rank,) = ran(ops, World(host_free=True), latency_us=3.0)
    assert call_ends(rank) == [5_000, 5_000, 5_000, 6_500]


def test_only_what_a_world_changes_is_drawn_differently() -> None:
    job = Job(seed=3, ranks=2, skew=0.02)
    draws = Draws(job, step_program(job))
    today, without = (draws.times(1, 2, w) for w in (TODAY, World(optimizer_free=True)))
    assert (today.host, today.call, today.latency) == (without.host, without.call, without.latency)
    pairs = zip(today.device, without.device, strict=True)
    changed = [i for i, (a, b) in enumerate(pairs) if a != b]
    assert [draws.ops[i].optimizer for i in changed] == [True] * job.optimizer_kernels


def test_a_seed_is_one_job() -> None:
    job = planned(11)
    runs = [simulate(Draws(job, step_program(job))) for _ in range(2)]
    assert planned(11) == job
    assert step_ends(runs[0]) == step_ends(runs[1])


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "tp", "accumulate", "clip", "single"])
def test_the_written_traces_show_the_step_that_was_simulated(strategy: str, tmp_path: Path) -> None:
    job = Job(
        seed=5,
        strategy=strategy,
        ranks=1 if strategy == "single" else 2,
        layers=2,
        micro_batches=2 if strategy == "accumulate" else 1,
        step_end="lagged",
        loader=Loader(batch_us=50, copy_us=20, copy="pageable"),
        clock_offset_ns={1: 3_000_000},
        dialect=Dialect(sync_events=True),
    )
    found = judged(job, tmp_path)
    assert found.predicted_step_ms == pytest.approx(found.step_ms, abs=1e-6)


def test_a_planned_job_is_judged_edit_by_edit() -> None:
    found = outcome(0)
    assert found.job.cause == "optimizer"
    assert found.first == "no-optimizer"
    assert set(found.predicted) == set(found.true)


@pytest.mark.parametrize(
    "predicted, chosen, hit",
    [
        ({"no-optimizer": 0.7, "no-host-sync": 0.6}, "no-host-sync", True),
        ({"no-optimizer": 0.6, "no-host-sync": 0.7}, "no-optimizer", True),
        ({"no-optimizer": 0.6, "no-data-loading": 0.5}, "no-data-loading", False),
        ({"no-optimizer": None, "no-host-sync": None}, None, False),
    ],
)
def test_a_choice_as_good_as_the_best_is_a_hit(
    predicted: dict[str, float | None], chosen: str | None, hit: bool
) -> None:
    true = {"no-host-sync": 0.60, "no-optimizer": 0.615, "no-data-loading": 0.63}
    found = Outcome(Job(seed=1), 10.0, 10.0, "replay", 0.0, true, predicted)
    assert (found.chosen, found.hit) == (chosen, hit)
