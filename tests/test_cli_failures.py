"""When a command fails: one sentence on stderr, the right exit code, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run
from runs import healthy, write_run

from analyzer import cli as command_line
from analyzer.cli import run

BAD = {"empty": "", "foreign": '{"a": 1}', "no events": '{"schemaVersion": 1, "traceEvents": []}'}


@pytest.mark.parametrize("command", ["analyze", "inspect", "digest"])
@pytest.mark.parametrize("kind", [*BAD, "missing", "folder"])
def test_nothing_usable_exits_3_with_one_sentence(
    command: str, kind: str, tmp_path: Path, ceiling: Run
) -> None:
    path = tmp_path / "input"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text(BAD[kind])
    ran = ceiling(command, path, *(("-o", tmp_path / "out") if command == "digest" else ()))
    assert (ran.code, ran.out) == (3, "")
    error, hint = ran.err.splitlines()
    assert error.startswith("error: no usable trace: ")
    assert "input" in error
    assert hint == ("hint: pass the files that torch.profiler exported, or the folder they are in")


def test_one_bad_rank_is_told_and_the_others_are_reported(folder: Path, ceiling: Run) -> None:
    (folder / "rank2.json").write_text(healthy(2).text()[:40])
    ran = ceiling("analyze", folder)
    assert ran.code == 0
    assert ran.err == "skipped rank2.json (40 bytes): no trace events in it\n"
    assert "2 ranks" in ran.out


def test_two_runs_in_one_folder_exit_2(tmp_path: Path, ceiling: Run) -> None:
    write_run(tmp_path / "runs" / "before")
    write_run(tmp_path / "runs" / "after")
    ran = ceiling("analyze", tmp_path / "runs")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: These traces are of different runs: after, before; 2 files are rank 0.\n"
        "hint: Pass the files or the folder of one run.\n"
    )


def test_a_name_with_control_characters_cannot_reach_the_terminal(
    tmp_path: Path, ceiling: Run
) -> None:
    (tmp_path / "a\x1b]0;owned\x07.json").write_text("{}")
    ran = ceiling("analyze", tmp_path)
    assert ran.code == 3
    assert "\x1b" not in ran.err


def test_a_fault_of_the_program_exits_70_and_asks_for_a_report(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(command_line.api, "report", broken)
    ran = ceiling("analyze", folder)
    assert (ran.code, ran.out) == (70, "")
    assert ran.err.startswith("error: internal error: ZeroDivisionError: by zero\nhint: ")
    assert "ceiling -v" in ran.err


def test_verbose_shows_where_the_program_failed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(command_line.api, "report", broken)
    assert run(["-v", "analyze", str(folder)]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_is_told_and_exits_130(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line.api, "report", stopped)
    ran = ceiling("analyze", folder)
    assert (ran.code, ran.out, ran.err.strip()) == (130, "", "interrupted")
