"""The plain tables: what the inputs hold, and the laws as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import TraceBuilder
from runs import CREATED, healthy, loaded

from analyzer import api
from analyzer.config import Settings
from analyzer.findings.glossary import entry
from analyzer.render import inspection
from analyzer.report.build import Request


def shown(folder: Path, files: dict[str, TraceBuilder | str]) -> list[str]:
    job = loaded(folder, files)
    report = api.report(job, Request("mine", CREATED), Settings())
    actions = {c.id: entry(c.id).action for c in report.quality}
    return inspection.render(report, actions).splitlines()


def row(lines: list[str], start: str) -> list[str]:
    return next(line for line in lines if line.startswith(start)).split()


def test_each_file_is_shown_with_its_rank_and_the_rule_that_gave_it(tmp_path: Path) -> None:
    built = healthy(0)
    lines = shown(tmp_path, {"rank0.json": built, "rank1.json": healthy(1)})
    events, size = f"{len(built.events):,}", f"{len(built.text()) / 1000:.1f}"
    assert row(lines, "file") == ["file", "rank", "by", "events", "size"]
    assert row(lines, "rank0.json") == ["rank0.json", "0", "distributedInfo", events, size, "kB"]


def test_a_skipped_file_is_shown_with_the_reason(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"rank0.json": healthy(0), "loss.json": "{}"})
    assert row(lines, "loss.json") == [
        "loss.json",
        "-",
        "JSON",
        "of",
        "another",
        "kind",
        "0",
        "2",
        "B",
    ]


def test_ranks_and_steps_are_told(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"rank0.json": healthy(0), "rank1.json": healthy(1)})
    assert "ranks     2 present, world size 2" in lines
    assert "device    not recorded" in lines
    assert row(lines, "steps")[:7] == ["steps", "used", "2,", "3,", "4,", "5,", "6;"]
    assert "          left out 1: first recorded step: it starts with work that was not" in lines


def test_what_a_capture_lacks_is_told_with_how_to_record_it(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"rank0.json": healthy(0)})
    at = lines.index("To be able to say more:")
    assert lines[at - 1] == ""
    assert lines[at + 1 :] == ["  - Record every rank, and give the folder with all files."]


def test_a_sound_capture_lacks_nothing(tmp_path: Path) -> None:
    lines = shown(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)})
    assert lines[-1] == "Nothing is lacking that this tool could use."


def test_a_caveat_is_told_with_what_it_forbids(tmp_path: Path) -> None:
    text = " ".join(" ".join(shown(tmp_path, {"rank0.json": healthy(0)})).split())
    assert "warning ranks-missing: 1 of 2 ranks present: " in text
    assert "Forbids: waits between ranks, late ranks." in text


def test_many_steps_are_counted_beyond_the_first_twelve(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"rank0.json": healthy(0, steps=range(1, 31))})
    assert "12, 13 and 16 more" in " ".join(lines)


def test_no_line_is_wider_than_a_terminal(tmp_path: Path) -> None:
    files: dict[str, TraceBuilder | str] = {
        f"{'long-name-' * 9}rank{r}.json": healthy(r, steps=range(1, 31)).top("with_stack", 1)
        for r in range(2)
    }
    lines = shown(tmp_path, {**files, "x" * 200: "{}"})
    assert max(map(len, lines)) <= inspection.WIDTH


def test_a_name_with_control_characters_is_cleaned(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"rank0\x1b[31m.json": healthy(0, 1)})
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    ("limit", "said"), [(21.0, "ceiling is 21.0x"), (None, "ceiling is unbounded. G")]
)
def test_the_laws_are_rows_and_one_limit(limit: float | None, said: str) -> None:
    lines = inspection.laws_table(1 / 21, [(8, 6.0, 7.667, 0.75, None)], limit).splitlines()
    assert row(lines, "GPUs") == ["GPUs", "Amdahl", "efficiency", "Gustafson"]
    assert row(lines, "   8") == ["8", "6.00x", "75.0", "%", "7.67x"]
    assert said in " ".join(lines)
    assert "Serial fraction 0.0476 (4.76 %)." in " ".join(lines)
    assert max(map(len, lines)) <= inspection.WIDTH


def test_work_that_grows_with_the_memory_is_a_column_of_its_own() -> None:
    text = inspection.laws_table(0.1, [(8, 4.7059, 7.3, 0.588, 7.7354)], 10.0, 1.5)
    assert text.splitlines()[1].split()[-1] == "7.74x"
    assert "grows with N^1.5" in " ".join(text.split())
