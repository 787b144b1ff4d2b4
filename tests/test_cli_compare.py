"""`ceiling compare` and `--baseline`: what is printed and written, and every exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import VALIDATOR, Run
from runs import exposed

from analyzer import cli as command_line
from analyzer.report import comparison


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Two ranks that wait 800 us of every 1,800 us for a batch."""
    for rank in range(2):
        exposed(rank, loader=800).write(tmp_path / "slow" / f"rank{rank}.json")
    return tmp_path / "slow"


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """The same two ranks without waiting."""
    for rank in range(2):
        exposed(rank, loader=100).write(tmp_path / "quick" / f"rank{rank}.json")
    return tmp_path / "quick"


def test_two_folders_are_compared(slow: Path, quick: Path, ceiling: Run) -> None:
    ran = ceiling("compare", slow, quick)
    assert (ran.code, ran.err) == (0, "")
    assert "Faster: 1.80 -> 1.10 ms per step (38.9 % less), because data loading fell" in ran.line
    assert "Before: slow, 1 run with 5 steps; after: quick, 1 run with 5 steps." in ran.line


def test_quiet_is_the_verdict(slow: Path, quick: Path, ceiling: Run) -> None:
    ran = ceiling("-q", "compare", slow, quick)
    assert ran.err == ""
    assert ran.out.startswith("Faster: ")
    assert ran.out.count("\n") == 1


@pytest.mark.parametrize(
    ("format_", "start"),
    [("html", "<!doctype html>"), ("markdown", "<!--"), ("json", "{\n"), ("svg", "<svg ")],
)
def test_every_format_can_be_printed(
    format_: str, start: str, slow: Path, quick: Path, ceiling: Run
) -> None:
    ran = ceiling("compare", slow, quick, "--format", format_)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.lower().startswith(start)


