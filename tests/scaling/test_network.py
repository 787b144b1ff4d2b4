"""Hops and bytes against the size that was measured."""

from __future__ import annotations

import pytest

from analyzer.scaling.network import Network, algorithm


def test_a_ring_adds_a_hop_for_each_rank_and_hardly_any_bytes() -> None:
    ring = Network()
    assert ring.hops(8, 16) == pytest.approx(30 / 14)
    assert ring.bytes(8, 16) == pytest.approx((15 / 16) / (7 / 8))


def test_a_tree_adds_a_level_for_each_doubling_and_no_bytes() -> None:
    tree = Network("tree")
    assert tree.hops(8, 64) == pytest.approx(2.0)
    assert tree.bytes(8, 64) == 1.0


def test_beyond_a_node_rings_go_around_each_other() -> None:
    nodes = Network(per_node=8)
    assert (nodes.shape(8), nodes.shape(16)) == ("ring", "two-level")
    # 14 hops inside; on 32 ranks 14 and 6 between the four nodes.
    assert nodes.hops(8, 32) == pytest.approx(20 / 14)
    assert nodes.bytes(8, 32) == pytest.approx((7 / 8 + 3 / 4 / 8) / (7 / 8))


def test_measured_over_nodes_the_links_between_them_set_the_pace() -> None:
    assert Network(per_node=8).bytes(16, 64) == pytest.approx((7 / 8) / (1 / 2))


def test_one_rank_has_nothing_to_compare_with() -> None:
    assert (Network().hops(1, 8), Network().bytes(1, 8)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("kernels", "found"),
    [
        ([("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(args)", 9.0), ("x_RING_LL", 1.0)], "tree"),
        ([("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", 1.0)], "ring"),
        ([("gemm", 1.0)], "ring"),
    ],
)
def test_the_kernels_say_which_it_is(kernels: list[tuple[str, float]], found: str) -> None:
    assert algorithm(kernels) == found
