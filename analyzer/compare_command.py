"""`ceiling compare`, and a report against its baseline: two sides -> documents -> exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from analyzer import api, options
from analyzer.judging import NOT_COMPARABLE, Judging
from analyzer.loading import opened
from analyzer.options import Target, Terminal
from analyzer.reading import Reading
from analyzer.reading import options as reading_options
from analyzer.render.painting import Mark, of_comparison
from analyzer.report import outcome
from analyzer.report.build import Request
from analyzer.report.comparison import Comparison
from analyzer.report.document import Report
from analyzer.report.gates import Condition
from analyzer.runs import sides, sources


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="[LABEL=]BEFORE [LABEL=]AFTER")
@options.OUTPUT
@options.FORMAT
@click.option("-f", "--overwrite", is_flag=True, help="Replace existing files.")
@click.option("--force", is_flag=True, help="Compare also what cannot be compared.")
@options.OPEN
@options.FAIL_ON
@options.WARN_ON
@options.EXIT_ZERO
@options.GITHUB
@options.REPORT_URL
@options.COMMENT_ID
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def compare(
    terminal: Terminal,
    runs: tuple[str, ...],
    output: str | None,
    formats: tuple[str, ...],
    overwrite: bool,
    force: bool,
    open_page: bool,
    fail_on: tuple[Condition, ...],
    warn_on: tuple[Condition, ...],
    exit_zero: bool,
    github: bool,
    report_url: str | None,
    comment_id: str,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> int:
    """Compare a run before with a run after: folders, files, patterns, digests or report.json.

    \b
    ceiling compare before/ after/
    ceiling compare main=main.report.json mine=traces/ --fail-on slower:5%
    ceiling compare "main=main/*" "mine=mine/*" -o report/      several runs

    A label that is given more than once names several runs of one side. Exit codes: 1 a gate
    failed, 4 the sides cannot be compared.
    """
    settings = options.settings(config, step_pattern)
    judging = Judging.of(
        fail_on, warn_on, settings, compared=True, exit_zero=exit_zero, github=github
    )
    mark = Mark(comment_id, report_url)
    target = Target.of(output, formats, overwrite, open_page, "compare", mark)
    request = Request("", options.now())
    found = sides(runs)
    before, after = (
        [opened(terminal, source, request, settings, reading) for source in side]
        for side in (found.before, found.after)
    )
    comparison = api.compared(before, after, request, settings, labels=found.labels, force=force)
    return _finish(comparison, judging, target, terminal, text=True)


def against_baseline(
    report: Report,
    baseline: str,
    request: Request,
    settings: api.Settings,
    judging: Judging,
    target: Target,
    terminal: Terminal,
    reading: Reading,
) -> int:
    """Compares a report with the runs named by `--baseline`; the exit code.

    What went to stdout stays alone there unless it was text.
    """
    plain = Request("", request.created, request.mode, request.shared_loader, None, request.n)
    before: Sequence[Report] = [
        opened(terminal, source, plain, settings, reading) for source in sources(baseline)
    ]
    comparison = api.compared(
        before, [report], request, settings, labels=("baseline", "this run"), force=False
    )
    text = target.stdout == "text"
    if text and not terminal.quiet:
        click.echo()
    return _finish(comparison, judging, target, terminal, text=text)


def _finish(
    comparison: Comparison, judging: Judging, target: Target, terminal: Terminal, *, text: bool
) -> int:
    comparison = replace(comparison, gates=judging.judge(comparison))
    painting = of_comparison(comparison)
    if text:
        target.paint(painting, terminal)
    else:
        target.write(painting, terminal)
        terminal.say(painting.line)
    code = judging.finish(comparison, comparison.gates, painting, target, terminal)
    if comparison.verdict.outcome == outcome.NOT_COMPARABLE:
        terminal.say("ceiling compare --force compares them all the same")
        return NOT_COMPARABLE
    return code
