"""Saved digests and reports are data that anybody may have made: bounded, and never run."""

from __future__ import annotations

import errno
import gzip
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Run
from damage import text_of
from runs import write_run

from analyzer.classify import replayable
from analyzer.config import Settings
from analyzer.digest import digest, load, packed
from analyzer.errors import UnusableInput
from analyzer.report import document
from analyzer.trace import inflate, stores

DEEP = 100_000


@pytest.fixture
def saved(tmp_path: Path) -> bytes:
    """The unpacked content of a sound digest."""
    path = tmp_path / "rank1.json"
    path.write_text(text_of(1))
    return gzip.decompress(packed(digest(path, Settings())))


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(UnusableInput) as refusal:
        load(path)
    assert refusal.value.exit_code == 3
    return refusal.value.message


def test_a_digest_that_unpacks_without_end_is_refused_before_it_is_unpacked(
    tmp_path: Path, saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "BOMB_FROM", 1_000_000)
    bomb = gzip.compress(saved + b"\0" * 50_000_000, mtime=0)
    assert refused(tmp_path / "bomb.digest", bomb) == (
        "bomb.digest: unpacks to more than 150 times its size, which no trace does"
    )


NESTED = {
    "lists": b"\x91" * DEEP + b"\xc0",
    "maps": b"\x81\xa1a" * DEEP + b"\xc0",
    "in an unknown key": b"\x82\xa7version\x03\xa5other" + b"\x91" * DEEP + b"\xc0",
}


@pytest.mark.parametrize("how", NESTED)
def test_a_digest_of_many_levels_is_refused(how: str, tmp_path: Path) -> None:
    message = refused(tmp_path / "deep.digest", gzip.compress(NESTED[how], mtime=0))
    assert message.startswith("deep.digest: not a digest of this program (")
    assert len(message) < 300


