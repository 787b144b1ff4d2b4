"""Where in the recording does the critical path of the replay run?

The replay of the unchanged run is a little off the recording. Each piece begins where what it
belongs to began in the recording, and ends where the next one begins. Times in ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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
    clocks = {id(p.actor): _Clocks(graph, run, p.actor) for p in pieces}
    starts = [clocks[id(p.actor)].recorded(p.start, p.on_host) for p in pieces]
    last = pieces[-1]
    starts.append(clocks[id(last.actor)].recorded(last.end, last.on_host))
    edges = np.rint(np.maximum.accumulate(np.array(starts))).astype(np.int64)
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


class _Clocks:
    """Replayed to recorded time of one rank, for its host and its device."""

    def __init__(self, graph: Graph, run: Run, actor: Actor) -> None:
        self._host = _line(run.host[actor.host], graph.time[actor.host])
        begun = _line(run.start[actor.work], graph.ts[actor.work])
        self._device = begun if actor.work.stop > actor.work.start else self._host

    def recorded(self, instant: float, on_host: bool) -> float:
        """The recorded time of a replayed instant."""
        at: float = (self._host if on_host else self._device)(instant)
        return at


def _line(replayed: Floats, recorded: Floats) -> partial[float]:
    """A function of replayed time: what it is off at the nearest instants, in between by part."""
    order = np.argsort(replayed, kind="stable")
    return partial(_moved, replayed[order], (recorded - replayed)[order])


def _moved(known: Floats, off: Floats, instant: float) -> float:
    return instant + (float(np.interp(instant, known, off)) if len(known) else 0.0)
