"""How well are the GPUs used, as a product of factors that each name one cause of loss?

POP: useful time of each rank over the run's time, split into load balance and communication. TALP's
device branch: the same loss split into balance, communication and orchestration (keeping the device
busy). For training, useful is computing, and communication what of it nothing hides (methods 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify.classes import (
    CLASSES,
    COMM_TRANSFER,
    COMM_UNSPLIT,
    COMM_WAIT,
    COMPUTE,
    COPY,
    OPTIMIZER,
)
from analyzer.ranks.pool import Job

# POP's factors, then those of TALP's device branch; the product that others belong to stands first.
POP = (
    "parallel_efficiency",
    "load_balance",
    "communication_efficiency",
    "serialisation_efficiency",
    "transfer_efficiency",
)
DEVICE = (
    "device_parallel_efficiency",
    "device_load_balance",
    "device_communication_efficiency",
    "device_orchestration_efficiency",
)
NO_IDEAL_NETWORK = (
    "serialisation and transfer are not measurable without a replay on an ideal network"
)
ONE_RANK = "not measurable: only one rank was recorded, and its balance is with others"
NO_DEVICE = "not measurable: no device work was recorded"
_ACTIVE = (COMPUTE, OPTIMIZER, COMM_TRANSFER, COMM_WAIT, COMM_UNSPLIT, COPY)


@dataclass(frozen=True)
class Efficiencies:
    """Factors by id, those of POP and DEVICE; `loss` is each one's share of its product's loss.

    `reason` says why factors are None, and whose they are when ranks are missing.
    """

    values: dict[str, float | None]
    loss: dict[str, float]
    reason: str


def pop(
    useful: Sequence[float], total: float, ideal: float | None = None
) -> dict[str, float | None]:
    """POP's factors from useful time of each rank, time of the run, and on an ideal network.

    None where they are undefined: no time, no useful time, or no `ideal`.
    """
    most = max(useful, default=0.0)
    if total <= 0.0 or most <= 0.0:
        return dict.fromkeys(POP)
    balance, communication = sum(useful) / len(useful) / most, most / total
    serialisation = most / ideal if ideal else None
    transfer = ideal / total if ideal else None
    factors = (balance * communication, balance, communication, serialisation, transfer)
    return dict(zip(POP, factors, strict=True))


def talp_device(
    useful: Sequence[float], active: Sequence[float], total: float
) -> dict[str, float | None]:
    """TALP's device factors from useful and active time of each GPU; None as in `pop`."""
    most, busiest = max(useful, default=0.0), max(active, default=0.0)
    if total <= 0.0 or most <= 0.0:
        return dict.fromkeys(DEVICE)
    mean = sum(useful) / len(useful)
    factors = (mean / total, mean / most, most / busiest, busiest / total)
    return dict(zip(DEVICE, factors, strict=True))


def shares_of_loss(factors: Mapping[str, float]) -> dict[str, float]:
    """ln(factor) over ln(product): adds up to 1, all 0 without loss; empty if a factor is 0."""
    if any(value <= 0.0 for value in factors.values()):
        return {}
    product = math.fsum(math.log(value) for value in factors.values())
    if product == 0.0:
        return dict.fromkeys(factors, 0.0)
    return {name: math.log(value) / product for name, value in factors.items()}


def efficiencies(job: Job, ideal: float | None = None) -> Efficiencies:
    """All factors of a job over its mean step, which is as long as that of its slowest rank.

    `ideal` is the part of the step that is left on an ideal network (transfer takes no time), from
    a replay; without it serialisation and transfer are None.
    """
    nothing: dict[str, float | None] = dict.fromkeys((*POP, *DEVICE))
    if job.timeline != "device":
        return Efficiencies(nothing, {}, NO_DEVICE)
    if len(job.ranks) == 1:
        return Efficiencies(nothing, {}, ONE_RANK)
    rows = [dict(zip(CLASSES, ns.tolist(), strict=True)) for ns in job.by_rank.values()]
    useful = [row[COMPUTE] + row[OPTIMIZER] for row in rows]
    active = [sum(row[c] for c in _ACTIVE) for row in rows]
    total = max(sum(row.values()) for row in rows)
    network = None if ideal is None else max(ideal * total, max(useful))
    values = {**pop(useful, total, network), **talp_device(useful, active, total)}
    partial = (
        f"of the {len(job.ranks)} ranks of {job.size} that were recorded; "
        if len(job.ranks) < job.size
        else ""
    )
    return Efficiencies(
        values=values,
        loss={**_loss(values, POP[1:3]), **_loss(values, DEVICE[1:])},
        reason=partial.removesuffix("; ") if network else partial + NO_IDEAL_NETWORK,
    )


def _loss(values: Mapping[str, float | None], names: Sequence[str]) -> dict[str, float]:
    return shares_of_loss({name: value for name in names if (value := values[name]) is not None})
