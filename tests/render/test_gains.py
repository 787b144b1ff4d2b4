from __future__ import annotations

import pytest
from example import example
from example_whatif import replayed
from msgspec.structs import replace

from analyzer.render import gains
from analyzer.render.charts import gain_bars
from analyzer.report.document import After, Gain, Report


def noise_at(report: Report, *places: int) -> Report:
    """The report in which the replayed gains of exactly the findings at `places` are noise."""
    found = [
        replace(item, gain=replace(item.gain, noise=place in places))
        for place, item in enumerate(report.findings)
    ]
    return replace(report, findings=found)


def test_noise_of_a_replayed_finding_is_that_of_its_replay_not_of_its_share() -> None:
    report = noise_at(replayed(), 0)
    assert report.findings[0].share == 0.14
    assert gains.noisy(report.findings[0])
    assert not gains.noisy(replace(report.findings[1], share=0.001))


def test_noise_of_a_share_is_below_two_percent_of_the_step() -> None:
    report = example()
    first = report.findings[0]
    assert gains.noisy(replace(first, share=0.0199))
    assert not gains.noisy(replace(first, share=0.02))


@pytest.mark.parametrize(
    "places, begins", [((), 5), ((4,), 4), ((3, 4), 3), ((1, 4), 4), ((0, 1, 2, 3, 4), 0)]
)
def test_noise_begins_after_the_last_gain(places: tuple[int, ...], begins: int) -> None:
    report = noise_at(replayed(), *places)
    assert gains.first_noise(report.findings) == begins


def test_a_list_without_noise_has_no_border() -> None:
    report = noise_at(replayed())
    assert gains.first_noise(report.findings[:5]) == 5


@pytest.mark.parametrize(
    "basis, speedup, words",
    [
        ("replay", 1.25, "1.25x"),
        ("share", 1.25, "1.25x by share"),
        ("share", None, "not measurable"),
        ("replay", None, "not measurable"),
    ],
)
def test_among_gains_a_share_is_told_apart(basis: str, speedup: float | None, words: str) -> None:
    gain = Gain(speedup=speedup, lo=None, hi=None, basis=basis)
    assert gains.worth(replayed(), gain) == words


def test_among_shares_the_column_alone_says_so() -> None:
    report = example()
    assert gains.column(report) == "by share"
    assert gains.worth(report, report.findings[0].gain) == "1.16x"


def test_an_interval_of_one_end_is_none() -> None:
    assert gains.interval(Gain(speedup=1.2, lo=1.1, hi=None, basis="replay")) == ""
    assert gains.interval(Gain(speedup=1.2, lo=1.1, hi=1.3, basis="replay")) == "1.10 to 1.30"


@pytest.mark.parametrize("speedup, part", [(2.0, 0.5), (1.0, 0.0), (0.5, 0.0), (None, 0.0)])
def test_a_speedup_takes_off_this_part_of_the_step(speedup: float | None, part: float) -> None:
    assert gains.removed(speedup) == part


def test_a_run_that_all_scales_has_no_ceiling() -> None:
    left = After(f=0.0, s=0.0, ceiling_today=None, ceiling_one_gpu=None)
    unknown = replace(left, f=None, s=None, reason="weak scaling has no ceiling")
    assert gains.ceiling(left, None) == "unbounded"
    assert gains.ceiling(unknown, None) == "not measurable"


def test_the_bar_of_a_gain_has_a_line_over_its_interval() -> None:
    gain = Gain(speedup=2.0, lo=4 / 3, hi=4.0, basis="replay")
    [bar] = gain_bars([replace(replayed().findings[0], gain=gain)])
    assert '<path d="M40 5H120"' in bar
    assert '<rect width="80" height="10"' in bar
