"""Rates of collectives: nccl-tests' definitions, what is undefined, and references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from make import TraceBuilder
from runs import STEP, healthy, loaded

from analyzer.ranks.pool import CollectiveMean
from analyzer.scaling.comm_cost import (
    Bandwidth,
    attained,
    bandwidth,
    bus_factor,
    imbalance,
    of_row,
    reference,
)

MB, MS = 1e6, 1e6


def test_the_golden_all_reduce() -> None:
    found = bandwidth("all_reduce", 8, 100 * MB, 1 * MS)
    assert [found.algbw, found.busbw] == pytest.approx([100.0, 175.0])


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all_reduce", 1.5),
        ("reduce_scatter", 0.75),
        ("all_gather", 0.75),
        ("all_to_all", 0.75),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send_recv", 1.0),
        ("dispatch", None),
        ("unspecified", None),
    ],
)
def test_what_of_the_bytes_crosses_a_link_of_four_ranks(kind: str, factor: float | None) -> None:
    assert bus_factor(kind, 4) == factor


def test_one_rank_moves_nothing() -> None:
    assert bus_factor("all_reduce", 1) is None
    assert bandwidth("all_reduce", 1, MB, MS) == Bandwidth(None, None, "one rank moves nothing")


@pytest.mark.parametrize(
    ("n", "nbytes", "transfer", "reason"),
    [
        (8, MB, None, "its transfer cannot be told from waiting"),
        (8, None, MS, "its size was not recorded"),
        (8, MB, 0.0, "its transfer takes no time"),
    ],
)
def test_without_size_or_time_there_is_no_rate(
    n: int, nbytes: float | None, transfer: float | None, reason: str
) -> None:
    assert bandwidth("all_reduce", n, nbytes, transfer) == Bandwidth(None, None, reason)


def test_without_the_number_of_ranks_the_bytes_still_have_a_rate() -> None:
    found = bandwidth("all_reduce", None, 50 * MB, MS)
    assert found.algbw == pytest.approx(50.0)
    assert found.busbw is None
    assert found.reason == "the size of its group was not recorded"


def row(
    kind: str = "all_reduce", nbytes: float = 128 * MB, transfer_ms: float = 2.0
) -> CollectiveMean:
    return CollectiveMean(kind, "0", 8, 2.0, nbytes, 9 * MS, 0.0, 7 * MS, transfer_ms * MS)


def test_a_rows_rate_is_of_one_collective_of_it() -> None:
    found = of_row(row(), 8, None, None)
    assert [found.algbw, found.busbw] == pytest.approx([128.0, 224.0])


def test_an_uneven_exchange_has_bytes_over_time_and_no_bus_rate() -> None:
    found = of_row(row("all_to_all"), 8, None, 1.5)
    assert found.algbw == pytest.approx(128.0)
    assert found.busbw is None
    assert found.reason.startswith("uneven: the largest rank sends 1.50 times the mean")


def test_an_even_exchange_has_both() -> None:
    assert of_row(row("all_to_all"), 8, None, 1.0).busbw == pytest.approx(112.0)


@pytest.mark.parametrize(
    ("gpu", "link"),
    [
        ("NVIDIA A100-SXM4-80GB", 300.0),
        ("NVIDIA A100-PCIE-40GB", 32.0),
        ("NVIDIA H100 80GB HBM3", 450.0),
        ("NVIDIA H100 PCIe", 64.0),
        ("NVIDIA B200", 900.0),
        ("Tesla V100-SXM2-32GB", 150.0),
    ],
)
def test_the_links_of_a_gpu_are_known_in_one_direction(gpu: str, link: float) -> None:
    found = reference(gpu)
    assert found is not None
    assert found.link == link


@pytest.mark.parametrize("gpu", [None, "NVIDIA GeForce RTX 2080 Ti"])
def test_other_gpus_have_no_reference(gpu: str | None) -> None:
    assert reference(gpu) is None


@pytest.mark.parametrize(
    ("nbytes", "busbw", "below"),
    [
        (100 * MB, 183.0, True),
        (100 * MB, 184.0, False),
        (99 * MB, 10.0, False),
        (1000 * MB, 300.0, False),
    ],
)
def test_below_reference_is_said_of_large_messages_only(
    nbytes: float, busbw: float, below: bool
) -> None:
    """A100: 230 to 250 GB/s are usual; the line is at 0.8 of the lower."""
    note = attained("all_reduce", Bandwidth(1.0, busbw), nbytes, reference("NVIDIA A100-SXM4-80GB"))
    assert note.startswith("Below reference") is below


def test_without_a_measured_reference_nothing_is_below_it() -> None:
    assert attained("all_reduce", Bandwidth(1.0, 1.0), 1000 * MB, reference("NVIDIA B200")) == ""


def test_other_kinds_have_no_reference() -> None:
    known = reference("NVIDIA H100 80GB HBM3")
    assert attained("all_gather", Bandwidth(1.0, 1.0), 1000 * MB, known) == ""


def sized(rank: int, elements: Sequence[int]) -> TraceBuilder:
    """The healthy run with an all-reduce of 4 bytes an element for each of `elements` in a step, of
    10 us each.
    """
    built = healthy(rank, without=["collectives"])
    for k in range(7):
        at, launch = k * STEP, (k * STEP + 20, k * STEP + 25)
        for i, count in enumerate(elements):
            start = at + 500 + 20 * i
            built.collective("allreduce", start, start + 10, elements=count, launch=launch)
    return built


@pytest.mark.parametrize(
    ("elements", "sizes"),
    [
        ((250, 2_500), [5_500.0]),
        ((250, 2_750), [1_000.0, 11_000.0]),
        ((250, 275, 2_750_000), [1_050.0, 11_000_000.0]),
    ],
    ids=["ten times", "more than ten times", "like sizes stay together"],
)
def test_sizes_more_than_ten_times_apart_are_rows_of_their_own(
    elements: tuple[int, ...], sizes: list[float], tmp_path: Path
) -> None:
    job = loaded(tmp_path, {f"rank{r}.json": sized(r, elements) for r in (0, 1)}).job
    assert sorted(row.nbytes or 0.0 for row in job.collectives) == sizes
    assert sum(row.count for row in job.collectives) == len(elements)


def exchanging(rank: int, elements: int) -> TraceBuilder:
    built = healthy(rank, without=["collectives"])
    for k in range(7):
        at = k * STEP
        launch = (at + 20, at + 25)
        built.collective("all_to_all", at + 500, at + 800, elements=elements, launch=launch)
    return built


def test_how_uneven_an_exchange_is(tmp_path: Path) -> None:
    built = {"rank0.json": exchanging(0, 1000), "rank1.json": exchanging(1, 3000)}
    assert imbalance(loaded(tmp_path, dict(built)).job) == {("all_to_all", "0"): 1.5}


def test_other_collectives_are_no_exchange(tmp_path: Path) -> None:
    assert imbalance(loaded(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)}).job) == {}
