"""Scaling laws: worked figures to the digits they are printed with, and identities between laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.scaling import laws

GPUS = st.integers(min_value=1, max_value=4096)
SHARES = st.floats(min_value=1e-6, max_value=1.0)


def printed(value: float | None, digits: int) -> str:
    assert value is not None
    return f"{value:.{digits}f}"


@pytest.mark.parametrize(
    ("s", "n", "speedup"),
    [
        (0.10, 1, "1.00"),
        (0.10, 2, "1.82"),
        (0.10, 4, "3.08"),
        (0.10, 8, "4.71"),
        (0.10, 16, "6.40"),
        (0.05, 2, "1.90"),
        (0.05, 4, "3.48"),
        (0.05, 8, "5.93"),
        (0.05, 16, "9.14"),
        (0.05, 10_000, "19.96"),
        (0.20, 4, "2.50"),
        (0.20, 8, "3.33"),
        (0.20, 16, "4.00"),
        (0.20, 32, "4.44"),
        (0.50, 16, "1.88"),
        (0.50, 32, "1.94"),
        (0.90, 2, "1.05"),
        (0.90, 4, "1.08"),
        (0.90, 8, "1.10"),
        (0.90, 16, "1.10"),
    ],
)
def test_amdahl_gives_the_corrected_course_table(s: float, n: int, speedup: str) -> None:
    assert printed(laws.amdahl(n, s), 2) == speedup


@pytest.mark.parametrize(
    ("s", "n", "speedup"),
    [
        (0.05, 16, "9.1429"),
        (0.20, 8, "3.3333"),
        (0.20, 32, "4.4444"),
        (0.50, 16, "1.8824"),
        (0.90, 2, "1.0526"),
        (0.90, 4, "1.0811"),
        (0.90, 8, "1.0959"),
        (0.90, 16, "1.1034"),
        (0.10, 8, "4.7059"),
    ],
)
def test_amdahl_to_four_digits(s: float, n: int, speedup: str) -> None:
    assert printed(laws.amdahl(n, s), 4) == speedup


@pytest.mark.parametrize(
    ("s", "ceiling"), [(0.10, "10.00"), (0.05, "20.00"), (0.90, "1.11"), (0.03, "33.33")]
)
def test_ceiling_is_the_reciprocal_of_the_serial_fraction(s: float, ceiling: str) -> None:
    assert printed(laws.amdahl_ceiling(s), 2) == ceiling


def test_nothing_serial_has_no_ceiling() -> None:
    assert laws.amdahl_ceiling(0.0) is None
    assert laws.gpus_for_fraction(0.0, 0.9) is None
    assert laws.amdahl(8, 0.0) == 8.0


def test_all_serial_never_gains() -> None:
    assert [laws.amdahl(n, 1.0) for n in (1, 8, 1024)] == [1.0, 1.0, 1.0]
    assert laws.amdahl_ceiling(1.0) == 1.0


def test_nine_tenths_of_the_ceiling_of_five_percent_needs_171_gpus() -> None:
    assert printed(laws.gpus_for_fraction(0.05, 0.9), 6) == "171.000000"


@pytest.mark.parametrize(
    ("share", "factor", "bound"), [(0.14, math.inf, "1.1628"), (0.14, 2.0, "1.0753")]
)
def test_one_class_made_faster_is_bounded_by_the_rest(
    share: float, factor: float, bound: str
) -> None:
    assert printed(laws.speedup_bound(share, factor), 4) == bound


def test_removing_the_whole_step_is_unbounded() -> None:
    assert laws.speedup_bound(1.0) is None


def test_gustafson_at_ten_percent_and_eight_gpus() -> None:
    assert printed(laws.gustafson(8, 0.1), 2) == "7.30"


def test_gustafson_is_amdahl_with_the_fraction_of_the_one_gpu_run() -> None:
    s = laws.s_from_f(0.1, 8)
    assert printed(s, 6) == "0.013699"
    assert printed(laws.amdahl(8, s), 4) == "7.3000"


def test_two_ceilings_of_one_trace() -> None:
    s = laws.s_from_f(0.2, 8)
    assert printed(s, 6) == "0.030303"
    assert printed(laws.amdahl(8, s), 4) == "6.6000"
    assert printed(laws.amdahl_ceiling(0.2), 4) == "5.0000"
    assert printed(laws.amdahl_ceiling(s), 4) == "33.0000"


@pytest.mark.parametrize(
    ("speedup", "n", "fraction"),
    [
        (6.6, 8, "0.030303"),
        (8.4, 8, "-0.006803"),
        (8.0, 8, "0.000000"),
        (1.0, 8, "1.000000"),
        (0.5, 2, "3.000000"),
        (5.6, 8, "0.061224"),
        (4 * 0.8 / 0.85, 4, "0.020833"),
    ],
)
def test_karp_flatt_keeps_its_sign_and_size(speedup: float, n: int, fraction: str) -> None:
    assert printed(laws.karp_flatt(speedup, n), 6) == fraction


def test_karp_flatt_is_undefined_without_a_second_size() -> None:
    assert laws.karp_flatt(1.0, 1) is None
    assert laws.karp_flatt_relative(1.0, base=4, n=4) is None


@pytest.mark.parametrize(
    ("speedup", "relative", "one_gpu", "ceiling", "efficiency"),
    [
        (4.2, "0.129252", "0.035782", "27.95", "0.525"),
        (6.8, "0.025210", "0.006424", "155.67", "0.850"),
    ],
)
def test_from_4_to_32_gpus(
    speedup: float, relative: str, one_gpu: str, ceiling: str, efficiency: str
) -> None:
    e = laws.karp_flatt_relative(speedup, base=4, n=32)
    assert printed(e, 6) == relative
    assert e is not None
    s = laws.s_from_f(e, 4)
    assert printed(s, 6) == one_gpu
    assert printed(laws.amdahl_ceiling(s), 2) == ceiling
    assert laws.amdahl(32, s) / laws.amdahl(4, s) == pytest.approx(speedup, rel=1e-12)
    assert printed(laws.relative_efficiency(speedup, base=4, n=32), 3) == efficiency


def test_communication_of_45_percent_removed_from_the_4_to_32_run() -> None:
    ideal_over_measured = laws.relative_efficiency(4.2, base=4, n=32)
    bound = laws.speedup_bound(0.45)
    assert bound is not None
    assert printed(1 / ideal_over_measured, 3) == "1.905"
    assert printed(0.45 / ideal_over_measured, 3) == "0.857"
    assert printed(4.2 * bound, 2) == "7.64"


def test_strong_and_weak_efficiency_of_the_same_run() -> None:
    assert printed(laws.efficiency(6.6, 8), 3) == "0.825"
    assert printed(laws.weak_efficiency(96.0, 110.0), 6) == "0.872727"


def test_thirty_day_course_run_in_days() -> None:
    assert printed(30 / laws.amdahl(8, 0.2), 1) == "9.0"
    assert printed(30 / laws.amdahl(8, laws.s_from_f(0.2, 8)), 2) == "4.55"
    assert printed(30 / (8 * 0.75), 1) == "5.0"


def test_six_times_on_eight_gpus_needs_this_fraction() -> None:
    s = laws.karp_flatt(6.0, 8)
    assert s is not None
    assert printed(s, 4) == "0.0476"
    assert printed(laws.f_from_s(s, 8), 3) == "0.286"
    assert printed(laws.amdahl_ceiling(s), 2) == "21.00"
    assert printed(laws.gustafson(8, laws.f_from_s(s, 8)), 6) == "6.000000"


@pytest.mark.parametrize(("communication", "efficiency"), [(0.1, "0.820"), (0.2, "0.752")])
def test_losses_multiply_to_the_course_efficiency(communication: float, efficiency: str) -> None:
    loss = laws.weak_efficiency(1.0, 1.0 + communication)
    assert printed(loss * 0.95 * 0.95, 3) == efficiency


def test_resnet_epoch_on_four_gpus() -> None:
    one_gpu_s = 1_000_000 / 256 * 0.8
    speedup = 4 * laws.weak_efficiency(0.8, 0.85)
    e = laws.karp_flatt(speedup, 4)
    assert e is not None
    assert printed(one_gpu_s, 1) == "3125.0"
    assert printed(one_gpu_s / laws.amdahl(4, 0.0), 2) == "781.25"
    assert printed(one_gpu_s / speedup, 2) == "830.08"
    assert printed(speedup, 4) == "3.7647"
    assert printed(laws.efficiency(speedup, 4), 4) == "0.9412"
    assert printed(laws.amdahl_ceiling(e), 2) == "48.00"


@pytest.mark.parametrize(("step_s", "speedup"), [(0.81, "3.95"), (0.82, "3.90")])
def test_resnet_with_only_its_communication_lost(step_s: float, speedup: str) -> None:
    assert printed(4 * laws.weak_efficiency(0.8, step_s), 2) == speedup


@pytest.mark.parametrize(
    ("n", "fraction"), [(2, 0.031), (4, 0.032), (8, 0.034), (16, 0.038), (32, 0.046)]
)
def test_usl_is_karp_flatt_on_a_line(n: int, fraction: float) -> None:
    assert laws.karp_flatt(laws.usl(n, 0.03, 5e-4), n) == pytest.approx(fraction, rel=1e-12)


@pytest.mark.parametrize(("n", "capacity"), [(8, "6.4620"), (32, "13.1904")])
def test_usl_capacity(n: int, capacity: str) -> None:
    assert printed(laws.usl(n, 0.03, 5e-4), 4) == capacity


def test_usl_peak_and_the_capacity_there() -> None:
    peak = laws.usl_peak(0.03, 5e-4)
    assert peak is not None
    assert printed(peak, 4) == "44.0454"
    assert printed(laws.usl(peak, 0.03, 5e-4), 3) == "13.597"


def test_usl_without_coherency_cost_is_amdahl_and_has_no_peak() -> None:
    assert laws.usl(8, 0.1, 0.0) == pytest.approx(laws.amdahl(8, 0.1), rel=1e-15)
    assert laws.usl_peak(0.1, 0.0) is None


@pytest.mark.parametrize(("sigma", "kappa"), [(1.0, 0.0), (1.2, 0.1), (0.5, 2.0)])
def test_usl_peaks_at_one_gpu_when_no_second_one_pays(sigma: float, kappa: float) -> None:
    assert laws.usl_peak(sigma, kappa) == 1.0


@pytest.mark.parametrize(("work", "speedup"), [(1, "4.7059"), (8, "7.3000"), (8**1.5, "7.7354")])
def test_sun_ni_between_amdahl_and_beyond_gustafson(work: float, speedup: str) -> None:
    assert printed(laws.sun_ni(8, 0.1, work), 4) == speedup


def test_ring_optimum() -> None:
    cost = {"parallel": 800.0, "latency": 0.005, "transfer": 0.5}
    n = laws.ring_optimum(**cost)
    assert n is not None
    best = laws.ring_step_time(n, serial=5.0, **cost)
    assert printed(n, 2) == "282.67"
    assert printed(best, 3) == "11.643"
    assert printed(laws.ring_step_time(1, serial=5.0, **cost) / best, 2) == "69.14"
    assert printed(laws.amdahl_ceiling(5.0 / 805.0), 0) == "161"


def test_ring_without_latency_falls_for_ever_to_twice_the_transfer() -> None:
    assert laws.ring_optimum(parallel=800.0, latency=0.0, transfer=0.5) is None
    endless = laws.ring_step_time(1e12, serial=5.0, parallel=800.0, latency=0.0, transfer=0.5)
    assert printed(endless, 6) == "6.000000"
    assert printed(805.0 / endless, 1) == "134.2"


def test_ring_never_pays_when_the_message_costs_more_than_the_work() -> None:
    assert laws.ring_optimum(parallel=1.0, latency=0.005, transfer=0.5) == 1.0


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, "0.564"),
        (4, "1.029"),
        (8, "1.424"),
        (16, "1.766"),
        (32, "2.070"),
        (64, "2.344"),
        (256, "2.827"),
        (1024, "3.248"),
    ],
)
def test_expected_largest_of_n_normals(n: int, expected: str) -> None:
    assert printed(laws.expected_max(n), 3) == expected


def test_expected_largest_has_its_closed_forms() -> None:
    assert laws.expected_max(1) == pytest.approx(0.0, abs=1e-12)
    assert laws.expected_max(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-12)
    assert laws.expected_max(3) == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-12)


def test_table_reads_one_number_as_s_for_amdahl_and_as_f_for_gustafson() -> None:
    rows = laws.table(0.1, [2, 8])
    assert [row.n for row in rows] == [2, 8]
    assert [printed(row.amdahl, 4) for row in rows] == ["1.8182", "4.7059"]
    assert [printed(row.gustafson, 4) for row in rows] == ["1.9000", "7.3000"]
    assert [printed(row.efficiency, 4) for row in rows] == ["0.9091", "0.5882"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: laws.amdahl(0, 0.1), "number of GPUs must be at least 1, it is 0"),
        (lambda: laws.amdahl(math.nan, 0.1), "number of GPUs must be at least 1"),
        (lambda: laws.amdahl(8, -0.007), "serial fraction s must lie between 0 and 1"),
        (lambda: laws.amdahl(8, math.nan), "serial fraction s must lie between 0 and 1"),
        (lambda: laws.gustafson(8, 1.5), "fraction f must lie between 0 and 1, it is 1.5"),
        (lambda: laws.gpus_for_fraction(0.1, 1.0), "ceiling itself is never reached"),
        (lambda: laws.speedup_bound(0.1, 0.0), "factor of a speed-up must be positive"),
        (lambda: laws.karp_flatt(0.0, 8), "speed-up must be positive"),
        (lambda: laws.karp_flatt_relative(2.0, base=8, n=4), "fewer GPUs than its base: 4 < 8"),
        (lambda: laws.weak_efficiency(1.0, 0.0), "The step time must be positive"),
        (lambda: laws.usl(8, -0.1, 0.0), "sigma and kappa must not be negative"),
        (lambda: laws.sun_ni(8, 0.1, 0.0), "growth of the work must be positive"),
        (
            lambda: laws.ring_optimum(parallel=1.0, latency=-1.0, transfer=0.0),
            "latency of a hop must not be negative",
        ),
        (lambda: laws.table(0.1, [2, 0]), "number of GPUs must be at least 1, it is 0"),
    ],
)
def test_impossible_arguments_are_refused_in_a_sentence(
    call: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


@given(SHARES)
def test_one_gpu_is_never_faster_than_itself(s: float) -> None:
    assert laws.amdahl(1, s) == pytest.approx(1.0, rel=1e-12)


@given(GPUS, SHARES)
def test_more_gpus_never_slow_amdahl(n: int, s: float) -> None:
    assert laws.amdahl(n + 1, s) >= laws.amdahl(n, s)


@given(GPUS, SHARES)
def test_amdahl_stays_under_the_gpus_and_the_ceiling(n: int, s: float) -> None:
    assert laws.amdahl(n, s) <= min(n, 1.0 / s) * (1 + 1e-12)


@given(GPUS, SHARES)
def test_efficiency_and_share_of_the_ceiling_exceed_one_together(n: int, s: float) -> None:
    speedup = laws.amdahl(n, s)
    assert laws.efficiency(speedup, n) + speedup * s > 1.0


@given(GPUS, SHARES)
def test_speedup_is_the_ratio_of_the_two_ceilings(n: int, s: float) -> None:
    f = laws.f_from_s(s, n)
    assert laws.amdahl(n, s) == pytest.approx((1 / s) / (1 / f), rel=1e-9)


@given(GPUS, SHARES)
def test_the_two_fractions_convert_both_ways(n: int, s: float) -> None:
    assert laws.s_from_f(min(laws.f_from_s(s, n), 1.0), n) == pytest.approx(s, rel=1e-6)


@given(GPUS, SHARES)
def test_amdahl_of_s_is_gustafson_of_f(n: int, f: float) -> None:
    assert laws.amdahl(n, laws.s_from_f(f, n)) == pytest.approx(laws.gustafson(n, f), rel=1e-9)


@given(st.integers(2, 4096), SHARES)
def test_karp_flatt_recovers_amdahls_fraction(n: int, s: float) -> None:
    assert laws.karp_flatt(laws.amdahl(n, s), n) == pytest.approx(s, rel=1e-6)


@given(
    st.integers(2, 4096),
    st.floats(1.0, 1e6),
    st.floats(0.0, 1e6),
    st.floats(0.0, 1e6),
)
def test_karp_flatt_splits_into_serial_work_and_overhead(
    n: int, p: float, inherent: float, overhead: float
) -> None:
    one_gpu, many = n * p + inherent, p + inherent + overhead
    expected = inherent / one_gpu + n / (n - 1) * overhead / one_gpu
    assert laws.karp_flatt(one_gpu / many, n) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_table_with_work_that_grows_as_memory_does() -> None:
    """Golden values of methods 1.8: s = 0.1 on 8 GPUs."""
    found = [laws.table(0.1, [8], growth)[0].sun_ni for growth in (0.0, 1.0, 1.5)]
    assert [printed(value, 4) for value in found] == ["4.7059", "7.3000", "7.7354"]
    assert laws.table(0.1, [8])[0].sun_ni is None
