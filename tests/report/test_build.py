"""From a job to its report: milliseconds, trimmed tables, bounds, reasons for what is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from make import trace
from runs import CREATED, STEP, exposed, healthy, reported, write_run

from analyzer.report.build import MOST_KERNELS, label_of
from analyzer.report.document import InputFile, Report
from analyzer.whatif.study import NO_STUDY

DAY = 86_400.0
# Sequence parallelism: gather, scatter, gather, scatter.
SEQUENCE = ("_allgather_base", "_reduce_scatter_base") * 8


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Two ranks, 900 us of compute and 100 us of exposed all-reduce a step."""
    return reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)}, duration_s=10 * DAY)


def test_the_report_says_who_made_it_and_when(report: Report) -> None:
    assert (report.tool.name, report.created, report.run.label) == (
        "torch-ceiling",
        CREATED,
        "mine",
    )


def test_microseconds_in_the_trace_are_milliseconds_in_the_report(report: Report) -> None:
    assert report.steps.wall_ms.mean == pytest.approx(1.0)
    assert report.breakdown.mean_ms["compute"] == pytest.approx(0.9)
    assert report.breakdown.mean_ms["comm_transfer"] == pytest.approx(0.1)


def test_used_steps_are_listed_and_dropped_ones_say_why(report: Report) -> None:
    assert report.steps.used == [2, 3, 4, 5, 6]
    assert [(d.index, d.why.split(":")[0]) for d in report.steps.dropped] == [
        (1, "first recorded step"),
        (7, "last profiled step"),
    ]


def test_a_step_that_one_rank_lacks_is_dropped_with_the_reason(tmp_path: Path) -> None:
    files = {"rank0.json": healthy(0, steps=range(1, 10)), "rank1.json": healthy(1)}
    report = reported(tmp_path, dict(files))
    assert report.steps.used == [2, 3, 4, 5, 6]
    assert (8, "not recorded on every rank") in [(d.index, d.why) for d in report.steps.dropped]


def test_steps_that_do_not_vary_have_an_interval_of_no_width(report: Report) -> None:
    wall = report.steps.wall_ms
    assert (wall.lo, wall.hi, wall.n, wall.reason) == (wall.mean, wall.mean, 5, "")


def test_too_few_steps_have_no_interval_but_the_reason(tmp_path: Path) -> None:
    report = reported(tmp_path, {"rank0.json": healthy(0, 1, steps=range(1, 5))})
    wall = report.steps.wall_ms
    assert (wall.lo, wall.hi) == (None, None)
    assert wall.reason == f"no interval: 5 steps are needed, the trace has {wall.n}"


def test_both_ceilings_are_given_with_both_fractions(report: Report) -> None:
    scaling = report.scaling
    assert scaling.n == 2
    assert scaling.f.value == pytest.approx(0.1)
    assert scaling.s.value == pytest.approx(0.1 / 1.9)
    assert scaling.ceiling_today.value == pytest.approx(10.0)
    assert scaling.ceiling_one_gpu.value == pytest.approx(19.0)


def test_n_is_the_data_parallel_degree_and_the_report_says_so(report: Report) -> None:
    assert report.run.strategy == ["data"]
    assert report.scaling.assumptions[0] == "N is the 2 GPUs, all of which share the batch."


def test_a_given_n_stands_in_for_the_recognised_one(tmp_path: Path) -> None:
    built = {f"rank{r}.json": exposed(r) for r in (0, 1)}
    scaling = reported(tmp_path, dict(built), n=6).scaling
    assert scaling.n == 6
    # 0.1 ms of 1 ms does not scale: 0.1 / (6 * 0.9 + 0.1).
    assert scaling.s.value == pytest.approx(0.1 / 5.5)
    assert 6 in [row.n for row in scaling.predict]
    assert scaling.assumptions[0] == "N is 6 because it was given so."


def test_the_curve_is_told_at_powers_of_two_to_1024(report: Report) -> None:
    assert [row.n for row in report.scaling.predict] == [2**k for k in range(11)]


def test_todays_size_is_on_the_curve_where_it_is_no_power_of_two(tmp_path: Path) -> None:
    report = reported(tmp_path, {f"rank{r}.json": healthy(r, 3) for r in range(3)})
    row = next(row for row in report.scaling.predict if row.n == 3)
    assert row.step_ms == pytest.approx(report.steps.wall_ms.mean)


