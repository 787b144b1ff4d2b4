"""The tables: device work by name, collectives one by one, idle time with the ops behind it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from analysed import digested, read
from make import SCENE_NS, TraceBuilder, trace

from analyzer.classify.kernels import Activity
from analyzer.classify.tables import MOST_NAMES, MOST_OPS, CollectiveRecord, largest
from analyzer.digest import RankDigest

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def table(found: RankDigest) -> list[tuple[str, int, float, float]]:
    return [(k.name, k.count, k.ns / 1000, k.exposed_ns / 1000) for k in found.kernels]


def collective(scene: TraceBuilder, folder: Path) -> CollectiveRecord:
    (record,) = digested(scene, folder).collectives
    return record


def test_device_work_by_name_the_largest_first(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 50).kernel("add", 50, 60).kernel("gemm", 60, 100)
    assert table(digested(scene, tmp_path)) == [("gemm", 2, 90, 0), ("add", 1, 10, 0)]


def test_overlapping_kernels_of_one_stream_are_both_in_the_table(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, "3.776").kernel("b", 2, 10)
    assert table(digested(scene, tmp_path)) == [("b", 1, 8, 0), ("a", 1, 3.776, 0)]


def test_work_without_length_is_counted(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 50).kernel("a", 50, 50).memset(60, 60).kernel("b", 70, 80)
    assert table(digested(scene, tmp_path)) == [
        ("a", 2, 50, 0),
        ("b", 1, 10, 0),
        ("Memset (Device)", 1, 0, 0),
    ]


def test_exposed_time_is_what_nothing_more_useful_covered(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 100).kernel(NCCL, 60, 150, stream=20)
    scene.copy("DtoH", 140, 180, stream=9)
    exposed = {name: us for name, _, _, us in table(digested(scene, tmp_path))}
    assert exposed == {"gemm": 0, NCCL: 50, "Memcpy DtoH (Device -> Pageable)": 30}


def test_the_table_covers_the_used_steps_only(tmp_path: Path) -> None:
    scene = trace()
    for number in range(3):
        at = 1000 * number
        scene.step(number, at, at + 1000)
        scene.kernel(f"kernel of {number}", at + 50, at + 950, launch=(at + 10, at + 15))
    names = [k.name for k in digested(scene, tmp_path).kernels]
    assert sorted(names) == ["kernel of 1", "kernel of 2"]


def test_the_tail_of_names_is_one_row(tmp_path: Path) -> None:
    scene = trace()
    for i in range(MOST_NAMES + 3):
        scene.kernel(f"kernel_{i}_", 10 * i, 10 * i + 5)
    rows = table(digested(scene, tmp_path))
    assert len(rows) == MOST_NAMES + 1
    assert rows[-1] == ("(3 other names)", 3, 15, 0)


def test_each_name_says_what_it_does(tmp_path: Path) -> None:
    scene = trace().kernel("ampere_sgemm_128x64_nn", 0, 50).kernel(NCCL, 50, 90)
    scene.copy("HtoD", 90, 95)
    kinds = [(k.kind, k.activity) for k in digested(scene, tmp_path).kernels]
    assert kinds == [
        ("matmul", Activity.COMPUTE),
        ("all_reduce", Activity.COMMUNICATION),
        ("memory", Activity.COPY),
    ]


def test_a_collective_carries_what_the_profiler_wrote_beside_it(tmp_path: Path) -> None:
    scene = trace(world_size=4).kernel("gemm", 0, 100)
    scene.collective("allreduce", 80, 150, elements=1000, group="3", ranks=[0, 2], seq=17)
    record = collective(scene, tmp_path)
    assert (record.kind, record.group, record.group_size) == ("all_reduce", "3", 2)
    assert (record.ranks, record.sequence, record.stream) == ("[0, 2]", 17, "20")
    assert (record.start, record.end) == (SCENE_NS + 80_000, SCENE_NS + 150_000)
    assert (record.exposed_ns, record.step) == (50_000, 0)


@pytest.mark.parametrize(
    ("dtype", "nbytes"),
    [("Float", 4000), ("BFloat16", 2000), ("c10::Half", 2000), ("Double", 8000), ("Weird", None)],
)
def test_bytes_are_elements_times_their_size(
    tmp_path: Path, dtype: str, nbytes: int | None
) -> None:
    scene = trace().collective("allreduce", 0, 50, elements=1000, dtype=dtype)
    assert collective(scene, tmp_path).nbytes == nbytes


@pytest.mark.parametrize(
    ("kind", "nbytes"), [("_allgather_base", 8000), ("_reduce_scatter_base", 4000)]
)
def test_bytes_of_an_all_gather_are_its_output(tmp_path: Path, kind: str, nbytes: int) -> None:
    sizes = {"Collective name": kind, "In msg nelems": 1000, "Out msg nelems": 2000}
    scene = trace().kernel("ncclDevKernel", 0, 50, args=sizes | {"dtype": "Float"})
    assert collective(scene, tmp_path).nbytes == nbytes


def test_the_metadata_names_the_operation_not_the_kernel(tmp_path: Path) -> None:
    scene = trace().collective("all_to_allv", 0, 50, name="ncclDevKernel_SendRecv")
    assert collective(scene, tmp_path).kind == "all_to_all"


def test_a_collective_without_metadata_is_known_by_its_name(tmp_path: Path) -> None:
    record = collective(trace().kernel(NCCL, 0, 50), tmp_path)
    assert (record.kind, record.group, record.group_size) == ("all_reduce", "", None)
    assert (record.nbytes, record.sequence) == (None, None)


@pytest.mark.parametrize(
    ("name", "key", "ends"), [("send", "Dst Rank", (None, 2)), ("recv", "Src Rank", (2, None))]
)
def test_a_send_or_receive_carries_its_other_side(
    name: str, key: str, ends: tuple[int | None, int | None], tmp_path: Path
) -> None:
    args = {"Collective name": name, "dtype": "Half", "In msg nelems": 8, key: 2}
    record = collective(trace().kernel("ncclDevKernel_SendRecv", 0, 50, args=args), tmp_path)
    assert (record.kind, record.nbytes) == ("send_recv", 16)
    assert (record.source, record.destination) == ends


def test_a_copy_between_devices_carries_its_bytes(tmp_path: Path) -> None:
    assert collective(trace().copy("PtoP", 0, 50, args={"bytes": 4096}), tmp_path).nbytes == 4096


def test_collectives_outside_the_used_steps_have_no_step(tmp_path: Path) -> None:
    scene = trace()
    for number in range(4):
        at = 1000 * number
        scene.step(number, at, at + 1000)
        scene.collective("allreduce", at + 50, at + 950, launch=(at + 10, at + 15))
    steps = [c.step for c in digested(scene, tmp_path).collectives]
    assert steps == [None, 1, 2, 3]


def test_a_collective_is_of_the_step_it_was_launched_in(tmp_path: Path) -> None:
    scene = trace().collective("allreduce", 5, 50)
    for number in range(3):
        at = 1000 * number
        scene.step(number, at, at + 1000).kernel("gemm", at + 50, at + 900, launch=(at, at + 1))
        scene.collective("allreduce", at + 950, at + 1100, launch=(at + 2, at + 3))
    records = digested(scene, tmp_path).collectives
    assert [(c.launched, c.step) for c in records] == [(None, None), (0, None), (1, 1), (2, 2)]


def test_on_the_host_a_collective_is_launched_in_the_step_around_it(tmp_path: Path) -> None:
    scene = trace()
    for number in range(3):
        at = 1000 * number
        scene.step(number, at, at + 1000).op("aten::mm", at + 10, at + 500)
        scene.annotation("gloo:all_reduce", at + 500, at + 900)
    records = digested(scene, tmp_path).collectives
    assert [c.launched for c in records] == [None, 1, 2]


def test_late_launches_are_named_by_their_op_and_loading_by_its_call(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100, launch=(-20, -15)).loader(50, 300)
    scene.op("aten::addmm", 310, 360).kernel("b", 360, 400, launch=(350, 355))
    ops = {c.cause: c.ops for c in digested(scene, tmp_path).causes if c.ns}
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert ops == {
        "loader": [(loader, 200_000)],
        "dispatch": [("aten::addmm", 50_000)],
        "launch_call": [("aten::addmm", 5_000)],
        "launch_latency": [("aten::addmm", 5_000)],
    }


def test_memory_calls_and_profiler_work_are_named_by_their_call(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100, launch=(-20, -15)).runtime("cudaMalloc", 110, 150)
    scene.event("overhead", "Buffer Flush", 160, 190, tid=99)
    scene.kernel("b", 210, 400, launch=(200, 205))
    ops = {c.cause: c.ops for c in digested(scene, tmp_path).causes if c.ns}
    assert ops["allocator"] == [("cudaMalloc", 40_000)]
    assert ops["profiler"] == [("Buffer Flush", 30_000)]


def test_idle_time_before_work_outside_any_op_says_so(tmp_path: Path) -> None:
    scene = trace().kernel("a", 0, 100).kernel("b", 160, 200)
    (unlinked,) = [c for c in digested(scene, tmp_path).causes if c.ns]
    assert unlinked.ops == [("(no operator)", 60_000)]


def test_the_names_with_most_time_come_first_and_ties_by_name(tmp_path: Path) -> None:
    scene = trace()
    for name in ("b", "a", "c"):
        scene.op(name, 0, 1)
    host = read(scene, tmp_path)
    ids = np.array([host.names.index(n) for n in ("b", "a", "c", "c", "a")], np.int64)
    rows = largest(host, ids, np.array([5, 4, 9, 9, 0], np.int64))
    assert rows == [("c", 2, 18), ("b", 1, 5), ("a", 1, 4)]
    assert largest(host, ids[:2], np.array([5, 5], np.int64)) == [("a", 1, 5), ("b", 1, 5)]


def test_only_so_many_names_are_kept(tmp_path: Path) -> None:
    scene = trace()
    for i in range(MOST_OPS + 2):
        scene.op(f"op{i}", 0, 1)
    host = read(scene, tmp_path)
    ids = np.arange(MOST_OPS + 2)
    assert len(largest(host, ids, ids + 1)) == MOST_OPS
