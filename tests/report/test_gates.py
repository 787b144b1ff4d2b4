"""Gates: what may be demanded, how it is judged, and what is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sides import compared, finding, loading_fixed, run, steps

from analyzer.errors import UsageError
from analyzer.report import gates
from analyzer.report.comparison import Comparison, Gate
from analyzer.report.document import Report
from analyzer.report.gates import Condition, Demand, condition


def judged(text: str, found: Report | Comparison) -> Gate:
    demand = Demand(condition(text), "fail")
    gates.check([demand], compared=isinstance(found, Comparison))
    (gate,) = gates.judge([demand], found)
    return gate


@pytest.mark.parametrize(
    ("text", "name", "sign", "limit", "unit"),
    [
        ("step_ms>105", "step_ms", ">", 105.0, ""),
        ("step_ms > 105ms", "step_ms", ">", 105.0, "ms"),
        ("gain>10%", "gain", ">", 0.1, "%"),
        ("exposed-communication>15%", "exposed-communication", ">", 0.15, "%"),
        ("serial_fraction>=0.06", "serial_fraction", ">=", 0.06, ""),
        ("ceiling_today<3x", "ceiling_today", "<", 3.0, "x"),
        ("efficiency<=70%", "efficiency", "<=", 0.7, "%"),
        ("slower:5%", "slower", ">", 0.05, "%"),
        ("slower: 2.5 ms", "slower", ">", 2.5, "ms"),
        ("faster:5%", "faster", ">", 0.05, "%"),
    ],
)
def test_a_gate_says_what_must_not_be(
    text: str, name: str, sign: str, limit: float, unit: str
) -> None:
    assert condition(text) == Condition(text, name, sign, pytest.approx(limit), unit)


@pytest.mark.parametrize(
    "text", ["", "step_ms", "step_ms>", ">105", "step_ms=105", "step_ms>1e3", "slower>5%",
             "slower:5", "step_ms>-1", "step_ms>5s", "a b>1"]
)  # fmt: skip
def test_what_is_no_gate_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="is no gate: write step_ms>105"):
        condition(text)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("step_ms>99", False),
        ("step_ms>100.1", True),
        ("data_loading>15ms", False),
        ("data_loading>15%", False),
        ("data_loading>17%", True),
        ("communication>13%", False),
        ("compute<70%", False),
        ("f>0.2", False),
        ("serial_fraction>0.06", True),
        ("ceiling_today<5x", False),
        ("efficiency<80%", False),
        ("data-loading>15%", False),
        ("data-loading>15ms", False),
        ("exposed-communication>1%", True),
        ("gain>10%", False),
        ("gain>20%", True),
    ],
)
def test_a_run_is_held_against_its_numbers(text: str, passed: bool) -> None:
    assert judged(text, run(findings=[finding("data-loading", 16.0)])).passed is passed


def with_interval(lo: float, hi: float) -> Report:
    report = run()
    wall = replace(report.steps.wall_ms, lo=lo, hi=hi)
    return replace(report, steps=replace(report.steps, wall_ms=wall))


def test_noise_alone_fails_nobody() -> None:
    # the mean is 100 on both sides of the limit's interval
    assert judged("step_ms>99", with_interval(98.0, 102.0)).passed
    assert not judged("step_ms>97", with_interval(98.0, 102.0)).passed
    assert judged("step_ms<101", with_interval(98.0, 102.0)).passed
    assert not judged("step_ms<103", with_interval(98.0, 102.0)).passed


def test_expected_and_found_are_told() -> None:
    gate = judged("step_ms>97", with_interval(98.0, 102.0))
    assert gate.expected == "at most 97 ms"
    assert gate.found == "100 ms, judged by the near end of its interval, 98 ms"


def test_a_number_without_an_interval_is_judged_as_it_is_and_says_so() -> None:
    gate = judged("step_ms>97", run())
    assert (gate.passed, gate.found) == (False, "100 ms, no interval")


def test_what_is_not_measurable_fails_nobody() -> None:
    unsplit = run([{**row, "comm_wait": None} for row in steps()])
    gate = judged("comm_wait>1%", unsplit)
    assert (gate.passed, gate.found) == (True, "not measurable")


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("slower:5%", False),
        ("slower:20%", True),
        ("slower:5ms", False),
        ("faster:5%", True),
        ("step_ms>95", False),
        ("data_loading>10%", False),
    ],
)
def test_a_comparison_is_held_against_its_change_and_the_side_after(
    text: str, passed: bool
) -> None:
    slower = compared(run(steps(data_loading=2.0)), run())
    assert judged(text, slower).passed is passed


def test_a_finding_that_is_fixed_takes_no_time() -> None:
    assert judged("data-loading>1%", loading_fixed()).passed
    assert not judged("kernel-launch>1%", loading_fixed()).passed


def test_a_slowdown_that_may_be_noise_passes() -> None:
    noisy = [-20.0, 20.0, -20.0, 20.0, 0.0]
    wide = compared(run(steps(noisy, launch=30.0)), run(steps(noisy, launch=40.0)))
    gate = judged("slower:5%", wide)
    assert gate.passed
    assert gate.found.startswith("8.3 %, judged by the near end of its interval, -")


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (1, "no interval: 3 steps of each run are needed, one has 1"),
        (4, "fewer than 5 steps of a run decide nothing"),
    ],
)
def test_too_few_steps_make_no_slowdown(count: int, reason: str) -> None:
    before, after = ([*steps(data_loading=ms)[:1]] * count for ms in (2.0, 16.0))
    gate = judged("slower:5%", compared(run(before), run(after)))
    assert (gate.passed, gate.found) == (True, reason)


def test_sides_that_cannot_be_compared_are_not_slower() -> None:
    gate = judged("slower:5%", compared(run(), run(world_size=16)))
    assert (gate.passed, gate.found) == (True, "not comparable")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="nothing is called 'exposed-comunication'") as caught:
        judged("exposed-comunication>15%", run())
    assert "exposed-communication" in caught.value.hint


def test_slower_needs_a_run_before() -> None:
    with pytest.raises(UsageError, match="'slower:5%' needs a run before"):
        judged("slower:5%", run())


def test_a_unit_that_the_number_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="efficiency is not measured in ms"):
        judged("efficiency<70ms", run())


def test_every_name_that_may_be_written_has_a_value() -> None:
    for name in gates.NAMES:
        assert judged(f"{name}>1", run()).found
