"""The worked case with a replay: the 100 ms step, eight edits, three worth making in turn.

Replayed alone, communication takes off 13.1 ms, launches 8.6, input 7.9, the optimizer 6.0; one
after the other 13.1, 9.8 and 8.1, so 69.0 ms stay and the gain is 1.45. The critical path of step 4
runs over 4 ranks, most of it on rank 3.
"""

from __future__ import annotations

from example import NASTY, example, finding, hostile
from msgspec.structs import replace

from analyzer.report.document import (
    After,
    CriticalPath,
    Edit,
    Finding,
    Gain,
    Interaction,
    PathClass,
    PathPlace,
    PathRank,
    Report,
    Turn,
    WhatIf,
)

GPUS = 8
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute"
NO_REPLAY = "the files do not say which work waited for which"


def after(step: float, serial: float) -> After:
    """The run with a step of which `serial` ms do not shrink with more GPUs."""
    f = serial / step
    s = f / (f + GPUS * (1 - f))
    return After(f=f, s=s, ceiling_today=1 / f, ceiling_one_gpu=1 / s)


def edit(id: str, step: float, serial: float, saved: tuple[float, ...] = (), **more: bool) -> Edit:
    """An edit that leaves `step` of 100 ms; `saved` are the ms gone with 10, 25 and 50 % of it."""
    speedup = 100 / step
    parts = zip((0.1, 0.25, 0.5, 1.0), (*saved, 100 - step), strict=True) if saved else ()
    return Edit(
        id=id,
        step_ms=step,
        speedup=speedup,
        lo=speedup - 0.012,
        hi=speedup + 0.009,
        curve=[(part, 100 / (100 - ms)) for part, ms in parts],
        after=after(step, serial),
        **more,
    )


def edits() -> list[Edit]:
    """All eight, in the order of the report."""
    return [
        edit("no-data-loading", 92.1, 32.0, (0.1, 0.2, 0.3)),
        edit("no-launch-overhead", 91.4, 23.4, (4.1, 8.5, 8.6)),
        edit("no-communication", 86.9, 18.9, (1.4, 3.4, 6.8)),
        edit("no-straggler", 98.8, 30.8, (0.1, 0.3, 0.6), noise=True),
        edit("no-host-sync", 100.0, 32.0, noise=True),
        edit("no-optimizer", 94.0, 26.0, (0.6, 1.5, 3.0)),
        edit("bandwidth-x2", 93.2, 25.2, (1.2, 2.6, 4.4)),
        Edit(
            id="perfect-overlap",
            step_ms=None,
            speedup=None,
            reason="not measurable: no collective starts before the backward pass has ended",
        ),
    ]


def path() -> CriticalPath:
    """100 ms of step 4: most of it computing, most of it on rank 3."""
    return CriticalPath(
        step=4,
        step_ms=100.0,
        classes=[
            PathClass(class_="compute", ms=58.0, slack_ms=3.9),
            PathClass(class_="optimizer", ms=6.0, slack_ms=0.0),
            PathClass(class_="comm_transfer", ms=13.6, slack_ms=22.4),
            PathClass(class_="data_loading", ms=8.0, slack_ms=0.2),
            PathClass(class_="launch", ms=14.4, slack_ms=21.0),
        ],
        ranks=[
            PathRank(rank=0, ms=24.6),
            PathRank(rank=1, ms=5.0),
            PathRank(rank=3, ms=61.4),
            PathRank(rank=5, ms=9.0),
        ],
        places=[
            PathPlace(name=GEMM, op="aten::mm", class_="compute", ms=31.2, count=90),
            PathPlace(
                name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                op="c10d::allreduce_",
                class_="comm_transfer",
                ms=13.6,
                count=2,
            ),
            PathPlace(
                name="host time before launch",
                op="aten::layer_norm",
                class_="launch",
                ms=9.1,
                count=48,
            ),
            PathPlace(name="wait for the loader", op="", class_="data_loading", ms=8.0, count=1),
        ],
    )


def whatif() -> WhatIf:
    """All of it, from steps 3 to 6 on all ranks."""
    return WhatIf(
        basis="replay",
        replay_error=0.004,
        edits=edits(),
        class_error=0.011,
        quality="good",
        steps=[3, 4, 5, 6],
        ranks=list(range(GPUS)),
        assumptions=[
            "Kernels take the time they took, whatever runs beside them.",
            "Order of launches on each thread stays as recorded.",
        ],
        sequence=[
            Turn(edit="no-communication", step_ms=86.9, gain_ms=13.1, after=after(86.9, 18.9)),
            Turn(edit="no-launch-overhead", step_ms=77.1, gain_ms=9.8, after=after(77.1, 9.1)),
            Turn(edit="no-data-loading", step_ms=69.0, gain_ms=8.1, after=after(69.0, 9.1)),
        ],
        interaction=Interaction(
            first="no-communication", second="no-launch-overhead", both_ms=22.9, ms=1.2
        ),
        path=path(),
    )


def gain(done: Edit) -> Gain:
    """What `done` replayed."""
    return Gain(
        speedup=done.speedup,
        lo=done.lo,
        hi=done.hi,
        basis="replay",
        curve=done.curve,
        noise=done.noise,
    )


def with_gain(item: Finding, done: Edit) -> Finding:
    """The finding with the gain that `done` replayed."""
    left = done.after.ceiling_today if done.after else None
    return replace(
        item,
        gain=gain(done),
        whatif=done.id,
        ceiling_after=left,
        after=done.after,
    )


def replayed() -> Report:
    """The report; its findings are gains, but for the last, of which no replay tells."""
    report, by_id = example(), {item.id: item for item in edits()}
    known = {
        "exposed-communication": "no-communication",
        "kernel-launch": "no-launch-overhead",
        "data-loading": "no-data-loading",
        "replicated-optimizer": "no-optimizer",
    }
    found = [
        with_gain(item, by_id[known[item.id]]) if item.id in known else item
        for item in report.findings
    ]
    late = finding("rank-skew", "Ranks wait for a different one each time", "comm_wait", 2.0, None)
    found.insert(4, with_gain(late, by_id["no-straggler"]))
    text = (
        "Hide gradient communication first: without it a step takes 86.9 ms instead of 100.0, "
        "1.15x."
    )
    return replace(
        report,
        verdict=replace(report.verdict, text=text),
        findings=found,
        whatif=whatif(),
    )


def poor() -> Report:
    """The worked case with a replay too far off to be used."""
    report = example()
    shares = [replace(item, lo=None, hi=None, after=None) for item in edits()]
    return replace(
        report,
        whatif=WhatIf(
            basis="share", replay_error=0.14, edits=shares, quality="poor", reason=NO_REPLAY
        ),
    )


def hostile_replay() -> Report:
    """The hostile case with a replay whose names try to break out of every format."""
    report, facts, bad = hostile(), whatif(), NASTY
    turn, place = facts.sequence[0], path().places[0]
    item = replace(facts.edits[2], id=bad, reason=bad)
    nasty = replace(
        facts,
        edits=[item],
        quality=bad,
        assumptions=[bad],
        sequence=[replace(turn, edit=bad)],
        interaction=Interaction(first=bad, second=bad, both_ms=1.0, ms=1.0),
        path=replace(
            path(),
            classes=[PathClass(class_=bad, ms=100.0, slack_ms=1.0)],
            places=[replace(place, name=bad, op=bad, class_=bad)],
        ),
        reason=bad,
    )
    found = [with_gain(report.findings[0], item), *report.findings[1:]]
    return replace(report, findings=found, whatif=nasty)
