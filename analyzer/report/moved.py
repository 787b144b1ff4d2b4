"""Which work moved: kernels, collectives and ops by name, more often or longer each time.

Times are ms per rank and step. What changed splits exactly: count by duration, each taken at the
middle of both sides (methods 7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from analyzer.report.comparison import Moved
from analyzer.report.document import Report

MOST_MOVED = 40
# The row that stands for all names beyond the largest.
REST = re.compile(r"\(\d+ (?:more|other) names\)")


class Work(NamedTuple):
    """Occurrences and ms of one name."""

    kind: str
    number: float
    ms: float


class Table(NamedTuple):
    """The work of a side by name; `least_ms` is the most that a name not listed can take."""

    rows: dict[str, Work]
    least_ms: float


def kernels(runs: Sequence[Report]) -> Table:
    """Device work by name, mean over the runs."""
    return _table(
        [((k.name, k.kind, k.count, k.ms) for k in run.kernels) for run in runs],
    )


def ops(runs: Sequence[Report]) -> Table:
    """Device work by the op that launched it, mean over the runs."""
    return _table([((o.name, "op", o.count, o.ms) for o in run.ops) for run in runs])


def collectives(runs: Sequence[Report]) -> Table:
    """Collectives by kind and size of the group, mean over the runs."""

    def named(run: Report) -> Iterable[tuple[str, str, float, float]]:
        for row in run.collectives:
            size = "" if row.group_size is None else f" of {row.group_size} ranks"
            yield f"{row.kind.replace('_', '-')}{size}", "collective", row.count, row.ms

    return _table([named(run) for run in runs])


def _table(runs: Sequence[Iterable[tuple[str, str, float, float]]]) -> Table:
    rows: dict[str, Work] = {}
    least = 0.0
    for run in runs:
        listed: list[float] = []
        cut = False
        for name, kind, count, ms in run:
            if REST.fullmatch(name):
                cut = True
                continue
            old = rows.get(name, Work(kind, 0.0, 0.0))
            rows[name] = Work(kind, old.number + count / len(runs), old.ms + ms / len(runs))
            listed.append(ms)
        least = max(least, min(listed) if cut and listed else 0.0)
    return Table(rows, least)


def moved(before: Table, after: Table) -> list[Moved]:
    """Every name of both sides, the one whose time changed most first."""
    names = dict.fromkeys([*before.rows, *after.rows])
    rows = [_moved(name, before, after) for name in names]
    rows = [row for row in rows if row.before_ms or row.after_ms]
    rows.sort(key=lambda row: (-abs(row.delta_ms), row.name))
    return rows[:MOST_MOVED]


def _moved(name: str, before: Table, after: Table) -> Moved:
    old, new = before.rows.get(name), after.rows.get(name)
    kind = (old or new or Work("", 0.0, 0.0)).kind
    n0, ms0 = (old.number, old.ms) if old else (0.0, 0.0)
    n1, ms1 = (new.number, new.ms) if new else (0.0, 0.0)
    by_count = by_duration = None
    if old and new and n0 and n1:
        each0, each1 = ms0 / n0, ms1 / n1
        by_count = (n1 - n0) * (each0 + each1) / 2
        by_duration = (each1 - each0) * (n0 + n1) / 2
    return Moved(
        name=name,
        kind=kind,
        status=_status(old, new, before.least_ms, after.least_ms),
        before_count=n0,
        after_count=n1,
        before_ms=ms0,
        after_ms=ms1,
        delta_ms=ms1 - ms0,
        by_count_ms=by_count,
        by_duration_ms=by_duration,
    )


def _status(old: Work | None, new: Work | None, least_old: float, least_new: float) -> str:
    if old and new:
        return "both"
    if new:
        return "unlisted" if least_old else "added"
    return "unlisted" if least_new else "removed"