@pytest.mark.parametrize("part", range(1, 10))
def test_a_digest_that_is_cut_off_is_refused(part: int, tmp_path: Path, saved: bytes) -> None:
    whole = gzip.compress(saved, mtime=0)
    message = refused(tmp_path / "cut.digest", whole[: len(whole) * part // 10])
    assert message.startswith("cut.digest: not a digest of this program (the archive is c")


def test_a_digest_whose_checksum_does_not_fit_is_refused(tmp_path: Path, saved: bytes) -> None:
    whole = bytearray(gzip.compress(saved, mtime=0))
    whole[-5] ^= 1
    assert refused(tmp_path / "bad.digest", bytes(whole)) == (
        "bad.digest: not a digest of this program (the archive is corrupt)"
    )


def test_a_digest_of_other_types_is_refused(tmp_path: Path, saved: bytes) -> None:
    wrong = msgspec.msgpack.decode(saved) | {"steps": "none"}
    data = gzip.compress(msgspec.msgpack.encode(wrong), mtime=0)
    assert "not a digest of this program" in refused(tmp_path / "wrong.digest", data)


LEVELS = {
    "lists": "[" * DEEP + "]" * DEEP,
    "objects": '{"a": ' * DEEP + "1" + "}" * DEEP,
}


@pytest.mark.parametrize("place", ["alone", "in an unknown key"])
@pytest.mark.parametrize("how", LEVELS)
def test_a_report_of_many_levels_is_refused_in_one_sentence(
    how: str, place: str, folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    path, deep = tmp_path / "report.json", LEVELS[how]
    if place != "alone":
        ceiling("analyze", folder, "-o", path)
        deep = path.read_text().replace("{", f'{{"other": {deep}, ', 1)
    (tmp_path / "deep.json").write_text(deep)
    ran = ceiling("render", tmp_path / "deep.json")
    assert (ran.code, ran.out) == (3, "")
    error, *hint = ran.err.splitlines()
    assert error.startswith("error: deep.json: not a report of this program (")
    assert len(hint) == 1


def test_no_place_on_the_disk_stands_in_a_report(
    tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_there(url: str) -> list[stores.Remote]:
        raise FileNotFoundError(errno.ENOENT, "no such file in the store")

    monkeypatch.setattr(stores, "listed", nothing_there)
    secret = tmp_path / "home" / "somebody" / "run7"
    write_run(secret)
    (secret / "rank1.json").rename(secret / "rank1.txt")
    given = [secret / "rank0.json", secret / "rank1.txt", secret / "gone.json"]
    ran = ceiling("analyze", *given, f"{secret}/*.gz", f"s3://{secret}/a.json", "-o", "out")
    assert ran.code == 0
    for path in (tmp_path / "out").iterdir():
        assert "somebody" not in path.read_text()
    found = document.read(tmp_path / "out" / "report.json")
    names = [file.name for file in found.run.files]
    assert sorted(names) == ["*.gz", "a.json", "gone.json", "rank0.json", "rank1.txt"]


WRONG = {
    "speedup of nothing": ('"speedup": ', "0"),
    "negative step": ('"step_ms": ', "-1"),
    "no GPU": ('"n": ', "0"),
    "beyond all floats": ('"compute": ', "1e308"),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_report_of_impossible_numbers_is_refused_before_it_is_drawn(
    how: str, folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    key, value = WRONG[how]
    ceiling("analyze", folder, "-o", tmp_path / "report.json")
    text = (tmp_path / "report.json").read_text()
    spoiled = re.sub(rf"{key}[\d.e-]+", key + value, text)
    assert spoiled != text
    (tmp_path / "spoiled.json").write_text(spoiled)
    ran = ceiling("render", tmp_path / "spoiled.json")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: spoiled.json: not a report of this program (Expected ")


def endless(columns: dict[str, bytes]) -> None:
    columns["ts"] = zlib.compress(b"\0" * 8_000_000, 1)


def shorter(columns: dict[str, bytes]) -> None:
    columns["ts"] = zlib.compress(b"\0" * 8, 1)


def beyond(columns: dict[str, bytes]) -> None:
    columns["name"] = columns["ts"]


def no_archive(columns: dict[str, bytes]) -> None:
    columns["ts"] = b"x" * 9


COLUMNS: dict[str, tuple[Callable[[dict[str, bytes]], None], str]] = {
    "without end": (endless, "the program cannot be unpacked: a column is cut off or too long"),
    "of another length": (shorter, "columns of the program differ in length"),
    "beyond the table": (beyond, "rows of the program point beyond it"),
    "not packed": (no_archive, "the program cannot be unpacked: "),
}


@pytest.mark.parametrize("how", COLUMNS)
def test_a_digest_with_an_impossible_column_is_refused(
    how: str, tmp_path: Path, saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayable, "LONGEST_COLUMN", 1_000_000)
    spoil, why = COLUMNS[how]
    made = msgspec.msgpack.decode(saved)
    spoil(made["program"]["work"])
    data = gzip.compress(msgspec.msgpack.encode(made), mtime=0)
    assert refused(tmp_path / "bad.digest", data).startswith(
        f"bad.digest: not a digest of this program ({why}"
    )


CONTRADICTIONS: dict[str, tuple[Callable[[Any], object], str]] = {
    "step twice": (lambda d: d["steps"].append(d["steps"][0]), "a step is in it twice"),
    "other classes": (lambda d: d["span"]["ns"].pop("compute"), "the classes of a step are not"),
    "negative time": (lambda d: d["span"]["ns"].update(copy=-1), "the classes of a step are not"),
    "other sum": (lambda d: d["span"]["ns"].update(copy=1), "the classes of a step do not sum"),
    "other step": (lambda d: d["collectives"][0].update(step=99), "a collective is in a step"),
    "backwards": (lambda d: d["collectives"][0].update(end=0), "a collective ends before"),
    "other cause": (lambda d: d["causes"][0].update(cause="?"), "a cause of idle time is not"),
    "other strip": (lambda d: d["strip"].update(classes=["?"]), "a class of the strip is not"),
}


@pytest.mark.parametrize("how", CONTRADICTIONS)
def test_a_digest_that_contradicts_itself_is_refused(
    how: str, tmp_path: Path, saved: bytes
) -> None:
    spoil, why = CONTRADICTIONS[how]
    made = msgspec.msgpack.decode(saved)
    spoil(made)
    data = gzip.compress(msgspec.msgpack.encode(made), mtime=0)
    assert refused(tmp_path / "bad.digest", data).startswith(
        f"bad.digest: not a digest of this program ({why}"
    )
