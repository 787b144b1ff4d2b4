"""The POP product and TALP's device branch: golden figures, what is undefined, and the shares."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import trace
from runs import exposed, loaded

from analyzer.ranks.efficiencies import (
    DEVICE,
    POP,
    efficiencies,
    pop,
    shares_of_loss,
    talp_device,
)

USEFUL = (90.0, 95.0, 100.0, 75.0)
ACTIVE = (110.0, 112.0, 118.0, 100.0)
TIMES = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=5)


def test_the_golden_product_g9() -> None:
    found = pop(USEFUL, 125.0, ideal=110.0)
    assert [found[name] for name in POP] == pytest.approx([0.72, 0.9, 0.8, 100 / 110, 0.88])


def test_the_golden_device_branch() -> None:
    found = talp_device(USEFUL, ACTIVE, 125.0)
    assert [found[name] for name in DEVICE] == pytest.approx([0.72, 0.9, 100 / 118, 0.944])


def test_the_golden_shares_of_loss() -> None:
    shares = shares_of_loss({"balance": 0.9, "serialisation": 100 / 110, "transfer": 0.88})
    assert {name: round(share, 3) for name, share in shares.items()} == {
        "balance": 0.321,
        "serialisation": 0.290,
        "transfer": 0.389,
    }


def test_without_an_ideal_network_its_factors_are_unknown() -> None:
    found = pop(USEFUL, 125.0)
    assert (found["serialisation_efficiency"], found["transfer_efficiency"]) == (None, None)
    assert found["communication_efficiency"] == pytest.approx(0.8)


@pytest.mark.parametrize(("useful", "total"), [((), 1.0), ((0.0, 0.0), 1.0), ((1.0,), 0.0)])
def test_without_time_nothing_is_defined(useful: tuple[float, ...], total: float) -> None:
    assert pop(useful, total, ideal=1.0) == dict.fromkeys(POP)
    assert talp_device(useful, useful, total) == dict.fromkeys(DEVICE)


def test_no_loss_has_no_shares_and_a_total_loss_none_that_are_defined() -> None:
    assert shares_of_loss({"a": 1.0, "b": 1.0}) == {"a": 0.0, "b": 0.0}
    assert shares_of_loss({"a": 0.0, "b": 0.5}) == {}


@settings(deadline=None)
@given(TIMES, st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_the_factors_multiply_to_the_product(useful: list[float], more: float, idle: float) -> None:
    active = [u + more for u in useful]
    total = max(active) + idle
    host, device = pop(useful, total, ideal=max(active)), talp_device(useful, active, total)
    assert all(value is not None and 0.0 < value <= 1.0 + 1e-12 for value in host.values())
    values = {name: value or 0.0 for name, value in {**host, **device}.items()}
    product = values["load_balance"] * values["communication_efficiency"]
    assert values["parallel_efficiency"] == pytest.approx(product)
    split = values["serialisation_efficiency"] * values["transfer_efficiency"]
    assert values["communication_efficiency"] == pytest.approx(split)
    branch = values["device_load_balance"] * values["device_communication_efficiency"]
    assert values["device_parallel_efficiency"] == pytest.approx(
        branch * values["device_orchestration_efficiency"]
    )


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=2), st.floats(0.01, 0.99), min_size=1, max_size=4))
def test_shares_of_loss_add_up_to_one(factors: dict[str, float]) -> None:
    assert sum(shares_of_loss(factors).values()) == pytest.approx(1.0)


def test_a_job_is_measured_over_its_slowest_ranks_step(tmp_path: Path) -> None:
    """Rank 1 computes 1200 us, rank 0 900 and waits 300; both transfer 100."""
    built = {"rank0.json": exposed(0, wait=300), "rank1.json": exposed(1, compute=1200)}
    found = efficiencies(loaded(tmp_path, dict(built)).job)
    assert found.values["load_balance"] == pytest.approx(1050 / 1200)
    assert found.values["parallel_efficiency"] == pytest.approx(1050 / 1300)
    assert found.values["device_communication_efficiency"] == pytest.approx(1200 / 1300)
    assert found.values["device_orchestration_efficiency"] == pytest.approx(1.0)
    assert found.loss["device_orchestration_efficiency"] == pytest.approx(0.0)


def test_missing_ranks_are_said(tmp_path: Path) -> None:
    found = efficiencies(loaded(tmp_path, {f"rank{r}.json": exposed(r, 4) for r in (0, 1)}).job)
    assert found.reason.startswith("of the 2 ranks of 4 that were recorded; ")


def test_one_rank_has_no_balance(tmp_path: Path) -> None:
    found = efficiencies(loaded(tmp_path, {"rank0.json": exposed(0)}).job)
    assert set(found.values.values()) == {None}
    assert "only one rank" in found.reason


def test_a_job_without_a_device_has_no_efficiencies(tmp_path: Path) -> None:
    built = {f"rank{r}.json": trace(r, 2).op("aten::add", 0, 50) for r in (0, 1)}
    found = efficiencies(loaded(tmp_path, dict(built)).job)
    assert set(found.values.values()) == {None}
    assert "no device work" in found.reason