def test_the_length_of_the_run_follows_the_step(report: Report) -> None:
    assert report.scaling.duration is not None
    assert report.scaling.duration.today_s == 10 * DAY
    by_size = {row.n: row for row in report.scaling.predict}
    assert by_size[2].duration_s == pytest.approx(10 * DAY)
    # One GPU: twice the compute and today's communication, 1.9 ms instead of 1.0.
    assert by_size[1].duration_s == pytest.approx(19 * DAY)


def test_without_a_length_no_row_has_one(tmp_path: Path) -> None:
    report = reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)})
    assert report.scaling.duration is None
    assert {row.duration_s for row in report.scaling.predict} == {None}


def test_weak_scaling_has_no_ceiling_and_says_so(tmp_path: Path) -> None:
    report = reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)}, mode="weak")
    assert report.scaling.ceiling_today.value is None
    assert "weak scaling" in report.scaling.ceiling_today.reason
    assert all("weak scaling" in f.reason for f in report.findings)


def test_a_finding_is_worth_what_the_replay_gains(report: Report) -> None:
    """Without the 100 us of transfer 900 us of compute are left, and 1 us from step to step."""
    first = report.findings[0]
    assert (first.id, first.class_, first.whatif) == (
        "exposed-communication",
        "comm_transfer",
        "no-communication",
    )
    assert first.ms == pytest.approx(0.1)
    assert first.gain.basis == "replay"
    assert first.gain.speedup == pytest.approx(1 / 0.901)
    assert (first.gain.lo, first.gain.hi) == (first.gain.speedup, first.gain.speedup)
    assert first.gain.curve[-1] == (1.0, first.gain.speedup)
    assert (first.gain.noise, first.gain.reason) == (False, "")


def test_the_ceiling_after_a_fix_is_that_of_the_replayed_step(report: Report) -> None:
    """Of the 901 us that are left 1 us does not scale."""
    assert report.findings[0].ceiling_after == pytest.approx(901.0)
    assert report.findings[0].reason == ""


def test_a_finding_whose_fix_gains_nothing_is_noise_and_no_verdict(tmp_path: Path) -> None:
    """The host of each rank takes as long for a step as the device does: it sets the pace."""
    report = reported(tmp_path, {f"rank{r}.json": exposed(r, pace=1000) for r in (0, 1)})
    assert (report.findings[0].id, report.verdict.finding) == ("exposed-communication", None)
    gain = report.findings[0].gain
    assert (gain.basis, gain.speedup, gain.noise) == ("replay", pytest.approx(1.0), True)


