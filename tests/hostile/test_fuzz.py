"""Damage done at random never ends in a traceback, a hang, or another answer without a word."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import fuzz

EACH = 300


@pytest.fixture(scope="module")
def found() -> list[fuzz.Outcome]:
    return list(fuzz.outcomes(range(EACH)))


def test_every_damage_ends_in_a_report_or_a_refusal(found: list[fuzz.Outcome]) -> None:
    assert [outcome for outcome in found if outcome.failure] == []


@pytest.mark.parametrize("end", ["told", "refused", "as the sound one"])
def test_the_damages_are_not_all_of_one_kind(end: str, found: list[fuzz.Outcome]) -> None:
    assert sum(outcome.what.endswith(end) for outcome in found) > EACH // 50


def test_a_damage_is_the_same_each_time() -> None:
    assert fuzz.damaged(7) == fuzz.damaged(7)
    assert fuzz.damaged(7) != fuzz.damaged(8)


def test_numbers_are_exchanged_in_place() -> None:
    data = b'{"a": 1, "b": 22.5, "c": "x"}'
    assert fuzz.exchanged(random.Random(0), data, b"") == b'{"a": 22.5, "b": 1, "c": "x"}'


@pytest.mark.parametrize(
    "name, data, told",
    [
        ("rank1.json", b'{"a": 1}', False),
        ("rank1.json", b'{"a": 1', True),
        ("rank1.json", b'{"a": NaN}', True),
        ("rank1.json", b'{"a": "\xff"}', True),
        ("rank1.json.gz", b"any", True),
    ],
)
def test_damage_must_be_told_where_it_can_be_seen(name: str, data: bytes, told: bool) -> None:
    assert fuzz.must_be_told(name, data) is told


def test_the_undamaged_trace_needs_no_repair() -> None:
    assert json.loads(fuzz.clean(1))["distributedInfo"]["rank"] == 1
    assert not fuzz.must_be_told("rank1.json", fuzz.clean(1))


def test_an_exception_of_another_kind_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise LookupError("here")

    (tmp_path / "rank1.json").write_bytes(fuzz.clean(1))
    sound = fuzz.analysed(tmp_path)
    (tmp_path / "rank1.json").unlink()
    monkeypatch.setattr(fuzz, "analysed", fail)
    assert "LookupError: here" in fuzz.outcome(1, tmp_path, sound).failure


def test_another_step_time_without_a_word_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rank1.json").write_bytes(fuzz.clean(1))
    sound = fuzz.analysed(tmp_path)
    (tmp_path / "rank1.json").unlink()
    # Every start a tenth later than the one before, under a checksum that fits.
    slower = re.sub(
        rb'"ts": (\d+)',
        lambda found: b'"ts": %d' % (int(found[1]) + (int(found[1]) - 1_123_456_789) // 10),
        fuzz.clean(1),
    )
    monkeypatch.setattr(
        fuzz, "damaged", lambda number: ("rank1.json.gz", gzip.compress(slower), "slower")
    )
    assert fuzz.outcome(1, tmp_path, sound).failure == "step time 1 -> 1.1 ms, and no word"
