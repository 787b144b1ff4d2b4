"""Order of findings, ceilings after each, the first sentence: by gains, or by shares without."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import MULTI, SINGLE, job, late
from studies import gain, studied

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.detectors import detect
from analyzer.findings.finding import Finding, Passed
from analyzer.findings.ranking import MOST_FINDINGS, Ranked, Verdict, rank, verdict
from analyzer.ranks.pool import Job
from analyzer.scaling.serial import Setting
from analyzer.whatif.study import NO_STUDY, Study

MATRIX = {"matmul_ms": 40.0, "memory_ms": 10.0}
FP32 = {"matmul_ms": 40.0, "plain_ms": 30.0}


def ranked(of: Job, study: Study = NO_STUDY) -> Ranked:
    limits = DEFAULT_THRESHOLDS
    return rank(detect(of, limits, study), of, Setting(of.size), limits, study)


def ids(of: Job, study: Study = NO_STUDY) -> list[str]:
    return [row.finding.id for row in ranked(of, study).findings]


def ceilings(of: Job, study: Study = NO_STUDY) -> dict[str, float | None]:
    return {row.finding.id: row.ceiling_after for row in ranked(of, study).findings}


def said(of: Job, study: Study = NO_STUDY) -> Verdict:
    return verdict(ranked(of, study), of, DEFAULT_THRESHOLDS)


def finding(
    id: str, saved_ms: float | None, ms: float = 10.0, whatif: str | None = None
) -> Finding:
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
        whatif=whatif,
    )


def order(*outcomes: Finding | Passed, study: Study = NO_STUDY) -> list[str]:
    rows = rank(outcomes, job(), Setting(1), DEFAULT_THRESHOLDS, study).findings
    return [row.finding.id for row in rows]


def test_without_a_replay_the_largest_bound_comes_first() -> None:
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
    fine = rank([Passed("a."), Passed("b.")], job(), Setting(1), DEFAULT_THRESHOLDS, NO_STUDY)
    assert fine == Ranked(findings=[], passed=["a.", "b."])


def test_the_lower_end_of_the_gain_decides_not_its_mean() -> None:
    """20 % give or take 12.4 points are less sure than 10 % in every step."""
    study = studied({"no-host-sync": gain(0.2, varying=0.1), "launching": 0.1})
    unsure = finding("host-sync", 6.0, whatif="no-host-sync")
    assert order(unsure, finding("kernel-launch", 6.0), study=study) == [
        "kernel-launch",
        "host-sync",
    ]


def test_the_smallest_share_comes_first_where_its_fix_gains_most() -> None:
    slow = job(comm_unsplit=30.0, launch=12.0, host_sync=20.0)
    study = studied({"transfer": 0.05, "launching": 0.4, "no-host-sync": 0.1})
    assert ids(slow, study) == ["kernel-launch", "host-sync", "exposed-communication"]


@pytest.mark.parametrize(("gained", "first"), [(0.119, "kernel-launch"), (0.121, "host-sync")])
def test_gains_that_differ_by_no_more_than_noise_go_by_share(gained: float, first: str) -> None:
    study = studied({"no-host-sync": gained, "launching": 0.1})
    small = finding("host-sync", 5.0, ms=5.0, whatif="no-host-sync")
    large = finding("kernel-launch", 30.0, ms=30.0)
    assert order(small, large, study=study)[0] == first


def test_bounds_come_after_gains_and_before_gains_within_noise() -> None:
    study = studied({"launching": 0.05, "transfer": 0.01})
    found = [
        finding("fp32-matmul", None, 60.0),
        finding("exposed-communication", 50.0),
        finding("gloo-on-gpu", 40.0),
        finding("kernel-launch", 5.0),
    ]
    assert order(*found, study=study) == [
        "kernel-launch",
        "gloo-on-gpu",
        "exposed-communication",
        "fp32-matmul",
    ]


@pytest.mark.parametrize(
    ("share", "error", "noise"), [(0.021, 0.0, False), (0.019, 0.0, True), (0.05, 0.06, True)]
)
def test_a_gain_under_two_percent_or_under_the_replays_error_is_noise(
    share: float, error: float, noise: bool
) -> None:
    (row,) = ranked(job(launch=12.0), studied({"launching": share}, error=error)).findings
    assert row.noise is noise


def test_a_gain_that_single_steps_do_not_show_is_noise() -> None:
    (row,) = ranked(job(launch=12.0), studied({"launching": gain(0.1, varying=0.1)})).findings
    assert row.noise


def test_a_small_share_is_listed_for_its_gain_only() -> None:
    small = finding("kernel-launch", 1.0, ms=1.0)
    assert order(small, study=studied({"launching": 0.1})) == ["kernel-launch"]
    assert order(small, study=studied({"launching": 0.01})) == []


@pytest.mark.parametrize(
    ("id", "edit"),
    [
        ("exposed-communication", "transfer"),
        ("kernel-launch", "launching"),
        ("replicated-optimizer", "sharded-optimizer"),
        ("exposed-copies", "copies"),
        ("allocation", "allocation"),
    ],
)
def test_a_finding_whose_fix_is_not_a_public_edit_has_one_of_its_own(id: str, edit: str) -> None:
    study = studied({edit: 0.3, "no-communication": 0.9})
    found = [finding(id, 5.0, whatif="no-communication")]
    (row,) = rank(found, job(), Setting(1), DEFAULT_THRESHOLDS, study).findings
    assert row.gain is study.gains[edit]


def test_after_a_fix_is_what_the_replay_leaves_and_not_today_less_the_share() -> None:
    """20 of 80 ms do not scale; of one GPU's 2 * 60 + 20 ms they are a seventh."""
    left = gain(0.2, classes={"compute": 60.0, "comm_transfer": 20.0})
    slow = job([{"host_sync": 30.0}] * 2)
    (row,) = ranked(slow, studied({"no-host-sync": left})).findings
    assert row.after is not None
    assert (row.after.f, row.after.s) == (0.25, pytest.approx(1 / 7))
    assert (row.after.ceiling_today, row.after.ceiling_one_gpu) == (4.0, pytest.approx(7.0))
    assert row.ceiling_after == 4.0


