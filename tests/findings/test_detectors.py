"""Each detector speaks just above its threshold and not just below it, for default thresholds."""

from __future__ import annotations

import pytest
from jobs import MULTI, SINGLE, job, late
from studies import studied

from analyzer.classify.kernels import Activity
from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.findings.detectors import CATALOGUE, detect
from analyzer.findings.finding import Finding, Passed
from analyzer.ranks.pool import Job
from analyzer.whatif.study import NO_STUDY, Study

HEALTHY = {"hidden_ms": 8.0, "facts": {"loader": MULTI}, "optimizer": 2.0, "launch": 1.0}


def found(
    of: Job, limits: Thresholds = DEFAULT_THRESHOLDS, study: Study = NO_STUDY
) -> dict[str, Finding]:
    return {f.id: f for f in detect(of, limits, study) if isinstance(f, Finding)}


def passed(of: Job) -> list[str]:
    return [p.text for p in detect(of, DEFAULT_THRESHOLDS) if isinstance(p, Passed)]


def loader(ms: float, name: str) -> Job:
    return job(data_loading=ms, causes={"loader": (ms, [(name, ms)])}, facts={"loader": name})


def sharing(optimizer: float, **more: object) -> Job:
    return job([{"optimizer": optimizer}] * 4, **more)  # type: ignore[arg-type]


def copying(ms: float, pageable: float = 0.0) -> Job:
    return job(copy=ms, facts={"pageable_ms": pageable})


def tiny(count: int, ms: float, launch: float = 0.0) -> Job:
    return job(launch=launch, facts={"tiny": count, "tiny_ms": ms})


def gloo(ms: float, idle: float) -> Job:
    return job(facts={"gloo_ms": ms, "idle_ms": idle, "gloo": [("gloo:all_reduce", 2, ms)]})


def allocating(ms: float) -> Job:
    return job(host_other=ms, causes={"allocator": (ms, [("cudaFree", ms)])})


def waiting(ms: float, late_one: bool) -> Job:
    """Two ranks that wait this long in the mean: for rank 0 where it is late, else by turns."""
    ranks = [late(0, 2 * ms, compute=4.0)] if late_one else []
    return job([{"comm_wait": ms}] * 2, method="clocked", found=ranks, cost={0: ms, 1: ms})


AROUND_THE_THRESHOLD = {
    "late-rank": (waiting(4.9, True), waiting(5.1, True)),
    "rank-skew": (waiting(4.9, False), waiting(5.1, False)),
    "exposed-communication": (job(comm_unsplit=9.9), job(comm_unsplit=10.1)),
    "data-loading": (loader(4.9, MULTI), loader(5.1, MULTI)),
    "kernel-launch": (job(launch=9.9), job(launch=10.1)),
    "host-sync": (job(host_sync=4.9), job(host_sync=5.1)),
    "replicated-optimizer": (sharing(4.9), sharing(5.1)),
    "exposed-copies": (copying(4.9), copying(5.1)),
    "allocation": (allocating(4.9), allocating(5.1)),
    "gloo-on-gpu": (gloo(9.9, 50.0), gloo(10.1, 50.0)),
    "fp32-matmul": (
        job(facts={"matmul_ms": 40.0, "plain_ms": 5.9}),
        job(facts={"matmul_ms": 40.0, "plain_ms": 6.1}),
    ),
    "tiny-kernels": (tiny(501, 4.9), tiny(501, 5.1)),
    "single-process-loader": (loader(4.9, SINGLE), loader(5.1, SINGLE)),
    "compute-bound": (job(launch=20.1), job(launch=19.9)),
}


# Finding -> the edit whose replay can raise it, and a job whose share is just too small.
BELOW_BUT_WAITED_FOR = {
    "data-loading": ("no-data-loading", loader(4.9, MULTI)),
    "kernel-launch": ("launching", job(launch=9.9)),
    "host-sync": ("no-host-sync", job(host_sync=4.9)),
}


