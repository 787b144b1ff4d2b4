"""How are traces read from the command line? With a progress bar, and a word on every file."""

from __future__ import annotations

from analyzer import api
from analyzer.options import Terminal
from analyzer.reading import Reading
from analyzer.report import document
from analyzer.report.build import Request
from analyzer.report.document import Report
from analyzer.runs import Source


def load(
    terminal: Terminal,
    paths: tuple[str, ...],
    rank_of: dict[str, int],
    settings: api.Settings,
    reading: Reading,
    *,
    strict: bool = False,
) -> api.Loaded:
    """The job of the traces and digests under `paths`; tells what is skipped, and whose each is."""
    digested = reading.digests(terminal, paths, settings, strict=strict)
    loaded = api.load(digested, ranks=reading.ranks, rank_of=rank_of, settings=settings)
    if terminal.verbose:
        for file in loaded.files:
            if file.rank is not None:
                terminal.say(f"{file.name}: rank {file.rank} by {file.rank_rule}")
    return loaded


def opened(
    terminal: Terminal, source: Source, request: Request, settings: api.Settings, reading: Reading
) -> Report:
    """The report of one run: as saved, or made of its traces."""
    if source.report is not None:
        return document.read(source.report)
    loaded = load(terminal, source.paths, {}, settings, reading)
    return api.report(loaded, request, settings)
