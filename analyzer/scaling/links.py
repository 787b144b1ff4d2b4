"""What do a hop and a byte cost, by the collectives of several sizes or several runs? ns, bytes.

Latency and bandwidth are told apart by what differs: bytes over bandwidth, hops with the ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.ranks.pool import CollectiveMean
from analyzer.scaling.comm_cost import Link, bus_factor, ring_hops
from analyzer.scaling.least_squares import non_negative

# Sizes a decade apart, or so many numbers of ranks, tell latency from bandwidth.
APART, RANKS = 10.0, 3
TOO_ALIKE = (
    "latency and bandwidth cannot be told apart: the sizes are less than a decade apart and the "
    "numbers of ranks fewer than three"
)


@dataclass(frozen=True)
class LinkFit:
    """Latency and bandwidth of one kind and group, from `rows` (ranks, bytes, ns of one); None with
    `reason` where they cannot be told apart. `rms` is the relative residual.
    """

    kind: str
    group: str
    rows: Sequence[tuple[int, float, float]]
    link: Link | None
    rms: float | None
    reason: str = ""


def fit_link(kind: str, group: str, rows: Sequence[tuple[int, float, float]]) -> LinkFit:
    """Non-negative least squares of the time on [hops, wire bytes] of a ring, relative residuals
    (methods 1.9). Times are transfer alone.
    """
    sizes = [nbytes for _, nbytes, _ in rows]
    if max(sizes) < APART * min(sizes) and len({n for n, _, _ in rows}) < RANKS:
        return LinkFit(kind, group, rows, None, None, TOO_ALIKE)
    hops = [ring_hops(kind, n) for n, _, _ in rows]
    wire = [(bus_factor(kind, n) or 0.0) * nbytes for n, nbytes, _ in rows]
    times = [ns for _, _, ns in rows]
    found = non_negative([hops, wire], times, [1.0 / ns for ns in times])
    latency, per_byte = found.coefficients
    link = Link(latency, 1.0 / per_byte if per_byte > 0.0 else None)
    return LinkFit(kind, group, rows, link, found.rms)


def fit_links(runs: Sequence[tuple[int, Sequence[CollectiveMean]]]) -> list[LinkFit]:
    """A link per kind and group over runs (world size, collectives); a group without a recorded
    size is taken to be the whole run. Rows without bytes or transfer say nothing.
    """
    found: dict[tuple[str, str], list[tuple[int, float, float]]] = defaultdict(list)
    for size, table in runs:
        for row in table:
            n = row.group_size or size
            if row.nbytes and row.transfer_ns and bus_factor(row.kind, n) is not None:
                found[row.kind, row.group].append((n, row.nbytes, row.transfer_ns / row.count))
    return [fit_link(kind, group, rows) for (kind, group), rows in sorted(found.items())]
