"""How the digests of ranks become one graph: what meets, what waits, and on one clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from make import TraceBuilder, trace
from replayed import Hand, by_hand, pooled
from runs import GEMM
from scenes import STEPS, alone, ddp

from analyzer.whatif.assemble import graph
from analyzer.whatif.tasks import Meeting

# The last step is not used, so that it is not kept.
KEPT = STEPS - 1
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def meetings(found: Hand) -> list[Meeting]:
    return [task for task in found.graph.tasks if isinstance(task, Meeting)]


def comm(found: Hand) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Slots of collectives, rank by rank."""
    return np.flatnonzero(found.graph.lane % 2 == 1)


def test_collectives_of_two_ranks_meet(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *ddp([300, 500]))
    slots = [[run.first for run in meeting.runs] for meeting in meetings(found)]
    first, second = np.split(comm(found), 2)
    assert sorted(slots) == np.stack([first, second], axis=1).tolist()


def test_their_length_is_the_transfer_alone(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *ddp([300, 500]))
    slots = comm(found)
    assert found.graph.dur[slots].tolist() == [100_000] * (2 * KEPT)
    assert found.graph.joined[slots].all()
    assert found.graph.nbytes[slots].tolist() == [4096] * (2 * KEPT)


def test_each_rank_waits_for_the_last(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *ddp([300, 500]))
    run = found.run()
    wait = (run.arrived - run.start)[comm(found)]
    assert wait.tolist() == [200_000] * KEPT + [0] * KEPT


def test_a_rank_alone_meets_nobody(tmp_path: Path) -> None:
    built = trace()
    for k in range(STEPS):
        at = 1000 * k
        built.step(k + 1, at, at + 990).kernel(GEMM, at, at + 500, launch=(at, at + 1))
        built.collective("allreduce", at + 500, at + 800, launch=(at + 2, at + 3))
    found = by_hand(tmp_path, built)
    assert found.graph.dur[comm(found)].tolist() == [300_000] * KEPT
    assert not found.graph.joined.any()


def test_collectives_with_a_missing_rank_last_as_long_as_they_did(tmp_path: Path) -> None:
    found = by_hand(tmp_path, *ddp([300, 400, 500])[:2])
    assert not meetings(found)
    first, second = np.split(found.graph.dur[comm(found)], 2)
    assert (first.tolist(), second.tolist()) == ([300_000] * KEPT, [200_000] * KEPT)


def test_ranks_that_are_not_replayed_are_not_met(tmp_path: Path) -> None:
    job = pooled(tmp_path, ddp([300, 400, 500]))
    made = graph(job.members[::2], job.together)
    assert [len(t.runs) for t in made.tasks if isinstance(t, Meeting)] == [2] * KEPT


def test_ranks_whose_clocks_are_3_ms_apart_meet_as_if_they_were_not(tmp_path: Path) -> None:
    one = by_hand(tmp_path / "one", *ddp([300, 500]))
    two = by_hand(tmp_path / "two", *ddp([300, 500], clock_us=[3000, 0]))
    assert [a.shift for a in two.graph.actors] != [a.shift for a in one.graph.actors]
    assert two.graph.ts.tolist() == one.graph.ts.tolist()
    assert two.graph.time.tolist() == one.graph.time.tolist()


def stages(send: int, receive: int, *, sent: int, end: int) -> list[TraceBuilder]:
    """Rank 0 computes until `send`, and is `sent`; rank 1 computes until `receive`, and gets it at
    `end`; then both compute until 2,000. The first work starts 5 us after its launch. One host, one
    clock.
    """
    built = [trace(r, 2).top("host_name", "node") for r in range(2)]
    for k in range(STEPS):
        at, called = 2000 * k + 5, 10 * k
        for rank, kind, start, over, peer in (
            (0, "send", send, sent, {"Dst Rank": 1}),
            (1, "recv", receive, end, {"Src Rank": 0}),
        ):
            built[rank].step(k + 1, called, called + 9)
            built[rank].kernel(GEMM, at, at + start, launch=(called, called + 1))
            args = {"Collective name": kind, "In msg nelems": 1024, "Group size": 2,
                    "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
                    "Seq": k, **peer}  # fmt: skip
            built[rank].kernel(SEND, at + start, at + over, stream=20, args=args,
                               launch=(called + 2, called + 3))  # fmt: skip
            built[rank].kernel(GEMM, at + over, at + 2000, launch=(called + 4, called + 5))
    return built


@pytest.mark.parametrize(
    "send, receive, sent, arrived",
    [
        pytest.param(300, 100, 400, [300, 300], id="the_receiver_waits"),
        pytest.param(100, 300, 400, [300, 300], id="the_sender_waits"),
        pytest.param(100, 700, 130, [100, 700], id="the_sender_does_not_wait"),
    ],
)
def test_a_send_and_its_receive_meet(
    send: int, receive: int, sent: int, arrived: list[int], tmp_path: Path
) -> None:
    end = receive + 10 if receive > sent else 400
    found = by_hand(tmp_path, *stages(send, receive, sent=sent, end=end))
    assert len(meetings(found)) == KEPT
    run = found.run()
    slots = [r.first for r in meetings(found)[0].runs]
    assert [run.arrived[s] / 1000 - 5 for s in slots] == arrived
    assert [run.end[s] / 1000 - 5 for s in slots] == [sent, end]


def test_work_of_before_the_recording_starts_when_it_did(tmp_path: Path) -> None:
    built = alone()
    built.kernel("old", -700, -10)
    found = by_hand(tmp_path, built)
    fixed = found.graph.fixed
    assert np.flatnonzero(~np.isnan(fixed)).tolist() == [0]
    assert found.run(found.edited("no-launch-overhead")).start[0] == fixed[0]


def test_lost_launch_records_follow_what_is_before_them(tmp_path: Path) -> None:
    built = alone(copy=50)
    built.kernel("lost", 2780, 2800)
    assert np.isnan(by_hand(tmp_path, built).graph.fixed).all()
