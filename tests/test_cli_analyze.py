"""`ceiling analyze`: what goes to which stream and file, and what its options change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import VALIDATOR, Run
from make import trace
from runs import healthy

from analyzer import __version__, options
from analyzer import cli as command_line
from analyzer.cli import run
from analyzer.report import document

SAMPLES = Path(__file__).parent.parent / "sample_traces"


def test_the_summary_is_the_only_thing_on_stdout(folder: Path, ceiling: Run) -> None:
    ran = ceiling("analyze", folder)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"torch-ceiling {__version__}   run: ddp\n2 ranks, ")
    assert "Nothing stands out" in ran.out


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_json_pipes_cleanly_while_messages_go_to_stderr(
    output: tuple[str, ...], folder: Path, ceiling: Run
) -> None:
    (folder / "loss.json").write_text("{}")
    ran = ceiling("analyze", folder, "--format", "json", *output)
    assert ran.code == 0
    VALIDATOR.validate(json.loads(ran.out))
    assert ran.err == "skipped loss.json (2 bytes): JSON of another kind\n"


@pytest.mark.parametrize(
    ("format_", "start"), [("html", "<!doctype html>"), ("markdown", "<!--"), ("json", "{\n")]
)
def test_every_format_can_be_printed(format_: str, start: str, folder: Path, ceiling: Run) -> None:
    ran = ceiling("analyze", folder, "--format", format_)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.lower().startswith(start)


def test_quiet_is_the_verdict_and_nothing_else(folder: Path, ceiling: Run) -> None:
    (folder / "loss.json").write_text("{}")
    ran = ceiling("-q", "analyze", folder, "-o", folder / "out")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Nothing stands out: ")
    assert ran.out.count("\n") == 1


def test_verbose_says_whose_each_file_is(folder: Path, ceiling: Run) -> None:
    ran = ceiling("-v", "analyze", folder)
    assert ran.err == (
        "rank0.json: rank 0 by distributedInfo\nrank1.json: rank 1 by distributedInfo\n"
    )


def test_a_folder_gets_page_document_and_comment(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    ran = ceiling("analyze", folder, "-o", tmp_path / "out")
    assert ran.code == 0
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["report.html", "report.json", "report.md"]
    assert [line.split(" (")[0] for line in ran.err.splitlines()] == [
        f"wrote {tmp_path / 'out' / name}" for name in ("report.html", "report.json", "report.md")
    ]
    assert "Nothing stands out" in ran.out


def test_a_file_is_written_in_the_format_of_its_suffix(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    assert ceiling("analyze", folder, "-o", tmp_path / "mine.json").code == 0
    assert document.read(tmp_path / "mine.json").run.label == "ddp"


def test_only_the_formats_asked_for_are_written(folder: Path, tmp_path: Path, ceiling: Run) -> None:
    out = tmp_path / "out"
    assert ceiling("analyze", folder, "-o", out, "--format", "json", "--format", "html").code == 0
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json"]


def test_an_existing_report_is_kept_unless_forced(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    page = tmp_path / "mine.html"
    page.write_text("old")
    ran = ceiling("analyze", folder, "-o", page)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: already in ")
    assert ran.err.endswith(": mine.html\nhint: pass -f to replace what is there\n")
    assert page.read_text() == "old"
    assert ceiling("analyze", folder, "-o", page, "--force").code == 0
    assert page.read_text().lower().startswith("<!doctype html>")


def test_open_shows_the_page_that_was_written(
    folder: Path, tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(options.webbrowser, "open", shown.append)
    assert ceiling("analyze", folder, "-o", tmp_path / "out", "--open").code == 0
    assert shown == [(tmp_path / "out" / "report.html").as_uri()]


def test_no_color_is_written_to_a_pipe_and_color_where_asked(folder: Path, ceiling: Run) -> None:
    assert "\x1b[" not in ceiling("analyze", folder).out
    assert "\x1b[" in ceiling("--color", "analyze", folder).out
    assert "\x1b[" not in ceiling("--no-color", "analyze", folder).out


@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False), ("", False)])
def test_a_terminal_gets_color_unless_no_color_is_set(
    no_color: str | None,
    colored: bool,
    folder: Path,
    ceiling: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ("\x1b[" in ceiling("analyze", folder).out) is colored


def test_progress_is_drawn_on_a_terminals_stderr_only(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    drawn = ceiling("analyze", folder, "--format", "json")
    assert "reading" in drawn.err
    json.loads(drawn.out)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert ceiling("--no-progress", "analyze", folder).err == ""


@pytest.mark.parametrize("arguments", [("analyze", "DDP"), ("inspect", "DDP"), ("explain",)])
def test_a_terminal_without_utf_8_gets_all_it_can_show(
    arguments: tuple[str, ...], folder: Path
) -> None:
    command = [sys.executable, "-m", "analyzer", *arguments]
    command = [str(folder) if part == "DDP" else part for part in command]
    shown = subprocess.run(
        command, capture_output=True, env={"PYTHONIOENCODING": "cp1252"}, cwd=SAMPLES.parent
    )
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert shown.stdout.decode("cp1252")


def test_a_reader_that_has_seen_enough_is_no_error(
    ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise BrokenPipeError

    kept: list[tuple[int, int]] = []
    monkeypatch.setattr(click, "echo", broken)
    monkeypatch.setattr(command_line.os, "dup2", lambda a, b: kept.append((a, b)))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1)
    assert run(["schema"]) == 0
    assert [target for _, target in kept] == [1]


def test_twice_the_same_gives_the_same_bytes(folder: Path, tmp_path: Path, ceiling: Run) -> None:
    for out in ("a", "b"):
        assert ceiling("analyze", folder, "-o", tmp_path / out).code == 0
    for name in ("report.html", "report.json", "report.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_fixed_time_stands_in_the_report(folder: Path, ceiling: Run) -> None:
    read = json.loads(ceiling("analyze", folder, "--format", "json").out)
    assert read["created"] == "2025-10-09T08:53:20Z"


def asked(ceiling: Run, *arguments: str | Path) -> dict[str, Any]:
    ran = ceiling("analyze", *arguments, "--format", "json")
    assert ran.code == 0
    read: dict[str, Any] = json.loads(ran.out)
    VALIDATOR.validate(read)
    return read


def test_the_length_of_the_run_is_told_today_and_at_the_ceiling(ceiling: Run) -> None:
    read = asked(ceiling, SAMPLES / "slow-rank-4gpu", "--duration", "30d")
    duration, ceiling_today = read["scaling"]["duration"], read["scaling"]["ceiling_today"]
    assert duration["today_s"] == 30 * 86_400
    assert duration["ceiling_s"] >= 30 * 86_400 / ceiling_today["value"]
    assert {p["n"]: p["duration_s"] for p in read["scaling"]["predict"]}[4] == 30 * 86_400
    summary = ceiling("analyze", SAMPLES / "slow-rank-4gpu", "--duration", "30d").line
    assert "The whole run takes 30.0 d today; at the ceiling" in summary


@pytest.mark.parametrize("mode", ["strong", "accum", "weak"])
def test_the_mode_is_the_one_asked_for(mode: str, folder: Path, ceiling: Run) -> None:
    scaling = asked(ceiling, folder, "--mode", mode)["scaling"]
    assert scaling["mode"] == mode
    assert (scaling["roles"]["launch"] == "scales") is (mode == "accum")


def test_n_is_recognised_and_can_be_given(folder: Path, ceiling: Run) -> None:
    assert asked(ceiling, folder)["scaling"]["n"] == 2
    given = asked(ceiling, folder, "--n", "16")["scaling"]
    assert given["n"] == 16
    assert given["assumptions"][0] == "N is 16 because it was given so."


def test_a_shared_loader_does_not_scale(folder: Path, ceiling: Run) -> None:
    shared = asked(ceiling, folder, "--shared-loader")["scaling"]["roles"]
    assert shared["data_loading"] == "serial"
    assert asked(ceiling, folder)["scaling"]["roles"]["data_loading"] == "scales"


def test_a_label_names_the_run(folder: Path, ceiling: Run) -> None:
    assert asked(ceiling, folder, "--label", "nightly")["run"]["label"] == "nightly"


def test_a_rank_can_be_given_by_file(tmp_path: Path, ceiling: Run) -> None:
    for name in ("left", "right"):
        healthy(None).write(tmp_path / f"{name}.json")
    options_ = ("--rank-of", "left.json=3", "--rank-of", "right.json=1")
    read = asked(ceiling, tmp_path / "left.json", tmp_path / "right.json", *options_)
    assert {f["name"]: f["rank"] for f in read["run"]["files"]} == {"left.json": 3, "right.json": 1}
    assert "rank-by-order" not in {c["id"] for c in read["quality"]}


def test_any_annotation_can_mark_the_steps(tmp_path: Path, ceiling: Run) -> None:
    built = healthy(0, 1, without=["marks", "collectives"])
    for k in range(7):
        built.annotation(f"train {k}", k * 1000, k * 1000 + 1000)
    path = built.write(tmp_path / "rank0.json")
    assert asked(ceiling, path)["steps"]["used"] == [0]
    found = asked(ceiling, path, "--step-pattern", r"train (\d+)")
    assert found["steps"]["used"] == [1, 2, 3, 4, 5]


def test_jobs_are_processes_with_the_same_report(folder: Path, ceiling: Run) -> None:
    assert asked(ceiling, folder, "-j", "2") == asked(ceiling, folder, "-j", "1")


def test_a_pattern_of_files_is_expanded(folder: Path, ceiling: Run) -> None:
    assert asked(ceiling, folder / "rank*.json")["run"]["ranks_present"] == [0, 1]


def test_thresholds_and_kernels_are_configured_in_a_file(tmp_path: Path, ceiling: Run) -> None:
    built = trace(0, 1)
    for k in range(7):
        at = k * 1000
        built.step(k + 1, at, at + 1000).loader(at, at + 1)
        built.kernel("gemm", at + 20, at + 920, launch=(at + 2, at + 5))
        built.kernel("my_exchange", at + 920, at + 1020, launch=(at + 5, at + 8))
    path = built.write(tmp_path / "rank0.json")
    config = tmp_path / "settings.toml"
    config.write_text(
        '[tool.ceiling.kernels]\ncommunication = ["my_exchange"]\n'
        "[tool.ceiling.thresholds]\nexposed_comm_share = 0.05\n"
    )
    assert asked(ceiling, path)["breakdown"]["mean_ms"]["comm_unsplit"] == 0.0
    read = asked(ceiling, path, "--config", config)
    assert read["breakdown"]["mean_ms"]["comm_unsplit"] == pytest.approx(0.1)
    assert read["thresholds"]["exposed_comm_share"] == 0.05
    assert read["findings"][0]["id"] == "exposed-communication"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[tool.ceiling]\nspeed = 1\n", "unknown key speed in [tool.ceiling]"),
        ("[tool.ceiling.thresholds]\nlaunch_shar = 0.1\n", "Did you mean launch_share?"),
        ("[tool.ceiling.thresholds]\nlaunch_share = 2\n", "must be from 0 to 1, not 2"),
        ("[tool.ceiling.kernels]\nnetwork = []\n", "unknown key network in [kernels]"),
        ("[tool.ceiling\n", "is not valid TOML"),
        ("[project]\n", "has no [tool.ceiling] table"),
    ],
)
def test_a_wrong_configuration_exits_2(
    text: str, reason: str, folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(text)
    ran = ceiling("analyze", folder, "--config", config)
    assert (ran.code, ran.out) == (2, "")
    assert "settings.toml" in ran.err
    assert reason in ran.err


def test_options_can_come_from_the_environment(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEILING_ANALYZE_MODE", "weak")
    assert asked(ceiling, folder)["scaling"]["mode"] == "weak"
