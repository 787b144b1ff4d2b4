"""A full Report with hand-made numbers: 8 ranks, 5 steps of 100 ms, strong scaling.

Mean step: compute 60, optimizer 6, transfer 14, wait 2, data loading 8, launch 10. So f = 0.32,
s = 0.0556, ceilings 3.125 today and 18 over one GPU, speedup 5.76, efficiency 72 %.
"""

from __future__ import annotations

from math import log2

from example_ranks import ranks_part
from msgspec.structs import replace

from analyzer.report.document import (
    Breakdown,
    Caveat,
    Clock,
    Collective,
    DroppedStep,
    Duration,
    Estimate,
    Finding,
    Flags,
    Gain,
    IdleCause,
    InputFile,
    Kernel,
    Place,
    Prediction,
    RankRow,
    Ranks,
    Report,
    Run,
    Scaling,
    StepRow,
    Steps,
    Strip,
    Tool,
    Unknown,
    Verdict,
    WallTime,
    WhatIf,
)

GROUPS = {
    "compute": ["compute", "optimizer"],
    "communication": ["comm_transfer", "comm_wait", "comm_unsplit"],
    "data_loading": ["data_loading"],
    "launch_overhead": ["launch", "host_sync"],
    "other": ["copy", "host_other", "dependency", "unexplained"],
}
CLASSES = [
    *("compute", "optimizer", "comm_transfer", "comm_wait", "comm_unsplit", "data_loading"),
    *("copy", "launch", "host_sync", "host_other", "dependency", "unexplained"),
]
DAY = 86_400.0
STEPS = (2, 3, 4, 5, 6)
STEP_EXTRA = (-0.6, 0.2, 0.6, -0.4, 0.2)
UNJOINED = "Ranks were not joined: one trace says how long a collective took, not who was late."


def classes_ms(**changes: float) -> dict[str, float]:
    """Milliseconds per class of the worked case, with the given classes set otherwise."""
    worked = {
        "compute": 60.0,
        "optimizer": 6.0,
        "comm_transfer": 14.0,
        "comm_wait": 2.0,
        "data_loading": 8.0,
        "launch": 10.0,
    }
    return {name: {**worked, **changes}.get(name, 0.0) for name in CLASSES}


def breakdown(ranks: int, steps: int) -> Breakdown:
    """Every fifth rank after rank 3 computes longer and waits less; step times vary in launch."""
    mean = classes_ms()
    late = [(rank % 8 == 3) for rank in range(ranks)]
    rows = [
        RankRow(
            rank=rank,
            step_ms=100.0,
            ms=classes_ms(
                compute=61.4 if late[rank] else 59.8, comm_wait=0.6 if late[rank] else 2.2
            ),
            hidden_comm_ms=22.0,
        )
        for rank in range(ranks)
    ]
    extra = [STEP_EXTRA[index % 5] for index in range(steps)]
    return Breakdown(
        timeline="device",
        classes=CLASSES,
        groups=GROUPS,
        mean_ms=mean,
        group_ms={group: sum(mean[name] for name in names) for group, names in GROUPS.items()},
        hidden_comm_ms=22.0,
        per_rank=rows,
        per_step=[
            StepRow(step=2 + index, ms=classes_ms(launch=10.0 + more))
            for index, more in enumerate(extra)
        ],
    )


def predict(n: int) -> Prediction:
    """68 ms of the step shrink with n, 32 stay; waiting grows beyond 8."""
    step = 544.0 / n + 32.0 + 0.6 * max(0.0, log2(n / 8))
    speedup = 576.0 / step
    return Prediction(
        n=n,
        step_ms=step,
        speedup=speedup,
        efficiency=speedup / n,
        amdahl=576.0 / (544.0 / n + 32.0),
        gustafson=0.32 + 0.68 * n,
        duration_s=30 * DAY * step / 100.0,
    )


def scaling() -> Scaling:
    return Scaling(
        mode="strong",
        n=8,
        f=Estimate(value=0.32, lo=0.312, hi=0.328, envelope=(0.26, 0.4)),
        s=Estimate(value=1 / 18, lo=0.0537, hi=0.0575, envelope=(0.0421, 0.0769)),
        P=17 / 18,
        ceiling_today=Estimate(value=3.125, lo=3.05, hi=3.21),
        ceiling_one_gpu=Estimate(value=18.0, lo=17.4, hi=18.6),
        speedup=5.76,
        efficiency=0.72,
        gustafson=5.76,
        roles={
            **{"compute": "scales", "optimizer": "stays", "comm_transfer": "overhead"},
            **{"comm_wait": "overhead", "data_loading": "scales", "launch": "stays"},
        },
        assumptions=[
            "The global batch stays the same when GPUs are added.",
            "The optimizer is replicated on every rank, so its time does not shrink.",
        ],
        predict=[predict(2**power) for power in range(11)],
        duration=Duration(today_s=30 * DAY, ceiling_s=9.6 * DAY),
    )


