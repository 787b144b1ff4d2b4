"""The ranks part of the worked case: rank 3 computes 1.6 ms longer, the others wait for it."""

from __future__ import annotations

from analyzer.report.document import Clock, LateRank, ProcessGroup, Ranks, Strip

# One step of a rank: (class, end), each stretch from the end of the one before; it waits last.
STEP = [
    *(("data_loading", 8.0), ("launch", 13.0), ("compute", 46.0), ("comm_transfer", 53.0)),
    *(("compute", 72.8), ("launch", 77.8), ("comm_wait", 80.0), ("comm_transfer", 87.0)),
    *(("optimizer", 93.0), ("compute", 100.0)),
]
MOST_MARKS = 300


def strip(rank: int, step: int) -> Strip:
    """Step `step` of a rank; rank 3 computes longer and waits less, all end together."""
    late = rank % 8 == 3
    ends = [(name, end + 1.6 * (late and name == "compute" and end == 72.8)) for name, end in STEP]
    if late:
        ends = [(name, end + 1.6 * (name == "launch" and end == 77.8)) for name, end in ends]
    starts = [0.0, *(end for _, end in ends)]
    marks = [(name, begin, end) for (name, end), begin in zip(ends, starts, strict=False)]
    return Strip(rank=rank, step=step, marks=marks)


def ranks_part(ranks: int, step: int = 4) -> Ranks:
    """Waiting of 2.2 ms on every rank but 3, so 15.4 ms for 8 ranks; one group; POP filled."""
    others = ranks - 1
    drawn = range(min(ranks, MOST_MARKS // len(STEP)))
    return Ranks(
        late=[
            LateRank(
                rank=3,
                ms=2.2 * others,
                share=0.022,
                share_of_collectives=29 / 35,
                steps=[2, 3, 4, 5, 6],
                because="1.6 ms more of computing than the others in the median.",
            )
        ]
        if ranks > 3
        else [],
        clock=Clock(aligned=True, residual_us=12.0),
        pop={
            "parallel_efficiency": 0.66,
            "load_balance": 0.974,
            "communication_efficiency": 0.678,
            "serialisation_efficiency": None,
            "transfer_efficiency": None,
            "device_parallel_efficiency": 0.66,
            "device_load_balance": 0.974,
            "device_communication_efficiency": 0.827,
            "device_orchestration_efficiency": 0.82,
        },
        pop_loss={"load_balance": 0.063, "communication_efficiency": 0.937},
        pop_reason="serialisation and transfer need a replay on an ideal network",
        reason="",
        method="clocked",
        joined_share=1.0,
        groups=[
            ProcessGroup(
                name="default",
                size=ranks,
                ranks=list(range(ranks)),
                dimension="data",
                level="node",
                because="it reduces gradients over all ranks",
                kinds=["all_reduce", "broadcast"],
                count=7.0,
                ms=38.0,
            )
        ],
        strips=[strip(rank, step) for rank in drawn],
    )