def test_the_ceiling_after_a_fix_is_that_of_the_step_without_it() -> None:
    """compute 60 scales; sync 20 and communication 20 do not: without sync, f = 20/80."""
    slow = job(host_sync=20.0, comm_unsplit=20.0)
    assert ceilings(slow) == {
        "host-sync": 4.0,
        "exposed-communication": 4.0,
    }


def test_removing_work_that_scales_lowers_the_ceiling() -> None:
    """loading 30 scales beside compute 50; 20 ms of sync stay: f was 0.2, then 20/70."""
    slow = job(host_sync=20.0, data_loading=30.0, facts={"loader": MULTI})
    assert ceilings(slow)["data-loading"] == 3.5


def test_there_is_no_ceiling_where_it_cannot_be_told_what_goes() -> None:
    assert ranked(job(facts=FP32)).findings[0].ceiling_after is None


def test_the_verdict_orders_the_first_finding_with_its_time_and_bound() -> None:
    assert said(job(comm_unsplit=14.0)) == (
        "Hide communication first: 14.0 ms of every 100.0 ms step, 1.16x by its "
        "share (not replayed).",
        "exposed-communication",
        "high",
    )


def test_the_verdict_says_what_the_replay_says_a_fix_is_worth() -> None:
    assert said(job(comm_unsplit=14.0), studied({"transfer": 0.1})) == (
        "Hide communication first: 14.0 ms of every 100.0 ms step, worth 1.11x.",
        "exposed-communication",
        "high",
    )


@pytest.mark.parametrize(("share", "text"), [(0.001, "0.1 %"), (-0.01, "0.0 %")])
def test_the_verdict_orders_nothing_where_the_largest_share_gains_nothing(
    share: float, text: str
) -> None:
    assert said(job(comm_unsplit=14.0), studied({"transfer": share})) == (
        "Nothing stands out: 86.0 % of the step (86.0 ms of 100.0 ms) computes, and 14.0 % is "
        "communication that nothing hides. Only faster or fewer kernels would make it shorter. "
        "Communication is not hidden behind kernels, 14.0 ms per step (14.0 %), but a replay "
        f"without it is only {text} shorter.",
        None,
        "high",
    )


def late_too(**gains: float) -> str:
    """What is said of launches that gain half, and of a late rank."""
    late_one = finding("late-rank", 15.0, 15.0, "no-straggler")
    late_one = replace(late_one, title="Rank 1 is late", clause="because", why="Why.")
    found = [finding("kernel-launch", 2.0, 2.0), late_one]
    study = studied({name.replace("_", "-"): share for name, share in gains.items()})
    limits = DEFAULT_THRESHOLDS
    return verdict(rank(found, job(), Setting(1), limits, study), job(), limits).text


def test_the_verdict_names_late_ranks_where_something_else_gains_more() -> None:
    assert late_too(launching=0.5, no_straggler=0.1) == (
        "a first: 2.0 ms of every 100.0 ms step, worth 2.00x. Rank 1 is late, 15.0 ms per step "
        "(15.0 %), because; mending only that makes the step 10.0 % shorter."
    )


def test_late_ranks_are_named_even_where_mending_them_alone_gains_nothing() -> None:
    """Ranks that are late by turns wait for each other: each of them alone is worth nothing."""
    assert late_too(launching=0.5, no_straggler=-0.01).endswith(
        "because; mending only that makes the step 0.0 % shorter."
    )


def test_the_verdict_names_late_ranks_whose_mending_was_not_replayed() -> None:
    assert late_too(launching=0.5).endswith("Rank 1 is late, 15.0 ms per step (15.0 %), because.")


def test_the_verdict_says_it_once_where_the_late_rank_leads() -> None:
    assert late_too(launching=0.1, no_straggler=0.5) == (
        "a first: 15.0 ms of every 100.0 ms step, worth 2.00x. Why."
    )


def test_the_verdict_adds_why_after_the_sentence_that_is_the_same_for_all() -> None:
    """30 of 30 ms wait for rank 1; with its 20 ms of computing over 2 ranks 25 of 100 go."""
    pair = job(
        [{"comm_wait": 30.0}, {}],
        method="clocked",
        found=[late(1, 30.0, compute=20.0)],
    )
    assert said(pair).text == (
        "Fix rank 1 first: 15.0 ms of every 100.0 ms step, 1.33x by its share (not replayed). "
        "Ranks wait that long for this one, because computing takes longer there (20.0 ms more "
        "than on the other)."
    )


def test_the_ceiling_without_a_late_rank_is_that_of_the_step_without_its_waiting() -> None:
    """compute 65 and waiting 15 and sync 20; without 15 of waiting, f = 20/85."""
    pair = job(
        [{"comm_wait": 30.0, "host_sync": 20.0}, {"host_sync": 20.0}],
        method="clocked",
        found=[late(1, 30.0)],
    )
    assert ceilings(pair)["late-rank"] == 4.25


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
