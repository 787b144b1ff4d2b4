"""The command line: options -> api -> files. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import gc
import io
import json
import os
import sys
import traceback
from pathlib import Path

import click

from analyzer import __version__, api, options
from analyzer.digest import packed
from analyzer.errors import AnalyzerError, UsageError
from analyzer.findings import glossary
from analyzer.options import Target, Terminal
from analyzer.reading import Reading
from analyzer.reading import options as reading_options
from analyzer.render import curve, files, inspection
from analyzer.render import format as printed
from analyzer.report import document
from analyzer.report.build import Request
from analyzer.scaling import laws as law
from analyzer.scaling.serial import Mode

INTERNAL_ERROR = 70
INTERRUPTED = 130


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "CEILING",
        "max_content_width": 80,
    }
)
@click.version_option(__version__, "-V", "--version", prog_name="ceiling")
@click.option("-q", "--quiet", is_flag=True, help="Only the verdict; no messages.")
@click.option("-v", "--verbose", is_flag=True, help="Whose each file is; tracebacks of faults.")
@click.option("--color/--no-color", default=None, help="Default: on a terminal, unless NO_COLOR.")
@click.option("--no-progress", is_flag=True, help="No progress bar.")
@click.pass_context
def cli(
    ctx: click.Context, quiet: bool, verbose: bool, color: bool | None, no_progress: bool
) -> None:
    """What to attack first in a multi-GPU PyTorch run, from its profiler traces.

    \b
    ceiling analyze traces/ -o report/       report.html, report.json, report.md
    ceiling laws --serial 0.1 --gpus 2,4,8   the laws as a calculator
    """
    if color is None:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    ctx.obj = Terminal(
        color=color,
        quiet=quiet,
        verbose=verbose,
        progress=sys.stderr.isatty() and not (quiet or no_progress),
        ascii_only=not encoding.startswith("utf"),
    )


@cli.command()
@options.PATHS
@options.OUTPUT
@options.FORMAT
@options.FORCE
@options.OPEN
@click.option(
    "--mode",
    type=click.Choice(["strong", "accum", "weak"]),
    default="strong",
    show_default=True,
    help="What more GPUs share: the batch, accumulation steps, or nothing.",
)
@click.option(
    "--n",
    type=click.IntRange(1),
    metavar="N",
    help="GPUs or groups of GPUs that share the work. Default: recognised.",
)
@click.option(
    "--duration",
    metavar="TIME",
    callback=options.parsed(options.seconds),
    help="Length of the whole run today, such as 30d.",
)
@click.option("--shared-loader", is_flag=True, help="All ranks load from one disk or CPU.")
@click.option("--label", default="", help="Name of the run. Default: the folder's.")
@click.option(
    "--rank-of",
    multiple=True,
    metavar="FILE=N",
    callback=options.parsed(options.ranks_of),
    help="Rank of a file whose name and metadata do not say it.",
)
@options.STRICT
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def analyze(
    terminal: Terminal,
    paths: tuple[str, ...],
    output: str | None,
    formats: tuple[str, ...],
    force: bool,
    open_page: bool,
    mode: Mode,
    n: int | None,
    duration: float | None,
    shared_loader: bool,
    label: str,
    rank_of: dict[str, int],
    strict: bool,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> None:
    """Report on the traces of all ranks: files, folders, patterns, digests.

    \b
    ceiling analyze traces/
    ceiling analyze "run/rank*.json.gz" -o report/ --duration 30d
    """
    settings = options.settings(config, step_pattern)
    target = Target.of(output, formats, force, open_page)
    loaded = _load(terminal, paths, rank_of, settings, reading, strict=strict)
    request = Request(label, options.now(), mode, shared_loader, duration, n)
    target.paint(api.report(loaded, request, settings), terminal)


def _load(
    terminal: Terminal,
    paths: tuple[str, ...],
    rank_of: dict[str, int],
    settings: api.Settings,
    reading: Reading,
    *,
    strict: bool = False,
) -> api.Loaded:
    digested = reading.digests(terminal, paths, settings, strict=strict)
    loaded = api.load(digested, ranks=reading.ranks, rank_of=rank_of, settings=settings)
    if terminal.verbose:
        for file in loaded.files:
            if file.rank is not None:
                terminal.say(f"{file.name}: rank {file.rank} by {file.rank_rule}")
    return loaded


@cli.command()
@options.PATHS
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def inspect(
    terminal: Terminal,
    paths: tuple[str, ...],
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> None:
    """What is in these files, and what may be concluded from them.

    \b
    ceiling inspect traces/
    """
    settings = options.settings(config, step_pattern)
    loaded = _load(terminal, paths, {}, settings, reading)
    report = api.report(loaded, Request("", options.now()), settings)
    click.echo(inspection.render(report), nl=False)


@cli.command()
@options.PATHS
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the digests, one per trace.",
)
@options.FORCE
@options.STRICT
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def digest(
    terminal: Terminal,
    paths: tuple[str, ...],
    output: Path,
    force: bool,
    strict: bool,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> None:
    """Reduce each trace to a small digest, where it was recorded; analyze reads digests too.

    \b
    ceiling digest rank0.json.gz -o digests/
    """
    settings = options.settings(config, step_pattern)
    digested = reading.digests(terminal, paths, settings, strict=strict)
    targets = {output / f"{path.name}.digest": path for path in digested.digests}
    if len(targets) < len(digested.digests):
        raise UsageError("two of the traces have the same name", "digest one folder at a time")
    files.check(list(targets), force=force)
    for target, path in targets.items():
        files.write(target, packed(digested.digests[path]))
        click.echo(str(target))


@cli.command()
@click.argument("report", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@options.OUTPUT
@options.FORMAT
@options.FORCE
@options.OPEN
@click.pass_obj
def render(
    terminal: Terminal,
    report: Path,
    output: str | None,
    formats: tuple[str, ...],
    force: bool,
    open_page: bool,
) -> None:
    """Paint a saved report.json again, without the traces.

    \b
    ceiling render report.json --format markdown
    """
    target = Target.of(output, formats, force, open_page)
    target.paint(document.read(report), terminal)


@cli.command()
@click.option("--serial", type=click.FloatRange(0, 1), help="Serial fraction, 1-P.")
@click.option(
    "--measured",
    metavar="N=SPEEDUP",
    callback=options.parsed(options.measured),
    help="Take it from a measured speedup: 8=6.",
)
@click.option(
    "--gpus",
    metavar="N,N,...",
    default="1,2,4,8,16,32,64",
    show_default=True,
    callback=options.parsed(options.gpu_counts),
    help="How many GPUs.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json", "svg"]), default="text")
@click.pass_obj
def laws(
    terminal: Terminal,
    serial: float | None,
    measured: float | None,
    gpus: list[int],
    format_: str,
) -> None:
    """Amdahl's and Gustafson's laws as a calculator.

    \b
    ceiling laws --serial 0.1 --gpus 2,4,8
    ceiling laws --measured 8=6             why do 8 cards give 6x?
    """
    if (serial is None) == (measured is None):
        raise UsageError("one of --serial and --measured is needed", "ceiling laws --serial 0.1")
    fraction = (serial if measured is None else measured) or 0.0
    rows = law.table(fraction, gpus)
    limit = law.amdahl_ceiling(fraction)
    if format_ == "json":
        plain = [{"n": r.n, "amdahl": r.amdahl, "gustafson": r.gustafson,
                  "efficiency": r.efficiency} for r in rows]  # fmt: skip
        reason = "" if limit else "not bounded: nothing is serial"
        answer = {"serial": fraction, "rows": plain, "limit": limit, "reason": reason}
        click.echo(json.dumps(answer, indent=2))
    elif format_ == "svg":
        click.echo(curve.laws_curve([(r.n, r.amdahl, r.gustafson) for r in rows], limit))
    else:
        triples = [(r.n, r.amdahl, r.gustafson, r.efficiency) for r in rows]
        click.echo(inspection.laws_table(fraction, triples, limit), nl=False)


@cli.command()
@click.argument("id", required=False)
def explain(id: str | None) -> None:
    """What a class, finding, what-if or caveat means, its formula and threshold.

    \b
    ceiling explain                  all ids
    ceiling explain kernel-launch
    """
    click.echo(glossary.explain(id), nl=False)


@cli.command()
def schema() -> None:
    """JSON Schema of report.json.

    \b
    ceiling schema > report.schema.json
    """
    click.echo(json.dumps(document.schema(), indent=2))


def main() -> None:
    """Entry point: every failure is one sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 shows ? for what it lacks, as it does for a kernel's name.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # What was imported stays: no collection, nor the one at exit, need look through it again.
    gc.freeze()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Exit code of the command line (0 fine, 2 usage, 3 no usable input, 70 internal)."""
    try:
        cli.main(arguments, prog_name="ceiling", standalone_mode=False)
    except AnalyzerError as error:
        _complain(error.message, error.hint)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _complain(
            f"{error.filename or 'output'}: {error.strerror or error}",
            "check the path, its permissions and the space that is left",
        )
        return UsageError.exit_code
    except Exception as error:
        if {"-v", "--verbose"} & set(arguments):
            traceback.print_exc()
        _complain(
            f"internal error: {type(error).__name__}: {error}",
            "run again as `ceiling -v ...` and report the traceback with the trace's header",
        )
        return INTERNAL_ERROR
    return 0


def _complain(message: str, hint: str) -> None:
    click.echo(f"error: {printed.clean(message)}", err=True)
    if hint:
        click.echo(f"hint: {printed.clean(hint)}", err=True)
