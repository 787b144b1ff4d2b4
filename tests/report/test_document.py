"""report.json: valid by its schema, the same both ways, nothing in it that JSON cannot hold."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import VALIDATOR
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import CREATED, exposed, healthy, loaded, write_run

from analyzer import api
from analyzer.config import Settings
from analyzer.errors import UnusableInput
from analyzer.report import document
from analyzer.report.build import Request
from analyzer.report.document import Report, dumps, loads
from analyzer.report.schema import schema
from analyzer.whatif.study import NO_STUDY

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if (path / "rank0.json.gz").exists())
# What a trace may leave unsaid about the run, what was not asked for, and choices of none.
UNSAID = {
    *("world_size", "gpu", "backend", "torch", "with_stack", "profile_memory", "record_shapes"),
    *("group_size", "bytes", "count", "whatif", "finding", "duration", "duration_s"),
    *("plan", "price", "cost", "target"),
}


def reported(paths: list[str], **asked: Any) -> Report:
    return api.analyze(paths, Request("", CREATED, **asked), Settings(), jobs=1)


@cache
def worked() -> Report:
    return reported([str(SAMPLES / "slow-rank-4gpu")])


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest) -> Report:
    return reported([str(SAMPLES / request.param)])


def plain(report: Report) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(dumps(report))
    return read


def unreasoned(value: Any, reasons: bool = False, path: str = "") -> list[str]:
    """Paths of nulls that have no reason beside or around them."""
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in unreasoned(v, reasons, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [path] if value is None and not reasons else []
    said = reasons or bool(value.get("reason"))
    return [
        found
        for key, inner in value.items()
        if key not in UNSAID or inner is not None
        for found in unreasoned(inner, said or bool(value.get(f"{key}_reason")), f"{path}.{key}")
    ]


def test_samples_are_found() -> None:
    assert len(NAMES) == 5


def test_a_sample_is_valid_by_the_schema(sample: Report) -> None:
    VALIDATOR.validate(plain(sample))


def test_a_sample_survives_the_way_to_json_and_back(sample: Report) -> None:
    assert loads(dumps(sample)) == sample


def test_every_null_of_a_sample_has_a_reason(sample: Report) -> None:
    assert unreasoned(plain(sample)) == []


@pytest.mark.parametrize("mode", ["strong", "accum", "weak"])
def test_every_null_has_a_reason_in_every_mode(mode: str) -> None:
    paths = [str(SAMPLES / "launch-bound-4gpu")]
    assert unreasoned(plain(reported(paths, mode=mode, duration_s=3600.0))) == []


def test_every_null_has_a_reason_where_nothing_bounds_the_job(tmp_path: Path) -> None:
    healthy(0, 1, without=["collectives"]).write(tmp_path / "rank0.json")
    found = plain(reported([str(tmp_path)], duration_s=3600.0))
    assert found["scaling"]["ceiling_today"]["value"] is None
    assert found["scaling"]["duration"]["ceiling_s"] is None
    assert unreasoned(found) == []


def test_every_null_has_a_reason_where_waiting_cannot_be_told_from_transfer(tmp_path: Path) -> None:
    exposed(0).write(tmp_path / "rank0.json")
    found = plain(reported([str(tmp_path)]))
    assert [e["id"] for e in found["whatif"]["edits"] if e["step_ms"] is None] == [
        "no-straggler",
        "bandwidth-x2",
    ]
    assert unreasoned(found) == []


def test_every_null_has_a_reason_where_nothing_was_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analyzer.report.build.study", lambda job, limits: NO_STUDY)
    write_run(tmp_path)
    found = plain(reported([str(tmp_path)], duration_s=3600.0))
    assert found["whatif"]["basis"] == "share"
    assert unreasoned(found) == []


def test_the_schema_refuses_a_report_that_lacks_a_part() -> None:
    broken = plain(worked())
    del broken["verdict"]
    assert not VALIDATOR.is_valid(broken)


def test_the_schema_describes_version_1() -> None:
    properties = schema()["$defs"]["Report"]["properties"]
    assert list(properties)[:4] == ["schema_version", "tool", "created", "verdict"]
    assert document.SCHEMA_VERSION == 1


def test_a_report_is_written_with_two_spaces_and_a_last_newline() -> None:
    text = dumps(worked())
    assert text.startswith(b'{\n  "schema_version": 1,\n  "tool": {\n    "name": ')
    assert text.endswith(b"}\n")
    assert not text.endswith(b"\n\n")


def test_no_number_is_outside_json(sample: Report) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(dumps(sample), parse_constant=refuse)


@settings(deadline=None)
@given(
    st.text(st.characters(codec="utf-8")),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
)
def test_any_name_and_number_survives(name: str, numbers: list[float]) -> None:
    kernels = [document.Kernel(name=name, kind="matmul", count=x, ms=x, share=x) for x in numbers]
    report = msgspec.structs.replace(worked(), kernels=kernels)
    assert loads(dumps(report)) == report


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not a report of this program"),
        (b"[1, 2]", "not a report of this program"),
        (b"\xff\xfe", "not a report of this program"),
        (b'{"traceEvents": []}', "schema_version is None"),
        (b'{"schema_version": 2}', "schema_version is 2, this program reads 1"),
        (b'{"schema_version": 1}', "not a report of this program"),
    ],
)
def test_anything_else_is_refused_by_name(text: bytes, reason: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        loads(text, "mine.json")
    assert refused.value.message.startswith("mine.json: ")
    assert reason in refused.value.message


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"^gone\.json: cannot be read \(No such file"):
        document.read(tmp_path / "gone.json")


def test_the_same_job_gives_the_same_bytes(tmp_path: Path) -> None:
    write_run(tmp_path)
    assert dumps(reported([str(tmp_path)])) == dumps(reported([str(tmp_path)]))


def test_the_order_of_files_named_does_not_matter(tmp_path: Path) -> None:
    write_run(tmp_path, ranks=3)
    paths = [str(tmp_path / f"rank{r}.json") for r in range(3)]
    assert dumps(reported(paths)) == dumps(reported(paths[::-1]))


def test_classes_of_each_rank_and_step_sum_to_its_time(sample: Report) -> None:
    parts = sample.breakdown
    for row in parts.per_rank:
        assert sum(row.measured.values()) == pytest.approx(row.step_ms, abs=1e-9)
    steps = [sum(row.measured.values()) for row in parts.per_step]
    assert sum(steps) / len(steps) == pytest.approx(sample.steps.wall_ms.mean, abs=1e-9)
    assert sum(parts.measured.values()) == pytest.approx(sample.steps.wall_ms.mean, abs=1e-9)


def test_the_critical_path_of_a_sample_sums_to_its_step(sample: Report) -> None:
    found = sample.whatif.path
    if sample.whatif.basis == "share":
        assert found is None
        return
    assert found is not None
    assert sum(row.ms for row in found.classes) == pytest.approx(found.step_ms)
    assert sum(row.ms for row in found.ranks) == pytest.approx(found.step_ms)
    assert sum(row.ms for row in found.places) <= found.step_ms * (1 + 1e-9)


def test_the_turns_of_a_sample_lead_from_todays_step_to_the_last(sample: Report) -> None:
    left = sample.steps.wall_ms.mean
    for turn in sample.whatif.sequence:
        left -= turn.gain_ms
        assert turn.step_ms == pytest.approx(left)


def test_an_edit_of_a_sample_is_as_fast_as_its_step_is_short(sample: Report) -> None:
    for edit in sample.whatif.edits:
        if edit.step_ms is not None and edit.speedup is not None:
            today = edit.step_ms * edit.speedup
            assert today == pytest.approx(sample.steps.wall_ms.mean)


def test_groups_are_the_sum_of_their_classes(sample: Report) -> None:
    parts = sample.breakdown
    assert sorted(c for group in parts.groups.values() for c in group) == sorted(parts.classes)
    for group, members in parts.groups.items():
        known = [ms for c in members if (ms := parts.mean_ms[c]) is not None]
        expected = pytest.approx(sum(known), abs=1e-12) if known else None
        assert parts.group_ms[group] == expected


def test_a_name_that_is_not_utf_8_is_written_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "run\udcff"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    job = loaded(folder, {f"rank{r}.json": healthy(r) for r in (0, 1)})
    request = Request(job.label, CREATED)
    files = [msgspec.structs.replace(job.files[0], name="rank\udcff.json")]
    report = api.report(replace(job, files=files), request, Settings())
    assert (report.run.label, report.run.files[0].name) == ("run\ufffd", "rank\ufffd.json")
