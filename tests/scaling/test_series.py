"""Speed-ups and serial fractions of several sizes, and what their drift means."""

from __future__ import annotations

import pytest

from analyzer.scaling import laws, series
from analyzer.scaling.serial import Mode

SIZES = (1, 2, 4, 8)


def drift(speedups: list[float], mode: Mode = "strong", half: float | None = 0.001) -> str:
    sizes = [2**k for k in range(len(speedups))]
    steps = [100.0 / s * (n if mode == "weak" else 1) for n, s in zip(sizes, speedups, strict=True)]
    return series.trend(series.points(sizes, steps, [half] * len(sizes), mode))


def test_from_4_to_32_gpus_at_4_2_times() -> None:
    base, large = series.points([4, 32], [100.0, 100.0 / 4.2], [None, None], "strong")
    assert (base.karp_flatt, base.speedup, base.efficiency) == (None, 1.0, 1.0)
    assert large.karp_flatt == pytest.approx(0.12925, abs=5e-6)
    assert large.efficiency == pytest.approx(0.525)


def test_amdahls_fraction_is_flat() -> None:
    assert drift([laws.amdahl(n, 0.05) for n in SIZES]) == "flat"


def test_coherency_makes_it_rise() -> None:
    found = series.points([1, 2, 4, 8, 16, 32],
                          [100 / laws.usl(n, 0.03, 5e-4) for n in (1, 2, 4, 8, 16, 32)],
                          [0.0] * 6, "strong")  # fmt: skip
    assert [p.karp_flatt for p in found[1:]] == pytest.approx([0.031, 0.032, 0.034, 0.038, 0.046])
    assert series.trend(found) == "rising"


def test_a_slow_smallest_run_makes_it_fall() -> None:
    assert drift([1.0, 1.6, 3.2, 6.4]) == "falling"


def test_more_than_n_is_superlinear_and_keeps_its_sign() -> None:
    _, point = series.points([1, 8], [100.0, 100 / 8.4], [0.0, 0.0], "strong")
    assert point.karp_flatt == pytest.approx(-0.0068, abs=5e-5)
    assert drift([1.0, 2.1, 4.3, 8.8]) == "superlinear"


def test_noise_alone_is_not_superlinear() -> None:
    assert drift([1.0, 2.004, 4.0, 7.99], half=0.01) == "flat"


def test_slower_than_one_gpu_is_a_slow_down() -> None:
    assert drift([1.0, 0.9, 0.8]) == "slow-down"


def test_two_sizes_have_no_drift() -> None:
    assert drift([1.0, 1.8]) == "unknown"


def test_weak_scaling_counts_throughput() -> None:
    _, point = series.points([8, 16], [100.0, 110.0], [None, None], "weak")
    assert point.speedup == pytest.approx(2 / 1.1)
    assert point.efficiency == pytest.approx(1 / 1.1)


def test_the_interval_is_that_of_both_steps() -> None:
    _, point = series.points([1, 2], [100.0, 60.0], [0.01, 0.02], "strong")
    assert point.karp_flatt == pytest.approx(0.2)
    assert (point.lo, point.hi) == pytest.approx((2 * 0.6 / 1.03 - 1, 2 * 0.6 * 1.03 - 1))


@pytest.mark.parametrize("trend", series.READINGS)
@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_every_drift_is_explained(trend: str, mode: Mode) -> None:
    assert len(series.reading(trend, mode)) > 40
