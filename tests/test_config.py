from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.config import Settings, Thresholds, load_settings
from analyzer.errors import UsageError


def project(folder: Path, body: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(body, encoding="utf-8")
    return path


def test_every_threshold_has_a_source() -> None:
    assert Thresholds.sources().keys() == Thresholds().as_dict().keys()
    assert all(Thresholds.sources().values())


def test_every_threshold_name_ends_in_its_unit() -> None:
    units = ("_share", "_ratio", "_us", "_ms", "_steps")
    assert [name for name in Thresholds().as_dict() if not name.endswith(units)] == []


def test_without_a_project_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(None, tmp_path) == Settings()


def test_the_nearest_project_file_upward_is_read(tmp_path: Path) -> None:
    project(
        tmp_path,
        """
        [tool.ceiling]
        step_pattern = "^train_step"
        [tool.ceiling.thresholds]
        tiny_kernel_us = 5
        [tool.ceiling.kernels]
        communication = ["my_all_reduce", "^xfer_"]
        """,
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    settings = load_settings(None, below)
    assert settings.thresholds == Thresholds(tiny_kernel_us=5.0)
    assert type(settings.thresholds.tiny_kernel_us) is float
    assert settings.kernels == {"communication": ("my_all_reduce", "^xfer_")}
    assert settings.step_pattern == "^train_step"


def test_a_project_file_without_the_table_is_passed_over(tmp_path: Path) -> None:
    project(tmp_path, "[tool.ceiling.thresholds]\ncopy_share = 0.5")
    (tmp_path / "inner").mkdir()
    project(tmp_path / "inner", "[tool.ruff]\nline-length = 100")
    assert load_settings(None, tmp_path / "inner").thresholds.copy_share == 0.5


def test_a_named_file_goes_before_the_nearest(tmp_path: Path) -> None:
    project(tmp_path, "[tool.ceiling.thresholds]\ncopy_share = 0.5")
    named = tmp_path / "ours.toml"
    named.write_text("[tool.ceiling.thresholds]\ncopy_share = 0.25", encoding="utf-8")
    assert load_settings(named, tmp_path).thresholds.copy_share == 0.25


@pytest.mark.parametrize(
    "body, message, hint",
    [
        (
            "[tool.ceiling.thresholds]\ncopy_shares = 1",
            "pyproject.toml: unknown key copy_shares in [thresholds]",
            "Did you mean copy_share?",
        ),
        (
            "[tool.ceiling.kernels]\ncomunication = []",
            "pyproject.toml: unknown key comunication in [kernels]",
            "Did you mean communication?",
        ),
        (
            "[tool.ceiling]\nstep-pattern = 'x'",
            "pyproject.toml: unknown key step-pattern in [tool.ceiling]",
            "Did you mean step_pattern?",
        ),
        (
            "[tool.ceiling]\nqqq = 1",
            "pyproject.toml: unknown key qqq in [tool.ceiling]",
            "Valid keys: fail_on, kernels, step_pattern, thresholds, warn_on.",
        ),
        (
            "[tool.ceiling.thresholds]\ncopy_share = '5 %'",
            "pyproject.toml: thresholds.copy_share must be a number, not '5 %'",
            "",
        ),
        (
            "[tool.ceiling.thresholds]\ncopy_share = true",
            "pyproject.toml: thresholds.copy_share must be a number, not True",
            "",
        ),
        (
            "[tool.ceiling.thresholds]\ncopy_share = nan",
            "pyproject.toml: thresholds.copy_share must be a number, not nan",
            "",
        ),
        (
            "[tool.ceiling.thresholds]\ncopy_share = 5",
            "pyproject.toml: thresholds.copy_share must be from 0 to 1, not 5",
            "",
        ),
        (
            "[tool.ceiling.thresholds]\ntiny_kernel_us = -1",
            "pyproject.toml: thresholds.tiny_kernel_us must be 0 or more, not -1",
            "",
        ),
        (
            "[tool.ceiling.thresholds]\nmin_steps = 2.5",
            "pyproject.toml: thresholds.min_steps must be a whole number, not 2.5",
            "",
        ),
        (
            "[tool.ceiling.kernels]\ncopy = 'x'",
            "pyproject.toml: kernels.copy must be a list of patterns, not 'x'",
            "",
        ),
        (
            "[tool.ceiling.kernels]\ncopy = [3]",
            "pyproject.toml: kernels.copy must hold a regular expression as text, not 3",
            "",
        ),
        ("[tool]\nceiling = 3", "pyproject.toml: tool.ceiling must be a table, not 3", ""),
        (
            "[tool.ceiling]\nthresholds = 3",
            "pyproject.toml: thresholds must be a table, not 3",
            "",
        ),
    ],
)
def test_a_wrong_entry_is_named_with_file_and_nearest_key(
    tmp_path: Path, body: str, message: str, hint: str
) -> None:
    path = project(tmp_path, body)
    with pytest.raises(UsageError) as caught:
        load_settings(path, tmp_path)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_pattern_that_does_not_compile_is_named(tmp_path: Path) -> None:
    path = project(tmp_path, "[tool.ceiling.kernels]\ncopy = ['a(']")
    with pytest.raises(UsageError, match=r"kernels\.copy holds 'a\(', no regular expression"):
        load_settings(path, tmp_path)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = project(tmp_path, "[tool.ceiling\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml is not valid TOML"):
        load_settings(None, path.parent)


def test_a_named_file_must_exist_and_hold_the_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.toml cannot be read: No such file"):
        load_settings(tmp_path / "gone.toml", tmp_path)
    path = project(tmp_path, "[tool.ruff]")
    with pytest.raises(UsageError, match=r"has no \[tool\.ceiling\] table"):
        load_settings(path, tmp_path)
