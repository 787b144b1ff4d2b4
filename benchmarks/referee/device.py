"""When does queued device work start and end, and when do ranks meet in a collective?

Integer nanoseconds. The one idea: work is known as soon as its stream, its launch and what it waits
for are known; what is not known yet stands in the queue of its stream until it is. A collective
starts on each rank by itself and ends everywhere at once, a transfer after the last has started.
"""

from __future__ import annotations

from collections import defaultdict, deque

UNKNOWN = -1
LONG_AGO = -(10**12)


class Meeting:
    """One collective; `arrived` holds (device, number of its activity)."""

    def __init__(self, members: int, duration: int) -> None:
        self.members = members
        self.duration = duration
        self.arrived: list[tuple[Device, int]] = []

    def end(self) -> None:
        """Ends it on all devices; what stood behind it is settled."""
        end = max(device.start[n] for device, n in self.arrived) + self.duration
        for device, n in self.arrived:
            device.ended(n, end)


class Device:
    """Activities by number, in order of launch; UNKNOWN is a time that is not known yet."""

    def __init__(self, queue_gap: int, event_delay: int) -> None:
        self.start: list[int] = []
        self.end: list[int] = []
        self.last: dict[int, int] = {}
        self.full: list[Meeting] = []
        self._gap = queue_gap
        self._event_delay = event_delay
        self._stream: list[int] = []
        self._ready: list[int] = []
        self._duration: list[int] = []
        self._needs: list[list[int]] = []
        self._meeting: dict[int, Meeting] = {}
        self._free: dict[int, int] = defaultdict(lambda: LONG_AGO)
        self._queued: dict[int, deque[int]] = defaultdict(deque)
        self._next_needs: dict[int, list[int]] = defaultdict(list)

    def await_activity(self, stream: int, n: int) -> None:
        """The next activity of the stream, and so all after it, wait for activity n."""
        self._next_needs[stream].append(n)

    def submit(self, stream: int, ready: int, duration: int, meeting: Meeting | None = None) -> int:
        """Queues work that reaches the device at `ready`; its number."""
        n = len(self.start)
        self.start.append(UNKNOWN)
        self.end.append(UNKNOWN)
        self._stream.append(stream)
        self._ready.append(ready)
        self._duration.append(duration)
        self._needs.append(self._next_needs.pop(stream, []))
        if meeting is not None:
            self._meeting[n] = meeting
        self.last[stream] = n
        queue = self._queued[stream]
        if queue or not self._place(n):
            queue.append(n)
        return n

    def _place(self, n: int) -> bool:
        """Whether the end of the first activity of its stream could be told."""
        stream = self._stream[n]
        at = self._free[stream] + self._gap
        if at < self._ready[n]:
            at = self._ready[n]
        for need in self._needs[n]:
            done = self.end[need]
            if done < 0:
                return False
            at = max(at, done + self._event_delay)
        self.start[n] = at
        meeting = self._meeting.get(n)
        if meeting is None:
            self.end[n] = self._free[stream] = at + self._duration[n]
            return True
        meeting.arrived.append((self, n))
        if len(meeting.arrived) == meeting.members:
            self.full.append(meeting)
        return False

    def ended(self, n: int, end: int) -> None:
        """The collective n, first of its stream, ends at `end`."""
        self.end[n] = self._free[self._stream[n]] = end
        self._queued[self._stream[n]].popleft()

    def settle(self) -> None:
        """Places everything queued that can be."""
        moved = True
        while moved:
            moved = False
            for queue in self._queued.values():
                while queue and self.start[queue[0]] == UNKNOWN and self._place(queue[0]):
                    queue.popleft()
                    moved = True
