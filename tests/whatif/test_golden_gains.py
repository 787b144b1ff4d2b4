"""G10 and G11 of the method sheet: shares are not gains.

Ours gives each kind of work one latency from launch to start and takes it away with the launch
overhead, and so it would with G10's 20 us before the copy and 10 us before K3. In the trace here a
launch therefore reaches the device at once: the copy's at 60, K3's at 620. What the example keeps
when host time goes (17 us before the copy's launch, the tail) are allocation calls, which the edit
keeps. Nothing else differs, and a step is written seven times, its tail in front of the next.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from make import TraceBuilder, trace
from replayed import Hand, by_hand, studied
from runs import GEMM

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def g10() -> TraceBuilder:
    """Seven steps of 1,000 us."""
    built = trace()
    for k in range(7):
        at = 1000 * k
        built.step(k + 1, at, at + 1000).loader(at, at + 35)
        built.runtime("cudaHostAlloc", at + 35, at + 60)
        built.copy("HtoD", at + 60, at + 100, launch=(at + 60, at + 62))
        built.kernel(GEMM, at + 100, at + 300, launch=(at + 62, at + 64))
        built.kernel(GEMM, at + 300, at + 450, launch=(at + 64, at + 66))
        built.kernel(NCCL, at + 450, at + 700, launch=(at + 66, at + 68), stream=20)
        built.kernel(GEMM, at + 450, at + 500, launch=(at + 68, at + 70))
        built.op("aten::busy", at + 70, at + 620)
        built.kernel(GEMM, at + 620, at + 800, launch=(at + 620, at + 622))
        built.sync(at + 640, at + 805, call="cudaDeviceSynchronize")
        built.runtime("cudaHostAlloc", at + 805, at + 1000)
    return built


@pytest.fixture
def example(tmp_path: Path) -> Hand:
    return by_hand(tmp_path, g10())


def test_g10_shows_12_percent_of_exposed_communication(example: Hand) -> None:
    assert example.steps() == [1000.0] * 5
    assert example.job.mean_ns["comm_unsplit"] == 120_000


@pytest.mark.parametrize(
    "edits, gain",
    [
        (["no-communication"], 0),
        (["no-launch-overhead"], 100),
        (["no-data-loading"], 35),
        (["no-communication", "no-launch-overhead"], 120),
    ],
)
def test_g10_gains(example: Hand, edits: list[str], gain: int) -> None:
    assert 1000 - example.step(*edits) == gain


def test_g10_a_quarter_of_the_host_time_is_the_whole_gain(example: Hand) -> None:
    assert example.step("no-launch-overhead", part=0.25) == 900
    assert example.step("no-launch-overhead", part=0.10) == 944


def test_g10_both_are_needed_for_the_last_20(tmp_path: Path) -> None:
    found = studied(tmp_path, g10())
    gain = {name: round(1000 * found.gains[name].share) for name in found.gains}
    both = 120
    assert both - gain["no-communication"] - gain["no-launch-overhead"] == 20


def test_g11_2000_launches_of_12_us_hide_15_ms_of_kernels(tmp_path: Path) -> None:
    """A kernel is 6.5 us and the 1 us between queued kernels, where the trace shows none queued."""
    built = trace()
    for k in range(3):
        built.step(k + 1, 24_000 * k, 24_000 * (k + 1))
        for i in range(2000):
            at = 24_000 * k + 12 * i
            built.op("aten::add", at, at + 12)
            built.kernel("k", at, f"{at + 6}.5", launch=(at, at + 4))
    assert studied(tmp_path, built).gains["no-launch-overhead"].share == pytest.approx(1 - 1 / 1.6)
