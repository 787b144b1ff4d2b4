"""What a replay is told of one rank: device work and the points of its host, in microseconds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import msgspec
import numpy as np
import pytest
from analysed import digested
from hypothesis import given
from hypothesis import strategies as st
from make import AUTOGRAD, SCENE_NS, TraceBuilder, trace

from analyzer.classify import program
from analyzer.classify.kernels import Activity
from analyzer.classify.replayable import BATCH, WHOLE_DEVICE, Call, Host, Program, Work, packed
from analyzer.trace.schema import NO_ID, Int64

LAUNCH, SYNC, LOADER, STREAM_WAIT = Call


def known(builder: TraceBuilder, folder: Path) -> Program:
    found = digested(builder, folder).program
    assert found is not None
    return found


def tables(builder: TraceBuilder, folder: Path) -> tuple[Work, Host]:
    return known(builder, folder).columns()


def micros(column: Int64) -> list[float]:
    return [ns / 1000 for ns in column.tolist()]


def times(column: Int64) -> list[float]:
    return micros(column - SCENE_NS)


@given(st.lists(st.integers(-(2**62), 2**62 - 1), max_size=40))
def test_columns_come_back_as_they_were_packed(values: list[int]) -> None:
    column = np.array(values, np.int64)
    tables = [table(**{f.name: column for f in fields(table)}) for table in (Work, Host)]
    work, host = (packed(table) for table in tables)
    for back in Program(names=[], ops=[], linked=1.0, queue=1024, work=work, host=host).columns():
        assert all(getattr(back, f.name).tolist() == values for f in fields(back))


def test_a_program_survives_being_saved(tmp_path: Path) -> None:
    found = known(trace().kernel("a", 10, 30, launch=(0, 5)).kernel("b", 30, 31), tmp_path)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Program)
    work, host = again.columns()
    assert (times(work.ts), micros(work.dur), work.host.tolist()) == ([10, 30], [20, 1], [0, -1])
    assert times(host.time) == [0]


def test_work_knows_its_kind_stream_name_and_operator(tmp_path: Path) -> None:
    built = trace().loader(0, 10).op("aten::mm", 20, 40)
    built.copy("HtoD", 15, 18, launch=(12, 14)).kernel("mm", 30, 50, launch=(25, 28))
    built.collective("allreduce", 50, 60, launch=(45, 46))
    found = known(built, tmp_path)
    work, _ = found.columns()
    assert work.activity.tolist() == [BATCH, Activity.COMPUTE, Activity.COMMUNICATION]
    assert work.record.tolist() == [NO_ID, NO_ID, 0]
    assert len(set(work.stream.tolist())) == 2
    assert found.names[work.name[1]] == "mm"
    assert [found.ops[i] for i in work.op.tolist() if i != NO_ID] == ["aten::mm"]


def test_a_launch_a_blocking_call_and_the_loader_are_points(tmp_path: Path) -> None:
    built = trace().loader(0, 30).kernel("k", 50, 90, launch=(40, 44)).sync(60, 95)
    built.kernel("k", 120, 130, launch=(110, 114))
    _, host = tables(built, tmp_path)
    assert host.kind.tolist() == [LOADER, LAUNCH, SYNC, LAUNCH]
    assert times(host.time) == [30, 40, 95, 110]
    assert micros(host.wait) == [30, 0, 35, 0]
    assert micros(host.rest) == [0, 10, 20, 15]


def test_allocation_is_other_time_and_a_long_silence_is_unknown(tmp_path: Path) -> None:
    built = trace().kernel("k", 10, 20, launch=(0, 5)).runtime("cudaMalloc", 5, 105)
    built.kernel("k", 120, 130, launch=(110, 115)).kernel("k", 9000, 9100, launch=(8115, 8120))
    _, host = tables(built, tmp_path)
    assert micros(host.other) == [0, 100, 0]
    assert micros(host.rest) == [0, 10, 5]
    assert micros(host.unknown) == [0, 0, 8000]


def test_what_passes_between_points_adds_up(tmp_path: Path) -> None:
    built = trace()
    for k in range(4):
        at = 10_000 * k
        built.loader(at, at + 300).copy("HtoD", at + 330, at + 360, launch=(at + 310, at + 320))
        built.runtime("cudaMalloc", at + 400, at + 450)
        built.kernel("k", at + 500, at + 900, launch=(at + 490, at + 495))
        built.kernel("b", at + 900, at + 990, launch=(at + 600, at + 605), thread=AUTOGRAD)
        built.sync(at + 700, at + 995)
    _, host = tables(built, tmp_path)
    passed = host.rest + host.other + host.unknown + host.wait
    assert passed[1:].tolist() == np.diff(host.time).tolist()


def test_threads_that_launch_are_one_chain(tmp_path: Path) -> None:
    built = trace().kernel("f", 10, 20, launch=(0, 5))
    built.kernel("b", 40, 50, launch=(30, 35), thread=AUTOGRAD)
    built.kernel("o", 70, 80, launch=(60, 65))
    work, host = tables(built, tmp_path)
    assert work.host.tolist() == [0, 1, 2]
    assert host.thread[0] == host.thread[2] != host.thread[1]


def test_a_graph_is_one_launch_of_much_work(tmp_path: Path) -> None:
    built = trace().runtime("cudaGraphLaunch", 0, 10, correlation=99)
    built.kernel("a", 20, 30, correlation=99).kernel("b", 30, 40, correlation=99)
    work, host = tables(built, tmp_path)
    assert (work.host.tolist(), times(host.time)) == ([0, 0], [0])


@pytest.mark.parametrize("took, waited", [(2002, 2000), (6, 0)])
def test_a_launch_behind_a_full_queue_waited_for_room_if_it_took_long(
    took: int, waited: int, tmp_path: Path
) -> None:
    """Other calls take 2 us, and some take longer for no reason."""
    built = trace().kernel("long", 10, 5010, launch=(0, 2))
    for i in range(513):
        built.kernel("k", 5010 + i, 5011 + i, launch=(4 + 4 * i, 6 + 4 * i))
    built.kernel("k", 5523, 5524, launch=(2500, 2500 + took))
    _, host = tables(built, tmp_path)
    assert micros(host.wait[-2:]) == [0, waited]
    assert times(host.time[-1:]) == [2500 + waited]


def test_a_slow_launch_with_room_in_the_queue_did_not_wait(tmp_path: Path) -> None:
    built = trace().kernel("a", 10, 20, launch=(0, 2)).kernel("b", 2010, 2020, launch=(5, 2005))
    _, host = tables(built, tmp_path)
    assert micros(host.wait) == [0, 0]


@pytest.mark.parametrize("nbytes, kinds", [(65_537, [LAUNCH, SYNC]), (65_536, [LAUNCH])])
def test_a_small_pageable_copy_never_blocks(nbytes: int, kinds: list[Call], tmp_path: Path) -> None:
    built = trace().copy("Memcpy HtoD (Pageable -> Device)", 5, 90, launch=(0, 95),
                         args={"bytes": nbytes})  # fmt: skip
    _, host = tables(built, tmp_path)
    assert host.kind.tolist() == kinds


def test_a_blocking_copy_launches_and_then_waits_for_itself(tmp_path: Path) -> None:
    built = trace().kernel("k", 5, 80, launch=(0, 2))
    built.copy("DtoH", 80, 90, launch=(10, 95))
    _, host = tables(built, tmp_path)
    assert host.kind.tolist() == [LAUNCH, LAUNCH, SYNC]
    assert times(host.time) == [0, 10, 95]
    assert host.awaited.tolist() == [NO_ID, NO_ID, 1]
    assert micros(host.wait) == [0, 0, 85]


@pytest.mark.parametrize(
    "call, awaited", [("cudaDeviceSynchronize", WHOLE_DEVICE), ("cudaStreamSynchronize", NO_ID)]
)
def test_only_a_device_sync_says_what_it_waits_for(call: str, awaited: int, tmp_path: Path) -> None:
    built = trace().kernel("k", 5, 80, launch=(0, 2)).sync(10, 85, call=call)
    built.kernel("k", 95, 99, launch=(90, 92))
    _, host = tables(built, tmp_path)
    assert host.awaited.tolist() == [NO_ID, awaited, NO_ID]


def test_a_recorded_stream_sync_waits_for_the_last_work_of_its_stream(tmp_path: Path) -> None:
    built = trace().kernel("a", 5, 80, launch=(0, 2)).kernel("b", 80, 99, launch=(3, 4))
    built.kernel("other", 10, 20, launch=(5, 6), stream=9)
    built.awaiting("cudaStreamSynchronize", 10, 101, stream=7)
    built.kernel("late", 110, 120, launch=(105, 106))
    _, host = tables(built, tmp_path)
    assert host.awaited.tolist()[3] == 2


def test_a_recorded_stream_wait_names_the_work_before_its_event(tmp_path: Path) -> None:
    built = trace().kernel("a", 5, 80, launch=(0, 2)).runtime("cudaEventRecord", 4, 5)
    record = built.last_correlation
    built.kernel("b", 80, 90, launch=(6, 7))
    built.awaiting("cudaStreamWaitEvent", 8, 9, stream=20, on=7, record=record)
    built.collective("allreduce", 82, 95, launch=(10, 12))
    work, host = tables(built, tmp_path)
    assert host.kind.tolist() == [LAUNCH, LAUNCH, STREAM_WAIT, LAUNCH]
    assert host.awaited.tolist()[2] == 0
    assert host.stream.tolist()[2] == work.stream[2]


def test_a_stream_wait_without_a_record_is_a_point_that_says_nothing(tmp_path: Path) -> None:
    built = trace().kernel("a", 5, 80, launch=(0, 2)).runtime("cudaStreamWaitEvent", 4, 5)
    built.kernel("b", 80, 90, launch=(6, 7))
    _, host = tables(built, tmp_path)
    assert host.kind.tolist() == [LAUNCH, STREAM_WAIT, LAUNCH]
    assert (host.awaited.tolist(), host.stream.tolist()) == ([NO_ID] * 3, [NO_ID] * 3)


def test_work_of_before_the_recording_does_not_count_as_unlinked(tmp_path: Path) -> None:
    built = trace().kernel("old", 0, 5).kernel("a", 10, 20, launch=(6, 8))
    built.kernel("lost", 20, 30).kernel("b", 30, 40, launch=(12, 14))
    built.kernel("c", 40, 50, launch=(14, 16))
    assert known(built, tmp_path).linked == 0.75


def stepped(count: int) -> TraceBuilder:
    built = trace()
    for k in range(count):
        built.step(k, 100 * k, 100 * k + 90)
        built.kernel("a", 100 * k + 10, 100 * k + 40, launch=(100 * k, 100 * k + 5))
        built.kernel("b", 100 * k + 40, 100 * k + 80, launch=(100 * k + 6, 100 * k + 9))
    return built


def test_too_much_work_is_cut_to_its_first_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_WORK", 7)
    assert tables(stepped(6), tmp_path)[0].step.tolist() == [0, 0, 1, 1, 2, 2]


def test_more_used_steps_than_are_needed_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_STEPS", 2)
    # Step 0 is not used, but what follows begins in it.
    assert tables(stepped(6), tmp_path)[0].step.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_single_step_that_is_too_much_has_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_WORK", 1)
    assert digested(stepped(3), tmp_path).program is None


def test_without_device_work_there_is_no_program(tmp_path: Path) -> None:
    assert digested(trace().op("aten::mm", 0, 10), tmp_path).program is None
