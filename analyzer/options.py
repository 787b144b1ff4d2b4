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
from click.shell_completion import CompletionItem

from analyzer.config import Settings, load_settings
from analyzer.errors import UsageError
from analyzer.findings import glossary
from analyzer.render import files
from analyzer.render.format import clean, data_size
from analyzer.render.painting import UNMARKED, Mark, Painting
from analyzer.report.build import Request
from analyzer.report.gates import Condition, condition
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


def price(text: str) -> float:
    """The price of a GPU-hour such as 2.5 or 2.5/gpu-hour, in any currency."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/gpu-hour)?", text)
    if found is None:
        raise ValueError(f"{text!r} is no price: write 2.5 or 2.5/gpu-hour")
    return float(found[1])


def sized_paths(texts: tuple[str, ...]) -> list[tuple[int | None, list[str]]]:
    """Number of GPUs (None: as the files say) and paths of each size, from N=PATH or PATH.

    Paths of one number are one run; a folder that holds only folders is a run in each.
    """
    given: dict[int, list[str]] = {}
    found: list[tuple[int | None, list[str]]] = []
    for text in texts:
        number, _, path = text.partition("=")
        if path and re.fullmatch(r"[1-9]\d{0,8}", number):
            given.setdefault(int(number), []).append(path)
            continue
        inside = sorted(Path(text).iterdir()) if Path(text).is_dir() else []
        folders = [entry for entry in inside if entry.is_dir() and not entry.name.startswith(".")]
        if folders and not any(entry.is_file() for entry in inside):
            found += [(None, [str(folder)]) for folder in folders]
        else:
            found.append((None, [text]))
    return [*found, *given.items()]


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


def conditions(texts: tuple[str, ...]) -> tuple[Condition, ...]:
    """The gates of a repeated option."""
    return tuple(map(condition, texts))


def or_here(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths, or this folder when none was named."""
    return paths or (".",)


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

    mark: Mark = UNMARKED

    @classmethod
    def of(
        cls,
        output: str | None,
        formats: tuple[str, ...],
        force: bool,
        open_page: bool,
        stem: str = "report",
        mark: Mark = UNMARKED,
    ) -> Target:
        """From the options; UsageError when they contradict each other or a file exists.

        Markdown beside a picture shows it.
        """
        to_stdout = output in (None, "-")
        if to_stdout and len(formats) > 1:
            raise UsageError("stdout holds one format", "give one --format, or a folder to -o")
        if to_stdout or output is None:
            planned: dict[Path, str] = {}
        elif formats == ("text",):
            raise UsageError("text is printed, not written", "leave -o out, or --format")
        else:
            planned = files.plan(Path(output), [f for f in formats if f != "text"], stem)
        if open_page and "html" not in planned.values():
            raise UsageError("--open needs a page", "give a folder or an .html file to -o")
        files.check(list(planned), force=force)
        pictures = [path.name for path, name in planned.items() if name == "svg"]
        shown = replace(mark, picture=pictures[0] if pictures else None)
        return cls(planned, formats[0] if to_stdout and formats else "text", open_page, shown)

    def beside(self, stem: str, *, force: bool) -> Target:
        """The same formats for another document in the same folder; prints as text or not at all.

        UsageError when a file exists and may not be replaced.
        """
        planned = {
            path.with_name(f"{stem}{path.suffix}"): name
            for path, name in self.files.items()
            if path.stem == "report"
        }
        files.check(list(planned), force=force)
        mark = self.mark
        if mark.picture:
            mark = replace(mark, picture=f"{stem}{Path(mark.picture).suffix}")
        return Target(planned, self.stdout, False, mark)

    def paint(self, painting: Painting, terminal: Terminal) -> None:
        """Writes the files and prints."""
        sizes = self._written(painting)
        if self.stdout != "text":
            # Bytes: a document is UTF-8 whatever the terminal's encoding.
            click.echo(files.encoded(painting.paint[self.stdout](self.mark)), nl=False)
        elif terminal.quiet:
            click.echo(painting.line)
        else:
            text = painting.text(terminal.color, terminal.ascii_only)
            click.echo(text, nl=False, color=terminal.color)
        self._say(sizes, terminal)
        pages = [path for path, name in self.files.items() if name == "html"]
        if self.open_page and pages:
            webbrowser.open(pages[0].absolute().as_uri())

    def write(self, painting: Painting, terminal: Terminal) -> None:
        """Writes the files and prints nothing."""
        self._say(self._written(painting), terminal)

    def _written(self, painting: Painting) -> dict[Path, int]:
        painted = {
            path: files.encoded(painting.paint[name](self.mark))
            for path, name in self.files.items()
        }
        files.write(painted)
        return {path: len(data) for path, data in painted.items()}

    def _say(self, sizes: dict[Path, int], terminal: Terminal) -> None:
        for path, size in sizes.items():
            terminal.say(f"wrote {path} ({data_size(size)})")


