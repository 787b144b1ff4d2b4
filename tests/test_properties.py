"""What holds for every trace: the classes tile time and depend on nothing but what ran when.

Scenes are small and arbitrary: several streams and threads, work with and without a launch record,
launches that seem to come after their work, host calls of every kind, with and without step marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from analysed import broken_down, digested, windows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make import AUTOGRAD, MAIN, TraceBuilder, to_micros, trace

from analyzer.config import Settings, Thresholds
from analyzer.digest import RankDigest

UNIT = 100_000  # ns; far above the 10 us by which the clocks of host and device may differ
SCENE_END = 60  # units; nothing ends later
STEP = 8  # units between marks

KERNELS = (
    "gemm",
    "FusedAdam_kernel_adam_cuda",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
COPIES = ("HtoD", "DtoH", "DtoD", "PtoP")
CALLS = ("cudaStreamSynchronize", "cudaMalloc", "cudaMemcpy")
RANGES = (
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "Optimizer.step#AdamW.step",
    "nccl:all_reduce",
)


@dataclass(frozen=True)
class Work:
    """Work on the device; `lead` units after its launch call began (None: call not recorded)."""

    name: str
    stream: int
    start: int
    length: int
    lead: int | None
    call: int
    thread: int


@dataclass(frozen=True)
class Host:
    """A host event: an operator, a runtime call, a range, or the profiler's own work."""

    name: str
    start: int
    length: int
    thread: int


@dataclass(frozen=True)
class Scene:
    work: tuple[Work, ...]
    host: tuple[Host, ...]
    marks: int


threads = st.sampled_from([MAIN, AUTOGRAD, 99])
works = st.builds(
    Work,
    name=st.sampled_from(KERNELS + COPIES),
    stream=st.sampled_from([7, 9, 20]),
    start=st.integers(0, 40),
    length=st.integers(0, 8),
    lead=st.none() | st.integers(-1, 15),
    call=st.integers(0, 3),
    thread=threads,
)
hosts = st.builds(
    Host,
    name=st.sampled_from(("aten::mm", "overhead", *CALLS, *RANGES)),
    start=st.integers(0, 40),
    length=st.integers(0, 12),
    thread=threads,
)
scenes = st.builds(
    Scene,
    work=st.lists(works, min_size=1, max_size=8).map(tuple),
    host=st.lists(hosts, max_size=6).map(tuple),
    marks=st.integers(0, 6),
)
unmarked = scenes.map(lambda scene: replace(scene, marks=0))
few = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def built(scene: Scene, unit: int = UNIT) -> TraceBuilder:
    """The trace of a scene whose unit is that many nanoseconds."""

    def at(units: int) -> str:
        return to_micros(units * unit)

    builder = trace()
    for number in range(scene.marks):
        builder.step(number, at(number * STEP), at((number + 1) * STEP))
    for host in scene.host:
        category = "overhead" if host.name == "overhead" else "user_annotation"
        start, end = at(host.start), at(host.start + host.length)
        if host.name in CALLS:
            builder.runtime(host.name, start, end, thread=host.thread)
        elif host.name == "aten::mm":
            builder.op(host.name, start, end, thread=host.thread)
        else:
            builder.event(category, host.name, start, end, tid=host.thread)
    for work in scene.work:
        called = None if work.lead is None else work.start - work.lead
        launch = None if called is None else (at(called), at(called + work.call))
        add = builder.copy if work.name in COPIES else builder.kernel
        end = at(work.start + work.length)
        add(work.name, at(work.start), end, launch=launch, stream=work.stream, thread=work.thread)
    return builder


def times(found: RankDigest, factor: int = 1) -> list[object]:
    """All that is measured in a digest, as times `factor` times as long would measure it."""
    measured = [[w.end - w.start, *w.ns.values(), w.hidden_ns] for w in windows(found)]
    causes = {c.cause: c.ns * factor for c in found.causes}
    return [[[ns * factor for ns in window] for window in measured], causes]


@given(scene=scenes, unit=st.sampled_from([1, 777, UNIT]))
@few
def test_classes_tile_every_window(tmp_path: Path, scene: Scene, unit: int) -> None:
    found = digested(built(scene, unit), tmp_path)
    for window in windows(found):
        assert sum(window.ns.values()) == window.end - window.start
        assert min(window.ns.values()) >= 0
        assert 0 <= window.hidden_ns <= window.ns["compute"] + window.ns["optimizer"]
    assert [s.end for s in found.steps[:-1]] == [s.start for s in found.steps[1:]]


