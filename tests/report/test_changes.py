"""What became of each bottleneck, and whether fixing it gave what was promised."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sides import compared, finding, loading_fixed, run, steps

from analyzer.report.document import Edit, Finding


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ([finding("x", 16.0)], [], "fixed"),
        ([finding("x", 16.0)], [finding("x", 10.0)], "better"),
        ([finding("x", 16.0)], [finding("x", 14.5)], "same"),
        ([finding("x", 16.0)], [finding("x", 20.0)], "worse"),
        ([], [finding("x", 16.0)], "new"),
    ],
)
def test_a_bottleneck_is_known_by_its_id(
    before: list[Finding], after: list[Finding], status: str
) -> None:
    (row,) = compared(run(findings=before), run(findings=after)).findings
    assert (row.id, row.status) == ("x", status)


def test_one_that_may_only_have_crossed_its_threshold_says_so() -> None:
    quiet = compared(run(findings=[finding("x", 16.0)]), run(steps(data_loading=15.0)))
    assert quiet.findings[0].note.startswith("its time class moved by less than 2.0 %")
    assert loading_fixed().findings[0].note == ""


def test_what_a_run_is_counts_as_no_bottleneck() -> None:
    assert compared(run(findings=[finding("compute-bound", 60.0)]), run()).findings == []


def test_one_that_half_of_the_runs_have_is_one_of_the_side() -> None:
    seen = run(findings=[finding("x", 16.0)])
    assert [row.status for row in compared([seen, run()], run()).findings] == ["fixed"]
    assert compared([seen, run(), run()], run()).findings == []


def test_the_promise_is_held_against_the_measured_step() -> None:
    (row,) = loading_fixed().forecasts
    assert (row.whatif, row.finding, row.shared) == ("no-data-loading", "data-loading", False)
    # 7/8 of the loading went, of which all was worth 16 ms
    assert (row.part, row.promised_ms, row.measured_ms) == pytest.approx((0.875, 14.0, 14.0))
    assert row.text == (
        "87.5 % of data loading went, for which the replay promised 14.0 ms; the step is 14.0 ms "
        "shorter."
    )


def test_a_part_of_a_fix_is_promised_what_its_curve_says() -> None:
    curve = [(0.5, 1 / 0.98), (1.0, 1 / 0.84)]
    edit = Edit(id="no-data-loading", step_ms=84.0, speedup=1 / 0.84, curve=curve)
    before = run(findings=[finding("data-loading", 16.0, whatif=edit.id)], edits=[edit])
    after = run(steps(data_loading=4.0), findings=[finding("data-loading", 4.0)])
    (row,) = compared(before, after).forecasts
    # half-way between the points: 2 % for a half, 16 % for all, 9 % for three quarters
    assert row.promised_ms == pytest.approx(9.0)


def test_a_promise_of_noise_is_not_held_against_anything() -> None:
    edit = Edit(id="no-data-loading", step_ms=99.0, speedup=1.01, noise=True)
    before = run(findings=[finding("data-loading", 16.0, whatif=edit.id)], edits=[edit])
    assert compared(before, run(steps(data_loading=2.0))).forecasts == []


def test_two_fixes_share_what_was_measured() -> None:
    edits = [
        Edit(id="no-data-loading", step_ms=84.0, speedup=1 / 0.84),
        Edit(id="no-launch-overhead", step_ms=90.0, speedup=1 / 0.9),
    ]
    found = [
        finding("data-loading", 16.0, whatif="no-data-loading"),
        finding("kernel-launch", 10.0, class_="launch", whatif="no-launch-overhead"),
    ]
    after = run([{"compute": 60.0, "comm_transfer": 14.0}] * 5)
    rows = compared(run(findings=found, edits=edits), after).forecasts
    assert [row.shared for row in rows] == [True, True]
    assert rows[0].text.endswith("the step is 26.0 ms shorter, for all that changed.")


def test_a_share_promises_at_most() -> None:
    edit = Edit(id="no-data-loading", step_ms=84.0, speedup=1 / 0.84)
    before = run(findings=[finding("data-loading", 16.0, whatif=edit.id)], edits=[edit])
    shares = replace(before, whatif=replace(before.whatif, basis="share"))
    (row,) = compared(shares, run(steps(data_loading=0.0))).forecasts
    assert "shares allowed at most 16.0 ms" in row.text