@pytest.mark.parametrize("id", BELOW_BUT_WAITED_FOR)
def test_a_small_share_is_told_where_its_fix_gains_more_and_says_why(id: str) -> None:
    edit, small = BELOW_BUT_WAITED_FOR[id]
    finding = found(small, study=studied({edit: 0.3}))[id]
    assert (
        "Without it the step is 30.0 % shorter in the replay, since what waits for it comes "
        "earlier, too."
    ) in finding.because
    assert finding.ns == small.mean_ns[finding.time_class]


@pytest.mark.parametrize("id", BELOW_BUT_WAITED_FOR)
def test_a_small_share_whose_fix_gains_little_is_not_told(id: str) -> None:
    edit, small = BELOW_BUT_WAITED_FOR[id]
    assert id not in found(small, study=studied({edit: 0.04}))


@pytest.mark.parametrize("id", BELOW_BUT_WAITED_FOR)
def test_a_gain_no_larger_than_the_share_needs_no_sentence(id: str) -> None:
    edit, _ = BELOW_BUT_WAITED_FOR[id]
    finding = found(AROUND_THE_THRESHOLD[id][1], study=studied({edit: 0.1}))[id]
    assert "replay" not in finding.because


def test_every_finding_has_a_threshold_test() -> None:
    assert list(AROUND_THE_THRESHOLD) == list(CATALOGUE)


@pytest.mark.parametrize("id", AROUND_THE_THRESHOLD)
def test_tells_nothing_just_below_the_threshold(id: str) -> None:
    assert id not in found(AROUND_THE_THRESHOLD[id][0])


@pytest.mark.parametrize("id", AROUND_THE_THRESHOLD)
def test_tells_the_finding_just_above_the_threshold(id: str) -> None:
    assert id in found(AROUND_THE_THRESHOLD[id][1])


@pytest.mark.parametrize("id", AROUND_THE_THRESHOLD)
def test_every_finding_has_its_four_sentences_and_its_own_id(id: str) -> None:
    finding = found(AROUND_THE_THRESHOLD[id][1])[id]
    assert finding.id == id
    assert all([finding.title, finding.attack])
    assert all(text.endswith(".") for text in (finding.because, finding.so, finding.check))


@pytest.mark.parametrize("id", AROUND_THE_THRESHOLD)
def test_a_title_is_a_claim_without_numbers_but_those_of_ranks(id: str) -> None:
    title = found(AROUND_THE_THRESHOLD[id][1])[id].title.replace("Rank 0", "Rank")
    assert not any(character.isdigit() for character in title)


def test_a_healthy_job_has_no_finding_but_that_it_computes() -> None:
    assert list(found(job(**HEALTHY))) == ["compute-bound"]


def test_a_configured_threshold_moves_the_line() -> None:
    assert "host-sync" in found(job(host_sync=3.0), Thresholds(host_sync_share=0.02))


def test_what_passed_says_its_time_and_its_threshold() -> None:
    assert "Late launches: 1.0 ms per step (1.0 %), below 10.0 %." in passed(job(**HEALTHY))


def test_a_pooled_job_says_the_same_in_catalogue_order_each_time() -> None:
    slow = job(comm_unsplit=20.0, launch=15.0, data_loading=8.0, facts={"loader": MULTI})
    assert list(found(slow)) == ["exposed-communication", "data-loading", "kernel-launch"]


def test_the_host_timeline_has_no_device_findings() -> None:
    host = job(launch=30.0, host_sync=10.0, copy=10.0, timeline="host")
    assert found(host) == {}


def test_fused_collectives_count_as_exposed_but_lower_the_confidence() -> None:
    fused = job(comm_unsplit=20.0, kernels=[("allreduce_fusion_kernel", Activity.FUSED, 4, 20.0)])
    finding = found(fused)["exposed-communication"]
    assert finding.confidence == "medium"
    assert "20.0 ms of it is in kernels that also compute." in finding.because
