"""Every id that a report can show has an explanation."""

from __future__ import annotations

from typing import get_args

import pytest

from analyzer.classify.classes import CLASSES, GROUPS
from analyzer.classify.idle import CAUSES
from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.errors import UsageError
from analyzer.findings.detectors import CATALOGUE
from analyzer.findings.glossary import WIDTH, entries, entry, explain
from analyzer.ranks.dimensions import DATA, EXPERT, PIPELINE, SHARDED, TENSOR, UNKNOWN
from analyzer.ranks.efficiencies import DEVICE, POP
from analyzer.ranks.stragglers import CLOCK_FREE, CLOCKED
from analyzer.report.caveats import RULES
from analyzer.report.outcome import MIXED, NOT_COMPARABLE
from analyzer.scaling.difference import Outcome
from analyzer.timeline import serving

EDITS = (
    *("no-data-loading", "no-launch-overhead", "no-communication", "no-straggler"),
    *("no-host-sync", "no-optimizer", "bandwidth-x2", "perfect-overlap"),
)


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("class", CLASSES),
        ("finding", CATALOGUE),
        ("cause", CAUSES),
        ("edit", EDITS),
        ("method", (CLOCKED, CLOCK_FREE)),
        ("measure", ("occupancy", "replay-error", "gain", "critical-path")),
        ("outcome", (*get_args(Outcome), MIXED, NOT_COMPARABLE)),
        ("efficiency", (*POP, *DEVICE)),
        ("dimension", (DATA, SHARDED, TENSOR, PIPELINE, EXPERT, UNKNOWN)),
        ("phase", (serving.PREFILL, serving.DECODE, serving.MIXED)),
    ],
)
def test_every_id_of_a_kind_is_explained_and_no_other(kind: str, ids: tuple[str, ...]) -> None:
    assert [e.id for e in entries().values() if e.kind == kind] == list(ids)


def test_every_group_is_explained_under_its_name() -> None:
    assert set(GROUPS) <= set(entries())


def test_every_caveat_a_report_can_give_is_explained() -> None:
    known = {e.id for e in entries().values() if e.kind == "caveat"}
    assert {rule.id for rule in RULES} | {"rank-by-order", "rank-disputed"} <= known


@pytest.mark.parametrize("id", entries())
def test_an_explanation_says_all_five_things(id: str) -> None:
    found = entry(id)
    assert all([found.title, found.meaning, found.formula, found.limits, found.action])


@pytest.mark.parametrize("id", entries())
def test_an_explanation_names_only_thresholds_that_exist(id: str) -> None:
    assert set(entry(id).thresholds) <= set(DEFAULT_THRESHOLDS.as_dict())


@pytest.mark.parametrize("id", entries())
def test_an_explanation_fits_80_columns(id: str) -> None:
    assert max(map(len, explain(id).splitlines())) <= WIDTH


def test_the_value_of_a_threshold_is_the_one_in_force() -> None:
    text = explain("host-sync", Thresholds(host_sync_share=0.25))
    assert "host_sync_share = 0.25: " in text


def test_a_cause_says_which_class_it_is_booked_under() -> None:
    assert entry("allocator").meaning == (
        "The host was in a memory allocation call. Idle time of the device, part of the class "
        "host_other."
    )


def test_without_an_id_all_ids_are_listed_by_kind() -> None:
    lines = explain(None).splitlines()
    assert [line[:-1] for line in lines if line.endswith(":")] == [
        *("class", "group", "finding", "cause", "edit", "method", "measure"),
        *("efficiency", "dimension", "phase", "caveat", "outcome"),
    ]
    assert len([line for line in lines if line.startswith("  ")]) == len(entries())


def test_a_misspelt_id_is_met_with_the_nearest_ones() -> None:
    with pytest.raises(UsageError, match="nothing is called 'data loadin'") as caught:
        entry("data loadin")
    assert caught.value.hint.startswith("Did you mean data-loading")


def test_an_id_like_no_other_is_met_with_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        entry("qqq")
    assert caught.value.hint == "`ceiling explain` lists all ids."
