"""`ceiling laws`: the laws as a calculator, without any trace."""

from __future__ import annotations

import json

import click

from analyzer import options
from analyzer.errors import UsageError
from analyzer.options import Terminal
from analyzer.render import curve, inspection
from analyzer.scaling import laws as law


@click.command()
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
@click.option(
    "--growth",
    type=click.FloatRange(0, 4),
    metavar="X",
    help="Memory-bounded (Sun and Ni): the parallel work grows with N^X.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json", "svg"]), default="text")
@click.pass_obj
def laws(
    terminal: Terminal,
    serial: float | None,
    measured: float | None,
    gpus: list[int],
    growth: float | None,
    format_: str,
) -> None:
    """Amdahl's and Gustafson's laws as a calculator.

    \b
    ceiling laws --serial 0.1 --gpus 2,4,8
    ceiling laws --measured 8=6             why do 8 cards give 6x?
    ceiling laws --serial 0.1 --growth 1.5  work that grows with the memory
    """
    if (serial is None) == (measured is None):
        raise UsageError("one of --serial and --measured is needed", "ceiling laws --serial 0.1")
    fraction = (serial if measured is None else measured) or 0.0
    rows = law.table(fraction, gpus, growth)
    limit = law.amdahl_ceiling(fraction)
    if format_ == "json":
        plain: list[dict[str, float | None]]
        plain = [{"n": r.n, "amdahl": r.amdahl, "gustafson": r.gustafson,
                  "efficiency": r.efficiency} for r in rows]  # fmt: skip
        if growth is not None:
            plain = [row | {"sun_ni": r.sun_ni} for row, r in zip(plain, rows, strict=True)]
        reason = "" if limit else "not bounded: nothing is serial"
        answer = {"serial": fraction, "rows": plain, "limit": limit, "reason": reason}
        click.echo(json.dumps(answer, indent=2))
    elif format_ == "svg":
        click.echo(curve.laws_curve([(r.n, r.amdahl, r.gustafson) for r in rows], limit))
    else:
        table = [(r.n, r.amdahl, r.gustafson, r.efficiency, r.sun_ni) for r in rows]
        click.echo(inspection.laws_table(fraction, table, limit, growth), nl=False)
