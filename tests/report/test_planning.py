"""Days, GPU-hours, cost, and the path to a target, on a job one can reckon by hand.

Today 100 ms on 8 GPUs for 30 days: 60 ms are shared out, 40 are not; the two fixes take 20 and 10
of those away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from analyzer.report.plan import Plan
from analyzer.report.planning import Today, Wish, plan, shown_fixes

MS, DAY = 1e6, 86_400.0
FIXES = ("no-data-loading", "no-host-sync")
TODAY = Today(n=8, unit=1, step_ns=100 * MS, order=FIXES, measured=8, basis="replay", weak=False,
              scaling=frozenset({"compute"}))  # fmt: skip


class Job:
    """The job; it grows by 1 ms a doubling when each GPU keeps its batch."""

    def steps(self, fixes: Sequence[str], sizes: Sequence[int]) -> list[float]:
        kept = 40.0 - (20.0, 10.0)[0] * (len(fixes) > 0) - 10.0 * (len(fixes) > 1)
        return [(60.0 * 8 / n + kept) * MS for n in sizes]

    def grown(self, sizes: Sequence[int]) -> list[float]:
        return [(100.0 + math.log2(n / 8)) * MS for n in sizes]

    def classes(self, fixes: Sequence[str], n: int) -> Mapping[str, float]:
        return {"compute": 480.0 / n * MS, "comm_transfer": 8 * MS, "launch": 2 * MS}


def planned(today: Today = TODAY, **wish: object) -> Plan:
    return plan(Wish(30 * DAY, **wish), today, Job())  # type: ignore[arg-type]


def test_days_hours_and_cost_of_each_size_before_and_after_fixes() -> None:
    found = planned(gpus=(8, 16), price=2.5)
    rows = {(row.n, row.fixes): row for row in found.rows}
    assert set(rows) == {(8, 0), (16, 0), (8, 1), (16, 1), (8, 2), (16, 2)}
    today, both = rows[8, 0], rows[16, 2]
    assert (today.duration_s, today.gpu_hours, today.cost) == (30 * DAY, 5760.0, 14_400.0)
    # 16 GPUs, both fixes: 30 + 10 = 40 ms of 100.
    assert both.duration_s == pytest.approx(12 * DAY)
    assert both.gpu_hours == pytest.approx(16 * 12 * 24)
    assert both.cost == pytest.approx(11_520)


def test_without_a_price_there_is_no_cost() -> None:
    assert {row.cost for row in planned(gpus=(8,)).rows} == {None}


def test_sizes_default_to_one_two_and_four_times_today() -> None:
    assert [row.n for row in planned().rows if row.fixes == 0] == [8, 16, 32]


def test_sizes_beyond_four_times_are_marked() -> None:
    assert {row.n: row.beyond for row in planned(gpus=(32, 33)).rows} == {32: False, 33: True}


def test_sizes_that_may_not_be_predicted_are_refused() -> None:
    rows = planned(replace(TODAY, farthest=32), gpus=(32, 64)).rows
    assert {row.n: row.step_ms is None for row in rows} == {32: False, 64: True}
    assert rows[1].reason.startswith("Refused: 64 GPUs")


def test_gpus_that_make_no_whole_replica_are_refused() -> None:
    (row,) = [row for row in planned(replace(TODAY, unit=4), gpus=(6,)).rows if row.fixes == 0]
    assert (row.duration_s, row.reason) == (None, "6 GPUs are no whole number of replicas of 4")


def test_two_roads_each_with_its_number() -> None:
    amdahl, gustafson = planned(gpus=(32,)).roads
    # 15 + 10 = 25 ms of 100; at any number of GPUs 10.
    assert (amdahl.id, amdahl.fixes, amdahl.duration_s) == ("amdahl", 2, pytest.approx(7.5 * DAY))
    assert amdahl.limit_s == pytest.approx(3 * DAY, rel=1e-3)
    # 102 ms, a quarter of the steps.
    assert gustafson.duration_s == pytest.approx(30 * 1.02 / 4 * DAY)
    assert gustafson.limit_s is None


def test_a_target_is_a_path_of_factors_that_multiply_to_the_whole() -> None:
    target = planned(target_s=15 * DAY).target
    assert target is not None
    first = target.paths[0]
    assert (first.n, first.fixes) == (16, 2)
    assert [f.what for f in first.factors] == ["no-data-loading", "no-host-sync", "gpus"]
    assert {f.basis for f in first.factors} == {"replay"}
    assert [f.speedup for f in first.factors] == pytest.approx([100 / 80, 80 / 70, 70 / 40])
    for path in target.paths:
        product = math.prod(f.speedup for f in path.factors)
        assert product == pytest.approx(path.speedup)
        assert path.speedup == pytest.approx(30 * DAY / path.duration_s)
        assert path.duration_s <= 15 * DAY


def test_the_path_with_the_fewest_gpu_hours_comes_first() -> None:
    target = planned(target_s=15 * DAY).target
    assert target is not None
    inside = [p.gpu_hours for p in target.paths if not p.beyond]
    assert inside == sorted(inside)


def test_below_the_ceiling_nothing_is_reachable_and_what_is_left_is_named() -> None:
    target = planned(target_s=2 * DAY).target
    assert target is not None
    assert target.paths == []
    assert target.ceiling_s == pytest.approx(3 * DAY, rel=1e-3)
    assert target.left_ms[0] == ("comm_transfer", 8.0)
    assert target.text == (
        "It would take fewer bytes or faster links and fewer, larger kernels or graphs of them."
    )


def test_what_only_a_refused_size_reaches_is_said_to_be_so() -> None:
    target = planned(replace(TODAY, farthest=32), target_s=5 * DAY).target
    assert target is not None
    assert target.paths == []
    assert target.text.startswith("Only more than 32 GPUs, four times the largest run, might")


def test_where_the_batch_of_a_gpu_is_fixed_more_gpus_need_fewer_steps() -> None:
    found = planned(replace(TODAY, weak=True, order=()), gpus=(16,))
    assert found.rows[0].duration_s == pytest.approx(30 * 0.7 / 2 * DAY)
    assert found.roads == []


@pytest.mark.parametrize(("order", "shown"), [((), [0]), (("a",), [0, 1]), (("a",) * 2, [0, 1, 2]),
                                              (("a",) * 5, [0, 1, 3])])  # fmt: skip
def test_the_first_fix_and_the_first_three_are_shown(
    order: Sequence[str], shown: list[int]
) -> None:
    assert shown_fixes(order) == shown
