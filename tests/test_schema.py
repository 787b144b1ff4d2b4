"""The published schema: a valid one, described, with every name that programs rely on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import VALIDATOR
from jsonschema import Draft202012Validator
from runs import CREATED, write_run

from analyzer import api
from analyzer.config import Settings
from analyzer.report import document, scaling
from analyzer.report.build import Request
from analyzer.report.schema import schema

SCHEMA = schema()
PARTS: dict[str, dict[str, Any]] = SCHEMA["$defs"]
# Names of report.json that are promised; more may be added, none may go.
PROMISED = {
    "Plan": "n today_s price order rows roads target",
    "PlanRow": "n fixes step_ms duration_s gpu_hours cost",
    "Target": "target_s speedup paths ceiling_s left_ms",
    "Report": "schema_version tool created run quality steps breakdown scaling whatif findings "
    "ranks collectives kernels unknown passed verdict",
    "Tool": "name version",
    "Run": "label world_size ranks_present hosts gpu backend torch flags strategy files",
    "Flags": "with_stack profile_memory record_shapes",
    "InputFile": "name rank bytes events",
    "Caveat": "id severity text forbids",
    "Steps": "used dropped wall_ms",
    "DroppedStep": "index why",
    "WallTime": "mean median lo hi n",
    "Breakdown": "classes groups mean_ms group_ms hidden_comm_ms per_rank per_step",
    "RankRow": "rank step_ms ms hidden_comm_ms",
    "StepRow": "step ms",
    "Scaling": "mode n f s P ceiling_today ceiling_one_gpu speedup efficiency gustafson predict",
    "Estimate": "value lo hi envelope reason",
    "Prediction": "n step_ms speedup efficiency",
    "WhatIf": "basis replay_error edits",
    "Edit": "id step_ms speedup lo hi curve",
    "Finding": "id title class ms share gain whatif ceiling_after because so check where "
    "confidence",
    "Gain": "speedup lo hi basis",
    "Ranks": "late clock pop",
    "LateRank": "rank ms share_of_collectives because",
    "Clock": "aligned residual_us",
    "Collective": "kind group group_size count bytes ms wait_ms transfer_ms exposed_ms algbw_gbs "
    "busbw_gbs",
    "Kernel": "name kind count ms share",
    "Unknown": "name category ms",
    "Verdict": "text finding confidence",
}


@pytest.fixture
def written(tmp_path: Path) -> dict[str, Any]:
    """report.json of the healthy run."""
    write_run(tmp_path)
    report = api.analyze([str(tmp_path)], Request("mine", CREATED), Settings())
    read: dict[str, Any] = json.loads(document.dumps(report))
    return read


def test_the_schema_is_one_of_draft_2020_12() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("part", PROMISED)
def test_every_promised_name_is_in_the_schema(part: str) -> None:
    assert set(PROMISED[part].split()) <= set(PARTS[part]["properties"])


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_what_it_is(part: str) -> None:
    assert PARTS[part]["description"].endswith(".")


def test_a_report_is_valid_and_keeps_the_order_of_the_schema(written: dict[str, Any]) -> None:
    VALIDATOR.validate(written)
    assert list(written) == list(PARTS["Report"]["properties"])


@pytest.mark.parametrize("part", ["verdict", "quality", "steps", "scaling", "schema_version"])
def test_a_report_that_lacks_a_part_is_refused(part: str, written: dict[str, Any]) -> None:
    del written[part]
    assert not VALIDATOR.is_valid(written)


def test_a_report_with_a_text_for_a_number_is_refused(written: dict[str, Any]) -> None:
    written["steps"]["wall_ms"]["mean"] = "1.0"
    assert not VALIDATOR.is_valid(written)


def test_a_report_with_more_than_is_promised_stays_valid(written: dict[str, Any]) -> None:
    written["later"] = {"added": 1}
    VALIDATOR.validate(written)


# The same of scaling.json.
SERIES: dict[str, dict[str, Any]] = scaling.schema()["$defs"]
SERIES_PROMISED = {
    "ScalingReport": "schema_version mode points laws classes predict plan verdict",
    "ScalePoint": "n step_ms lo hi speedup efficiency karp_flatt",
    "FittedLaw": "id parameters loo_error best",
    "FittedClass": "class fit",
    "ScalePrediction": "n step_ms lo hi speedup efficiency",
}


def test_the_schema_of_a_series_is_one_of_draft_2020_12() -> None:
    Draft202012Validator.check_schema(scaling.schema())


@pytest.mark.parametrize("part", SERIES_PROMISED)
def test_every_promised_name_of_a_series_is_in_its_schema(part: str) -> None:
    assert set(SERIES_PROMISED[part].split()) <= set(SERIES[part]["properties"])


@pytest.mark.parametrize("part", SERIES)
def test_every_part_of_a_series_says_what_it_is(part: str) -> None:
    assert SERIES[part]["description"].endswith(".")
