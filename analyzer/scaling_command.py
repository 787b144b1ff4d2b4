"""`ceiling scaling`: several world sizes -> laws, fits and a plan."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer import api, options
from analyzer.loading import load
from analyzer.options import Target, Terminal
from analyzer.reading import Reading
from analyzer.reading import options as reading_options
from analyzer.render.painting import of_scaling
from analyzer.report.build import Request
from analyzer.report.fitting import Question
from analyzer.scaling.serial import Mode


@click.command()
@click.argument("sizes", nargs=-1, required=True, metavar="N=PATH...")
@options.OUTPUT
@options.FORMAT
@options.FORCE
@options.OPEN
@options.MODE
@click.option(
    "--duration",
    metavar="TIME",
    callback=options.parsed(options.seconds),
    help="Length of the whole run on the largest of the sizes, such as 30d.",
)
@options.GPUS
@options.PRICE
@options.AIM
@click.option(
    "--beyond", is_flag=True, help="Also predict beyond four times the largest size, if asked for."
)
@click.option("--label", default="", help="Name of the series. Default: the largest run's.")
@options.STRICT
@options.STEPS
@reading_options
@options.CONFIG
@click.pass_obj
def scaling(
    terminal: Terminal,
    sizes: tuple[str, ...],
    output: str | None,
    formats: tuple[str, ...],
    force: bool,
    open_page: bool,
    mode: Mode,
    duration: float | None,
    gpus: list[int] | None,
    price: float | None,
    target_s: float | None,
    beyond: bool,
    label: str,
    strict: bool,
    step_pattern: str | None,
    reading: Reading,
    config: Path | None,
) -> None:
    """How a job scales, from traces of several numbers of GPUs, and a plan.

    N=PATH for each size, or a folder with a folder for each (N from the files).

    \b
    ceiling scaling 1=one/ 2=two/ 4=four/ 8=eight/ -o report/
    ceiling scaling runs/ --duration 30d --gpus 16,32 --price 2.5 --target 5d
    """
    settings = options.settings(config, step_pattern)
    request = Request(
        label=label or (Path(sizes[0]).absolute().name if len(sizes) == 1 else ""),
        created=options.now(),
        mode=mode,
        duration_s=duration,
        gpus=tuple(gpus or ()),
        price=price,
        target_s=target_s,
    )
    options.require_length(request, price, target_s)
    target = Target.of(output, formats, force, open_page, "scaling")
    loaded = [
        (n, load(terminal, tuple(paths), {}, settings, reading, strict=strict))
        for n, paths in options.sized_paths(sizes)
    ]
    found = api.fit_scaling(loaded, Question(request, beyond), settings)
    target.paint(of_scaling(found), terminal)
