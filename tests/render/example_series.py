"""A scaling report written by hand: 8, 16 and 32 GPUs, the worked step of the methods (G7).

60 ms of compute and 8 of loading are shared out, 18 stay, 14 are exposed transfer.
"""

from __future__ import annotations

from msgspec.structs import replace

from analyzer.report import document as doc
from analyzer.report import scaling as out

SIZES = (8, 16, 32)
DAY = 86_400.0


def _exposed(n: int) -> float:
    return 16.0 * (n - 1) / n


def _classes(n: int) -> dict[str, float]:
    return {"compute": 480 / n, "optimizer": 6.0, "comm_transfer": _exposed(n),
            "comm_wait": 2.0, "data_loading": 64 / n, "launch": 10.0}  # fmt: skip


def _step(n: int) -> float:
    return sum(_classes(n).values())


def _point(n: int) -> out.ScalePoint:
    speedup = _step(8) / _step(n)
    fraction = None if n == 8 else (1 / speedup - 8 / n) / (1 - 8 / n)
    return out.ScalePoint(
        n=n,
        label=f"ddp-{n}",
        steps=10,
        step_ms=_step(n),
        lo=_step(n) - 0.5,
        hi=_step(n) + 0.5,
        speedup=speedup,
        efficiency=speedup * 8 / n,
        karp_flatt=fraction,
        karp_flatt_lo=None if fraction is None else fraction - 0.01,
        karp_flatt_hi=None if fraction is None else fraction + 0.01,
        ms=_classes(n),
        hidden_comm_ms=5.0,
        serial_ms=_step(n) - 544 / n,
    )


def _class(
    name: str, family: str, text: str, terms: list[tuple[str, float]], trend: str
) -> out.FittedClass:
    at = [(n, _classes(n)[name]) for n in SIZES]
    return out.FittedClass(
        class_=name, family=family, text=text, terms=terms, trend=trend, points=at, fit=at,
        residual=0.001,
    )  # fmt: skip


def _prediction(n: int) -> out.ScalePrediction:
    speedup = _step(8) / _step(n)
    return out.ScalePrediction(
        n=n,
        step_ms=_step(n),
        lo=_step(n) * 0.98,
        hi=_step(n) * 1.02,
        speedup=speedup,
        efficiency=speedup * 8 / n,
        beyond=False,
        after=[(1, _step(n) - _exposed(n) / 2)],
    )


def _plan() -> doc.Plan:
    def row(n: int, fixes: int) -> doc.PlanRow:
        step = _step(n) - (_exposed(n) / 2 if fixes else 0.0)
        seconds = 30 * DAY * step / _step(32)
        hours = n * seconds / 3600
        return doc.PlanRow(n=n, fixes=fixes, step_ms=step, duration_s=seconds, gpu_hours=hours,
                           cost=2.5 * hours, beyond=False)  # fmt: skip

    refused = doc.PlanRow(n=256, fixes=0, step_ms=None, duration_s=None, gpu_hours=None, cost=None,
                          beyond=True, reason="Refused: 256 GPUs are more than four times the "
                          "largest run")  # fmt: skip
    faster = _step(32) / (_step(32) - _exposed(32) / 2)
    grown = _step(32) / (_step(64) - _exposed(64) / 2)
    path = doc.PlanPath(
        n=64, fixes=1, duration_s=30 * DAY / grown, gpu_hours=64 * 720 / grown,
        cost=64 * 1800 / grown, beyond=False, speedup=grown,
        factors=[doc.Factor(what="bandwidth-x2", speedup=faster, basis="replay"),
                 doc.Factor(what="gpus", speedup=grown / faster, basis="fit")],
    )  # fmt: skip
    return doc.Plan(
        n=32,
        today_s=30 * DAY,
        price=2.5,
        order=["bandwidth-x2"],
        rows=[row(32, 0), row(64, 0), refused, row(32, 1), row(64, 1),
              replace(refused, fixes=1)],
        roads=[
            doc.Road(id="amdahl", n=64, fixes=1, step_ms=34.0, speedup=1.49, duration_s=20 * DAY,
                     limit_s=15.5 * DAY, limit_n=2**19),
            doc.Road(id="gustafson", n=64, fixes=0, step_ms=51.0, speedup=1.98,
                     duration_s=15.2 * DAY, limit_s=None, limit_n=None,
                     reason="no limit as long as the batch may grow with the GPUs"),
        ],
        target=doc.Target(target_s=21 * DAY, speedup=30 / 21, paths=[path], ceiling_s=15 * DAY,
                          ceiling_n=2**19, left_ms=[("launch", 10.0)], step_ms=25.0, text=""),
        assumptions=["The run has as many steps of the same work as today."],
    )  # fmt: skip


def series() -> out.ScalingReport:
    """The report."""
    return out.ScalingReport(
        schema_version=1,
        kind="scaling",
        tool=doc.Tool(name="ceiling", version="0.1.0"),
        created="2025-10-09T08:00:00Z",
        verdict=doc.Verdict(
            text="From 8 to 32 GPUs a step falls from 100 ms to 50.5 ms: 1.98x where 4x was "
            "possible; the 33.5 ms that do not scale are now 66 % of it. The ceiling is 2.94x "
            "over 8 GPUs.",
            finding=None,
            confidence="medium",
        ),
        label="ddp",
        mode="strong",
        base=8,
        points=[_point(n) for n in SIZES],
        series=out.Series(trend="flat", text="flat: a part that is truly serial"),
        laws=[
            out.FittedLaw(id="classes", parameters={}, loo_error=0.004, best=True, support="full"),
            out.FittedLaw(id="usl", parameters={}, loo_error=None, best=False, support="none",
                          reason="3 sizes: the Universal Scalability Law needs 4, better 6"),
            out.FittedLaw(id="amdahl", parameters={"serial_ms": 34.0, "parallel_ms": 528.0,
                          "s": 0.0605}, loo_error=0.012, best=False, support="full"),
        ],
        classes=[
            _class("comm_transfer", "bandwidth", "a ring's bytes", [("(N-1)/N", 16.0)], "grows"),
            _class("compute", "falls", "shared out", [("1/N", 480.0)], "falls"),
            _class("launch", "flat", "the same", [("1", 10.0)], "flat"),
        ],
        links=[
            out.FittedLink(kind="all_reduce", group="dp", rows=3, latency_us=6.04,
                           bandwidth_gbs=198.1, residual=0.01),
        ],
        predict=[
            *(_prediction(n) for n in (8, 16, 32, 64, 128)),
            out.ScalePrediction(n=256, step_ms=None, lo=None, hi=None, speedup=None,
                                efficiency=None, beyond=True, reason="refused: 256 GPUs are more "
                                "than 4 times the largest run (32)"),
        ],
        ceiling=doc.Estimate(value=2.94, lo=2.8, hi=3.1, reason="the range is that of the fit"),
        ceiling_n=2**20,
        knee=doc.Knee(nine_tenths=9.6, half=31.5, fastest=None, pays=16.2, up_to=1024),
        order=["bandwidth-x2"],
        findings=[],
        plan=_plan(),
        assumptions=["All runs do the same work and differ in the number of GPUs only."],
        differences=["PyTorch differs: 2.8 on 8, 2.9 on 32."],
        quality=[],
    )  # fmt: skip
