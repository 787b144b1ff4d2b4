"""Jobs of several world sizes -> the ScalingReport: laws, fits, predictions, plan, verdict.

The largest run stands for today: its findings and fixes are the ones planned with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.config import Settings
from analyzer.ranks.pool import Job
from analyzer.report import document as doc
from analyzer.report import fitted
from analyzer.report import scaling as out
from analyzer.report.build import Request
from analyzer.report.planning import NO_REPLAY, Today, plan, shown_fixes
from analyzer.report.scaled import differences, verdict
from analyzer.report.sizes import Sizes
from analyzer.scaling import knee as knees
from analyzer.scaling import series
from analyzer.scaling.fit import ScalingFit, fit
from analyzer.scaling.observe import Observation, observe
from analyzer.scaling.serial import Setting, parts
from analyzer.whatif.resize import resizer

NS_PER_MS = 1e6
SEARCHED = tuple(2**power for power in range(21))
MOST_CURVE = 1024


@dataclass(frozen=True)
class SizedRun:
    """One run: its job on `n` GPUs, and its name."""

    n: int
    job: Job
    label: str


@dataclass(frozen=True)
class Question:
    """What was asked beside the request: predictions wanted, also beyond what may be trusted."""

    request: Request
    forced: bool = False


def build(
    runs: Sequence[SizedRun], largest: doc.Report, question: Question, settings: Settings
) -> out.ScalingReport:
    """The report on `runs`, of which `largest` is the report of the largest."""
    ordered = sorted(runs, key=lambda run: run.n)
    request = question.request
    resizers = {run.n: resizer(run.job, settings.thresholds) for run in ordered}
    seen = [observe(run.job, run.n, resizers[run.n]) for run in ordered]
    found = fit(seen, request.mode)
    sizes = Sizes(found, resizers[ordered[-1].n])
    points = _points(ordered, seen, found, largest)
    trend = series.trend(_series(found))
    replayed = sizes.resize is not None and largest.whatif.basis == "replay"
    order = [turn.edit for turn in largest.whatif.sequence] if replayed else []
    curve = _curve(found)
    report = out.ScalingReport(
        schema_version=doc.SCHEMA_VERSION,
        kind="scaling",
        tool=largest.tool,
        created=request.created,
        verdict=doc.Verdict(text="", finding=None, confidence=_confidence(found)),
        label=request.label or largest.run.label,
        mode=request.mode,
        base=seen[0].n,
        points=points,
        series=out.Series(trend=trend, text=series.reading(trend, request.mode)),
        laws=[fitted.law(law, found) for law in found.fitted.values()],
        classes=fitted.classes(found),
        links=fitted.links(seen),
        predict=_predictions(found, sizes, order, question),
        ceiling=_ceiling(found, curve),
        ceiling_n=None if found.best is None else _best(curve),
        knee=_knee(curve),
        order=order,
        findings=largest.findings[:3],
        plan=_plan(found, sizes, order, largest, question, _unit(ordered, largest)),
        assumptions=_assumptions(found, replayed, _unit(ordered, largest)),
        differences=differences([(run.n, run.job) for run in ordered]),
        quality=[c for c in largest.quality if c.severity != "info"],
        reason=found.reason,
    )
    text = verdict(report)
    return _with_verdict(report, text)


def _with_verdict(report: out.ScalingReport, text: str) -> out.ScalingReport:
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    confidence = report.verdict.confidence
    fields["verdict"] = doc.Verdict(text=text, finding=None, confidence=confidence)
    return out.ScalingReport(**fields)


def _confidence(found: ScalingFit) -> str:
    error = found.fitted[found.best].loo_error if found.best else None
    if error is None:
        return "low"
    return "high" if error <= 0.02 and len(found.seen) > 3 else "medium" if error <= 0.05 else "low"


def _series(found: ScalingFit) -> list[series.Point]:
    seen = found.seen
    return series.points(
        [o.n for o in seen], [o.step for o in seen], [o.half for o in seen], found.mode
    )


def _unit(runs: Sequence[SizedRun], largest: doc.Report) -> int:
    """GPUs that count as one in the laws, by the largest run."""
    return max(1, runs[-1].job.size // largest.scaling.n)


def _points(
    runs: Sequence[SizedRun], seen: Sequence[Observation], found: ScalingFit, largest: doc.Report
) -> list[out.ScalePoint]:
    unit = _unit(runs, largest)
    sharded = largest.scaling.roles.get("optimizer") == "scales"
    rows = []
    for run, o, at in zip(runs, seen, _series(found), strict=True):
        setting = Setting(max(1, o.n // unit), found.mode, sharded)
        rows.append(
            out.ScalePoint(
                n=o.n,
                label=run.label,
                steps=o.steps,
                step_ms=o.step / NS_PER_MS,
                lo=None if o.half is None else o.step * (1.0 - o.half) / NS_PER_MS,
                hi=None if o.half is None else o.step * (1.0 + o.half) / NS_PER_MS,
                speedup=at.speedup,
                efficiency=at.efficiency,
                karp_flatt=at.karp_flatt,
                karp_flatt_lo=at.lo,
                karp_flatt_hi=at.hi,
                ms={name: ns / NS_PER_MS for name, ns in o.classes.items()},
                hidden_comm_ms=o.traffic.hidden / NS_PER_MS,
                serial_ms=parts(o.classes, setting)[1] / NS_PER_MS,
                reason=_missing(o, at),
            )
        )
    return rows


def _missing(o: Observation, at: series.Point) -> str:
    said = [o.reason] if o.reason else []
    if at.karp_flatt is None:
        said.append("the smallest run is what the fraction is of")
    elif at.lo is None and not said:
        said.append("no interval without that of both steps")
    return "; ".join(said)


def _speedup(found: ScalingFit, n: int, step: float) -> float:
    base = found.seen[0]
    return base.step / step * (n / base.n if found.mode == "weak" else 1.0)


def _predictions(
    found: ScalingFit, sizes: Sizes, order: Sequence[str], question: Question
) -> list[out.ScalePrediction]:
    """Powers of two up to what may be trusted, and what was asked for."""
    base = found.seen[0]
    wanted = {n for n in SEARCHED if base.n <= n <= found.farthest} | {o.n for o in found.seen}
    rows = []
    for n in sorted(wanted | set(question.request.gpus)):
        at = found.predict(n, forced=question.forced)
        speedup = None if at.step is None else _speedup(found, n, at.step)
        fixes = shown_fixes(order)[1:] if at.step is not None else []
        rows.append(
            out.ScalePrediction(
                n=n,
                step_ms=None if at.step is None else at.step / NS_PER_MS,
                lo=None if at.lo is None else at.lo / NS_PER_MS,
                hi=None if at.hi is None else at.hi / NS_PER_MS,
                speedup=speedup,
                efficiency=None if speedup is None else speedup * base.n / n,
                beyond=n > found.farthest,
                after=[(k, sizes.steps(order[:k], [n])[0] / NS_PER_MS) for k in fixes],
                reason=at.reason,
            )
        )
    return rows


def _curve(found: ScalingFit) -> list[tuple[int, float]]:
    """(N, speedup) by the best law over all sizes that are searched; empty without a law."""
    if found.best is None:
        return []
    base = found.seen[0].n
    wanted = sorted({base, *(n for n in SEARCHED if n > base)})
    return [(n, _speedup(found, n, found.step(n))) for n in wanted]


def _best(curve: Sequence[tuple[int, float]]) -> int:
    return max(curve, key=lambda at: at[1])[0]


def _ceiling(found: ScalingFit, curve: Sequence[tuple[int, float]]) -> doc.Estimate:
    if found.mode == "weak":
        return doc.Estimate(value=None, reason="with the batch of a GPU fixed there is no ceiling")
    if not curve:
        return doc.Estimate(value=None, reason=found.reason)
    n, speedup = max(curve, key=lambda at: at[1])
    half = found.half(min(n, found.farthest))
    return doc.Estimate(
        value=speedup,
        lo=speedup / (1.0 + half),
        hi=speedup * (1.0 + half),
        reason="the range is that of the fit; no role is counted both ways",
    )


def _knee(curve: Sequence[tuple[int, float]]) -> doc.Knee | None:
    if not curve:
        return None
    base = curve[0][0]
    # Efficiencies are against the smallest run.
    inside = [(n, speedup * base) for n, speedup in curve if n <= max(MOST_CURVE, 4 * base)]
    found = knees.knee(inside)
    return doc.Knee(
        nine_tenths=found.nine_tenths,
        half=found.half,
        fastest=found.fastest,
        pays=found.pays,
        up_to=inside[-1][0],
        reason=knees.BEYOND,
    )


def _plan(
    found: ScalingFit,
    sizes: Sizes,
    order: Sequence[str],
    largest: doc.Report,
    question: Question,
    unit: int,
) -> doc.Plan | None:
    request = question.request
    if request.wish is None or found.best is None:
        return None
    scales = frozenset(name for name, role in largest.scaling.roles.items() if role == "scales")
    today = Today(
        n=found.largest,
        unit=unit,
        step_ns=found.step(found.largest),
        order=tuple(order),
        measured=found.largest,
        basis="fit",
        weak=found.mode == "weak",
        scaling=scales,
        farthest=None if question.forced else found.farthest,
        reason="" if order else "no what-if gains more than noise" if sizes.resize else NO_REPLAY,
    )
    return plan(request.wish, today, sizes)


def _assumptions(found: ScalingFit, replayed: bool, unit: int) -> list[str]:
    said = [
        "All runs do the same work and differ in the number of GPUs only.",
        f"Nothing is predicted beyond {found.farthest:,} GPUs, four times the largest run, unless "
        "it is asked for; the ceiling and where more GPUs stop to pay are looked for beyond it.",
        "Intervals hold the noise of the runs, the leave-one-out error and how far fits of other "
        "shapes come apart; they widen with each doubling beyond the largest run.",
    ]
    if unit > 1:
        said.append(
            f"{unit} GPUs share one replica; what they exchange among themselves is not told apart "
            "from what replicas exchange, and grows with it."
        )
    if found.by_class.near:
        said.append(
            "What stays hidden of communication at other sizes is replayed from the nearest run: "
            "its work made longer or shorter by the fits, its host as it is."
        )
    if replayed:
        said.append("Fixes are those of the largest run, replayed there and at each other size.")
    return said
