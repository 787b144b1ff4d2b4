"""Public reports O1 to O9: text that is wrong, cut off, mixed, or of another kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run
from field import base, both, report, same, text, told
from make import TraceBuilder

from analyzer.errors import UnusableInput
from analyzer.report.document import Report


def framed(rank: int = 1) -> TraceBuilder:
    """A rank with a Python frame whose name can be spoiled, and a copy without length."""
    built = base(rank).python("train.py(3): NAME", 1, 900)
    return built.copy("HtoD", 30, 30, launch=(26, 27), args={"bandwidth": 77.5, "bytes": 0})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return both(tmp_path_factory.mktemp("sound"), base(0), framed())


def spoiled(folder: Path, old: bytes, new: bytes, name: str = "rank1.json") -> Report:
    """Rank 1 with a piece of its text exchanged, beside a sound rank 0."""
    data = framed().text().encode()
    assert old in data
    return report(folder, {"rank0.json": base(0), name: data.replace(old, new)})


def test_a_windows_path_with_single_backslashes_costs_nothing(
    tmp_path: Path, sound: Report
) -> None:
    """O1"""
    found = spoiled(tmp_path, b"NAME", rb"C:\Users\model\train.py")
    assert same(found, sound)
    assert "1 repair(s) made the text readable (1 lone backslash)" in text(
        found, "malformed-events"
    )


def test_raw_quotes_and_a_raw_newline_in_a_name_cost_at_most_that_event(
    tmp_path: Path, sound: Report
) -> None:
    """O2"""
    found = spoiled(tmp_path, b"NAME", b'print("loss",\n "x")')
    assert same(found, sound)
    assert "(1 control character, 1 raw quote)" in text(found, "malformed-events")


def test_a_control_byte_in_a_name_costs_nothing(tmp_path: Path, sound: Report) -> None:
    """O3"""
    found = spoiled(tmp_path, b"NAME", b"config\x01module")
    assert same(found, sound)
    assert "1 control character" in text(found, "malformed-events")


def test_a_byte_that_is_no_utf_8_in_a_packed_file_is_replaced_and_counted(
    tmp_path: Path, sound: Report
) -> None:
    """O4"""
    found = spoiled(tmp_path, b"NAME", b"\xf0", "rank1.json.gz")
    assert same(found, sound)
    assert "1 invalid UTF-8" in text(found, "malformed-events")


def test_the_bandwidth_inf_of_an_empty_copy_costs_nothing(tmp_path: Path, sound: Report) -> None:
    """O5"""
    found = spoiled(tmp_path, b"77.5", b"inf")
    assert same(found, sound)
    assert b"inf," not in framed().text().encode()
    assert "1 inf or nan" in text(found, "malformed-events")


def test_a_comma_after_the_last_event_costs_nothing(tmp_path: Path, sound: Report) -> None:
    """O6"""
    found = spoiled(tmp_path, b"\n]", b",\n]")
    assert same(found, sound)
    assert "1 comma too many" in text(found, "malformed-events")


def test_a_rank_cut_in_its_third_step_is_told_and_gives_the_two_before(tmp_path: Path) -> None:
    """O7"""
    whole = base(1).text()
    cut = whole[: whole.index("ProfilerStep#3") - 120]
    found = both(tmp_path, base(0), cut)
    assert "1 file(s) end in the middle (rank 1)" in text(found, "truncated")
    assert found.run.ranks_present == [0, 1]
    # Rank 0 leaves out its first step, as a whole one does; both ranks have step 1.
    assert found.steps.used == [1]
    (dropped,) = (d.why for d in found.steps.dropped if d.index == 2)
    assert dropped == "the file ends in it: the rest of its records is lost"
    alone = report(tmp_path / "alone", {"rank1.json": cut})
    assert alone.steps.used == [0, 1]


def test_two_ranks_written_into_one_file_are_refused_with_the_cause(
    tmp_path: Path, ceiling: Run
) -> None:
    """O8"""
    first, second = (base(r).text().replace("4242", "777" if r else "4242") for r in (0, 1))
    pieces = range(0, len(first), 1000)
    mixed = "".join((first, second)[i % 2][at : at + 1000] for i, at in enumerate(pieces))
    (tmp_path / "trace.json").write_text(mixed)
    ran = ceiling("analyze", tmp_path / "trace.json")
    assert ran.code == 3
    assert "written by several processes, whose texts are mixed in it" in ran.err


def test_one_mixed_file_leaves_the_other_rank(tmp_path: Path) -> None:
    """O8"""
    first, second = (base(r).text().replace("4242", "777" if r else "4242") for r in (0, 1))
    pieces = range(0, len(first), 1000)
    mixed = "".join((first, second)[i % 2][at : at + 1000] for i, at in enumerate(pieces))
    found = both(tmp_path, base(0), mixed)
    assert found.run.ranks_present == [0]
    assert "ranks-missing" in told(found)


def test_a_legacy_export_is_recognised_and_no_idle_device_is_made_of_it(tmp_path: Path) -> None:
    """O9"""
    event = '{"name": "mm", "ph": "X", "ts": 1.5, "dur": 2, "tid": 1, "pid": "CPU functions"}'
    with pytest.raises(UnusableInput, match="a legacy autograd export without GPU categories"):
        report(tmp_path, {"old.json": f"[{event}, {event}]"})
