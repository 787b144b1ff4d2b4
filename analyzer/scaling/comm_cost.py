"""How fast do collectives move their bytes, and is that what such links give? Decimal GB/s.

Bytes per ns are GB per s. Definitions are those of nccl-tests: algbw = bytes/time; busbw = algbw
times what of the bytes a rank must send, so that it compares with a link whatever the number of
ranks. Time is transfer alone: with the waiting in it a late rank would look like a slow network.
Predicted times are Hockney's: a latency for each hop in turn, and bytes over one rank's bandwidth.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, replace

from analyzer.ranks.pool import CollectiveMean, Job

# Kinds whose ranks send different amounts: there is no one size to take a factor of.
UNEVEN = frozenset({"all_to_all", "dispatch", "combine"})
# From this ratio of the largest to the mean rank's bytes on an exchange counts as uneven.
UNEVEN_FROM = 1.05
# A ring of 8 GPUs reaches half its bandwidth at 15 MB (56 us at 480 GB/s); at 100 MB latency alone
# leaves 87 %, so less than BELOW of a reference has another cause.
LARGE_BYTES = 100e6
BELOW = 0.8

NO_TRANSFER = "its transfer cannot be told from waiting"
NO_TIME = "its transfer takes no time"
NO_SIZE = "its size was not recorded"
NO_GROUP = "the size of its group was not recorded"
ONE_RANK = "one rank moves nothing"
NO_FACTOR = "busbw is not defined for this kind"


@dataclass(frozen=True)
class Bandwidth:
    """GB/s of one row; `reason` says why a number is None, `note` what to make of it."""

    algbw: float | None
    busbw: float | None
    reason: str = ""
    note: str = ""


@dataclass(frozen=True)
class Reference:
    """Links of a GPU inside a node: `link` is its rate in one direction, `busbw` what large
    all-reduces reached on 8 GPUs (low, high), None where no figure was found. Both GB/s.

    Switches that reduce (NVLink SHARP) lift an all-reduce over its link, and nothing else: other
    kinds have no reference here.
    """

    gpu: str
    link: float
    busbw: tuple[float, float] | None
    source: str


_MEASURED = "busbw of large all-reduces on 8 GPUs in a cluster vendor's note on nccl-tests, 2026"
_HALVED = "vendor's data sheet, half of the total it gives for both directions"
# First pattern that is found in the GPU's name. Between nodes the number of network ports decides,
# which no trace records: there is no reference.
REFERENCES = (
    Reference(r"H100.*PCIE|H100 NVL", 64.0, (35.0, 45.0), _MEASURED),
    Reference(r"A100.*PCIE", 32.0, None, _HALVED),
    Reference(r"A100", 300.0, (230.0, 250.0), _MEASURED),
    Reference(r"H100", 450.0, (460.0, 480.0), _MEASURED),
    Reference(r"H200", 450.0, None, _HALVED),
    Reference(r"B200", 900.0, None, _HALVED),
    Reference(r"V100-SXM", 150.0, None, _HALVED),
)


def bus_factor(kind: str, n: int) -> float | None:
    """What part of the bytes crosses a rank's link (nccl-tests); None for n=1 and other kinds."""
    if n < 2:
        return None
    if kind == "all_reduce":
        return 2.0 * (n - 1) / n
    if kind in ("reduce_scatter", "all_gather", "all_to_all"):
        return (n - 1) / n
    return 1.0 if kind in ("broadcast", "reduce", "send_recv") else None


@dataclass(frozen=True)
class Link:
    """What one hop costs: `latency` ns, and `bandwidth` bytes per ns (GB/s), None where the bytes
    take no time that could be measured.
    """

    latency: float
    bandwidth: float | None

    def time(self, hops: float, wire_bytes: float) -> float:
        """ns of `hops` one after the other that pass `wire_bytes` through each link."""
        wire = 0.0 if self.bandwidth is None else wire_bytes / self.bandwidth
        return hops * self.latency + wire


def ring_hops(kind: str, n: float) -> float:
    """Messages one after the other in a ring of `n`: an all-reduce goes round twice."""
    if n <= 1:
        return 0.0
    if kind == "send_recv":
        return 1.0
    return (2.0 if kind == "all_reduce" else 1.0) * (n - 1.0)


