"""The options about reading: which ranks, how much memory, and what is shown meanwhile."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from conftest import Run
from rich.console import Console
from runs import write_run

from analyzer import reading
from analyzer.options import Terminal
from analyzer.trace.discover import find


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("0", [0]), ("0,3,8-11", [0, 3, 8, 9, 10, 11]), ("5-5", [5]), ("7,2", [7, 2])],
)
def test_a_list_of_ranks_may_hold_ranges(text: str, ranks: list[int]) -> None:
    assert reading.ranks(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "1,", "-1", "3-", "8-3", "0;1", "1 2"])
def test_no_list_of_ranks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of ranks"):
        reading.ranks(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("500MB", 500_000_000), ("16G", 16 * 10**9), ("1.5 GiB", 1_500_000_000)],
)
def test_a_size_may_have_a_unit(text: str, size: int) -> None:
    assert reading.memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "1X", "G"])
def test_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        reading.memory(text)


def test_only_the_ranks_asked_for_are_reported(tmp_path: Path, ceiling: Run) -> None:
    folder = write_run(tmp_path / "run", 4)
    ran = ceiling("analyze", folder, "--ranks", "0,2-3", "--format", "json")
    run = json.loads(ran.out)["run"]
    assert (run["ranks_present"], run["world_size"]) == ([0, 2, 3], 4)
    assert [file["name"] for file in run["files"]] == ["rank0.json", "rank2.json", "rank3.json"]


def test_a_rank_is_found_by_what_its_file_says_too(tmp_path: Path, ceiling: Run) -> None:
    folder = write_run(tmp_path / "run", 3)
    for rank, name in enumerate("xyz"):
        (folder / f"rank{rank}.json").rename(folder / f"{name}.json")
    ran = ceiling("analyze", folder, "--ranks", "1", "--format", "json")
    assert [f["name"] for f in json.loads(ran.out)["run"]["files"]] == ["y.json"]


def test_a_rank_that_is_nowhere_exits_2(folder: Path, ceiling: Run) -> None:
    ran = ceiling("analyze", folder, "--ranks", "1,9")
    assert (ran.code, ran.out) == (2, "")
    assert "no trace is of rank 9; there are 0-1" in ran.err


@pytest.mark.parametrize(
    "command", ["analyze", "inspect", "digest", "compare", "scaling", "overlay"]
)
def test_every_command_that_reads_traces_takes_the_same_options(command: str, ceiling: Run) -> None:
    said = ceiling(command, "--help").out
    for option in ("--jobs", "--max-memory", "--ranks", "--no-cache", "--cluster"):
        assert option in said


def test_a_rank_to_compare_must_be_on_both_sides(tmp_path: Path, ceiling: Run) -> None:
    before, after = write_run(tmp_path / "before", 4), write_run(tmp_path / "after", 4)
    (after / "rank3.json").unlink()
    ran = ceiling("compare", before, after, "--ranks", "0,3")
    assert (ran.code, ran.out) == (2, "")
    assert "no trace is of rank 3; there are 0-2" in ran.err


def test_no_bar_is_drawn_where_nobody_sees_it(folder: Path, ceiling: Run) -> None:
    assert ceiling("analyze", folder).err == ""


def test_on_a_terminal_files_and_bytes_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(
        reading, "Console", lambda stderr: Console(file=shown, force_terminal=True, width=100)
    )
    terminal = Terminal(color=False, quiet=False, verbose=False, progress=True, ascii_only=False)
    found = find([str(folder)])
    with reading.bar(terminal, found.traces) as progress:
        for path in found.traces:
            progress(path)
    text = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", shown.getvalue())
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert "reading 2/2 files" in text
    assert f"{size / 1000:.1f}/{size / 1000:.1f} kB" in text
