"""Sends and receives: which are one, how long each side waits for the other, and who is late.

`Pipeline` is a job of stages that hand each micro-batch on and its gradient back; both sides are
done `transfer_us` after the later one is ready, so every bubble is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from crew import joined, member, named, ns, record

from analyzer.classify.tables import CollectiveRecord
from analyzer.config import DEFAULT_THRESHOLDS
from analyzer.ranks.agreement import IMPOSSIBLE
from analyzer.ranks.collectives import LOST, ONE_SIDE, UNEQUAL, match
from analyzer.ranks.keys import NOT_ALL
from analyzer.ranks.member import Member
from analyzer.ranks.stragglers import NO_CLOCK, Together, join

GROUP = {"kind": "send_recv", "group": "pp", "group_size": 4, "ranks": "[0, 1, 2, 3]"}
COMM = ("comm_wait", "comm_transfer", "comm_unsplit")


def send(start: float, end: float, to: int, **what: Any) -> CollectiveRecord:
    return record(start, end, destination=to, **GROUP | what)


def receive(start: float, end: float, source: int, **what: Any) -> CollectiveRecord:
    return record(start, end, source=source, **GROUP | what)


def members(*ranks: Sequence[CollectiveRecord], host: str | None = "a") -> list[Member]:
    return [member(r, records, host=host) for r, records in enumerate(ranks)]


def told(*ranks: Sequence[CollectiveRecord]) -> Together:
    return joined(members(*ranks))


def classes(found: Member) -> dict[str, float]:
    """The used steps' communication by class, us."""
    total = {name: sum(s.ns[name] for s in found.digest.used) / 1000 for name in COMM}
    return {name: us for name, us in total.items() if us}


@dataclass
class Pipeline:
    """All forward passes of a step, then all backward passes, which take twice as long."""

    stages: int = 4
    steps: int = 1
    batches: int = 1
    forward_us: float = 100
    transfer_us: float = 10
    pace: Mapping[int, float] = field(default_factory=dict)
    clock_us: Mapping[int, float] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    wait: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    transfer: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def run(self) -> list[Member]:
        """The ranks; `wait` and `transfer` of each are what happened, us."""
        self._now = [0.0] * self.stages
        self._records: dict[int, list[CollectiveRecord]] = defaultdict(list)
        windows: dict[int, dict[int, tuple[float, float]]] = defaultdict(dict)
        for step in range(1, self.steps + 1):
            began = list(self._now)
            for onward, length in ((1, self.forward_us), (-1, 2 * self.forward_us)):
                for _ in range(self.batches):
                    self._through(step, onward, length)
            for r, start in enumerate(began):
                ahead = self.clock_us.get(r, 0)
                windows[r][step] = (start + ahead, self._now[r] + ahead)
        return [
            member(r, self._records[r], steps=windows[r], host=self.hosts.get(r))
            for r in range(self.stages)
        ]

    def _through(self, step: int, onward: int, length: float) -> None:
        order = range(self.stages)[::onward]
        for r in order:
            self._now[r] += length * self.pace.get(r, 1.0)
            if r != order[-1]:
                self._hand(step, r, r + onward)

    def _hand(self, step: int, source: int, destination: int) -> None:
        ready = max(self._now[source], self._now[destination])
        for rank, made, peer in ((source, send, destination), (destination, receive, source)):
            ahead = self.clock_us.get(rank, 0)
            at, end = self._now[rank] + ahead, ready + self.transfer_us + ahead
            self._records[rank].append(made(at, end, peer, step=step, launched=step))
            self.wait[rank] += ready - self._now[rank]
            self.transfer[rank] += self.transfer_us
            self._now[rank] = ready + self.transfer_us


def test_a_receive_waits_until_its_sender_is_there() -> None:
    (part,) = told([send(300, 400, 1)], [receive(100, 400, 0)]).parts
    assert (part.group.ranks, part.wait.tolist()) == ([0, 1], [[0, 200_000]])
    assert part.transfer.tolist() == [[100_000, 100_000]]


def test_a_send_waits_until_its_receiver_is_there() -> None:
    (part,) = told([send(100, 400, 1)], [receive(300, 400, 0)]).parts
    assert (part.wait.tolist(), part.transfer.tolist()) == (
        [[200_000, 0]],
        [[100_000, 100_000]],
    )


def test_a_send_that_is_over_before_its_receiver_arrives_has_not_waited() -> None:
    # NCCL buffers some MB per connection: the sender is free, the receiver finds its data there.
    (part,) = told([send(100, 130, 1)], [receive(700, 710, 0)]).parts
    assert (part.wait.tolist(), part.transfer.tolist()) == ([[0, 0]], [[30_000, 10_000]])