@pytest.fixture
def by_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The same report where nothing could be replayed."""
    monkeypatch.setattr("analyzer.report.build.study", lambda job, limits: NO_STUDY)
    return reported(tmp_path, {f"rank{r}.json": exposed(r) for r in (0, 1)})


def test_without_a_replay_a_finding_is_worth_a_bound_without_interval(by_shares: Report) -> None:
    gain = by_shares.findings[0].gain
    assert gain.speedup == pytest.approx(1 / 0.9)
    assert (gain.lo, gain.hi, gain.basis, gain.noise) == (None, None, "share", False)
    assert gain.curve == []
    assert gain.reason == "a share has no interval"


def test_removing_all_that_does_not_scale_leaves_no_ceiling(by_shares: Report) -> None:
    assert by_shares.findings[0].ceiling_after is None
    assert by_shares.findings[0].reason == "not bounded by this trace"


def test_without_a_replay_the_verdict_promises_a_bound_only(by_shares: Report) -> None:
    assert by_shares.verdict.text == (
        "Hide communication first: 0.10 ms of every 1.00 ms step, 1.11x by its share (not "
        "replayed)."
    )


def test_the_verdict_names_a_finding_of_the_list(report: Report) -> None:
    assert report.verdict.finding == report.findings[0].id
    assert report.verdict.text == (
        "Hide communication first: 0.10 ms of every 1.00 ms step, worth 1.11x."
    )


def test_removing_the_waits_for_a_batch_lowers_the_ceiling(tmp_path: Path) -> None:
    built = {f"rank{r}.json": exposed(r, loader=1000) for r in (0, 1)}
    report = reported(tmp_path, dict(built))
    first = report.findings[0]
    assert first.id == "data-loading"
    assert first.ceiling_after is not None
    assert report.scaling.ceiling_today.value is not None
    assert first.ceiling_after < report.scaling.ceiling_today.value


def test_scattered_gradients_mean_a_sharded_optimizer(tmp_path: Path) -> None:
    kinds = ("_reduce_scatter_base", "_allgather_base")
    sharded = reported(tmp_path / "a", {f"rank{r}.json": exposed(r, kinds=kinds) for r in (0, 1)})
    plain = reported(tmp_path / "b", {f"rank{r}.json": exposed(r) for r in (0, 1)})
    assert (sharded.scaling.roles["optimizer"], plain.scaling.roles["optimizer"]) == (
        "scales",
        "serial",
    )


def test_hidden_communication_is_told_beside_the_classes(tmp_path: Path) -> None:
    report = reported(tmp_path, {f"rank{r}.json": healthy(r) for r in (0, 1)})
    assert report.breakdown.hidden_comm_ms == pytest.approx(0.3)
    assert report.breakdown.group_ms["communication"] == 0.0
    assert [row.hidden_comm_ms for row in report.breakdown.per_rank] == pytest.approx([0.3, 0.3])


def test_kernels_beyond_the_largest_are_one_row(tmp_path: Path) -> None:
    built = trace(0, 1)
    for k in range(7):
        at = k * STEP
        built.step(k + 1, at, at + STEP).loader(at, at + 1)
        for i in range(50):
            start = at + 20 + 20 * i
            built.kernel(f"gemm_{i}", start, start + 20, launch=(at + 2 + i // 5, at + 12))
    report = reported(tmp_path, {"rank0.json": built})
    assert len(report.kernels) == MOST_KERNELS + 1
    assert (report.kernels[-1].name, report.kernels[-1].count) == ("(10 more names)", 10.0)
    assert sum(row.ms for row in report.kernels) == pytest.approx(1.0)
    assert sum(row.share for row in report.kernels) == pytest.approx(1.0)


def test_activations_that_are_scattered_mean_no_sharded_optimizer(tmp_path: Path) -> None:
    built = {f"rank{r}.json": exposed(r, kinds=SEQUENCE) for r in (0, 1)}
    report = reported(tmp_path, dict(built))
    assert report.run.strategy == ["tensor"]
    assert report.scaling.roles["optimizer"] == "serial"


def test_idle_causes_without_time_are_left_out(tmp_path: Path) -> None:
    built = {f"rank{r}.json": exposed(r, loader=1000) for r in (0, 1)}
    report = reported(tmp_path, dict(built))
    assert report.idle[0].cause == "loader"
    assert report.idle[0].class_ == "data_loading"
    assert all(row.ms > 0 for row in report.idle)


def test_an_unknown_category_is_told_with_its_time(tmp_path: Path) -> None:
    built = healthy(0, 1, without=["collectives"]).event("fpga", "dot", 100, 350)
    report = reported(tmp_path, {"rank0.json": built})
    assert [(u.category, u.ms) for u in report.unknown] == [("fpga", 0.25)]


def test_the_run_is_described_by_what_its_files_say(tmp_path: Path) -> None:
    first = healthy(0).top("deviceProperties", [{"id": 0, "name": "NVIDIA H100"}])
    first.top("record_shapes", 1).top("with_stack", 0).top("host_name", "node7")
    report = reported(tmp_path, {"rank0.json": first, "rank1.json": healthy(1)})
    run = report.run
    assert (run.world_size, run.ranks_present, run.backend) == (2, [0, 1], "nccl")
    assert (run.gpu, run.hosts) == ("NVIDIA H100", ["node7"])
    flags = run.flags
    assert (flags.record_shapes, flags.with_stack, flags.profile_memory) == (True, False, None)


def test_the_files_stand_in_order_of_ranks_then_the_skipped(tmp_path: Path) -> None:
    write_run(tmp_path, ranks=11)
    (tmp_path / "a.json").write_text("{}")
    files = reported(tmp_path, {}).run.files
    assert [f.rank for f in files] == [*range(11), None]
    assert files[-1] == InputFile(
        name="a.json", rank=None, bytes=2, events=0, reason="JSON of another kind"
    )


@pytest.mark.parametrize(
    ("paths", "label"),
    [
        (["/runs/ddp/rank0.json.gz", "/runs/ddp/rank1.json.gz"], "ddp"),
        (["/runs/ddp/a/rank0.json", "/runs/ddp/b/rank1.json"], "ddp"),
        (["/runs/Qwen1.5-0.5B.pt.trace.json.gz"], "Qwen1.5-0.5B"),
        (["/runs/rank0.json.gz.digest"], "rank0"),
    ],
)
def test_a_run_is_named_after_its_folder_or_its_only_file(paths: list[str], label: str) -> None:
    assert label_of([Path(p) for p in paths]) == label
