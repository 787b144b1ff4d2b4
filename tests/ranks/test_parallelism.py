"""The groups of a run and the dimensions they serve, and the N that follows for the laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from make import TraceBuilder
from runs import STEP, exposed, healthy, loaded

from analyzer.ranks.parallelism import Group, degree, groups, strategy
from analyzer.ranks.pool import Job

GPUS = [{"id": i, "name": "NVIDIA A100-SXM4-80GB"} for i in range(2)]
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job_of(folder: Path, built: Sequence[TraceBuilder]) -> Job:
    return loaded(folder, {f"rank{r}.json": one for r, one in enumerate(built)}).job


def crossed(rank: int) -> TraceBuilder:
    """Four ranks: tensors split over 0, 1 and over 2, 3; data over 0, 2 and over 1, 3. In a step 20
    all-reduces for tensors, every 45 us, and one of 50 us at the end for data.
    """
    built = healthy(rank, 4, without=["collectives"]).top("deviceProperties", GPUS)
    tensor, data = [rank // 2 * 2, rank // 2 * 2 + 1], [rank % 2, rank % 2 + 2]
    for k in range(7):
        at, launch = k * STEP, (k * STEP + 20, k * STEP + 25)
        for i in range(20):
            start = at + 30 + 45 * i
            built.collective("allreduce", start, start + 10, group="1", ranks=tensor, launch=launch)
        built.collective("allreduce", at + 940, at + 990, group="2", ranks=data, launch=launch)
    return built


@pytest.fixture
def mixed(tmp_path: Path) -> list[Group]:
    return groups(job_of(tmp_path, [crossed(r) for r in range(4)]))


def test_each_group_of_ranks_is_told_once(mixed: list[Group]) -> None:
    assert [(g.name, g.dimension, g.ranks) for g in mixed] == [
        ("1", "tensor", [0, 1]),
        ("1", "tensor", [2, 3]),
        ("2", "data", [0, 2]),
        ("2", "data", [1, 3]),
    ]


def test_time_and_number_are_per_rank_of_the_group_and_step(mixed: list[Group]) -> None:
    assert [(g.count, g.ns) for g in mixed] == [(20, 200_000)] * 2 + [(1, 50_000)] * 2


def test_ranks_on_one_node_by_its_number_of_gpus(mixed: list[Group]) -> None:
    assert [g.level for g in mixed] == ["node", "node", "nodes", "nodes"]


def test_the_dimension_with_most_time_comes_first(mixed: list[Group]) -> None:
    assert strategy(mixed) == ["tensor", "data"]


def test_n_counts_replicas_not_the_gpus_that_share_one(mixed: list[Group]) -> None:
    found = degree(4, mixed)
    assert found.n == 2
    assert found.because.startswith("N counts the 2 replicas of data parallelism; ")


@pytest.mark.parametrize(
    ("hosts", "level"), [(("a", "a"), "node"), (("a", "b"), "nodes"), (("a", None), "unknown")]
)
def test_host_names_say_whether_a_group_crosses_nodes(
    hosts: tuple[str | None, str | None], level: str, tmp_path: Path
) -> None:
    built = [exposed(r) for r in (0, 1)]
    for one, host in zip(built, hosts, strict=True):
        one.top("host_name", host)
    (group,) = groups(job_of(tmp_path, built))
    assert group.level == level


def test_host_names_outweigh_the_number_of_gpus(tmp_path: Path) -> None:
    built = [exposed(r).top("host_name", f"node{r}").top("deviceProperties", GPUS) for r in (0, 1)]
    assert groups(job_of(tmp_path, built))[0].level == "nodes"


def test_a_group_without_a_name_has_the_ranks_it_was_joined_over(tmp_path: Path) -> None:
    built = [healthy(r, without=["collectives"]) for r in (0, 1)]
    for one in built:
        for k in range(7):
            at = k * STEP
            one.kernel(NCCL, at + 600, at + 900, launch=(at + 20, at + 25), stream=20)
    (group,) = groups(job_of(tmp_path, built))
    assert (group.name, group.size, group.ranks, group.dimension) == ("", 2, [0, 1], "data")


def test_a_lone_ranks_group_without_a_name_has_no_size(tmp_path: Path) -> None:
    built = healthy(0, without=["collectives"])
    for k in range(7):
        at = k * STEP
        built.kernel(NCCL, at + 600, at + 900, launch=(at + 20, at + 25), stream=20)
    found = groups(job_of(tmp_path, [built]))
    assert (found[0].size, found[0].ranks, found[0].level) == (None, [], "unknown")
    assert degree(2, found).n == 2


def test_the_description_in_the_header_names_the_dimension(tmp_path: Path) -> None:
    info = {"backend": "nccl", "world_size": 2}
    pg = [{"pg_name": "0", "pg_desc": "TENSOR_MODEL_PARALLEL_GROUP", "pg_size": 2}]
    built = [
        exposed(r).top("distributedInfo", {**info, "rank": r, "pg_config": pg}) for r in (0, 1)
    ]
    (group,) = groups(job_of(tmp_path, built))
    assert (group.dimension, group.because) == (
        "tensor",
        "its group is called TENSOR_MODEL_PARALLEL_GROUP",
    )


def test_the_wait_for_a_batch_does_not_make_all_reduces_late(tmp_path: Path) -> None:
    """Twenty all-reduces throughout the work of a step of which the loader takes two thirds."""
    built = [exposed(r, loader=2000, kinds=()) for r in (0, 1)]
    for one in built:
        for k in range(7):
            at = k * 2900
            for i in range(20):
                start = at + 2030 + 40 * i
                launch = (at + 2010, at + 2015)
                one.collective("allreduce", start, start + 10, launch=launch)
    assert groups(job_of(tmp_path, built))[0].dimension == "tensor"


def test_the_rank_that_waits_least_shows_where_all_reduces_stand(tmp_path: Path) -> None:
    """Rank 0 waits in the first of two from the start of the step on; rank 1 computes for long."""
    kinds = ("allreduce", "allreduce")
    built = [
        exposed(0, compute=100, wait=900, kinds=kinds),
        exposed(1, compute=1000, kinds=kinds),
    ]
    assert groups(job_of(tmp_path, built))[0].dimension == "data"


def test_one_rank_alone_has_no_group(tmp_path: Path) -> None:
    job = job_of(tmp_path, [exposed(0, 1)])
    assert groups(job) == []
    assert strategy([]) == []
    assert degree(job.size, []).because == "N is one GPU."


BASE = Group(
    name="", size=8, ranks=[], dimension="data", level="node", because="", kinds=[], count=1.0,
    ns=1.0, pairs=1,
)  # fmt: skip


def group(dimension: str, size: int | None, ranks: Sequence[int] = ()) -> Group:
    return replace(BASE, dimension=dimension, size=size, ranks=list(ranks))


CASES: Mapping[str, tuple[int, list[Group], int, str]] = {
    "data alone": (8, [group("data", 8)], 8, "all of which share the batch"),
    "tensor alone": (8, [group("tensor", 8)], 8, "the only parallel dimension seen, tensor"),
    "replicas of shards": (
        16,
        [group("data", 2, [0, 8]), group("sharded-data", 8, range(8))],
        16,
        "all of which share the batch",
    ),
    "shards on the ranks that replicate too": (
        8,
        [group("data", 8, range(8)), group("sharded-data", 8, range(8))],
        8,
        "all of which share the batch",
    ),
    "replicas of shards whose lists of ranks were cut": (
        128,
        [group("data", 2), group("sharded-data", 64)],
        128,
        "all of which share the batch",
    ),
    "shards that replicate too, with lists that were cut": (
        64,
        [group("data", 64), group("sharded-data", 64)],
        64,
        "all of which share the batch",
    ),
    "cut lists of groups that do not fill the run": (
        512,
        [group("data", 2), group("sharded-data", 64)],
        512,
        "whether replicas are sharded too could not be told",
    ),
    "replicas of shards of tensors with lists that were cut": (
        512,
        [group("data", 2), group("sharded-data", 64), group("tensor", 4)],
        128,
        "the 128 replicas",
    ),
    "data of unknown size beside tensors": (
        64,
        [group("data", None), group("tensor", 8)],
        8,
        "the 8 replicas",
    ),
    "experts of unknown size": (64, [group("expert", None)], 64, "was not recorded"),
    "tensor and pipeline": (64, [group("tensor", 8), group("pipeline", 8)], 64, "could not be"),
    "unknown": (128, [group("unknown", 128)], 128, "could not be told"),
}


@pytest.mark.parametrize("case", CASES)
def test_n_of_the_laws_and_why(case: str) -> None:
    size, found, n, why = CASES[case]
    answer = degree(size, found)
    assert answer.n == n
    assert why in answer.because


def test_a_given_n_wins() -> None:
    assert degree(8, [group("data", 8)], given=4).n == 4


def test_what_is_not_recognised_is_unknown_only_where_nothing_is() -> None:
    assert strategy([group("unknown", 8)]) == ["unknown"]
    assert strategy([group("unknown", 8), group("data", 8)]) == ["data"]
