"""How much communication stays exposed when there is more of it, or less compute to hide it? ns.

Buckets go out while the backward pass still runs. Communication ends either because the last bucket
could not start earlier (a share of all of it, whatever the compute) or because all of it, one after
the other, lasts longer than the compute beside it. Exposed is the later of the two ends. So hidden
communication is a debt: when more GPUs shrink the compute, it comes to light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify import classes as c

# From this part of the room on, what was hidden tells how much room there was.
FULL = 0.97


@dataclass(frozen=True)
class Traffic:
    """Communication of a mean step: `exposed` and `hidden` ns without waiting, `room` ns of compute
    from the first collective of a step to its last, and `compute` all of it.
    """

    exposed: float
    hidden: float
    room: float
    compute: float

    @property
    def total(self) -> float:
        """Exposed and hidden."""
        return self.exposed + self.hidden

    @property
    def full(self) -> bool:
        """Whether the room was used up."""
        return self.hidden >= FULL * self.room


@dataclass(frozen=True)
class Hiding:
    """`tail` is the share of communication that nothing hides, `room` the share of compute that can
    hide it.
    """

    tail: float
    room: float

    def exposed(self, total: float, compute: float) -> float:
        """ns of `total` communication that `compute` beside it does not hide."""
        return max(self.tail * total, total - self.room * compute)


def traffic(mean_ns: Mapping[str, float], hidden: float, room: float) -> Traffic:
    """The traffic of a mean step; `room` is at least what was hidden and at most the compute."""
    compute = mean_ns.get(c.COMPUTE, 0.0)
    exposed = mean_ns.get(c.COMM_TRANSFER, 0.0) + mean_ns.get(c.COMM_UNSPLIT, 0.0)
    hidden = min(hidden, compute)
    return Traffic(exposed, hidden, min(compute, max(room, hidden)), compute)


def hiding(seen: Sequence[Traffic]) -> Hiding:
    """What several sizes (or one) say; nothing is hidden where none communicates.

    The tail is told by sizes with room to spare, the room by sizes that used it up; where there are
    none, the tail is the least exposed share and the room that of the first to the last collective.
    """
    talking = [t for t in seen if t.total > 0.0 and t.compute > 0.0]
    if not talking:
        return Hiding(1.0, 0.0)
    spare = [t for t in talking if not t.full]
    full = [t for t in talking if t.full]
    shares = [t.exposed / t.total for t in spare]
    tail = sum(shares) / len(shares) if shares else 0.0
    rooms = [t.hidden / t.compute for t in full] or [t.room / t.compute for t in spare]
    if not spare and all(t.hidden <= 0.02 * t.total for t in full):
        return Hiding(1.0, 0.0)
    return Hiding(tail, sum(rooms) / len(rooms))
