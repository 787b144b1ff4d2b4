"""Where in the recording does the critical path of the replay run?

The replay of the unchanged run is a little off the recording. Each piece begins where what it
belongs to began in the recording, and ends where the next one begins. Times in ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.trace.schema import NO_ID
from analyzer.whatif.graph import Actor, Graph
from analyzer.whatif.replay import Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stretch:
    """A piece of the path: [start, end) on a rank, its class, and the work it belongs to: the slot,
    or that which a host launches next (NO_ID for neither). `on_host` says that the host was waited
    for.
    """

    rank: int
    start: float
    end: float
    time_class: str
    slot: int
    actor: Actor
    on_host: bool


@dataclass(frozen=True)
class Placed:
    """A piece of the path on the clock of its rank, with the kernel it belongs to and the operator
    that launched it ("" for neither).
    """

    rank: int
    cycle: int
    start: int
    end: int
    time_class: str
    name: str
    op: str
    on_host: bool


def placed(graph: Graph, run: Run, pieces: Sequence[Stretch]) -> list[Placed]:
    """The pieces, in order of time, where they are in the recording; those of no length are left
    out.
    """
    if not pieces:
        return []
    last = pieces[-1]
    sides = [(p.actor, p.on_host) for p in pieces] + [(last.actor, last.on_host)]
    instants = np.array([p.start for p in pieces] + [last.end])
    rows: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for row, (actor, on_host) in enumerate(sides):
        rows[id(actor), on_host].append(row)
    for of in rows.values():
        actor, on_host = sides[of[0]]
        instants[of] = _recorded(graph, run, actor, instants[of], on_host)
    edges = np.rint(np.maximum.accumulate(instants)).astype(np.int64)
    return [
        _placed(graph, piece, int(start) - piece.actor.shift, int(end - start))
        for piece, start, end in zip(pieces, edges[:-1], edges[1:], strict=True)
        if end > start
    ]


def _placed(graph: Graph, piece: Stretch, start: int, length: int) -> Placed:
    known = piece.slot != NO_ID
    op = int(graph.op[piece.slot]) if known else NO_ID
    return Placed(
        rank=piece.rank,
        cycle=piece.actor.cycle,
        start=start,
        end=start + length,
        time_class=piece.time_class,
        name=piece.actor.names[int(graph.name[piece.slot])] if known else "",
        op=piece.actor.ops[op] if op != NO_ID else "",
        on_host=piece.on_host,
    )


def _recorded(graph: Graph, run: Run, actor: Actor, instants: Floats, on_host: bool) -> Floats:
    """Replayed instants of a rank's host or device as recorded: moved by what the replay is off at
    the nearest points or starts of work, in between by part.
    """
    if on_host:
        known, recorded = run.host[actor.host], graph.time[actor.host]
    else:
        known, recorded = run.start[actor.work], graph.ts[actor.work]
    if not len(known):
        return instants
    order = np.argsort(known, kind="stable")
    off = np.interp(instants, known[order], (recorded - known)[order])
    return np.asarray(instants + off)
