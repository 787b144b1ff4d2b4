"""Every table of a report goes home as a DataFrame, documented, and as CSV that no sheet runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas
import pytest
from example import example
from example_late import two_late
from msgspec.structs import replace

from analyzer import api
from analyzer.errors import UsageError
from analyzer.interop.frames import frames, write_csv
from analyzer.interop.tables import TABLES
from analyzer.report.document import Kernel

NAMES = ["steps", "classes", "ranks", "collectives", "kernels", "findings", "edits"]


def test_there_is_a_frame_for_every_table_of_the_report() -> None:
    assert list(frames(example())) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_column_says_what_it_holds_and_has_its_type(name: str) -> None:
    frame = frames(example())[name]
    assert list(frame.attrs["columns"]) == list(frame.columns)
    assert all(frame.attrs["columns"].values())
    assert {c.name: c.dtype for c in TABLES[name].columns} == frame.dtypes.astype(str).to_dict()


def test_classes_sum_to_the_step_whatever_is_tiled() -> None:
    found = frames(example())["classes"]
    run = found[found["of"] == "run"]
    assert run["ms"].sum() == pytest.approx(100.0)
    assert run["share"].sum() == pytest.approx(1.0)
    rank = found[(found["of"] == "rank") & (found["rank"] == 3)]
    assert rank["ms"].sum() == pytest.approx(100.0)
    compute = run[run["class"] == "compute"]
    assert compute[["group", "ms"]].values.tolist() == [["compute", 60.0]]


def test_steps_that_were_left_out_say_why_and_have_no_length() -> None:
    found = frames(example())["steps"].set_index("step")
    dropped = {step.index: step.why for step in example().steps.dropped}
    assert found["used"].to_dict() == {s: s not in dropped for s in found.index}
    for step, why in dropped.items():
        assert found.loc[step, "why_dropped"] == why
        assert pandas.isna(found.loc[step, "step_ms"])


def test_a_late_rank_is_marked_with_what_delays_it() -> None:
    report = two_late()
    found = frames(report)["ranks"].set_index("rank")
    late = {row.rank: row.because for row in report.ranks.late}
    assert late
    assert found[found["late"]]["because"].to_dict() == late


def test_findings_keep_their_order_and_gain() -> None:
    report = example()
    found = frames(report)["findings"]
    assert found["id"].tolist() == [item.id for item in report.findings]
    assert found["place"].tolist() == list(range(1, len(report.findings) + 1))
    assert found["speedup"].tolist() == [item.gain.speedup for item in report.findings]


def test_what_is_not_measurable_is_missing_not_zero() -> None:
    report = example()
    parts = report.breakdown
    unknown = replace(parts, mean_ms={**parts.mean_ms, "comm_wait": None})
    found = frames(replace(report, breakdown=unknown))["classes"]
    wait = found[(found["of"] == "run") & (found["class"] == "comm_wait")]
    assert wait["ms"].isna().all()
    assert wait["share"].isna().all()


def test_tables_without_rows_keep_their_columns() -> None:
    report = replace(example(), collectives=[], kernels=[], findings=[])
    found = frames(report)
    assert (len(found["kernels"]), len(found["findings"])) == (0, 0)
    assert list(found["kernels"].columns) == ["name", "kind", "count", "ms", "share"]


@pytest.mark.parametrize("name", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_name_becomes_a_formula_in_a_sheet(name: str, tmp_path: Path) -> None:
    kernel = Kernel(name=name, kind="other", count=1.0, ms=-0.5, share=0.1)
    write_csv(replace(example(), kernels=[kernel]), tmp_path)
    with (tmp_path / "kernels.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["name"] == f"'{name}".replace("\t", " ").replace("\r", " ")
    assert float(row["ms"]) == -0.5


def test_csv_files_hold_the_rows_of_the_frames(tmp_path: Path) -> None:
    paths = write_csv(example(), tmp_path)
    assert [path.stem for path in paths] == NAMES
    for name, frame in frames(example()).items():
        read = pandas.read_csv(tmp_path / f"{name}.csv")
        assert list(read.columns) == list(frame.columns)
        assert len(read) == len(frame)


def test_a_missing_value_is_an_empty_cell(tmp_path: Path) -> None:
    write_csv(example(), tmp_path)
    first = (tmp_path / "classes.csv").read_text().splitlines()[1]
    assert first.startswith("run,,,compute,compute,60.0,0.6")


def test_files_that_are_there_are_kept_unless_told(tmp_path: Path) -> None:
    write_csv(example(), tmp_path)
    with pytest.raises(UsageError, match="already in"):
        write_csv(example(), tmp_path)
    write_csv(example(), tmp_path, force=True)


def test_the_api_offers_both() -> None:
    assert (api.frames, api.write_csv) == (frames, write_csv)
