from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.trace.assign import FileInfo, assign_ranks, separate_runs

SECOND = 1_000_000_000


def trace(
    path: str,
    span_s: tuple[float, float] | None = (0, 1),
    *,
    rank: int | None = None,
    world: int | None = None,
    host: str | None = None,
) -> FileInfo:
    span = None if span_s is None else (int(span_s[0] * SECOND), int(span_s[1] * SECOND))
    return FileInfo(Path("/t") / path, rank, world, span, host)


def ranks(*files: FileInfo, given: Mapping[str, int] | None = None) -> dict[str, tuple[int, int]]:
    """File -> (rank, cycle), refusing what the program refuses."""
    assigned = assign_ranks(files, given=given)
    separate_runs(files, assigned)
    return {a.path.relative_to("/t").as_posix(): (a.rank, a.cycle) for a in assigned}


def rules(*files: FileInfo, given: Mapping[str, int] | None = None) -> set[str]:
    return {a.rule for a in assign_ranks(files, given=given)}


def refused(*files: FileInfo) -> str:
    with pytest.raises(UsageError) as caught:
        separate_runs(files, assign_ranks(files))
    return caught.value.message


def test_one_file_that_says_nothing_is_rank_0() -> None:
    only = trace("host_200691.1758927066581847260.pt.trace.json")
    assert ranks(only) == {"host_200691.1758927066581847260.pt.trace.json": (0, 0)}
    assert rules(only) == {"single file"}


def test_distributed_info_goes_before_the_name() -> None:
    file = trace("rank5.json", rank=2)
    assert ranks(file) == {"rank5.json": (2, 0)}
    assert rules(file) == {"distributedInfo"}


def test_an_option_goes_before_distributed_info_and_the_difference_is_noted() -> None:
    file = trace("a.json", rank=2)
    (assigned,) = assign_ranks([file], given={"a.json": 7})
    assert (assigned.rank, assigned.rule) == (7, "option")
    assert assigned.note == "distributedInfo says rank 2"


def test_an_option_for_no_file_or_several_is_refused() -> None:
    files = [trace("x/a.json"), trace("y/a.json")]
    with pytest.raises(UsageError, match=r"b\.json, but no file has"):
        assign_ranks(files, given={"b.json": 0})
    with pytest.raises(UsageError, match=r"a\.json, but several files have"):
        assign_ranks(files, given={"a.json": 0})
    assert ranks(*files, given={"x/a.json": 0, "y/a.json": 1})["y/a.json"] == (1, 0)


def test_names_give_ranks_where_the_file_gives_none() -> None:
    files = [trace("rank10_trace.json"), trace("rank2_trace.json")]
    assert ranks(*files) == {"rank2_trace.json": (2, 0), "rank10_trace.json": (10, 0)}
    assert rules(*files) == {"file name (rank-N)"}


def test_folders_give_ranks_where_the_files_have_one_name() -> None:
    assert ranks(trace("rank_0/trace.json"), trace("rank_1/trace.json")) == {
        "rank_0/trace.json": (0, 0),
        "rank_1/trace.json": (1, 0),
    }


def test_one_parallel_dimension_is_the_rank_only_if_it_differs_between_files() -> None:
    assert ranks(trace("1-TP-0-DECODE.json"), trace("1-TP-1-DECODE.json")) == {
        "1-TP-0-DECODE.json": (0, 0),
        "1-TP-1-DECODE.json": (1, 0),
    }
    assert rules(trace("tp-8_a.json"), trace("tp-8_b.json")) == {"order"}


def test_a_number_that_is_all_that_differs_is_the_rank() -> None:
    files = [trace("job_kineto_3.json"), trace("job_kineto_11.json", (0.1, 0.9))]
    assert ranks(*files) == {"job_kineto_3.json": (3, 0), "job_kineto_11.json": (11, 0)}
    assert rules(*files) == {"file name (number 3)", "file name (number 11)"}


def test_worker_numbers_with_several_cycles_are_ranks_with_cycles() -> None:
    assert ranks(
        trace("worker0.1623143089861.json", (0, 1)),
        trace("worker1.1623143089872.json", (0, 1)),
        trace("worker0.1623143566756.json", (9, 10)),
        trace("worker1.1623143566761.json", (9, 10)),
    ) == {
        "worker0.1623143089861.json": (0, 0),
        "worker0.1623143566756.json": (0, 1),
        "worker1.1623143089872.json": (1, 0),
        "worker1.1623143566761.json": (1, 1),
    }


def test_process_ids_are_not_ranks() -> None:
    files = [trace(f"host_{pid}.1758927066581847260.pt.trace.json") for pid in (9, 71, 72)]
    assert list(ranks(*files).values()) == [(0, 0), (1, 0), (2, 0)]
    assert rules(*files) == {"order"}


def test_files_without_a_rank_take_the_ranks_that_are_free() -> None:
    assert ranks(trace("a.json", rank=0), trace("b.json"), trace("c.json", rank=2)) == {
        "a.json": (0, 0),
        "b.json": (1, 0),
        "c.json": (2, 0),
    }


def test_recordings_one_after_another_are_cycles_of_one_rank() -> None:
    files = [
        trace("worker0.1623143566756.pt.trace.json", (478, 479)),
        trace("worker0.1623143089861.pt.trace.json", (0, 1)),
    ]
    assert ranks(*files) == {
        "worker0.1623143089861.pt.trace.json": (0, 0),
        "worker0.1623143566756.pt.trace.json": (0, 1),
    }
    assert rules(*files) == {"order in time"}


