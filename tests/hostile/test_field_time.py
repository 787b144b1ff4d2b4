"""Public reports O12 to O16, O23, O28 to O31, O37, O39: times that are odd, and steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from field import BASE, GEMM, NCCL, STEP, base, both, mean, report, same, text, told
from make import TraceBuilder, trace

from analyzer.report.document import Report


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return both(tmp_path_factory.mktemp("sound"), base(0), base(1))


def test_kernels_at_time_0_are_counted_and_move_nothing(tmp_path: Path, sound: Report) -> None:
    """O12"""
    built = base(1)
    for _ in range(5):
        built.raw({"ph": "X", "cat": "kernel", "name": GEMM, "pid": 1, "tid": 7, "ts": 0, "dur": 0})
    found = both(tmp_path, base(0), built)
    assert same(found, sound)
    assert text(found, "untimed-events").startswith("5 event(s) carry no time (rank 1)")


def test_events_of_length_minus_1_are_in_no_sum(tmp_path: Path, sound: Report) -> None:
    """O13"""
    built = base(1).annotation("optimizer", 100, 99).op("aten::add", 100, 99)
    found = both(tmp_path, base(0), built)
    assert same(found, sound)
    assert text(found, "negative-durations").startswith("2 event(s) have no valid length (rank 1)")


def empty(built: TraceBuilder, k: int, at: int) -> None:
    """A kernel, a copy and a set without length; the kernel touches both of its neighbours."""
    built.kernel("empty", at + 3020, at + 3020, launch=(at + 26, at + 27))
    built.copy("HtoD", at + 100, at + 100, launch=(at + 27, at + 28))
    built.memset(at + 200, at + 200, launch=(at + 28, at + 29))


def test_device_events_without_length_take_no_time_and_are_counted(tmp_path: Path) -> None:
    """O14"""
    found = both(tmp_path, base(0, each=empty), base(1, each=empty))
    assert mean(found) == BASE
    counts = {kernel.name: kernel.count for kernel in found.kernels}
    assert (counts["empty"], counts["Memset (Device)"]) == (1.0, 1.0)
    assert counts["Memcpy HtoD (Pinned -> Device)"] == 1.0


def test_kernels_that_overlap_on_one_stream_count_once_and_are_both_listed(tmp_path: Path) -> None:
    """O15"""
    scene = trace(0, 1).kernel("A", 10, "13.776", launch=(0, 1)).kernel("B", 12, 20, launch=(2, 3))
    found = report(tmp_path, {"rank0.json": scene})
    assert mean(found) == {"compute": 0.01}
    assert {k.name: round(k.ms, 6) for k in found.kernels} == {"A": 0.003776, "B": 0.008}
    assert "overrunning-durations" not in told(found)


def test_times_since_the_epoch_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """O16"""
    scene = trace(0, 1, base_ns=None)
    scene.kernel("A", 10, "11.000", launch=(0, 1)).kernel("B", "11.001", "12.500", launch=(2, 3))
    found = report(tmp_path, {"rank0.json": scene})
    assert '"ts": 1760000123456010.000' in scene.text()
    assert mean(found) == {"compute": 0.002499, "launch": 0.000001}
    assert {k.name: round(k.ms, 6) for k in found.kernels} == {"A": 0.001, "B": 0.001499}


def late(built: TraceBuilder, k: int, at: int) -> None:
    """The third kernel of a step, 2 ms after the others."""
    built.kernel(GEMM, at + 7020, at + 10_020, launch=(at + 7000, at + 7005))


def waiting(built: TraceBuilder, k: int, at: int) -> None:
    """The same with the profiler's record of a wait laid over the gap, on the kernels' track."""
    late(built, k, at)
    built.event("cuda_sync", "Stream Synchronize", at + 5020, at + 7020, pid=0, tid=7)


def test_records_of_waits_on_device_tracks_leave_idle_time_idle(tmp_path: Path) -> None:
    """O23"""
    plain = report(tmp_path / "a", {"rank0.json": base(world_size=1, comm=None, each=late)})
    found = report(tmp_path / "b", {"rank0.json": base(world_size=1, comm=None, each=waiting)})
    assert mean(found) == mean(plain)
    assert mean(found)["compute"] == 8.0
    assert sum(mean(found).values()) - mean(found)["compute"] == pytest.approx(2.0)


def test_without_step_marks_the_recording_is_one_window_and_that_is_told(tmp_path: Path) -> None:
    """O28"""
    found = both(tmp_path, base(0, marks=False), base(1, marks=False))
    assert found.steps.rule == (
        "No usable step marks: the whole recorded window counts as one step."
    )
    assert len(found.breakdown.per_step) == 1
    assert found.steps.wall_ms.mean == pytest.approx(40.0)
    assert "no-step-marks" in told(found)
    assert (found.steps.wall_ms.lo, found.scaling.f.lo) == (None, None)


def test_a_device_mark_over_the_first_kernel_alone_is_no_step(
    tmp_path: Path, sound: Report
) -> None:
    """O29"""

    def marked(built: TraceBuilder, k: int, at: int) -> None:
        built.gpu_annotation(f"ProfilerStep#{k}", at + 20, at + 3020)

    assert same(both(tmp_path, base(0, each=marked), base(1, each=marked)), sound)


def running_late(*, last: int) -> TraceBuilder:
    """Six steps of five kernels that run while the next step is launched; `last` in the last."""
    built = trace(0, 1)
    for k in range(6):
        at = k * STEP
        built.step(k, at, at + STEP).loader(at, at + 5)
        for i in range(5 if k < 5 else last):
            start = at + STEP + 2000 * i
            built.kernel(GEMM, start, start + 2000, launch=(at + 10 + 2 * i, at + 11 + 2 * i))
    return built


def test_kernels_belong_to_the_step_that_launched_them_and_a_thin_last_step_is_named(
    tmp_path: Path,
) -> None:
    """O30"""
    found = report(tmp_path, {"rank0.json": running_late(last=1)})
    assert mean(found) == {"compute": 10.0}
    assert found.steps.used == [1, 2, 3, 4]
    (why,) = (d.why for d in found.steps.dropped if d.index == 5)
    assert why == "only 1 device events where 5 are usual: records were lost"
    assert "lost-records" in told(found)


def without_first_kernels(rank: int) -> TraceBuilder:
    """Six steps; of the first two only the launches are there."""
    built = base(rank, steps=6)
    built.events = [e for i, e in enumerate(built.events) if not _lost(e, i, built.events)]
    return built


def _lost(event: str, place: int, events: list[str]) -> bool:
    before_third = place < next(i for i, e in enumerate(events) if "ProfilerStep#2" in e)
    return before_third and '"cat": "kernel"' in event


def test_first_steps_whose_kernels_were_lost_are_left_out_and_told(tmp_path: Path) -> None:
    """O31"""
    found = both(tmp_path, without_first_kernels(0), without_first_kernels(1))
    assert mean(found) == BASE
    assert found.steps.used == [3, 4, 5]
    why = {d.index: d.why for d in found.steps.dropped}
    assert (why[0], why[1]) == ("no device work recorded in it",) * 2
    assert text(found, "lost-records").startswith("4 step(s) of ranks 0, 1 hold far fewer")
    assert "launches-without-work" not in told(found)


def overlapping(rank: int) -> TraceBuilder:
    """Steps of 23 ms: 10 ms compute, 10 ms all-reduce, 2 ms of both, 5 ms waiting for a batch."""
    built = trace(rank, 2)
    for k in range(4):
        at = 23_000 * k
        built.step(k, at, at + 23_000).loader(at, at + 5_000)
        built.kernel(GEMM, at + 5_020, at + 15_020, launch=(at + 5_000, at + 5_010))
        built.collective(
            "allreduce", at + 13_020, at + 23_020, name=NCCL, launch=(at + 5_010, at + 5_015)
        )
    return built


def test_overlap_is_an_intersection_and_the_parts_sum_to_the_step(tmp_path: Path) -> None:
    """O37"""
    found = both(tmp_path, overlapping(0), overlapping(1))
    parts = mean(found)
    assert found.steps.wall_ms.mean == 23.0
    assert (parts["compute"], parts["comm_transfer"]) == (10.0, 8.0)
    assert found.breakdown.hidden_comm_ms == 2.0
    assert parts["data_loading"] + parts["launch"] == pytest.approx(5.0)
    assert sum(parts.values()) == pytest.approx(23.0)


def test_a_burst_of_kernels_after_all_marks_has_no_steps(tmp_path: Path) -> None:
    """O39"""
    built = trace(0, 1)
    for k in range(10):
        built.step(k, k * STEP, (k + 1) * STEP).loader(k * STEP, k * STEP + 5)
    end = 10 * STEP
    graph = {"call": "cudaGraphLaunch", "launch": (end + 10, end + 20), "correlation": 9000}
    built.kernel(GEMM, end + 30, end + 530, **graph)
    for i in range(1, 20):
        built.kernel(GEMM, end + 30 + 500 * i, end + 530 + 500 * i, correlation=9000)
    found = report(tmp_path, {"rank0.json": built})
    assert len(found.breakdown.per_step) == 1
    assert mean(found) == {"compute": 10.0}
    assert "no-step-marks" in told(found)
