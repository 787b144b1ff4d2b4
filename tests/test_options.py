"""What option texts mean, and which are refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import options
from analyzer.config import Settings
from analyzer.errors import UsageError
from analyzer.options import Target


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30d", 2_592_000.0),
        ("12h", 43_200.0),
        ("1d12h", 129_600.0),
        ("45min", 2_700.0),
        ("45m", 2_700.0),
        ("90s", 90.0),
        ("1.5h", 5_400.0),
    ],
)
def test_a_length_of_time_is_seconds(text: str, seconds: float) -> None:
    assert options.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "1y", "1 d", "-1d", "0d", "1d-2h", "inf", "1e3s"])
def test_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        options.seconds(text)


def test_gpu_counts_keep_their_order() -> None:
    assert options.gpu_counts("8,2,4") == [8, 2, 4]


@pytest.mark.parametrize("text", ["", "0", "2,", "2,,4", "two", "2;4", "-2", "2.5", "1" * 10])
def test_no_gpu_counts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of GPU counts"):
        options.gpu_counts(text)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("8=6", (1 / 6 - 1 / 8) / (1 - 1 / 8)), ("2=2", 0.0), ("4=1", 1.0), ("8=7.5", 1 / 105)],
)
def test_a_measured_speedup_is_a_serial_fraction(text: str, fraction: float) -> None:
    assert options.measured(text) == pytest.approx(fraction, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("8", "is no measurement"),
        ("8=", "is no measurement"),
        ("8=-6", "is no measurement"),
        ("0=1", "is no measurement"),
        ("1=1", "at least two GPUs"),
        ("8=0", "a speedup above 0"),
        ("8=9", "it is superlinear"),
        ("8=0.5", "more GPUs are slower than one"),
    ],
)
def test_no_measurement_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        options.measured(text)


def test_ranks_are_given_by_file() -> None:
    assert options.ranks_of(("a.json=3", "b=c.json=0")) == {"a.json": 3, "b=c.json": 0}


@pytest.mark.parametrize("text", ["a.json", "=3", "a.json=", "a.json=-1", "a.json=x"])
def test_no_rank_of_a_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no rank: write FILE=N"):
        options.ranks_of((text,))


def test_the_pattern_of_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.ceiling]\nstep_pattern = "iter"\n')
    assert options.settings(file, None).step_pattern == "iter"
    assert options.settings(file, "epoch").step_pattern == "epoch"


def test_the_nearest_configuration_upward_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ceiling]\nstep_pattern = "iter"\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert options.settings(None, None) == Settings(step_pattern="iter")


def test_a_broken_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--step-pattern '\(' is no pattern"):
        options.settings(None, "(")


def test_the_time_of_a_report_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1760000000")
    assert options.now() == "2025-10-09T08:53:20Z"


@pytest.mark.parametrize("epoch", ["", "soon", "99999999999999999"])
def test_a_fixed_time_that_is_none_is_refused(epoch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        options.now()


@pytest.mark.parametrize(
    ("output", "formats", "printed"),
    [(None, (), "text"), ("-", (), "text"), (None, ("json",), "json"), ("-", ("html",), "html")],
)
def test_without_files_one_format_is_printed(
    output: str | None, formats: tuple[str, ...], printed: str
) -> None:
    assert Target.of(output, formats, False, False) == Target({}, printed, False)


def test_a_folder_takes_all_formats_and_the_summary_is_printed(tmp_path: Path) -> None:
    found = Target.of(str(tmp_path), (), False, False)
    assert {path.name for path in found.files} == {"report.html", "report.json", "report.md"}
    assert found.stdout == "text"


@pytest.mark.parametrize(
    ("output", "formats", "opened", "reason"),
    [
        (None, ("json", "html"), False, "stdout holds one format"),
        (None, (), True, "--open needs a page"),
        ("-", ("html",), True, "--open needs a page"),
        ("report.json", (), True, "--open needs a page"),
        ("folder", ("json",), True, "--open needs a page"),
        ("folder", ("text",), False, "text is printed, not written"),
        ("report.json", ("html",), False, "report.json holds one format"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    output: str | None, formats: tuple[str, ...], opened: bool, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        Target.of(output, formats, False, opened)
