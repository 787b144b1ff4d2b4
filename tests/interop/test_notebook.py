"""A report shows itself in a notebook, and the example notebook runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from example import example
from msgspec.structs import replace

from analyzer import api
from analyzer.report.document import Report

DOCS = Path(__file__).parent.parent.parent / "docs"
MOST_BYTES = 40_000


def shown(report: Report) -> str:
    """What IPython asks a value for."""
    assert api
    text: str = report._repr_html_()  # type: ignore[attr-defined]
    return text


def test_a_notebook_shows_the_verdict_the_chart_and_the_findings() -> None:
    report = example()
    text = shown(report)
    assert report.verdict.text in text.replace("\u00a0", " ")
    assert "<svg" in text
    assert all(item.title in text for item in report.findings)


def test_a_name_from_a_trace_is_text_in_a_notebook() -> None:
    report = example()
    hostile = replace(report, run=replace(report.run, label="<script>alert(1)</script>"))
    assert "<script>" not in shown(hostile)


@pytest.fixture(scope="module")
def maker() -> Any:
    for needed in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(needed)
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("make_notebook")
    finally:
        sys.path.remove(str(DOCS))


@pytest.mark.filterwarnings("default")
def test_the_example_notebook_runs_as_it_stands_and_is_what_the_script_writes(
    maker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    nbformat = importlib.import_module("nbformat")
    stored = nbformat.read(maker.NOTEBOOK, as_version=4)
    fresh = maker.executed(maker.notebook())
    assert [cell.source for cell in stored.cells] == [cell.source for cell in fresh.cells]
    for then, now in zip(stored.cells, fresh.cells, strict=True):
        assert len(then.get("outputs", ())) == len(now.get("outputs", ()))


def test_the_example_notebook_is_small_and_names_no_place_of_its_maker() -> None:
    text = (DOCS / "report.ipynb").read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert '"outputs": []' not in text
    assert "file:///" not in text
    assert "/home/" not in text
