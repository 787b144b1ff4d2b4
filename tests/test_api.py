"""The rooms in order: paths to digests, digests to a job, a job to its report."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from make import trace
from runs import CREATED, STEP, add_step, healthy, loaded, write_run

from analyzer import api
from analyzer.config import Settings
from analyzer.digest import load, save
from analyzer.errors import UnusableInput, UsageError
from analyzer.report.build import Request
from analyzer.report.document import Report, dumps

EMPTY = '{"schemaVersion": 1, "traceEvents": []}'
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty file"),
    "foreign JSON": (b'{"answer": 42}', "JSON of another kind"),
    "no events": (EMPTY.encode(), "no trace events in it"),
    "not JSON": (b"step,loss\n1,0.5\n", "not JSON"),
    "damaged archive": (b"\x1f\x8b\x08\x00", "nothing in it, or a damaged archive"),
    "only a mark": (
        b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "overhead", "name": "x", '
        b'"ts": 1, "dur": 2}]}',
        "no operator or kernel was recorded (events: 1 overhead)",
    ),
}


def reported(paths: list[str], label: str = "", **how: Any) -> Report:
    return api.analyze(paths, Request(label, CREATED), Settings(), **how)


def refused(paths: list[str]) -> UnusableInput:
    with pytest.raises(UnusableInput) as error:
        reported(paths)
    assert error.value.exit_code == 3
    assert "\n" not in error.value.message
    return error.value


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_told_with_name_size_and_reason(kind: str, tmp_path: Path) -> None:
    data, reason = BAD[kind]
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    size = f" ({len(data)} bytes)" if data else ""
    assert refused([str(path)]).message == f"no usable trace: bad.json{size}: {reason}"


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_beside_good_ranks_is_listed_and_they_go_on(kind: str, tmp_path: Path) -> None:
    write_run(tmp_path)
    data, reason = BAD[kind]
    (tmp_path / "rank2.json").write_bytes(data)
    report = reported([str(tmp_path)])
    assert report.run.ranks_present == [0, 1]
    (skipped,) = [f for f in report.run.files if f.rank is None]
    assert (skipped.name, skipped.bytes, skipped.reason) == ("rank2.json", len(data), reason)


def test_a_missing_path_is_told_by_the_name_that_was_given() -> None:
    error = refused(["/nowhere/rank0.json"])
    assert error.message == "no usable trace: /nowhere/rank0.json: no such file or folder"


def test_a_pattern_without_matches_is_told(tmp_path: Path) -> None:
    pattern = str(tmp_path / "rank*.json")
    assert refused([pattern]).message.endswith(f"{pattern}: no file matches this pattern")


def test_a_folder_without_traces_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "no trace in this folder (looked for *.json" in refused([str(tmp_path)]).message


def test_nothing_named_is_told() -> None:
    assert refused([]).message == "no usable trace: nothing to read was named"


def test_a_file_that_cannot_be_opened_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, ranks=2)
    opened: Callable[..., io.IOBase] = Path.open

    def guarded(path: Path, *mode: Any, **how: Any) -> io.IOBase:
        if path.name == "rank1.json":
            raise PermissionError(13, "Permission denied")
        return opened(path, *mode, **how)

    monkeypatch.setattr(Path, "open", guarded)
    report = reported([str(tmp_path)])
    (skipped,) = [f for f in report.run.files if f.rank is None]
    assert (skipped.name, skipped.reason) == ("rank1.json", "cannot be read (Permission denied)")
    assert skipped.bytes == (tmp_path / "rank1.json").stat().st_size


def test_a_trace_without_work_in_its_steps_is_unusable(tmp_path: Path) -> None:
    built = trace(0, 1).op("aten::warm_up", 0, 10)
    for k in range(4):
        built.step(k, 1000 + k * STEP, 2000 + k * STEP)
    built.write(tmp_path / "rank0.json")
    error = refused([str(tmp_path)])
    assert "neither an operator nor device work in its steps" in error.message


def test_a_step_without_device_work_is_dropped_with_the_reason(tmp_path: Path) -> None:
    built = trace(0, 1).kernel("early", 0, 10, launch=(0, 5))
    built.step(1, 0, 20).step(2, 20, 20).write(tmp_path / "rank0.json")
    report = reported([str(tmp_path)])
    assert [d.why for d in report.steps.dropped] == ["no device work recorded in it"]


def test_a_rank_without_a_usable_step_is_listed_and_the_others_go_on(tmp_path: Path) -> None:
    idle = trace(1, 2).op("aten::warm_up", 0, 10)
    for k in range(7):
        idle.step(k + 1, 1000 + k * STEP, 2000 + k * STEP)
    job = loaded(tmp_path, {"rank0.json": healthy(0), "rank1.json": idle})
    assert job.job.ranks == [0]
    assert [(f.name, f.rank) for f in job.files] == [("rank0.json", 0), ("rank1.json", None)]
    assert job.files[1].reason == "neither an operator nor device work in its steps"


def test_many_bad_files_are_counted_beyond_the_first_eight(tmp_path: Path) -> None:
    for i in range(11):
        (tmp_path / f"bad{i}.json").write_text("{}")
    message = refused([str(tmp_path)]).message
    assert message.count("JSON of another kind") == 8
    assert message.endswith(" and 3 more")


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "before")
    write_run(tmp_path / "after")
    with pytest.raises(UsageError, match="different runs: after, before; 2 files are rank 0"):
        reported([str(tmp_path)])


def test_two_worlds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="their world sizes are 2 and 4"):
        loaded(tmp_path, {"rank0.json": healthy(0, 2), "rank1.json": healthy(1, 4)})


def test_a_given_rank_wins_over_the_file(tmp_path: Path) -> None:
    write_run(tmp_path)
    report = reported([str(tmp_path)], rank_of={"rank1.json": 5})
    used = {f.name: (f.rank, f.rank_rule) for f in report.run.files}
    assert used["rank1.json"] == (5, "option; distributedInfo says rank 1")
    assert used["rank0.json"] == (0, "distributedInfo")


def test_a_rank_given_for_no_file_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path)
    with pytest.raises(UsageError, match=r"rank9\.json"):
        reported([str(tmp_path)], rank_of={"rank9.json": 5})


def test_recordings_of_one_rank_are_cycles_of_it(tmp_path: Path) -> None:
    first, second = healthy(0, 1, without=["collectives"]), trace(0, 1)
    for k in range(7):
        add_step(second, 21 + k, 100_000 + k * STEP, ["collectives"])
    job = loaded(tmp_path, {"rank0_step_10.json": first, "rank0_step_30.json": second})
    assert job.job.ranks == [0]
    assert [(f.rank, f.cycle) for f in job.files] == [(0, 0), (0, 1)]
    assert len(job.job.steps) == 10


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst"])
def test_compression_changes_nothing_but_the_size(suffix: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain" / "rank0.json", tmp_path / "packed" / f"rank0{suffix}"
    one, other = (healthy(0, 1).write(path) for path in (plain, packed))
    first, second = reported([str(one)]), reported([str(other)])
    assert first.breakdown == second.breakdown
    assert first.scaling == second.scaling


def test_digests_give_the_same_report_as_the_traces(tmp_path: Path) -> None:
    traces, digests = write_run(tmp_path / "run", ranks=3), tmp_path / "digests"
    digests.mkdir()
    for path, made in api.digests([str(traces)], Settings()).digests.items():
        save(made, digests / f"{path.name}.digest")
    assert dumps(reported([str(digests)], "a")) == dumps(reported([str(traces)], "a"))


def test_digests_of_nameless_ranks_give_the_same_report(tmp_path: Path) -> None:
    traces, digests = tmp_path / "run", tmp_path / "digests"
    for folder in (traces, digests):
        folder.mkdir()
    for worker in range(2):
        healthy(None).write(traces / f"worker{worker}.1623143089861.pt.trace.json")
    for path, made in api.digests([str(traces)], Settings()).digests.items():
        save(made, digests / f"{path.name}.digest")
    assert dumps(reported([str(digests)], "a")) == dumps(reported([str(traces)], "a"))


def test_traces_and_digests_mix(tmp_path: Path) -> None:
    write_run(tmp_path)
    made = api.digests([str(tmp_path / "rank1.json")], Settings()).digests
    save(made[tmp_path / "rank1.json"], tmp_path / "rank1.json.digest")
    (tmp_path / "rank1.json").unlink()
    assert reported([str(tmp_path)]).run.ranks_present == [0, 1]


def test_a_digest_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    made = api.digests([str(healthy(0, 1).write(tmp_path / "rank0.json"))], Settings()).digests
    path = tmp_path / "old.digest"
    save(msgspec.structs.replace(made[tmp_path / "rank0.json"], version=0), path)
    message = refused([str(path)]).message
    assert message.startswith(f"no usable trace: old.digest ({path.stat().st_size:,} bytes): ")
    assert message.endswith("digest version 0, this program reads 4")


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"no MessagePack")])
def test_what_is_no_digest_is_refused_by_name(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "rank0.digest").write_bytes(data)
    assert "rank0.digest" in refused([str(tmp_path)]).message


def test_a_saved_digest_is_the_digest(tmp_path: Path) -> None:
    path = healthy(0, 1).write(tmp_path / "rank0.json")
    made = api.digests([str(path)], Settings()).digests[path]
    save(made, tmp_path / "rank0.digest")
    assert load(tmp_path / "rank0.digest") == made


def test_progress_and_executor_are_passed_on(tmp_path: Path) -> None:
    write_run(tmp_path)
    told: list[Path] = []
    with ThreadPoolExecutor(1) as executor:
        report = reported([str(tmp_path)], executor=executor, progress=told.append)
    assert sorted(told) == [tmp_path / "rank0.json", tmp_path / "rank1.json"]
    assert dumps(report) == dumps(reported([str(tmp_path)]))


def test_a_run_without_a_label_is_named_after_its_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "ddp-fp16")
    assert reported([str(folder)]).run.label == "ddp-fp16"
    assert reported([str(folder)], "nightly").run.label == "nightly"
