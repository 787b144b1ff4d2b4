from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from analyzer.trace.sniff import refusal, why_not_a_trace

EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'
TRACE = b'{"schemaVersion": 1, "traceEvents": [' + EVENT + b"]}"


@pytest.mark.parametrize(
    "text",
    [
        TRACE,
        b"\xef\xbb\xbf \n" + TRACE,
        b'{"traceEvents": [{"ph": "X", "cat": "Kernel", "name": "k"}]}',
        b'{"deviceProperties": [], "traceEvents": []}',
        b'{"distributedInfo": {"rank": 3}, "events_come_later": ',
        b"[" + EVENT + b"]",
        b'[{"ph": "M", "name": "process_name"}, {"ph": "X", "cat": "Operator", "name": "a"}',
    ],
    ids=["object", "bom", "old", "no events yet", "cut in the header", "list", "old list"],
)
def test_may_be_a_trace(text: bytes) -> None:
    assert refusal(text) is None


@pytest.mark.parametrize(
    "text, kind",
    [
        (b" \n", "nothing in it, or a damaged archive"),
        (b"Name  Self CPU %  Self CPU\n", "not JSON"),
        (b"PK\x03\x04\x14", "a zip archive; unpack it first"),
        (
            b'{"schema": "1.0.2-chakra.0.0.4", "nodes": [{"id": 1, "name": "traceEvents"}',
            "a PyTorch execution trace; pass the profiler trace",
        ),
        (
            b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [',
            "a speedscope profile; pass the profiler trace",
        ),
        (b'{"schema_version": 1, "tool": {"name": "x"}}', "a report, not a trace"),
        (b'{"loss": [1, 2], "nested": {"schemaVersion": 1}}', "JSON of another kind"),
        (b'[{"loss": 1}]', "JSON of another kind"),
        (b"[]", "no trace events in it"),
        (b'{"traceEvents": []}', "no trace events in it"),
        (b"[[-1, 1, 512, 7], [-1", "a PyTorch memory timeline; pass the profiler trace"),
        (
            b'[{"ph": "X", "cat": "sched"}, {"ph": "X", "cat": "nvtx"}]',
            "an Nsight Systems export; pass the profiler trace",
        ),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "blink"}, {"ph": "X", "cat": "v8"}]}',
            "trace events of another tool (categories: blink, v8)",
        ),
        (
            b'[{"ph": "B", "name": "a", "pid": 0}]',
            "trace events without categories, not from the PyTorch profiler",
        ),
        (
            b'[{"name": "mm", "ph": "X", "ts": 1, "dur": 2, "tid": 1, "pid": "CPU functions"}]',
            "a legacy autograd export without GPU categories; record with torch.profiler",
        ),
    ],
)
def test_foreign_content_is_named_for_what_it_is(text: bytes, kind: str) -> None:
    assert refusal(text) == kind


def test_compression_is_found_by_content_whatever_the_suffix(tmp_path: Path) -> None:
    foreign = b"[[-1, 1, 512, 7]]"
    for name, data in (
        ("gz.json", gzip.compress(foreign)),
        ("zst.gz", zstandard.compress(foreign)),
        ("plain.zst", foreign),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert why_not_a_trace(path) == "a PyTorch memory timeline; pass the profiler trace"


def test_events_behind_a_long_header_are_found(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    path.write_bytes(b'{"metadata": "' + b"x" * 500_000 + b'", ' + TRACE[1:])
    assert why_not_a_trace(path) is None


def test_a_cut_archive_is_judged_by_what_can_be_inflated(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(TRACE * 1000)[:-20])
    assert why_not_a_trace(path) is None


def test_an_archive_that_yields_nothing_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "broken.json.gz"
    path.write_bytes(gzip.compress(TRACE)[:10] + b"\xff" * 40)
    assert why_not_a_trace(path) == "nothing in it, or a damaged archive"


def test_a_file_of_no_bytes_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.touch()
    assert why_not_a_trace(path) == "empty file"
