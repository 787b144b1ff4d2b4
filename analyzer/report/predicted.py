"""One trace -> its part on scaling, and the plan: the same job on other numbers of GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analyzer.classify.classes import COMM_WAIT
from analyzer.config import Thresholds
from analyzer.ranks.pool import Job
from analyzer.report import document as doc
from analyzer.report.planning import NO_REPLAY, Today, Wish, plan
from analyzer.scaling import knee as knees
from analyzer.scaling.network import Network, algorithm
from analyzer.scaling.observe import room
from analyzer.scaling.overlap import traffic
from analyzer.scaling.predict import (
    OVERHEAD_GROWTH,
    Curve,
    Limit,
    Mechanism,
    factors,
    held,
    predict,
)
from analyzer.scaling.serial import Interval, SerialFraction, Setting
from analyzer.whatif.resize import Resizer, resizer
from analyzer.whatif.study import Study

NS_PER_MS = 1e6
MOST_DOUBLINGS = 10


@dataclass(frozen=True)
class Ahead:
    """The job at other sizes: `resize` replays it, None where it cannot be."""

    job: Job
    setting: Setting
    network: Network
    resize: Resizer | None

    @property
    def unit(self) -> int:
        """GPUs that count as one in the laws."""
        return max(1, self.job.size // self.setting.n)

    def curve(self, sizes: Sequence[int], setting: Setting | None = None) -> Curve:
        """The prediction at `sizes` (in units)."""
        job = self.job
        # A rank that is always late costs the others the same whatever their number.
        waits = {COMM_WAIT: held} if job.together.late else {}
        seen = traffic(job.mean_ns, job.hidden_ns, room(job))
        known = Mechanism(self.network, seen, self.resize)
        growth = {**OVERHEAD_GROWTH, **waits}
        return predict(job.mean_ns, setting or self.setting, sizes, growth, known)

    def _weak(self) -> Setting:
        return replace(self.setting, mode="weak")

    def steps(self, fixes: Sequence[str], sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs once the fixes are made."""
        units = [n // self.unit for n in sizes]
        if self.resize is None:
            return [point.step_ns for point in self.curve(units).points]
        edited = self.resize.after(fixes)
        return edited.steps([factors(self.setting, self.network, n) for n in units])

    def grown(self, sizes: Sequence[int]) -> list[float]:
        """ns on each number of GPUs when each keeps its batch."""
        units = [n // self.unit for n in sizes]
        return [point.step_ns for point in self.curve(units, self._weak()).points]

    def classes(self, fixes: Sequence[str], n: int) -> Mapping[str, float]:
        """ns by class on `n` GPUs; today's where they cannot be replayed."""
        if self.resize is None:
            return self.job.mean_ns
        at = factors(self.setting, self.network, n // self.unit)
        return self.resize.after(fixes).classes(at)


def ahead(job: Job, setting: Setting, limits: Thresholds, gpus_per_node: int | None) -> Ahead:
    """The job at other sizes; `gpus_per_node` where the traces' own is not wanted."""
    unit = max(1, job.size // setting.n)
    node = gpus_per_node or _gpus_of_a_node(job)
    network = Network(
        algorithm=algorithm([(k.name, k.ns) for k in job.kernels]),
        per_node=None if node is None else max(1, node // unit),
    )
    return Ahead(job, setting, network, resizer(job, limits))


def _gpus_of_a_node(job: Job) -> int | None:
    """GPUs that each rank saw, or the ranks that share a host in a run over several; None where
    each rank saw its own only.
    """
    seen = max(len(m.digest.meta.gpus) for m in job.members)
    hosts = {m.rank: m.digest.meta.host for m in job.members if m.digest.meta.host}
    together = Counter(hosts.values())
    if len(together) > 1 and len(hosts) == job.size:
        return max(together.values())
    return seen if seen > 1 else None


def scaling(serial: SerialFraction, of: Ahead, because: str, today_s: float | None) -> doc.Scaling:
    """The laws, and the same job on other numbers of GPUs; `because` says what N counts."""
    # From today's size up: on fewer GPUs today's overhead is not what the trace says it is.
    n = of.setting.n
    powers = {2**k for k in range(MOST_DOUBLINGS + 1) if 2**k > n}
    sizes = sorted({1, n, 2 * n, 4 * n} | powers)
    curve = of.curve(sizes)

    def duration(step_ns: float) -> float | None:
        return None if today_s is None else today_s * step_ns / of.job.step_ns

    limit = curve.limit
    unknown = serial.f.value is None or serial.s.value is None
    return doc.Scaling(
        mode=serial.mode,
        n=serial.n,
        f=_estimate(serial.f),
        s=_estimate(serial.s),
        P=serial.P,
        ceiling_today=_estimate(serial.ceiling_today),
        ceiling_one_gpu=_estimate(serial.ceiling_one_gpu),
        speedup=serial.speedup,
        efficiency=serial.efficiency,
        gustafson=serial.gustafson,
        roles=dict(serial.roles),
        assumptions=[because, *serial.assumptions, *curve.assumptions],
        predict=[
            doc.Prediction(
                n=p.n,
                step_ms=p.step_ns / NS_PER_MS,
                speedup=p.speedup,
                efficiency=p.efficiency,
                amdahl=p.amdahl,
                gustafson=p.gustafson,
                duration_s=duration(p.step_ns),
            )
            for p in curve.points
        ],
        duration=_duration(today_s, serial.ceiling_today, limit),
        limit=doc.Limit(
            n=limit.n,
            ceiling_today=limit.ceiling_today,
            ceiling_one_gpu=limit.ceiling_one_gpu,
            reason=limit.reason or ("" if limit.n else "approached without end as GPUs are added"),
        ),
        knee=_knee(curve),
        basis="classes" if of.resize is None else "replay",
        reason=(serial.f.reason or serial.s.reason) if unknown else "",
    )


def _knee(curve: Curve) -> doc.Knee | None:
    points = [(p.n, p.speedup) for p in curve.points]
    if len(points) < 2:
        return None
    found = knees.knee(points)
    return doc.Knee(
        nine_tenths=found.nine_tenths,
        half=found.half,
        fastest=found.fastest,
        pays=found.pays,
        up_to=points[-1][0],
        reason=knees.BEYOND,
    )


def _estimate(interval: Interval) -> doc.Estimate:
    return doc.Estimate(
        value=interval.value,
        lo=interval.lo,
        hi=interval.hi,
        envelope=interval.envelope,
        reason=interval.reason,
    )


def _duration(today: float | None, ceiling: Interval, limit: Limit) -> doc.Duration | None:
    if today is None:
        return None
    return doc.Duration(
        today_s=today,
        ceiling_s=None if ceiling.value is None else today / ceiling.value,
        limit_s=None if limit.ceiling_today is None else today / limit.ceiling_today,
        reason=ceiling.reason if ceiling.value is None else limit.reason,
    )


def planned(wish: Wish | None, of: Ahead, study: Study) -> doc.Plan | None:
    """The plan from this run's GPUs on; None where no length of the run was given."""
    if wish is None:
        return None
    replayed = of.resize is not None and study.replayed
    order = tuple(turn.edit for turn in study.turns) if replayed else ()
    nothing = "no what-if gains more than noise"
    today = Today(
        n=of.job.size,
        unit=of.unit,
        step_ns=of.job.step_ns,
        order=order,
        measured=of.job.size,
        basis="classes" if of.resize is None else "replay",
        weak=of.setting.mode == "weak",
        scaling=frozenset(name for name, role in of.setting.roles().items() if role == "scales"),
        reason="" if order else nothing if replayed else NO_REPLAY,
    )
    return plan(wish, today, of)
