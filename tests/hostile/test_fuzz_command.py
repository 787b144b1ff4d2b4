"""Whatever file it is given, the command ends in all its outputs or in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import fuzz_command

from analyzer import cli

EACH = 300


@pytest.fixture(scope="module")
def found() -> list[tuple[int, str, str]]:
    return list(fuzz_command.failures(range(EACH)))


def test_every_command_ends_in_its_outputs_or_in_a_sentence(
    found: list[tuple[int, str, str]],
) -> None:
    assert [row for row in found if row[2]] == []


@pytest.mark.parametrize("command", ["analyze", "inspect", "digest", "analyze digest", "render"])
def test_every_command_has_both_ends(command: str, found: list[tuple[int, str, str]]) -> None:
    ends = {what[-1] for _, what, _ in found if what.partition(",")[0] == command}
    # A digest that cannot be read leaves the other rank.
    assert ends == ({"0"} if command == "analyze digest" else {"0", "3"})


# Cases that ended in a traceback once.
FOUND = (857, 2323, 3282, 3548, 4010, 4843)


@pytest.mark.parametrize("number", FOUND)
def test_what_failed_once_does_not_again(number: int, tmp_path: Path) -> None:
    _, wrong = fuzz_command.failure(number, fuzz_command.Sound(tmp_path))
    assert wrong == ""


BROKEN: dict[str, Callable[..., Any]] = {}


def broken(how: Callable[..., Any]) -> Callable[..., Any]:
    BROKEN[how.__name__] = how
    return how


@broken
def traceback(arguments: list[str]) -> int:
    print("Traceback (most recent call last):", file=sys.stderr)
    return 0


@broken
def exit_code_70(arguments: list[str]) -> int:
    return 70


@broken
def exception(arguments: list[str]) -> int:
    raise LookupError("here")


@broken
def silence(arguments: list[str]) -> int:
    return 3


@broken
def no_output(arguments: list[str]) -> int:
    return 0


@pytest.mark.parametrize("how", BROKEN)
def test_another_end_is_a_failure(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = fuzz_command.Sound(tmp_path)
    monkeypatch.setattr(cli, "run", BROKEN[how])
    _, wrong = fuzz_command.failure(0, sound)
    assert wrong


def test_a_sound_trace_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = fuzz_command.Sound(tmp_path)
    monkeypatch.setattr(fuzz_command.fuzz, "damaged", lambda number: sound_file())
    assert fuzz_command.failure(0, sound) == ("analyze, nothing: exit 0", "")


def sound_file() -> tuple[str, bytes, str]:
    return "rank1.json", fuzz_command.fuzz.clean(1), "nothing"
