from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.trace.repair import (
    BACKSLASH,
    COMMA,
    CONTROL,
    ENCODING,
    NUMBER,
    QUOTE,
    mend,
)

BEFORE = b'{"ph": "X", "cat": "python_function", "name": "'
AFTER = b'", "pid": 1, "ts": 1.500, "dur": 2, "args": {"a": [1, {}], "b": "x"}}'

# (what stands in the file, the name that is meant, what is wrong)
NAMES: dict[str, tuple[bytes, str, set[str]]] = {
    "path": (rb"C:\Users\me.py(3): f", r"C:\Users\me.py(3): f", {BACKSLASH}),
    "path with folders that look like escapes": (
        rb"C:\Users\new\bin\tmp",
        r"C:\Users\new\bin\tmp",
        {BACKSLASH},
    ),
    "path that ends in a backslash": (b"C:\\dir\\", "C:\\dir\\", {BACKSLASH}),
    "escaped quotes beside a path": (
        rb"\"a\", \"ts\": 1, C:\x",
        r'"a", "ts": 1, C:\x',
        {BACKSLASH},
    ),
    "half an escape": (rb"\u12", r"\u12", {BACKSLASH}),
    "half a pair": (rb"\ud800", r"\ud800", {BACKSLASH}),
    "control": (b"a\x01b", "a\ufffdb", {CONTROL}),
    "new line": (b"a\nb", "a\ufffdb", {CONTROL}),
    "quotes": (b'say "hi"', 'say "hi"', {QUOTE}),
    "one quote": (b'"', '"', {QUOTE}),
    "call": (b'print("a", "b"): c', 'print("a", "b"): c', {QUOTE}),
    "dictionary": (b'f({"b": "c", "d": 1})', 'f({"b": "c", "d": 1})', {QUOTE}),
    "source": (b'x["a"] = "\n"', 'x["a"] = "\ufffd"', {QUOTE, CONTROL}),
    "lone byte": (b"\xf0", "\ufffd", {ENCODING}),
    "lone byte beside an umlaut": ("früher".encode() + b"\xff", "früher\ufffd", {ENCODING}),
}


@pytest.mark.parametrize("how", NAMES)
def test_a_name_is_what_was_meant_and_all_else_stays(how: str) -> None:
    written, meant, kinds = NAMES[how]
    text = BEFORE + written + AFTER
    mended = mend(text + b", {next")
    assert mended is not None
    sound = json.loads(BEFORE + b"?" + AFTER)
    assert json.loads(mended.text) == sound | {"name": meant}
    assert (mended.kinds, mended.end) == (kinds, len(text))


NUMBERS = ["NaN", "nan", "-nan", "inf", "-inf", "+inf", "Infinity", "-Infinity", "1e999", "-1e400"]


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_no_number_is_null(number: str) -> None:
    mended = mend(f'{{"a": {number}, "b": [{number}]}}'.encode())
    assert mended is not None
    assert json.loads(mended.text) == {"a": None, "b": [None]}
    assert mended.kinds == {NUMBER}


@pytest.mark.parametrize("text", ['{"a": [1, 2 ,], "b": {"c": 1,},}', '[{"a": "x",\n}, ]'])
def test_a_comma_before_a_bracket_goes(text: str) -> None:
    mended = mend(text.encode())
    assert mended is not None
    json.loads(mended.text)
    assert mended.kinds == {COMMA}


HOPELESS = [
    "",
    "x",
    '"a"',
    "}",
    '{"a": 1',
    '{"a": [1}',
    '{"a": 01, "b": nan}',
    '{"a": 1.2.3, "b": nan}',
    '{"a": --1, "b": nan}',
    '{"a": nul, "b": nan}',
    '{"a: nan}',
    '{"name": "lost its end, "ts": 1, "dur": 2, "cat": "x\\q"}',
]


@pytest.mark.parametrize("text", HOPELESS)
def test_a_number_a_key_or_a_bracket_is_never_made_up(text: str) -> None:
    assert mend(text.encode()) is None


def test_sound_text_is_not_called_mended() -> None:
    assert mend(BEFORE + b"sound" + AFTER) is None


def test_in_a_header_any_key_may_follow_a_string() -> None:
    mended = mend(rb'{"host": "C:\n\q", "torch_version": "2"}', event=False)
    assert mended is not None
    assert json.loads(mended.text) == {"host": r"C:\n\q", "torch_version": "2"}


def test_a_hundred_thousand_levels_are_no_problem() -> None:
    mended = mend(b"[" * 100_000 + b"nan" + b"]" * 100_000)
    assert mended is not None
    assert mended.text.count(b"[") == 100_000


keys = st.text(max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, values, min_size=1), st.booleans())
def test_mending_one_thing_changes_no_other(content: dict[str, Any], escaped: bool) -> None:
    text = json.dumps(content, ensure_ascii=escaped)
    mended = mend(f'{text[:-1]}, "spoiled": nan}}'.encode(errors="surrogatepass"), event=False)
    assert mended is not None
    assert json.loads(mended.text) == json.loads(text) | {"spoiled": None}
