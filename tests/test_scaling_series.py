"""Series of simulated jobs through the whole tool: read, fitted, foretold, painted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from jsonschema import Draft202012Validator

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from referee.draws import Draws
from referee.kineto import write
from referee.program import step_program
from referee.series import series
from referee.simulate import simulate
from scaling import HELD_OUT, LARGEST_ERROR, LARGEST_FROM_ONE, outcome

from analyzer.report import scaling

VALIDATOR = Draft202012Validator(scaling.schema())
SEED = 6  # sharded, the batch shared; communication comes out at 16 GPUs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each of 1, 2, 4 and 8 GPUs."""
    folder = tmp_path_factory.mktemp("runs")
    for n in (1, 2, 4, 8):
        job, place = series(SEED).job(n), folder / f"on{n}"
        place.mkdir()
        write(job, simulate(Draws(job, step_program(job)), keep_calls=True), place)
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_sizes_held_out_are_foretold(seed: int) -> None:
    found = outcome(seed)
    assert found.best == "classes"
    assert {n: abs(found.error[n]) <= LARGEST_ERROR[n] for n in HELD_OUT} == dict.fromkeys(
        HELD_OUT, True
    )
    assert found.covered[16]


@pytest.mark.parametrize("seed", range(2))
def test_one_trace_foretells_twice_its_size(seed: int) -> None:
    assert abs(outcome(seed).from_one) <= LARGEST_FROM_ONE


def read(ceiling: Run, *arguments: str | Path) -> dict[str, Any]:
    ran = ceiling("scaling", *arguments, "--format", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    VALIDATOR.validate(found)
    return found


def unreasoned(value: Any, said: bool = False, path: str = "") -> list[str]:
    """Paths of nulls without a reason beside or around them."""
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in unreasoned(v, said, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [path] if value is None and not said else []
    said = said or bool(value.get("reason"))
    optional = {"plan", "finding", "price", "cost", "target", "whatif", "count", "farthest"}
    return [
        found
        for key, inner in value.items()
        if not (inner is None and key in optional)
        for found in unreasoned(inner, said, f"{path}.{key}")
    ]


def test_a_folder_of_folders_is_a_series(runs: Path, ceiling: Run) -> None:
    found = read(ceiling, runs)
    assert [point["n"] for point in found["points"]] == [1, 2, 4, 8]
    assert (found["base"], found["label"]) == (1, runs.name)
    assert found["points"][3]["speedup"] == pytest.approx(6.55, abs=0.01)
    assert [row["n"] for row in found["predict"]] == [1, 2, 4, 8, 16, 32]
    assert [law["id"] for law in found["laws"] if law["best"]] == ["classes"]
    assert {item["class"]: item["trend"] for item in found["classes"]}["compute"] == "falls"
    assert found["ceiling"]["value"] == pytest.approx(7.78, abs=0.05)
    assert found["plan"] is None


def test_every_null_has_a_reason(runs: Path, ceiling: Run) -> None:
    found = read(ceiling, runs, "--duration", "30d", "--gpus", "8,64", "--target", "1d")
    assert unreasoned(found) == []


def test_sizes_can_be_given_and_a_smaller_base_is_missing(runs: Path, ceiling: Run) -> None:
    found = read(ceiling, *(f"{n}={runs / f'on{n}'}" for n in (8, 2, 4)))
    assert [point["n"] for point in found["points"]] == [2, 4, 8]
    assert found["base"] == 2
    assert found["points"][0]["karp_flatt"] is None
    assert found["points"][2]["efficiency"] == pytest.approx(found["points"][2]["speedup"] / 4)


def test_two_sizes_say_what_is_missing_for_a_law(runs: Path, ceiling: Run) -> None:
    found = read(ceiling, runs / "on4", runs / "on8")
    assert found["laws"] == []
    assert "at least 3 are needed" in found["reason"]
    assert {row["step_ms"] for row in found["predict"]} == {None}
    assert unreasoned(found) == []


def test_a_size_that_is_not_the_files_is_told(runs: Path, ceiling: Run) -> None:
    found = read(ceiling, f"3={runs / 'on4'}", f"8={runs / 'on8'}")
    assert "The run given as 3 GPUs has 4 by its files." in found["differences"]


def test_two_runs_of_one_size_are_refused(runs: Path, ceiling: Run) -> None:
    ran = ceiling("scaling", runs / "on4", f"4={runs / 'on8'}")
    assert ran.code == 2
    assert "both of 4 GPUs" in ran.err


def test_beyond_four_times_is_refused_unless_forced(runs: Path, ceiling: Run) -> None:
    refused = read(ceiling, runs, "--gpus", "64")["predict"][-1]
    assert (refused["n"], refused["step_ms"]) == (64, None)
    assert refused["reason"].startswith("refused")
    forced = read(ceiling, runs, "--gpus", "64", "--beyond")["predict"][-1]
    assert forced["beyond"] is True
    assert forced["step_ms"] > 0


def test_a_plan_needs_the_length_of_the_run(runs: Path, ceiling: Run) -> None:
    ran = ceiling("scaling", runs, "--price", "2.5")
    assert ran.code == 2
    assert "--duration 30d" in ran.err


def test_a_path_multiplies_to_the_whole_and_what_is_not_reachable_names_the_ceiling(
    runs: Path, ceiling: Run
) -> None:
    ran = ceiling(
        "scaling", runs, "--duration", "30d", "--target", "14d", "--price", "2.5/gpu-hour"
    )
    assert ran.code == 0
    assert "14.0 d (2.14x today's speed) is reached on 16 GPUs after fixes 1 to 2:" in ran.line
    ran = ceiling("scaling", runs, "--duration", "30d", "--target", "5d")
    assert "is not reachable: with every fix, the ceiling is 13.0 d, on 32 GPUs" in ran.line
    assert "It would take fewer bytes or faster links." in ran.line


def test_all_files_are_written_and_repainted(runs: Path, ceiling: Run, tmp_path: Path) -> None:
    assert ceiling("scaling", runs, "--duration", "30d", "-o", tmp_path / "out").code == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["scaling.html", "scaling.json", "scaling.md"]
    again = ceiling("render", tmp_path / "out" / "scaling.json", "--format", "markdown")
    assert again.out == (tmp_path / "out" / "scaling.md").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "scaling.html").read_text(encoding="utf-8")
    for part in ("Speedup against", "Which class stands", "Plan", "How good the fit is"):
        assert part in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_terminal_shows_measured_beside_predicted(runs: Path, ceiling: Run) -> None:
    ran = ceiling("scaling", runs)
    assert ran.out.splitlines()[2].startswith("From 1 to 8 GPUs a step falls from 156 ms to 23.8")
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert ceiling("-q", "scaling", runs).out.startswith("From 1 to 8 GPUs")


def test_the_printed_schema_holds_a_series(ceiling: Run) -> None:
    assert "ScalingReport" in json.loads(ceiling("schema").out)["$defs"]