def test_a_folder_gets_page_document_and_comment(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out"
    assert ceiling("compare", slow, quick, "-o", out).code == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["compare.html", "compare.json", "compare.md"]
    VALIDATOR.validate(json.loads((out / "compare.json").read_bytes()))


def test_a_picture_is_written_where_it_is_asked_for_and_shown_in_the_comment(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out"
    ran = ceiling("compare", slow, quick, "-o", out, "--format", "svg", "--format", "markdown")
    assert ran.code == 0
    assert (out / "compare.svg").read_text().startswith("<svg ")
    assert "](./compare.svg)" in (out / "compare.md").read_text()


def test_existing_files_are_kept_unless_replaced(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    page = tmp_path / "mine.html"
    page.write_text("old")
    ran = ceiling("compare", slow, quick, "-o", page, "--force")
    assert ran.code == 2
    assert ran.err.endswith("hint: pass -f to replace what is there\n")
    assert ceiling("compare", slow, quick, "-o", page, "-f").code == 0
    assert page.read_text().lower().startswith("<!doctype html>")


def test_traces_digests_and_saved_reports_compare_alike(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    saved, digests = tmp_path / "main.json", tmp_path / "digests"
    assert ceiling("analyze", slow, "-o", saved).code == 0
    assert ceiling("digest", slow, "-o", digests).code == 0
    texts = {
        ceiling("compare", f"main={side}", f"mine={quick}", "--format", "svg").out
        for side in (slow, saved, digests)
    }
    assert len(texts) == 1


def test_a_saved_comparison_is_painted_again(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "compare.json"
    first = ceiling("compare", slow, quick, "-o", out)
    assert ceiling("render", out).out == first.out
    assert ceiling("render", out, "--format", "json").out.encode() == out.read_bytes()


def test_several_runs_of_a_side_share_a_label(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out.json"
    sides = (f"main={slow}", f"main={slow}", f"mine={quick}", f"mine={quick}")
    assert ceiling("compare", *sides, "-o", out).code == 0
    found = comparison.read(out)
    assert (found.before.label, len(found.before.runs), len(found.after.runs)) == ("main", 2, 2)
    assert found.verdict.ratio is not None
    assert found.verdict.ratio.basis == "runs"


def test_a_gate_that_fails_exits_1_and_the_comparison_is_written(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out.json"
    ran = ceiling("compare", quick, slow, "-o", out, "--fail-on", "slower:5%")
    assert ran.code == 1
    assert "gate failed: slower:5%: expected at most 5.0 %, found 63.6 %" in ran.err
    (gate,) = comparison.read(out).gates
    assert (gate.level, gate.passed) == ("fail", False)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--fail-on", "slower:70%"], 0, ""),
        (["--warn-on", "slower:5%"], 0, "gate warned: slower:5%"),
        (["--fail-on", "slower:5%", "--exit-zero"], 0, "gate failed: slower:5%"),
        (
            ["--warn-on", "slower:5%", "--fail-on", "data_loading>1%"],
            1,
            "gate failed: data_loading",
        ),
    ],
)
def test_gates_that_hold_warn_or_are_waived(
    options: list[str], code: int, told: str, slow: Path, quick: Path, ceiling: Run
) -> None:
    ran = ceiling("compare", quick, slow, *options)
    assert ran.code == code
    assert told in ran.err


def test_gates_come_from_the_configuration_unless_given(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ceiling]\nfail_on = ["slower:5%"]\n')
    assert ceiling("compare", quick, slow).code == 1
    assert ceiling("compare", quick, slow, "--fail-on", "slower:70%").code == 0
    # a run alone cannot be slower
    assert ceiling("analyze", slow).code == 0


@pytest.mark.parametrize("text", ["slower", "slower:5", "nothing>5%"])
def test_no_gate_exits_2_before_anything_is_read(text: str, ceiling: Run) -> None:
    assert ceiling("compare", "gone", "gone too", "--fail-on", text).code == 2


def test_a_gate_of_the_configuration_that_is_none_exits_2(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ceiling]\nwarn_on = ["slow"]\n')
    ran = ceiling("compare", slow, quick)
    assert ran.code == 2
    assert "warn_on in [tool.ceiling]: 'slow' is no gate" in ran.err


def test_one_side_alone_exits_2(slow: Path, ceiling: Run) -> None:
    ran = ceiling("compare", slow)
    assert (ran.code, ran.out) == (2, "")
    assert "1 paths and 0 labels do not say what is compared with what" in ran.err


def test_a_side_without_a_trace_exits_3(slow: Path, tmp_path: Path, ceiling: Run) -> None:
    ran = ceiling("compare", slow, tmp_path / "gone")
    assert (ran.code, ran.out) == (3, "")
    assert "no such file or folder" in ran.err


def test_a_saved_comparison_is_no_run(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "compare.json"
    assert ceiling("compare", slow, quick, "-o", out).code == 0
    ran = ceiling("compare", out, quick)
    assert (ran.code, ran.out) == (3, "")


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    """The run of four ranks."""
    for rank in range(4):
        exposed(rank, 4, loader=100).write(tmp_path / "larger" / f"rank{rank}.json")
    return tmp_path / "larger"


def test_sides_that_cannot_be_compared_exit_4_and_say_why(
    slow: Path, larger: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out.json"
    ran = ceiling("compare", slow, larger, "-o", out, "--fail-on", "slower:5%")
    assert ran.code == 4
    assert "Not comparable: ranks of the job: 2 against 4." in ran.line
    assert "ceiling compare --force compares them all the same" in ran.err
    assert comparison.read(out).verdict.outcome == "not-comparable"


def test_force_compares_them_and_says_so(slow: Path, larger: Path, ceiling: Run) -> None:
    ran = ceiling("compare", slow, larger, "--force")
    assert ran.code == 0
    assert "Compared by force although the sides differ in: ranks of the job." in ran.line


def test_a_fault_exits_70(
    slow: Path, quick: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(command_line.api, "compared", broken)
    ran = ceiling("compare", slow, quick)
    assert (ran.code, ran.out) == (70, "")
    assert "internal error: ZeroDivisionError" in ran.err


def test_a_run_is_reported_and_held_against_its_baseline(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run
) -> None:
    base, out = tmp_path / "main.report.json", tmp_path / "out"
    assert ceiling("analyze", quick, "-o", base).code == 0
    ran = ceiling("analyze", slow, "--baseline", base, "-o", out, "--fail-on", "slower:5%")
    assert ran.code == 1
    assert "Slower: 1.10 -> 1.80 ms per step" in ran.line
    assert sorted(path.name for path in out.iterdir()) == [
        *("compare.html", "compare.json", "compare.md"),
        *("report.html", "report.json", "report.md"),
    ]
    assert ceiling("analyze", quick, "--baseline", base, "--fail-on", "slower:5%").code == 0


def test_a_report_beside_its_baseline_still_pipes_cleanly(
    slow: Path, quick: Path, ceiling: Run
) -> None:
    ran = ceiling("analyze", slow, "--baseline", quick, "--format", "json")
    assert ran.code == 0
    VALIDATOR.validate(json.loads(ran.out))
    assert ran.err.startswith("Slower: ")


def test_a_baseline_of_another_size_exits_4(larger: Path, slow: Path, ceiling: Run) -> None:
    assert ceiling("analyze", slow, "--baseline", larger).code == 4


def test_slower_without_a_baseline_exits_2(slow: Path, ceiling: Run) -> None:
    ran = ceiling("analyze", slow, "--fail-on", "slower:5%")
    assert (ran.code, ran.out) == (2, "")
    assert "hint: compare two runs, or pass --baseline" in ran.err


def test_a_gate_on_a_run_alone(slow: Path, ceiling: Run) -> None:
    assert ceiling("analyze", slow, "--fail-on", "data_loading>10%").code == 1
    assert ceiling("analyze", slow, "--fail-on", "data_loading>90%").code == 0


def test_a_github_job_is_told(
    slow: Path, quick: Path, tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    out = tmp_path / "out"
    ran = ceiling(
        "compare", quick, slow, "--github", "-o", out, "--fail-on", "slower:5%", "--format", "html"
    )
    assert ran.code == 1
    told = [line for line in ran.err.splitlines() if line.startswith("::")]
    assert [line.split("::")[1].split()[0] for line in told] == ["notice", "error"]
    assert summary.read_text().startswith("before\n## Slower: ")
    assert outputs.read_text().splitlines() == [
        "verdict=slower",
        "step-ms=1.8",
        f"report-path={out / 'compare.html'}",
    ]


def test_outside_of_a_github_job_that_is_said(
    slow: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    ran = ceiling("analyze", slow, "--github")
    assert ran.code == 0
    assert ran.err.endswith("GITHUB_STEP_SUMMARY is not set, so no job summary was written\n")


def test_the_comment_has_its_id_and_the_address_of_the_page(
    slow: Path, quick: Path, ceiling: Run
) -> None:
    asked = ("--comment-id", "gpu", "--report-url", "https://ci/7", "--format", "markdown")
    for command in (("analyze", slow), ("compare", slow, quick)):
        text = ceiling(*command, *asked).out
        assert text.splitlines()[0].endswith(":gpu -->")
        assert "(HTML)](https://ci/7)" in text
