"""When is the next batch there: some time after it is asked for, or when the workers have made it?

A loader in the training process makes a batch when asked: its time is the batch's. Worker processes
make batches at a pace of their own, ahead of the loop; a loop that waits for them often waits for
their pace, and would only wait longer if it were faster itself. Times in ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.classify.replayable import Call, Host
from analyzer.ranks.member import Member
from analyzer.trace.schema import Int64

Floats = npt.NDArray[np.float64]

# A batch that took longer than this to hand over was waited for.
_WAITED_NS = 500_000
# From this part of the batches on, and of the time, the loader is what the loop waits for: handing
# over a large batch that is there takes some ms, too.
_OFTEN = 0.25
_MUCH = 0.05


def arrivals(ranks: Sequence[tuple[Member, Host, int]]) -> list[Floats]:
    """Per rank and point of its host when the batch is there, on the common clock (the host's times
    and the shift given); NaN where it is only made when asked for.
    """
    found = []
    for member, host, shift in ranks:
        arrival = np.full(len(host.time), np.nan)
        points = np.flatnonzero(host.kind == Call.LOADER)
        waited = points[host.wait[points] > _WAITED_NS]
        single = member.digest.evidence.loader.single_process
        if not single and _bound(host, points, waited):
            arrival[waited] = host.time[waited] + shift
        found.append(arrival)
    return found


def _bound(host: Host, points: Int64, waited: Int64) -> bool:
    """Whether the loop waits for its loader often and for much of its time."""
    if len(waited) < max(1.0, _OFTEN * len(points)):
        return False
    span = float(host.time[points[-1]] - host.time[points[0]])
    return len(points) == 1 or float(host.wait[points[1:]].sum()) >= _MUCH * span
