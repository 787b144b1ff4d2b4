"""Laws fitted to several world sizes, tested on what they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.scaling import laws
from analyzer.scaling.fit import AMDAHL, CLASSES, USL, fit, fit_usl
from analyzer.scaling.observe import Observation
from analyzer.scaling.overlap import traffic
from analyzer.scaling.serial import Mode

MS = 1e6
SIX = (1, 2, 4, 8, 16, 32)


def run(n: int, classes: Mapping[str, float], hidden: float = 0.0, room: float = 0.0,
        half: float | None = 0.001) -> Observation:  # fmt: skip
    """A run with the classes in ms."""
    ns = {name: ms * MS for name, ms in classes.items()}
    return Observation(n, ns, traffic(ns, hidden * MS, room * MS), half)


def runs(sizes: Sequence[int], step: Callable[[int], float]) -> list[Observation]:
    """Runs of which nothing but the step is known."""
    return [run(n, {"host_sync": step(n)}) for n in sizes]


def test_usl_of_exact_data_is_found_exactly() -> None:
    found = fit_usl(runs(SIX, lambda n: 100.0 / laws.usl(n, 0.03, 5e-4)), "strong")
    assert found.parameters["sigma"] == pytest.approx(0.03)
    assert found.parameters["kappa"] == pytest.approx(5e-4)
    assert found.parameters["peak"] == pytest.approx(44.045, abs=1e-3)
    assert found.parameters["one_gpu_ns"] == pytest.approx(100 * MS)
    assert found.remark == ""


def test_usl_needs_no_run_on_one_gpu() -> None:
    found = fit_usl(runs(SIX[1:], lambda n: 100.0 / laws.usl(n, 0.03, 5e-4)), "strong")
    assert found.parameters["sigma"] == pytest.approx(0.03)
    assert found.parameters["one_gpu_ns"] == pytest.approx(100 * MS)


def test_usl_of_throughput_where_the_batch_of_a_gpu_is_fixed() -> None:
    found = fit_usl(runs(SIX, lambda n: 100.0 * n / laws.usl(n, 0.03, 5e-4)), "weak")
    assert found.parameters["kappa"] == pytest.approx(5e-4)
    assert found.at(64) / MS == pytest.approx(6400 / laws.usl(64, 0.03, 5e-4))


@pytest.mark.parametrize(("sizes", "label"), [(SIX[:4], "weak: 4 sizes"), (SIX[:5], "weak: 5")])
def test_usl_of_four_or_five_sizes_is_weak(sizes: Sequence[int], label: str) -> None:
    assert fit_usl(runs(sizes, lambda n: 100.0 / n), "strong").remark.startswith(label)


def test_usl_of_three_sizes_is_none() -> None:
    found = fit_usl(runs(SIX[:3], lambda n: 100.0 / n), "strong")
    assert (found.loo_error, found.parameters) == (None, {})
    assert found.reason.startswith("3 sizes")


def test_superlinear_data_is_named_and_refitted_within_bounds() -> None:
    found = fit_usl(runs(SIX, lambda n: 100.0 / n**1.05), "strong")
    assert "superlinear" in found.remark
    assert found.parameters["sigma"] == 0.0


def test_data_of_amdahl_are_predicted_without_error_by_every_law() -> None:
    found = fit(runs(SIX[:4], lambda n: 5.0 + 80.0 / n), "strong")
    assert found.fitted[AMDAHL].loo_error == pytest.approx(0.0, abs=1e-9)
    assert found.fitted[AMDAHL].parameters["s"] == pytest.approx(5 / 85)
    assert found.predict(32).step == pytest.approx(7.5 * MS)


def worked(n: int) -> Observation:
    """The worked step of the methods (G7) at N GPUs: ring growth of its transfer."""
    share = (n - 1) / n / (7 / 8)
    return run(n, {"compute": 480 / n, "optimizer": 6.0, "comm_transfer": 14 * share,
                   "data_loading": 64 / n, "launch": 10.0})  # fmt: skip


def test_classes_foretell_the_worked_example() -> None:
    found = fit([worked(n) for n in (1, 2, 4, 8)], "strong")
    assert found.best == CLASSES
    assert (found.predict(32).step or 0) / MS == pytest.approx(50.5 - 2.0)
    assert {name: law.trend for name, law in found.by_class.fits.items()} == {
        "compute": "falls", "optimizer": "flat", "data_loading": "falls", "launch": "flat"
    }  # fmt: skip


def test_communication_that_compute_hid_comes_out() -> None:
    """20 ms of communication beside 4 of 8 parts of the compute, of which 2 ms are the tail."""

    def at(n: int) -> Observation:
        moved = 20 * (n - 1) / n
        exposed = max(0.1 * moved, moved - 400 / n)
        return run(n, {"compute": 800 / n, "comm_transfer": exposed}, moved - exposed, 400 / n)

    found = fit([at(n) for n in (1, 2, 4, 8)], "strong")
    assert found.by_class.hidden.tail == pytest.approx(0.1)
    assert (found.predict(32).step or 0) / MS == pytest.approx(at(32).step / MS)


class Replay:
    """A replay that says what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, float]] = []

    def steps(self, sizes: Sequence[Mapping[str, float]]) -> list[float]:
        self.asked += [dict(factors) for factors in sizes]
        return [factors["compute"] * 60 * MS + 40 * MS for factors in sizes]

    def classes(self, factors: Mapping[str, float]) -> dict[str, float]:
        return {"compute": factors["compute"] * 60 * MS}


