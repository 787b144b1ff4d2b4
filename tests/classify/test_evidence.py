"""Single facts about a rank that findings are judged by."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysed import digested
from make import AUTOGRAD, TraceBuilder, trace

from analyzer.classify.evidence import Evidence, Named

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SGEMM = "ampere_sgemm_128x64_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>()"


def facts(scene: TraceBuilder, folder: Path) -> Evidence:
    return digested(scene, folder).evidence


def two_steps(scene: TraceBuilder) -> TraceBuilder:
    """Steps 0 (not used), 1 and 2, each with a kernel that ends 950 us into it."""
    for number in range(3):
        at = 1000 * number
        scene.step(number, at, at + 1000)
        scene.kernel("k", at + 850, at + 950, launch=(at + 10, at + 15))
    return scene


def test_batches_are_counted_and_timed(tmp_path: Path) -> None:
    scene = trace().kernel("k", 0, 1000, launch=(-9, -5)).loader(100, 300).loader(400, 450)
    loader = facts(scene, tmp_path).loader
    assert (loader.events, loader.ns, loader.names) == (2, 250_000, [LOADER])
    assert not loader.single_process


def test_a_loader_in_the_training_process_is_told_apart(tmp_path: Path) -> None:
    scene = trace().kernel("k", 0, 1000).loader(1, 9, iterator="_SingleProcessDataLoaderIter")
    assert facts(scene, tmp_path).loader.single_process


def test_loading_outside_the_used_steps_takes_no_time_but_was_seen(tmp_path: Path) -> None:
    loader = facts(two_steps(trace()).loader(20, 60), tmp_path).loader
    assert (loader.events, loader.ns) == (1, 0)


def test_kernels_are_counted_by_what_they_do(tmp_path: Path) -> None:
    scene = trace().kernel(GEMM, 0, 100).kernel(SGEMM, 100, 150).kernel(ADD, 150, 180)
    scene.kernel("other", 180, 185).collective("allreduce", 185, 300).copy("DtoH", 300, 310)
    kernels = facts(scene, tmp_path).kernels
    assert (kernels.count, kernels.ns) == (4, 185_000)
    assert (kernels.matmul_ns, kernels.memory_ns) == (150_000, 30_000)
    assert kernels.plain_matmul_ns == 50_000
    assert kernels.plain_matmul == [Named(SGEMM, 1, 50_000)]


def test_tiny_is_under_ten_microseconds(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, "9.999").kernel("b", 10, 20).kernel("c", 20, 23)
    kernels = facts(scene, tmp_path).kernels
    assert (kernels.tiny_count, kernels.tiny_ns) == (2, 12_999)


def occupied(percent: int) -> dict[str, int]:
    return {"est. achieved occupancy %": percent}


def test_occupancy_is_weighted_by_time_over_the_computing_kernels_that_have_it(
    tmp_path: Path,
) -> None:
    scene = trace().kernel("a", 0, 300, args=occupied(50)).kernel("b", 300, 400, args=occupied(10))
    scene.kernel("untold", 400, 900).kernel(NCCL, 900, 990, stream=20, args=occupied(90))
    assert facts(scene, tmp_path).kernels.occupancy == 0.4


def test_occupancy_is_of_the_used_steps(tmp_path: Path) -> None:
    scene = two_steps(trace()).kernel("first", 100, 800, args=occupied(90))
    scene.kernel("second", 1100, 1200, args=occupied(30))
    assert facts(scene, tmp_path).kernels.occupancy == 0.3


def test_without_an_estimate_occupancy_is_unknown(tmp_path: Path) -> None:
    assert facts(trace().kernel("k", 0, 50), tmp_path).kernels.occupancy is None


def test_launch_calls_and_the_time_between_them(tmp_path: Path) -> None:
    scene = trace()
    for start, at in ((100, 0), (200, 10), (300, 30), (400, 60)):
        scene.kernel("k", start, start + 100, launch=(at, at + 5))
    launches = facts(scene, tmp_path).launches
    assert (launches.calls, launches.interval_ns) == (4, 20_000)


def test_one_call_has_no_interval(tmp_path: Path) -> None:
    launches = facts(trace().kernel("k", 0, 9, launch=(-9, -5)), tmp_path).launches
    assert (launches.calls, launches.interval_ns) == (1, None)


def test_graph_launches_without_kernels_are_told_apart(tmp_path: Path) -> None:
    scene = trace().kernel("k", 100, 200, correlation=1)
    for number in (1, 2, 3):
        scene.runtime("cudaGraphLaunch", 10 * number, 10 * number + 5, correlation=number)
    launches = facts(scene, tmp_path).launches
    covered = launches.coverage
    assert (covered.graph_calls, covered.graph_calls_recorded) == (3, 1)


def test_idle_time_with_an_empty_queue_is_told_from_waiting(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100, launch=(-50, -45)).op("aten::add", 80, 160)
    scene.kernel("late", 160, 200, launch=(140, 152))
    scene.kernel("queued", 290, 300, launch=(-40, -35))
    launches = facts(scene, tmp_path).launches
    assert (launches.idle_ns, launches.late_idle_ns) == (150_000, 52_000)


def test_work_that_seems_to_start_before_its_launch_is_counted(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100, launch=(2, 5)).kernel("b", 100, 200, launch=(50, 55))
    assert facts(scene, tmp_path).launches.starts_before_launch == 1


def test_exposed_copies_by_name_and_those_from_pageable_memory(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 100).copy("DtoD", 80, 130, stream=9)
    scene.copy("DtoD", 20, 40, stream=9).copy("DtoH", 130, 140)
    copies = facts(scene, tmp_path).copies
    assert copies.exposed == [
        Named("Memcpy DtoD (Device -> Device)", 1, 30_000),
        Named("Memcpy DtoH (Device -> Pageable)", 1, 10_000),
    ]
    assert copies.pageable_ns == 10_000


def test_blocking_calls_are_counted_where_they_take_time_in_a_used_step(tmp_path: Path) -> None:
    scene = two_steps(trace()).sync(100, 200).sync(1100, 1300).sync(2100, 2200)
    scene.sync(1500, 1600, thread=99)
    assert facts(scene, tmp_path).host.blocking == [Named("cudaStreamSynchronize", 2, 300_000)]


def test_blocking_calls_of_the_autograd_thread_count(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100, launch=(-9, -5))
    scene.kernel("b", 100, 300, launch=(20, 25), thread=AUTOGRAD)
    scene.sync(150, 250, thread=AUTOGRAD)
    assert facts(scene, tmp_path).host.blocking == [Named("cudaStreamSynchronize", 1, 100_000)]


def test_gloo_collectives_on_the_host_are_timed_once_where_they_overlap(tmp_path: Path) -> None:
    scene = trace().kernel("k", 0, 1000).op("gloo:all_reduce", 100, 300, thread=98)
    scene.op("gloo:all_reduce", 200, 400, thread=99)
    host = facts(scene, tmp_path).host
    assert host.gloo_ns == 300_000
    assert host.gloo == [Named("gloo:all_reduce", 2, 400_000)]


def test_the_profilers_own_work_is_timed(tmp_path: Path) -> None:
    scene = trace().kernel("k", 0, 1000).event("overhead", "Buffer Flush", 900, 1100)
    assert facts(scene, tmp_path).host.profiler_ns == 100_000


@pytest.mark.parametrize("scene", [trace().op("aten::mm", 0, 50), trace().kernel("k", 0, 50)])
def test_what_was_not_recorded_is_zero_events(tmp_path: Path, scene: TraceBuilder) -> None:
    found = facts(scene, tmp_path)
    assert (found.loader.events, found.loader.names) == (0, [])
    assert (found.launches.calls, found.launches.interval_ns) == (0, None)
    assert (found.copies.exposed, found.host.blocking, found.host.gloo) == ([], [], [])
