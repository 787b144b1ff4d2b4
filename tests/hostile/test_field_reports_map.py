"""The table of field reports in tests/README.md is complete and names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from analyzer.findings.glossary import entry

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([ACO]\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
ROWS = ROW.findall((TESTS / "README.md").read_text())
ELSEWHERE = {"C23", "C24"}


def test_every_kind_of_field_report_has_a_row() -> None:
    wanted = [f"A{i}" for i in range(1, 8)]
    wanted += [f"C{i}" for i in range(1, 25)] + [f"O{i}" for i in range(1, 41)]
    assert list(dict.fromkeys(kind for kind, _, _ in ROWS)) == wanted


@pytest.mark.parametrize(
    "where", sorted({where for kind, _, where in ROWS if kind not in ELSEWHERE})
)
def test_a_row_names_a_test_that_exists(where: str) -> None:
    file, name = where.split("[")[0].split("::")
    tree = ast.parse((TESTS / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("kind, where", [(k, w) for k, _, w in ROWS if k.startswith("O")])
def test_a_rebuilt_report_says_its_number(kind: str, where: str) -> None:
    file, name = where.split("::")
    tree = ast.parse((TESTS / file).read_text())
    (test,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    assert (ast.get_docstring(test) or "").split(":")[0] == kind


READINGS = {
    "class-comm_transfer": ("comm_transfer", "it may slow that compute down"),
    "class-compute": ("compute", "no utilisation of the hardware"),
    "caveat-profiler-overhead": ("profiler-overhead", "step time"),
}


@pytest.mark.parametrize("id, said", READINGS.values(), ids=READINGS)
def test_the_limit_of_a_reading_is_told(id: str, said: str) -> None:
    """C6, C17, C18"""
    assert said in entry(id).limits.lower()
