"""Rows of the field reports on steps, links and misreadings that no O-number builds.

A4 to A6 are what traces do, C what readers make of them; the row stands in each docstring.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from field import BASE, GEMM, STEP, base, both, mean, report, same, text, told
from make import AUTOGRAD, TraceBuilder, trace
from test_field_causes import under_recorded

from analyzer.ranks.unknown import NO_DEVICE, NO_LAUNCHES, WORK_LOST
from analyzer.report.document import Report


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return both(tmp_path_factory.mktemp("sound"), base(0), base(1))


def test_marks_that_begin_a_microsecond_early_are_steps_still(
    tmp_path: Path, sound: Report
) -> None:
    """A4, kineto #914"""
    ranks = []
    for rank in (0, 1):
        built = base(rank, marks=False)
        for k in range(4):
            built.step(k, k * STEP - 1, k * STEP + STEP)
        ranks.append(built)
    assert same(both(tmp_path, *ranks), sound)


def test_a_step_left_out_is_named_with_the_reason(sound: Report) -> None:
    """A4, HTA #76"""
    assert [(d.index, d.why) for d in sound.steps.dropped] == [
        (0, "first recorded step: it starts with work that was not recorded")
    ]


def test_the_same_step_marked_on_host_and_device_is_one(tmp_path: Path, sound: Report) -> None:
    """A4, pytorch #153949"""

    def twice(built: TraceBuilder, k: int, at: int) -> None:
        built.gpu_annotation(f"ProfilerStep#{k}", at + 20, at + 12_000)
        built.annotation(f"ProfilerStep#{k}", at + 100, at + 9000, thread=AUTOGRAD)

    found = both(tmp_path, base(0, each=twice), base(1, each=twice))
    assert (found.steps.used, mean(found)) == (sound.steps.used, BASE)


def test_copies_of_correlation_minus_1_share_no_launch(tmp_path: Path) -> None:
    """A5, chakra #128"""

    def copying(built: TraceBuilder, k: int, at: int) -> None:
        built.runtime("hipMemcpyAsync", at + 50, at + 60, correlation=-1)
        built.copy("DtoD", at + 200, at + 300, correlation=-1)
        built.copy("DtoD", at + 300, at + 400, correlation=-1)

    found = both(tmp_path, base(0, each=copying), base(1, each=copying))
    assert mean(found) == BASE
    assert "shared-launches" not in told(found)


def test_kernels_launched_before_the_recording_count_as_work(tmp_path: Path) -> None:
    """A5, TraceLens #106"""
    built = base(0, world_size=1, comm=None)
    for i in range(3):
        built.kernel(GEMM, -3000 + 1000 * i, -2000 + 1000 * i)
    found = report(tmp_path, {"rank0.json": built})
    assert found.steps.used == [1, 2, 3]
    assert mean(found)["compute"] == 5.0
    assert next(k.count for k in found.kernels if k.name == GEMM) == 2.0


def test_half_of_the_kernels_lost_in_every_step_forbids_idle_time(tmp_path: Path) -> None:
    """A5, kineto #1020"""

    def losing(built: TraceBuilder, k: int, at: int) -> None:
        for i in range(3):
            built.runtime("cudaLaunchKernel", at + 50 + 10 * i, at + 55 + 10 * i)

    found = both(tmp_path, base(0, each=losing), base(1))
    assert text(found, "launches-without-work") == (
        "Of 18 kernel launches only 9 have a recorded kernel (rank 0): records were lost, or a "
        "graph was being captured. The device may have been busier than shown, so idle and launch "
        "times are not given."
    )
    assert found.breakdown.mean_ms["launch"] is None
    assert (found.scaling.f.value, found.scaling.reason) == (None, WORK_LOST)
    assert found.verdict.confidence == "low"


def test_the_profilers_own_work_is_no_launch_overhead(tmp_path: Path) -> None:
    """A5, kineto #1020"""
    built = trace(0, 1)
    for k in range(4):
        at = k * STEP
        built.step(k, at, at + STEP).loader(at, at + 5)
        built.event("overhead", "Buffer Flush", at + 30, at + 1000)
        built.kernel(GEMM, at + 1020, at + 10_020, launch=(at + 10, at + 1015))
    found = report(tmp_path, {"rank0.json": built})
    assert mean(found) == {"compute": 9.0, "host_other": 0.97, "launch": 0.03}


def test_a_trace_without_any_device_event_has_no_idle_device(tmp_path: Path) -> None:
    """A5, kineto #996"""
    built = trace(0, 1)
    for k in range(6):
        built.step(k, k * STEP, k * STEP + STEP).op("aten::mm", k * STEP, k * STEP + 9000)
    found = report(tmp_path, {"rank0.json": built})
    assert found.breakdown.timeline == "host"
    for name in ("launch", "host_sync", "host_other", "dependency", "copy"):
        assert found.breakdown.mean_ms[name] is None
    assert NO_DEVICE in found.breakdown.reason
    assert found.idle == []


