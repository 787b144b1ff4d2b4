"""From traces to the overlay: what lies on which row of which rank, and that readers take it."""

from __future__ import annotations

import gzip
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Run
from make import TraceBuilder
from perfetto_rules import broken, read
from real_traces import real_trace
from runs import CREATED, exposed

from analyzer import api
from analyzer.config import Settings
from analyzer.digest import digest, save
from analyzer.render.overlay import FIRST_PROCESS, render
from analyzer.report import overlays
from analyzer.report.build import Request
from analyzer.report.overlay import CLASSES, FINDINGS, STEPS, WAITS, Overlay, Slice
from analyzer.trace.discover import find

REAL = [
    "megatron-tp8-a100",
    "nanogpt-8xh100",
    "hta-resnet-ddp2-ncclargs",
    "hta-gloo-cpu-rank34of300/full",
    "hta-sync-micro/simple_add",
    "kineto-resnet50-workers-torch180/resnet50_num_workers_4",
    "tracelens-resnet18-mi300",
    "tracelens-qwen30b-decode-b300-mi300/MI300",
    "xpu-randn-matmul",
]


def overlaid(*paths: Path) -> Overlay:
    names = [str(path) for path in paths]
    settings, found = Settings(), find(names)
    loaded = api.load(api.digests(names, settings, found=found, jobs=1), settings=settings)
    return api.overlay(loaded, Request("", CREATED), settings, found, lambda path: None)


def late() -> list[TraceBuilder]:
    """Rank 1 computes 300 us longer than ranks 0 and 2, which wait for it that long."""
    return [exposed(0, 3, wait=300), exposed(1, 3, compute=1200), exposed(2, 3, wait=300)]


def write(folder: Path, builders: list[TraceBuilder]) -> Path:
    for rank, built in enumerate(builders):
        built.write(folder / f"rank{rank}.json")
    return folder


def row(of: Overlay, rank: int, number: int) -> list[Slice]:
    tracks = {track.number: track.slices for track in of.ranks[rank].tracks}
    return tracks.get(number, [])


def test_classes_sum_to_the_steps_as_the_report_has_them(tmp_path: Path) -> None:
    folder = write(tmp_path, late())
    report = api.analyze([str(folder)], Request("", CREATED), Settings(), jobs=1)
    of = overlaid(folder)
    for rank in report.breakdown.per_rank:
        used = [s for s in row(of, rank.rank, STEPS) if "not used" not in s.details]
        total: Counter[str] = Counter()
        for step in used:
            for piece in row(of, rank.rank, CLASSES):
                inside = min(piece.end, step.end) - max(piece.start, step.start)
                total[piece.name] += max(0, inside)
        measured = {name: ms for name, ms in rank.measured.items() if ms}
        assert {n: ns / 1e6 / len(used) for n, ns in total.items() if ns} == pytest.approx(measured)


def test_a_wait_names_the_rank_that_came_last_and_its_length(tmp_path: Path) -> None:
    of = overlaid(write(tmp_path, late()))
    assert row(of, 1, WAITS) == []
    for rank in (0, 2):
        waits = row(of, rank, WAITS)
        assert {s.name for s in waits} == {"all_reduce waits for rank 1"}
        assert {s.details["ms"] for s in waits} == {0.3}


def test_an_arrow_leads_from_what_the_late_rank_did_to_the_end_of_the_wait(tmp_path: Path) -> None:
    of = overlaid(write(tmp_path, late()))
    arrows = [a for a in of.arrows if a.name == "late arrival"]
    assert len(arrows) == len(row(of, 0, WAITS)) + len(row(of, 2, WAITS))
    for arrow in arrows:
        (did,) = (s for s in row(of, 1, CLASSES) if s.start <= arrow.start.at < s.end)
        assert did.name == "compute"
        assert arrow.end.at in {s.end - 1 for s in row(of, arrow.end.rank, WAITS)}


def test_the_critical_path_changes_ranks_by_an_arrow(tmp_path: Path) -> None:
    of = overlaid(write(tmp_path, late()))
    path = [a for a in of.arrows if a.name == "critical path"]
    assert all(a.start.at < a.end.at for a in path)
    assert {a.start.rank for a in path} | {a.end.rank for a in path} <= {0, 1, 2}


def test_findings_lie_on_the_step_they_point_to(tmp_path: Path) -> None:
    folder = write(tmp_path, late())
    report = api.analyze([str(folder)], Request("", CREATED), Settings(), jobs=1)
    of = overlaid(folder)
    first = report.findings[0]
    assert first.spot is not None
    slices = row(of, first.spot.rank, FINDINGS)
    (shown,) = (s for s in slices if first.id in s.details)
    assert (shown.start - of.base_ns) / 1000 == pytest.approx(first.spot.start_us)
    assert shown.name.startswith(f"1. {first.title}")


def test_a_run_read_from_digests_shows_one_step_and_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "traces", late())
    saved = tmp_path / "digests"
    saved.mkdir()
    for path in sorted(folder.iterdir()):
        save(digest(path, Settings()), saved / f"{path.name}.digest")
    of = overlaid(saved)
    assert overlays.STRIPS_ONLY in of.notes
    (step,) = (s for s in row(of, 0, STEPS) if s.start == row(of, 0, CLASSES)[0].start)
    assert row(of, 0, CLASSES)[-1].end == step.end
    assert broken(render(of)) == []


def test_the_command_writes_what_it_names_and_keeps_what_is_there(
    folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    target = tmp_path / "overlay.json.gz"
    ran = ceiling("overlay", folder, "-o", target)
    assert (ran.code, ran.out) == (0, "")
    assert "open it at ui.perfetto.dev" in ran.err
    assert broken(gzip.decompress(target.read_bytes()).decode()) == []
    assert ceiling("overlay", folder, "-o", target).code == 2
    assert ceiling("overlay", folder, "-o", target, "--force").code == 0


def test_stdout_holds_the_trace_alone(folder: Path, ceiling: Run) -> None:
    ran = ceiling("overlay", folder, "-o", "-")
    assert broken(ran.out) == []


def test_our_own_reader_takes_an_overlay_for_no_recording(folder: Path, ceiling: Run) -> None:
    ceiling("overlay", folder, "-o", folder / "overlay.json")
    ran = ceiling("analyze", folder)
    assert ran.code == 0
    assert "overlay.json" in ran.err


@pytest.mark.parametrize("name", REAL)
def test_readers_take_the_overlay_of_other_peoples_runs(name: str) -> None:
    of = overlaid(real_trace(name))
    text = render(of)
    assert broken(text) == []
    processes = {e["pid"] - FIRST_PROCESS for e in read(text)}
    assert processes == {r.rank for r in of.ranks}


def test_the_classes_of_a_real_run_do_not_overlap_and_lie_in_its_time() -> None:
    of = overlaid(real_trace("megatron-tp8-a100"))
    events = [e for e in read(render(of)) if e["ph"] == "X" and e["tid"] == CLASSES]
    assert len({e["pid"] for e in events}) == 8
    assert min(e["ts"] for e in events) > Decimal(0)
