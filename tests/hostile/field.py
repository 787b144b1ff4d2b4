"""The base scene of the public field reports, which each test spoils in its own way.

Two ranks, four steps of 10 ms, one stream that computes and one that communicates, launches linked
by correlation. Rank 0 computes 5 ms and is at the all-reduce 0.5 ms before that; rank 1 computes
6 ms and arrives last; both leave together at the end of the step. So of the mean step 5.5 ms are
compute, 0.5 ms waiting (rank 0 for rank 1) and 4 ms transfer, and nothing is idle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from make import BASE_NS, CUDA, SCENE_NS, Dialect, TraceBuilder, pack, trace
from runs import CREATED

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.document import Report

STEP = 10_000
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Change = Callable[[TraceBuilder, int, int], object]
Made = TraceBuilder | str | bytes
Files = Mapping[str, Made]


def base(
    rank: int = 0,
    *,
    steps: int = 4,
    world_size: int = 2,
    named: bool = True,
    device: int | None = None,
    dialect: Dialect = CUDA,
    stream: tuple[int | None, int | None] = (7, 20),
    call: str = "cudaLaunchKernel",
    comm: str | None = NCCL,
    comm_args: bool = True,
    base_ns: int | None = BASE_NS,
    scene_ns: int = SCENE_NS,
    marks: bool = True,
    each: Change = lambda built, k, at: None,
) -> TraceBuilder:
    """One rank; `each` adds to step k that begins at `at` us. `named` False: no distributedInfo;
    `comm` None: no collective on the device; `comm_args` False: only its name says what it is.
    """
    built = trace(
        rank if named else None,
        world_size,
        device=device,
        dialect=dialect,
        base_ns=base_ns,
        scene_ns=scene_ns,
    )
    for k in range(steps):
        at = k * STEP
        if marks:
            built.step(k, at, at + STEP)
        built.loader(at, at + 5).op("aten::mm", at + 5, at + 40)
        compute(built, rank, at, stream=stream[0], call=call)
        if comm is not None:
            reduce(built, rank, at, comm, said=comm_args, stream=stream[1], call=call)
        each(built, k, at)
    return built


def compute(
    built: TraceBuilder, rank: int, at: int, *, stream: int | None = 7, call: str
) -> TraceBuilder:
    """The two compute kernels of a step, one after the other."""
    end = at + 5020 + 1000 * rank
    how = {"stream": stream, "call": call}
    built.kernel(GEMM, at + 20, at + 3020, launch=(at + 10, at + 15), **how)
    return built.kernel(GEMM, at + 3020, end, launch=(at + 20, at + 25), **how)


def reduce(
    built: TraceBuilder, rank: int, at: int, name: str, *, said: bool, stream: int | None, call: str
) -> TraceBuilder:
    """The all-reduce of a step."""
    start, how = at + 4520 + 1500 * rank, {"launch": (at + 30, at + 35), "call": call}
    if said:
        return built.collective("allreduce", start, at + 10_020, name=name, stream=stream, **how)
    return built.kernel(name, start, at + 10_020, stream=stream, **how)


def report(folder: Path, files: Files) -> Report:
    """The report on files given by name; packed as their suffix says."""
    for name, made in files.items():
        data = made.text() if isinstance(made, TraceBuilder) else made
        pack(folder / name, data.encode() if isinstance(data, str) else data)
    return api.analyze([str(folder)], Request("mine", CREATED), Settings(), jobs=1)


def both(folder: Path, rank0: Made, rank1: Made) -> Report:
    """The report on two ranks."""
    return report(folder, {"rank0.json": rank0, "rank1.json": rank1})


def mean(found: Report) -> dict[str, float]:
    """Measured classes of the mean step in ms to the ns; what is zero is left out."""
    return {name: round(ms, 6) for name, ms in found.breakdown.measured.items() if ms}


def told(found: Report) -> set[str]:
    """Ids of the caveats."""
    return {caveat.id for caveat in found.quality}


def text(found: Report, id: str) -> str:
    """The sentence of the caveat of that id, told once."""
    (sentence,) = (caveat.text for caveat in found.quality if caveat.id == id)
    return sentence


def same(found: Report, sound: Report) -> bool:
    """Whether every number that the damage must not move is the same."""
    parts = [
        (r.steps, r.breakdown, r.scaling, r.collectives, r.findings, r.ranks, r.whatif)
        for r in (found, sound)
    ]
    return parts[0] == parts[1]


BASE = {"compute": 5.5, "comm_wait": 0.5, "comm_transfer": 4.0}