def test_recordings_at_one_time_under_one_name_are_ranks() -> None:
    assert ranks(
        trace("1700000000.1.json", (0, 1)),
        trace("1700000000.2.json", (0, 1)),
        trace("1700000009.1.json", (9, 10)),
        trace("1700000009.2.json", (9, 10)),
    ) == {
        "1700000000.1.json": (0, 0),
        "1700000009.1.json": (0, 1),
        "1700000000.2.json": (1, 0),
        "1700000009.2.json": (1, 1),
    }


def test_iteration_folders_hold_cycles() -> None:
    assert ranks(
        trace("iteration_10/rank0.json", (0, 1), rank=0),
        trace("iteration_10/rank1.json", (0, 1), rank=1),
        trace("iteration_20/rank0.json", (5, 6), rank=0),
        trace("iteration_20/rank1.json", (5, 6), rank=1),
    ) == {
        "iteration_10/rank0.json": (0, 0),
        "iteration_20/rank0.json": (0, 1),
        "iteration_10/rank1.json": (1, 0),
        "iteration_20/rank1.json": (1, 1),
    }


def test_names_win_where_every_file_claims_rank_0() -> None:
    files = [trace("rank0.json", (0, 1), rank=0), trace("rank1.json", (2, 3), rank=0)]
    assert ranks(*files) == {"rank0.json": (0, 0), "rank1.json": (1, 0)}
    assert [a.note for a in assign_ranks(files)] == ["", "distributedInfo says rank 0"]


def test_files_that_all_claim_rank_0_at_once_are_ranks_in_order() -> None:
    files = [trace(f"host_{pid}.1758927066581847260.json", rank=0) for pid in (70_001, 70_002)]
    assert list(ranks(*files).values()) == [(0, 0), (1, 0)]
    assert [a.note for a in assign_ranks(files)] == ["", "distributedInfo says rank 0"]


def test_local_ranks_of_two_hosts_are_not_global_ranks() -> None:
    files = [
        trace("a_rank0.json", host="a"),
        trace("a_rank1.json", host="a"),
        trace("b_rank0.json", host="b"),
        trace("b_rank1.json", host="b"),
    ]
    assert list(ranks(*files).values()) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_ranks_in_the_folders_of_their_hosts_are_one_run() -> None:
    files = [trace("node0/a.json", rank=0, world=2), trace("node1/a.json", rank=1, world=2)]
    assert ranks(*files) == {"node0/a.json": (0, 0), "node1/a.json": (1, 0)}


def test_different_world_sizes_are_refused() -> None:
    message = refused(trace("control.json", rank=3, world=8), trace("test.json", rank=1, world=2))
    assert message == (
        "These traces are of different runs: control.json, test.json; "
        "their world sizes are 8 and 2."
    )


def test_one_rank_in_several_folders_is_refused() -> None:
    message = refused(trace("B300/a.json", rank=0), trace("MI300/a.json", rank=0))
    assert message == "These traces are of different runs: B300, MI300; 2 files are rank 0."


def test_folders_of_files_without_a_rank_are_refused() -> None:
    message = refused(trace("v1/a.json"), trace("v2/a.json"))
    assert message.startswith("These traces are of different runs: v1, v2; they lie in several")


def test_one_rank_under_two_names_is_refused() -> None:
    message = refused(
        trace("current-rank-00.json", (700, 701), rank=0), trace("hook-rank-00.json", rank=0)
    )
    assert "hook-rank-00.json, current-rank-00.json; 2 files are rank 0" in message


def test_one_rank_twice_at_the_same_time_is_refused() -> None:
    message = refused(
        trace("rank3.1700000000000.json", rank=3), trace("rank3.1700000000500.json", rank=3)
    )
    assert message.endswith("all of them are rank 3 at the same time.")


def test_a_series_over_a_setting_is_refused() -> None:
    files = [trace(f"batch_size_{2**i}.json", (400 * i, 400 * i + 0.04)) for i in range(9)]
    message = refused(*files)
    assert "batch_size_2.json, batch_size_4.json" in message
    assert "and 1 more; they do not say their rank and were not recorded together" in message


def test_numbered_captures_far_apart_are_not_ranks() -> None:
    assert "not recorded together" in refused(
        trace("exp_0.json", (0, 1)), trace("exp_1.json", (100, 101))
    )


def test_files_without_times_keep_their_numbers_only_from_zero() -> None:
    assert rules(trace("job_0.json", None), trace("job_1.json", None)) == {
        "file name (number 0)",
        "file name (number 1)",
    }
    assert rules(trace("job_3.json", None), trace("job_7.json", None)) == {"order"}


@given(st.permutations(range(6)))
def test_the_order_of_the_files_does_not_matter(order: list[int]) -> None:
    files = [trace(f"w_{i % 3}.170000000{i // 3}.json", (i // 3, i // 3 + 1)) for i in range(6)]
    assert assign_ranks([files[i] for i in order]) == assign_ranks(files)


def test_ranks_recorded_on_different_days_are_refused() -> None:
    epoch, day = 1.76e9, 86_400
    runs = (
        trace("rank0.json", (epoch, epoch + 1), rank=0),
        trace("rank1.json", (epoch + day, epoch + day + 1), rank=1),
    )
    assert "recorded at different times" in refused(*runs)


def test_ranks_whose_clocks_have_bases_of_their_own_are_one_run() -> None:
    epoch = 1.76e9
    files = trace("rank0.json", (epoch, epoch + 1), rank=0), trace("rank1.json", (5, 6), rank=1)
    assert ranks(*files) == {"rank0.json": (0, 0), "rank1.json": (1, 0)}


def test_an_option_that_gives_two_files_one_rank_at_the_same_time_is_refused() -> None:
    files = [trace("rank0.json", rank=0), trace("rank1.json", rank=1)]
    with pytest.raises(UsageError, match="all of them are rank 1 at the same time"):
        separate_runs(files, assign_ranks(files, given={"rank0.json": 1}))
