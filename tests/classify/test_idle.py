"""Why the device was idle: one scene per cause, gaps between a kernel [0, 100) and the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysed import broken_down, causes, digested, spans, split
from make import MAIN, OLD, TraceBuilder, trace

from analyzer.classify.classes import CLASSES
from analyzer.classify.idle import CAUSES

OTHER_THREAD = 99


def scene() -> TraceBuilder:
    """A kernel [0, 100) that was launched well before."""
    return trace().kernel("first", 0, 100, launch=(-20, -15))


def test_every_cause_is_booked_under_a_class() -> None:
    assert {cause.time_class for cause in CAUSES.values()} <= set(CLASSES)


def test_a_gap_splits_into_late_call_and_latency(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 153).kernel("next", 160, 200, launch=(140, 152))
    assert causes(late, tmp_path) == {"dispatch": 40, "launch_call": 12, "launch_latency": 8}
    assert split(late, tmp_path) == {"compute": 140, "launch": 60}


def test_a_kernel_that_starts_during_its_call_has_no_latency(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 170).kernel("next", 160, 200, launch=(140, 165))
    assert causes(late, tmp_path) == {"dispatch": 40, "launch_call": 20}


def test_a_kernel_that_seems_to_start_before_its_launch_ends_the_late_part(
    tmp_path: Path,
) -> None:
    late = scene().op("aten::add", 80, 170).kernel("next", 160, 200, launch=(163, 168))
    assert causes(late, tmp_path) == {"dispatch": 60}


def test_a_call_that_began_before_the_gap_is_the_call(tmp_path: Path) -> None:
    slow = (
        scene().kernel("next", 160, 200, launch=(90, 150)).kernel("b", 200, 210, launch=(190, 195))
    )
    assert causes(slow, tmp_path)["launch_call"] == 50


def test_the_interpreter_between_two_operators_is_dispatch(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 120).op("aten::mul", 600, 700)
    late.kernel("next", 700, 800, launch=(690, 695))
    assert causes(late, tmp_path) == {"dispatch": 590, "launch_call": 5, "launch_latency": 5}


def test_a_host_without_any_record_is_unknown(tmp_path: Path) -> None:
    late = scene().kernel("next", 6110, 6200, launch=(6100, 6105))
    found = digested(late, tmp_path)
    assert causes(late, tmp_path) == {"host_unknown": 6000, "launch_call": 5, "launch_latency": 5}
    assert found.evidence.loader.events == 0
    assert found.span.ns["unexplained"] == 6_000_000


def test_waiting_for_a_batch_is_data_loading(tmp_path: Path) -> None:
    late = scene().loader(50, 400).op("aten::add", 410, 460)
    late.kernel("next", 460, 500, launch=(450, 455))
    assert causes(late, tmp_path) == {
        "loader": 300,
        "dispatch": 50,
        "launch_call": 5,
        "launch_latency": 5,
    }


def test_operators_inside_the_loader_are_the_loaders(tmp_path: Path) -> None:
    late = scene().loader(50, 400, iterator="_SingleProcessDataLoaderIter")
    late.op("aten::stack", 100, 390).kernel("next", 400, 500, launch=(395, 398))
    assert causes(late, tmp_path) == {"loader": 295, "launch_call": 3, "launch_latency": 2}


def test_memory_calls_inside_the_loader_are_the_loaders(tmp_path: Path) -> None:
    late = scene().loader(50, 400).runtime("cudaHostAlloc", 110, 300)
    late.kernel("next", 400, 500, launch=(395, 398))
    assert causes(late, tmp_path) == {"loader": 295, "launch_call": 3, "launch_latency": 2}


def test_the_interpreter_after_a_long_wait_for_a_batch_is_dispatch(tmp_path: Path) -> None:
    late = scene().loader(50, 2000).kernel("next", 2310, 2400, launch=(2300, 2305))
    assert causes(late, tmp_path) == {
        "loader": 1900,
        "dispatch": 300,
        "launch_call": 5,
        "launch_latency": 5,
    }


def test_a_step_mark_is_no_work_of_the_host(tmp_path: Path) -> None:
    late = trace(dialect=OLD).kernel("first", 0, 100, launch=(-20, -15)).step(1, -20, 6200)
    late.kernel("next", 6110, 6200, launch=(6100, 6105))
    assert causes(late, tmp_path)["host_unknown"] == 6000


def test_a_loader_behind_a_busy_device_costs_nothing(tmp_path: Path) -> None:
    busy = trace().kernel("first", 0, 9000, launch=(-20, -15)).loader(100, 8100)
    busy.kernel("next", 9000, 18000, launch=(8200, 8205))
    assert split(busy, tmp_path) == {"compute": 18000}


def test_a_loader_after_the_launch_is_not_to_blame(tmp_path: Path) -> None:
    queued = scene().op("aten::add", 80, 121).kernel("next", 300, 400, launch=(110, 120))
    queued.loader(130, 290)
    assert causes(queued, tmp_path) == {"dispatch": 10, "launch_call": 10, "launch_latency": 180}


def test_a_loader_on_a_thread_that_launches_no_kernels_does_not_count(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 455).kernel("next", 460, 500, launch=(450, 455))
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    late.annotation(name, 90, 440, thread=OTHER_THREAD)
    assert "loader" not in causes(late, tmp_path)


def test_refilling_after_a_blocking_call_is_host_sync(tmp_path: Path) -> None:
    drained = scene().sync(20, 105).op("aten::add", 110, 160)
    drained.kernel("next", 160, 200, launch=(150, 155))
    assert causes(drained, tmp_path) == {"sync": 50, "launch_call": 5, "launch_latency": 5}
    assert split(drained, tmp_path)["host_sync"] == 50


def test_a_blocking_call_that_returned_long_before_is_not_to_blame(tmp_path: Path) -> None:
    late = scene().sync(10, 60, call="cudaEventSynchronize").op("aten::add", 61, 160)
    late.kernel("next", 160, 200, launch=(150, 155))
    assert causes(late, tmp_path) == {"dispatch": 50, "launch_call": 5, "launch_latency": 5}


@pytest.mark.parametrize(("returned", "cause"), [(91, "sync"), (89, "dispatch")])
def test_host_and_device_clocks_may_differ_by_ten_microseconds(
    tmp_path: Path, returned: int, cause: str
) -> None:
    drained = scene().sync(20, returned).op("aten::add", 91, 160)
    drained.kernel("next", 160, 200, launch=(150, 155))
    assert causes(drained, tmp_path) == {cause: 50, "launch_call": 5, "launch_latency": 5}


def test_a_blocking_call_on_an_empty_queue_drained_nothing(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 160).sync(120, 130)
    late.kernel("next", 160, 200, launch=(150, 155))
    assert "sync" not in causes(late, tmp_path)


def test_the_loader_keeps_its_part_of_a_drained_queue(tmp_path: Path) -> None:
    drained = scene().sync(20, 105).loader(120, 300)
    drained.kernel("next", 360, 400, launch=(350, 355))
    assert causes(drained, tmp_path) == {
        "loader": 180,
        "sync": 70,
        "launch_call": 5,
        "launch_latency": 5,
    }


def test_a_copy_that_returns_when_it_is_done_blocks_like_a_synchronise(tmp_path: Path) -> None:
    item = scene().copy("DtoH", 100, 110, launch=(20, 125)).op("aten::add", 130, 180)
    item.kernel("next", 180, 200, launch=(170, 175))
    assert causes(item, tmp_path) == {"sync": 60, "launch_call": 5, "launch_latency": 5}


@pytest.mark.parametrize(
    ("copy", "call"),
    [
        pytest.param("Memcpy DtoH (Device -> Pageable)", (20, 45), id="returned before"),
        pytest.param("Memcpy DtoH (Device -> Pageable)", (100, 109), id="did not have to wait"),
        pytest.param("Memcpy HtoD (Pinned -> Device)", (80, 125), id="long call, pinned"),
        pytest.param("Memcpy DtoD (Device -> Device)", (80, 125), id="long call, on the device"),
    ],
)
def test_other_copies_do_not_block(tmp_path: Path, copy: str, call: tuple[int, int]) -> None:
    queued = scene().copy(copy, 100, 110, launch=call)
    queued.op("aten::add", 90, 180).kernel("next", 180, 200, launch=(170, 175))
    assert causes(queued, tmp_path) == {"dispatch": 60, "launch_call": 5, "launch_latency": 5}


@pytest.mark.parametrize("call", ["cudaMalloc", "cudaFree", "cudaHostAlloc", "hipMalloc"])
def test_memory_calls_in_a_gap_are_named(tmp_path: Path, call: str) -> None:
    late = scene().op("aten::empty", 80, 290).runtime(call, 110, 280)
    late.kernel("next", 300, 400, launch=(290, 295))
    assert causes(late, tmp_path)["allocator"] == 170
    assert split(late, tmp_path)["host_other"] == 170


@pytest.mark.parametrize("thread", [MAIN, OTHER_THREAD])
def test_the_profilers_own_work_is_not_launch_overhead(tmp_path: Path, thread: int) -> None:
    late = scene().event("overhead", "Activity Buffer Request", 120, 180, tid=thread)
    late.op("aten::add", 80, 205).kernel("next", 210, 300, launch=(195, 205))
    assert causes(late, tmp_path) == {
        "profiler": 60,
        "dispatch": 35,
        "launch_call": 10,
        "launch_latency": 5,
    }
    assert split(late, tmp_path) == {"compute": 190, "host_other": 60, "launch": 50}


def test_queued_work_around_a_collective_waits_for_the_other_stream(tmp_path: Path) -> None:
    queued = scene().collective("allreduce", 102, 300, launch=(-14, -10))
    queued.kernel("next", 303, 400, launch=(-9, -5))
    assert causes(queued, tmp_path) == {"stream_wait": 5}
    assert split(queued, tmp_path) == {"compute": 197, "comm_unsplit": 198, "dependency": 5}


def test_a_short_gap_between_queued_work_of_one_stream_is_launch_overhead(tmp_path: Path) -> None:
    queued = scene().kernel("next", 120, 200, launch=(-14, -10))
    assert causes(queued, tmp_path) == {"queue_gap": 20}
    assert split(queued, tmp_path) == {"compute": 180, "launch": 20}


def test_a_long_gap_between_queued_work_of_one_stream_is_a_dependency(tmp_path: Path) -> None:
    queued = scene().kernel("next", 121, 200, launch=(-14, -10))
    assert causes(queued, tmp_path) == {"stream_wait": 21}


def test_queued_work_that_does_not_start_for_long_is_unexplained(tmp_path: Path) -> None:
    stuck = scene().kernel("next", 5100, 5200, launch=(-14, -10))
    assert causes(stuck, tmp_path) == {"stream_wait": 1000, "held_unknown": 4000}


def test_latency_beyond_a_millisecond_is_unexplained(tmp_path: Path) -> None:
    stuck = scene().op("aten::add", 80, 160).kernel("next", 5155, 5200, launch=(150, 155))
    assert causes(stuck, tmp_path) == {
        "dispatch": 50,
        "launch_call": 5,
        "launch_latency": 1000,
        "held_unknown": 4000,
    }


def test_work_launched_just_before_the_gap_is_still_on_its_way(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 190).kernel("late", 160, 200, launch=(140, 145))
    late.kernel("next", 232, 300, launch=(195, 198))
    assert causes(late, tmp_path) == {"dispatch": 40, "launch_call": 5, "launch_latency": 15 + 32}


def test_a_gap_ended_by_work_without_a_launch_record_is_unexplained(tmp_path: Path) -> None:
    orphan = scene().op("aten::add", 80, 160).kernel("next", 160, 200)
    assert causes(orphan, tmp_path) == {"unlinked": 60}
    assert split(orphan, tmp_path) == {"compute": 140, "unexplained": 60}


def test_work_without_length_ends_no_gap(tmp_path: Path) -> None:
    late = scene().op("aten::add", 80, 153).memset(130, 130, launch=(85, 88))
    late.memset(160, 160, launch=(89, 92)).kernel("next", 160, 200, launch=(140, 152))
    assert causes(late, tmp_path) == {"dispatch": 40, "launch_call": 12, "launch_latency": 8}


def test_idle_time_after_the_last_work_is_unexplained(tmp_path: Path) -> None:
    found = broken_down(scene(), tmp_path, 0, 150)
    idle = found.causes["unlinked"]
    assert spans(idle.start, idle.end) == [(100, 150)]


def test_causes_tile_the_idle_time(tmp_path: Path) -> None:
    late = scene().sync(20, 105).loader(120, 300).runtime("cudaMalloc", 310, 330)
    late.event("overhead", "Buffer Flush", 250, 320).kernel("next", 360, 400, launch=(350, 355))
    assert causes(late, tmp_path) == {
        "loader": 130,
        "profiler": 70,
        "allocator": 10,
        "sync": 40,
        "launch_call": 5,
        "launch_latency": 5,
    }
