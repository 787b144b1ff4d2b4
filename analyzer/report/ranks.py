"""The Report's part on ranks and what they exchange: plain values, as in document.py.

Times are milliseconds per step, rates decimal GB per second.
"""

from __future__ import annotations

import msgspec

from analyzer.report.part import Part


class Clock(Part, frozen=True, kw_only=True):
    """Whether the ranks' clocks agree; None where it was not looked at.

    `moved` are hosts or ranks with the ms that were added to their times so that they do.
    """

    aligned: bool | None
    residual_us: float | None
    moved: list[tuple[str, float]] = msgspec.field(default_factory=list)


class LateRank(Part, frozen=True, kw_only=True):
    """A rank that keeps others waiting.

    `ms` is the waiting of all others for it, summed over them, per step; `share` the same of all
    others' time; `share_of_collectives` in how many it was last; `because` is a sentence.
    """

    rank: int
    ms: float
    share: float
    share_of_collectives: float
    steps: list[int]
    because: str


class ProcessGroup(Part, frozen=True, kw_only=True):
    """Ranks that communicate with each other, and the parallel dimension they serve.

    `dimension` is data, sharded-data, tensor, pipeline, expert or unknown; `level` is node, nodes
    or unknown; `because` says what shows it. `count` and `ms` are per rank and step.
    """

    name: str
    size: int | None
    ranks: list[int]
    dimension: str
    level: str
    because: str
    kinds: list[str]
    count: float
    ms: float


class Strip(Part, frozen=True, kw_only=True):
    """One step of one rank as marks (class, start, end), ms from the start of the first rank's
    step where the ranks' clocks are aligned and all strips show one step, else of its own.
    """

    rank: int
    step: int
    marks: list[tuple[str, float, float]]


class Ranks(Part, frozen=True, kw_only=True):
    """Who waits for whom; `reason` says why it is not measurable.

    `method` is clocked, clock-free or null; `joined_share` the part of collectives that could be
    joined over ranks. `pop` are the efficiencies of the POP methodology and of its device branch,
    `pop_loss` the share of each in its product's loss, `pop_reason` why some are null or partial.
    `stalled` is the rank, if any, that is not late throughout and yet causes most of all waiting in
    its `steps`.
    `costs` is (rank, ms per step) that each rank costs the others, summed over them, most first.
    `occupancy` is the part of a GPU's threads (0 to 1) that computing kernels hold as the profiler
    estimates it, weighted by time, or null with `occupancy_reason`; high is not efficient.
    """

    late: list[LateRank]
    clock: Clock
    pop: dict[str, float | None]
    reason: str
    method: str | None = None
    joined_share: float | None = None
    groups: list[ProcessGroup] = msgspec.field(default_factory=list)
    strips: list[Strip] = msgspec.field(default_factory=list)
    pop_loss: dict[str, float] = msgspec.field(default_factory=dict)
    pop_reason: str = ""
    occupancy: float | None = None
    occupancy_reason: str = ""
    stalled: list[LateRank] = msgspec.field(default_factory=list)
    costs: list[tuple[int, float]] = msgspec.field(default_factory=list)


class Collective(Part, frozen=True, kw_only=True):
    """Collectives of one kind, group and class of size, per rank and step.

    `bytes` is the mean size of one; rates are of the transfer alone. `reason` says what was not
    measured, `note` where a rate is below what such links give or waiting is known of a part.
    """

    kind: str
    group: str
    group_size: int | None
    count: float
    bytes: float | None
    ms: float
    wait_ms: float | None
    transfer_ms: float | None
    exposed_ms: float
    algbw_gbs: float | None
    busbw_gbs: float | None
    reason: str = ""
    note: str = ""
