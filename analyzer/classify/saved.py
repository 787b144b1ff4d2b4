"""Can a program that was read from a digest be one? Rows must point at what is there."""

from __future__ import annotations

import zlib

from analyzer.classify.replayable import Program
from analyzer.trace.schema import NO_ID, Int64


def why_impossible(program: Program) -> str:
    """What contradicts itself in the program; "" where nothing does."""
    try:
        work, host = program.columns()
    except (zlib.error, ValueError, TypeError) as error:
        return f"the program cannot be unpacked: {error}"
    for table in (work, host):
        if len({len(column) for column in vars(table).values()}) != 1:
            return "columns of the program differ in length"
    if not len(work.ts):
        return "the program holds no work"

    def inside(rows: Int64, count: int) -> bool:
        return bool(((rows >= NO_ID) & (rows < count)).all())

    sound = (
        inside(work.name, len(program.names))
        and inside(work.op, len(program.ops))
        and inside(work.host, len(host.time))
        and inside(host.awaited, len(work.ts))
        and bool((work.dur >= 0).all())
    )
    return "" if sound else "rows of the program point beyond it"