def finding(id: str, title: str, class_: str, ms: float, ceiling: float | None) -> Finding:
    """A finding worth at most its share of the 100 ms step."""
    return Finding(
        id=id,
        title=title,
        class_=class_,
        ms=ms,
        share=ms / 100,
        gain=Gain(speedup=1 / (1 - ms / 100), lo=None, hi=None, basis="share"),
        whatif=None,
        ceiling_after=ceiling,
        because=f"{ms:.1f} ms of every step pass while no compute kernel runs.",
        so="Change one thing, then measure again.",
        check="Record 5 steps again and compare.",
        where=[
            Place(
                name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                ms=ms,
                count=6.0,
            )
        ],
        confidence="high",
    )


def findings() -> list[Finding]:
    first = replace(
        finding(
            "exposed-communication",
            "Gradient all-reduce is not hidden",
            "comm_transfer",
            14.0,
            86 / 18,
        ),
        because="14.0 ms per step run while no compute kernel does; 11.2 ms of it in the last "
        "bucket.",
        so="Try smaller buckets or start the reduction earlier (bucket_cap_mb, static_graph).",
        check="Record 5 steps again; exposed transfer should fall below 3 ms.",
    )
    return [
        first,
        replace(
            finding("kernel-launch", "Kernel launches come late", "launch", 10.0, 90 / 22),
            confidence="medium",
        ),
        finding("data-loading", "Waiting for input", "data_loading", 8.0, 92 / 32),
        finding(
            "replicated-optimizer", "Optimizer is repeated on every rank", "optimizer", 6.0, 94 / 26
        ),
        replace(
            finding(
                "tiny-kernels",
                "Many kernels are too small to fill the GPU",
                "compute",
                1.2,
                98.8 / 32,
            ),
            confidence="low",
        ),
    ]


def run(ranks: int) -> Run:
    return Run(
        label="ddp-8",
        world_size=ranks,
        ranks_present=list(range(ranks)),
        hosts=["node-a"],
        gpu="NVIDIA H100 80GB HBM3",
        backend="nccl",
        torch="2.9.1",
        flags=Flags(with_stack=True, profile_memory=False, record_shapes=True),
        strategy=["DDP"],
        files=[
            InputFile(
                name=f"rank{rank}.json.gz",
                rank=rank,
                bytes=14_300_000,
                events=412_345,
                rank_rule="distributedInfo",
            )
            for rank in range(ranks)
        ]
        + [
            InputFile(
                name="notes.json",
                rank=None,
                bytes=312,
                events=0,
                reason="not a trace: no traceEvents",
            )
        ],
    )


def collectives() -> list[Collective]:
    reduce = Collective(
        kind="all_reduce",
        group="default",
        group_size=8,
        count=6.0,
        bytes=140_000_000.0,
        ms=38.0,
        wait_ms=2.0,
        transfer_ms=36.0,
        exposed_ms=16.0,
        algbw_gbs=23.3,
        busbw_gbs=40.8,
    )
    return [
        reduce,
        replace(
            reduce,
            kind="broadcast",
            count=1.0,
            bytes=None,
            ms=0.031,
            wait_ms=None,
            transfer_ms=None,
            exposed_ms=0.0,
            algbw_gbs=None,
            busbw_gbs=None,
        ),
    ]


def kernels() -> list[Kernel]:
    names = [
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
            "matrix",
            96.0,
            34.0,
        ),
        ("flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", "attention", 24.0, 14.0),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
            "memory",
            210.0,
            12.0,
        ),
        ("multi_tensor_apply_kernel", "optimizer", 40.0, 6.0),
    ]
    return [
        Kernel(name=name, kind=kind, count=count, ms=ms, share=ms / 100)
        for name, kind, count, ms in names
    ]


