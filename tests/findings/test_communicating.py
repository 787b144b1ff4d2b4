"""What is said of communication that nothing hides."""

from __future__ import annotations

from typing import Any

from jobs import NCCL, job, late

from analyzer.classify.kernels import Activity
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.communicating import exposed_communication, gloo_on_gpu, late_because
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import CLOCKED

GLOO = {"gloo_ms": 40.0, "idle_ms": 30.0, "gloo": [("gloo:all_reduce", 2, 40.0)]}


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def split(**more: Any) -> Job:
    """Two ranks alike whose one collective was joined."""
    classes = {name: more.pop(name) for name in [*more] if name.startswith("comm_")}
    return job([classes] * 2, method=CLOCKED, **more)


def told(outcome: Outcome) -> Finding:
    assert isinstance(outcome, Finding)
    return outcome


def test_says_exposed_and_hidden_time_side_by_side() -> None:
    because = told(exposed_communication(view(job(comm_unsplit=14.0, hidden_ms=22.0)))).because
    assert because.startswith(
        "14.0 ms per step (14.0 %) run while no kernel computes; another 22.0 ms run beside"
    )


def test_says_that_waiting_and_transfer_cannot_be_told_apart_before_ranks_are_joined() -> None:
    because = told(exposed_communication(view(job(comm_unsplit=14.0)))).because
    assert (
        "How much of it is waiting and how much is transfer cannot be told (only one rank was "
        "recorded)" in because
    )


def test_says_what_the_collectives_lack_that_could_not_be_joined() -> None:
    pair = job([{"comm_unsplit": 14.0}] * 2, left={"without a launch record": 4})
    because = told(exposed_communication(view(pair))).because
    assert "(not joined: 4 of 6 records, without a launch record)" in because


def test_says_that_members_are_missing_where_nothing_else_kept_ranks_apart() -> None:
    because = told(exposed_communication(view(job([{"comm_unsplit": 14.0}] * 2)))).because
    assert "(members of its groups were not recorded)" in because


def test_waiting_is_not_counted_once_it_is_known() -> None:
    finding = told(exposed_communication(view(split(comm_transfer=12.0, comm_wait=6.0))))
    assert finding.ns == finding.saved_ns == 12_000_000
    assert finding.time_class == "comm_transfer"
    assert finding.removes == {"comm_transfer": 12_000_000.0, "comm_unsplit": 0.0}


def test_waiting_alone_is_no_exposed_transfer() -> None:
    outcome = exposed_communication(view(split(comm_transfer=4.0, comm_wait=40.0)))
    assert outcome == Passed("Exposed transfer: 4.0 ms per step (4.0 %), below 10.0 %.")


def test_says_that_all_of_it_is_transfer_where_all_was_joined() -> None:
    because = told(exposed_communication(view(split(comm_transfer=12.0, comm_wait=6.0)))).because
    assert because.endswith("All of it is transfer: waiting for other ranks (6.0 ms) is not in it.")


def test_says_how_much_is_transfer_where_a_part_was_joined() -> None:
    partly = split(comm_transfer=8.0, comm_unsplit=7.0, comm_wait=1.0, left={"without a step": 3})
    because = told(exposed_communication(view(partly))).because
    assert because.endswith(
        "8.0 ms of it is transfer: waiting for other ranks (1.0 ms) is not in it. How much of the "
        "other 7.0 ms is waiting cannot be told (not joined: 3 of 5 records, without a step)."
    )


def test_the_last_rank_is_guessed_only_where_nothing_was_joined() -> None:
    ranks = [{"comm_unsplit": 40.0}] * 3 + [{"comm_unsplit": 4.0}]
    finding = told(exposed_communication(view(job(ranks, method="clock-free"))))
    assert "arrives last" not in finding.because
    assert "late rank" not in finding.so


def test_the_rank_with_least_communication_is_the_one_that_arrives_last() -> None:
    ranks = [{"comm_unsplit": 40.0}] * 3 + [{"comm_unsplit": 4.0}]
    because = told(exposed_communication(view(job(ranks)))).because
    assert (
        "Rank 3 has 4.0 ms of it, the others 40.0 ms in the median: it probably arrives last, "
        "after 36.0 ms more of computing." in because
    )


