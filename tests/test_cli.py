"""What every command offers, and the commands beside analyze."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from conftest import Run
from jsonschema import Draft202012Validator
from runs import healthy

from analyzer import __version__
from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.cli import cli
from analyzer.findings.detectors import CATALOGUE
from analyzer.report.caveats import RULES
from analyzer.report.schema import schema
from analyzer.report.shares import EDITS

SAMPLES = Path(__file__).parent.parent / "sample_traces"
COMMANDS = (
    "analyze",
    "compare",
    "scaling",
    "overlay",
    "crosscheck",
    "inspect",
    "digest",
    "render",
    "laws",
    "explain",
    "schema",
)
IDS = (*CLASSES, *GROUPS, *CATALOGUE, *EDITS, *(rule.id for rule in RULES), "rank-by-order")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_fits_a_terminal_and_shows_an_example(command: str, flag: str, ceiling: Run) -> None:
    ran = ceiling(command, flag)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert f"\n  ceiling {command}" in ran.out


def test_the_overview_lists_every_command_in_80_columns(ceiling: Run) -> None:
    ran = ceiling("-h")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert set(cli.commands) == set(COMMANDS)
    assert all(f"\n  {command} " in ran.out for command in COMMANDS)


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_one_line(flag: str, ceiling: Run) -> None:
    assert ceiling(flag) == (0, f"ceiling, version {__version__}\n", "")


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "analyzer", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == f"ceiling, version {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("analyse",),
        ("analyze", "x", "--mode", "fast"),
        ("analyze", "x", "--duration", "soon"),
        ("analyze", "x", "--rank-of", "x"),
        ("analyze", "x", "--jobs", "0"),
        ("analyze", "x", "--format", "pdf"),
        ("analyze", "x", "--step-pattern", "("),
        ("analyze", "x", "--config", "missing.toml"),
        ("analyze", "x", "--format", "json", "--format", "html"),
        ("analyze", "x", "--open"),
        ("digest", "x"),
        ("overlay", "x"),
        ("overlay", "x", "-o", "page.html"),
        ("render", "missing.json"),
        ("laws",),
        ("laws", "--serial", "0.1", "--measured", "8=6"),
        ("laws", "--serial", "1.5"),
        ("laws", "--measured", "8=9"),
        ("laws", "--serial", "0.1", "--gpus", "0"),
        ("explain", "no-such-id"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_exits_2_with_nothing_on_stdout(
    arguments: tuple[str, ...], ceiling: Run
) -> None:
    ran = ceiling(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


@pytest.mark.parametrize("command", ["analyze", "inspect"])
def test_without_a_path_the_folder_one_is_in_is_read(
    command: str, folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ran = ceiling(command)
    assert ran == ceiling(command, folder)
    assert ran.code == 0


def test_without_a_path_or_traces_one_is_told_what_to_pass(ceiling: Run) -> None:
    ran = ceiling("analyze")
    assert (ran.code, ran.out) == (3, "")
    assert "no trace in this folder" in ran.err
    assert "hint: pass the files that torch.profiler exported" in ran.err


def test_a_shell_completes_ids_commands_and_options(ceiling: Run) -> None:
    def offered(*words: str) -> set[str]:
        line = [*words[:-1]]
        items = ShellComplete(cli, {}, "ceiling", "_CEILING_COMPLETE").get_completions(
            line, words[-1]
        )
        return {item.value for item in items}

    assert offered("explain", "late") == {"late-rank"}
    assert {"overlay"} <= offered("over")
    assert "--duration" in offered("analyze", "--d")


def test_inspect_tells_files_steps_and_caveats(folder: Path, ceiling: Run) -> None:
    (folder / "loss.json").write_text("{}")
    (folder / "rank1.json").unlink()
    ran = ceiling("inspect", folder)
    assert ran.code == 0
    assert "rank0.json" in ran.out
    assert "warning   ranks-missing: 1 of 2 ranks present" in ran.out
    assert ran.err == "skipped loss.json (2 bytes): JSON of another kind\n"


def test_digests_give_the_same_report_as_their_traces(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    digests = tmp_path / "made" / "ddp"
    ran = ceiling("digest", folder, "-o", digests)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [str(digests / f"rank{r}.json.digest") for r in (0, 1)]
    for source, out in ((folder, "a"), (digests, "b")):
        assert ceiling("analyze", source, "-o", tmp_path / out).code == 0
    for name in ("report.json", "report.html", "report.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_existing_digest_is_kept_unless_forced(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    assert ceiling("digest", folder, "-o", tmp_path).code == 0
    ran = ceiling("digest", folder, "-o", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ": rank0.json.digest, rank1.json.digest\n" in ran.err
    assert ceiling("digest", folder, "-o", tmp_path, "-f").code == 0


def test_digests_of_equal_names_are_refused(tmp_path: Path, ceiling: Run) -> None:
    for sub in ("a", "b"):
        healthy(0).write(tmp_path / sub / "rank0.json")
    ran = ceiling("digest", tmp_path, "-o", tmp_path / "out")
    assert ran.code == 2
    assert "two of the traces have the same name" in ran.err


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_saved_report_is_painted_as_from_the_traces(
    name: str, tmp_path: Path, ceiling: Run
) -> None:
    assert ceiling("analyze", SAMPLES / "slow-rank-4gpu", "-o", tmp_path / "a").code == 0
    saved = tmp_path / "a" / "report.json"
    assert ceiling("render", saved, "-o", tmp_path / "b").code == 0
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert ceiling("render", saved).out == ceiling("analyze", SAMPLES / "slow-rank-4gpu").out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 99}'])
def test_what_is_no_report_exits_3(text: str, tmp_path: Path, ceiling: Run) -> None:
    (tmp_path / "saved.json").write_text(text)
    ran = ceiling("render", tmp_path / "saved.json")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: saved.json: ")


def test_eight_cards_at_six_times_mean_a_serial_fraction_of_one_in_21(ceiling: Run) -> None:
    ran = ceiling("laws", "--measured", "8=6", "--gpus", "8")
    assert (ran.code, ran.err) == (0, "")
    assert "Serial fraction 0.0476 (4.76 %)." in ran.line
    assert "the ceiling is 21.0x" in ran.line
    assert ran.out.splitlines()[1].split() == ["8", "6.00x", "75.0", "%", "7.67x"]


def test_the_laws_as_json_are_rows_and_a_limit(ceiling: Run) -> None:
    ran = ceiling("laws", "--serial", "0.1", "--gpus", "2,8", "--format", "json")
    read = json.loads(ran.out)
    assert read["limit"] == pytest.approx(10.0)
    assert [row["n"] for row in read["rows"]] == [2, 8]
    assert read["rows"][1]["amdahl"] == pytest.approx(1 / (0.1 + 0.9 / 8))
    assert read["rows"][1]["gustafson"] == pytest.approx(8 - 0.1 * 7)
    assert read["rows"][1]["efficiency"] == pytest.approx(1 / (0.1 + 0.9 / 8) / 8)


def test_nothing_serial_has_no_limit_and_says_why(ceiling: Run) -> None:
    read = json.loads(ceiling("laws", "--serial", "0", "--gpus", "4", "--format", "json").out)
    assert (read["limit"], read["reason"]) == (None, "not bounded: nothing is serial")
    assert read["rows"] == [{"n": 4, "amdahl": 4.0, "gustafson": 4.0, "efficiency": 1.0}]
    assert "the ceiling is unbounded" in ceiling("laws", "--serial", "0").line


def test_the_laws_as_a_picture_are_well_formed_svg(ceiling: Run) -> None:
    root = ET.fromstring(ceiling("laws", "--serial", "0.1", "--format", "svg").out)
    assert root.tag.endswith("svg")


def test_explain_lists_every_id(ceiling: Run) -> None:
    ran = ceiling("explain")
    assert (ran.code, ran.err) == (0, "")
    assert set(IDS) <= set(ran.out.split())


@pytest.mark.parametrize("id", IDS)
def test_explain_tells_every_id_in_80_columns(id: str, ceiling: Run) -> None:
    ran = ceiling("explain", id)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{id} (")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_explain_suggests_the_nearest_id(ceiling: Run) -> None:
    ran = ceiling("explain", "kernel-lanch")
    assert "hint: Did you mean kernel-launch" in ran.err


def test_the_schema_is_a_schema_and_the_published_one(ceiling: Run) -> None:
    read = json.loads(ceiling("schema").out)
    Draft202012Validator.check_schema(read)
    assert read == schema()
