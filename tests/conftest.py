"""Every report.json that a test writes is held against the published schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from analyzer.report import document

VALIDATOR = Draft202012Validator(document.schema())


@pytest.fixture(autouse=True)
def written_reports_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    folder = request.node.funcargs.get("tmp_path")
    for path in sorted(folder.rglob("report.json")) if isinstance(folder, Path) else []:
        VALIDATOR.validate(json.loads(path.read_bytes()))
