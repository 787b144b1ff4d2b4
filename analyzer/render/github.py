"""How does a text stay text on GitHub? Names escaped, tables drawn.

Names from a trace neither format, mention nor link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.render.format import clean, shorten
from analyzer.render.rank_tables import Grid

LONGEST = 300
_PUNCTUATION = re.compile(r"([\\`*_\[\]|~$]|^[#+>=-])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A zero-width space after these stops GitHub from mentioning a user or linking an issue or page.
_LIVE = re.compile(r"(@|#|://|www)")


def escape(text: str, longest: int = LONGEST) -> str:
    """`text` as one line of Markdown that shows exactly these characters, shortened."""
    line = shorten(text, longest)
    line = _PUNCTUATION.sub(r"\\\1", line)
    for char, entity in _ENTITIES.items():
        line = line.replace(char, entity)
    return _LIVE.sub("\\1\u200b", line)


def table(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A table; `head` holds the columns, those of words marked "<" to stand left."""
    columns = [name.strip() for name in head.split("|")]
    rule = ["---" if name.startswith("<") else "--:" for name in columns]
    names = [name.removeprefix("<") for name in columns]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rule, *rows))


def grid(item: Grid) -> str:
    """A ready table with its caption above and its note below."""
    head = " | ".join(("<" if column.words else "") + column.name for column in item.heads)
    drawn = table(head, [[escape(cell) for cell in row] for row in item.rows])
    return "\n\n".join(
        part for part in (f"{item.caption}:", drawn, escape(item.note, 1000)) if part
    )


def clean_lines(text: str) -> str:
    """Lines that cannot close a code fence."""
    return "\n".join(clean(line).replace("`", "'") for line in text.splitlines())
