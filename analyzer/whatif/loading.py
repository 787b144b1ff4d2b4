"""When is the next batch there: some time after it is asked for, or when the workers have made it?

A loader in the training process makes a batch when asked: its time is the batch's. Worker processes
make batches at a pace of their own; where the loop waits for them often, the pace is what it waits
for, and a faster loop would only wait longer. Which of the two it is shows in the waits: against a
pace, a loop that comes later waits less. Times in ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.classify.program import Call, Host
from analyzer.ranks.member import Member

Floats = npt.NDArray[np.float64]

# The loop waited for a batch that took longer than this to hand over.
_WAITED_NS = 1_000_000
# From this part of the batches on the loader is what the loop waits for.
_OFTEN = 0.25
_ENOUGH = 6


def arrivals(ranks: Sequence[tuple[Member, Host, int]]) -> list[Floats]:
    """Per rank and point of its host when the batch is there, on the common clock (the host's times
    and the shift given); NaN where it is only made when asked for.
    """
    paced = _paced([host for member, host, _ in ranks if not _single(member)])
    found = []
    for member, host, shift in ranks:
        arrival = np.full(len(host.time), np.nan)
        points = np.flatnonzero(host.kind == Call.LOADER)
        waited = points[host.wait[points] > _WAITED_NS]
        if paced and not _single(member) and len(waited) >= max(1.0, _OFTEN * len(points)):
            arrival[waited] = host.time[waited] + shift
        found.append(arrival)
    return found


def _single(member: Member) -> bool:
    return member.digest.evidence.loader.single_process


def _paced(hosts: Sequence[Host]) -> bool:
    """Whether the waits behave as for a pace: unless they clearly do not fall as the loop's own
    time between two batches grows.
    """
    waits, own = [], []
    for host in hosts:
        points = np.flatnonzero(host.kind == Call.LOADER)
        wait = host.wait[points].astype(np.float64)
        if len(points) < 3:
            continue
        between = np.diff(host.time[points]) - wait[1:]
        chosen = wait[1:] > _WAITED_NS
        if chosen.sum() < 3:
            continue
        waits.append(wait[1:][chosen] - wait[1:][chosen].mean())
        own.append(between[chosen] - between[chosen].mean())
    if not waits:
        return True
    y, x = np.concatenate(waits), np.concatenate(own)
    if len(x) < _ENOUGH or not (x**2).sum():
        return True
    slope = float((x * y).sum() / (x**2).sum())
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / (len(x) - 1) / float((x**2).sum()))
    return slope - 2 * error <= -0.5
