"""Which traces does a command read, where, and how many at once? The options all readers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from analyzer import api
from analyzer import cache as caching
from analyzer import cluster as clusters
from analyzer.errors import UsageError
from analyzer.fleet import Progress as OnFile
from analyzer.options import Terminal, parsed
from analyzer.trace import choose, stores
from analyzer.trace.discover import Found, find

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)i?b?", re.IGNORECASE)
_RANKS = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*")

Command = TypeVar("Command", bound=Callable[..., Any])


def ranks(text: str) -> list[int]:
    """The numbers in a list such as 0,3,8-15."""
    if not _RANKS.fullmatch(text):
        raise ValueError(f"{text!r} is no list of ranks: write 0,3,8-15")
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise ValueError(f"{text!r} is no list of ranks: the smaller number stands first")
    return found


def memory(text: str) -> int:
    """The bytes in a size such as 500MB or 1.5G."""
    found = _SIZE.fullmatch(text)
    if not found or not float(found[1]):
        raise ValueError(f"{text!r} is no size: write 500MB or 16G")
    return int(float(found[1]) * _UNITS[found[2].lower()])


@dataclass(frozen=True)
class Reading:
    """How traces are read."""

    jobs: int | None
    max_memory: int | None
    ranks: list[int]
    cache: bool
    cluster: str | None

    def found(self, paths: Sequence[str]) -> Found:
        """The files to read for the ranks that were asked for."""
        return choose.named(find(paths), self.ranks)

    def digests(
        self, terminal: Terminal, paths: Sequence[str], settings: api.Settings, *, strict: bool
    ) -> api.Digested:
        """The digests of all files, with a bar meanwhile; then what was skipped is said."""
        found = self.found(paths)
        files = (*found.traces, *found.digests)
        cache = self._cache(terminal, settings)
        with self._workers() as workers, bar(terminal, files) as progress:
            digested = api.digests(
                paths,
                settings,
                jobs=self.jobs,
                executor=workers,
                max_memory=self.max_memory,
                cache=cache,
                found=found,
                progress=progress,
                strict=strict,
            )
            digested.notes.extend(workers.notes() if workers else [])
        if cache is not None:
            cache.trim()
            if cache.problem:
                terminal.say(f"the cache was not written: {cache.problem}")
        for file in digested.unusable:
            terminal.say(f"skipped {api.sentence(file)}")
        return digested

    def _cache(self, terminal: Terminal, settings: api.Settings) -> caching.Cache | None:
        if not self.cache:
            return None
        try:
            return caching.Cache(caching.folder(), settings)
        except UsageError as error:
            # It only saves time: what was asked for can be had without it.
            terminal.say(f"reading without a cache: {error.message}; {error.hint}")
            return None

    @contextmanager
    def _workers(self) -> Iterator[clusters.Cluster | None]:
        if self.cluster is None:
            yield None
            return
        with clusters.connected(self.cluster) as cluster:
            yield cluster


@contextmanager
def bar(terminal: Terminal, files: Sequence[stores.TracePath]) -> Iterator[OnFile]:
    """Progress over the files' bytes on stderr, where somebody can see it."""
    if not terminal.progress:
        yield lambda path: None
        return
    sizes = {path: stores.size(path) for path in files}
    with Progress(
        TextColumn("reading {task.fields[done]}/{task.fields[files]} files"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as shown:
        task = shown.add_task("", total=sum(sizes.values()), done=0, files=len(sizes))
        done: list[stores.TracePath] = []

        def one_more(path: stores.TracePath) -> None:
            done.append(path)
            shown.update(task, advance=sizes[path], done=len(done))

        yield one_more


_OPTIONS = (
    click.option("-j", "--jobs", type=click.IntRange(1), help="Processes. Default: cores."),
    click.option(
        "--max-memory",
        metavar="SIZE",
        callback=parsed(memory),
        help="For all processes, such as 16G. Default: 3/4 of the machine's.",
    ),
    click.option(
        "--ranks",
        metavar="0,3,8-15",
        callback=parsed(ranks),
        help="Only these. Default: all.",
    ),
    click.option("--no-cache", is_flag=True, help="Read all traces again, and keep nothing."),
    click.option(
        "--cluster", metavar="tcp://HOST:PORT", help="Read on the workers of a Dask scheduler."
    ),
)


def options(command: Command) -> Command:
    """Gives a command the options, which it receives together as `reading`."""

    @wraps(command)
    def with_reading(
        *args: Any,
        jobs: int | None,
        max_memory: int | None,
        ranks: list[int] | None,
        no_cache: bool,
        cluster: str | None,
        **others: Any,
    ) -> Any:
        reading = Reading(jobs, max_memory, ranks or [], not no_cache, cluster)
        return command(*args, reading=reading, **others)

    for option in reversed(_OPTIONS):
        with_reading = option(with_reading)
    return with_reading  # type: ignore[return-value]
