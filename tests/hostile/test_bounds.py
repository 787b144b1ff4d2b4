"""A file made, or damaged, to be endless is refused or read in bounded memory, in one sentence."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from damage import caveat, numbers, text_of, with_rank1

from analyzer.errors import UnusableInput
from analyzer.report.document import Report
from analyzer.trace import blocks, inflate, kineto

DEEP = 100_000
EVENT = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 1, "dur": 1, "args": '
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstandard": zstandard.compress,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return with_rank1(tmp_path_factory.mktemp("base"), text_of())


def with_event(event: str) -> str:
    """Rank 1 with the text of one more event behind its own."""
    return text_of().replace("\n]", f",\n{event}\n]")


@pytest.mark.parametrize("packing", PACKED)
def test_a_bomb_of_events_is_refused_before_it_is_unpacked(
    packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "BOMB_FROM", 1_000_000)
    bomb = PACKED[packing](with_event(",\n".join([EVENT + "{}}"] * 50_000)).encode())
    path = tmp_path / "rank1.json.gz"
    path.write_bytes(bomb)
    with pytest.raises(UnusableInput) as refusal:
        kineto.read(path)
    assert refusal.value.message == (
        "rank1.json.gz: unpacks to more than 150 times its size, which no trace does"
    )


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize(
    "begin",
    [
        '{"traceEvents": [' + EVENT + '{"a": "',
        '{"traceEvents": [' + EVENT + '{"a": [',
        '{"schemaVersion": 1, "a": "',
        '{"traceEvents": [',
    ],
    ids=["string", "list", "header", "nothing"],
)
def test_a_part_without_end_is_refused(
    begin: str, packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "LARGEST_PART", 1 << 20)
    path = tmp_path / "rank1.json"
    path.write_bytes(PACKED[packing](begin.encode() + b" " * (4 << 20)))
    size = path.stat().st_size
    with pytest.raises(UnusableInput) as refusal:
        kineto.read(path)
    assert refusal.value.message == (
        f"rank1.json ({size:,} bytes): an event or a header of more than 16 MiB, which no "
        "profiler writes"
    )


NESTED = {
    "lists": "[" * DEEP + "]" * DEEP,
    "objects": '{"a": ' * DEEP + "1" + "}" * DEEP,
}


@pytest.mark.parametrize("how", NESTED)
def test_an_event_of_many_levels_is_left_out_and_told(
    how: str, tmp_path: Path, base: Report
) -> None:
    found = with_rank1(tmp_path, with_event(f'{EVENT}{{"a": {NESTED[how]}}}}}'))
    assert numbers(found) == numbers(base)
    assert caveat(found, "malformed-events").startswith("1 event(s) could not be read (rank 1)")


@pytest.mark.parametrize("how", NESTED)
def test_levels_that_never_close_end_the_file_there(how: str, tmp_path: Path) -> None:
    opened = NESTED[how][: len(NESTED[how]) // 2]
    found = with_rank1(tmp_path, with_event(f'{EVENT}{{"a": {opened}').removesuffix("\n]}\n"))
    assert caveat(found, "truncated").startswith("1 file(s) end in the middle (rank 1)")


@pytest.mark.parametrize("how", NESTED)
def test_a_header_of_many_levels_is_told_and_its_events_are_read(
    how: str, tmp_path: Path, base: Report
) -> None:
    found = with_rank1(tmp_path, '{"a": ' + NESTED[how] + ", " + text_of()[1:])
    assert found.run.ranks_present == [0, 1]
    assert caveat(found, "malformed-events").startswith("1 event(s) could not be read (rank 1)")


def test_levels_alone_are_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "rank1.json"
    path.write_text("[" * DEEP)
    with pytest.raises(UnusableInput, match="no trace events in it"):
        kineto.read(path)
