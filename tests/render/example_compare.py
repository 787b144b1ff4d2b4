"""Comparisons that every painting is tried on, from the smallest to the most hostile."""

from __future__ import annotations

from example import NASTY, example
from msgspec.structs import replace
from sides import collective, compared, finding, kernel, loading_fixed, run, steps

from analyzer.report.comparison import Comparison, Gate
from analyzer.report.document import Kernel, Op, Report

GATES = [
    Gate(
        expression="slower:5%",
        level="fail",
        passed=True,
        expected="at most 5.0 %",
        found="-14.0 %, judged by the near end of its interval, -15.1 %",
    ),
    Gate(
        expression="kernel-launch>5%",
        level="warn",
        passed=False,
        expected="at most 5.0 %",
        found="11.6 %, no interval",
    ),
]


def fixed() -> Comparison:
    """100 -> 86 ms with gates, kernels that moved and a promise that came true."""
    return replace(loading_fixed(), gates=GATES)


def several() -> Comparison:
    """Three runs per side, another GPU, a slower step."""
    before = [run(steps(compute=60.0 + more), label=f"main-{more}") for more in (-1, 0, 1)]
    after = [run(steps(compute=70.0 + more), gpu="NVIDIA A100") for more in (-1, 0, 1)]
    return compared(before, after, labels=("main", "mine"))


def unclear() -> Comparison:
    """One step per side: no interval."""
    return compared(run(steps([0.0])), run(steps([0.0], launch=9.4)))


def blocked() -> Comparison:
    """8 against 16 ranks."""
    return compared(run(), run(world_size=16, gpu="NVIDIA A100"))


def forced() -> Comparison:
    """8 against 16 ranks, all the same."""
    return compared(run(), run(steps(data_loading=2.0), world_size=16), force=True)


def hostile_compare() -> Comparison:
    """Names that try to break out of every format."""

    def nasty(name: str) -> Report:
        return replace(
            run(
                label=name,
                gpu=name,
                strategy=[name],
                findings=[replace(finding("x", 16.0), title=name, class_=name)],
            ),
            kernels=[kernel(name, 1.0, 40.0)],
            collectives=[replace(collective(), kind=name)],
            ops=[Op(name=name, count=1.0, ms=40.0)],
        )

    found = compared(nasty(NASTY), nasty(f"2{NASTY}"), labels=(NASTY, f"2{NASTY}"))
    gate = replace(GATES[1], expression=NASTY, found=NASTY)
    return replace(found, gates=[gate], verdict=replace(found.verdict, text=NASTY, sure=NASTY))


def large() -> Comparison:
    """1,024 ranks, 40 runs per side, many long names."""

    def big(scale: float) -> Report:
        rows = [
            Kernel(name=f"k{n}" + "w" * 900, kind="x", count=1.0, ms=n * scale, share=0.1)
            for n in range(60)
        ]
        report = example(1024, 10)
        many = [finding(f"f-{n}", 10.0 * scale) for n in range(200)]
        return replace(report, kernels=rows, findings=many)

    return compared([big(1.0)] * 40, [big(0.5)] * 40)


CASES = {
    "fixed": fixed,
    "several": several,
    "unclear": unclear,
    "blocked": blocked,
    "forced": forced,
}