def test_each_side_is_split_in_the_classes_and_nothing_is_lost() -> None:
    done, _ = join(members([send(300, 400, 1)], [receive(100, 400, 0)]), 2, DEFAULT_THRESHOLDS)
    assert classes(done[0]) == {"comm_transfer": 100}
    assert classes(done[1]) == {"comm_wait": 200, "comm_transfer": 100}
    assert [sum(m.digest.steps[0].ns.values()) for m in done] == [ns(1000), ns(1000)]
    assert done[1].turns is not None
    assert done[1].turns.tolist() == [ns(300)]


def test_the_bubbles_of_a_pipeline_are_waiting() -> None:
    # Forward 100, backward 200, handing on 10 us: the last stage waits three forward passes.
    line = Pipeline()
    done, found = join(line.run(), 4, DEFAULT_THRESHOLDS)
    assert dict(line.wait) == {0: 940, 1: 720, 2: 510, 3: 320}
    assert [classes(m) for m in done] == [
        {"comm_wait": line.wait[r], "comm_transfer": line.transfer[r]} for r in range(4)
    ]
    assert (found.method, found.joined_share) == ("clocked", 1.0)


def test_several_batches_and_steps_are_joined_in_their_order() -> None:
    line = Pipeline(steps=3, batches=5, pace={1: 1.1, 3: 0.9})
    done, found = join(line.run(), 4, DEFAULT_THRESHOLDS)
    for m in done:
        assert classes(m) == {
            "comm_wait": pytest.approx(line.wait[m.rank], abs=0.1),
            "comm_transfer": pytest.approx(line.transfer[m.rank], abs=0.1),
        }
    assert not found.matching.left


def test_a_pipeline_of_equal_stages_has_bubbles_and_no_late_rank() -> None:
    found = joined(Pipeline(steps=6, batches=4, forward_us=5000).run())
    assert found.late == []


def test_the_slow_stage_is_the_late_rank() -> None:
    found = joined(Pipeline(steps=6, batches=8, forward_us=5000, pace={2: 1.3}).run())
    assert [late.rank for late in found.late] == [2]
    assert found.late[0].because[0][0] == "compute"


def test_a_stage_that_transfers_more_is_not_late_for_waiting_less() -> None:
    # The middle one of three hands on twice as much as the others.
    found = joined(Pipeline(stages=3, steps=5, batches=8, forward_us=5000, transfer_us=1000).run())
    assert found.late == []


def test_a_step_in_which_only_others_could_be_joined_does_not_hide_a_late_rank() -> None:
    ranks: list[list[CollectiveRecord]] = [[], [], [], []]
    for step in range(1, 6):
        at, says = 1000 * step, {"step": step, "launched": step}
        if step != 2:
            ranks[0].append(receive(at, at + 400, 1, **says))
        ranks[1].append(send(at + 300, at + 400, 0, **says))
        ranks[2].append(send(at, at + 400, 3, **says))
        ranks[3].append(receive(at, at + 400, 2, **says))
    steps = {s: (1000.0 * s, 1000.0 * (s + 1)) for s in range(1, 6)}
    found = joined([member(r, rows, steps=steps, host="a") for r, rows in enumerate(ranks)])
    assert [(late.rank, late.steps) for late in found.late] == [(1, [1, 3, 4, 5])]
    assert found.matching.left == {LOST: 1}


def test_the_later_side_is_last_and_costs_the_other() -> None:
    found = told([send(300, 400, 1)], [receive(100, 400, 0)])
    assert found.cost_ns == {0: 200_000}


def test_directions_and_peers_are_joined_apart() -> None:
    ranks = (
        [send(0, 10, 1), receive(20, 30, 1), send(40, 50, 2)],
        [receive(0, 10, 0), send(20, 30, 0)],
        [receive(35, 50, 0)],
    )
    found = match(members(*ranks), 3).joined
    assert {tuple(g.ranks): (g.start / 1000).tolist() for g in found} == {
        (0, 1): [[0, 0]],
        (1, 0): [[20, 20]],
        (0, 2): [[40, 35]],
    }


def test_numbers_of_sends_and_receives_are_each_ranks_own() -> None:
    # The receiver has had four others before, from other ranks.
    (group,) = match(
        members([send(0, 10, 1, sequence=1)], [receive(5, 10, 0, sequence=5)]), 2
    ).joined
    assert (group.start.tolist(), group.by_order) == ([[0, 5000]], True)


def test_both_ends_may_be_recorded_on_both_sides() -> None:
    ends = {"source": 0, "destination": 1}
    rows = [record(at, 10, **GROUP | ends) for at in (0, 5)]
    (group,) = match(members([rows[0]], [rows[1]]), 2).joined
    assert (group.ranks, group.start.tolist()) == ([0, 1], [[0, 5000]])


