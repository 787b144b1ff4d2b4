"""Serial fraction of a trace: one worked step, its variants, intervals, predictions and edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.classify.classes import CLASSES
from analyzer.scaling import laws, serial
from analyzer.scaling.predict import OVERHEAD_GROWTH, held, predict
from analyzer.scaling.serial import Setting, fixed, serial_fraction

MS = 1_000_000.0

# The worked step: 100 ms on 8 GPUs, of which 32 do not scale.
STEP = {
    "compute": 60 * MS,
    "optimizer": 6 * MS,
    "comm_transfer": 14 * MS,
    "comm_wait": 2 * MS,
    "data_loading": 8 * MS,
    "launch": 10 * MS,
}
EIGHT = Setting(n=8)
TEN_Q = [32, 31, 33, 35, 30, 32, 34, 31, 32, 30]
TEN_P = [68, 69, 67, 70, 66, 68, 71, 67, 68, 66]


def steps(mean: dict[str, float], count: int = 1) -> dict[str, list[float]]:
    return {name: [time_ns] * count for name, time_ns in mean.items()}


def two(p_ms: list[int], q_ms: list[int]) -> dict[str, list[float]]:
    """A trace of two classes, one that scales and one that does not."""
    return {"compute": [p * MS for p in p_ms], "host_sync": [q * MS for q in q_ms]}


def printed(value: float | None, digits: int) -> str:
    assert value is not None
    return f"{value:.{digits}f}"


def test_eighty_and_twenty_milliseconds_on_eight_gpus() -> None:
    found = serial_fraction(two([80], [20]), EIGHT)
    assert printed(found.f.value, 2) == "0.20"
    assert printed(found.s.value, 6) == "0.030303"
    assert printed(found.P, 6) == "0.969697"
    assert printed(found.speedup, 4) == "6.6000"
    assert printed(found.efficiency, 4) == "0.8250"
    assert printed(found.gustafson, 4) == "6.6000"
    assert printed(found.ceiling_today.value, 4) == "5.0000"
    assert printed(found.ceiling_one_gpu.value, 4) == "33.0000"


@pytest.mark.parametrize(
    ("setting", "f", "s", "today", "one_gpu"),
    [
        (EIGHT, "0.32", "0.055556", "3.125", "18.0"),
        (replace(EIGHT, shared_loader=True), "0.40", "0.076923", "2.500", "13.0"),
        (replace(EIGHT, sharded_optimizer=True), "0.26", "0.042071", "3.846", "23.8"),
        (replace(EIGHT, mode="accum"), "0.22", "0.034056", "4.545", "29.4"),
    ],
)
def test_worked_step_and_its_variants(
    setting: Setting, f: str, s: str, today: str, one_gpu: str
) -> None:
    found = serial_fraction(steps(STEP), setting)
    assert printed(found.f.value, 2) == f
    assert printed(found.s.value, 6) == s
    assert printed(found.ceiling_today.value, 3) == today
    assert printed(found.ceiling_one_gpu.value, 1) == one_gpu


def test_worked_step_speedup_and_laws() -> None:
    found = serial_fraction(steps(STEP), EIGHT)
    assert found.s.value is not None
    assert found.f.value is not None
    assert found.step_ns == 100 * MS
    assert printed(found.speedup, 2) == "5.76"
    assert printed(found.efficiency, 2) == "0.72"
    assert printed(laws.amdahl(16, found.s.value), 2) == "8.73"
    assert printed(laws.amdahl(32, found.s.value), 2) == "11.76"
    assert printed(laws.gustafson(32, found.f.value), 2) == "22.08"


def test_worked_step_against_a_gpu_without_communication() -> None:
    assert printed(serial_fraction(steps(STEP), EIGHT).karp_flatt, 5) == "0.06122"


def test_weak_scaling_has_an_efficiency_and_no_ceiling() -> None:
    found = serial_fraction(steps(STEP), replace(EIGHT, mode="weak"))
    assert printed(found.efficiency, 2) == "0.84"
    assert printed(found.speedup, 2) == "6.72"
    none = (found.f, found.s, found.ceiling_today, found.ceiling_one_gpu)
    assert [figure.value for figure in none] == [None] * 4
    assert {figure.reason for figure in none} == {serial.WEAK_HAS_NO_CEILING}
    assert (found.P, found.gustafson, found.karp_flatt) == (None, None, None)


def test_weak_scaling_of_a_sharded_optimizer_may_exceed_one() -> None:
    found = serial_fraction(steps(STEP), Setting(8, "weak", sharded_optimizer=True))
    assert printed(found.efficiency, 2) == "1.26"


def test_weak_scaling_of_a_shared_loader_loses_the_queue() -> None:
    found = serial_fraction(steps(STEP), Setting(8, "weak", shared_loader=True))
    assert printed(found.efficiency, 2) == "0.77"


def test_strong_and_weak_readings_of_inherent_and_overhead_time() -> None:
    mean = {"compute": 90 * MS, "host_sync": 6 * MS, "comm_unsplit": 14 * MS}
    strong = serial_fraction(steps(mean), EIGHT)
    weak = serial_fraction(steps(mean), replace(EIGHT, mode="weak"))
    assert printed(strong.karp_flatt, 6) == "0.030303"
    assert printed(weak.efficiency, 6) == "0.872727"


def test_one_millisecond_of_compute_and_ten_of_serial_loading() -> None:
    mean = {"compute": 1 * MS, "data_loading": 10 * MS}
    found = serial_fraction(steps(mean), Setting(1, shared_loader=True))
    assert printed(found.f.value, 3) == "0.909"


def test_ten_steps_give_an_interval_and_its_reciprocal() -> None:
    found = serial_fraction(two(TEN_P, TEN_Q), EIGHT)
    assert printed(found.s.value, 6) == "0.055556"
    assert printed(found.s.lo, 6) == "0.054234"
    assert printed(found.s.hi, 6) == "0.056878"
    assert printed(found.ceiling_one_gpu.value, 1) == "18.0"
    assert printed(found.ceiling_one_gpu.lo, 1) == "17.6"
    assert printed(found.ceiling_one_gpu.hi, 1) == "18.4"
    assert found.s.reason == found.ceiling_one_gpu.reason == ""


@pytest.mark.parametrize(("phi", "coverage"), [(0.0, 0.96), (0.5, 0.93)])
def test_interval_covers_the_truth_also_when_steps_resemble_each_other(
    phi: float, coverage: float
) -> None:
    random, covered = np.random.default_rng(7), 0
    for _ in range(400):
        noise = random.normal(size=160)
        for t in range(1, 160):
            noise[t] += phi * noise[t - 1]
        q = 20 * MS * (1 + 0.02 * noise[100:])
        s = serial_fraction({"compute": np.full(60, 80 * MS), "host_sync": q}, EIGHT).s
        assert s.lo is not None
        assert s.hi is not None
        covered += s.lo <= 1 / 33 <= s.hi
    # Three standard errors of 400 trials; counting all steps as independent gives 0.73 at phi 0.5.
    assert covered / 400 == pytest.approx(coverage, abs=0.036)


def test_equal_steps_give_an_interval_of_no_width() -> None:
    found = serial_fraction(steps(STEP, count=7), EIGHT)
    assert found.f.lo == found.f.value == found.f.hi


def test_four_steps_give_a_value_without_an_interval() -> None:
    found = serial_fraction(two(TEN_P[:4], TEN_Q[:4]), EIGHT)
    assert found.s.value is not None
    assert (found.s.lo, found.s.hi) == (None, None)
    assert found.s.reason == "no interval: 5 steps are needed, the trace has 4"
    assert found.ceiling_one_gpu.reason == found.s.reason


def test_steps_that_drift_give_no_interval() -> None:
    found = serial_fraction(two([80] * 8, [10, 12, 14, 16, 18, 20, 22, 24]), EIGHT)
    assert (found.s.lo, found.s.hi) == (None, None)
    assert "8 steps are worth 1.8 independent ones and 3 are needed" in found.s.reason


def test_interval_that_reaches_zero_leaves_the_ceiling_open() -> None:
    found = serial_fraction(two([80] * 6, [0, 0, 0, 1, 0, 0]), EIGHT)
    assert found.f.lo == 0.0
    assert found.ceiling_today.hi is None
    assert found.ceiling_today.lo is not None
    assert found.ceiling_today.reason == "no upper end: the interval of the share reaches 0"


@pytest.mark.parametrize(
    ("freedom", "point"),
    [
        (2, "4.302653"),
        (4, "2.776445"),
        (9, "2.262157"),
        (30, "2.042272"),
        (120, "1.979930"),
        (1_000_000, "1.959966"),
    ],
)
def test_student_points_of_the_printed_tables(freedom: float, point: str) -> None:
    assert printed(serial.student_t_975(freedom), 6) == point


def test_student_below_two_degrees_is_refused() -> None:
    with pytest.raises(ValueError, match="At least 2 degrees of freedom"):
        serial.student_t_975(1.5)


def test_envelope_counts_loading_and_launch_both_ways() -> None:
    found = serial_fraction(steps(STEP), EIGHT)
    assert [printed(x, 2) for x in found.f.envelope or ()] == ["0.22", "0.40"]
    assert [printed(x, 6) for x in found.s.envelope or ()] == ["0.034056", "0.076923"]
    assert [printed(x, 3) for x in found.ceiling_today.envelope or ()] == ["2.500", "4.545"]
    assert [printed(x, 1) for x in found.ceiling_one_gpu.envelope or ()] == ["13.0", "29.4"]


@pytest.mark.parametrize("unsettled", ["unexplained", "launch", "dependency", "data_loading"])
def test_time_whose_role_is_unsettled_widens_the_envelope(unsettled: str) -> None:
    mean = {"compute": 60 * MS, "host_sync": 20 * MS, unsettled: 20 * MS}
    found = serial_fraction(steps(mean), EIGHT)
    assert [printed(x, 2) for x in found.f.envelope or ()] == ["0.20", "0.40"]


def test_unexplained_time_counts_as_serial() -> None:
    found = serial_fraction(steps({"compute": 75 * MS, "unexplained": 25 * MS}), EIGHT)
    assert found.f.value == 0.25
    assert found.f.envelope == (0.0, 0.25)
    assert found.ceiling_today.envelope == (4.0, None)
    assert "no upper end of the envelope" in found.ceiling_today.reason
    assert any(sentence.startswith("Unexplained") for sentence in found.assumptions)


@pytest.mark.parametrize(
    ("mode", "serial_classes"),
    [
        (
            "strong",
            "optimizer comm_transfer comm_wait comm_unsplit launch host_sync host_other "
            "dependency unexplained",
        ),
        (
            "accum",
            "optimizer comm_transfer comm_wait comm_unsplit host_sync host_other unexplained",
        ),
    ],
)
def test_classes_that_do_not_scale(mode: serial.Mode, serial_classes: str) -> None:
    roles = Setting(8, mode).roles()
    assert [name for name in CLASSES if roles[name] != "scales"] == serial_classes.split()


def test_every_class_has_a_role() -> None:
    assert set(serial.ROLES) == set(CLASSES)


def test_only_communication_is_overhead_in_weak_scaling() -> None:
    roles = Setting(8, "weak").roles()
    overhead = [name for name in CLASSES if roles[name] == "overhead"]
    assert overhead == ["comm_transfer", "comm_wait", "comm_unsplit"]
    assert {roles[name] for name in CLASSES} == {"overhead", "neutral"}


def test_nothing_serial_is_not_bounded() -> None:
    found = serial_fraction(steps({"compute": 100 * MS}, count=6), EIGHT)
    assert (found.f.value, found.s.value, found.P) == (0.0, 0.0, 1.0)
    assert found.speedup == 8.0
    for ceiling in (found.ceiling_today, found.ceiling_one_gpu):
        assert (ceiling.value, ceiling.lo, ceiling.hi) == (None, None, None)
        assert ceiling.reason == serial.NOT_BOUNDED


def test_all_serial_has_the_ceiling_one() -> None:
    found = serial_fraction(steps({"host_sync": 100 * MS}), EIGHT)
    assert (found.f.value, found.s.value, found.speedup) == (1.0, 1.0, 1.0)
    assert (found.ceiling_today.value, found.ceiling_one_gpu.value) == (1.0, 1.0)


def test_one_gpu_has_one_fraction_and_no_karp_flatt() -> None:
    found = serial_fraction(two(TEN_P, TEN_Q), Setting(1))
    assert found.f == found.s
    assert (found.speedup, found.efficiency, found.karp_flatt) == (1.0, 1.0, None)
    assert any("One GPU says nothing" in sentence for sentence in found.assumptions)


def test_assumptions_name_what_was_chosen() -> None:
    chosen = serial_fraction(steps(STEP), Setting(8, "accum", True, True)).assumptions
    assert chosen[0] == serial.MODES["accum"]
    assert any("optimizer is sharded" in sentence for sentence in chosen)
    assert any("one disk or CPU" in sentence for sentence in chosen)


@pytest.mark.parametrize(
    ("per_step", "sentence"),
    [
        ({"gpu": [1.0]}, "There is no time class 'gpu'"),
        ({"compute": [1.0, 2.0], "launch": [1.0]}, "one time for every step"),
        ({"compute": [-1.0]}, "finite and not negative"),
        ({"compute": [math.nan]}, "finite and not negative"),
        ({"compute": [0.0]}, "take no time"),
        ({"compute": []}, "take no time"),
    ],
)
def test_times_that_cannot_be_shared_out_are_refused(
    per_step: dict[str, list[float]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        serial_fraction(per_step, EIGHT)


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="number of GPUs must be at least 1, it is 0"):
        Setting(0)
    with pytest.raises(ValueError, match="must be one of strong, accum, weak, it is 'fast'"):
        Setting(8, "fast")  # type: ignore[arg-type]


def test_predicted_steps_of_the_worked_example() -> None:
    growth = {**OVERHEAD_GROWTH, "comm_wait": held}
    curve = predict(STEP, EIGHT, [8, 16, 32, 64], growth)
    times = [printed(point.step_ns / MS, 2) for point in curve.points]
    assert times == ["100.00", "67.00", "50.50", "42.25"]
    assert printed(curve.limit.step_ns, 0) == "34000000"
    assert curve.limit.n is None
    assert printed(curve.limit.ceiling_today, 2) == "2.94"
    assert printed(curve.limit.ceiling_one_gpu, 2) == "16.94"


def test_random_waiting_grows_with_the_expected_latest_rank() -> None:
    point = predict(STEP, EIGHT, [16]).points[0]
    assert printed(point.step_ns / MS, 4) == printed(65 + 2 * 1.7659914 / 1.4236003, 4)


def test_prediction_at_the_measured_size_is_the_measured_step() -> None:
    point = predict(STEP, EIGHT, [8]).points[0]
    assert printed(point.step_ns / MS, 9) == "100.000000000"
    assert printed(point.speedup, 2) == "5.76"
    assert printed(point.efficiency, 2) == "0.72"


def test_prediction_carries_both_laws() -> None:
    point = predict(STEP, EIGHT, [32]).points[0]
    assert printed(point.amdahl, 2) == "11.76"
    assert printed(point.gustafson, 2) == "22.08"


def test_one_gpu_is_the_reference_of_the_curve() -> None:
    point = predict(STEP, EIGHT, [1]).points[0]
    assert (point.step_ns, point.speedup, point.efficiency) == (576 * MS, 1.0, 1.0)


def test_weak_prediction_counts_throughput() -> None:
    growth = {**OVERHEAD_GROWTH, "comm_wait": held}
    curve = predict(STEP, Setting(8, "weak"), [8, 16], growth)
    assert [printed(point.step_ns / MS, 2) for point in curve.points] == ["100.00", "101.00"]
    assert [printed(point.speedup, 2) for point in curve.points] == ["6.72", "13.31"]
    assert [point.amdahl for point in curve.points] == [None, None]
    assert (curve.limit.ceiling_today, curve.limit.reason) == (None, serial.WEAK_HAS_NO_CEILING)


def test_weak_prediction_of_a_shared_loader_queues() -> None:
    mean = {"compute": 92 * MS, "data_loading": 8 * MS}
    curve = predict(mean, Setting(8, "weak", shared_loader=True), [1, 8, 16])
    assert [printed(point.step_ns / MS, 2) for point in curve.points] == [
        "93.00",
        "100.00",
        "108.00",
    ]


def test_accumulation_shares_launches_out() -> None:
    point = predict({"launch": 80 * MS, "host_sync": 20 * MS}, Setting(8, "accum"), [32]).points[0]
    assert point.step_ns == 40 * MS


def test_one_gpu_predicts_no_communication_and_says_so() -> None:
    curve = predict({"compute": 90 * MS, "launch": 10 * MS}, Setting(1), [1, 2, 1024])
    assert [printed(point.speedup, 3) for point in curve.points] == ["1.000", "1.818", "9.913"]
    assert printed(curve.limit.ceiling_today, 1) == "10.0"
    assert curve.assumptions[0].startswith("A trace of one GPU has no communication")


def test_limit_without_serial_time_is_not_bounded() -> None:
    limit = predict({"compute": 100 * MS}, EIGHT, []).limit
    assert (limit.ceiling_today, limit.ceiling_one_gpu) == (None, None)
    assert limit.reason == serial.NOT_BOUNDED


def test_random_waiting_turns_the_curve_at_some_number_of_gpus() -> None:
    mean = {"compute": 90 * MS, "comm_wait": 10 * MS}
    before, best, after = predict(mean, EIGHT, [128, 256, 512]).points
    limit = predict(mean, EIGHT, []).limit
    assert (limit.n, limit.step_ns) == (256, best.step_ns)
    assert before.step_ns > best.step_ns < after.step_ns


def test_limit_knows_every_size_that_was_asked_for() -> None:
    curve = predict({"compute": 90 * MS, "comm_wait": 10 * MS}, EIGHT, [300])
    assert (curve.limit.n, curve.limit.step_ns) == (300, curve.points[0].step_ns)


def test_curve_says_what_it_leaves_out() -> None:
    said = " ".join(predict({"compute": 1.0, "comm_unsplit": 1.0}, EIGHT, [16]).assumptions)
    assert "Measured on 8 GPUs only" in said
    assert "latency is left out" in said
    assert "Waiting inside communication is not known" in said


def test_removing_communication_raises_both_ceilings() -> None:
    after = fixed(STEP, EIGHT, {"comm_transfer": 14 * MS})
    assert printed(after.f, 4) == "0.2093"
    assert printed(after.s, 4) == "0.0320"
    assert printed(after.ceiling_today, 1) == "4.8"
    assert printed(after.ceiling_one_gpu, 1) == "31.2"


def test_removing_nothing_changes_nothing() -> None:
    before, after = serial_fraction(steps(STEP), EIGHT), fixed(STEP, EIGHT, {})
    assert (after.f, after.s) == (before.f.value, before.s.value)


def test_removing_time_that_scales_lowers_the_ceiling() -> None:
    assert printed(fixed(STEP, EIGHT, {"data_loading": 8 * MS}).ceiling_today, 3) == "2.875"


def test_removing_all_that_does_not_scale_is_not_bounded() -> None:
    after = fixed({"compute": 80 * MS, "host_sync": 20 * MS}, EIGHT, {"host_sync": 20 * MS})
    assert (after.f, after.ceiling_today, after.reason) == (0.0, None, serial.NOT_BOUNDED)


def test_removing_the_whole_step_leaves_no_fraction() -> None:
    after = fixed({"compute": 80 * MS}, EIGHT, {"compute": 80 * MS})
    assert (after.f, after.reason) == (None, "nothing is left of the step")


def test_removing_has_no_ceiling_in_weak_scaling() -> None:
    assert fixed(STEP, Setting(8, "weak"), {}).reason == serial.WEAK_HAS_NO_CEILING


def test_removing_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="There is no time class 'gpu'"):
        fixed(STEP, EIGHT, {"gpu": 0.0})


def test_removing_more_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Cannot remove 15000000\.0 ns of 'comm_transfer'"):
        fixed(STEP, EIGHT, {"comm_transfer": 15 * MS})


MEANS = st.dictionaries(
    st.sampled_from(CLASSES), st.integers(1, 10**9).map(float), min_size=1, max_size=12
)
SETTINGS = st.builds(
    Setting,
    n=st.integers(2, 4096),
    mode=st.sampled_from(["strong", "accum"]),
    sharded_optimizer=st.booleans(),
    shared_loader=st.booleans(),
)


@given(MEANS, SETTINGS)
def test_both_fractions_tell_one_speedup(mean: dict[str, float], setting: Setting) -> None:
    found = serial_fraction(steps(mean), setting)
    assert found.s.value is not None
    assert found.speedup == pytest.approx(laws.amdahl(setting.n, found.s.value), rel=1e-9)
    assert found.speedup == pytest.approx(found.gustafson, rel=1e-9)


@given(MEANS, SETTINGS)
def test_value_lies_in_its_envelope(mean: dict[str, float], setting: Setting) -> None:
    for figure in (
        serial_fraction(steps(mean), setting).f,
        serial_fraction(steps(mean), setting).s,
    ):
        assert figure.value is not None
        lo, hi = figure.envelope or (None, None)
        assert lo is not None
        assert hi is not None
        assert 0.0 <= lo <= figure.value <= hi <= 1.0


@given(MEANS, SETTINGS, st.integers(1, 1000))
def test_fractions_do_not_depend_on_the_unit_of_time(
    mean: dict[str, float], setting: Setting, factor: int
) -> None:
    scaled = {name: time_ns * factor for name, time_ns in mean.items()}
    before, after = serial_fraction(steps(mean), setting), serial_fraction(steps(scaled), setting)
    assert after.f.value == pytest.approx(before.f.value, rel=1e-12)
    assert after.s.value == pytest.approx(before.s.value, rel=1e-12)


@given(MEANS, SETTINGS)
def test_no_predicted_step_beats_the_limit(mean: dict[str, float], setting: Setting) -> None:
    curve = predict(mean, setting, [1, 2, setting.n, 1024])
    least = min(point.step_ns for point in curve.points)
    assert curve.limit.step_ns is not None
    assert curve.limit.step_ns <= least * (1 + 1e-12)
