from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import BASE_NS, SCENE_NS, to_micros
from single import kernel, one, reading

TIMES = {
    "fractional": ("4458123456789.123", 4458123456789123),
    "largest a float holds": ("8796093022207.999", 8796093022207999),
    "epoch with decimals": ("1712345678901234.567", 1712345678901234567),
    "epoch, one decimal": ("1712345678901234.5", 1712345678901234500),
    "epoch, whole": ("1712345678901235", 1712345678901235000),
    "whole": ("17", 17000),
    "quoted": ('"1712345678901234.567"', 1712345678901234567),
    "quoted, whole": ('"1712345678901234"', 1712345678901234000),
    "quoted, spaces": ('" 12.5 "', 12500),
    "exponent": ("1.25e3", 1250000),
    "exponent, epoch": ("1.712345678901234567e15", 1712345678901234567),
    "capital exponent": ("17E2", 1700000),
    "negative": ("-5.125", -5125),
    "more than three decimals": ("1.0004999", 1000),
    "zero": ("0", 0),
}


@pytest.mark.parametrize("text, ns", TIMES.values(), ids=TIMES)
def test_a_start_is_exact_to_the_nanosecond(text: str, ns: int, tmp_path: Path) -> None:
    device = one(tmp_path, kernel(text)).device
    assert (device.ts.tolist(), device.dur.tolist()) == ([ns], [2500])


@pytest.mark.parametrize("text, ns", TIMES.values(), ids=TIMES)
def test_a_length_is_exact_to_the_nanosecond(text: str, ns: int, tmp_path: Path) -> None:
    found = one(tmp_path, kernel("4", text))
    assert found.device.dur.tolist() == ([ns] if ns >= 0 else [])


@pytest.mark.parametrize("neighbour", ["0", "7.250", '"8"', "1712345678901234", "null"])
def test_one_large_time_among_others_stays_exact(neighbour: str, tmp_path: Path) -> None:
    many = ", ".join([kernel(neighbour)] * 50 + [kernel("1712345678901234.567")])
    assert int(one(tmp_path, many).device.ts[-1]) == 1712345678901234567


@pytest.mark.parametrize("at_head", [True, False], ids=["head", "end"])
@pytest.mark.parametrize("base", [f"{BASE_NS}", f'"{BASE_NS}"'], ids=["number", "quoted"])
def test_the_base_is_added_wherever_it_stands(base: str, at_head: bool, tmp_path: Path) -> None:
    key, events = f'"baseTimeNanoseconds": {base}', f'"traceEvents": [{kernel("123.456")}]'
    found = reading(tmp_path, "{" + ", ".join([key, events] if at_head else [events, key]) + "}")
    assert found.device.ts.tolist() == [BASE_NS + 123_456]
    assert found.meta.base_ns == BASE_NS


def test_a_base_of_zero_is_a_base(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1"), '"baseTimeNanoseconds": 0, ')
    assert (found.meta.base_ns, found.device.ts.tolist()) == (0, [1000])


@pytest.mark.parametrize("base", ["null", '"soon"', "[]", "{}", "1e300", "9" * 40, '""'])
def test_a_base_that_is_no_time_is_none(base: str, tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1"), f'"baseTimeNanoseconds": {base}, ')
    assert (found.meta.base_ns, found.device.ts.tolist()) == (None, [1000])


def test_without_a_base_times_are_as_written(tmp_path: Path) -> None:
    assert one(tmp_path, kernel("1")).meta.base_ns is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1), st.data())
def test_any_nanosecond_survives_any_spelling(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[int, int]], data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([1, 10**12, 8 * 10**15, SCENE_NS]))
    quoted = data.draw(st.booleans())
    spell: Callable[[int], str] = (
        (lambda ns: f'"{to_micros(ns)}"') if quoted else (lambda ns: to_micros(ns))
    )
    events = ", ".join(kernel(spell(start + ts), spell(dur)) for ts, dur in spans)
    device = one(tmp_path_factory.mktemp("t"), events).device
    assert sorted(zip(device.ts.tolist(), device.dur.tolist(), strict=True)) == sorted(
        (start + ts, dur) for ts, dur in spans
    )


UNTIMED = {
    "both zero": ("0", "0"),
    "null": ("null", "5"),
    "no number": ('"soon"', "5"),
    "empty": ('""', "5"),
    "beyond all time": ("1e17", "5"),
    "beyond int64": ("9" * 30, "5"),
    "absurd exponent": ('"1e999999999"', "5"),
    "quoted nan": ('"NaN"', "5"),
    "quoted infinity": ('"-Infinity"', "5"),
}


@pytest.mark.parametrize("ts, dur", UNTIMED.values(), ids=UNTIMED)
def test_work_without_a_time_is_counted_and_left_out(ts: str, dur: str, tmp_path: Path) -> None:
    found = one(tmp_path, kernel(ts, dur) + "," + kernel("3"))
    assert found.device.ts.tolist() == [3000]
    assert (found.meta.untimed, found.meta.negative, found.meta.malformed) == (1, 0, 0)


def test_a_missing_start_is_no_start_at_zero(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1").replace('"ts": 1, ', ""))
    assert (len(found.device), found.meta.untimed) == (0, 1)


def test_work_at_zero_with_a_length_is_kept(tmp_path: Path) -> None:
    assert one(tmp_path, kernel("0", "5")).device.ts.tolist() == [0]


UNFINISHED = {"negative": "-1", "quoted": '"-1.5"', "null": "null", "-1 unsigned": "1.8446744e19"}


@pytest.mark.parametrize("dur", UNFINISHED.values(), ids=UNFINISHED)
def test_unfinished_work_is_counted_and_left_out(dur: str, tmp_path: Path) -> None:
    found = one(tmp_path, kernel("2", dur) + "," + kernel("3"))
    assert found.device.ts.tolist() == [3000]
    assert (found.meta.negative, found.meta.untimed) == (1, 0)


def test_a_span_without_a_length_is_unfinished(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1").replace('"dur": 2.500, ', ""))
    assert (len(found.device), found.meta.negative) == (0, 1)
