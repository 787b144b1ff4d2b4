"""What can a host call of a simulated job do? Nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

COMPUTE, COMMUNICATION = 7, 20
MAIN, AUTOGRAD = "main", "autograd"
LOSS = 0


class Do(Enum):
    """What an operation does beside taking host time."""

    HOST = auto()
    LAUNCH = auto()
    COLLECTIVE = auto()
    COPY = auto()
    RECORD = auto()
    WAIT = auto()
    SYNC_STREAM = auto()
    SYNC_EVENT = auto()
    SYNC_DEVICE = auto()
    LOAD = auto()
    OPEN = auto()
    CLOSE = auto()


SUBMITS = frozenset({Do.LAUNCH, Do.COLLECTIVE, Do.COPY})


@dataclass(frozen=True)
class Op:
    """One call: `host_ns` passes before it, `call_ns` in it, `device_ns` is the work it queues.

    `name` is the kernel's, copy's or annotation's, `call` the runtime call's, `ops` the operators
    around it. `event` is what a record sets and a wait reads. `early` marks waits of compute for
    communication before the backward's end. `blocks`: the copy's call lasts until it is done.
    """

    do: Do
    name: str = ""
    call: str = ""
    ops: tuple[str, ...] = ()
    thread: str = MAIN
    stream: int = COMPUTE
    host_ns: int = 0
    call_ns: int = 0
    device_ns: int = 0
    event: int = -1
    early: bool = False
    blocks: bool = False
    optimizer: bool = False
    batch: bool = False
    size: int = 0
    kind: str = ""
