from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import ASCEND_TEXT, HIP, OLD, SCENE_NS, TraceBuilder, trace
from single import busy, kernel, one, reading

from analyzer.trace import inflate, kineto
from analyzer.trace.schema import Category, Kind, Trace


def content(found: Trace) -> dict[str, Any]:
    """All of a trace as plain values, ids resolved; name and size of the file apart."""
    lists = {"name": found.names, "thread": found.threads, "stream": found.streams}
    tables = {
        f"{table}.{column}": [lists[column][i] for i in values] if column in lists else list(values)
        for table in ("device", "host")
        for column, values in vars(getattr(found, table)).items()
    }
    meta = {k: v for k, v in vars(found.meta).items() if k not in ("name", "size")}
    return tables | {"meta": meta, "collectives": found.collectives}


def relaid(**how: Any) -> Callable[[TraceBuilder], str]:
    return lambda made: json.dumps(json.loads(made.text()), **how)


LAYOUTS: dict[str, Callable[[TraceBuilder], str]] = {
    "header last": TraceBuilder.text_header_last,
    "byte order mark": lambda made: "\ufeff" + made.text(),
    "crlf": lambda made: made.text().replace("\n", "\r\n"),
    "one line": relaid(),
    "one key per line": relaid(indent=2),
    "compact": relaid(separators=(",", ":")),
}


@pytest.mark.parametrize("lay", LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_changes_nothing(lay: Callable[[TraceBuilder], str], tmp_path: Path) -> None:
    expected = content(kineto.read(busy().write(tmp_path / "plain.json")))
    assert content(reading(tmp_path, lay(busy()))) == expected


@pytest.mark.parametrize("name", ["t.json.gz", "t.json.zst"])
def test_packing_changes_nothing(name: str, tmp_path: Path) -> None:
    expected = content(kineto.read(busy().write(tmp_path / "plain.json")))
    assert content(kineto.read(busy().write(tmp_path / name))) == expected


@settings(max_examples=40, deadline=None)
@given(size=st.integers(7, 900), batch=st.integers(1, 20))
def test_how_much_is_read_at_once_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, size: int, batch: int
) -> None:
    path = busy().write(tmp_path_factory.mktemp("t") / "plain.json")
    expected = content(kineto.read(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inflate, "PIECE", size)
        patch.setattr(kineto, "BATCH", batch)
        assert content(kineto.read(path)) == expected


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    made = busy()
    before = kineto.read(made.write(tmp_path / "a.json"))
    made.events.reverse()
    after = kineto.read(made.write(tmp_path / "b.json"))
    for table in ("device", "host"):
        for column in ("ts", "dur", "kind", "correlation"):
            a, b = (getattr(getattr(t, table), column).tolist() for t in (before, after))
            assert a == b


def test_a_list_at_top_level_is_a_trace_without_header(tmp_path: Path) -> None:
    found = reading(tmp_path, trace(base_ns=None).kernel("k", 1, 2, launch=(0, 1)).text_list())
    assert found.device.ts.tolist() == [SCENE_NS + 1000]
    assert (found.meta.rank, found.meta.base_ns) == (None, None)


def test_the_header_says_who_recorded(tmp_path: Path) -> None:
    made = trace(rank=3, world_size=8).kernel("k", 0, 1)
    made.top("deviceProperties", [{"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": "NVIDIA L4"}])
    made.top("with_stack", 1).top("record_shapes", 0).top("host_name", "node7")
    meta = kineto.read(made.write(tmp_path / "t.json")).meta
    assert (meta.rank, meta.world_size, meta.backend, meta.host) == (3, 8, "nccl", "node7")
    assert meta.gpus == ("NVIDIA H100", "NVIDIA L4")
    assert meta.flags == {"with_stack": True, "record_shapes": False}
    assert (meta.name, meta.size) == ("t.json", (tmp_path / "t.json").stat().st_size)


@pytest.mark.parametrize(
    "head",
    ['"distributedInfo": null, ', '"distributedInfo": [], ', '"distributedInfo": {"rank": "x"}, '],
)
def test_distributed_info_of_another_form_says_nothing(head: str, tmp_path: Path) -> None:
    assert one(tmp_path, kernel("1"), head).meta.rank is None


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ('{"unprofiled_step_ns": 3187882, "unprofiled_steps": 4}', 3_187_882),
        ('{"unprofiled_step_ns": 0}', None),
        ('{"unprofiled_step_ns": "soon"}', None),
        ('"of glass"', None),
    ],
)
def test_the_step_timed_before_the_recording_is_read(
    said: str, length: int | None, tmp_path: Path
) -> None:
    assert one(tmp_path, kernel("1"), f'"ceiling": {said}, ').meta.unprofiled_step_ns == length


