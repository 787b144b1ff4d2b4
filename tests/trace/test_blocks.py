from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.trace import blocks, repair
from analyzer.trace.blocks import EventReader, Remainder


class Item(msgspec.Struct):
    ph: str
    name: str = ""
    args: dict[str, Any] | None = None


DECODE = msgspec.json.Decoder(list[Item]).decode

NASTY: list[dict[str, Any]] = [
    {"ph": "X", "name": "plain", "args": {"correlation": 1}},
    {"ph": "X", "name": 'a }, { b ], [ "quoted" \\" \\\\', "args": {}},
    {"ph": "X", "name": "nested", "args": {"inputs": [{"a": 1}, {"b": [2, {}, {}]}, {"c": "}"}]}},
    {"ph": "M", "name": "no args"},
    {"ph": "X", "name": "ends in a backslash \\", "args": {"}, {": ["]", "["]}},
    {"ph": "X", "name": "früher }, {\n später", "args": {"traceEvents": [{"ph": "X"}]}},
]

LAYOUTS: dict[str, dict[str, Any]] = {
    "one line": {},
    "compact": {"separators": (",", ":")},
    "one key per line": {"indent": 2},
    "indented far": {"indent": 40},
    "commas apart": {"separators": (" , ", " : ")},
}


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[i : i + size] for i in range(0, len(text), size))


def read(text: bytes, size: int = 64) -> tuple[list[str], Remainder]:
    """Names of the events in order, and what else there was."""
    reader = EventReader(pieces(text, size), DECODE)
    names = [event.name for block in reader for event in block]
    return names, reader.rest


def document(events: list[str], before: str = "", after: str = "") -> bytes:
    return (f'{{{before}"traceEvents": [\n' + ",\n".join(events) + f"]{after}}}").encode()


def item(name: str, args: str = "{}") -> str:
    return f'{{"ph": "X", "name": "{name}", "args": {args}}}'


ALL = [e["name"] for e in NASTY]
TEXT = document([json.dumps(e) for e in NASTY], '"a": {"b": [{}, {}]}, ', ', "c": [{}, {}]')


@pytest.mark.parametrize("size", range(1, 200))
def test_an_event_may_be_split_anywhere(size: int) -> None:
    assert read(TEXT, size)[0] == ALL


@pytest.mark.parametrize("size", [7, 64, 101, 65536])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("listed", [False, True], ids=["object", "list"])
def test_every_layout_reads_alike(layout: str, newline: str, listed: bool, size: int) -> None:
    content = NASTY if listed else {"traceEvents": NASTY}
    text = json.dumps(content, **LAYOUTS[layout]).replace("\n", newline).encode()
    assert read(text, size)[0] == ALL


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\n", b"\xef\xbb\xbf \r\n\t"])
@pytest.mark.parametrize("text", [TEXT, json.dumps(NASTY).encode()], ids=["object", "list"])
def test_a_byte_order_mark_and_white_space_before_the_trace_are_nothing(
    start: bytes, text: bytes
) -> None:
    assert read(start + text)[0] == ALL


values = st.recursive(
    st.integers() | st.text('{}[],"\\ :\nä', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
events = st.fixed_dictionaries(
    {"ph": st.just("X"), "name": st.text(max_size=8), "args": st.dictionaries(st.text(), values)}
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(events, max_size=8),
    st.dictionaries(st.text(min_size=12), values, max_size=2),
    st.integers(1, 400),
    st.sampled_from(sorted(LAYOUTS)),
    st.booleans(),
)
def test_pieces_never_change_what_is_read(
    given_events: list[dict[str, Any]], other: dict[str, Any], size: int, layout: str, first: bool
) -> None:
    array = {"traceEvents": given_events}
    text = json.dumps(array | other if first else other | array, **LAYOUTS[layout]).encode()
    reader = EventReader(pieces(text, size), DECODE)
    found = [event for block in reader for event in block]
    assert [(e.name, e.args) for e in found] == [(e["name"], e["args"]) for e in given_events]
    rest = reader.rest
    assert (rest.truncated, rest.malformed, rest.repairs, rest.several) == (False, 0, {}, False)
    assert json.loads(rest.header + b"]" + rest.trailer) == other | {"traceEvents": []}


def test_what_stands_around_the_events_is_kept() -> None:
    rest = read(document([item("a")], '"base": 1, ', ', "devices": [{"id": 0}, {"id": 1}]'))[1]
    assert rest.header == b'{"base": 1, "traceEvents": ['
    assert rest.trailer == b', "devices": [{"id": 0}, {"id": 1}]}'


def test_only_the_outermost_traceevents_count() -> None:
    before = '"config": {"traceEvents": [{"ph": "X", "name": "other"}]}, '
    assert read(document([item("mine")], before))[0] == ["mine"]


def test_the_word_traceevents_in_a_string_is_no_array() -> None:
    before = r'"note": "say \"traceEvents\": [ and go on", "traceEvents ": 1, '
    assert read(document([item("a")], before))[0] == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b'{"traceEvents": []}',
        b'{"traceEvents": null}',
        b"\x00\xff" * 99,
        b"Name",
    ],
)
def test_a_text_without_events_yields_none(text: bytes) -> None:
    assert read(text)[0] == []