def test_other_counts_join_nothing_of_that_step_and_are_told() -> None:
    first = [send(0, 10, 1), send(20, 30, 1), send(40, 50, 1, launched=2)]
    second = [receive(0, 10, 0), receive(40, 50, 0, launched=2)]
    found = match(members(first, second), 2)
    assert (found.left, [g.step for g in found.joined]) == ({UNEQUAL: 3}, [[(0, 2)]])


def test_other_sizes_join_nothing_and_are_told() -> None:
    found = match(members([send(0, 9, 1, nbytes=8)], [receive(0, 9, 0, nbytes=16)]), 2)
    assert (found.joined, found.left) == ([], {UNEQUAL: 2})


def test_without_the_other_side_nothing_is_joined() -> None:
    found = match(members([send(0, 10, 1)], [send(0, 10, 2)]), 4)
    assert (found.joined, found.left) == ([], {ONE_SIDE: 2})


def test_without_source_and_destination_they_stay_unsplit() -> None:
    rows = [record(at, 400, **GROUP) for at in (100, 300)]
    done, found = join(members([rows[0]], [rows[1]]), 2, DEFAULT_THRESHOLDS)
    assert (found.method, found.matching.left) == (None, {NOT_ALL: 2})
    assert classes(done[0]) == {"comm_unsplit": 300}


def test_a_receive_that_ends_before_its_send_begins_is_not_its_receive() -> None:
    steps = range(1, 4)
    first = [send(1000 * s, 1000 * s + 50, 1, step=s, launched=s) for s in steps]
    second = [receive(1000 * s, 1000 * s + 50, 0, step=s, launched=s) for s in (1, 2)]
    second += [receive(2800, 2850, 0, step=3, launched=3)]
    found = told(first, second)
    assert [part.group.step for part in found.parts] == [[(0, 1), (0, 2)]]
    assert found.matching.left == {IMPOSSIBLE: 2}


def test_clocks_apart_are_found_from_the_pairs_where_nothing_else_joins_them() -> None:
    ahead = {0: 0.0, 1: 350.0, 2: -4000.0, 3: 71.5}
    hosts = {r: f"node{r}" for r in ahead}
    line = Pipeline(steps=2, batches=3, clock_us=ahead, hosts=hosts)
    done, found = join(line.run(), 4, DEFAULT_THRESHOLDS)
    assert found.clocks.offset == {r: -ns(us) for r, us in ahead.items()}
    assert [classes(m)["comm_wait"] for m in done] == [line.wait[r] for r in range(4)]


def test_clocks_that_collectives_join_do_not_ask_the_pairs() -> None:
    # All sends are buffered: their ends are 400 us before those of the receives.
    ranks: list[list[CollectiveRecord]] = [[], []]
    for step in range(1, 6):
        at = 1000 * step
        says = {"step": step, "launched": step}
        ranks[0] += [send(at, at + 10, 1, **says), named(at + 700, at + 750, step, [0, 1], **says)]
        ranks[1] += [
            receive(at + 2400, at + 2410, 0, **says),
            named(at + 2700, at + 2750, step, [0, 1], **says),
        ]
    crew = [member(r, rows, host=f"node{r}") for r, rows in enumerate(ranks)]
    found = joined(crew)
    assert (found.clocks.offset, found.clocks.residual_ns) == ({0: 0, 1: -2_000_000}, 0)
    assert [p.wait.sum() for p in found.parts if p.group.paired] == [0]


def test_pairs_join_clocks_of_groups_that_are_apart() -> None:
    # Two tensor-parallel groups, a node each, are two stages.
    ahead = (0, 0, 600, 600)
    ranks: list[list[CollectiveRecord]] = [[], [], [], []]
    for r, us in enumerate(ahead):
        peer = (r + 2) % 4
        ranks[r].append(named(us, us + 100, 1, [0, 1] if r < 2 else [2, 3], group="tp"))
        made = send if r < 2 else receive
        ranks[r].append(made(us + 200, us + 230, peer))
    crew = [member(r, rows, host=f"node{r // 2}") for r, rows in enumerate(ranks)]
    assert joined(crew).clocks.offset == {0: 0, 1: 0, 2: -600_000, 3: -600_000}


def test_without_a_common_clock_pairs_stay_unsplit_and_are_told() -> None:
    # The last collective would leave rank 0 before rank 1 came, whatever the offset.
    both = [named(0, 10, 1, [0, 1]), named(20, 30, 2, [0, 1])]
    ranks = (
        [*both, send(100, 200, 1), named(9000, 9010, 3, [0, 1])],
        [*both, receive(150, 200, 0), named(50_000, 50_010, 3, [0, 1])],
    )
    found = told(*ranks)
    assert (found.method, found.matching.left) == ("clock-free", {NO_CLOCK: 2})
    assert [p.group.paired for p in found.parts] == [False]