def example(ranks: int = 8, steps: int = 5) -> Report:
    """The worked case; more ranks and steps repeat its pattern."""
    return Report(
        schema_version=1,
        tool=Tool(name="ceiling", version="0.1.0"),
        created="2026-03-14T09:26:53Z",
        verdict=Verdict(
            text="Hide gradient communication first: 14.0 ms of every 100.0 ms step, "
            "1.16x by its share (not replayed).",
            finding="exposed-communication",
            confidence="high",
        ),
        run=run(ranks),
        quality=[
            Caveat(
                id="stacks-on",
                severity="warning",
                text="Profiled with stacks on: CPU-side times are inflated.",
                forbids=["how long launches take without the profiler"],
            ),
            Caveat(
                id="few-steps", severity="info", text="5 steps: intervals are wide.", forbids=[]
            ),
        ],
        steps=Steps(
            used=[2 + index for index in range(steps)],
            dropped=[DroppedStep(index=0, why="warm-up"), DroppedStep(index=1, why="warm-up")],
            wall_ms=WallTime(mean=100.0, median=100.2, lo=99.1, hi=100.9, n=steps),
            rule="ProfilerStep annotations, cut at the device end of the work launched in a step",
        ),
        breakdown=breakdown(ranks, steps),
        scaling=scaling(),
        whatif=WhatIf(basis="share", replay_error=None, edits=[]),
        findings=findings(),
        idle=[
            IdleCause(
                cause="late-launch",
                class_="launch",
                text="The next kernel was launched late: the host was busy dispatching.",
                ms=10.0,
                ops=[("aten::linear", 4.1), ("aten::layer_norm", 2.2)],
            ),
            IdleCause(
                cause="loader",
                class_="data_loading",
                text="The launching thread waited for the next batch.",
                ms=8.0,
                ops=[("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 8.0)],
            ),
        ],
        ranks=ranks_part(ranks),
        collectives=collectives(),
        kernels=kernels(),
        unknown=[Unknown(name="mystery_event", category="new_category", ms=0.4)],
        passed=["host-sync", "exposed-copies", "fp32-matrix-kernels", "gloo-on-gpu"],
        thresholds={"noise_share": 0.02, "thin_step_ratio": 0.5},
    )


def unjoined() -> Report:
    """The worked case before ranks are joined: communication is not split and says why."""
    report = example()
    ms = classes_ms(comm_transfer=0.0, comm_wait=0.0, comm_unsplit=16.0)
    rows = [replace(row, ms=ms) for row in report.breakdown.per_rank]
    return replace(
        report,
        breakdown=replace(report.breakdown, mean_ms=ms, per_rank=rows, per_step=[]),
        ranks=Ranks(late=[], clock=Clock(aligned=None, residual_us=None), pop={}, reason=UNJOINED),
    )


def bare() -> Report:
    """One rank, no communication, one step taken as a whole: nothing to show in most sections."""
    report = example(ranks=1, steps=1)
    ms = dict.fromkeys(CLASSES, 0.0) | {"compute": 4.31}
    none = Estimate(value=None, reason="One rank without communication: everything scales.")
    return replace(
        report,
        verdict=Verdict(
            text="Nothing stands out: 100.0 % of the 4.31 ms window computes.",
            finding=None,
            confidence="low",
        ),
        run=replace(
            report.run,
            world_size=None,
            hosts=[],
            gpu=None,
            backend=None,
            torch=None,
            flags=Flags(),
            strategy=[],
        ),
        quality=[],
        steps=Steps(
            used=[0],
            dropped=[],
            wall_ms=WallTime(mean=4.31, median=4.31, lo=None, hi=None, n=1),
            rule="no step marks: the whole window is one step",
        ),
        breakdown=replace(
            report.breakdown,
            mean_ms=ms,
            group_ms={group: sum(ms[name] for name in names) for group, names in GROUPS.items()},
            hidden_comm_ms=0.0,
            per_rank=[RankRow(rank=0, step_ms=4.31, ms=ms, hidden_comm_ms=0.0)],
            per_step=[StepRow(step=0, ms=ms)],
        ),
        scaling=Scaling(
            mode="strong",
            n=1,
            f=replace(none, value=0.0),
            s=replace(none, value=0.0),
            P=1.0,
            ceiling_today=none,
            ceiling_one_gpu=none,
            speedup=1.0,
            efficiency=1.0,
            gustafson=None,
            roles={},
            assumptions=[],
            predict=[],
        ),
        findings=[],
        idle=[],
        ranks=Ranks(
            late=[],
            clock=Clock(aligned=None, residual_us=None),
            pop={},
            reason="Only one rank: nobody to wait for.",
        ),
        collectives=[],
        kernels=[],
        unknown=[],
        passed=[],
        thresholds={},
    )


NASTY = (
    "</script><img src=x onerror=alert(1)>|`a`|\x1b[31m\u202egnp\u2066\x00 @user #12 " + "k" * 4000
)


def hostile() -> Report:
    """The worked case with names that try to break out of every format."""
    report = example()
    nasty = replace(
        report.findings[0],
        title=NASTY,
        because=NASTY,
        so=NASTY,
        check=NASTY,
        where=[Place(name=NASTY, ms=1.0, count=1.0)],
    )
    return replace(
        report,
        verdict=replace(report.verdict, text=NASTY),
        run=replace(
            report.run,
            label=NASTY,
            hosts=[NASTY],
            gpu=NASTY,
            strategy=[NASTY],
            files=[replace(report.run.files[0], name=NASTY)],
        ),
        quality=[Caveat(id="x", severity="error", text=NASTY, forbids=[NASTY])],
        findings=[nasty, *report.findings[1:]],
        idle=[replace(report.idle[0], text=NASTY, ops=[(NASTY, 1.0)])],
        ranks=replace(
            report.ranks,
            reason=NASTY,
            late=[replace(report.ranks.late[0], because=NASTY)],
            pop={NASTY: 0.5},
            pop_reason=NASTY,
            groups=[
                replace(
                    report.ranks.groups[0],
                    name=NASTY,
                    dimension=NASTY,
                    level=NASTY,
                    because=NASTY,
                    kinds=[NASTY],
                )
            ],
            strips=[Strip(rank=0, step=4, marks=[(NASTY, 0.0, 100.0)])],
        ),
        collectives=[replace(report.collectives[0], kind=NASTY, group=NASTY, reason=NASTY)],
        kernels=[replace(report.kernels[0], name=NASTY, kind=NASTY)],
        unknown=[Unknown(name=NASTY, category=NASTY, ms=1.0)],
        passed=[NASTY],
        steps=replace(report.steps, rule=NASTY, dropped=[DroppedStep(index=0, why=NASTY)]),
    )