def test_the_class_that_delays_the_last_rank_is_named() -> None:
    ranks = [{"comm_unsplit": 40.0}, {"comm_unsplit": 10.0, "data_loading": 30.0}]
    because = told(exposed_communication(view(job(ranks)))).because
    assert "the other 40.0 ms: it probably arrives last, after 30.0 ms more of data" in because


def test_no_rank_is_called_last_where_all_communicate_alike() -> None:
    ranks = [{"comm_unsplit": 40.0}, {"comm_unsplit": 38.0}]
    assert "arrives last" not in told(exposed_communication(view(job(ranks)))).because


def test_advice_follows_the_kind_with_most_exposed_time() -> None:
    kinds = [("all_reduce", 8, 2.0), ("all_to_all", 8, 18.0)]
    finding = told(exposed_communication(view(job(comm_unsplit=20.0, collectives=kinds))))
    assert finding.so.startswith("Split the tokens in two")


def test_places_are_the_kernels_with_exposed_time() -> None:
    kernels = [("gemm", Activity.COMPUTE, 9, 50.0), (NCCL, Activity.COMMUNICATION, 6, 20.0)]
    finding = told(exposed_communication(view(job(comm_unsplit=20.0, kernels=kernels))))
    assert finding.where == [(NCCL, 20_000_000, 6)]


def test_places_are_transfer_by_kind_where_all_collectives_were_split() -> None:
    kernels = [(NCCL, Activity.COMMUNICATION, 6, 50.0)]
    kinds = [("all_reduce", 8, 30.0), ("all_gather", 8, 10.0), ("all_reduce", 8, 10.0)]
    known = split(comm_transfer=20.0, kernels=kernels, collectives=kinds, split=(4.0, 7.0))
    finding = told(exposed_communication(view(known)))
    assert finding.where == [
        ("all_reduce (hidden or not)", 14_000_000, 2.0),
        ("all_gather (hidden or not)", 7_000_000, 1.0),
    ]


def test_the_reason_of_a_late_rank_is_what_it_does_more_of() -> None:
    of_three = view(job([{}] * 3))
    assert late_because(of_three, late(0, 20.0, launch=9.0, copy=3.0, compute=2.5)) == (
        "9.0 ms more of late launches and 3.0 ms more of copies than the others in the median."
    )


def test_an_excess_within_noise_is_no_reason() -> None:
    assert late_because(view(job([{}] * 3)), late(0, 20.0, launch=1.9)) == (
        "What delays it is not in its own trace."
    )


def test_a_late_rank_of_two_is_held_against_the_other() -> None:
    assert late_because(view(job([{}] * 2)), late(0, 20.0, compute=9.0)) == (
        "9.0 ms more of computing than the other."
    )


def test_is_not_judged_where_no_communication_was_recorded() -> None:
    assert exposed_communication(view(job())) is None


def test_the_host_timeline_speaks_of_operators_and_gloo() -> None:
    host = job(comm_unsplit=20.0, timeline="host", facts=GLOO)
    finding = told(exposed_communication(view(host)))
    assert finding.title == "Communication is not hidden behind operators"
    assert finding.where == [("gloo:all_reduce", 40_000_000.0, 2.0)]
    assert finding.so.startswith("Start the reduction earlier")


def test_gloo_counts_only_as_far_as_the_device_idles() -> None:
    finding = told(gloo_on_gpu(view(job(launch=30.0, facts=GLOO))))
    assert finding.ns == 30_000_000
    assert finding.because == (
        "Gloo collectives take 40.0 ms of host time per step; the GPU idles for at most 30.0 ms "
        "per step (30.0 %) of it. No collective runs on the GPU."
    )


def test_gloo_beside_a_busy_device_is_fine() -> None:
    outcome = gloo_on_gpu(view(job(facts={**GLOO, "idle_ms": 1.0})))
    assert outcome == Passed("Idle beside gloo collectives: 1.0 ms per step (1.0 %), below 10.0 %.")


def test_gloo_in_a_run_without_a_device_is_no_mistake() -> None:
    assert gloo_on_gpu(view(job(timeline="host", facts=GLOO))) is None