@given(scene=scenes)
@few
def test_causes_tile_the_idle_time(tmp_path: Path, scene: Scene) -> None:
    found = broken_down(built(scene), tmp_path, 0, SCENE_END * UNIT // 1000)
    ran = [w for w in scene.work if w.length]
    busy = {unit for w in ran for unit in range(w.start, w.start + w.length)}
    idle = sum(cause.total for cause in found.causes.values())
    assert idle == (SCENE_END - len(busy)) * UNIT
    assert sum(times.total for times in found.classes.values()) == SCENE_END * UNIT


@given(scene=scenes, data=st.data())
@few
def test_the_order_of_events_in_the_file_changes_nothing(
    tmp_path: Path, scene: Scene, data: st.DataObject
) -> None:
    builder = built(scene)
    before = times(digested(builder, tmp_path))
    builder.events = data.draw(st.permutations(builder.events))
    assert times(digested(builder, tmp_path)) == before


@given(scene=scenes, copies=st.integers(1, 3), data=st.data())
@few
def test_metadata_events_change_nothing_however_often_they_stand_there(
    tmp_path: Path, scene: Scene, copies: int, data: st.DataObject
) -> None:
    builder = built(scene)
    before = times(digested(builder, tmp_path))
    metadata = trace().metadata("process_name", "python").metadata("thread_name", "stream 7", tid=7)
    for text in metadata.events * copies:
        builder.events.insert(data.draw(st.integers(0, len(builder.events))), text)
    assert times(digested(builder, tmp_path)) == before


@given(scene=unmarked, data=st.data())
@few
def test_splitting_work_into_two_that_touch_changes_nothing(
    tmp_path: Path, scene: Scene, data: st.DataObject
) -> None:
    before = times(digested(built(scene), tmp_path))
    builder = built(scene)
    place = data.draw(st.integers(0, len(scene.work) - 1))
    work = scene.work[place]
    cut = work.start + data.draw(st.integers(0, work.length))
    first = replace(work, length=cut - work.start)
    builder = built(replace(scene, work=(*scene.work[:place], first, *scene.work[place + 1 :])))
    # One launch for both halves: the second takes the correlation of the first.
    correlation = len([h for h in scene.host if h.name in CALLS]) + place + 1
    start, end = to_micros(cut * UNIT), to_micros((work.start + work.length) * UNIT)
    add = builder.copy if work.name in COPIES else builder.kernel
    add(work.name, start, end, correlation=correlation, stream=work.stream)
    assert times(digested(builder, tmp_path)) == before


@given(scene=scenes, factor=st.sampled_from([2, 3]))
@few
def test_scaling_all_times_scales_all_classes(tmp_path: Path, scene: Scene, factor: int) -> None:
    """Limits in microseconds are scaled too; the clock slack (10 us) lies below the unit."""

    def limits(times: int) -> Settings:
        return Settings(
            Thresholds(
                python_gap_us=500 * times, dispatch_gap_us=100 * times, longest_hold_us=600 * times
            )
        )

    once = digested(built(scene), tmp_path, limits(1))
    longer = digested(built(scene, UNIT * factor), tmp_path, limits(factor))
    assert times(longer) == times(once, factor)


@given(scene=scenes, extra=works)
@few
def test_more_compute_never_makes_more_idle_time(tmp_path: Path, scene: Scene, extra: Work) -> None:
    def idle(work: Sequence[Work]) -> int:
        builder = built(replace(scene, work=tuple(work)))
        found = broken_down(builder, tmp_path, 0, SCENE_END * UNIT // 1000)
        return sum(cause.total for cause in found.causes.values())

    kernel = replace(extra, name="gemm")
    assert idle((*scene.work, kernel)) <= idle(scene.work)


@pytest.mark.parametrize("marks", [0, 3])
def test_work_without_any_length_is_a_window_without_any_time(tmp_path: Path, marks: int) -> None:
    work = Work("gemm", 7, 5, 0, None, 0, MAIN)
    found = digested(built(Scene((work,), (), marks)), tmp_path)
    assert (found.span.end - found.span.start, sum(found.span.ns.values())) == (0, 0)
