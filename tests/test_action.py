"""The GitHub action and the documented workflows: well-formed, careful, true to the options."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from jsonschema import Draft202012Validator

yaml: Any = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
SNIPPETS = re.findall(
    r"```yaml\n# \.github/workflows/(\S+)\n(.*?)```",
    (ROOT / "docs/pull-requests.md").read_text(),
    re.DOTALL,
)
WORKFLOWS: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in SNIPPETS}
WORDS = {"type": "string", "minLength": 1}
STEP = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("name", "id", "if", "uses", "run", "shell"), WORDS),
        "env": {"type": "object", "additionalProperties": WORDS},
        "with": {"type": "object"},
        "continue-on-error": {"type": "boolean"},
    },
    "oneOf": [{"required": ["uses"]}, {"required": ["run"]}],
}
ACTION_SCHEMA = {
    "type": "object",
    "required": ["name", "description", "inputs", "outputs", "runs"],
    "properties": {
        "inputs": {
            "additionalProperties": {
                "required": ["description"],
                "additionalProperties": False,
                "properties": {
                    "description": WORDS,
                    "required": {"const": True},
                    "default": {"type": "string"},
                },
            }
        },
        "outputs": {
            "additionalProperties": {
                "required": ["description", "value"],
                "properties": {
                    "value": {"pattern": r"^\$\{\{ steps\.report\.outputs\.[a-z-]+ \}\}$"}
                },
            }
        },
        "runs": {
            "required": ["using", "steps"],
            "properties": {
                "using": {"const": "composite"},
                "steps": {"items": {"allOf": [STEP, {"required": ["shell"]}]}},
            },
        },
    },
}
WORKFLOW_SCHEMA = {
    "type": "object",
    "required": ["name", "permissions", "jobs"],
    "properties": {
        "jobs": {
            "additionalProperties": {
                "required": ["runs-on", "steps"],
                "properties": {"steps": {"minItems": 1, "items": STEP}},
            }
        }
    },
}


def told(tmp_path: Path, **inputs: str) -> list[str]:
    """The arguments that the action's script gives to `ceiling`, one a line."""
    program = tmp_path / "torch-ceiling" / "bin" / "ceiling"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    defaults = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
    given = {name.upper().replace("-", "_"): value for name, value in defaults.items()}
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "report")
    ran = subprocess.run(
        [str(shutil.which("bash")), "-eo", "pipefail", "-c", step["run"]],
        env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), **given, **inputs},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


def test_the_action_is_well_formed() -> None:
    Draft202012Validator(ACTION_SCHEMA).validate(ACTION)


def test_every_input_reaches_the_script() -> None:
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "report")
    wanted = {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    assert set(step["env"].values()) == wanted
    # what comes from outside reaches the shell as a variable, never as text of the script
    assert "${{" not in step["run"]


def test_traces_and_gates_are_passed_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text("{}")
    lines = told(
        tmp_path,
        TRACES="run one/\nrun/rank*.json\n",
        BASELINE="main.json",
        FAIL_ON="slower:5%\nstep_ms > 105",
        WARN_ON="f>0.3",
    )
    assert lines == [
        *("analyze", "--github", "--force", "-o", "ceiling-report"),
        *("--comment-id", "default", "--baseline", "main.json"),
        *("--fail-on", "slower:5%", "--fail-on", "step_ms > 105", "--warn-on", "f>0.3"),
        *("--", "run one/", "run/rank*.json"),
    ]


def test_the_options_exist(tmp_path: Path, ceiling: Run) -> None:
    command, *rest = told(tmp_path, TRACES="traces/", FAIL_ON="f>0.3", WARN_ON="f>0.2")
    assert ceiling(command, "--help", *rest).code == 0


def test_without_a_run_before_what_needs_one_is_left_out(tmp_path: Path) -> None:
    lines = told(tmp_path, TRACES="traces/", BASELINE="gone.json", FAIL_ON="slower:5%\nf>0.3")
    assert "--baseline" not in lines
    assert "slower:5%" not in lines
    assert lines[-4:] == ["--fail-on", "f>0.3", "--", "traces/"]


@pytest.mark.parametrize("name", ["performance.yml", "performance-comment.yml"])
def test_the_workflows_of_the_readme_are_well_formed(name: str) -> None:
    Draft202012Validator(WORKFLOW_SCHEMA).validate(WORKFLOWS[name])


def test_what_runs_code_of_a_pull_request_may_write_nothing() -> None:
    assert set(WORKFLOWS["performance.yml"]["permissions"].values()) == {"read"}


def test_what_may_write_a_comment_runs_no_code_of_a_pull_request() -> None:
    comment = WORKFLOWS["performance-comment.yml"]
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    (step,) = comment["jobs"]["comment"]["steps"]
    assert "${{" not in step["run"]
    assert "uses" not in step


def test_the_second_workflow_follows_the_first() -> None:
    # YAML 1.1 reads the key "on" as true
    after = WORKFLOWS["performance-comment.yml"][True]["workflow_run"]
    assert after["workflows"] == [WORKFLOWS["performance.yml"]["name"]]
