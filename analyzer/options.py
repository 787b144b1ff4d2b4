"""Options that several commands share, their types, and how to talk to the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from analyzer.config import Settings, load_settings
from analyzer.errors import UsageError
from analyzer.fleet import Progress as OnFile
from analyzer.render import files

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(d|h|min|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}


Value = TypeVar("Value")


def parsed(parse: Callable[[Any], Value]) -> Callable[..., Value | None]:
    """Click callback that parses an option's text; ValueError becomes a usage error."""

    def callback(ctx: click.Context, param: click.Parameter, text: Any) -> Value | None:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    return callback


def seconds(text: str) -> float:
    """A length of time such as 30d, 12h, 1d12h, 45min, in seconds."""
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        raise ValueError(f"{text!r} is no time: write 30d, 12h, 45min or 1d12h")
    total = sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(text))
    if not total:
        raise ValueError(f"{text!r} is no time: a run takes longer")
    return total


def gpu_counts(text: str) -> list[int]:
    """A list of GPU counts such as 2,4,8."""
    if not re.fullmatch(r"[1-9]\d{0,8}(?:,[1-9]\d{0,8})*", text):
        raise ValueError(f"{text!r} is no list of GPU counts: write 2,4,8")
    return [int(n) for n in text.split(",")]


def measured(text: str) -> tuple[int, float]:
    """GPUs and the speedup measured on them, such as 8=6."""
    if not re.fullmatch(r"[1-9]\d{0,8}=\d+(?:\.\d+)?", text):
        raise ValueError(f"{text!r} is no measurement: write 8=6 for a speedup of 6 on 8 GPUs")
    n, _, speedup = text.partition("=")
    return int(n), float(speedup)


def ranks_of(texts: tuple[str, ...]) -> dict[str, int]:
    """File -> rank from FILE=N."""
    found = {}
    for text in texts:
        name, _, rank = text.rpartition("=")
        if not name or not rank.isdigit():
            raise ValueError(f"{text!r} names no rank: write FILE=N")
        found[name] = int(rank)
    return found


@dataclass(frozen=True)
class Terminal:
    """How to talk: what the global switches and the streams allow."""

    color: bool
    quiet: bool
    progress: bool
    ascii_only: bool

    @contextmanager
    def bar(self, total: int) -> Iterator[OnFile]:
        """Progress over files on stderr, where somebody can see it."""
        columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(
            *columns, console=Console(stderr=True), transient=True, disable=not self.progress
        ) as shown:
            task = shown.add_task("reading", total=total)
            yield lambda path: shown.advance(task)

    def say(self, text: str) -> None:
        """A message beside the result."""
        if not self.quiet:
            click.echo(text, err=True)


def settings(config: Path | None, step_pattern: str | None) -> Settings:
    """Settings of the configuration file with the command line's pattern on top."""
    found = load_settings(config, Path.cwd())
    if step_pattern is None:
        return found
    try:
        re.compile(step_pattern)
    except re.error as error:
        raise UsageError(f"--step-pattern {step_pattern!r} is no pattern: {error}") from error
    return replace(found, step_pattern=step_pattern)


def now() -> str:
    """Time of the report; SOURCE_DATE_EPOCH fixes it for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.now(timezone.utc)
    if epoch is not None and epoch.isdigit():
        now = datetime.fromtimestamp(int(epoch), timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
JOBS = click.option("-j", "--jobs", type=click.IntRange(1), help="Processes. Default: cores.")
CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with [tool.ceiling]. Default: the nearest pyproject.toml upward.",
)
STEPS = click.option(
    "--step-pattern",
    metavar="REGEX",
    help="Annotation that marks a step. Default: ProfilerStep#N.",
)
FORCE = click.option("-f", "--force", is_flag=True, help="Replace existing files.")
FORMAT = click.option(
    "--format",
    "formats",
    type=click.Choice(["text", *files.FORMATS]),
    multiple=True,
    help="Without -o: what to print. With -o: which files to write.",
)
OUTPUT = click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Folder for report.html, .json and .md; one file by its suffix; - for stdout.",
)
OPEN = click.option("--open", "open_page", is_flag=True, help="Open the HTML report.")
