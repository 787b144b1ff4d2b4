"""A finding names the step of the rank that has most of its time, in that file's own times."""

from __future__ import annotations

from pathlib import Path

from make import BASE_NS, SCENE_NS
from runs import exposed, healthy, loaded

from analyzer.report.document import Spot
from analyzer.report.spots import spot


def test_the_spot_is_where_most_of_the_class_is(tmp_path: Path) -> None:
    built = [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]
    job = loaded(tmp_path, {f"rank{r}.json": one for r, one in enumerate(built)}).job
    found = spot(job, "compute")
    assert found is not None
    assert (found.rank, found.file, found.ms) == (1, "rank1.json", 1.2)
    assert found.step in {step.number for step in job.steps}


def test_times_are_those_that_the_file_holds(tmp_path: Path) -> None:
    job = loaded(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)}).job
    found = spot(job, "compute")
    # Step 2, the first that counts, ends with the kernel of its mark, at 2,020 us of the scene.
    zero = (SCENE_NS - BASE_NS) / 1000
    assert found == Spot(
        rank=0, step=2, cycle=0, file="rank0.json", start_us=zero + 1020, end_us=zero + 2020, ms=1.0
    )


def test_a_class_without_time_has_no_spot(tmp_path: Path) -> None:
    job = loaded(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)}).job
    assert spot(job, "host_sync") is None
