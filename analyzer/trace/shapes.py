"""Which sizes did the inputs of matrix operators have, where the profiler recorded shapes?

They tell the batch and the sizes of the network, so that two runs of different work are not
compared unawares.
"""

from __future__ import annotations

from collections import Counter

SHAPED = frozenset(
    f"aten::{name}"
    for name in ("addmm", "baddbmm", "bmm", "convolution", "embedding", "linear", "matmul", "mm")
)
MOST_SHAPES, LONGEST_SHAPE = 40, 300


def most(counts: Counter[tuple[str, bytes]]) -> dict[str, int]:
    """Name and sizes -> count of the most frequent operators, without those of unknown sizes.

    `counts` is by name and the text of the sizes as it stands in the file.
    """
    told: Counter[str] = Counter()
    for (name, sizes), count in counts.items():
        if sizes:
            told[f"{name} {_one_line(sizes)}"[:LONGEST_SHAPE]] += count
    order = sorted(told, key=lambda name: (-told[name], name))
    return {name: told[name] for name in order[:MOST_SHAPES]}


def _one_line(sizes: bytes) -> str:
    """A list of lists as it is usually written; some exporters break it over many lines."""
    return "".join(sizes.decode(errors="replace").split()).replace(",", ", ")
