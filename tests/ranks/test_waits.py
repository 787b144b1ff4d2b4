"""Waiting and transfer of collectives, and of it what nothing hides, still tiling every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from crew import member, named, record
from hypothesis import given
from hypothesis import strategies as st

from analyzer.classify.tables import CollectiveRecord
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.digest import Strip
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import Together, join

COMM = ("comm_wait", "comm_transfer", "comm_unsplit")


def both(members: Sequence[Member]) -> tuple[list[Member], Together]:
    return join(members, len(members), DEFAULT_THRESHOLDS)


def classes(found: Member) -> dict[str, float]:
    (step,) = found.digest.steps
    return {name: step.ns[name] / 1000 for name in COMM if step.ns[name]}


def pair(a: tuple[float, float], b: tuple[float, float], sequence: int = 0) -> list[list[object]]:
    return [[named(*at, sequence, [0, 1])] for at in (a, b)]


def test_waiting_lasts_until_the_last_arrives_and_transfer_from_then_on() -> None:
    early, late = pair((100, 500), (300, 500))
    members, _ = both([member(0, early), member(1, late)])
    assert classes(members[0]) == {"comm_wait": 200, "comm_transfer": 200}
    assert classes(members[1]) == {"comm_transfer": 200}


def test_each_record_carries_where_its_waiting_ends() -> None:
    early, late = pair((100, 500), (300, 500))
    members, _ = both([member(0, early), member(1, late)])
    assert [m.turns.tolist() for m in members if m.turns is not None] == [[300_000], [300_000]]


def test_both_methods_agree_where_ends_coincide() -> None:
    # The golden operations, once with a contradiction beside them that forbids a common clock.
    rows = [(1000, 1500, 900, 1200), (3000, 3400, 2600, 3100), (6000, 6900, 6200, 6600)]
    first = [named(a, b, i, [0, 1]) for i, (a, b, _, _) in enumerate(rows)]
    second = [named(c, d, i, [0, 1]) for i, (_, _, c, d) in enumerate(rows)]
    odd = (named(9000, 9010, 9, [0, 1]), named(50_000, 50_010, 9, [0, 1]))
    clocked = both([member(0, first), member(1, second)])[1]
    free = both([member(0, [*first, odd[0]]), member(1, [*second, odd[1]])])[1]
    assert (clocked.method, free.method) == ("clocked", "clock-free")
    assert free.parts[0].wait[:3].tolist() == clocked.parts[0].wait.tolist()
    assert free.parts[0].transfer[:3].tolist() == clocked.parts[0].transfer.tolist()


def test_without_a_common_clock_transfer_is_the_shortest_duration() -> None:
    rows = [[named(0, 30, 0, [0, 1]), named(900, 940, 1, [0, 1])],
            [named(500, 510, 0, [0, 1]), named(600, 700, 1, [0, 1])]]  # fmt: skip
    members, found = both([member(r, records) for r, records in enumerate(rows)])
    assert (found.method, found.late, found.cost_ns) == ("clock-free", [], {})
    assert classes(members[0]) == {"comm_wait": 20, "comm_transfer": 10 + 40}
    assert classes(members[1]) == {"comm_wait": 60, "comm_transfer": 10 + 40}


def test_hidden_waiting_is_no_exposed_waiting() -> None:
    early, late = pair((100, 500), (300, 500))
    members, found = both([member(0, early, busy=[(100, 250)]), member(1, late)])
    assert classes(members[0]) == {"comm_wait": 50, "comm_transfer": 200}
    assert (found.parts[0].wait.tolist(), found.parts[0].exposed.tolist()) == (
        [[200_000, 0]],
        [[50_000, 0]],
    )


def test_transfer_of_one_outweighs_waiting_of_another_at_the_same_time() -> None:
    def rank(gather: tuple[float, float], reduce: tuple[float, float]) -> list[CollectiveRecord]:
        return [
            named(*gather, 1, [0, 1], kind="all_gather", stream="21"),
            named(*reduce, 1, [0, 1], kind="reduce_scatter", stream="22"),
        ]

    members, _ = both(
        [member(0, rank((100, 400), (150, 600))), member(1, rank((200, 400), (500, 600)))]
    )
    assert classes(members[0]) == {"comm_wait": 100 + 100, "comm_transfer": 200 + 100}


def test_an_instant_in_which_two_wait_belongs_to_the_first() -> None:
    first = [named(100, 400, 1, [0, 1]), named(150, 600, 2, [0, 1], stream="21")]
    second = [named(300, 400, 1, [0, 1]), named(500, 600, 2, [0, 1], stream="21")]
    members, found = both([member(0, first), member(1, second)])
    exposed = found.parts[0].exposed[:, 0].tolist()
    assert exposed == [200_000, 100_000]
    assert sum(exposed) == members[0].digest.steps[0].ns["comm_wait"]


def test_groups_with_missing_members_stay_unsplit() -> None:
    rows = [[named(r * 10, 100, 1, list(range(8)))] for r in range(2)]
    members, found = join([member(r, x) for r, x in enumerate(rows)], 8, DEFAULT_THRESHOLDS)
    assert (found.method, found.joined_share) == (None, 0.0)
    assert classes(members[0]) == {"comm_unsplit": 100}


def test_one_rank_stays_unsplit() -> None:
    members, found = join([member(0, [record(0, 100)])], 8, DEFAULT_THRESHOLDS)
    assert (found.method, found.parts, found.late) == (None, [], [])
    assert classes(members[0]) == {"comm_unsplit": 100}


@pytest.mark.parametrize("kind", ["send_recv", "broadcast"])
def test_kinds_that_a_rank_may_leave_early_stay_unsplit(kind: str) -> None:
    rows = [[record(0, 100, kind=kind), record(200, 300)], [record(50, 60, kind=kind),
            record(250, 300)]]  # fmt: skip
    members, found = both([member(r, x) for r, x in enumerate(rows)])
    assert classes(members[0]) == {"comm_unsplit": 100, "comm_wait": 50, "comm_transfer": 50}
    assert found.joined_share == 0.5


def test_ranks_without_communication_are_left_as_they_are() -> None:
    given = [member(0, []), member(1, [])]
    members, found = both(given)
    assert (members, found.joined_share) == (given, None)


def test_a_strip_names_waiting_and_transfer() -> None:
    rows = pair((0, 400), (300, 400))
    members = [member(r, x, steps={1: (0, 800)}) for r, x in enumerate(rows)]
    unsplit = Strip(step=1, start=0, end=800_000, classes=["comm_unsplit"] * 4 + ["compute"] * 4)
    digest = msgspec.structs.replace(members[0].digest, strip=unsplit)
    done, _ = both([Member(0, 0, digest), members[1]])
    strip = done[0].digest.strip
    assert strip is not None
    assert strip.classes == ["comm_wait"] * 3 + ["comm_transfer"] + ["compute"] * 4


def test_a_strip_keeps_the_shares_where_every_stretch_holds_both() -> None:
    # Of each of ten stretches of 100 us, 60 wait and 40 transfer.
    rows = [
        [named(100 * i + 60 * r, 100 * i + 100, i, [0, 1]) for i in range(10)] for r in range(2)
    ]
    members = [member(r, x, steps={1: (0, 1000)}) for r, x in enumerate(rows)]
    unsplit = Strip(step=1, start=0, end=1_000_000, classes=["comm_unsplit"] * 10)
    digest = msgspec.structs.replace(members[0].digest, strip=unsplit)
    done, _ = both([Member(0, 0, digest), members[1]])
    strip = done[0].digest.strip
    assert strip is not None
    assert Counter(strip.classes) == {"comm_wait": 6, "comm_transfer": 4}


TIMES = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 900), st.integers(1, 200)), min_size=1, max_size=6
)


@given(TIMES, st.lists(st.tuples(st.integers(0, 900), st.integers(1, 300)), max_size=3))
def test_steps_still_tile_whatever_overlaps(
    rows: list[tuple[int, int, int]], work: list[tuple[int, int]]
) -> None:
    ends = [max(a, b) + length for a, b, length in rows]
    given_ranks = [
        [named(row[r], end, i, [0, 1]) for i, (row, end) in enumerate(zip(rows, ends, strict=True))]
        for r in range(2)
    ]
    busy = [(a, a + b) for a, b in work[:1]]
    before = [member(r, x, busy=busy, steps={1: (0, 1200)}) for r, x in enumerate(given_ranks)]
    after, found = both(before)
    for old, new in zip(before, after, strict=True):
        (was,), (now,) = old.digest.steps, new.digest.steps
        assert sum(now.ns.values()) == now.end - now.start
        assert sum(now.ns[c] for c in COMM) == was.ns["comm_unsplit"]
        assert now.ns["comm_unsplit"] == 0
    waits = np.sum([p.exposed.sum(axis=0) for p in found.parts], axis=0).tolist()
    assert waits == [m.digest.steps[0].ns["comm_wait"] for m in after]