def test_the_nearest_run_is_replayed_with_its_work_as_the_fits_say() -> None:
    replay = Replay()
    seen = [worked(n) for n in (1, 2, 4)]
    largest = worked(8)
    seen.append(Observation(8, largest.classes, largest.traffic, 0.001, resize=replay))
    found = fit(seen, "strong")
    assert found.by_class.at(16) == pytest.approx(70 * MS)
    asked = replay.asked[-1]
    assert asked["compute"] == pytest.approx(0.5)
    assert asked["optimizer"] == pytest.approx(1.0)
    assert asked["bytes"] == pytest.approx((15 / 16) / (7 / 8))


@pytest.mark.parametrize("sizes", [(8,), (4, 8)])
def test_fewer_than_three_sizes_fit_no_law(sizes: Sequence[int]) -> None:
    found = fit([worked(n) for n in sizes], "strong")
    assert (found.best, found.fitted) == (None, {})
    assert "at least 3 are needed" in found.predict(16).reason
    with pytest.raises(ValueError, match="No law was fitted"):
        found.step(16)


def test_beyond_four_times_the_largest_run_nothing_is_predicted() -> None:
    found = fit([worked(n) for n in (1, 2, 4, 8)], "strong")
    refused = found.predict(33)
    assert (refused.step, refused.lo) == (None, None)
    assert refused.reason == "refused: 33 GPUs are more than 4 times the largest run (8)"
    assert found.predict(32).step is not None
    assert found.predict(64, forced=True).step == pytest.approx(found.step(64))


def test_intervals_widen_with_each_doubling() -> None:
    found = fit([worked(n) for n in (1, 2, 4, 8)], "strong")
    assert found.half(8) < found.half(32) < found.half(64)
    at = found.predict(32)
    assert (at.lo or 0.0) < (at.step or 0.0) < (at.hi or 0.0)


def test_a_step_that_stays_is_the_law_of_weak_scaling() -> None:
    mode: Mode = "weak"
    found = fit([run(n, {"compute": 90.0, "launch": 10.0}) for n in (1, 2, 4)], mode)
    assert found.predict(8).step == pytest.approx(100 * MS)
    assert found.fitted[AMDAHL].remark.startswith("with the batch of a GPU fixed")
    assert found.fitted[USL].loo_error is None


def test_two_runs_of_one_size_are_refused() -> None:
    with pytest.raises(ValueError, match="different sizes"):
        fit([worked(8), worked(8)], "strong")


parts = st.integers(0, 100)


@given(shared=st.integers(1, 100), kept=parts, moved=parts)
@settings(max_examples=30)
def test_what_the_families_hold_is_foretold_exactly(shared: int, kept: int, moved: int) -> None:
    def at(n: int) -> Observation:
        return run(n, {"compute": shared / n, "host_sync": kept,
                       "comm_transfer": moved * (n - 1) / n})  # fmt: skip

    found = fit([at(n) for n in (1, 2, 4, 8)], "strong")
    assert found.by_class.at(16) == pytest.approx(at(16).step, rel=1e-6)
