"""What does the step wait for? The critical path in words and tables; times in ms of one step.

Making shorter what is on the path makes the step shorter; what is off the path has slack.
"""

from __future__ import annotations

from analyzer.render.format import count, look, percent, plural, shorten
from analyzer.render.rank_tables import Grid, Head
from analyzer.render.sentences import LEAST_TOLD, scale_of
from analyzer.report.document import CriticalPath, Report

MOST_PLACES, MOST_RANKS, MOST_NAMED = 10, 8, 3
# A rank with less of the path than this part of the first one's is left to the table.
_WORTH_TELLING = 0.5


def lead(report: Report) -> str:
    """The largest part of the path and the ranks that hold most of it, or why there is none."""
    path, scale = report.whatif.path, scale_of(report)
    if path is None or not path.classes or path.step_ms <= 0:
        reason = shorten(report.whatif.reason, 300).rstrip(".")
        return f"No critical path: {reason}." if reason else "No critical path was found."
    first = max(path.classes, key=lambda item: item.ms)
    most = f"{scale.bare(first.ms)} of the {scale.ms(path.step_ms)}"
    share = percent(first.ms / path.step_ms)
    return (
        f"{most} of the path through step {path.step} are {_label(first.class_)} ({share}). "
        f"{_ranks(report, path)}"
    )


def _ranks(report: Report, path: CriticalPath) -> str:
    rows = sorted(path.ranks, key=lambda item: (-item.ms, item.rank))
    if not rows:
        return "On which ranks it runs is not known."
    if len(rows) == 1:
        return f"All of it is on rank {rows[0].rank}."
    scale = scale_of(report)
    told = [row for row in rows if row.ms >= _WORTH_TELLING * rows[0].ms]
    if len(told) > MOST_NAMED:
        return f"It runs over {plural(len(rows), 'rank')}, on none much longer than on the others."
    words = [f"{scale.ms(row.ms)} on rank {row.rank}" for row in told]
    rest = rows[len(told) :]
    if rest:
        ms = scale.ms(sum(row.ms for row in rest))
        words.append(f"{ms} on {plural(len(rest), 'other rank')}")
    return f"It runs for {_listed(words)}."


def slack(report: Report) -> str:
    """Which classes have most time off the path; empty without a path."""
    path, scale = report.whatif.path, scale_of(report)
    if path is None:
        return ""
    rows = sorted(path.classes, key=lambda item: -item.slack_ms)
    told = [row for row in rows if row.slack_ms >= LEAST_TOLD * path.step_ms][:MOST_NAMED]
    if not told:
        return "Nothing is off the path: any time saved shortens the step."
    words = [f"{scale.ms(row.slack_ms)} of {_label(row.class_)}" for row in told]
    return f"Off the path, so that saving it alone shortens nothing: {_listed(words)}."


def classes(report: Report) -> Grid | None:
    """Time of each class on and off the path; None without a path."""
    path, scale = report.whatif.path, scale_of(report)
    if path is None or not path.classes:
        return None
    rows = [
        [
            _label(item.class_),
            scale.bare(item.ms),
            _share(item.ms, path),
            scale.bare(item.slack_ms),
        ]
        for item in path.classes
        if item.ms > 0 or item.slack_ms > 0
    ]
    total = scale.bare(path.step_ms)
    heads = [Head("class", True), Head("on the path, ms"), Head("of the path"), Head("off it, ms")]
    return Grid(f"Step {path.step} by class; the path adds up to {total} ms", heads, rows)


def ranks(report: Report) -> Grid | None:
    """Time of the path on each rank, the most first; None without a path."""
    path, scale = report.whatif.path, scale_of(report)
    if path is None or not path.ranks:
        return None
    rows = sorted(path.ranks, key=lambda item: (-item.ms, item.rank))
    shown = [[str(row.rank), scale.bare(row.ms), _share(row.ms, path)] for row in rows[:MOST_RANKS]]
    heads = [Head("rank"), Head("ms"), Head("of the path")]
    return Grid("The path by rank", heads, shown, _more(len(rows) - MOST_RANKS, "more rank"))


def places(report: Report) -> Grid | None:
    """Where the path spends most; None without a path."""
    path, scale = report.whatif.path, scale_of(report)
    if path is None or not path.places:
        return None
    rows = [
        [
            shorten(item.name, 56),
            shorten(item.op, 40) or "not recorded",
            _label(item.class_),
            scale.bare(item.ms),
            count(item.count),
        ]
        for item in path.places[:MOST_PLACES]
    ]
    heads = [Head("kernel or host work", True), Head("launched by", True), Head("class", True)]
    heads += [Head("ms"), Head("times")]
    note = _more(len(path.places) - MOST_PLACES, "more place")
    return Grid("Kernels, and host work before a launch", heads, rows, note)


def _label(class_id: str) -> str:
    return shorten(look(class_id).label, 40)


def _share(ms: float, path: CriticalPath) -> str:
    return percent(ms / path.step_ms) if path.step_ms > 0 else ""


def _more(number: int, noun: str) -> str:
    return f"{plural(number, noun)} in report.json." if number > 0 else ""


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
