"""An overlay is a trace by the rules of its readers, on the times of the recording."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto_rules import broken, read

from analyzer.render.overlay import FIRST_PROCESS, micros, packed, render
from analyzer.report.overlay import (
    CLASSES,
    STEPS,
    WAITS,
    Arrow,
    Overlay,
    Point,
    RankTracks,
    Slice,
    Track,
)

BASE = 1_759_000_000_000_000_000


def track(number: int, *slices: Slice) -> Track:
    return Track(number=number, name=f"row {number}", slices=list(slices))


def piece(start: int, end: int, name: str = "compute", **details: str | float) -> Slice:
    return Slice(start=BASE + start, end=BASE + end, name=name, details=details)


def overlay(*ranks: list[Track], arrows: tuple[Arrow, ...] = ()) -> Overlay:
    return Overlay(
        label="a run",
        base_ns=BASE,
        ranks=[RankTracks(rank=r, tracks=tracks) for r, tracks in enumerate(ranks)],
        arrows=list(arrows),
        notes=["Said."],
    )


def arrow(start: tuple[int, int, int], end: tuple[int, int, int]) -> Arrow:
    (r, t, a), (q, u, b) = start, end
    return Arrow(
        name="late",
        start=Point(rank=r, track=t, at=BASE + a),
        end=Point(rank=q, track=u, at=BASE + b),
    )


def two_ranks() -> Overlay:
    return overlay(
        [track(STEPS, piece(0, 9000, "step 1", ms=9)), track(CLASSES, piece(0, 9000))],
        [track(WAITS, piece(10, 5001, "waits"))],
        arrows=(arrow((0, CLASSES, 4999), (1, WAITS, 4999)),),
    )


def test_an_overlay_breaks_no_rule() -> None:
    assert broken(render(two_ranks())) == []


def test_times_are_those_of_the_recordings_base_to_the_nanosecond() -> None:
    (event,) = (e for e in read(render(two_ranks())) if e["name"] == "waits")
    assert (event["ts"], event["dur"]) == (Decimal("0.010"), Decimal("4.991"))
    assert json.loads(render(two_ranks()))["baseTimeNanoseconds"] == BASE


def test_ranks_are_processes_and_tracks_are_named_threads_in_their_order() -> None:
    events = read(render(two_ranks()))
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {FIRST_PROCESS: "rank 0: ceiling", FIRST_PROCESS + 1: "rank 1: ceiling"}
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    assert threads == {
        (FIRST_PROCESS, STEPS): "row 1",
        (FIRST_PROCESS, CLASSES): "row 2",
        (FIRST_PROCESS + 1, WAITS): "row 6",
    }


def test_an_arrow_is_one_flow_bound_to_the_slices_at_its_ends() -> None:
    start, end = (e for e in read(render(two_ranks())) if e["ph"] in "sf")
    assert (start["ph"], start["pid"], start["tid"]) == ("s", FIRST_PROCESS, CLASSES)
    assert (end["ph"], end["pid"], end["bp"]) == ("f", FIRST_PROCESS + 1, "e")
    assert start["id"] == end["id"]


def test_classes_have_the_words_of_the_report() -> None:
    events = read(render(overlay([track(CLASSES, piece(0, 5, "comm_wait"))])))
    assert [e["name"] for e in events if e["ph"] == "X"] == ["wait for ranks"]


def test_names_from_a_trace_stay_text() -> None:
    name = 'a "quoted"\n\u202e</script> kernel'
    events = read(render(overlay([track(STEPS, piece(0, 5, name, kernel=name))])))
    (event,) = (e for e in events if e["ph"] == "X")
    assert event["name"] == 'a "quoted" </script> kernel'
    assert event["args"]["kernel"] == event["name"]


def test_notes_are_in_the_file() -> None:
    assert json.loads(render(two_ranks()))["otherData"] == {"title": "a run", "notes": "Said."}


def test_the_same_overlay_gives_the_same_bytes() -> None:
    assert packed(render(two_ranks())) == packed(render(two_ranks()))


@given(st.integers(-(10**19), 10**19))
def test_no_digit_of_a_time_is_lost(ns: int) -> None:
    assert Decimal(micros(ns)) * 1000 == ns


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (overlay([track(1, piece(0, 9), piece(5, 12))]), "reaches out of the slice around it"),
        (overlay([track(1, piece(0, 0))]), "has no length"),
        (overlay([track(1, piece(0, 9))], arrows=(arrow((0, 1, 5), (0, 1, 9)),)), "no slice is"),
        (overlay([track(1, piece(0, 9))], arrows=(arrow((0, 1, 5), (0, 1, 4)),)), "one start"),
    ],
)
def test_the_rules_find_what_breaks_them(text: Overlay, sentence: str) -> None:
    assert any(sentence in wrong for wrong in broken(render(text)))
