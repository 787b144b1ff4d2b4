"""What a trace cannot answer is refused with a sentence, not answered by something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import trace

from analyzer.config import Settings
from analyzer.digest import RankDigest, digest
from analyzer.errors import UnusableInput, UsageError

STEP = 1000


def job(path: Path) -> Path:
    """Five annotated steps of one kernel each."""
    built = trace(rank=0, world_size=2)
    for k in range(5):
        at = k * STEP
        built.annotation(f"iter {k}", at, at + STEP)
        built.op("aten::mm", at + 10, at + 30)
        built.kernel("gemm", at + 50, at + 900, launch=(at + 15, at + 25))
    return built.write(path / "rank0.json")


def test_a_step_pattern_that_fits_nothing_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no annotation fits --step-pattern 'nosuch'") as caught:
        digest(job(tmp_path), Settings(step_pattern="nosuch"))
    assert caught.value.hint == "there are: iter 0, iter 1, iter 2, iter 3, iter 4"


def test_a_step_pattern_that_fits_gives_its_steps(tmp_path: Path) -> None:
    found = digest(job(tmp_path), Settings(step_pattern=r"^iter (\d+)$"))
    assert [s.index for s in found.steps] == [0, 1, 2, 3, 4]


def test_a_file_cut_before_the_work_of_the_device_is_no_run_on_the_host(tmp_path: Path) -> None:
    built = trace(rank=0, world_size=2)
    built.step(1, 0, 1000).op("aten::mm", 10, 30).runtime("cudaLaunchKernel", 15, 25, correlation=1)
    path = built.write(tmp_path / "rank0.json")
    path.write_text(path.read_text().rstrip().removesuffix("}").rstrip().removesuffix("]"))
    with pytest.raises(UnusableInput, match="cut off before the work of the device"):
        digest(path, Settings())


def test_launches_without_any_kernel_are_no_run_on_the_host(tmp_path: Path) -> None:
    built = trace(rank=0, world_size=2)
    built.step(1, 0, 1000).op("aten::mm", 10, 30).runtime("cudaLaunchKernel", 15, 25, correlation=1)
    with pytest.raises(UnusableInput, match="1 kernel launches, but no kernel was recorded"):
        digest(built.write(tmp_path / "rank0.json"), Settings())


def overlapping(path: Path) -> RankDigest:
    """Two collectives of 60 us on two streams that run together for 20 us, nothing beside them."""
    built = trace(rank=0, world_size=2)
    built.kernel("gemm", 0, 100, launch=(0, 5))
    built.collective("allreduce", 100, 160, stream=20, launch=(6, 8))
    built.collective("allreduce", 140, 200, stream=21, launch=(9, 11))
    built.kernel("gemm", 200, 300, launch=(12, 14))
    return digest(built.write(path / "rank0.json"), Settings())


def test_collectives_that_overlap_share_the_exposed_time(tmp_path: Path) -> None:
    found = overlapping(tmp_path)
    assert [c.exposed_ns for c in found.collectives] == [50_000, 50_000]
    assert found.used[0].ns["comm_unsplit"] == 100_000
