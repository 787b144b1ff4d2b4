"""A small healthy run whose every part can be left out, in files and as the package sees it.

Seven steps of 1,000 us: the loader returns at once, the host is ahead, one matrix kernel fills the
step and hides an all-reduce. Nothing is idle: every caveat or finding comes from what a test adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from make import CUDA, Dialect, TraceBuilder, trace

from analyzer import api
from analyzer.api import Loaded
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.document import Report
from analyzer.scaling.serial import Mode

GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn"
STEP = 1000
CREATED = "2025-10-09T08:00:00Z"


def healthy(
    rank: int | None = 0,
    world_size: int = 2,
    *,
    steps: Sequence[int] = range(1, 8),
    without: Sequence[str] = (),
    dialect: Dialect = CUDA,
) -> TraceBuilder:
    """One rank; `without` names parts to leave out: marks, loader, kernels, collectives."""
    built = trace(rank=rank, world_size=world_size, dialect=dialect)
    for place, index in enumerate(steps):
        add_step(built, index, place * STEP, without)
    return built


def add_step(built: TraceBuilder, index: int, at: int, without: Sequence[str] = ()) -> None:
    """One step of the run, its host part beginning at `at` us and its kernel 20 us later."""
    if "marks" not in without:
        built.step(index, at, at + STEP)
    if "loader" not in without:
        built.loader(at, at + 5)
    built.op("aten::linear", at + 5, at + 15)
    if "kernels" not in without:
        built.kernel(GEMM, at + 20, at + 20 + STEP, launch=(at + 10, at + 15))
    if "collectives" not in without:
        built.collective("allreduce", at + 500, at + 800, launch=(at + 20, at + 25))


def write_run(folder: Path, ranks: int = 2) -> Path:
    """The healthy run in a folder, one file for each rank."""
    for rank in range(ranks):
        healthy(rank, ranks).write(folder / f"rank{rank}.json")
    return folder


def loaded(
    folder: Path, files: Mapping[str, TraceBuilder | str], settings: Settings | None = None
) -> Loaded:
    """The job of traces given by file name."""
    for name, built in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(built if isinstance(built, str) else built.text())
    chosen = settings or Settings()
    return api.load(api.digests([str(folder)], chosen, jobs=1), settings=chosen)


def exposed(
    rank: int,
    world_size: int = 2,
    *,
    loader: int = 0,
    compute: int = 900,
    wait: int = 0,
    kinds: Sequence[str] = ("allreduce",),
    pace: int = 50,
) -> TraceBuilder:
    """Seven steps: `loader` us waited for a batch, compute, `wait` us in the first collective for
    another rank, and 100 us of transfer in each.

    Without a loader to wait for the host takes `pace` us a step and runs ahead of the device.
    """
    built = trace(rank, world_size)
    length = loader + compute + wait + 100 * len(kinds)
    for k in range(7):
        at, apart = k * length, length if loader else pace
        called = k * apart
        built.step(k + 1, called, called + apart).loader(called, called + loader + 1)
        ready = called + loader
        end = at + loader + 20 + compute
        built.kernel(GEMM, end - compute, end, launch=(ready + 5, ready + 10))
        for i, kind in enumerate(kinds):
            begin, last = end + 100 * i + (wait if i else 0), end + wait + 100 * (i + 1)
            built.collective(kind, begin, last, launch=(ready + 10, ready + 15))
    return built


def reported(
    folder: Path,
    built: dict[str, TraceBuilder | str],
    *,
    mode: Mode = "strong",
    duration_s: float | None = None,
    label: str = "mine",
    n: int | None = None,
) -> Report:
    """The report on traces given by file name."""
    request = Request(label, CREATED, mode, duration_s=duration_s, n=n)
    return api.report(loaded(folder, built), request, Settings())
