"""What a GitHub job is told."""

from __future__ import annotations

from example import NASTY, example, hostile
from example_compare import blocked, fixed, hostile_compare
from msgspec.structs import replace

from analyzer.render import actions


def test_a_run_has_its_verdict_and_its_worst_caveat() -> None:
    assert actions.commands(example(), []) == [
        "::notice title=ceiling verdict::Hide gradient communication first: 14.0 ms of every "
        "100.0 ms step, 1.16x by its share (not replayed).",
        "::warning title=ceiling data::Profiled with stacks on: CPU-side times are inflated.",
    ]


def test_gates_that_are_not_met_are_one_line() -> None:
    found = fixed()
    verdict, gates = actions.commands(found, found.gates)
    assert verdict.startswith(
        "::notice title=ceiling verdict::Faster: 100.0 → 86.0 ms per step (14.0 %25"
    )
    assert gates == (
        "::warning title=ceiling gates::warned: kernel-launch>5%25: expected at most 5.0 %25, "
        "found 11.6 %25, no interval"
    )


def test_a_failed_gate_is_an_error() -> None:
    missed = replace(fixed().gates[1], level="fail")
    assert actions.commands(fixed(), [missed])[1].startswith("::error title=ceiling gates::failed:")


def test_there_are_three_lines_at_most_and_each_is_one_line() -> None:
    for found in (hostile(), hostile_compare(), blocked()):
        missed = [replace(fixed().gates[1], expression=NASTY)] * 20
        lines = actions.commands(found, missed)
        assert len(lines) <= 3
        assert all("\n" not in line and line.isprintable() for line in lines)
        assert all(len(line) < 1_000 for line in lines)


def test_outputs_are_one_line_each() -> None:
    assert actions.outputs(fixed(), "out/compare.html") == (
        "verdict=faster\nstep-ms=86\nreport-path=out/compare.html\n"
    )
    assert actions.outputs(example(), "a\nb=c").splitlines() == [
        "verdict=exposed-communication",
        "step-ms=100",
        "report-path=a b=c",
    ]