def ring_time(kind: str, n: int, nbytes: float, link: Link) -> float | None:
    """ns of a ring collective of `nbytes` (nccl-tests' size); None for kinds without a bus factor,
    0 on one rank.
    """
    if n == 1:
        return 0.0
    factor = bus_factor(kind, n)
    return None if factor is None else link.time(ring_hops(kind, n), factor * nbytes)


def tree_all_reduce_time(n: int, nbytes: float, link: Link) -> float:
    """ns of a pipelined double tree: up and down log2(n) levels, all bytes twice."""
    return link.time(2.0 * math.log2(n), 2.0 * nbytes) if n > 1 else 0.0


def ring_tree_crossover(n: int, link: Link) -> float | None:
    """Bytes above which the ring's all-reduce beats the tree's; None where latency is not known to
    cost anything or there is no ring.
    """
    if n < 3 or link.bandwidth is None or link.latency <= 0.0:
        return None
    return link.bandwidth * link.latency * n * (n - 1 - math.log2(n))


def two_level_all_reduce_time(
    per_node: int, nodes: int, nbytes: float, inside: Link, between: Link
) -> float:
    """ns of a ring inside each node around a ring between nodes of a node's part of the bytes."""
    return (ring_time("all_reduce", per_node, nbytes, inside) or 0.0) + (
        ring_time("all_reduce", nodes, nbytes / per_node, between) or 0.0
    )


def bandwidth(
    kind: str, n: int | None, nbytes: float | None, transfer_ns: float | None
) -> Bandwidth:
    """Rates of one collective of `nbytes` (nccl-tests' size) that transfers for `transfer_ns`."""
    if transfer_ns is None or nbytes is None or transfer_ns <= 0.0:
        reason = NO_TRANSFER if transfer_ns is None else NO_SIZE if nbytes is None else NO_TIME
        return Bandwidth(None, None, reason)
    if n == 1:
        return Bandwidth(None, None, ONE_RANK)
    algbw = nbytes / transfer_ns
    factor = None if n is None else bus_factor(kind, n)
    if factor is None:
        return Bandwidth(algbw, None, NO_GROUP if n is None else NO_FACTOR)
    return Bandwidth(algbw, algbw * factor)


def reference(gpu: str | None) -> Reference | None:
    """What the links of this GPU give inside a node; None for GPUs not listed."""
    if gpu is None:
        return None
    return next((r for r in REFERENCES if re.search(r.gpu, gpu, re.IGNORECASE)), None)


def attained(kind: str, found: Bandwidth, nbytes: float | None, known: Reference | None) -> str:
    """The remark on an all-reduce below its reference, for large messages; "" otherwise."""
    if (
        kind != "all_reduce"
        or found.busbw is None
        or nbytes is None
        or known is None
        or known.busbw is None
    ):
        return ""
    low, high = known.busbw
    if nbytes < LARGE_BYTES or found.busbw >= BELOW * low:
        return ""
    return (
        f"Below reference: {found.busbw:.3g} GB/s where {low:g} to {high:g} are usual "
        f"({known.source}); computing beside it slows a transfer too."
    )


def imbalance(job: Job) -> dict[tuple[str, str], float]:
    """(kind, group) of exchanges -> bytes of the largest rank over the mean rank's, mean over
    operations; only where the ranks were joined and all sizes are known.
    """
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for part in job.together.parts:
        for kind, row in zip(part.group.kind, part.group.records, strict=True):
            sizes = [r.nbytes for r in row if r.nbytes is not None]
            if kind in UNEVEN and len(sizes) == len(row) and any(sizes):
                ratios[kind, row[0].group].append(max(sizes) * len(sizes) / sum(sizes))
    return {key: sum(found) / len(found) for key, found in ratios.items()}


def of_row(
    row: CollectiveMean, n: int | None, known: Reference | None, ratio: float | None
) -> Bandwidth:
    """Rates of a row of the collectives table; `n` ranks, `ratio` as in `imbalance`."""
    each = None if row.transfer_ns is None else row.transfer_ns / row.count
    found = bandwidth(row.kind, n, row.nbytes, each)
    if ratio is not None and ratio >= UNEVEN_FROM and found.algbw is not None:
        uneven = f"uneven: the largest rank sends {ratio:.2f} times the mean, and busbw has no size"
        return Bandwidth(found.algbw, None, uneven)
    return replace(found, note=attained(row.kind, found, row.nbytes, known))
