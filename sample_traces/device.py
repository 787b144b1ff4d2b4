"""When the simulated devices do what their hosts queued, and when the ranks meet.

Integer nanoseconds. The one idea: work starts when its stream is free, its launch has reached the
device and what it depends on is done, whichever comes last (and that one is remembered, it is the
truth about the gap before). An all-reduce kernel spins on each rank from that rank's arrival until
the transfer that begins with the last arrival is over. Communication does not slow compute here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

COMPUTE_STREAM = 7
COMM_STREAM = 20
LAUNCH_LATENCY_NS = 6_500  # from the start of the launch call to the earliest start on the device
EVENT_LATENCY_NS = 1_200  # from the end of work on one stream to the start of its waiter on another


@dataclass
class Activity:
    """Work on the device, with its launch; the last four fields are the simulation's answer.

    `phase` is input, forward, backward, comm, optimizer or loss. `bound_by` is what the start
    waited for: stream, launch or event. `size` is bytes of a copy, elements of an all-reduce.
    """

    category: str
    name: str
    stream: int
    phase: str
    step: int
    duration: int
    launch_start: int
    launch_end: int
    correlation: int
    external_id: int
    size: int = 0
    seq: int = 0
    start: int = 0
    end: int = 0
    all_arrived: int = 0
    bound_by: str = ""


@dataclass
class Device:
    """One device: when each stream is free, what is queued for this step, what it has done."""

    stream_free: dict[int, int] = field(default_factory=lambda: {COMPUTE_STREAM: 0, COMM_STREAM: 0})
    queue: list[Activity] = field(default_factory=list)
    done: list[Activity] = field(default_factory=list)

    def place(self, activity: Activity, *, after: int | None = None) -> None:
        """Set start and end of the next activity of its stream; `after`: end of what it needs."""
        candidates = [
            (self.stream_free[activity.stream], "stream"),
            (activity.launch_start + LAUNCH_LATENCY_NS, "launch"),
        ]
        if after is not None:
            candidates.append((after + EVENT_LATENCY_NS, "event"))
        activity.start, activity.bound_by = max(candidates, key=lambda pair: pair[0])
        activity.end = activity.start + activity.duration
        self.stream_free[activity.stream] = activity.end


def run_devices(devices: list[Device]) -> None:
    """Run one step's queues: up to the backward's end, then the meetings, then the rest."""
    needs = [_run_until_optimizer(device) for device in devices]
    for meeting in zip(*needs, strict=True):
        _meet(devices, list(meeting))
    for device in devices:
        _run_rest(device)
        device.done += device.queue
        device.queue = []


def _run_until_optimizer(device: Device) -> list[tuple[Activity, int]]:
    """Place input, forward and backward; returns the all-reduces with when their gradient is."""
    reductions: list[tuple[Activity, int]] = []
    for activity in device.queue:
        if activity.phase == "comm":
            reductions.append((activity, device.stream_free[COMPUTE_STREAM]))
        elif activity.phase in ("input", "forward", "backward"):
            device.place(activity)
    return reductions


def _meet(devices: list[Device], meeting: list[tuple[Activity, int]]) -> None:
    """One all-reduce: each rank arrives when it can, all leave together."""
    for device, (activity, gradient_ready) in zip(devices, meeting, strict=True):
        device.place(activity, after=gradient_ready)
    arrived = max(activity.start for activity, _ in meeting)
    for device, (activity, _) in zip(devices, meeting, strict=True):
        activity.all_arrived = arrived
        activity.end = arrived + activity.duration
        device.stream_free[COMM_STREAM] = activity.end


def _run_rest(device: Device) -> None:
    """Place optimizer and loss copy; the optimizer's first kernel needs the last all-reduce."""
    reduced: int | None = device.stream_free[COMM_STREAM]
    for activity in device.queue:
        if activity.phase in ("optimizer", "loss"):
            device.place(activity, after=reduced)
            reduced = None
