"""Offsets between clocks, from what no rank can do: leave a collective before all are there."""

from __future__ import annotations

import numpy as np
import pytest
from crew import Block, Model, joined, member, named, record, run
from hypothesis import given
from hypothesis import strategies as st

from analyzer.ranks.clocks import SLACK_NS, align, offset_between
from analyzer.ranks.collectives import match
from analyzer.ranks.member import Member

# methods.md, G12: arrivals and ends of two ranks, each on its own clock.
FIRST = [(1000, 1500), (3000, 3400), (6000, 6900)]
SECOND = [(900, 1200), (2600, 3100), (6200, 6600)]


def column(rows: list[tuple[int, int]], side: int) -> np.ndarray:
    return np.array([row[side] for row in rows], np.int64)


def golden() -> list[Member]:
    return [
        member(r, [named(a, b, i, [0, 1]) for i, (a, b) in enumerate(rows)], steps={1: (0, 7000)})
        for r, rows in enumerate((FIRST, SECOND))
    ]


def two(shift_us: float = 0, host: tuple[str | None, str | None] = (None, None)) -> list[Member]:
    """Twenty operations of 100 us that end together; rank 1's clock is `shift_us` ahead."""
    rows = [
        [named(at + 10 * r, at + 100, i, [0, 1]) for i, at in enumerate(range(0, 20_000, 1000))]
        for r in range(2)
    ]
    moved = [named(r.start / 1000 + shift_us, r.end / 1000 + shift_us, i, [0, 1])
             for i, r in enumerate(rows[1])]  # fmt: skip
    return [
        member(r, records, steps={1: (0, 1)}, host=host[r])
        for r, records in enumerate((rows[0], moved))
    ]


def hosts(members: list[Member]) -> dict[int, str | None]:
    return {m.rank: m.digest.meta.host for m in members}


def test_the_golden_offset_is_the_median_of_the_ends_within_its_bounds() -> None:
    found = offset_between(column(FIRST, 0), column(FIRST, 1), column(SECOND, 0), column(SECOND, 1))
    assert (found.low, found.high, found.ns, found.drift) == (-100, 600, 300, 0.0)


def test_an_estimate_beyond_its_bounds_is_clipped_to_them() -> None:
    # In the third operation the second rank's end was recorded early.
    second = [(900, 1200), (2600, 3100), (6200, 6300)]
    a_s, e_s = column(FIRST, 0), column(FIRST, 1)
    far = offset_between(a_s, e_s + np.array([9000, 9000, 0]), column(second, 0), column(second, 1))
    assert (far.low, far.high, far.ns) == (-100, 700, 700)


def test_golden_waits_and_transfers() -> None:
    (part,) = joined(golden()).parts
    assert part.wait.T.tolist() == [[200_000, 0, 500_000], [0, 100_000, 0]]
    assert part.transfer.T.tolist() == [[300_000, 400_000, 400_000]] * 2


@pytest.mark.parametrize("ahead", [350.0, -350.0, 5e9])
def test_an_offset_is_found_whatever_its_size(ahead: float) -> None:
    found = joined(two(ahead)).clocks
    assert found.offset == {0: 0, 1: round(-ahead * 1000)}
    assert (found.aligned, found.residual_ns) == (True, 0)


def test_ranks_of_one_host_have_one_clock() -> None:
    # 20 us apart, which the slack of one host's clocks covers.
    found = joined(two(20, host=("node", "node"))).clocks
    assert found.offset == {0: 0, 1: 0}
    assert (found.aligned, found.residual_ns, found.error_ns) == (True, 20_000, 0)


def test_a_small_offset_between_two_hosts_is_kept_though_ends_scatter_more() -> None:
    # Ends 20 us apart by turns around an offset of 8.
    e_s = np.arange(0, 1_000_000, 100_000)
    e_r = e_s - 8_000 + np.array([-10_000, 10_000] * 5)
    a_s, a_r = e_s - 90_000, e_r - 90_000
    assert offset_between(a_s, e_s, a_r, e_r, two=True).ns == 8_000
    assert offset_between(a_s, e_s, a_r, e_r).ns == 0


@pytest.mark.parametrize(("hosts", "error_ns"), [((None, None), 20_000), (("a", "b"), 20_000),
                                                 (("a", "a"), 0)])  # fmt: skip
def test_differences_are_sure_only_on_one_hosts_clock(
    hosts: tuple[str | None, str | None], error_ns: int
) -> None:
    # Ends 20 us apart by turns, so no offset: two clocks that agree, as far as ends tell.
    rows = [
        [named(at, at + 100 + 20 * ((i + r) % 2), i, [0, 1])
         for i, at in enumerate(range(0, 20_000, 1000))]
        for r in range(2)
    ]  # fmt: skip
    ranks = [member(r, x, steps={1: (0, 1)}, host=hosts[r]) for r, x in enumerate(rows)]
    found = joined(ranks).clocks
    assert (found.offset, found.error_ns) == ({0: 0, 1: 0}, error_ns)


@pytest.mark.parametrize("seed", range(10))
def test_healthy_ranks_of_another_host_are_not_late_by_its_clock(seed: int) -> None:
    model = Model(
        [Block(60, 40)] * 20,
        ranks=4,
        steps=6,
        hosts={0: "a", 1: "a", 2: "b", 3: "b"},
        clock_us={2: 8, 3: 8},
        scatter_us=20,
    )
    assert joined(run(model, seed).members).late == []


def test_hosts_of_one_name_that_contradict_it_are_two() -> None:
    found = joined(two(3000, host=("localhost", "localhost"))).clocks
    assert (found.offset[1], found.aligned) == (-3_000_000, True)


