"""What each nanosecond of a simulated step was, from the schedule and not from the trace.

Integer nanoseconds, exclusive, summing to the window. A step's window on a rank goes from the end
of the last device work launched in the step before to the end of the last launched in it.
Busy time: compute before communication before copies. Idle time: by what the activity that ended
the gap had been waiting for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from device import COMM_STREAM, Activity
from schedule import HostEvent, Rank

CLASSES = (
    "compute",
    "optimizer",
    "comm_transfer",
    "comm_wait",
    "data_loading",
    "copy",
    "launch",
    "host_sync",
    "dependency",
)
Span = tuple[int, int]


def windows(rank: Rank) -> dict[int, Span]:
    """Start and end of every step but the first that was run."""
    ends: dict[int, int] = {}
    for activity in rank.device.done:
        ends[activity.step] = max(activity.end, ends.get(activity.step, 0))
    return {step: (ends[step - 1], end) for step, end in ends.items() if step - 1 in ends}


def classes(rank: Rank, window: Span) -> dict[str, int]:
    """Nanoseconds of each class in one window of one rank, and of communication hidden in it."""
    total = dict.fromkeys((*CLASSES, "hidden_comm"), 0)
    inside = [a for a in rank.device.done if a.start < window[1] and a.end > window[0]]
    for start, end in _pieces(inside, window):
        running = [a for a in inside if a.start <= start and a.end >= end]
        if running:
            total[_busy_class(running, start)] += end - start
            if any(a.phase == "comm" for a in running) and len(running) > 1:
                total["hidden_comm"] += end - start
        else:
            successor = next(a for a in sorted(inside, key=_start) if a.start == end)
            for name, length in _idle_classes(rank.host, successor, (start, end)):
                total[name] += length
    return total


def _start(activity: Activity) -> int:
    return activity.start


def _pieces(activities: list[Activity], window: Span) -> Iterator[Span]:
    """The window cut wherever an activity starts or ends or the last rank arrives."""
    cuts = {*window}
    for activity in activities:
        cuts |= {activity.start, activity.end}
        if activity.stream == COMM_STREAM:
            cuts.add(activity.all_arrived)
    ordered = sorted(cut for cut in cuts if window[0] <= cut <= window[1])
    yield from pairwise(ordered)


def _busy_class(running: list[Activity], at: int) -> str:
    phases = {activity.phase: activity for activity in running}
    if phases.keys() & {"forward", "backward"}:
        return "compute"
    if "optimizer" in phases:
        return "optimizer"
    if "comm" in phases:
        return "comm_wait" if at < phases["comm"].all_arrived else "comm_transfer"
    return "data_loading" if "input" in phases else "copy"


def _idle_classes(
    host: list[HostEvent], successor: Activity, gap: Span
) -> Iterator[tuple[str, int]]:
    """What the idle time before `successor` was: waiting for an event, or for a late launch.

    A late launch is the loader's while the host was in it, the blocking call's from there on when
    the device had run dry under it, and otherwise the host's own dispatch, call and latency.
    """
    begin, end = gap
    if successor.bound_by == "event":
        yield "dependency", end - begin
        return
    launched = min(max(successor.launch_start, begin), end)
    loading = _overlap(host, "DataLoader", (begin, launched))
    drained = any(e.start <= begin < e.end for e in host if "Synchronize" in e.name)
    yield "data_loading", loading
    yield "host_sync" if drained else "launch", launched - begin - loading
    yield "launch", end - launched


def _overlap(host: list[HostEvent], name: str, span: Span) -> int:
    return sum(max(0, min(e.end, span[1]) - max(e.start, span[0])) for e in host if name in e.name)
