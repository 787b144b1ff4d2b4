"""Which call launched which work, which threads drive the device, and which op was around."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from analysed import linked
from make import AUTOGRAD, MAIN, TraceBuilder, trace

from analyzer.timeline.launches import innermost, launching_ops
from analyzer.trace.schema import NO_ID, Kind


def calls_of(builder: TraceBuilder, folder: Path) -> list[str | None]:
    read, launches = linked(builder, folder)
    rows = launches.row.tolist()
    return [None if row == NO_ID else read.names[read.host.name[row]] for row in rows]


def driving(builder: TraceBuilder, folder: Path) -> list[int]:
    read, launches = linked(builder, folder)
    return sorted(int(read.threads[i][1]) for i in launches.driving.tolist())


def ops_of(builder: TraceBuilder, folder: Path) -> list[str | None]:
    read, launches = linked(builder, folder)
    ids = launching_ops(read, launches, np.arange(len(read.device)))
    return [None if i == NO_ID else read.names[i] for i in ids.tolist()]


@pytest.mark.parametrize(
    "call", ["cudaLaunchKernel", "cuLaunchKernelEx", "hipExtModuleLaunchKernel", "vendorGoFast"]
)
def test_any_call_of_the_same_correlation_is_the_launch(tmp_path: Path, call: str) -> None:
    scene = trace().kernel("gemm", 20, 90, launch=(0, 5), call=call)
    assert calls_of(scene, tmp_path) == [call]


def test_work_without_a_recorded_call_has_no_launch(tmp_path: Path) -> None:
    scene = trace().kernel("early", 0, 10).kernel("gemm", 20, 90, launch=(0, 5))
    _, launches = linked(scene, tmp_path)
    assert launches.linked.tolist() == [False, True]
    assert launches.row.tolist()[0] == NO_ID


def test_minus_one_means_no_link_not_a_shared_key(tmp_path: Path) -> None:
    scene = trace().runtime("hipMemcpyAsync", 0, 5, correlation=-1)
    scene.copy("HtoD", 10, 20, correlation=-1)
    assert calls_of(scene, tmp_path) == [None]


def test_of_two_calls_with_one_id_the_first_to_start_is_the_launch(tmp_path: Path) -> None:
    scene = trace().runtime("cudaStreamSynchronize", 50, 90, correlation=7)
    scene.kernel("gemm", 20, 90, launch=(0, 5), correlation=7)
    assert calls_of(scene, tmp_path) == ["cudaLaunchKernel"]


def test_all_kernels_of_a_graph_share_its_launch(tmp_path: Path) -> None:
    scene = trace().runtime("cudaGraphLaunch", 0, 5, correlation=7)
    for start in (10, 20, 30):
        scene.kernel("gemm", start, start + 10, correlation=7)
    read, launches = linked(scene, tmp_path)
    assert calls_of(scene, tmp_path) == ["cudaGraphLaunch"] * 3
    assert set(launches.start.tolist()) == {read.host.ts[0]}


def test_threads_that_launch_kernels_drive_the_device(tmp_path: Path) -> None:
    scene = trace().op("aten::copy_", 0, 3, thread=99)
    scene.kernel("forward", 10, 20, launch=(0, 5))
    scene.kernel("backward", 20, 30, launch=(6, 9), thread=AUTOGRAD)
    scene.copy("HtoD", 30, 40, launch=(1, 3), thread=99)
    assert driving(scene, tmp_path) == sorted([MAIN, AUTOGRAD])


def test_a_thread_behind_one_kernel_in_thirty_does_not_drive(tmp_path: Path) -> None:
    scene = trace()
    for i in range(29):
        scene.kernel("gemm", 10 * i, 10 * i + 9, launch=(10 * i - 9, 10 * i - 5))
    scene.kernel("watchdog", 300, 301, launch=(0, 2), thread=99)
    assert driving(scene, tmp_path) == [MAIN]


def test_without_launched_kernels_every_thread_counts(tmp_path: Path) -> None:
    scene = trace().op("aten::add", 0, 5).op("aten::add", 0, 5, thread=99).kernel("gemm", 0, 9)
    assert driving(scene, tmp_path) == sorted([MAIN, 99])


def test_the_innermost_op_around_the_call_launched_it(tmp_path: Path) -> None:
    scene = trace().op("aten::linear", 0, 50).op("aten::addmm", 10, 40)
    scene.kernel("gemm", 60, 90, launch=(20, 25))
    assert ops_of(scene, tmp_path) == ["aten::addmm"]


def test_an_op_is_found_past_any_number_of_finished_children(tmp_path: Path) -> None:
    scene = trace().op("aten::foreach", 0, 500)
    for i in range(40):
        scene.op("aten::empty", 10 * i, 10 * i + 5)
    scene.kernel("gemm", 600, 700, launch=(450, 455))
    assert ops_of(scene, tmp_path) == ["aten::foreach"]


def test_ops_of_other_threads_launched_nothing(tmp_path: Path) -> None:
    scene = trace().op("aten::linear", 0, 50, thread=AUTOGRAD)
    scene.kernel("gemm", 60, 90, launch=(20, 25))
    assert ops_of(scene, tmp_path) == [None]


def test_an_op_that_has_ended_is_around_nothing(tmp_path: Path) -> None:
    scene = trace().op("aten::add", 0, 20).kernel("gemm", 60, 90, launch=(20, 25))
    assert ops_of(scene, tmp_path) == [None]


def test_an_op_without_length_is_around_nothing(tmp_path: Path) -> None:
    scene = trace().op("aten::add", 0, 50).op("aten::detach", 10, 10)
    scene.kernel("gemm", 60, 90, launch=(20, 25))
    assert ops_of(scene, tmp_path) == ["aten::add"]


def test_a_range_that_overlaps_without_nesting_is_not_named_after_its_end(tmp_path: Path) -> None:
    scene = trace().op("async", 0, 10).op("aten::add", 8, 12)
    scene.kernel("gemm", 60, 90, launch=(11, 12))
    assert ops_of(scene, tmp_path) != ["async"]


def test_work_without_a_launch_has_no_op(tmp_path: Path) -> None:
    assert ops_of(trace().op("aten::add", 0, 20).kernel("gemm", 5, 9), tmp_path) == [None]


def test_annotations_are_around_a_call_only_when_asked_for(tmp_path: Path) -> None:
    scene = trace().op("aten::add", 0, 50).annotation("nccl:all_reduce", 10, 40)
    scene.kernel("gemm", 60, 90, launch=(20, 25))
    read, launches = linked(scene, tmp_path)
    around = innermost(read, launches, np.arange(1), Kind.OP, Kind.ANNOTATION)
    assert [read.names[read.host.name[i]] for i in around] == ["nccl:all_reduce"]