@pytest.mark.parametrize("size", [7, 64])
def test_a_comma_after_the_last_event_is_forgiven_and_counted(size: int) -> None:
    names, rest = read(b'{"traceEvents": [' + item("a").encode() + b", \n]}", size)
    assert (names, rest.truncated, rest.malformed) == (["a"], False, 0)
    assert rest.repairs == {repair.COMMA: 1}


@pytest.mark.parametrize("size", [7, 65536])
def test_a_file_cut_anywhere_gives_the_complete_events_before_the_cut(size: int) -> None:
    texts = [json.dumps(e) for e in NASTY]
    whole = document(texts)
    ends = [whole.index(t.encode()) + len(t.encode()) for t in texts]
    for cut in range(len(b'{"traceEvents": ['), len(whole) - 2):
        names, rest = read(whole[:cut], size)
        assert names == ALL[: sum(end <= cut for end in ends)]
        assert rest.truncated
        assert rest.malformed == 0


def test_a_whole_file_is_not_truncated() -> None:
    assert not read(TEXT)[1].truncated


WRONG_TYPE = '{"ph": "X", "name": "bad", "args": [{"a": 1}, {"b": 2}]}'
DAMAGED = {
    "wrong type": WRONG_TYPE,
    "no phase": '{"name": "bad", "args": {}}',
    "quote too few": '{"ph": "X", "name": "bad, "args": {}}',
    "brace too few": '{"ph": "X", "name": "bad", "args": {"a": 1}',
    "number without end": item("bad", '{"a": 1.}'),
    "no value": item("bad", '{"a": }'),
    "cut off": '{"ph": "X", "na',
    "nested too deep": item("bad", '{"a": ' + "[" * 3000 + "]" * 3000 + "}"),
}


@pytest.mark.parametrize("size", [7, 100, 65536])
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_broken_event_is_counted_and_costs_no_other(
    damage: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "RUNAWAY", 500)
    good = [item(f"event {i}") for i in range(60)]
    names, rest = read(document([*good[:30], DAMAGED[damage], *good[30:]]), size)
    assert names == [f"event {i}" for i in range(60)]
    assert (rest.malformed, rest.repairs) == (1, {})


MENDABLE = {
    "nan": (item("bad", '{"bandwidth": NaN}'), repair.NUMBER),
    "invalid escape": (item(r"C:\Users\me"), repair.BACKSLASH),
    "control character": (item("a\x01b"), repair.CONTROL),
    "quote too many": (item('a "b c'), repair.QUOTE),
    "quotes too many": (item('print("a", "b")'), repair.QUOTE),
    "comma in arguments": (item("bad", '{"a": 1,}'), repair.COMMA),
}


@pytest.mark.parametrize("size", [7, 100, 65536])
@pytest.mark.parametrize("at", [0, 30, 60], ids=["first", "amid", "last"])
@pytest.mark.parametrize("damage", MENDABLE)
def test_a_mended_event_is_read_and_counted(
    damage: str, at: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "RUNAWAY", 500)
    bad, kind = MENDABLE[damage]
    good = [item(f"event {i}") for i in range(60)]
    names, rest = read(document([*good[:at], bad, *good[at:]], after=', "end": 1'), size)
    assert len(names) == 61
    assert names[:at] + names[at + 1 :] == [f"event {i}" for i in range(60)]
    assert (rest.malformed, rest.repairs, rest.truncated) == (0, {kind: 1}, False)
    assert rest.trailer == b', "end": 1}'


@pytest.mark.parametrize("size", [7, 65536])
def test_events_that_are_all_broken_are_all_mended(size: int) -> None:
    names, rest = read(document([item(rf"C:\x{i}") for i in range(100)]), size)
    assert names == [rf"C:\x{i}" for i in range(100)]
    assert rest.repairs == {repair.BACKSLASH: 100}


@pytest.mark.parametrize("size", [7, 65536])
def test_a_broken_event_whose_exporter_writes_the_phase_last_is_mended_too(size: int) -> None:
    events = [f'{{"name": "{n}", "args": {{}}, "ph": "X"}}' for n in ("a", r"b\c", "d\x02", "e")]
    names, rest = read(document(events), size)
    assert names == ["a", r"b\c", "d\ufffd", "e"]
    assert rest.repairs == {repair.BACKSLASH: 1, repair.CONTROL: 1}


