"""Where a curve of speed-ups bends."""

from __future__ import annotations

import pytest

from analyzer.scaling import laws
from analyzer.scaling.knee import knee

POWERS = [2**k for k in range(11)]


def test_amdahls_curve_bends_where_its_formula_says() -> None:
    s = 0.01
    found = knee([(n, laws.amdahl(n, s)) for n in POWERS])
    # E = 1/(1 + s(N-1)), and speed-up times efficiency is largest at (1-s)/s. A point each 1.1 %.
    assert found.nine_tenths == pytest.approx(1 + (1 / 0.9 - 1) / s, rel=0.011)
    assert found.half == pytest.approx(1 + 1 / s, rel=0.011)
    assert found.pays == pytest.approx((1 - s) / s, rel=0.011)
    assert found.fastest is None


def test_a_curve_that_turns_has_a_fastest_size() -> None:
    found = knee([(n, laws.usl(n, 0.03, 5e-4)) for n in range(1, 101)])
    assert found.fastest == pytest.approx(44.05, rel=0.011)


def test_ideal_scaling_bends_nowhere() -> None:
    found = knee([(n, float(n)) for n in POWERS])
    assert (found.nine_tenths, found.half, found.fastest, found.pays) == (None,) * 4


def test_a_job_that_never_gains_pays_on_one_gpu_only() -> None:
    found = knee([(n, 1.0 + 1e-6 * n) for n in (1, 2, 4)])
    assert found.pays == 1.0
    assert found.half == pytest.approx(2.0, rel=0.02)
