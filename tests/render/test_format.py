from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.render import format as form
from analyzer.render.format import StepScale


@pytest.mark.parametrize(
    "step_ms, value, written",
    [
        (100.0, 14.0, "14.0 ms"),
        (100.0, 8.0, "8.0 ms"),
        (100.0, 0.04, "<0.1 ms"),
        (100.0, 0.0, "0.0 ms"),
        (4.31, 0.5, "0.50 ms"),
        (0.512, 0.512, "0.512 ms"),
        (12_345.6, 12_345.6, "12,346 ms"),
        (0.0, 0.0, "0.0 ms"),
    ],
)
def test_times_carry_the_decimals_of_the_step(step_ms: float, value: float, written: str) -> None:
    assert StepScale.of(step_ms).ms(value) == written


@pytest.mark.parametrize(
    "value, written",
    [
        (18.0, "18.0"),
        (1 / 18, "0.0556"),
        (0.32, "0.320"),
        (1.1628, "1.16"),
        (0.9999, "1.00"),
        (9.996, "10.0"),
        (1234.5, "1,234"),
        (0, "0"),
        (None, "not measurable"),
    ],
)
def test_other_numbers_carry_three_significant_digits(value: float | None, written: str) -> None:
    assert form.significant(value) == written


def test_an_unbounded_ceiling_says_so() -> None:
    assert form.multiple(None) == "not bounded by this trace"


def test_a_small_share_is_not_written_as_zero() -> None:
    assert form.percent(0.0004) == "<0.1 %"
    assert form.percent(0.0) == "0.0 %"


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_what_is_not_zero_never_prints_as_zero(value: float) -> None:
    for text in (form.significant(value), form.percent(value), StepScale.of(100.0).bare(value)):
        assert text.strip("<0., %"), text


@pytest.mark.parametrize(
    "value, written",
    [
        (0, "0 B"),
        (312, "312 B"),
        (14_300_000, "14.3 MB"),
        (999_999, "1.00 MB"),
        (None, "not measurable"),
    ],
)
def test_sizes_count_in_thousands(value: float | None, written: str) -> None:
    assert form.data_size(value) == written


@pytest.mark.parametrize(
    "numbers, written",
    [([], ""), ([3], "3"), ([0, 1], "0, 1"), ([0, 1, 2, 3, 7], "0 to 3, 7"), ([0, 8], "0, 8")],
)
def test_runs_of_whole_numbers_are_joined(numbers: list[int], written: str) -> None:
    assert form.ranges(numbers) == written


@pytest.mark.parametrize(
    "seconds, written",
    [(45.0, "45.0 s"), (750.0, "12.5 min"), (11_520.0, "3.20 h"), (829_440.0, "9.60 d")],
)
def test_durations_use_the_largest_fitting_unit(seconds: float, written: str) -> None:
    assert form.duration(seconds) == written


@pytest.mark.parametrize(
    "share, word",
    [(0.019, "within noise"), (0.02, "minor"), (0.14, "worth doing"), (0.15, "first")],
)
def test_the_wording_scale_is_fixed(share: float, word: str) -> None:
    assert form.worth(share) == word


def test_control_and_bidirectional_characters_are_removed() -> None:
    assert form.clean("a\x1b[31m\u202eb\u2066\x00\u200f\ud800c\nd") == "a[31mbc d"


def test_long_names_keep_both_ends() -> None:
    assert form.shorten("abcdefghijklmnop", 9) == "abcde…nop"
    assert form.shorten("short", 9) == "short"


@given(st.text(max_size=60), st.integers(min_value=5, max_value=40))
def test_shortened_names_fit(text: str, width: int) -> None:
    assert len(form.shorten(text, width)) <= width


def test_an_unknown_class_keeps_its_name() -> None:
    assert form.look("warp_drive").label == "warp_drive"
