from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import trace
from single import busy, kernel, one, reading

from analyzer.errors import UnusableInput
from analyzer.trace import kineto, repair
from analyzer.trace.schema import NO_ID


def test_of_equal_keys_in_an_event_the_last_counts(tmp_path: Path) -> None:
    found = one(tmp_path, kernel("1").replace('"ts": 1', '"ts": 1, "ts": 2'))
    assert found.device.ts.tolist() == [2000]


MALFORMED = {
    "arguments as a list": kernel("1", args="[]"),
    "start as an object": kernel("{}"),
    "name as an object": kernel("1").replace('"k"', '{"a": 1}'),
    "track as a list": kernel("1").replace("9", "[9]"),
    "stream as a list": kernel("1", args='{"stream": [7]}'),
    "phase as a number": kernel("1").replace('"X"', "1"),
    "stream waited on as a list": kernel("1", args='{"wait_on_stream": [7]}').replace(
        '"kernel"', '"cuda_sync"'
    ),
    "unknown phase": kernel("1").replace('"X"', '"Y"'),
    "no phase": kernel("1").replace('"ph": "X", ', ""),
    "number broken in two": kernel("1 2"),
}


@pytest.mark.parametrize("event", MALFORMED.values(), ids=MALFORMED)
def test_an_event_of_another_form_is_counted_and_the_others_survive(
    event: str, tmp_path: Path
) -> None:
    found = one(tmp_path, ", ".join([kernel("1"), event, kernel("2"), event, kernel("3")]))
    assert found.device.ts.tolist() == [1000, 2000, 3000]
    assert found.meta.malformed == 2


@pytest.mark.parametrize("start", ["NaN", "nan", "-inf", "Infinity", "1e999"])
def test_an_event_whose_start_is_no_number_is_mended_and_has_no_time(
    start: str, tmp_path: Path
) -> None:
    found = one(tmp_path, ", ".join([kernel("1"), kernel(start), kernel("2")]))
    assert found.device.ts.tolist() == [1000, 2000]
    assert (found.meta.untimed, found.meta.repairs) == (1, {repair.NUMBER: 1})


def test_an_event_whose_length_is_no_number_is_mended_and_has_no_length(tmp_path: Path) -> None:
    found = one(tmp_path, ", ".join([kernel("1"), kernel("2", "nan"), kernel("3")]))
    assert found.device.ts.tolist() == [1000, 3000]
    assert (found.meta.negative, found.meta.repairs) == (1, {repair.NUMBER: 1})


def test_a_key_with_a_byte_that_is_no_utf8_is_counted_though_it_is_a_key_no_more(
    tmp_path: Path,
) -> None:
    # Without its correlation the work is of no step, and the step seemed shorter in silence.
    event = kernel("1", args='{"correlation": 41}').encode()
    found = reading(tmp_path, b"[" + event.replace(b"corr", b"co\xffrr") + b"]")
    assert found.device.correlation.tolist() == [NO_ID]
    assert found.meta.repairs == {repair.ENCODING: 1}


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_cut_file_keeps_its_complete_events_and_says_so(name: str, tmp_path: Path) -> None:
    made = trace()
    for i in range(3000):
        made.kernel(f"k{i % 7}", 10 * i, 10 * i + 5)
    path = made.write(tmp_path / name)
    whole = kineto.read(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    cut = kineto.read(path)
    assert cut.meta.truncated
    assert not whole.meta.truncated
    assert 1000 < len(cut.device) < 2000
    assert cut.device.ts.tolist() == whole.device.ts[: len(cut.device)].tolist()


def test_a_file_cut_behind_its_events_is_truncated_and_keeps_its_first_header(
    tmp_path: Path,
) -> None:
    text = f'{{"host_name": "n", "traceEvents": [{kernel("1")}], "distributedInfo": {{"ra'
    meta = reading(tmp_path, text).meta
    assert (meta.truncated, meta.host, meta.rank) == (True, "n", None)


@pytest.mark.parametrize(
    "note, kind",
    [
        (r'"note": "C:\Users", ', repair.BACKSLASH),
        ('"note": {"a": [nan]}, ', repair.NUMBER),
        ('"note": "a\x02", ', repair.CONTROL),
    ],
)
def test_a_header_that_is_no_json_is_mended(note: str, kind: str, tmp_path: Path) -> None:
    meta = one(tmp_path, kernel("1"), note + '"distributedInfo": {"rank": 2}, ').meta
    assert (meta.rank, meta.malformed, meta.truncated) == (2, 0, False)
    assert meta.repairs == {kind: 1}


def test_a_header_that_cannot_be_mended_is_counted_as_something_not_read(tmp_path: Path) -> None:
    meta = one(tmp_path, kernel("1"), '"note": 1 2, "distributedInfo": {"rank": 2}, ').meta
    assert (meta.rank, meta.malformed, meta.truncated) == (None, 1, False)


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "t.json (0 bytes): empty file"),
    "list": (b"[]", "t.json (2 bytes): no trace events in it"),
    "object": (b"{}", "t.json (2 bytes): no trace events in it"),
    "no events": (b'{"traceEvents": []}', "t.json (19 bytes): no trace events in it"),
    "binary": (bytes(range(256)) * 9, "t.json (2,304 bytes): no trace events in it"),
    "brackets": (b"[" * 5000, "t.json (5,000 bytes): no trace events in it"),
    "damaged gzip": (b"\x1f\x8b" + b"\xff" * 40, "t.json (42 bytes): no trace events in it"),
    "damaged zstandard": (
        b"\x28\xb5\x2f\xfd" + b"\xff" * 40,
        "t.json (44 bytes): no trace events in it",
    ),
    "other shape": (
        b'[{"ph": []}, {"ph": 1}]',
        "t.json (23 bytes): no trace events in it, 2 that cannot be read",
    ),
    "no lengths": (
        b'[{"ph": "i", "ts": 1}, {"ph": "M"}]',
        "t.json (35 bytes): 2 events, none of them with a length",
    ),
    "another tool": (
        b'[{"ph": "X", "cat": "devtools", "ts": 1, "dur": 2}, {"ph": "X", "ts": 1, "dur": 2}]',
        "t.json (83 bytes): 2 events, none from a PyTorch profiler "
        "(categories: devtools, no category)",
    ),
}


@pytest.mark.parametrize("data, sentence", UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_without_a_profilers_events_is_one_sentence(
    data: bytes, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_bytes(data)
    with pytest.raises(UnusableInput) as refusal:
        kineto.read(tmp_path / "t.json")
    assert refusal.value.message == sentence
    assert refusal.value.hint


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_never_ends_in_a_traceback_nor_loses_events_in_silence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = busy()
    whole = made.text().encode()
    at = data.draw(st.integers(0, len(whole)))
    gone = data.draw(st.integers(0, 40))
    put = data.draw(
        st.binary(max_size=6) | st.sampled_from([b'"', b"}", b"{", b"]", b"\\", b"NaN"])
    )
    path = tmp_path_factory.mktemp("t") / "t.json"
    path.write_bytes(whole[:at] + put + whole[at + gone :])
    try:
        meta = kineto.read(path).meta
    except UnusableInput as refusal:
        assert refusal.message.startswith("t.json (")  # noqa: PT017
    else:
        # A gap between two events can be damaged such that both read as one.
        told = meta.malformed or meta.truncated or meta.repairs
        assert told or meta.events >= len(made.events) - 1
