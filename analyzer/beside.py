"""Commands that put our numbers beside other tools: options -> api -> files."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer import api, options
from analyzer.errors import UnusableInput
from analyzer.interop import crosscheck as checking
from analyzer.loading import load
from analyzer.options import Terminal
from analyzer.reading import Reading, bar
from analyzer.reading import options as reading_options
from analyzer.render import files
from analyzer.render import format as printed
from analyzer.render import overlay as overlaid
from analyzer.report.build import Request
from analyzer.trace.discover import find
from analyzer.trace.stores import Remote, TracePath


@click.command()
@options.PATHS
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="A .json or .json.gz file; - for stdout.",
)
@options.FORCE
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def overlay(
    terminal: Terminal,
    paths: tuple[str, ...],
    output: str,
    force: bool,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> None:
    """A trace for Perfetto: steps, classes, waits, critical path, all ranks on one clock.

    \b
    ceiling overlay traces/ -o overlay.json.gz
    """
    settings = options.settings(config, step_pattern)
    target = options.trace_file(output, force=force)
    found = reading.found(paths)
    loaded = load(terminal, paths, {}, settings, reading)
    with bar(terminal, found.traces) as progress:
        made = api.overlay(loaded, Request("", options.now()), settings, found, progress)
    text = overlaid.render(made)
    for note in made.notes:
        terminal.say(note)
    if target is None:
        click.echo(text, nl=False)
        return
    data = overlaid.packed(text) if target.suffix == ".gz" else text.encode()
    files.write({target: data})
    terminal.say(f"wrote {target} ({printed.data_size(len(data))}); open it at ui.perfetto.dev")


def _here(path: TracePath) -> Path:
    if isinstance(path, Remote):
        raise UnusableInput(
            f"{path.name}: Holistic Trace Analysis reads no addresses", "copy the trace here"
        )
    return path


@click.command()
@options.PATHS
@options.CONFIG
@click.pass_obj
def crosscheck(terminal: Terminal, paths: tuple[str, ...], config: Path | None) -> None:
    """Our figures beside those of Holistic Trace Analysis, and why they differ.

    \b
    ceiling crosscheck traces/rank0.json.gz    needs the extra hta
    """
    settings = options.settings(config, None)
    found = find(paths)
    done, left = [], []
    with bar(terminal, found.traces) as progress, checking.silence():
        for path in found.traces:
            try:
                done.append(checking.check(_here(path), settings))
            except UnusableInput as error:
                left.append(error)
            progress(path)
    for unusable in left:
        terminal.say(f"skipped {unusable.message}")
    if not done:
        raise left[0] if left else UnusableInput("no trace was named", "pass traces, not digests")
    click.echo(checking.text(done), nl=False)
