"""Each class grows by the simplest mechanism that explains it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from analyzer.scaling import growth
from analyzer.scaling.growth import FAMILIES, SHAPES, TRANSFER, allowed, fit_class, tried

SIZES = (1, 2, 4, 8)
STEPS = dict.fromkeys((1, 2, 4, 8, 16), 100.0)


def fitted(time: Callable[[int], float], families: tuple[str, ...]) -> growth.ClassFit:
    return fit_class({n: time(n) for n in SIZES}, STEPS, families)


def test_shared_work_falls_to_its_fixed_part() -> None:
    found = fitted(lambda n: 3.0 + 80.0 / n, tried("compute", "strong"))
    assert (found.family, found.trend) == ("falls", "falls")
    assert dict(found.terms) == pytest.approx({"1": 3.0, "1/N": 80.0})
    assert found.at(16) == pytest.approx(8.0)


def test_what_stays_is_flat() -> None:
    found = fitted(lambda n: 7.0, tried("launch", "strong"))
    assert (found.family, found.trend) == ("flat", "flat")
    assert found.at(1024) == pytest.approx(7.0)


def test_a_queue_grows() -> None:
    found = fitted(lambda n: 1.0 + 2.0 * n, tried("data_loading", "weak"))
    assert (found.family, found.trend) == ("grows", "grows")
    assert found.at(16) == pytest.approx(33.0)


def test_bytes_of_a_ring_need_no_second_shape() -> None:
    found = fitted(lambda n: 20.0 * (n - 1) / n, TRANSFER)
    assert (found.family, found.trend) == ("bandwidth", "grows")
    assert found.at(16) == pytest.approx(18.75)


@pytest.mark.parametrize(("family", "shape"), [("ring", "N-1"), ("tree", "log2 N")])
def test_latency_grows_by_hops_of_a_ring_or_levels_of_a_tree(family: str, shape: str) -> None:
    times = {n: 20.0 * (n - 1) / n + 2.0 * SHAPES[shape](n) for n in (2, 4, 8)}
    found = fit_class(times, times, TRANSFER)
    assert found.family == family
    assert dict(found.terms) == pytest.approx({"(N-1)/N": 20.0, shape: 2.0})


def test_random_waiting_creeps() -> None:
    found = fitted(lambda n: 3.0 * SHAPES["k_N"](n), tried("comm_wait", "weak"))
    assert found.family == "jitter"
    assert found.at(16) == pytest.approx(3.0 * 1.76599, rel=1e-4)


def test_nothing_exchanged_on_one_gpu_costs_nothing() -> None:
    assert [shape(1) for name, shape in SHAPES.items() if name not in ("1", "1/N", "N")] == [0] * 6


def test_a_class_without_time_has_no_trend() -> None:
    assert fitted(lambda n: 0.0, TRANSFER).trend == "none"


def test_as_many_shapes_as_sizes_are_not_allowed() -> None:
    assert allowed(TRANSFER, 3) == ["bandwidth", "ring", "tree"]
    assert allowed(TRANSFER, 4) == list(TRANSFER)


def test_two_sizes_allow_two_shapes() -> None:
    assert allowed(("falls",), 2) == ["falls"]


def test_every_family_is_explained() -> None:
    assert all(words and set(shapes) <= set(SHAPES) for shapes, words in FAMILIES.values())
