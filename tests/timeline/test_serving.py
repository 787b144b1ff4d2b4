"""Iterations of serving engines are steps, told apart by phase; their advice is for serving."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from analysed import digested
from make import TraceBuilder, trace
from real_traces import real_trace
from runs import CREATED, GEMM, loaded

from analyzer import api
from analyzer.config import Settings
from analyzer.findings.detectors import CATALOGUE, SERVING_ADVICE, TRAINING
from analyzer.render import console
from analyzer.report.build import Request
from analyzer.report.document import Report
from analyzer.timeline.serving import phases

QWEN = "tracelens-qwen30b-decode-b300-mi300"


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("step[EXTEND bs=15 toks=15360]", "prefill"),
        ("step[DECODE bs=16]", "decode"),
        ("step[TARGET_VERIFY bs=4]", "decode"),
        ("step[MIXED bs=16 toks=512]", "prefill-decode"),
        ("step[IDLE]", "idle"),
        ("step[SPLIT_PREFILL bs=1]", "split_prefill"),
        ("execute_context_1(888_788544)_generation_0(0)", "prefill"),
        (
            "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk8193sqsq16sqsk8193)",
            "decode",
        ),
        ("execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)", "prefill-decode"),
        ("execute_context_0(0)_generation_0(0)", "idle"),
    ],
)
def test_an_annotation_says_what_an_iteration_does(name: str, phase: str) -> None:
    assert phases([name]) == {0: phase}


@pytest.mark.parametrize(
    "name",
    ["ProfilerStep#3", "step 3", "## Call CompiledFxGraph abc ##", "execute_model", "step[x]"],
)
def test_other_annotations_are_no_iterations(name: str) -> None:
    assert phases([name]) == {}


def test_of_both_spellings_of_one_iteration_one_counts() -> None:
    assert phases(["execute_context_1(8)_generation_0(0)", "step[EXTEND bs=1 toks=8]"]) == {
        1: "prefill"
    }


def engine(lengths: list[tuple[str, int, int]]) -> TraceBuilder:
    """Iterations of a phase's annotation, with so many kernels of so many us each."""
    built, at = trace(), 0
    for name, kernels, us in lengths:
        built.annotation(name, at, at + kernels * us + 10)
        for k in range(kernels):
            start = at + 10 + k * us
            built.kernel(GEMM, start, start + us, launch=(at + 1 + k, at + 2 + k))
        at += kernels * us + 10
    return built


def served() -> TraceBuilder:
    """Seven iterations: prefill with 20 kernels of 100 us, decode with 5 of 10 us."""
    prefill, decode = ("step[EXTEND bs=8 toks=99]", 20, 100), ("step[DECODE bs=8]", 5, 10)
    return engine([prefill, decode, decode, prefill, decode, decode, prefill])


def report_of(folder: Path, built: TraceBuilder) -> Report:
    job = loaded(folder, {"rank0.json": built})
    return api.report(job, Request("", CREATED), Settings())


def test_iterations_are_steps_with_their_phase(tmp_path: Path) -> None:
    found = digested(served(), tmp_path)
    assert [step.phase for step in found.steps] == [
        *("prefill", "decode", "decode", "prefill", "decode", "decode", "prefill")
    ]
    assert "serving engine" in found.step_rule


def test_a_decode_with_few_kernels_has_not_lost_any(tmp_path: Path) -> None:
    dropped = [step.dropped for step in digested(served(), tmp_path).steps]
    assert not any("records were lost" in why for why in dropped)


def test_prefill_and_decode_have_their_own_length(tmp_path: Path) -> None:
    found = {of.name: of for of in report_of(tmp_path, served()).steps.phases}
    assert found["prefill"].mean_ms == pytest.approx(2.01)
    assert found["decode"].mean_ms == pytest.approx(0.06)
    assert (len(found["prefill"].steps), len(found["decode"].steps)) == (1, 4)


def test_the_terminal_tells_the_phases_apart(tmp_path: Path) -> None:
    text = console.render(report_of(tmp_path, served()), color=False)
    assert "5 of 7 steps used (4 decode, 1 prefill)" in text
    assert "Iterations: decode 0.060 ms in the mean; prefill 2.010 ms in the mean." in " ".join(
        text.split()
    )


def test_nothing_is_said_of_optimizers_and_loaders(tmp_path: Path) -> None:
    report = report_of(tmp_path, served())
    assert not TRAINING & {item.id for item in report.findings}
    assert "no-loader-events" not in {caveat.id for caveat in report.quality}
    words = " ".join([*(item.so for item in report.findings), *report.passed]).lower()
    assert "optimizer" not in words
    assert "loader" not in words


def test_advice_for_serving_is_of_findings_there_are() -> None:
    assert set(SERVING_ADVICE) | TRAINING <= set(CATALOGUE)
    assert not set(SERVING_ADVICE) & TRAINING
    words = " ".join(SERVING_ADVICE.values()).lower()
    assert not any(word in words for word in ("optimizer", "loader", "ddp", "autocast", "backward"))


def test_the_profilers_marks_come_before_the_engines(tmp_path: Path) -> None:
    built = served().step(1, 0, 3000).step(2, 3000, 6400)
    assert {step.phase for step in digested(built, tmp_path).steps} == {""}


def test_the_first_iteration_starts_with_its_own_device_work(tmp_path: Path) -> None:
    built = trace().annotation("step[DECODE bs=1]", 0, 500)
    built.kernel(GEMM, 5000, 6000, launch=(10, 11))
    (step,) = digested(built, tmp_path).steps
    assert step.end - step.start == 1_000_000


def by_hand(path: Path) -> float:
    """From the file's text: ms from the start of the first to the end of the last device work that
    was launched inside the engine's annotation.
    """
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    timed = [e for e in events if e.get("ph") == "X"]
    marks = [e for e in timed if e["cat"] == "user_annotation"]
    (mark,) = [e for e in marks if e["name"].startswith("step[")] or [
        e for e in marks if e["name"].startswith("execute_")
    ]
    launched = {
        e["args"].get("correlation")
        for e in timed
        if e["cat"] in ("cuda_runtime", "cuda_driver")
        and mark["ts"] <= e["ts"] < mark["ts"] + mark["dur"]
    }
    work = [
        (e["ts"], e["ts"] + e["dur"])
        for e in timed
        if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
        and e["args"].get("correlation") in launched
    ]
    return (max(end for _, end in work) - min(start for start, _ in work)) / 1000


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("tracelens-vllm-piecewise-mi300/graph_execution.json.gz", "prefill-decode"),
        ("tracelens-sglang-prefill-mi300/sglang_Qwen3-8B_prefilldecode.json.gz", "prefill"),
        (f"{QWEN}/MI300/1782859605.7198358-TP-0-DECODE.trace.json.gz", "decode"),
        (f"{QWEN}/B300/1782799835.6885648-TP-0-DECODE.trace.json.gz", "decode"),
        ("tracelens-vllm-b200-rank0of8/eager_trace.json.gz", "prefill"),
    ],
)
def test_other_peoples_servers_are_read_as_what_they_are(name: str, phase: str) -> None:
    path = real_trace(name)
    report = api.analyze([str(path)], Request("", CREATED), Settings(), jobs=1)
    assert [of.name for of in report.steps.phases] == [phase]
    assert report.steps.wall_ms.mean == pytest.approx(by_hand(path), abs=0.001)
    assert not TRAINING & {item.id for item in report.findings}
