from __future__ import annotations

from pathlib import Path

import pytest
from make import SCENE_NS, trace
from single import kernel, one

from analyzer.trace import kineto
from analyzer.trace.schema import NO_ID, CollectiveArgs, Kind


def test_parents_stand_before_children_that_start_with_them(tmp_path: Path) -> None:
    made = trace().op("child", 0, 5).op("parent", 0, 9)
    found = kineto.read(made.write(tmp_path / "t.json"))
    assert [found.names[i] for i in found.host.name] == ["parent", "child"]


LINKS = {
    "number": ("17", 17),
    "zero": ("0", 0),
    "rocm's none": ("-1", NO_ID),
    "another negative": ("-7", NO_ID),
    "quoted": ('"17"', 17),
    "quoted none": ('"-1"', NO_ID),
    "largest": ("9223372036854775807", 2**63 - 1),
    "above 2^63": ("9223372036854775808", NO_ID),
    "above 2^64": ("99999999999999999999", NO_ID),
    "decimal": ("17.0", 17),
    "fraction": ("17.5", NO_ID),
    "null": ("null", NO_ID),
    "word": ('"x"', NO_ID),
    "list": ("[1]", NO_ID),
}


@pytest.mark.parametrize("text, link", LINKS.values(), ids=LINKS)
def test_a_correlation_is_a_number_or_none(text: str, link: int, tmp_path: Path) -> None:
    args = f'{{"correlation": {text}}}'
    both = kernel("1", args=args) + "," + kernel("2", args=args).replace("kernel", "cuda_runtime")
    found = one(tmp_path, both)
    assert found.device.correlation.tolist() == [link]
    assert found.host.correlation.tolist() == [NO_ID, link]


def test_ascend_links_by_connection(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1", args='{"connection_id": 12}'))
    assert found.device.correlation.tolist() == [12]


STREAMS = {
    "number": ('{"stream": 7}', "7"),
    "quoted": ('{"stream": "7"}', "7"),
    "queue": ('{"sycl queue": "0x5581"}', "0x5581"),
    "ascend": ('{"Stream Id": 47}', "47"),
    "unsigned -1": ('{"stream": 4294967295}', "4294967295"),
    "track": ("{}", "9"),
}


@pytest.mark.parametrize("args, stream", STREAMS.values(), ids=STREAMS)
def test_a_stream_is_what_the_exporter_calls_it(args: str, stream: str, tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1", args=args))
    assert [found.streams[i] for i in found.device.stream] == [stream]


def test_a_kernel_without_arguments_runs_on_its_track(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1").replace(', "args": {}', ""))
    assert [found.streams[i] for i in found.device.stream] == ["9"]
    assert (found.device.device.tolist(), found.device.correlation.tolist()) == ([3], [NO_ID])


@pytest.mark.parametrize(
    "args, device",
    [
        ('{"device": 5}', 5),
        ("{}", 3),
        ('{"device": 99999999999}', NO_ID),
        ('{"device": "x"}', NO_ID),
    ],
)
def test_the_device_is_the_argument_else_the_process(
    args: str, device: int, tmp_path: Path
) -> None:
    assert one(tmp_path, kernel("1", args=args)).device.device.tolist() == [device]


def test_copies_carry_their_bytes(tmp_path: Path) -> None:
    both = kernel("1", args='{"bytes": 4096}') + "," + kernel("2", args='{"bytes": "512"}')
    found = one(tmp_path, both + "," + kernel("3"))
    assert found.device.nbytes.tolist() == [4096, 512, NO_ID]


def test_kernels_carry_the_occupancy_that_the_profiler_estimates(tmp_path: Path) -> None:
    said = ("37", "0", '"x"', "250", "-1", "100")
    events = [kernel(str(i), args=f'{{"est. achieved occupancy %": {v}}}')
              for i, v in enumerate(said, 1)]  # fmt: skip
    found = one(tmp_path, ",".join([*events, kernel("9")]))
    assert found.device.occupancy.tolist() == [37, 0, NO_ID, NO_ID, NO_ID, 100, NO_ID]


def test_matrix_operators_are_counted_by_the_sizes_of_their_inputs(tmp_path: Path) -> None:
    sizes = {"Input Dims": [[64, 512], [512, 256], []]}
    built = trace(rank=0).kernel("k", 0, 5)
    built.op("aten::mm", 10, 20, args=sizes).op("aten::mm", 20, 30, args=sizes)
    built.op("aten::mm", 30, 40).op("aten::relu", 40, 50, args=sizes)
    found = kineto.read(built.write(tmp_path / "rank0.json"))
    assert found.meta.shapes == {"aten::mm [[64, 512], [512, 256], []]": 2}


def test_a_send_and_a_receive_carry_their_other_side(tmp_path: Path) -> None:
    send = '{"Collective name": "send", "Dst Rank": 3}'
    receive = '{"Collective name": "recv", "Src Rank": 0}'
    found = one(tmp_path, ",".join(kernel(str(i), args=a) for i, a in enumerate((send, receive))))
    ends = [(c.source, c.destination) for c in found.collectives.values()]
    assert ends == [(None, 3), (0, None)]


def test_what_the_profiler_wrote_beside_a_collective_is_kept_by_row(tmp_path: Path) -> None:
    made = trace(world_size=2)
    made.raw({"ph": "X", "cat": "kernel", "name": "untimed", "ts": 0, "dur": 0})
    made.collective("allreduce", 50, 60, elements=10, dtype="Half", group="dp", seq=7)
    made.kernel("late", 90, 91).kernel("early", 1, 2)
    made.collective("_allgather_base", 5, 9, elements=20, group="tp", seq=3)
    assert kineto.read(made.write(tmp_path / "t.json")).collectives == {
        1: CollectiveArgs("_allgather_base", "tp", 2, "[0, 1]", "Float", 20, 20, 3),
        2: CollectiveArgs("allreduce", "dp", 2, "[0, 1]", "Half", 10, 10, 7),
    }


def test_numbers_beside_a_collective_that_are_none_are_unknown(tmp_path: Path) -> None:
    args = '{"Collective name": "c", "In msg nelems": -1, "Group size": "x", "Seq": 1e30}'
    said = one(tmp_path, kernel("1", args=args)).collectives[0]
    assert (said.in_elements, said.group_size, said.sequence) == (None, None, None)
    assert (said.out_elements, said.group, said.dtype) == (None, "", "")


def test_waits_of_mtia_queues_are_not_work(tmp_path: Path) -> None:
    made = trace().event("mtia_ccp_events", "event_wait", 0, 9)
    made.event("mtia_ccp_events", "fc", 9, 12)
    found = kineto.read(made.write(tmp_path / "t.json"))
    assert [found.names[i] for i in found.device.name] == ["fc"]


def test_names_are_found_by_rule_and_kind(tmp_path: Path) -> None:
    made = trace().op("b", 5, 6).op("a", 3, 4).annotation("b", 1, 2).runtime("b", 0, 1)
    found = kineto.read(made.write(tmp_path / "t.json"))
    rows = found.host_named(lambda name: name == "b", Kind.OP, Kind.ANNOTATION)
    assert (found.host.ts[rows] - SCENE_NS).tolist() == [1000, 5000]
