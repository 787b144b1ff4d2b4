"""The replay at another size does what the same job simulated at that size does."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from referee.draws import Draws
from referee.job import Job
from referee.kineto import write
from referee.program import step_program
from referee.simulate import simulate
from referee.truth import step_ends

from analyzer import api
from analyzer.classify.classes import CLASSES
from analyzer.config import Settings
from analyzer.whatif.resize import Resizer, resizer

JOB = Job(seed=3, ranks=4, layers=3, kernel_us=200.0, layer_bytes=60_000_000, jitter=0.0,
          host_jitter=0.0, recorded=6, collective_latency_us=20.0)  # fmt: skip


def true_step(job: Job) -> float:
    ends = step_ends(simulate(Draws(job, step_program(job))))
    rows = [row[k] - row[k - 1] for row in ends for k in range(job.warmup, len(row))]
    return sum(rows) / len(rows)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Resizer:
    folder = tmp_path_factory.mktemp("job")
    write(JOB, simulate(Draws(JOB, step_program(JOB)), keep_calls=True), folder)
    loaded = api.load(api.digests([str(folder)], Settings(), jobs=1), settings=Settings())
    made = resizer(loaded.job, Settings().thresholds)
    assert made is not None
    return made


def test_unchanged_it_is_the_recorded_step(found: Resizer) -> None:
    (step,) = found.steps([{}])
    assert step == pytest.approx(found.job.step_ns)
    assert found.error < 0.01


def test_compute_of_a_quarter_uncovers_communication(found: Resizer) -> None:
    (step,) = found.steps([{"compute": 0.25}])
    truth = true_step(replace(JOB, kernel_us=50.0))
    assert step == pytest.approx(truth, rel=0.01)
    classes = found.classes({"compute": 0.25})
    assert sum(classes.values()) == pytest.approx(step)
    assert classes["comm_transfer"] > found.job.mean_ns["comm_transfer"]


def test_kernels_too_short_for_the_host_make_the_step_late(found: Resizer) -> None:
    (step,) = found.steps([{"compute": 0.01}])
    truth = true_step(replace(JOB, kernel_us=2.0))
    assert step == pytest.approx(truth, rel=0.02)


def test_twice_the_bytes_take_longer(found: Resizer) -> None:
    (step,) = found.steps([{"compute": 0.25, "bytes": 2.0, "hops": 2.0}])
    truth = true_step(replace(JOB, kernel_us=50.0, layer_bytes=120_000_000,
                              collective_latency_us=40.0))  # fmt: skip
    assert step == pytest.approx(truth, rel=0.01)


def test_sizes_come_back_in_the_order_asked(found: Resizer) -> None:
    quarter, same, again = found.steps([{"compute": 0.25}, {}, {"compute": 0.25}])
    assert quarter == again < same


def test_edits_are_made_before(found: Resizer) -> None:
    (step,) = found.after(["no-optimizer"]).steps([{}])
    assert step < found.steps([{}])[0]
    assert set(found.after(["no-optimizer"]).classes({})) == set(CLASSES)
