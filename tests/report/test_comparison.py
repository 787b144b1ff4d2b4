"""compare.json: what is promised of it, and that nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import VALIDATOR
from sides import compared, loading_fixed, run

from analyzer.errors import UnusableInput
from analyzer.report import comparison, document
from analyzer.report.schema import schema

PARTS = schema()["$defs"]
PROMISED = {
    "Comparison": "schema_version verdict comparable before after waterfall findings kernels gates",
    "Outcome": "text outcome ratio",
    "Ratio": "value lo hi",
    "Comparable": "ok differences",
    "Side": "run steps breakdown scaling",
    "Bar": "class before_ms after_ms delta_ms lo hi",
    "FindingChange": "id status",
}


@pytest.mark.parametrize("part", PROMISED)
def test_every_promised_name_is_in_the_schema(part: str) -> None:
    assert set(PROMISED[part].split()) <= set(PARTS[part]["properties"])


@pytest.mark.parametrize("found", [loading_fixed(), compared(run(), run(world_size=2))])
def test_json_and_back_is_the_same(found: comparison.Comparison) -> None:
    text = comparison.dumps(found)
    assert comparison.loads(text) == found
    assert comparison.dumps(comparison.loads(text)) == text
    VALIDATOR.validate(json.loads(text))


def test_numbers_that_json_lacks_do_not_occur() -> None:
    text = comparison.dumps(loading_fixed()).decode()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_report_is_no_comparison_and_neither_is_anything_else(tmp_path: Path) -> None:
    kinds = {
        "compare.json": (comparison.dumps(loading_fixed()), True),
        "report.json": (document.dumps(run()), False),
        "other.json": (b"[1, 2]", False),
        "cut.json": (b'{"waterfall": [', False),
    }
    for name, (text, expected) in kinds.items():
        (tmp_path / name).write_bytes(text)
        assert comparison.is_comparison(tmp_path / name) is expected


def test_a_newer_or_foreign_file_is_refused_with_its_name() -> None:
    newer = comparison.dumps(loading_fixed()).replace(
        b'"schema_version": 1', b'"schema_version": 9', 1
    )
    with pytest.raises(UnusableInput, match=r"c\.json: schema_version is 9"):
        comparison.loads(newer, "c.json")
    with pytest.raises(UnusableInput, match=r"c\.json: not a comparison"):
        comparison.loads(document.dumps(run()), "c.json")
