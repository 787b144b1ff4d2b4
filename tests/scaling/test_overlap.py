"""Communication that is hidden today comes out when compute shrinks."""

from __future__ import annotations

import pytest

from analyzer.scaling.overlap import Traffic, hiding, traffic


def test_with_room_to_spare_the_tail_is_exposed() -> None:
    found = hiding([Traffic(exposed=2.0, hidden=8.0, room=40.0, compute=80.0)])
    assert (found.tail, found.room) == (0.2, 0.5)
    assert found.exposed(10.0, 80.0) == 2.0


def test_with_a_quarter_of_the_compute_the_rest_comes_out() -> None:
    found = hiding([Traffic(exposed=2.0, hidden=8.0, room=10.0, compute=20.0)])
    assert found.exposed(10.0, 5.0) == 10.0 - 2.5


def test_a_full_room_tells_its_size() -> None:
    found = hiding([Traffic(exposed=30.0, hidden=10.0, room=10.0, compute=20.0)])
    assert found.room == 0.5
    assert found.exposed(40.0, 20.0) == 30.0
    assert found.exposed(40.0, 40.0) == 20.0


def test_sizes_with_room_tell_the_tail_and_full_ones_the_room() -> None:
    spare = Traffic(exposed=1.0, hidden=9.0, room=50.0, compute=100.0)
    full = Traffic(exposed=4.0, hidden=8.0, room=8.0, compute=20.0)
    found = hiding([spare, full])
    assert (found.tail, found.room) == (0.1, 0.4)


@pytest.mark.parametrize("seen", [[], [Traffic(0.0, 0.0, 0.0, 50.0)]])
def test_nothing_is_hidden_where_nothing_communicates(seen: list[Traffic]) -> None:
    assert hiding(seen).exposed(10.0, 50.0) == 10.0


def test_what_nothing_hides_today_nothing_hides_tomorrow() -> None:
    found = hiding([Traffic(exposed=14.0, hidden=0.0, room=0.0, compute=60.0)])
    assert found.exposed(15.0, 30.0) == 15.0


def test_the_room_is_at_least_what_was_hidden_and_at_most_the_compute() -> None:
    mean = {"compute": 50.0, "comm_transfer": 3.0, "comm_unsplit": 2.0, "optimizer": 9.0}
    assert traffic(mean, hidden=10.0, room=4.0) == Traffic(5.0, 10.0, 10.0, 50.0)
    assert traffic(mean, hidden=10.0, room=400.0).room == 50.0
