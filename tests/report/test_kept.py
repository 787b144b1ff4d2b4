"""Rows of a job of thousands: capped, and the ranks that stick out are among them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from runs import healthy, loaded, write_run

from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import Late
from analyzer.report import kept
from analyzer.report.document import InputFile


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """64 ranks; rank 40 is the slowest, 9 the fastest, and 23 is late without being either."""
    one = loaded(tmp_path, {"rank0.json": healthy(0, 1)}).job
    times = {rank: np.array([1000.0 + rank % 7]) for rank in range(64)}
    times |= {40: np.array([2000.0]), 9: np.array([500.0])}
    late = [Late(23, 1.0, 0.1, 0.5, [1], [])]
    return replace(one, by_rank=times, together=replace(one.together, late=late))


def test_a_job_of_few_ranks_has_rows_of_all(job: Job) -> None:
    assert kept.ranks(job, 64) == list(range(64))
    assert kept.notes(job, kept.ranks(job, 64)) == []


def test_rows_are_capped_in_order_with_the_outliers_among_them(job: Job) -> None:
    rows = kept.ranks(job, 16)
    assert len(rows) == 16
    assert rows == sorted(set(rows))
    assert {40, 9, 23} <= set(rows)


def test_the_others_are_chosen_evenly(job: Job) -> None:
    rows = kept.ranks(job, 16)
    quarters = [
        sum(quarter * 16 <= rank < quarter * 16 + 16 for rank in rows) for quarter in range(4)
    ]
    assert min(quarters) >= 2


def test_how_many_rows_are_missing_is_told(job: Job) -> None:
    ((caveat, text),) = kept.notes(job, kept.ranks(job, 16))
    assert caveat == "rows-left-out"
    assert text.startswith("Rows of 16 of 64 ranks are listed: ")


def test_files_of_other_ranks_go_and_the_first_skipped_ones_stay() -> None:
    files = [InputFile(name=n, rank=r, bytes=1, events=1) for n, r in
             (("a", 0), ("x", None), ("b", 1), ("y", None), ("c", 2), ("z", None))]  # fmt: skip
    assert [f.name for f in kept.files(files, [0, 2], most=2)] == ["a", "x", "y", "c"]


def test_the_report_tells_it_and_means_are_over_all(
    tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", 10)
    whole = json.loads(ceiling("analyze", folder, "--format", "json").out)
    monkeypatch.setattr(kept.ranks, "__defaults__", (8,))
    capped = json.loads(ceiling("analyze", folder, "--format", "json").out)
    assert len(capped["breakdown"]["per_rank"]) == len(capped["run"]["files"]) == 8
    assert capped["breakdown"]["mean_ms"] == whole["breakdown"]["mean_ms"]
    assert capped["run"]["ranks_present"] == list(range(10))
    assert "rows-left-out" in {caveat["id"] for caveat in capped["quality"]}
