"""Running the command line in a test; every report.json written is held against the schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator
from runs import write_run

from analyzer.cli import run
from analyzer.report.schema import schema

VALIDATOR = Draft202012Validator(schema())


@pytest.fixture(autouse=True)
def written_reports_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    folder = request.node.funcargs.get("tmp_path")
    folders = [folder] if isinstance(folder, Path) else []
    names = ("report.json", "compare.json")
    for path in (path for root in folders for name in names for path in sorted(root.rglob(name))):
        VALIDATOR.validate(json.loads(path.read_bytes()))


@pytest.fixture(autouse=True)
def cache_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No test sees the user's cache, nor that of another test."""
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "torch-ceiling"


class Ran(NamedTuple):
    """What a command line left behind."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """Both streams with single spaces."""
        return " ".join((self.out + " " + self.err).split())


Run = Callable[..., Ran]


@pytest.fixture
def ceiling(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Runs the command line in this process, in a folder without a configuration."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1760000000")
    monkeypatch.chdir(tmp_path)

    def ran(*arguments: str | Path) -> Ran:
        code = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ran(code, out, err)

    return ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The healthy run of two ranks."""
    return write_run(tmp_path / "ddp")
