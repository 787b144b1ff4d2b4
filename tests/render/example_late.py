"""A Report of 8 ranks and one step of 625 ms in which ranks 0 and 6 come late to 84 all-reduces.

The file says neither group nor sizes. Late ranks launch late for 206 ms and wait for 214; the
others launch late for 14 and wait for 418, or 412 on the rank that is a little late.
"""

from __future__ import annotations

from example import CLASSES, GROUPS, example, finding
from msgspec.structs import replace

from analyzer.report.document import (
    Clock,
    Collective,
    Gain,
    LateRank,
    RankRow,
    Ranks,
    Report,
    StepRow,
    Steps,
    Strip,
    Verdict,
    WallTime,
)

STEP = 625.0
LATE = (0, 6)


def _ms(wait: float, launch: float, unexplained: float) -> dict[str, float]:
    spent = {"compute": 132.0, "comm_transfer": 50.0, "data_loading": 6.0, "comm_wait": wait}
    spent |= {"launch": launch, "unexplained": unexplained}
    return {name: spent.get(name, 0.0) for name in CLASSES}


def _row(rank: int) -> RankRow:
    ms = _ms(214.0, 206.0, 17.0) if rank in LATE else _ms(418.0, 14.0, 5.0)
    return RankRow(rank=rank, step_ms=STEP, ms=ms, hidden_comm_ms=0.0)


def _late(rank: int, ms: float, times: int, more: float) -> LateRank:
    return LateRank(
        rank=rank,
        ms=ms,
        share=ms / (7 * STEP),
        share_of_collectives=times / 84,
        steps=[3],
        because=f"{more} ms more of late launches than the others in the median.",
    )


def _ranks() -> Ranks:
    return Ranks(
        late=[_late(0, 1533.0, 32, 190.9), _late(6, 1219.0, 28, 190.1), _late(2, 171.0, 4, 43.9)],
        clock=Clock(aligned=True, residual_us=30.0),
        pop={},
        reason="",
        method="clocked",
        joined_share=1.0,
        strips=[
            Strip(
                rank=rank,
                step=3,
                marks=[
                    ("compute", 0.0, 132.0),
                    ("launch", 132.0, 338.0 if rank in LATE else 146.0),
                    ("comm_wait", 338.0 if rank in LATE else 146.0, 575.0),
                    ("comm_transfer", 575.0, STEP),
                ],
            )
            for rank in range(8)
        ],
    )


def two_late() -> Report:
    """The report; its mean step is wait 367, compute 132, launch 62, transfer 50, rest 14."""
    report = example(8, 1)
    ms = _ms(367.0, 62.0, 8.0)
    reduce = Collective(
        kind="all_reduce",
        group="",
        group_size=None,
        count=84.0,
        bytes=None,
        ms=417.0,
        wait_ms=367.0,
        transfer_ms=50.0,
        exposed_ms=417.0,
        algbw_gbs=None,
        busbw_gbs=None,
    )
    return replace(
        report,
        verdict=Verdict(
            text="Mend ranks 0 and 6 first: the others wait 367.0 ms of every 625.0 ms step.",
            finding="straggler",
            confidence="high",
        ),
        steps=Steps(
            used=[3],
            dropped=[],
            wall_ms=WallTime(mean=STEP, median=STEP, lo=None, hi=None, n=1),
            rule="ProfilerStep annotations",
        ),
        breakdown=replace(
            report.breakdown,
            mean_ms=ms,
            group_ms={group: sum(ms[name] for name in names) for group, names in GROUPS.items()},
            hidden_comm_ms=0.0,
            per_rank=[_row(rank) for rank in range(8)],
            per_step=[StepRow(step=3, ms=ms)],
        ),
        findings=[
            replace(
                finding(
                    "straggler", "Ranks 0 and 6 keep the others waiting", "comm_wait", 0.0, 2.4
                ),
                ms=367.0,
                share=367.0 / STEP,
                gain=Gain(speedup=STEP / (STEP - 367.0), lo=None, hi=None, basis="share"),
                because="Ranks wait 367.0 ms of every step for others, most for 0 and 6.",
            )
        ],
        ranks=_ranks(),
        collectives=[reduce],
    )
