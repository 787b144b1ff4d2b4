"""What is said of communication that nothing hides."""

from __future__ import annotations

from jobs import NCCL, job

from analyzer.classify.kernels import Activity
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.communicating import exposed_communication, gloo_on_gpu
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.ranks.pool import Job

GLOO = {"gloo_ms": 40.0, "idle_ms": 30.0, "gloo": [("gloo:all_reduce", 2, 40.0)]}


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


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
    assert "How much of it is waiting and how much is transfer cannot be told" in because


def test_does_not_say_so_once_they_are_split() -> None:
    finding = told(exposed_communication(view(job(comm_transfer=12.0, comm_wait=6.0))))
    assert "cannot be told" not in finding.because
    assert finding.time_class == "comm_transfer"
    assert finding.removes == {
        "comm_transfer": 12_000_000.0,
        "comm_wait": 6_000_000.0,
        "comm_unsplit": 0.0,
    }


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
