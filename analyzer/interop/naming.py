"""What is a rank's trace file called, so that no other rank writes the same one?

The rank comes from the process group, else from what launchers put into the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# Variables that hold rank and world size: torchrun first, then schedulers and MPI starters.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
_NODE = ("GROUP_RANK", "NODE_RANK")
_PLAIN = re.compile(r"[a-zA-Z]\w*")


class Place(NamedTuple):
    """Which rank of how many; `size` is None where nothing says it."""

    rank: int
    size: int | None


def place(environment: Mapping[str, str]) -> Place:
    """Rank and world size by the launcher's variables; rank 0 of an unknown number without any.

    Where only LOCAL_RANK is set the local rank is the rank of a run on one node; on several it
    would be of two processes, so it is refused with ValueError.
    """
    for rank, size in _LAUNCHERS:
        if environment.get(rank, "").isdigit():
            total = environment.get(size, "")
            return Place(int(environment[rank]), int(total) if total.isdigit() else None)
    local = environment.get("LOCAL_RANK", "")
    if not local.isdigit():
        return Place(0, None)
    if any(environment.get(node, "0") != "0" for node in _NODE):
        raise ValueError("LOCAL_RANK is set on several nodes, but not RANK: set RANK, too")
    return Place(int(local), None)


def file_name(of: Place, dimensions: Mapping[str, int]) -> str:
    """Name such as rank3-of-8_tp1_pp0.json.gz; ValueError for a dimension that is no plain word."""
    wrong = [name for name in dimensions if not _PLAIN.fullmatch(name)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no name of a parallel dimension: write tp, pp, dp, ep")
    size = "" if of.size is None else f"-of-{of.size}"
    parts = [f"{name}{number}" for name, number in dimensions.items()]
    return "_".join([f"rank{of.rank}{size}", *parts]) + ".json.gz"