@pytest.mark.parametrize("size", [7, 65536])
def test_an_event_cut_in_a_mendable_string_is_half_an_event(size: int) -> None:
    text = document([item("a"), item(r"C:\Users")])
    names, rest = read(text[: text.index(b"sers")], size)
    assert names == ["a"]
    assert (rest.truncated, rest.malformed, rest.repairs) == (True, 0, {})


@pytest.mark.parametrize("size", [7, 65536])
def test_events_without_a_comma_between_them_are_read_and_counted(size: int) -> None:
    text = '{"traceEvents": [' + item("a") + ", " + item("b") + "\n" + item("c") + "]}"
    names, rest = read(text.encode(), size)
    assert names == ["a", "b", "c"]
    assert rest.repairs == {repair.NO_COMMA: 1}


TWICE = {
    "inside an event": (
        document([item("a"), item("b")])[:-20]
        + document([item("c"), item("d")])
        + document([item("a"), item("b")])[-20:]
    ),
    "between events": (
        b'{"traceEvents": [' + item("a").encode() + b",\n"
        + document([item("c"), item("d")]) + b",\n" + item("b").encode() + b"]}"
    ),
    "behind the end": document([item("a")]) + document([item("b")]),
    "rest of a longer one": document([item("a")]) + b', {"ph": "X", "name": "b"}]}',
}  # fmt: skip


@pytest.mark.parametrize("size", [7, 65536])
@pytest.mark.parametrize("how", TWICE)
def test_a_second_trace_in_the_text_is_noticed(how: str, size: int) -> None:
    assert read(TWICE[how], size)[1].several


@pytest.mark.parametrize("size", [7, 100, 65536])
def test_an_event_that_ends_early_costs_no_other(size: int) -> None:
    early = '{"ph": "X", "name": "early"} ts": 1, "args": {}}'
    good = [item(f"event {i}") for i in range(60)]
    names, rest = read(document([*good[:30], early, *good[30:]]), size)
    assert [n for n in names if n != "early"] == [f"event {i}" for i in range(60)]
    assert rest.malformed == 1


def test_invalid_utf8_is_replaced_and_counted() -> None:
    text = document([item("a"), item("?"), item("b")]).replace(b"?", b"\xff\xfe")
    names, rest = read(text)
    assert names == ["a", "\ufffd\ufffd", "b"]
    assert (rest.malformed, rest.repairs) == (0, {repair.ENCODING: 1})


def test_a_brace_too_many_costs_nothing() -> None:
    assert read(document([item("a"), item("b") + "}", item("c")]))[0] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "long",
    [
        item("long", '{"a": [' + '{"b": 1}, ' * 5000 + "{}]}"),
        item(
            "long", '{"a": ' + '{"b": ' * 300 + "1" + "}" * 300 + ', "c": "' + "x" * 50_000 + '"}'
        ),
    ],
    ids=["boundaries inside", "no boundary"],
)
def test_a_long_event_is_not_looked_through_again_for_every_piece(
    long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    find = blocks.last_boundary

    def counting(text: bytes) -> tuple[int, int]:
        nonlocal looked
        looked += len(text)
        return find(text)

    monkeypatch.setattr(blocks, "last_boundary", counting)
    text = document([item("a"), long, item("b")])
    assert read(text, 100)[0] == ["a", "long", "b"]
    assert looked < 5 * len(text)


def test_reading_goes_on_fast_after_a_block_that_had_to_be_counted() -> None:
    attempts: list[bool] = []

    def decode(text: bytes) -> list[Item]:
        attempts.append(False)
        found = DECODE(text)
        attempts[-1] = True
        return found

    nested = item("n", '{"a": [{}, {}]}')
    text = document([nested, *[item("plain")] * 200])
    # The first piece ends behind the nested event, so that its last boundary lies inside.
    for _ in EventReader(pieces(text, text.index(b",\n") + 1), decode):
        pass
    assert attempts.count(False) == 1


def test_text_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LARGEST_PART", 10_000)
    endless = b'{"traceEvents": [{"ph": "X", "name": "' + b"x" * 100_000
    supply = pieces(endless, 100)
    reader = EventReader(supply, DECODE)
    assert [e for block in reader for e in block] == []
    assert reader.rest.endless
    assert len(b"".join(supply)) > 50_000


def test_a_header_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LARGEST_PART", 10_000)
    supply = pieces(b'{"a": "' + b"x" * 100_000, 100)
    reader = EventReader(supply, DECODE)
    assert list(reader) == []
    assert reader.rest.endless
    assert len(b"".join(supply)) > 50_000
