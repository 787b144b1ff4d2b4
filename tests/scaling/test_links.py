"""Hockney's costs of collectives, and latency and bandwidth from their times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analyzer.ranks.pool import CollectiveMean
from analyzer.scaling.comm_cost import (
    Link,
    ring_hops,
    ring_time,
    ring_tree_crossover,
    tree_all_reduce_time,
    two_level_all_reduce_time,
)
from analyzer.scaling.links import TOO_ALIKE, fit_link, fit_links

US, MB = 1e3, 1e6
LINK = Link(5 * US, 200.0)


@pytest.mark.parametrize(
    ("kind", "n", "micros"),
    [
        ("all_reduce", 8, 945.0),
        ("reduce_scatter", 8, 472.5),
        ("all_gather", 8, 472.5),
        ("all_reduce", 256, 3546.0),
        ("send_recv", 2, 505.0),
        ("broadcast", 8, 535.0),
        ("all_reduce", 1, 0.0),
    ],
)
def test_ring_of_100_mb_at_200_gb_per_s(kind: str, n: int, micros: float) -> None:
    found = ring_time(kind, n, 100 * MB, LINK)
    assert found is not None
    assert found / US == pytest.approx(micros, abs=0.1)


def test_a_kind_without_one_size_has_no_time() -> None:
    assert ring_time("dispatch", 8, MB, LINK) is None


@pytest.mark.parametrize(("n", "micros"), [(8, 1030.0), (256, 1080.0), (1, 0.0)])
def test_tree_of_100_mb(n: int, micros: float) -> None:
    assert tree_all_reduce_time(n, 100 * MB, LINK) / US == pytest.approx(micros)


def test_ring_and_tree_cross_at_32_mb() -> None:
    crossing = ring_tree_crossover(8, LINK)
    assert crossing == pytest.approx(32 * MB)
    assert tree_all_reduce_time(8, 32 * MB, LINK) / US == pytest.approx(350.0)
    assert ring_time("all_reduce", 8, 32 * MB, LINK) == pytest.approx(350.0 * US)


@pytest.mark.parametrize(("n", "link"), [(2, LINK), (8, Link(0.0, 200.0)), (8, Link(5 * US, None))])
def test_without_a_ring_latency_or_bytes_nothing_crosses(n: int, link: Link) -> None:
    assert ring_tree_crossover(n, link) is None


def test_two_levels_are_a_ring_inside_around_one_between_nodes() -> None:
    inside, between = Link(1 * US, 400.0), Link(10 * US, 50.0)
    # 14 hops of 1 us and 1.75 x 100 MB at 400; 2 hops of 10 us and 12.5 MB at 50.
    expected = 14 + 437.5 + 20 + 250
    found = two_level_all_reduce_time(8, 2, 100 * MB, inside, between)
    assert found / US == pytest.approx(expected)


def test_one_rank_makes_no_hop() -> None:
    assert ring_hops("all_reduce", 1) == 0.0


def test_two_sizes_a_decade_apart_tell_latency_from_bandwidth() -> None:
    sizes = [1 * MB, 10 * MB, 100 * MB]
    rows = [(8, m, ring_time("all_reduce", 8, m, Link(6 * US, 200.0)) or 0.0) for m in sizes]
    found = fit_link("all_reduce", "0", rows).link
    assert found is not None
    assert found.latency / US == pytest.approx(6.0)
    assert found.bandwidth == pytest.approx(200.0)


def test_noise_of_three_percent_moves_them_little() -> None:
    draw = np.random.default_rng(7)
    rows = [
        (n, m, (ring_time("all_reduce", n, m, Link(6 * US, 200.0)) or 0.0) * draw.normal(1, 0.03))
        for n in (2, 4, 8)
        for m in (0.1 * MB, 1 * MB, 10 * MB, 100 * MB)
    ]
    found = fit_link("all_reduce", "0", rows)
    assert found.link is not None
    assert found.link.bandwidth is not None
    assert found.rms is not None
    assert found.link.latency / US == pytest.approx(6.0, rel=0.03)
    assert found.link.bandwidth == pytest.approx(200.0, rel=0.03)
    assert found.rms < 0.06


def test_three_numbers_of_ranks_tell_them_apart_too() -> None:
    rows = [(n, MB, ring_time("all_gather", n, MB, LINK) or 0.0) for n in (2, 4, 8)]
    found = fit_link("all_gather", "0", rows).link
    assert found is not None
    assert found.latency == pytest.approx(5 * US)


def test_sizes_too_alike_are_refused() -> None:
    found = fit_link("all_reduce", "0", [(8, MB, 1e5), (8, 9 * MB, 2e5)])
    assert (found.link, found.rms, found.reason) == (None, None, TOO_ALIKE)


def test_time_that_does_not_follow_the_bytes_has_no_bandwidth() -> None:
    rows = [(n, 1.0, ring_hops("all_reduce", n) * 3 * US) for n in (2, 4, 8)]
    found = fit_link("all_reduce", "0", rows).link
    assert found is not None
    assert found.latency == pytest.approx(3 * US)
    assert found.bandwidth is None or math.isinf(found.bandwidth) or found.bandwidth > 1e6


def collective(nbytes: float | None, transfer: float | None, size: int | None) -> CollectiveMean:
    return CollectiveMean("all_reduce", "dp", size, 2.0, nbytes, 1e6, 0.0, 0.0, transfer)


def test_rows_of_one_kind_and_group_are_one_link_over_all_runs() -> None:
    runs = [
        (n, [collective(MB, 2 * (ring_time("all_reduce", n, MB, LINK) or 0.0), n)])
        for n in (2, 4, 8)
    ]
    (found,) = fit_links(runs)
    assert (found.kind, found.group, len(found.rows)) == ("all_reduce", "dp", 3)
    assert found.link is not None
    assert found.link.latency == pytest.approx(5 * US)


def test_a_group_of_unknown_size_is_the_whole_run() -> None:
    (found,) = fit_links([(4, [collective(MB, 2e5, None)])])
    assert found.rows == [(4, MB, 1e5)]


@pytest.mark.parametrize("row", [collective(None, 1e5, 8), collective(MB, None, 8)])
def test_rows_without_bytes_or_transfer_say_nothing(row: CollectiveMean) -> None:
    assert fit_links([(8, [row])]) == []
