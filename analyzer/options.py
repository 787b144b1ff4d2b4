"""What do the options mean, and where do results and messages go?"""

from __future__ import annotations

import os
import re
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import click

from analyzer.config import Settings, load_settings
from analyzer.errors import UsageError
from analyzer.render import console, files
from analyzer.render.format import clean, data_size
from analyzer.report.document import Report
from analyzer.scaling import laws

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


def measured(text: str) -> float:
    """The serial fraction (Karp-Flatt) that a measured speedup means: 8=6 is 0.0476."""
    if not re.fullmatch(r"[1-9]\d{0,8}=\d+(?:\.\d+)?", text):
        raise ValueError(f"{text!r} is no measurement: write 8=6 for a speedup of 6 on 8 GPUs")
    n, _, number = text.partition("=")
    gpus, speedup = int(n), float(number)
    if gpus < 2 or speedup <= 0:
        raise ValueError(f"{text!r}: at least two GPUs and a speedup above 0 are needed")
    fraction = laws.karp_flatt(speedup, gpus)
    if fraction is None or not 0 <= fraction <= 1:
        wrong = "it is superlinear" if speedup > gpus else "more GPUs are slower than one"
        raise ValueError(
            f"a speedup of {number} on {n} GPUs is no case of Amdahl's law: {wrong}; "
            "check that both runs did the same work"
        )
    return fraction


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
    verbose: bool
    progress: bool
    ascii_only: bool

    def say(self, text: str) -> None:
        """A message beside the result."""
        if not self.quiet:
            click.echo(clean(text), err=True)


@dataclass(frozen=True)
class Target:
    """Where the paintings of a report go: files, or one format to stdout."""

    files: dict[Path, str]
    stdout: str
    open_page: bool

    @classmethod
    def of(
        cls, output: str | None, formats: tuple[str, ...], force: bool, open_page: bool
    ) -> Target:
        """From the options; UsageError when they contradict each other or a file exists."""
        to_stdout = output in (None, "-")
        if to_stdout and len(formats) > 1:
            raise UsageError("stdout holds one format", "give one --format, or a folder to -o")
        if to_stdout or output is None:
            planned: dict[Path, str] = {}
        elif formats == ("text",):
            raise UsageError("text is printed, not written", "leave -o out, or --format")
        else:
            planned = files.plan(Path(output), [f for f in formats if f != "text"])
        if open_page and "html" not in planned.values():
            raise UsageError("--open needs a page", "give a folder or an .html file to -o")
        files.check(list(planned), force=force)
        return cls(planned, formats[0] if to_stdout and formats else "text", open_page)

    def paint(self, report: Report, terminal: Terminal) -> None:
        """Writes the files, then prints."""
        sizes = {
            path: files.write(path, files.encoded(files.FORMATS[name][1](report)))
            for path, name in self.files.items()
        }
        if self.stdout != "text":
            # Bytes: a document is UTF-8 whatever the terminal's encoding.
            click.echo(files.encoded(files.FORMATS[self.stdout][1](report)), nl=False)
        elif terminal.quiet:
            click.echo(console.verdict_line(report))
        else:
            click.echo(
                console.render(report, color=terminal.color, ascii_only=terminal.ascii_only),
                nl=False,
                color=terminal.color,
            )
        for path, size in sizes.items():
            terminal.say(f"wrote {path} ({data_size(size)})")
        pages = [path for path, name in self.files.items() if name == "html"]
        if self.open_page and pages:
            webbrowser.open(pages[0].absolute().as_uri())


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
    try:
        now = datetime.fromtimestamp(time.time() if epoch is None else int(epoch), timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}, no time in seconds") from error
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
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
STRICT = click.option(
    "--strict", is_flag=True, help="Refuse a file that has to be repaired to be read."
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
