"""Text that exporters write wrong: the run is analysed as if it were right, and it is told."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from damage import built, caveat, numbers, report, text_of, with_rank1

from analyzer.errors import UnusableInput
from analyzer.report.document import Report


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return with_rank1(tmp_path_factory.mktemp("base"), text_of())


def named(name: bytes) -> bytes:
    """Rank 1 with these bytes in the name of a Python frame."""
    return text_of().encode().replace(b"NAME", name)


SPOILED: dict[str, tuple[bytes, str]] = {
    "path of Windows": (named(rb"C:\Users\new\train.py"), "lone backslash"),
    "path that ends in a backslash": (named(rb"C:\Users" + b"\\"), "lone backslash"),
    "quotes and a new line": (named(b'print("a",\n "b")'), "control character, 1 raw quote"),
    "dictionary": (named(b'f({"b": "c", "d": 1})'), "raw quote"),
    "control character": (named(b"\x01"), "control character"),
    "zero byte": (named(b"\x00"), "control character"),
    "infinite bandwidth": (text_of().encode().replace(b"77.5", b"inf"), "inf or nan"),
    "bandwidth that is no number": (text_of().encode().replace(b"77.5", b"-nan"), "inf or nan"),
    "comma behind the last event": (
        text_of().encode().replace(b"\n]", b",\n]"),
        "comma too many",
    ),
    "comma in an object": (
        text_of().encode().replace(b'"bytes": 0}', b'"bytes": 0,}'),
        "comma too many",
    ),
    "lost comma": (b"}\n".join(text_of().encode().rsplit(b"},\n", 1)), "comma missing"),
    "byte that is no UTF-8": (named(b"\xf0"), "invalid UTF-8"),
}


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_text_costs_no_number_and_is_counted(
    how: str, suffix: str, tmp_path: Path, base: Report
) -> None:
    data, kind = SPOILED[how]
    found = with_rank1(tmp_path, data, suffix)
    assert numbers(found) == numbers(base)
    assert f"(1 {kind}) (rank 1)" in caveat(found, "malformed-events")


def test_invalid_utf8_in_a_kernel_is_shown_as_a_replacement(tmp_path: Path, base: Report) -> None:
    data = text_of().encode().replace(b"ampere", b"amp\xf0re")
    found = with_rank1(tmp_path, data, ".json.gz")
    assert found.breakdown.mean_ms == base.breakdown.mean_ms
    assert "7 invalid UTF-8" in caveat(found, "malformed-events")
    assert any(k.name.startswith("amp\ufffdre") for k in found.kernels)


HARMLESS = {
    "byte order mark": "\ufeff" + text_of(),
    "CRLF": text_of().replace("\n", "\r\n"),
    "one line": text_of().replace("\n", ""),
    "one key per line": json.dumps(json.loads(text_of()), indent=2),
    "header behind the events": built().text_header_last(),
    "equal keys": text_of().replace('"cat": "kernel"', '"cat": "fpga", "cat": "kernel"'),
    "ids beyond 2^63": text_of().replace('"bytes": 0', '"bytes": 18446744073709551616'),
    "times as text": re.sub(r'"(ts|dur)": ([\d.]+)', r'"\1": "\2"', text_of()),
}


@pytest.mark.parametrize("how", HARMLESS)
def test_a_layout_changes_nothing(how: str, tmp_path: Path, base: Report) -> None:
    found = with_rank1(tmp_path, HARMLESS[how])
    assert numbers(found) == numbers(base)
    assert found.quality == base.quality


def test_a_list_without_a_header_is_read_but_for_what_the_header_says(tmp_path: Path) -> None:
    found = report(tmp_path, {"rank1.json": built().text_list()})
    assert found.run.ranks_present == [1]
    assert found.steps.used


def interleaved(size: int) -> bytes:
    """What two processes leave that write to one file at the same places, in turns."""
    first, second = text_of(0).encode(), text_of(1).replace("4242", "777").encode()
    length = min(len(first), len(second))
    turns = range(0, length, size)
    mixed = b"".join((first, second)[i % 2][at : at + size] for i, at in enumerate(turns))
    return mixed + max(first, second, key=len)[length:]


@pytest.mark.parametrize("size", [512, 1000, 4096])
def test_the_texts_of_two_ranks_in_one_file_are_refused_with_the_cause(
    size: int, tmp_path: Path
) -> None:
    with pytest.raises(UnusableInput, match="written by several processes") as refusal:
        report(tmp_path, {"trace.json": interleaved(size)})
    assert refusal.value.exit_code == 3


def test_one_rank_of_mixed_text_leaves_the_others(tmp_path: Path) -> None:
    found = with_rank1(tmp_path, interleaved(1000))
    assert found.run.ranks_present == [0]
    (reason,) = (f.reason for f in found.run.files if f.rank is None)
    assert reason == "written by several processes, whose texts are mixed in it"


def test_a_trace_appended_to_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="written by several processes"):
        report(tmp_path, {"trace.json": text_of(0) + text_of(1)})


def test_an_execution_trace_is_called_by_its_name(tmp_path: Path) -> None:
    text = '{"schema": "1.0.3-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "name": "[pytorch|et]"}'
    with pytest.raises(UnusableInput, match="a PyTorch execution trace; pass the profiler trace"):
        report(tmp_path, {"et.json": text})


def test_a_legacy_export_is_called_by_its_name(tmp_path: Path) -> None:
    event = '{"name": "mm", "ph": "X", "ts": 1.5, "dur": 2, "tid": 1, "pid": "CPU functions"}'
    with pytest.raises(UnusableInput, match="a legacy autograd export without GPU categories"):
        report(tmp_path, {"old.json": f"[{event}, {event}]"})


def test_records_without_a_time_move_no_number(tmp_path: Path, base: Report) -> None:
    made = built()
    for _ in range(5):
        made.raw({"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 0, "dur": 0})
    found = with_rank1(tmp_path, made.text())
    assert numbers(found) == numbers(base)
    assert "5 event(s) carry no time (rank 1)" in caveat(found, "untimed-events")


def test_lengths_below_zero_move_no_number(tmp_path: Path, base: Report) -> None:
    made = built().annotation("optimizer", 100, 99).op("aten::add", 100, 99)
    found = with_rank1(tmp_path, made.text())
    assert numbers(found) == numbers(base)
    assert "2 event(s) have no valid length (rank 1)" in caveat(found, "negative-durations")


def cut_in_step(number: int) -> bytes:
    """Rank 1 up to the middle of the last event of that step."""
    text = text_of()
    return text[: text.index(f"ProfilerStep#{number + 1}") - 120].encode()


def test_a_file_cut_in_a_step_keeps_the_steps_before_and_is_told(tmp_path: Path) -> None:
    found = with_rank1(tmp_path, cut_in_step(5))
    assert "1 file(s) end in the middle (rank 1)" in caveat(found, "truncated")
    assert found.run.ranks_present == [0, 1]
    assert found.steps.used == [2, 3, 4]


def test_an_archive_cut_in_its_text_keeps_what_precedes_the_cut(tmp_path: Path) -> None:
    whole = gzip.compress(text_of().encode(), mtime=0)
    (tmp_path / "rank1.json.gz").write_bytes(whole[: len(whole) * 9 // 10])
    found = report(tmp_path, {"rank0.json": text_of(0)})
    assert "1 file(s) end in the middle (rank 1)" in caveat(found, "truncated")
    assert found.run.ranks_present == [0, 1]


def test_an_archive_whose_checksum_does_not_fit_is_used_and_distrusted(
    tmp_path: Path, base: Report
) -> None:
    whole = bytearray(gzip.compress(text_of().encode(), mtime=0))
    whole[-5] ^= 1
    (tmp_path / "rank1.json.gz").write_bytes(whole)
    found = report(tmp_path, {"rank0.json": text_of(0)})
    assert numbers(found) == numbers(base)
    (told,) = found.quality
    assert (told.id, told.severity) == ("damaged-file", "error")
    assert told.forbids == ["exact numbers of that rank"]
    assert told.text == (
        "1 file(s) were not read as they were written, since the archive is corrupt (rank 1): "
        "what was read before is used, and any number in it may be wrong."
    )