def test_ranks_of_a_host_are_moved_together() -> None:
    model = Model(
        [Block(1000, 300)] * 3,
        ranks=4,
        hosts={0: "a", 1: "a", 2: "b", 3: "b"},
        clock_us={2: 350, 3: 350},
        scatter_us=4,
    )
    offset = joined(run(model).members).clocks.offset
    assert (offset[0], offset[1]) == (0, 0)
    assert offset[2] == offset[3] == pytest.approx(-350_000, abs=5_000)


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_offset_is_recovered_within_five_microseconds(seed: int) -> None:
    model = Model([Block(1000, 300)] * 6, clock_us={3: 350, 6: -350}, scatter_us=12)
    offset = joined(run(model, seed).members).clocks.offset
    truth = {r: -1000 * model.clock_us.get(r, 0) for r in range(8)}
    assert offset == {r: pytest.approx(ns, abs=5_000) for r, ns in truth.items()}


def test_clocks_that_contradict_each_other_are_not_used() -> None:
    members = two(0)
    late = [named(r.start / 1000 + 30 * i, r.end / 1000 + 30 * i, i, [0, 1])
            for i, r in enumerate(members[1].digest.collectives)]  # fmt: skip
    found = joined([members[0], member(1, late, steps={1: (0, 1)})])
    assert (found.clocks.aligned, found.method, found.late) == (False, "clock-free", [])


@pytest.mark.parametrize(("beyond", "aligned"), [(0, True), (1, False)])
def test_a_contradiction_within_the_slack_is_none(beyond: int, aligned: bool) -> None:
    # Each rank leaves once, by as much, before the other comes: no offset serves both.
    over = (SLACK_NS + beyond) / 1000
    a = [named(0, 100, 0, [0, 1]), named(1100 + over, 1200 + over, 1, [0, 1])]
    b = [named(100 + over, 200 + over, 0, [0, 1]), named(1000, 1100, 1, [0, 1])]
    found = joined([member(0, a), member(1, b)]).clocks
    assert (found.offset, found.aligned) == ({0: 0, 1: 0}, aligned)


def test_two_clocks_of_different_speed_are_followed() -> None:
    # 20 s; the second clock gains 10 us in each second. Operations of 50 us would contradict that.
    at = range(0, 20_000_000, 200_000)
    first = [named(t, t + 50, i, [0, 1]) for i, t in enumerate(at)]
    second = [named(t * 1.00001, (t + 50) * 1.00001, i, [0, 1]) for i, t in enumerate(at)]
    found = joined([member(0, first), member(1, second)]).clocks
    assert found.aligned is True
    assert found.drift[1] == pytest.approx(-1e-5, rel=1e-3)
    assert found.residual_ns is not None
    assert found.residual_ns < 1_000


def test_offsets_add_up_along_groups_that_share_no_common_rank() -> None:
    chains = [[0, 1], [1, 2], [2, 3]]
    records = {
        r: [
            named(1000 * i + 100 * k + 500 * r, 1000 * i + 100 * k + 50 + 500 * r, i, group)
            for k, group in enumerate(chains)
            if r in group
            for i in range(4)
        ]
        for r in range(4)
    }
    found = joined([member(r, rows) for r, rows in records.items()]).clocks
    assert found.offset == {0: 0, 1: -500_000, 2: -1_000_000, 3: -1_500_000}


def test_a_drift_along_a_chain_counts_from_the_time_of_each_clock() -> None:
    # Rank 1 gains 10 us a second on rank 0; rank 2 has rank 1's speed and a base of its own.
    base = 4e12
    times: dict[int, list[tuple[float, float]]] = {r: [] for r in range(3)}
    for i in range(60):
        t = 250_000.0 * i
        for r, (ahead, speed) in enumerate([(0, 1.0), (0, 1.00001), (base, 1.00001)]):
            times[r].append((ahead + t * speed, ahead + (t + 50) * speed))
    rows = {
        0: [named(*at, i, [0, 1]) for i, at in enumerate(times[0])],
        1: [named(*at, i, [0, 1]) for i, at in enumerate(times[1])]
        + [named(*at, i, [1, 2]) for i, at in enumerate(times[1])],
        2: [named(*at, i, [1, 2]) for i, at in enumerate(times[2])],
    }
    members = [member(r, records) for r, records in rows.items()]
    clocks = align(match(members, 3).joined, hosts(members))
    assert clocks.drift[2] == pytest.approx(-1e-5, rel=1e-3)
    ends = [clocks.of(r, np.array([round(t[1] * 1000) for t in times[r]])) for r in range(3)]
    assert np.ptp(np.stack(ends), axis=0).max() < 2_000


def test_without_joined_operations_nothing_is_known_of_clocks() -> None:
    found = joined([member(0, [record(0, 10)])]).clocks
    assert (found.aligned, found.residual_ns, found.offset) == (None, None, {})


@given(
    st.lists(st.tuples(*[st.integers(0, 200)] * 2, st.integers(100, 300)), min_size=1, max_size=9),
    st.integers(-(10**12), 10**12),
)
def test_with_true_operations_the_bounds_hold_the_offset(
    rows: list[tuple[int, int, int]], theta: int
) -> None:
    base = 10_000 * np.arange(len(rows))
    late_s, late_r, length = (np.array([row[i] for row in rows]) for i in range(3))
    end = base + np.maximum(late_s, late_r) + length
    found = offset_between(base + late_s, end, base + late_r - theta, end - theta)
    assert found.low <= theta <= found.high
    assert found.ns == theta
