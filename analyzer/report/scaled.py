"""What do several world sizes say in two sentences, and what else differs between the runs?"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.ranks.pool import Job
from analyzer.report.scaling import ScalingReport


def differences(runs: Sequence[tuple[int, Job]]) -> list[str]:
    """Sentences on what differs beside the number of GPUs, which the fits take to be nothing."""
    said = []
    for what, values in _facts(runs).items():
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{value} on {n:,}" for n, value in values.items())
            said.append(f"{what} differs: {listed}.")
    for n, job in runs:
        if job.size != n:
            said.append(f"The run given as {n:,} GPUs has {job.size:,} by its files.")
        missing = job.size - len(job.ranks)
        if missing > 0:
            said.append(f"Of {job.size:,} ranks on {n:,} GPUs {missing:,} are missing.")
    return said


def _facts(runs: Sequence[tuple[int, Job]]) -> dict[str, dict[int, str]]:
    facts: dict[str, dict[int, str]] = {"GPU": {}, "PyTorch": {}, "Timeline": {}, "Optimizer": {}}
    for n, job in runs:
        metas = [m.digest.meta for m in job.members]
        gpus = sorted({m.gpus[0] for m in metas if m.gpus})
        versions = sorted({m.torch for m in metas if m.torch})
        if gpus:
            facts["GPU"][n] = " and ".join(gpus)
        if versions:
            facts["PyTorch"][n] = " and ".join(versions)
        facts["Timeline"][n] = job.timeline
        names = {k.name for k in job.kernels if k.kind == "optimizer"}
        facts["Optimizer"][n] = "seen" if names or job.mean_ns["optimizer"] else "not seen"
    return facts


def verdict(report: ScalingReport) -> str:
    """The result first, then the ceiling and where more GPUs stop to pay."""
    first, last = report.points[0], report.points[-1]
    if len(report.points) == 1:
        return (
            f"One size only, {first.n:,} GPUs, {_ms(first.step_ms)} per step: nothing can be said "
            "of how the job scales that one trace does not say already."
        )
    most = last.n / first.n
    moves = "falls" if last.step_ms < first.step_ms else "grows"
    step = f"a step {moves} from {_ms(first.step_ms)} to {_ms(last.step_ms)}"
    if report.mode == "weak":
        text = (
            f"From {first.n:,} to {last.n:,} GPUs {step} with the batch of each GPU fixed: "
            f"{last.speedup:.3g}x the throughput where {most:.3g}x was possible."
        )
    else:
        text = (
            f"From {first.n:,} to {last.n:,} GPUs {step}: {last.speedup:.3g}x where {most:.3g}x "
            f"was possible; the {_ms(last.serial_ms)} that do not scale are now "
            f"{100 * last.serial_ms / last.step_ms:.0f} % of it."
        )
    return " ".join(filter(None, (text, _end(report))))


def _end(report: ScalingReport) -> str:
    if report.reason:
        return "No law is fitted: " + report.reason + "."
    said = []
    ceiling, knee = report.ceiling, report.knee
    if ceiling.value is not None:
        base = "one GPU" if report.base == 1 else f"{report.base:,} GPUs"
        said.append(f"the ceiling is {ceiling.value:.3g}x over {base}")
        if report.ceiling_n is not None and report.ceiling_n < 2**20:
            said[-1] += f", at about {report.ceiling_n:,} GPUs"
    if knee is not None and knee.pays is not None:
        said.append(
            f"beyond about {round(knee.pays):,} GPUs each percent of speed costs more than one "
            "percent of GPU-hours"
        )
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""


def _ms(value: float) -> str:
    return f"{value:.4g} ms" if value >= 1000 else f"{value:.3g} ms"
