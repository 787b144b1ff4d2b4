"""Order of findings, ceilings after each, and the first sentence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jobs import MULTI, SINGLE, job, late

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.detectors import detect
from analyzer.findings.finding import Finding, Passed
from analyzer.findings.ranking import MOST_FINDINGS, Ranked, Verdict, rank, verdict
from analyzer.ranks.pool import Job
from analyzer.scaling.serial import Setting

MATRIX = {"matmul_ms": 40.0, "memory_ms": 10.0}
FP32 = {"matmul_ms": 40.0, "plain_ms": 30.0}


def ranked(of: Job) -> Ranked:
    return rank(detect(of, DEFAULT_THRESHOLDS), of, Setting(of.size), DEFAULT_THRESHOLDS)


def ids(of: Job) -> list[str]:
    return [f.id for f, _ in ranked(of).findings]


def said(of: Job) -> Verdict:
    return verdict(ranked(of), of, DEFAULT_THRESHOLDS)


def finding(id: str, saved_ms: float | None, ms: float = 10.0) -> Finding:
    return Finding(
        id=id,
        title="t",
        attack="a",
        time_class="launch",
        ns=ms * 1e6,
        step_ns=1e8,
        saved_ns=None if saved_ms is None else saved_ms * 1e6,
        because="b",
        so="s",
        check="c",
        where=[],
        confidence="high",
    )


def order(*outcomes: Finding | Passed) -> list[str]:
    return [f.id for f, _ in rank(outcomes, job(), Setting(1), DEFAULT_THRESHOLDS).findings]


def test_most_worth_comes_first() -> None:
    slow = job(comm_unsplit=14.0, launch=12.0, host_sync=20.0)
    assert ids(slow) == ["host-sync", "exposed-communication", "kernel-launch"]


def test_findings_without_a_bound_come_after_those_with_one() -> None:
    assert order(finding("fp32-matmul", None, 60.0), finding("host-sync", 6.0)) == [
        "host-sync",
        "fp32-matmul",
    ]


def test_ties_go_by_the_catalogue() -> None:
    tie = [finding("single-process-loader", 8.0), finding("data-loading", 8.0)]
    assert order(*tie) == ["data-loading", "single-process-loader"]


def test_what_is_within_noise_is_not_listed() -> None:
    assert order(finding("tiny-kernels", None, ms=1.9)) == []
    assert order(finding("tiny-kernels", None, ms=2.1)) == ["tiny-kernels"]


def test_compute_bound_is_listed_only_alone() -> None:
    assert ids(job()) == ["compute-bound"]
    assert ids(job(host_sync=6.0)) == ["host-sync"]


def test_at_most_eight_findings_are_listed() -> None:
    many = [finding("host-sync", 5.0 + i) for i in range(9)]
    assert len(order(*many)) == MOST_FINDINGS == 8


def test_passed_checks_are_kept_as_sentences() -> None:
    fine = rank([Passed("a."), Passed("b.")], job(), Setting(1), DEFAULT_THRESHOLDS)
    assert fine == Ranked(findings=[], passed=["a.", "b."])


def test_the_ceiling_after_a_fix_is_that_of_the_step_without_it() -> None:
    """compute 60 scales; sync 20 and communication 20 do not: without sync, f = 20/80."""
    slow = job(host_sync=20.0, comm_unsplit=20.0)
    assert {f.id: ceiling for f, ceiling in ranked(slow).findings} == {
        "host-sync": 4.0,
        "exposed-communication": 4.0,
    }


def test_removing_work_that_scales_lowers_the_ceiling() -> None:
    """loading 30 scales beside compute 50; 20 ms of sync stay: f was 0.2, then 20/70."""
    slow = job(host_sync=20.0, data_loading=30.0, facts={"loader": MULTI})
    assert {f.id: c for f, c in ranked(slow).findings}["data-loading"] == 3.5


def test_there_is_no_ceiling_where_it_cannot_be_told_what_goes() -> None:
    assert ranked(job(facts=FP32)).findings[0].ceiling_after is None


def test_the_verdict_orders_the_first_finding_with_its_time_and_bound() -> None:
    assert said(job(comm_unsplit=14.0)) == (
        "Hide communication first: 14.0 ms of every 100.0 ms step, at most 1.16x "
        "(share, not gain).",
        "exposed-communication",
        "high",
    )


def test_the_verdict_adds_why_after_the_sentence_that_is_the_same_for_all() -> None:
    """30 of 30 ms wait for rank 1; with its 20 ms of computing over 2 ranks 25 of 100 go."""
    pair = job(
        [{"comm_wait": 30.0}, {}],
        method="clocked",
        found=[late(1, 30.0, compute=20.0)],
    )
    assert said(pair).text == (
        "Fix rank 1 first: 15.0 ms of every 100.0 ms step, at most 1.33x (share, not gain). Ranks "
        "wait that long for this one, because computing takes longer there (20.0 ms more than on "
        "the other)."
    )


def test_the_ceiling_without_a_late_rank_is_that_of_the_step_without_its_waiting() -> None:
    """compute 65 and waiting 15 and sync 20; without 15 of waiting, f = 20/85."""
    pair = job(
        [{"comm_wait": 30.0, "host_sync": 20.0}, {"host_sync": 20.0}],
        method="clocked",
        found=[late(1, 30.0)],
    )
    assert {f.id: c for f, c in ranked(pair).findings}["late-rank"] == 4.25


def test_the_verdict_promises_nothing_where_shares_cannot_tell() -> None:
    assert said(job(facts=FP32)).text == (
        "Use tensor cores first: 30.0 ms of every 100.0 ms step, what that is worth cannot be "
        "told from shares."
    )


def test_no_worker_processes_follow_data_loading_in_the_list_but_do_not_lead() -> None:
    slow = job(
        data_loading=30.0,
        causes={"loader": (30.0, [(SINGLE, 30.0)])},
        facts={"loader": SINGLE},
    )
    assert ids(slow) == ["data-loading", "single-process-loader"]
    assert said(slow).finding == "data-loading"


def test_nothing_stands_out_in_a_healthy_run() -> None:
    healthy = job(launch=2.1, hidden_ms=8.0, facts=MATRIX)
    assert said(healthy) == (
        "Nothing stands out: 97.9 % of the step (97.9 ms of 100.0 ms) computes, mostly in matrix "
        "kernels, and communication is hidden. Only faster or fewer kernels would make it shorter.",
        None,
        "high",
    )


def test_many_small_losses_are_no_alarm_either() -> None:
    mixed = job(comm_unsplit=9.0, launch=9.0, host_sync=4.0, hidden_ms=8.0)
    assert said(mixed).text == (
        "Nothing stands out: 78.0 % of the step (78.0 ms of 100.0 ms) computes, and 9.0 % is "
        "communication that nothing hides."
    )


def test_a_step_of_moving_memory_says_so() -> None:
    moving = job(facts={"matmul_ms": 10.0, "memory_ms": 40.0})
    assert "computes, mostly in kernels that move memory." in said(moving).text


def test_unexplained_time_is_not_blamed_on_something_else() -> None:
    blank = job(
        unexplained=62.0,
        causes={"host_unknown": (60.0, []), "unlinked": (2.0, [])},
    )
    assert said(blank) == (
        "62.0 % of the step (62.0 ms of 100.0 ms) is idle time that the trace does not explain: "
        "the host left no record of what it was doing. Only operators and launches are read: "
        "Python code between them is not seen.",
        None,
        "low",
    )


def test_unexplained_time_names_what_comes_next() -> None:
    blank = job(unexplained=50.0, launch=12.0, causes={"unlinked": (50.0, [])})
    assert said(blank).text.endswith(
        "What comes next has a cause, 12.0 ms per step (12.0 %): The GPU waits for kernels that "
        "are launched late."
    )


def test_a_finding_larger_than_the_unexplained_time_still_leads() -> None:
    assert said(job(unexplained=20.0, launch=30.0)).finding == "kernel-launch"


def test_unexplained_time_of_the_host_has_no_idle_cause() -> None:
    host = job(unexplained=50.0, timeline="host")
    assert said(host).text == (
        "50.0 % of the step (50.0 ms of 100.0 ms) is time that the trace does not explain: no "
        "operator ran."
    )


@given(st.permutations(["exposed-communication", "host-sync", "kernel-launch", "fp32-matmul"]))
def test_the_order_of_detectors_does_not_change_the_ranking(names: list[str]) -> None:
    worth = {"fp32-matmul": None, "exposed-communication": 8.0}
    assert order(*(finding(name, worth.get(name, 6.0)) for name in names)) == [
        "exposed-communication",
        "kernel-launch",
        "host-sync",
        "fp32-matmul",
    ]
