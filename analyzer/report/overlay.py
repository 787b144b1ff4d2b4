"""The tracks that an overlay trace shows: plain values, as in document.py, in ns on one clock.

They lie beside the recording in a viewer, so they keep its time base.
"""

from __future__ import annotations

import msgspec

from analyzer.report.part import Part

# Numbers of the rows of a rank; waits take as many from theirs on as overlap.
STEPS, CLASSES, FINDINGS, PATH_DEVICE, PATH_HOST, WAITS = range(1, 7)


class Slice(Part, frozen=True, kw_only=True):
    """[start, end) with a name; `details` are shown when it is chosen."""

    start: int
    end: int
    name: str
    details: dict[str, str | float] = msgspec.field(default_factory=dict)


class Track(Part, frozen=True, kw_only=True):
    """A row of slices that do not overlap. `number` is its place under its rank."""

    number: int
    name: str
    slices: list[Slice]


class RankTracks(Part, frozen=True, kw_only=True):
    """All rows of a rank."""

    rank: int
    tracks: list[Track]


class Point(Part, frozen=True, kw_only=True):
    """An end of an arrow: an instant in a slice of a track."""

    rank: int
    track: int
    at: int


class Arrow(Part, frozen=True, kw_only=True):
    """What waited for what."""

    name: str
    start: Point
    end: Point


class Overlay(Part, frozen=True, kw_only=True):
    """All ranks and arrows. `base_ns` is what the recording's own times count from; `notes` say
    what is not shown, and how sure the common clock is.
    """

    label: str
    base_ns: int
    ranks: list[RankTracks]
    arrows: list[Arrow]
    notes: list[str]
