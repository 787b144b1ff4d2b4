"""Which files are of the ranks that were asked for?

Whose a file is can be said for certain once all are read. Where every name states a rank, those of
other ranks need not be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from analyzer.errors import UsageError
from analyzer.trace import filenames
from analyzer.trace.assign import Assignment
from analyzer.trace.discover import Found
from analyzer.trace.stores import TracePath


def named(found: Found, ranks: Collection[int]) -> Found:
    """The files that have to be read for these ranks: all where a name leaves it open."""
    stated = {p: filenames.rank_in_name(p.name) for p in (*found.traces, *found.digests)}
    numbers = {p: stating.rank for p, stating in stated.items() if stating}
    if not ranks or len(numbers) < len(stated) or not set(ranks) <= set(numbers.values()):
        return found

    def chosen(paths: Sequence[TracePath]) -> tuple[TracePath, ...]:
        return tuple(path for path in paths if numbers[path] in ranks)

    digests = tuple(path for path in found.digests if numbers[path] in ranks)
    return replace(found, traces=chosen(found.traces), digests=digests)


def assigned(assignments: Sequence[Assignment], ranks: Collection[int]) -> list[Assignment]:
    """Those of these ranks, all when none is given; UsageError for a rank that is not there."""
    there = {a.rank for a in assignments}
    missing = set(ranks) - there
    if missing:
        raise UsageError(
            f"no trace is of rank {as_text(missing)}; there are {as_text(there)}",
            "name ranks that are there",
        )
    return [a for a in assignments if not ranks or a.rank in ranks]


def as_text(ranks: Collection[int]) -> str:
    """Numbers as the list they would be asked for with: 0,3,8-15."""
    runs = groupby(enumerate(sorted(ranks)), lambda placed: placed[1] - placed[0])
    parts = [[rank for _, rank in run] for _, run in runs]
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
