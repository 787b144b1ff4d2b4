"""The exclusive time classes that tile a step, and the groups they are summed into (public ids)."""

from __future__ import annotations

COMPUTE = "compute"
OPTIMIZER = "optimizer"
COMM_TRANSFER = "comm_transfer"
COMM_WAIT = "comm_wait"
COMM_UNSPLIT = "comm_unsplit"
DATA_LOADING = "data_loading"
COPY = "copy"
LAUNCH = "launch"
HOST_SYNC = "host_sync"
HOST_OTHER = "host_other"
DEPENDENCY = "dependency"
UNEXPLAINED = "unexplained"

CLASSES: tuple[str, ...] = (
    COMPUTE,
    OPTIMIZER,
    COMM_TRANSFER,
    COMM_WAIT,
    COMM_UNSPLIT,
    DATA_LOADING,
    COPY,
    LAUNCH,
    HOST_SYNC,
    HOST_OTHER,
    DEPENDENCY,
    UNEXPLAINED,
)

GROUPS: dict[str, tuple[str, ...]] = {
    "compute": (COMPUTE, OPTIMIZER),
    "communication": (COMM_TRANSFER, COMM_WAIT, COMM_UNSPLIT),
    "data_loading": (DATA_LOADING,),
    "launch_overhead": (LAUNCH, HOST_SYNC),
    "other": (COPY, HOST_OTHER, DEPENDENCY, UNEXPLAINED),
}
