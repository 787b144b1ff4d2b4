"""What is said of a device that waits for the loader, for launches, or after blocking calls."""

from __future__ import annotations

import pytest
from jobs import MULTI, SINGLE, job

from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.findings.waiting import (
    allocation,
    data_loading,
    host_sync,
    kernel_launch,
    single_process_loader,
)
from analyzer.ranks.pool import Job


def view(of: Job) -> View:
    return View(of, DEFAULT_THRESHOLDS)


def told(outcome: Outcome) -> Finding:
    assert isinstance(outcome, Finding)
    return outcome


def loading(waited: float, copied: float = 0.0, name: str = MULTI) -> Job:
    return job(
        data_loading=waited + copied,
        causes={"loader": (waited, [(name, waited)])},
        facts={"loader": name, "loader_ms": 90.0},
    )


def launching(ms: float = 40.0, **facts: object) -> Job:
    causes = {"dispatch": (30.0, [("aten::mm", 20.0)]), "launch_call": (8.0, [("aten::mm", 8.0)])}
    return job(launch=ms, causes=causes, facts={"kernel_ms": 5.0, **facts})  # type: ignore[dict-item]


def test_loading_is_split_into_waiting_for_the_loader_and_copying_the_batch() -> None:
    assert told(data_loading(view(loading(30.0, 2.0)))).because == (
        "32.0 ms per step (32.0 %) pass before the next batch is there: 30.0 ms blocked in the "
        "loader and 2.0 ms copying the batch."
    )


def test_workers_are_advised_in_proportion_to_the_wait() -> None:
    assert "2.0 times the workers" in told(data_loading(view(loading(50.0)))).so


def test_worker_processes_come_first_where_there_are_none() -> None:
    finding = told(data_loading(view(loading(50.0, name=SINGLE))))
    assert finding.so == "First give the loader processes of its own: num_workers above 0."


def test_pinned_memory_is_advised_where_the_copy_is_the_longer_part() -> None:
    assert "pin_memory=True" in told(data_loading(view(loading(2.0, 30.0)))).so


def test_a_long_loader_beside_a_busy_device_is_called_hidden() -> None:
    assert data_loading(view(loading(0.9))) == Passed(
        "Data loading is hidden: 0.9 ms per step (0.9 %) are waited for."
    )


def test_a_loader_that_was_not_recorded_is_not_called_fine() -> None:
    assert data_loading(view(job())) is None
    assert single_process_loader(view(job())) is None


def test_nothing_passes_as_hidden_where_idle_time_has_no_launches_to_blame() -> None:
    blind = view(job(unexplained=80.0, facts={"loader": SINGLE, "calls": 0}))
    assert data_loading(blind) is None
    assert single_process_loader(blind) is None
    assert allocation(blind) is None


def test_the_rank_that_alone_waits_for_its_loader_is_named() -> None:
    ranks = [{"data_loading": 3.0}] * 3 + [{"data_loading": 60.0}]
    finding = told(data_loading(view(job(ranks, facts={"loader": MULTI}))))
    assert "Rank 3 loses 60.0 ms, the others 3.0 ms in the median." in finding.because


def test_on_the_host_timeline_it_is_training_that_waits() -> None:
    host = job(data_loading=50.0, timeline="host", facts={"loader": MULTI})
    finding = told(data_loading(view(host)))
    assert finding.title == "Training waits for the next batch"
    assert finding.where == [(MULTI, 50_000_000.0, None)]


def test_a_single_process_loader_counts_without_the_copy_of_the_batch() -> None:
    finding = told(single_process_loader(view(loading(30.0, 2.0, SINGLE))))
    assert finding.ns == 30_000_000


def test_worker_processes_are_noted_as_fine() -> None:
    assert single_process_loader(view(loading(30.0))) == Passed(
        "Batches are made in processes of their own."
    )


def test_late_launches_name_their_parts_and_the_pace_of_kernels() -> None:
    finding = told(kernel_launch(view(launching(tiny=900))))
    assert finding.because == (
        "40.0 ms per step (40.0 %) are idle because the host launches too slowly: 30.0 ms with the "
        "host in operators or between two, 8.0 ms in the launch call, 0.0 ms from there to the "
        "start, 0.0 ms between queued kernels. The queue was empty in 100.0 % of idle time. A "
        "kernel lasts 5 µs on average (90.0 % are shorter than 10 µs), a launch call comes every "
        "20 µs."
    )
    assert finding.where == [("aten::mm", 28_000_000.0, None)]
    assert finding.removes == {"launch": 40_000_000.0}


def test_gaps_between_queued_kernels_are_not_late_launches() -> None:
    outcome = kernel_launch(view(launching(idle_ms=40.0, late_ms=19.9)))
    assert outcome == Passed(
        "Kernels are queued in time: of idle time 49.8 % lies before a late launch; 40.0 ms per "
        "step (40.0 %) are gaps between kernels that were queued."
    )


def test_an_empty_queue_in_half_of_the_idle_time_makes_them_late() -> None:
    told(kernel_launch(view(launching(idle_ms=40.0, late_ms=20.1))))


@pytest.mark.parametrize(
    "facts", [{"calls": 0}, {"graph_calls": 10, "graphs_recorded": 4}], ids=["none", "lost"]
)
def test_nothing_is_said_of_launches_whose_records_are_missing(facts: dict[str, int]) -> None:
    assert kernel_launch(view(launching(**facts))) is None
    assert host_sync(view(job(host_sync=20.0, facts=facts))) is None


def test_graphs_are_not_advised_to_a_job_that_launches_them() -> None:
    assert "CUDA graphs" in told(kernel_launch(view(launching()))).so
    graphs = launching(graph_calls=10, graphs_recorded=10)
    assert "CUDA graphs" not in told(kernel_launch(view(graphs))).so


@pytest.mark.parametrize("flag", ["with_stack", "profile_memory"])
def test_host_times_that_the_profiler_inflates_lower_the_confidence(flag: str) -> None:
    slow = job(launch=40.0, facts={"kernel_ms": 5.0}, flags={flag: True})
    assert told(kernel_launch(view(slow))).confidence == "medium"


def test_kernels_longer_than_the_pace_of_launches_lower_the_confidence() -> None:
    assert told(kernel_launch(view(launching(kernel_ms=30.0)))).confidence == "medium"


def test_only_the_idle_time_after_a_blocking_call_counts() -> None:
    blocked = job(
        host_sync=6.0,
        causes={"sync": (6.0, [("aten::item", 6.0)])},
        facts={"blocking": [("cudaStreamSynchronize", 1, 80.0)]},
    )
    finding = told(host_sync(view(blocked)))
    assert finding.ns == 6_000_000
    assert finding.because == (
        "6.0 ms per step (6.0 %) are idle while the queue refills after a call that waited for it "
        "to drain. The wait itself is not counted: the GPU works meanwhile. Calls seen: "
        "cudaStreamSynchronize."
    )
    assert finding.where == [("aten::item", 6_000_000.0, None)]


def test_allocation_names_its_calls_and_counts_no_other_host_work() -> None:
    other = job(host_other=30.0, causes={"allocator": (8.0, [("cudaFree", 8.0)])})
    finding = told(allocation(view(other)))
    assert finding.because == "8.0 ms per step (8.0 %) are idle with the host in cudaFree."
    assert finding.removes == {"host_other": 8_000_000.0}


def test_allocation_in_a_single_window_may_be_start_up() -> None:
    once = job(host_other=8.0, steps=1, causes={"allocator": (8.0, [("cudaFree", 8.0)])})
    assert "start-up may be in it" in told(allocation(view(once))).because