def test_without_launch_records_idle_time_has_no_cause(tmp_path: Path) -> None:
    """A5: only the device's activity was profiled."""
    built = trace(0, 1)
    for k in range(5):
        built.kernel(GEMM, k * STEP, k * STEP + 6000)
    found = report(tmp_path, {"rank0.json": built})
    assert found.breakdown.mean_ms["launch"] is None
    assert NO_LAUNCHES in found.breakdown.reason
    assert {cause.cause for cause in found.idle} == {"unlinked"}


@pytest.mark.parametrize("without", ["Process Group Name", "Process Group Description"])
def test_a_group_without_a_name_or_description_is_a_group(without: str, tmp_path: Path) -> None:
    """A6, kineto #906"""
    ranks = [base(r).text().replace(f'"{without}": ', '"other": ') for r in (0, 1)]
    found = both(tmp_path, *ranks)
    assert mean(found) == BASE
    assert [row.kind for row in found.collectives] == ["all_reduce"]


def test_an_unknown_category_is_listed_with_its_time(tmp_path: Path, sound: Report) -> None:
    """A6"""
    found = both(tmp_path, base(0), base(1).event("npu_core", "dot", 100, 350))
    assert [(u.category, u.ms) for u in found.unknown] == [("npu_core", 0.25)]
    assert text(found, "unknown-categories").endswith("left out: npu_core.")
    assert found.breakdown == sound.breakdown


def test_one_endless_kernel_moves_no_step_and_is_told(tmp_path: Path) -> None:
    """A3, ROCm/roctracer #104"""

    def scene(length: int) -> TraceBuilder:
        built = trace(0, 1)
        for k in range(9):
            at = k * 1000
            built.step(k, at, at + 1000).loader(at, at + 5)
            for i in range(4):
                start, launch = at + 20 + 250 * i, (at + 10 + 2 * i, at + 11 + 2 * i)
                last = length if (k, i) == (4, 2) else 250
                built.kernel(GEMM, start, start + last, launch=launch)
        return built

    right = report(tmp_path / "right", {"rank0.json": scene(250)})
    found = report(tmp_path / "wrong", {"rank0.json": scene(5_000_000)})
    assert same(found, right)
    assert text(found, "overrunning-durations").startswith("1 device event(s) outlast what follows")


def test_the_last_to_arrive_is_late_and_has_the_shortest_collective(sound: Report) -> None:
    """C1, C2, C20: waiting is until the last arrives, transfer from there on."""
    assert [late.rank for late in sound.ranks.late] == [1]
    (row,) = sound.collectives
    assert (row.wait_ms, row.transfer_ms) == (0.75, 4.0)
    assert row.exposed_ms == 4.5


def test_a_long_collective_operator_on_the_host_is_no_communication(
    tmp_path: Path, sound: Report
) -> None:
    """C15, pytorch #108128"""

    def calling(built: TraceBuilder, k: int, at: int) -> None:
        built.op("c10d::allreduce_", at + 45, at + 9000).op("nccl:all_reduce", at + 46, at + 8990)

    found = both(tmp_path, base(0, each=calling), base(1, each=calling))
    assert mean(found) == BASE


def test_a_blocking_call_beside_a_busy_device_costs_nothing(tmp_path: Path, sound: Report) -> None:
    """C13, pytorch #30791: the call waits for work that takes that long anyway."""

    def blocking(built: TraceBuilder, k: int, at: int) -> None:
        built.sync(at + 50, at + 9900)

    found = both(tmp_path, base(0, each=blocking), base(1, each=blocking))
    assert mean(found) == BASE
    assert found.breakdown.mean_ms["host_sync"] == 0.0


def test_exposed_and_hidden_communication_stand_side_by_side(sound: Report) -> None:
    """C5"""
    assert sound.breakdown.group_ms["communication"] == pytest.approx(4.5)
    assert sound.breakdown.hidden_comm_ms == 0.25


FORBIDDEN = {"launch", "host_sync", "host_other", "dependency", "data_loading"}


def test_what_a_caveat_forbids_is_in_no_part_of_the_report(tmp_path: Path) -> None:
    """A5, C12: null with a reason in every table, what-if, ceiling and prediction."""
    found = report(tmp_path, {"rank0.json": under_recorded()})
    (caveat,) = (c for c in found.quality if c.id == "graph-under-recorded")
    assert caveat.forbids == ["idle time", "launch overhead", "what-ifs", "scaling"]
    rows = [row.ms for row in (*found.breakdown.per_rank, *found.breakdown.per_step)]
    for ms in (found.breakdown.mean_ms, *rows):
        assert {name for name, value in ms.items() if value is None} == FORBIDDEN
    assert (found.scaling.speedup, found.scaling.efficiency, found.scaling.gustafson) == (None,) * 3
    assert (found.whatif.sequence, found.whatif.path, found.whatif.basis) == ([], None, "share")
    assert [f for f in found.findings if f.gain.speedup or f.ceiling_after] == []
