from __future__ import annotations

import pytest

from analyzer.render import github


def test_names_mention_nobody_and_link_nowhere() -> None:
    escaped = github.escape("@user #12 http://x.y")
    assert escaped == "@\u200buser #\u200b12 http://\u200bx.y"


@pytest.mark.parametrize(
    "name, written",
    [
        ("a|b", r"a\|b"),
        ("f<float>&", "f&lt;float&gt;&amp;"),
        ("`x`_y*", r"\`x\`\_y\*"),
        ("# no heading", "\\#\u200b no heading"),
        ("two\nlines", "two lines"),
        (r"a\|b", r"a\\\|b"),
    ],
)
def test_markdown_is_escaped(name: str, written: str) -> None:
    assert github.escape(name) == written