def test_a_header_with_nan_and_control_characters_is_read(tmp_path: Path) -> None:
    head = '"speed": NaN, "note": "a\x01b", "distributedInfo": {"rank": 2}, '
    assert one(tmp_path, kernel("1"), head).meta.rank == 2


@pytest.mark.parametrize("dialect", [OLD, HIP, ASCEND_TEXT], ids=["old", "hip", "text"])
def test_every_dialect_gives_the_same_kinds_and_times(dialect: Any, tmp_path: Path) -> None:
    made = trace(dialect=dialect).op("aten::mm", 0, 9).kernel("k", 10, 20, launch=(1, 2))
    made.copy("HtoD", 21, 22, launch=(3, 4)).memset(23, 24, launch=(5, 6))
    found = kineto.read(made.write(tmp_path / "t.json"))
    assert (found.device.ts - SCENE_NS).tolist() == [10_000, 21_000, 23_000]
    assert found.device.kind.tolist() == [Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET]
    assert found.host.kind.tolist() == [Kind.OP, Kind.RUNTIME, Kind.RUNTIME, Kind.RUNTIME]
    assert found.device.correlation.tolist() == found.host.correlation.tolist()[1:]


def test_categories_are_counted_with_their_time_known_or_not(tmp_path: Path) -> None:
    made = trace().op("a", 0, 1).op("b", 1, 3).event("brand_new", "x", 0, "0.007")
    made.event("brand_new", "y", 0, -5).python("f", 0, 10)
    found = kineto.read(made.write(tmp_path / "t.json"))
    assert found.meta.categories == (
        Category("cpu_op", 2, 3000, known=True),
        Category("brand_new", 2, 7, known=False),
        Category("python_function", 1, 10_000, known=True),
    )
    assert len(found.host) == 2


def test_events_of_every_phase_are_counted(tmp_path: Path) -> None:
    made = trace().metadata("process_name", "python").kernel("k", 5, 6, launch=(1, 2))
    found = kineto.read(made.write(tmp_path / "t.json"))
    assert found.meta.events == 5
    assert len(found.device) + len(found.host) == 2


def test_ascend_device_tasks_are_known_by_their_type(tmp_path: Path) -> None:
    task = kernel("1", args='{"Task Type": "AI_CORE"}').replace('"cat": "kernel", ', "")
    found = one(tmp_path, task)
    assert found.device.kind.tolist() == [Kind.KERNEL]
    assert found.meta.categories[-1] == Category("kernel", 1, 2500, known=True)


def test_spans_without_category_are_not_work(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1").replace('"cat": "kernel", ', ""))
    assert found.meta.categories[-1] == Category("", 1, 2500, known=False)
    assert not len(found.device)


def test_memory_does_not_grow_with_what_is_left_out(tmp_path: Path) -> None:
    def peak(frames: int) -> int:
        made = trace().op("aten::mm", 0, 1)
        made.events += [
            '{"ph": "X", "cat": "python_function", "name": "f", "ts": 1, "dur": 2}'
        ] * frames
        path = made.write(tmp_path / "t.json.gz")
        tracemalloc.start()
        kineto.read(path)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(80_000) < 1.05 * peak(40_000)
