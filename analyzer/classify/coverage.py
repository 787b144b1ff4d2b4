"""Did the launches lead to recorded work, or was the device busier than the trace shows?

A profiler that loses records leaves a launch without its kernel; of a graph it may record only the
first replays. Then what looks idle may be busy, and every number about idle time is wrong.
"""

from __future__ import annotations

import msgspec
import numpy as np

from analyzer.classify import kernels
from analyzer.timeline.launches import Launches
from analyzer.timeline.steps import Steps
from analyzer.trace.schema import NO_ID, Int64, Kind, Trace

# Recordings of sound jobs have all of their kernels; while a graph is captured none of them runs.
LEAST_KERNELS = 0.8
LEAST_GRAPHS = 0.5


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that must lead to device work, and those that did: graph launches in the recording,
    kernel launches in the used steps. `shared` of `linked` device events, in the recording, have
    the correlation of another one although no graph launched them.
    """

    graph_calls: int = 0
    graph_calls_recorded: int = 0
    kernel_calls: int = 0
    kernel_calls_recorded: int = 0
    linked: int = 0
    shared: int = 0

    @property
    def graphs_lost(self) -> bool:
        """Whether most graph launches lack their work."""
        return self.graph_calls_recorded < LEAST_GRAPHS * self.graph_calls

    @property
    def kernels_lost(self) -> bool:
        """Whether many kernel launches lack their kernel."""
        return self.kernel_calls_recorded < LEAST_KERNELS * self.kernel_calls

    @property
    def lost(self) -> bool:
        """Whether idle time may be busy time."""
        return self.graphs_lost or self.kernels_lost


def coverage(trace: Trace, launches: Launches, steps: Steps) -> Coverage:
    """The coverage of a rank; all zero without device work."""
    if not len(trace.device):
        return Coverage()
    led = np.zeros(len(trace.host), np.bool_)
    led[launches.row[launches.linked]] = True
    graphs = trace.host_named(kernels.is_graph_launch, Kind.RUNTIME)
    single = trace.host_named(_launches_one, Kind.RUNTIME)
    single = single[_in_used_steps(trace.host.ts[single], steps)]
    return Coverage(
        graph_calls=len(graphs),
        graph_calls_recorded=int(led[graphs].sum()),
        kernel_calls=len(single),
        kernel_calls_recorded=int(led[single].sum()),
        linked=int(launches.linked.sum()),
        shared=_shared(trace, launches, graphs),
    )


def _launches_one(name: str) -> bool:
    return kernels.is_kernel_launch(name) and not kernels.is_graph_launch(name)


def _in_used_steps(at: Int64, steps: Steps) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    start, end = (side[steps.used] for side in steps.called)
    if not len(start):
        return np.zeros(len(at), np.bool_)
    place = np.searchsorted(start, at, side="right") - 1
    return np.asarray((place >= 0) & (at < end[np.maximum(place, 0)]), np.bool_)


def _shared(trace: Trace, launches: Launches, graphs: Int64) -> int:
    """Linked device events whose call, no graph launch, is that of another one too."""
    row = launches.row[launches.linked & (trace.device.correlation != NO_ID)]
    row = row[~np.isin(row, graphs)]
    count = np.bincount(row, minlength=1)
    return int(count[count > 1].sum())
