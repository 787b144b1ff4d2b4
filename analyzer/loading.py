"""How are traces read from the command line? With a progress bar, and a word on every file."""

from __future__ import annotations

from analyzer import api
from analyzer.options import Terminal
from analyzer.report import document
from analyzer.report.build import Request
from analyzer.report.document import Report
from analyzer.runs import Source
from analyzer.trace.discover import find


def load(
    terminal: Terminal,
    paths: tuple[str, ...],
    rank_of: dict[str, int],
    settings: api.Settings,
    jobs: int | None,
    *,
    strict: bool = False,
) -> api.Loaded:
    """The job of the traces and digests under `paths`; tells what is skipped, and whose each is."""
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
    """Every file that was not read, with the reason."""
    for file in digested.unusable:
        terminal.say(f"skipped {api.sentence(file)}")


def opened(
    terminal: Terminal, source: Source, request: Request, settings: api.Settings, jobs: int | None
) -> Report:
    """The report of one run: as saved, or made of its traces."""
    if source.report is not None:
        return document.read(source.report)
    loaded = load(terminal, source.paths, {}, settings, jobs)
    return api.report(loaded, request, settings)
