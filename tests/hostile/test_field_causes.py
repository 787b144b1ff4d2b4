"""Public reports O32 to O36: why the device was idle, and when that cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest
from field import BASE, GEMM, STEP, base, both, mean, report, same, text, told
from make import TraceBuilder, trace

from analyzer.ranks.unknown import NO_LOADER, WORK_LOST
from analyzer.render import console, html, markdown


def loading(built: TraceBuilder, k: int, at: int) -> None:
    """The host asks for the next batch for 8 ms while the device works."""
    built.loader(at + 50, at + 8050)


def test_a_loader_beside_a_busy_device_costs_nothing(tmp_path: Path) -> None:
    """O32"""
    found = both(tmp_path, base(0, each=loading), base(1, each=loading))
    assert mean(found) == BASE
    assert found.breakdown.mean_ms["data_loading"] == 0.0
    assert "data-loading" not in {finding.id for finding in found.findings}
    assert any(sentence.startswith("Data loading is hidden") for sentence in found.passed)


def without_loader() -> TraceBuilder:
    """Steps of 10 ms of which the device is idle for 6, the host without any record for 5.99."""
    built = trace(0, 1)
    for k in range(5):
        at = k * STEP
        built.step(k, at, at + STEP)
        built.kernel(GEMM, at + 6010, at + 10_010, launch=(at + 6000, at + 6005))
    return built


def test_idle_time_without_a_loader_event_is_not_blamed_on_the_loader(tmp_path: Path) -> None:
    """O33"""
    found = report(tmp_path, {"rank0.json": without_loader()})
    assert mean(found) == {"compute": 4.0, "launch": 0.01, "unexplained": 5.99}
    assert {cause.cause: round(cause.ms, 6) for cause in found.idle}["host_unknown"] == 5.99
    assert text(found, "no-loader-events").startswith("No data-loader events were recorded")
    assert found.breakdown.mean_ms["data_loading"] is None
    assert found.breakdown.group_ms["data_loading"] is None
    assert found.breakdown.reason == NO_LOADER
    (edit,) = (e for e in found.whatif.edits if e.id == "no-data-loading")
    assert (edit.speedup, edit.reason) == (None, NO_LOADER)
    assert found.verdict.finding is None


def waiting_for_the_other_stream(rank: int) -> TraceBuilder:
    """C, an all-reduce on another stream, then D, all launched early; 10 us between each two."""
    built = trace(rank, 2)
    for k in range(4):
        at = k * STEP
        built.step(k, at, at + STEP).loader(at, at + 5)
        built.kernel("C", at + 20, at + 4020, launch=(at + 10, at + 11))
        built.collective("allreduce", at + 4030, at + 6030, launch=(at + 12, at + 13))
        built.kernel("D", at + 6040, at + 10_020, launch=(at + 14, at + 15))
    return built


def test_a_gap_behind_another_streams_work_is_no_launch_overhead(tmp_path: Path) -> None:
    """O34"""
    ranks = [waiting_for_the_other_stream(r) for r in (0, 1)]
    found = both(tmp_path, *ranks)
    assert mean(found) == {"compute": 7.98, "comm_transfer": 2.0, "dependency": 0.02}
    assert found.breakdown.mean_ms["launch"] == 0.0


def test_a_launch_call_that_no_list_knows_is_linked(tmp_path: Path) -> None:
    """O35"""
    calls = ("cuLaunchKernelEx_v13000", "hipExtModuleLaunchKernel", "xLaunchAnything")
    sound = both(tmp_path / "sound", base(0), base(1))
    for call in calls:
        found = both(tmp_path / call, base(0, call=call), base(1, call=call))
        assert same(found, sound)
        assert "unlinked-work" not in told(found)


def under_recorded() -> TraceBuilder:
    """Four steps of ten graph launches each; kernels were recorded for one of the forty."""
    built = trace(0, 1)
    for k in range(4):
        at = k * STEP
        built.step(k, at, at + STEP).loader(at, at + 5)
        for i in range(10):
            start = at + 10 + 900 * i
            call, number = (start, start + 5), 100 * k + i + 1000
            if (k, i) == (1, 3):
                graph = {"call": "cudaGraphLaunch", "launch": call, "correlation": number}
                built.kernel(GEMM, start + 10, start + 400, **graph)
                built.kernel(GEMM, start + 400, start + 890, correlation=number)
            else:
                built.runtime("cudaGraphLaunch", *call, correlation=number)
    return built


def test_graphs_without_their_kernels_forbid_idle_time_and_advice_on_it(tmp_path: Path) -> None:
    """O36"""
    found = report(tmp_path, {"rank0.json": under_recorded()})
    assert text(found, "graph-under-recorded") == (
        "Of 40 graph launches only 1 have recorded work (rank 0): the device was busier than "
        "shown, so idle and launch times are not given."
    )
    parts = found.breakdown
    for name in ("launch", "host_sync", "host_other", "dependency", "data_loading"):
        assert parts.mean_ms[name] is None
    assert parts.group_ms["launch_overhead"] is None
    assert parts.reason == WORK_LOST
    assert {cause.cause for cause in found.idle} == {"not_recorded"}
    assert {e.speedup for e in found.whatif.edits} == {None}
    assert {e.reason for e in found.whatif.edits} == {WORK_LOST}
    facts = found.scaling
    assert (facts.f.value, facts.s.value, facts.P, facts.predict) == (None, None, None, [])
    assert facts.ceiling_today.reason == WORK_LOST
    assert found.verdict.finding is None
    assert "not_recorded" not in found.verdict.text


@pytest.mark.parametrize("rank1", [base(1), base(1, each=loading)], ids=["sound", "loading"])
def test_lost_graphs_of_one_rank_forbid_the_means_over_all(
    rank1: TraceBuilder, tmp_path: Path
) -> None:
    """O36"""
    lost = base(0)
    for k in range(4):
        lost.runtime("cudaGraphLaunch", k * STEP + 60, k * STEP + 65)
    found = both(tmp_path, lost, rank1)
    assert "graph-under-recorded" in told(found)
    assert found.breakdown.mean_ms["launch"] is None
    assert found.scaling.f.value is None


def test_a_report_without_scaling_and_what_ifs_can_be_painted(tmp_path: Path) -> None:
    """O36"""
    found = report(tmp_path, {"rank0.json": under_recorded()})
    for painted in (
        html.render(found),
        markdown.comment(found),
        console.render(found, color=False, ascii_only=False),
    ):
        assert "not measurable" in painted
        assert "launched work was not recorded" in painted
        assert "not bounded" not in painted
