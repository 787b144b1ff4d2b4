"""Which ranks are replayed, on which clock, and when none can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from make import trace
from replayed import pooled, studied
from scenes import ddp

from analyzer.classify import program
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import Late
from analyzer.whatif.chosen import NO_DEVICE, TOO_MUCH, UNLINKED, chosen, shifts
from analyzer.whatif.tasks import NotReplayableError


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return pooled(tmp_path, ddp([300, 500]))


def crowd(job: Job, count: int, late: Sequence[int] = ()) -> list[int]:
    """The ranks replayed of so many that are all like rank 0."""
    members = [Member(rank, 0, job.members[0].digest) for rank in range(count)]
    found = [Late(rank, 1.0, 0.1, 0.9, [1], []) for rank in late]
    return [m.rank for m in chosen(members, replace(job.together, late=found))]


def test_up_to_64_ranks_are_all_replayed(job: Job) -> None:
    assert crowd(job, 64) == list(range(64))


def test_of_more_ranks_64_spread_over_all_are_replayed(job: Job) -> None:
    found = crowd(job, 127)
    assert found == list(range(0, 127, 2))


def test_late_ranks_are_among_the_64(job: Job) -> None:
    found = crowd(job, 256, late=[101, 203])
    assert len(found) == 64
    assert {0, 101, 203, 255} <= set(found)


def test_of_many_late_ranks_the_latest_32_are_among_the_64(job: Job) -> None:
    late = list(range(100, 200))
    found = crowd(job, 256, late=late)
    assert [rank for rank in found if rank in late][:32] == late[:32]
    # As many are spread over all others, from the first to the last.
    assert {0, 255} <= set(found)
    assert len(found) == 64


def test_a_run_without_a_device_is_refused(tmp_path: Path) -> None:
    built = trace().step(1, 0, 100).op("aten::mm", 0, 90)
    assert studied(tmp_path, built).reason == NO_DEVICE


def test_one_rank_with_too_much_work_refuses_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_WORK", 3)
    first, second = ddp([300, 500])
    for i in range(5):
        second.kernel("more", 10_000 + i, 10_001 + i, launch=(6, 7))
    assert studied(tmp_path, first, second).reason == TOO_MUCH


@pytest.mark.parametrize("linked, reason", [(0.79, UNLINKED), (0.8, None)])
def test_too_much_work_without_a_launch_record_is_refused(
    linked: float, reason: str | None, job: Job
) -> None:
    digest = job.members[0].digest
    assert digest.program is not None
    poor = msgspec.structs.replace(
        digest, program=msgspec.structs.replace(digest.program, linked=linked)
    )
    members = [Member(0, 0, poor), job.members[1]]
    if reason is None:
        assert chosen(members, job.together) == members
        return
    with pytest.raises(NotReplayableError, match=reason):
        chosen(members, job.together)


def test_clocks_that_differ_are_set_by_what_is_added_to_their_times(tmp_path: Path) -> None:
    late_clock = pooled(tmp_path, ddp([300, 500], clock_us=[0, 3000]))
    first, second = shifts(late_clock.members, late_clock.together)
    assert first - second == 3_000_000


def test_without_a_common_clock_the_ends_of_collectives_are_one(tmp_path: Path) -> None:
    far = pooled(tmp_path, ddp([300, 500, 400], clock_us=[0, 3000, -70_000]))
    lost = replace(far.together.clocks, aligned=False)
    first, second, third = shifts(far.members, replace(far.together, clocks=lost))
    assert (first - second, first - third) == (3_000_000, -70_000_000)
