"""What the device did, nanosecond by nanosecond, whoever exported the trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from analysed import broken_down, digested, micros, split
from make import AUTOGRAD, CUDA, HIP, OLD, Dialect, TraceBuilder, trace

from analyzer.classify.classes import CLASSES
from analyzer.config import Settings

XPU = Dialect(
    categories={"cuda_runtime": "xpu_runtime"},
    calls={"cudaLaunchKernel": "urEnqueueKernelLaunch", "cudaMemcpyAsync": "urEnqueueUSMMemcpy"},
)
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
CROSS_DEVICE = "void vllm::cross_device_reduce_2stage<__hip_bfloat16, 8>(vllm::RankData*)"
FUSED = (
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
    "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>(int)"
)
COLLECTIVE_CALL = "c10d::_allgather_base_"


def base(scene: TraceBuilder, copy: str = "gpu_memcpy", **how: Any) -> TraceBuilder:
    """A kernel, a copy, an idle gap, a kernel with half a collective beside it."""
    name = "__amd_rocclr_copyBuffer" if copy == "kernel" else "Memcpy HtoD (Pinned -> Device)"
    scene.op("aten::add", 80, 200)
    scene.kernel("gemm", 0, 100, launch=(-20, -15), **how)
    scene.activity(copy, name, 100, 130, launch=(-14, -12), call="cudaMemcpyAsync", **how)
    scene.kernel("elementwise", 190, 300, launch=(170, 180), **how)
    return scene.kernel(NCCL, 250, 350, launch=(182, 188), **{"stream": 20} | how)


BASE = {"compute": 210, "comm_unsplit": 50, "copy": 30, "launch": 60}


@pytest.mark.parametrize(
    ("dialect", "device", "how"),
    [
        pytest.param(CUDA, 0, {}, id="cuda"),
        pytest.param(HIP, 2, {"stream": 0}, id="hip, all on stream 0 of device 2"),
        pytest.param(HIP, 0, {"copy": "kernel"}, id="hip, copies filed under kernel"),
        pytest.param(OLD, 0, {}, id="old, capitals"),
        pytest.param(XPU, 0, {"stream": None, "args": {"sycl queue": 3}}, id="xpu, queues"),
    ],
)
def test_every_exporter_gives_the_same_classes(
    tmp_path: Path, dialect: Dialect, device: int, how: Mapping[str, Any]
) -> None:
    scene = base(trace(dialect=dialect, device=device), **how)
    assert split(scene, tmp_path) == BASE


def test_the_golden_sweep(tmp_path: Path) -> None:
    scene = trace().kernel("k1", 100, 500).kernel("k2", 620, 800)
    scene.collective("allreduce", 450, 700).copy("DtoD", 60, 100).copy("DtoD", 780, 830)
    found = broken_down(scene, tmp_path, 0, 1000)
    us = micros({name: times.total for name, times in found.classes.items()})
    hidden = found.hidden.total / 1000
    idle = sum(times.total for times in found.causes.values()) / 1000
    alone = us["compute"] - hidden
    assert [alone, hidden, us["comm_unsplit"], us["copy"], idle] == [450, 130, 120, 70, 230]
    assert sum(us.values()) == 1000


def test_communication_beside_compute_is_hidden_and_reported_apart(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 10000).collective("allreduce", 8000, 18000)
    scene.kernel("gemm", 23000, 23000)
    found = broken_down(scene, tmp_path, 0, 23000)
    assert micros({c: t.total for c, t in found.classes.items()}) == {
        "compute": 10000,
        "comm_unsplit": 8000,
        "unexplained": 5000,
    }
    assert found.hidden.total == 2_000_000


def test_compute_goes_before_the_optimizer_before_communication_before_copies(
    tmp_path: Path,
) -> None:
    scene = trace().copy("DtoH", 0, 100).collective("allreduce", 0, 80)
    scene.kernel("FusedAdam_kernel_adam_cuda", 0, 60, stream=9).kernel("gemm", 0, 40)
    assert split(scene, tmp_path) == {
        "compute": 40,
        "optimizer": 20,
        "comm_unsplit": 20,
        "copy": 20,
    }


def test_work_outside_the_window_is_not_counted(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 100).collective("allreduce", 50, 200)
    found = broken_down(scene, tmp_path, 60, 120)
    assert micros({c: t.total for c, t in found.classes.items()}) == {
        "compute": 40,
        "comm_unsplit": 20,
    }
    assert found.hidden.total == 40_000


def test_every_class_is_there_even_at_zero(tmp_path: Path) -> None:
    assert tuple(digested(trace().kernel("gemm", 0, 9), tmp_path).span.ns) == CLASSES


def test_kernels_without_a_launch_record_count(tmp_path: Path) -> None:
    scene = trace().kernel("early", 0, 50).kernel("gemm", 50, 90, launch=(0, 5))
    assert split(scene, tmp_path) == {"compute": 90}
    assert digested(scene, tmp_path).unlinked_share == 0.5


def test_overlap_on_one_stream_counts_once(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, "3.776").kernel("b", 2, "9.5")
    assert split(scene, tmp_path) == {"compute": 9.5}


def test_back_to_back_kernels_a_nanosecond_apart_leave_a_nanosecond(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, "3.776").kernel("b", "3.777", "9.500")
    assert split(scene, tmp_path) == {"compute": 9.499, "unexplained": 0.001}


def test_work_without_length_takes_no_time(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 50).kernel("b", 50, 50).copy("HtoD", 70, 70).memset(90, 90)
    scene.kernel("c", 100, 120)
    assert split(scene, tmp_path) == {"compute": 70, "unexplained": 50}


@pytest.mark.parametrize("name", ["Stream Sync", "Context Sync", "Stream Wait Event"])
def test_sync_records_on_device_tracks_are_not_work(tmp_path: Path, name: str) -> None:
    scene = trace().kernel("a", 0, 50, launch=(-9, -5)).kernel("b", 80, 90, launch=(-4, -2))
    without = split(scene, tmp_path)
    scene.event("cuda_sync", name, 40, 85, pid=0, tid=7, args={"stream": 7, "device": 0})
    scene.event("cuda_sync", name, 90, 500, pid=0, tid=-1, args={"stream": 4294967295})
    assert split(scene, tmp_path) == without == {"compute": 60, "dependency": 30}


@pytest.mark.parametrize("name", [CROSS_DEVICE, FUSED, "ncclDevKernel_Generic", NCCL])
def test_collectives_of_any_make_are_communication_on_any_stream(tmp_path: Path, name: str) -> None:
    scene = trace().kernel("gemm", 0, 50).kernel(name, 50, 80).kernel("gemm", 80, 100)
    assert split(scene, tmp_path) == {"compute": 70, "comm_unsplit": 30}


def test_a_users_rule_goes_first(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 50).kernel("my_ring_kernel", 50, 80)
    rules = Settings(kernels={"communication": ("my_ring",)})
    assert micros(digested(scene, tmp_path, rules).span.ns)["comm_unsplit"] == 30


def test_device_copies_of_a_collective_are_communication(tmp_path: Path) -> None:
    scene = trace().op(COLLECTIVE_CALL, 0, 100).kernel("gemm", 100, 200)
    scene.copy("DtoD", 200, 250, launch=(20, 25), stream=20)
    assert split(scene, tmp_path) == {"compute": 100, "comm_unsplit": 50}


def test_local_copies_inside_a_collective_are_copies(tmp_path: Path) -> None:
    scene = trace().op(COLLECTIVE_CALL, 0, 100).op("aten::copy_", 10, 50)
    scene.copy("DtoD", 200, 250, launch=(20, 25), stream=20)
    scene.copy("HtoD", 250, 260, launch=(60, 65), stream=20)
    assert split(scene, tmp_path) == {"copy": 60}


def test_copies_from_one_device_to_another_are_communication(tmp_path: Path) -> None:
    assert split(trace().copy("PtoP", 0, 50), tmp_path) == {"comm_unsplit": 50}


def test_sets_are_copies(tmp_path: Path) -> None:
    assert split(trace().memset(0, 50), tmp_path) == {"copy": 50}


def test_the_exposed_copy_of_the_batch_is_data_loading(tmp_path: Path) -> None:
    scene = trace().kernel("before", 0, 130, launch=(-20, -15)).loader(20, 60)
    scene.copy("HtoD", 100, 200, launch=(70, 75), stream=9)
    scene.kernel("first", 200, 300, launch=(80, 85))
    assert split(scene, tmp_path) == {"compute": 230, "data_loading": 70}


def test_copies_after_the_first_kernel_launch_are_copies(tmp_path: Path) -> None:
    scene = trace().loader(-60, -20).kernel("first", 0, 100, launch=(-10, -5))
    scene.copy("HtoD", 100, 150, launch=(10, 15))
    assert split(scene, tmp_path) == {"compute": 100, "copy": 50}


def test_copies_back_to_the_host_are_never_the_batch(tmp_path: Path) -> None:
    scene = trace().loader(-60, -20).copy("DtoH", 0, 50, launch=(-10, -5))
    scene.kernel("first", 50, 100, launch=(-4, -2))
    assert split(scene, tmp_path) == {"compute": 50, "copy": 50}


def test_copies_before_any_batch_are_copies(tmp_path: Path) -> None:
    scene = trace().copy("HtoD", 0, 50, launch=(-10, -5)).loader(60, 70)
    scene.kernel("first", 50, 100, launch=(-4, -2))
    assert split(scene, tmp_path) == {"compute": 50, "copy": 50}


def test_kernels_launched_in_an_optimizer_step_are_the_optimizers(tmp_path: Path) -> None:
    scene = trace().annotation("Optimizer.zero_grad#SGD.zero_grad", 0, 10)
    scene.annotation("Optimizer.step#SGD.step", 10, 50)
    scene.kernel("fill", 100, 110, launch=(2, 4)).kernel("foreach", 110, 140, launch=(20, 25))
    scene.kernel("forward", 140, 200, launch=(60, 65))
    assert split(scene, tmp_path) == {"compute": 70, "optimizer": 30}


def test_collectives_launched_in_an_optimizer_step_stay_communication(tmp_path: Path) -> None:
    scene = trace().annotation("Optimizer.step#SGD.step", 10, 50)
    scene.collective("allreduce", 100, 130, launch=(20, 25))
    scene.kernel("foreach", 130, 150, launch=(30, 35))
    assert split(scene, tmp_path) == {"optimizer": 20, "comm_unsplit": 30}


def test_forward_and_backward_in_an_optimizers_closure_are_compute(tmp_path: Path) -> None:
    scene = trace().annotation("Optimizer.step#AdamW.step", 0, 90)
    scene.kernel("forward", 100, 200, launch=(10, 15))
    scene.kernel("backward", 200, 400, launch=(30, 35), thread=AUTOGRAD)
    scene.kernel("foreach", 400, 430, launch=(60, 65))
    assert split(scene, tmp_path) == {"compute": 300, "optimizer": 30}


def test_backward_of_another_step_does_not_shorten_the_optimizer(tmp_path: Path) -> None:
    scene = trace().annotation("Optimizer.step#AdamW.step", 50, 90)
    scene.kernel("backward", 200, 400, launch=(30, 35), thread=AUTOGRAD)
    scene.kernel("foreach", 400, 430, launch=(60, 65))
    scene.kernel("backward", 430, 500, launch=(95, 99), thread=AUTOGRAD)
    assert split(scene, tmp_path) == {"compute": 270, "optimizer": 30}


def test_copies_from_another_thread_do_not_shorten_the_optimizer(tmp_path: Path) -> None:
    scene = trace().annotation("Optimizer.step#AdamW.step", 0, 90)
    scene.kernel("foreach", 100, 200, launch=(10, 15))
    scene.copy("HtoD", 120, 130, launch=(60, 65), thread=99)
    assert split(scene, tmp_path) == {"optimizer": 100}


def test_several_devices_of_one_process_share_one_timeline(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100).kernel("b", 50, 150, args={"device": 1})
    found = digested(scene, tmp_path)
    assert micros(found.span.ns) == {"compute": 150}
    assert found.evidence.kernels.devices == 2


def test_a_run_without_a_device_is_split_on_the_host(tmp_path: Path) -> None:
    scene = trace(backend="gloo").loader(0, 40).op("aten::stack", 10, 30).op("aten::mm", 50, 90)
    scene.op("gloo:all_reduce", 80, 130, thread=77)
    scene.annotation("Optimizer.step#SGD.step", 140, 160).op("aten::add_", 145, 160)
    found = digested(scene, tmp_path)
    assert found.timeline == "host"
    assert micros(found.steps[0].ns) == {
        "compute": 40,
        "optimizer": 15,
        "comm_unsplit": 40,
        "data_loading": 40,
        "unexplained": 25,
    }
    assert found.steps[0].hidden_ns == 10_000


def test_a_run_without_a_device_has_no_idle_causes(tmp_path: Path) -> None:
    assert digested(trace().op("aten::mm", 0, 50), tmp_path).causes == []
