"""Each defect of the data is told, and only where it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from make import TraceBuilder, trace
from runs import GEMM, STEP, add_step, healthy, loaded

from analyzer.config import Thresholds
from analyzer.findings.glossary import entry
from analyzer.report.caveats import RULES, caveats
from analyzer.report.document import Caveat

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Files = Mapping[str, TraceBuilder | str]


def told(folder: Path, files: Files) -> list[Caveat]:
    job = loaded(folder, files)
    return caveats(job.job, job.notes, Thresholds())


def alone(*, without: tuple[str, ...] = ("collectives",), steps: range = range(1, 8)) -> Files:
    return {"rank0.json": healthy(0, 1, steps=steps, without=without)}


def changed(change: Callable[[TraceBuilder], object]) -> Files:
    """The healthy run with something added to rank 1."""
    second = healthy(1)
    change(second)
    return {"rank0.json": healthy(0), "rank1.json": second}


def cut(text: str) -> str:
    return text[: text.rindex('"dur"')]


def graph_launched(built: TraceBuilder) -> TraceBuilder:
    """Seven steps of two kernels launched by one call each."""
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 5)
        graph = {"launch": (at + 10, at + 15), "call": "cudaGraphLaunch", "correlation": 900 + k}
        built.kernel(GEMM, at + 20, at + 520, **graph)
        built.kernel(GEMM, at + 520, at + 1020, correlation=900 + k)
    return built


def idle_third(built: TraceBuilder) -> TraceBuilder:
    """A third of every step passes without any record of what the host did."""
    for k in range(7):
        at = k * 3000
        built.step(k + 1, at, at + 3000).loader(at, at + 1).op("aten::linear", at + 1000, at + 1010)
        built.kernel(GEMM, at + 1020, at + 3000, launch=(at + 1010, at + 1015))
    return built


def broadcasting(built: TraceBuilder) -> TraceBuilder:
    """A tenth of every step is a broadcast, in which not every rank waits for every other."""
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 5)
        built.kernel(GEMM, at + 20, at + 920, launch=(at + 10, at + 15))
        built.collective("broadcast", at + 920, at + 1020, launch=(at + 15, at + 20))
    return built


def unnamed(rank: int) -> TraceBuilder:
    """One of four ranks whose all-reduces name no group: they end by turns 15 us later, and arrive
    10 us apart.
    """
    built = healthy(rank, 4, without=["collectives"]).top("host_name", "node")
    for k in range(7):
        at = k * STEP
        end = at + 800 + 15 * ((k + rank) % 2)
        built.kernel(REDUCE, at + 500 + 10 * rank, end, launch=(at + 20, at + 25), stream=20)
    return built


def reducing(rank: int, starts: Sequence[int], elements: int = 1024) -> TraceBuilder:
    """The healthy run with an all-reduce of 100 us in each step, from `starts` us on by turns."""
    built = healthy(rank, without=["collectives"])
    for k in range(7):
        at, start = k * STEP, k * STEP + starts[k % len(starts)]
        launch = (at + 20, at + 25)
        built.collective("allreduce", start, start + 100, elements=elements, launch=launch)
    return built


def early(built: TraceBuilder) -> TraceBuilder:
    """Every kernel starts 2 us before its launch, which only two clocks can show."""
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 5)
        built.kernel(GEMM, at + 20, at + STEP + 20, launch=(at + 22, at + 25))
    return built


def flushing(built: TraceBuilder) -> TraceBuilder:
    """A tenth of every step passes while the profiler empties its buffers."""
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 1)
        built.event("overhead", "Buffer Flush", at + 1, at + 101)
        built.kernel(GEMM, at + 110, at + STEP, launch=(at + 101, at + 105))
    return built


def without_device(built: TraceBuilder) -> TraceBuilder:
    for k in range(7):
        add_step(built, k + 1, k * STEP, ("kernels", "collectives"))
        built.op("aten::linear", k * STEP + 15, k * STEP + STEP)
    return built


def thin(built: TraceBuilder) -> TraceBuilder:
    for k in range(9):
        add_step(built, k + 1, k * STEP, ("kernels", "collectives") if k == 4 else ("collectives",))
    return built


def endless(built: TraceBuilder) -> TraceBuilder:
    """Nine steps of four kernels of 250 us, one of which claims to last a second."""
    for k in range(9):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 5)
        for i in range(4):
            start, launch = at + 20 + 250 * i, (at + 10 + 2 * i, at + 11 + 2 * i)
            length = 1_000_000 if (k, i) == (4, 2) else 250
            built.kernel(GEMM, start, start + length, launch=launch)
    return built


def lost(built: TraceBuilder) -> TraceBuilder:
    """Seven steps in which half of the kernel launches have no kernel."""
    for k in range(7):
        at = k * STEP
        add_step(built, k + 1, at, ("collectives",))
        built.runtime("cudaLaunchKernel", at + 30, at + 35)
    return built


def shared(built: TraceBuilder) -> TraceBuilder:
    """Seven steps of two kernels with one correlation, though no graph was launched."""
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 5)
        one = {"launch": (at + 10, at + 15), "correlation": 900 + k}
        built.kernel(GEMM, at + 20, at + 520, **one)
        built.kernel(GEMM, at + 520, at + 1020, correlation=900 + k)
    return built


def with_fused(built: TraceBuilder) -> TraceBuilder:
    for k in range(7):
        add_step(built, k + 1, k * STEP, ("collectives",))
        name = "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel<2>(int)"
        built.kernel(name, k * STEP + 500, k * STEP + 600, launch=(k * STEP + 20, k * STEP + 25))
    return built


DEFECTS: dict[str, Files] = {
    "truncated": {
        "rank0.json": healthy(0),
        "rank1.json": cut(healthy(1).op("aten::add", 6990, 6995).text()),
    },
    "malformed-events": changed(lambda b: b.raw_text('{"ph": "X", "cat": "kernel", "ts": }')),
    "overrunning-durations": {"rank0.json": endless(trace(0, 1))},
    "untimed-events": changed(
        lambda b: b.raw({"ph": "X", "cat": "kernel", "name": GEMM, "ts": 0, "dur": 0})
    ),
    "negative-durations": changed(lambda b: b.op("aten::add", 20, 10)),
    "graph-under-recorded": changed(
        lambda b: [b.runtime("cudaGraphLaunch", k * STEP + 30, k * STEP + 32) for k in range(7)]
    ),
    "launches-without-work": {"rank0.json": lost(trace(0, 1))},
    "shared-launches": {"rank0.json": shared(trace(0, 1))},
    "no-device-work": {"rank0.json": without_device(trace(0, 1))},
    "several-devices": changed(
        lambda b: b.event("kernel", GEMM, 100, 200, pid=5, tid=7, args={"device": 5, "stream": 7})
    ),
    "ranks-missing": {"rank0.json": healthy(0)},
    "ranks-not-joined": {f"rank{r}.json": broadcasting(trace(r, 2)) for r in (0, 1)},
    # Rank 1 ends its first all-reduce before rank 0 begins, and begins its second after it.
    "clocks-not-aligned": {
        "rank0.json": reducing(0, [500]),
        "rank1.json": reducing(1, [200, 800]),
    },
    "collectives-unmatched": {
        "rank0.json": reducing(0, [500]),
        "rank1.json": reducing(1, [500], elements=2048),
    },
    "group-assumed": {f"rank{r}.json": unnamed(r) for r in range(4)},
    "world-size-unknown": {f"rank{r}.json": healthy(None) for r in (0, 1)},
    "ranks-disagree": {
        "rank0.json": healthy(0).top("deviceProperties", [{"id": 0, "name": "H100"}]),
        "rank1.json": healthy(1).top("deviceProperties", [{"id": 0, "name": "A100"}]),
    },
    "steps-differ": {
        "rank0.json": healthy(0),
        "rank1.json": healthy(1, steps=range(11, 18)),
    },
    "no-step-marks": {f"rank{r}.json": healthy(r, without=["marks"]) for r in (0, 1)},
    "single-step": alone(steps=range(1, 2)),
    "few-steps": alone(steps=range(1, 4)),
    "lost-records": {"rank0.json": thin(trace(0, 1))},
    "cpu-times-inflated": changed(lambda b: b.top("with_stack", 1)),
    "profiler-overhead": {"rank0.json": flushing(trace(0, 1))},
    "profiler-slowdown": changed(lambda b: b.top("ceiling", {"unprofiled_step_ns": 900_000})),
    "unlinked-work": changed(
        lambda b: [b.kernel(GEMM, k * STEP + 100, k * STEP + 300) for k in range(7)]
    ),
    "no-collectives": {f"rank{r}.json": healthy(r, without=["collectives"]) for r in (0, 1)},
    "no-loader-events": {f"rank{r}.json": healthy(r, without=["loader"]) for r in (0, 1)},
    "unexplained-idle": {"rank0.json": idle_third(trace(0, 1))},
    "fused-kernels": {"rank0.json": with_fused(trace(0, 1))},
    "graph-launches": {"rank0.json": graph_launched(trace(0, 1))},
    "clock-offset": {"rank0.json": early(trace(0, 1))},
    "unverified-vendor": changed(lambda b: b.event("glow_runtime", "submit", 100, 101)),
    "unknown-categories": changed(lambda b: b.event("fpga", "dot", 100, 101)),
    "rank-by-order": {f"{name}.json": healthy(None) for name in ("left", "right")},
    "rank-disputed": {"rank0.json": healthy(0), "rank3.json": healthy(1)},
    "one-rank": {"rank0.json": healthy(None)},
}
# Defects that cannot come alone.
COMPANY = {
    "rank-by-order": {"world-size-unknown"},
    "one-rank": {"world-size-unknown"},
}


def test_a_healthy_run_has_nothing_to_be_told_of(tmp_path: Path) -> None:
    assert told(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)}) == []


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_told_and_no_other(defect: str, tmp_path: Path) -> None:
    found = {caveat.id for caveat in told(tmp_path, DEFECTS[defect])}
    assert found == {defect} | COMPANY.get(defect, set())


def test_every_rule_has_a_trace_that_breaks_it() -> None:
    # A damaged archive is no text: tests/hostile/test_damaged_text.py has one.
    known = {rule.id for rule in RULES} | {"rank-by-order", "rank-disputed"}
    assert known == {*DEFECTS, "damaged-file"}


@pytest.mark.parametrize("id", DEFECTS)
def test_every_caveat_can_be_explained(id: str) -> None:
    assert entry(id).kind == "caveat"


@pytest.mark.parametrize(
    ("unprofiled_us", "severity", "text"),
    [
        (800, "warning", "The profiler slowed the run by 25.0 %: 1 ms a step under it, 0.8 ms"),
        (980, "info", "The profiler slowed the run by 2.0 %: 1 ms a step under it, 0.98 ms"),
        (1250, "info", "The profiler did not slow the run: 1 ms a step under it, 1.25 ms"),
    ],
)
def test_a_step_timed_before_the_recording_says_what_the_profiler_cost(
    unprofiled_us: int, severity: str, text: str, tmp_path: Path
) -> None:
    said = {"unprofiled_step_ns": unprofiled_us * 1000}
    files = {f"rank{r}.json": healthy(r).top("ceiling", said) for r in (0, 1)}
    (caveat,) = told(tmp_path, files)
    assert (caveat.id, caveat.severity) == ("profiler-slowdown", severity)
    assert caveat.text == f"{text} before it began."


def test_the_worst_comes_first(tmp_path: Path) -> None:
    second = healthy(1).event("fpga", "dot", 100, 101).top("with_stack", 1)
    for k in range(7):
        second.runtime("cudaGraphLaunch", k * STEP + 30, k * STEP + 32)
    found = told(tmp_path, {"rank0.json": healthy(0), "rank1.json": second})
    assert [c.severity for c in found] == ["error", "warning", "info"]


def test_a_counted_defect_names_its_ranks(tmp_path: Path) -> None:
    (found,) = told(tmp_path, DEFECTS["negative-durations"])
    assert found.text.startswith("1 event(s) have no valid length (rank 1): ")


def test_many_ranks_are_counted_not_listed(tmp_path: Path) -> None:
    files = {f"rank{r}.json": healthy(r, 6).op("aten::add", 20, 10) for r in range(6)}
    (found,) = told(tmp_path, files)
    assert "(ranks 0, 1, 2 and 3 more)" in found.text


def test_files_that_do_not_say_their_rank_are_named(tmp_path: Path) -> None:
    first = told(tmp_path, DEFECTS["rank-by-order"])[0]
    assert first.text == (
        "2 file(s) do not say their rank (left.json, right.json): they are numbered in the order "
        "of their names."
    )
    assert first.forbids == ["which rank is which"]


def test_collectives_that_disagree_are_counted_with_the_reason(tmp_path: Path) -> None:
    (found,) = told(tmp_path, DEFECTS["collectives-unmatched"])
    assert found.text.startswith(
        "Of 14 records of collectives some could not be joined over the ranks: 14 records, of "
        "steps in which the ranks' counts or sizes disagree. "
    )


def test_a_rank_that_is_missing_leaves_complete_groups_joined(tmp_path: Path) -> None:
    files = {f"rank{r}.json": healthy(r, 4, without=["collectives"]) for r in (0, 1)}
    for built in files.values():
        for k in range(7):
            at = k * STEP
            launch = (at + 20, at + 25)
            built.collective("allreduce", at + 500, at + 800, ranks=[0, 1], launch=launch)
    (found,) = told(tmp_path, files)
    assert found.text == "2 of 4 ranks present: nothing can be said about the others."
