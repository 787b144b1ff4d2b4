"""Which runs are named on one side of a comparison? Saved reports, or traces of all ranks.

A folder or file is one run. A pattern is one run for every folder and report that fits it, and one
for all traces that fit it together. A folder that holds no trace but saved reports is one for each.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import UsageError
from analyzer.report.comparison import is_comparison
from analyzer.trace.discover import find, natural_order
from analyzer.trace.sniff import A_REPORT, why_not_a_trace
from analyzer.trace.stores import is_address


@dataclass(frozen=True)
class Source:
    """One run: a saved report, or the paths of its traces and digests."""

    report: Path | None
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sides:
    """The runs before and after with the labels given on the command line, empty where none was."""

    before: list[Source]
    after: list[Source]
    labels: tuple[str, str]


def sides(arguments: Sequence[str]) -> Sides:
    """Before and after from `[LABEL=]PATH` arguments: two, or more that share two labels."""
    named = [_split(text) for text in arguments]
    labels = list(dict.fromkeys(label for label, _ in named))
    if len(named) == 2 and "" in labels:
        (first, old), (second, new) = named
        return Sides(sources(old), sources(new), (first, second))
    if len(labels) != 2 or "" in labels:
        raise UsageError(
            f"{len(named)} paths and {len([name for name in labels if name])} labels do not say "
            "what is compared with what",
            "give BEFORE and AFTER, or label several runs: main=run1 main=run2 mine=run3",
        )
    old_runs, new_runs = (
        [source for name, path in named if name == label for source in sources(path)]
        for label in labels
    )
    return Sides(old_runs, new_runs, (labels[0], labels[1]))


def _split(text: str) -> tuple[str, str]:
    """Label and path; a path that exists is one, whatever signs are in it."""
    label, sign, path = text.partition("=")
    if not sign or os.path.exists(os.path.expanduser(text)) or os.sep in label:
        return "", text
    return label.strip(), path


def sources(text: str) -> list[Source]:
    """The runs that one path names; what does not exist is left for the reader to refuse."""
    path = os.path.expanduser(text)
    if is_address(text) and not os.path.exists(path):
        # As a path it would lose one of its slashes.
        return [Source(None, (text,))]
    if os.path.exists(path) or not glob.has_magic(path):
        return _named(Path(path))
    found: list[Source] = []
    traces: list[str] = []
    for match in sorted(map(Path, glob.glob(path, recursive=True)), key=natural_order):
        if match.is_dir() or _is_report(match):
            found += _named(match)
        else:
            traces.append(str(match))
    if traces or not found:
        found.append(Source(None, tuple(traces) or (text,)))
    return found


def _named(path: Path) -> list[Source]:
    if path.is_dir():
        inside = find([str(path)])
        reports = sorted(filter(_is_report, path.rglob("*.json")), key=natural_order)
        if reports and not (inside.traces or inside.digests):
            return [Source(report) for report in reports]
    elif _is_report(path):
        return [Source(path)]
    return [Source(None, (str(path),))]


def _is_report(path: Path) -> bool:
    """Whether the file is a saved report; a saved comparison is none."""
    if not path.is_file() or why_not_a_trace(path) != A_REPORT:
        return False
    return not is_comparison(path)
