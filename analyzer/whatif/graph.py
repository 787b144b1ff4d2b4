"""What is replayed: all ranks' work and host points as arrays, and the tasks that fill them in.

Work lies rank by rank and lane by lane. A slot is a piece of work, a point an instant of a host.
Times are ns since the first instant of the recording.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from analyzer.trace.schema import Int64
from analyzer.whatif.tasks import Task

Floats = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Actor:
    """One member's part of the arrays: its points and slots, and what was added to its times.

    `names` and `ops` are what `Graph.name` and `Graph.op` count in; `recorded` says that the waits
    between its streams were recorded, not inferred.
    """

    rank: int
    cycle: int
    host: slice
    work: slice
    shift: int
    names: list[str]
    ops: list[str]
    recorded: bool


@dataclass(frozen=True)
class Graph:
    """Arrays by slot (work) and by point (host), and the tasks in order.

    `launch` is the point of each slot, `fixed` the start of work launched before the recording
    (NaN for the others). `dur` is the length of work, of joined collectives once all their ranks
    are there. `arrival` is when a loader's batch is there where that does not depend on the loop,
    NaN elsewhere. `blocks` are points of which it is known what they waited for, `room`
    the slot that must be over before a point finds room in the queue (NO_ID: it always does).
    """

    actors: list[Actor]
    ts: Floats
    dur: Floats
    gap: Floats
    latency: Floats
    launch: Int64
    fixed: Floats
    activity: Int64
    lane: Int64
    step: Int64
    name: Int64
    op: Int64
    joined: Bool
    nbytes: Floats
    time: Floats
    kind: Int64
    rest: Floats
    other: Floats
    unknown: Floats
    wait: Floats
    arrival: Floats
    returning: Floats
    room: Int64
    blocks: Bool
    tasks: list[Task]
    kinds: dict[int, str] = field(default_factory=dict)
