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
from analyzer.beside import crosscheck, overlay
from analyzer.compare_command import against_baseline, compare
from analyzer.digest import packed
from analyzer.errors import AnalyzerError, UsageError
from analyzer.findings import glossary
from analyzer.judging import Judging
from analyzer.laws_command import laws
from analyzer.loading import load
from analyzer.options import Target, Terminal
from analyzer.reading import Reading
from analyzer.reading import options as reading_options
from analyzer.render import files, inspection
from analyzer.render import format as printed
from analyzer.render.painting import Mark, of_comparison, of_report, of_scaling
from analyzer.report import comparison, document
from analyzer.report import scaling as several
from analyzer.report import schema as schemas
from analyzer.report.build import Request
from analyzer.report.comparison import is_comparison
from analyzer.report.gates import Condition
from analyzer.scaling.serial import Mode
from analyzer.scaling_command import scaling

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
    ceiling compare before/ after/           did the change help, and why
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
@options.PATHS_OR_HERE
@options.OUTPUT
@options.FORMAT
@options.FORCE
@options.OPEN
@options.MODE
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
@options.GPUS
@options.PRICE
@options.AIM
@click.option(
    "--gpus-per-node",
    type=click.IntRange(1),
    metavar="N",
    help="GPUs that share a node. Default: as recorded.",
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
@click.option(
    "--baseline",
    metavar="PATH",
    help="Compare with this run: the report.json of a run before, or its traces.",
)
@options.FAIL_ON
@options.WARN_ON
@options.EXIT_ZERO
@options.GITHUB
@options.REPORT_URL
@options.COMMENT_ID
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
    gpus: list[int] | None,
    price: float | None,
    target_s: float | None,
    gpus_per_node: int | None,
    shared_loader: bool,
    label: str,
    rank_of: dict[str, int],
    baseline: str | None,
    fail_on: tuple[Condition, ...],
    warn_on: tuple[Condition, ...],
    exit_zero: bool,
    github: bool,
    report_url: str | None,
    comment_id: str,
    strict: bool,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> int:
    """Report on the traces of all ranks: files, folders, patterns, digests.

    \b
    ceiling analyze                          this folder
    ceiling analyze traces/
    ceiling analyze "run/rank*.json.gz" -o report/ --duration 30d
    ceiling analyze traces/ --baseline main.report.json --fail-on slower:5%
    """
    settings = options.settings(config, step_pattern)
    judging = Judging.of(
        fail_on,
        warn_on,
        settings,
        compared=baseline is not None,
        exit_zero=exit_zero,
        github=github,
    )
    target = Target.of(output, formats, force, open_page, mark=Mark(comment_id, report_url))
    beside = None if baseline is None else target.beside("compare", force=force)
    loaded = load(terminal, paths, rank_of, settings, reading, strict=strict)
    wish = (tuple(gpus or ()), price, target_s)
    request = Request(label, options.now(), mode, shared_loader, duration, n, *wish, gpus_per_node)
    options.require_length(request, *wish)
    report = api.report(loaded, request, settings)
    painting = of_report(report)
    target.paint(painting, terminal)
    if baseline is None or beside is None:
        return judging.finish(report, judging.judge(report), painting, target, terminal)
    return against_baseline(report, baseline, request, settings, judging, beside, terminal, reading)


cli.add_command(compare)
cli.add_command(scaling)
cli.add_command(laws)


@cli.command()
@options.PATHS_OR_HERE
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
    """What is in these files, what may be concluded from them, and what to record.

    \b
    ceiling inspect traces/
    """
    settings = options.settings(config, step_pattern)
    loaded = load(terminal, paths, {}, settings, reading)
    report = api.report(loaded, Request("", options.now()), settings)
    actions = {c.id: glossary.entry(c.id).action for c in report.quality}
    click.echo(inspection.render(report, actions), nl=False)


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
    files.write({target: packed(digested.digests[path]) for target, path in targets.items()})
    for target in targets:
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
    """Paint a saved report.json or compare.json again, without the traces.

    \b
    ceiling render report.json --format markdown
    """
    if several.is_scaling(report):
        target = Target.of(output, formats, force, open_page, "scaling")
        target.paint(of_scaling(several.loads(report.read_bytes(), report.name)), terminal)
        return
    if is_comparison(report):
        target = Target.of(output, formats, force, open_page, "compare")
        target.paint(of_comparison(comparison.read(report)), terminal)
        return
    target = Target.of(output, formats, force, open_page)
    target.paint(of_report(document.read(report)), terminal)


@cli.command()
@click.argument("id", required=False, shell_complete=options.ids)
def explain(id: str | None) -> None:
    """What a class, finding, what-if or caveat means, its formula and threshold.

    \b
    ceiling explain                  all ids
    ceiling explain kernel-launch
    """
    click.echo(glossary.explain(id), nl=False)


@cli.command()
def schema() -> None:
    """JSON Schema of report.json, compare.json and scaling.json.

    \b
    ceiling schema > report.schema.json
    """
    click.echo(json.dumps(schemas.schema(), indent=2))


cli.add_command(overlay)
cli.add_command(crosscheck)


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
    """Exit code of the command line (0 fine, 1 gate failed, 2 usage, 3 no usable input, 4 not
    comparable, 70 internal).
    """
    try:
        answer = cli.main(arguments, prog_name="ceiling", standalone_mode=False)
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
    return answer if isinstance(answer, int) else 0


def _complain(message: str, hint: str) -> None:
    click.echo(f"error: {printed.clean(message)}", err=True)
    if hint:
        click.echo(f"hint: {printed.clean(hint)}", err=True)
