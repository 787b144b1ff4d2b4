"""How are traces read with somebody waiting? Progress and messages around the api's reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer import api
from analyzer.options import Terminal
from analyzer.trace.discover import find


def load(
    terminal: Terminal,
    paths: Sequence[str],
    settings: api.Settings,
    jobs: int | None,
    *,
    rank_of: Mapping[str, int] | None = None,
    strict: bool = False,
) -> api.Loaded:
    """The job of these paths; what was skipped is said, and, if asked for, whose each file is."""
    found = find(paths)
    with terminal.bar(len(found.traces)) as progress:
        digested = api.digests(
            paths, settings, jobs=jobs, found=found, progress=progress, strict=strict
        )
    say_skipped(terminal, digested)
    loaded = api.load(digested, rank_of=rank_of, settings=settings)
    if terminal.verbose:
        for file in loaded.files:
            if file.rank is not None:
                terminal.say(f"{file.name}: rank {file.rank} by {file.rank_rule}")
    return loaded


def say_skipped(terminal: Terminal, digested: api.Digested) -> None:
    """A line for each file that was not used, and why."""
    for file in digested.unusable:
        terminal.say(f"skipped {api.sentence(file)}")
