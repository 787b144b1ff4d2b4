"""One trace at other sizes, with what is known of how the job communicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from analyzer.scaling.network import Network
from analyzer.scaling.overlap import traffic
from analyzer.scaling.predict import Mechanism, factors, predict
from analyzer.scaling.serial import Setting, serial_fraction

MS = 1e6
EIGHT = Setting(8)


class Replay:
    """60 ms of compute that shrinks, and 20 ms that do not, by each size asked for."""

    def steps(self, sizes: Sequence[Mapping[str, float]]) -> list[float]:
        return [60 * MS * size["compute"] + 20 * MS for size in sizes]

    def classes(self, size: Mapping[str, float]) -> dict[str, float]:
        return {}


def test_hidden_communication_comes_out_when_compute_shrinks() -> None:
    mean = {"compute": 80 * MS, "comm_transfer": 2 * MS}
    seen = traffic(mean, hidden=18 * MS, room=40 * MS)
    curve = predict(mean, EIGHT, [8, 32], known=Mechanism(traffic=seen))
    grown = 20 * (31 / 32) / (7 / 8)
    # 20 ms of compute, of which half can hide.
    assert curve.points[1].step_ns / MS == pytest.approx(20 + grown - 10)
    assert curve.points[0].step_ns == 82 * MS


def test_a_replay_is_believed_before_the_classes() -> None:
    mean = {"compute": 60 * MS, "comm_transfer": 20 * MS}
    curve = predict(mean, EIGHT, [8, 16], known=Mechanism(resize=Replay()))
    assert [p.step_ns / MS for p in curve.points] == [80.0, 50.0]
    assert curve.limit.step_ns == pytest.approx(20 * MS, rel=1e-4)
    assert curve.limit.n is None
    assert any("are replayed" in line for line in curve.assumptions)


def test_one_trace_says_that_it_is_the_weaker_statement() -> None:
    said = predict({"compute": MS}, EIGHT, [16]).assumptions[0]
    assert said.endswith(
        "runs of three sizes or more (ceiling scaling) are the stronger statement."
    )


def test_roles_decide_what_lasts_how_long() -> None:
    strong = factors(EIGHT, Network(), 16)
    assert (strong["compute"], strong["copy"], "optimizer" in strong) == (0.5, 0.5, False)
    assert strong["hops"] == pytest.approx(30 / 14)
    assert factors(Setting(8, sharded_optimizer=True), Network(), 16)["optimizer"] == 0.5
    assert factors(Setting(8, "accum"), Network(), 16)["launch"] == 0.5
    weak = factors(Setting(8, "weak", shared_loader=True), Network(), 16)
    assert (weak["data_loading"], "compute" in weak) == (2.0, False)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Network(), "its latency with each GPU"),
        (Network("tree"), "with the logarithm of the GPUs"),
        (Network(per_node=8), "taken to be as fast as those inside"),
        (Network(per_node=4), "which sets its pace"),
    ],
)
def test_the_network_is_told(network: Network, words: str) -> None:
    known = Mechanism(network=network, resize=Replay())
    said = predict({"compute": MS, "comm_transfer": MS}, EIGHT, [64], known=known).assumptions
    assert any(words in line for line in said)


def test_loading_before_computing_is_serial_and_beside_it_is_not() -> None:
    """Course note: 1 ms of computing and 10 ms of loading from one disk."""
    one_after_the_other = {"compute": [1 * MS], "data_loading": [10 * MS]}
    found = serial_fraction(one_after_the_other, Setting(1, shared_loader=True))
    assert found.f.value == pytest.approx(10 / 11)
    assert found.step_ns == 11 * MS