def ids(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
    """What a shell offers after `ceiling explain`."""
    known = glossary.entries().values()
    return [CompletionItem(e.id, help=e.title) for e in known if e.id.startswith(begun)]


def trace_file(output: str, *, force: bool) -> Path | None:
    """The file an overlay goes into, None for stdout; UsageError for one that is no trace's name or
    exists already.
    """
    if output == "-":
        return None
    path = Path(output)
    if not path.name.lower().endswith((".json", ".json.gz")):
        raise UsageError(f"{path.name} is no name of a trace", "end it in .json or .json.gz")
    files.check([path], force=force)
    return path


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


def require_length(request: Request, *wished: object) -> None:
    """UsageError where a plan is asked for and the run's length is not known."""
    if request.duration_s is None and any(wished):
        raise UsageError("a plan needs the length of the whole run today", "add it: --duration 30d")


def now() -> str:
    """Time of the report; SOURCE_DATE_EPOCH fixes it for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = datetime.fromtimestamp(time.time() if epoch is None else int(epoch), timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}, no time in seconds") from error
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
# Where nothing is written either, a command without paths is of this folder.
PATHS_OR_HERE = click.argument("paths", nargs=-1, metavar="[PATH]...", callback=parsed(or_here))
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
    help="Folder for .html, .json and .md files; one file by its suffix; - for stdout.",
)
MODE = click.option(
    "--mode",
    type=click.Choice(["strong", "accum", "weak"]),
    default="strong",
    show_default=True,
    help="What more GPUs share: the batch, accumulation steps, or nothing.",
)
GPUS = click.option(
    "--gpus",
    metavar="N,N,...",
    callback=parsed(gpu_counts),
    help="GPUs to plan for. Default: one, two and four times today's.",
)
PRICE = click.option(
    "--price",
    metavar="X",
    callback=parsed(price),
    help="Price of a GPU-hour, such as 2.5/gpu-hour.",
)
AIM = click.option(
    "--target",
    "target_s",
    metavar="TIME",
    callback=parsed(seconds),
    help="Length the whole run should have: what reaches it?",
)
OPEN = click.option("--open", "open_page", is_flag=True, help="Open the HTML report.")
REPORT_URL = click.option("--report-url", metavar="URL", help="Link in the Markdown: the page.")
COMMENT_ID = click.option(
    "--comment-id", default="default", metavar="TEXT", help="Tells several comments apart."
)
FAIL_ON = click.option(
    "--fail-on",
    multiple=True,
    metavar="GATE",
    callback=parsed(conditions),
    help="Exit 1 where this holds: step_ms>105, gain>10%, slower:5%.",
)
WARN_ON = click.option(
    "--warn-on", multiple=True, metavar="GATE", callback=parsed(conditions), help="Warn of it only."
)
EXIT_ZERO = click.option("--exit-zero", is_flag=True, help="Report failed gates, exit 0.")
GITHUB = click.option(
    "--github", is_flag=True, help="Write the job summary and up to 3 annotations."
)
