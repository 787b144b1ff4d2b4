"""The same job on other numbers of GPUs: every class grows by its role. Times are nanoseconds.

What scales is shared out, what is serial stays, and overhead grows the way its mechanism does (a
ring's bandwidth term, the wait for the last of many equally random ranks). Communication that less
compute no longer hides comes out: replayed where that is possible, else by how much room there was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analyzer.classify import classes as c
from analyzer.scaling import laws
from analyzer.scaling.network import TREE, TWO_LEVEL, Network
from analyzer.scaling.observe import BYTES, EXPOSED, HOPS, Resize
from analyzer.scaling.overlap import Traffic, hiding
from analyzer.scaling.serial import (
    NOT_BOUNDED,
    WEAK_HAS_NO_CEILING,
    Role,
    Setting,
    checked_mean,
    one_gpu_step,
    parts,
)

Growth = Callable[[float, float], float]


@dataclass(frozen=True)
class Prediction:
    """The job on `n` GPUs; `amdahl` and `gustafson` are the laws alone, None under weak scaling."""

    n: int
    step_ns: float
    speedup: float
    efficiency: float
    amdahl: float | None
    gustafson: float | None


@dataclass(frozen=True)
class Limit:
    """The best step that any number of GPUs gives, and what it is worth; None is unbounded.

    `n` is where it is reached: a power of two, a size asked for or today's. None when the step
    falls for ever towards it.
    """

    n: int | None
    step_ns: float | None
    ceiling_today: float | None
    ceiling_one_gpu: float | None
    reason: str = ""


@dataclass(frozen=True)
class Curve:
    """Predicted steps, in the order asked for, their limit, and what was taken for granted."""

    points: tuple[Prediction, ...]
    limit: Limit
    assumptions: tuple[str, ...]


def held(n: float, target: float) -> float:
    """1: the time stays as it is."""
    return 1.0


def shrink(n: float, target: float) -> float:
    """N/N': work that is shared out. Optimistic, since smaller batches use a GPU less well."""
    return n / target


def proportional(n: float, target: float) -> float:
    """N'/N: all ranks queue at one disk or CPU while each wants as much as before."""
    return target / n


def ring(n: float, target: float) -> float:
    """Bandwidth term of a ring, (N'-1)/N' over (N-1)/N; 1 from one GPU, which has no ring."""
    return (1.0 - 1.0 / target) / (1.0 - 1.0 / n) if n > 1 else 1.0


def jitter(n: float, target: float) -> float:
    """k_N' / k_N: the wait for the last of equally random ranks. It has no limit, but is slow."""
    if math.isinf(target):
        return math.inf
    return laws.expected_max(int(target)) / laws.expected_max(int(n)) if n > 1 else 1.0


@dataclass(frozen=True)
class Mechanism:
    """What is known of how the job communicates: the network, what was hidden (`traffic`), and the
    replay at another size (`resize`), each None where it is not known.
    """

    network: Network | None = None
    traffic: Traffic | None = None
    resize: Resize | None = None


NOTHING_KNOWN = Mechanism()
OVERHEAD_GROWTH: dict[str, Growth] = {
    c.COMM_TRANSFER: ring,
    c.COMM_UNSPLIT: ring,
    c.COMM_WAIT: jitter,
    c.DATA_LOADING: proportional,
}
_SEARCHED = tuple(2**power for power in range(21))


def predict(
    mean_ns: Mapping[str, float],
    setting: Setting,
    ns: Sequence[int],
    growth: Mapping[str, Growth] = OVERHEAD_GROWTH,
    known: Mechanism = NOTHING_KNOWN,
) -> Curve:
    """Mean step on each of `ns` GPUs, every class growing by its role, overhead by `growth`.

    One persistently late rank costs the same wait at any N: give `held` for that class then.
    On one GPU the step is the reference all speed-ups are taken against.
    """
    mean = checked_mean(mean_ns)
    one_gpu_ns = one_gpu_step(mean, setting)
    p, q = parts(mean, setting)
    weak = setting.mode == "weak"
    step = _Steps(mean, setting, growth, known, ns)

    def point(target: int) -> Prediction:
        step_ns = step.at(target)
        speedup = one_gpu_ns / step_ns * (target if weak else 1)
        return Prediction(
            n=target,
            step_ns=step_ns,
            speedup=speedup,
            efficiency=speedup / target,
            amdahl=None if weak else laws.amdahl(target, q / (setting.n * p + q)),
            gustafson=None if weak else laws.gustafson(target, q / (p + q)),
        )

    return Curve(
        points=tuple(point(target) for target in ns),
        limit=_limit(step, ns),
        assumptions=_growth_assumptions(mean, setting, growth, known, max(ns, default=setting.n)),
    )


def factors(setting: Setting, network: Network, target: float) -> dict[str, float]:
    """How much longer the device's work lasts on `target` GPUs, by its role."""
    roles, n = setting.roles(), setting.n
    found = {name: shrink(n, target) for name, role in roles.items() if role == "scales"}
    if roles[c.DATA_LOADING] == "overhead":
        found[c.DATA_LOADING] = proportional(n, target)
    return found | {HOPS: network.hops(n, target), BYTES: network.bytes(n, target)}


class _Steps:
    """The step at any size: replayed at all sizes at once, or class by class."""

    def __init__(
        self,
        mean: Mapping[str, float],
        setting: Setting,
        growth: Mapping[str, Growth],
        known: Mechanism,
        asked: Sequence[int],
    ) -> None:
        self.mean, self.setting, self.growth, self.known = mean, setting, growth, known
        self.one_gpu_ns = one_gpu_step(mean, setting)
        sizes = sorted({*_SEARCHED, *asked} - {1, setting.n})
        self._replayed = {setting.n: sum(mean.values())}
        if known.resize is not None:
            network = known.network or Network()
            found = known.resize.steps([factors(setting, network, n) for n in sizes])
            self._replayed |= dict(zip(sizes, found, strict=True))

    def at(self, target: float) -> float:
        """ns on `target` GPUs; without end where an overhead has none."""
        if target == 1:
            return self.one_gpu_ns
        if target in self._replayed:
            return self._replayed[int(target)]
        return sum(self._by_class(target).values())

    @property
    def replayed(self) -> bool:
        """Whether sizes are replayed."""
        return self.known.resize is not None

    def _by_class(self, target: float) -> dict[str, float]:
        by_role: dict[Role, Growth] = {"scales": shrink, "serial": held, "neutral": held}
        roles, n = self.setting.roles(), self.setting.n
        times = {
            name: time_ns * (by_role.get(roles[name]) or self.growth[name])(n, target)
            for name, time_ns in self.mean.items()
            if time_ns > 0.0  # nothing stays nothing, also where its growth has no limit
        }
        traffic = self.known.traffic
        if traffic is not None and traffic.hidden > 0.0:
            for name in EXPOSED:
                times.pop(name, None)
            total = traffic.total * self.growth[c.COMM_TRANSFER](n, target)
            compute = times.get(c.COMPUTE, 0.0)
            times[c.COMM_TRANSFER] = hiding([traffic]).exposed(total, compute)
        return times


def _limit(step: _Steps, asked: Sequence[int]) -> Limit:
    setting = step.setting
    if setting.mode == "weak":
        return Limit(None, None, None, None, WEAK_HAS_NO_CEILING)
    sizes = sorted({*_SEARCHED, *asked, setting.n})
    tried = {n: step.at(n) for n in sizes}
    best: int | None = min(tried, key=tried.__getitem__)
    step_ns = min(tried.values())
    asymptote_ns = step_ns if step.replayed else step.at(math.inf)
    if asymptote_ns <= step_ns and (not step.replayed or best == sizes[-1]):
        best, step_ns = None, asymptote_ns
    if step_ns == 0.0:
        return Limit(None, 0.0, None, None, NOT_BOUNDED)
    today_ns = sum(step.mean.values())
    return Limit(best, step_ns, today_ns / step_ns, step.one_gpu_ns / step_ns)


def _growth_assumptions(
    mean: Mapping[str, float],
    setting: Setting,
    growth: Mapping[str, Growth],
    known: Mechanism,
    most: int,
) -> tuple[str, ...]:
    if setting.n == 1:
        return (
            "A trace of one GPU has no communication, so none is predicted: "
            "steps on more GPUs will be longer than shown.",
        )
    present = {name for name, time_ns in mean.items() if time_ns > 0.0}
    sentences = [
        f"Measured on {setting.n} GPUs only: the further from there, the less it is worth; runs of "
        "three sizes or more (ceiling scaling) are the stronger statement."
    ]
    if known.resize is not None:
        sentences.append(
            "Steps on other numbers of GPUs are replayed: compute and collectives last longer or "
            "shorter, the host's calls stay as they are, with what recording added to them."
        )
        if c.COMM_WAIT in present and setting.mode != "weak":
            sentences.append(
                "Waiting for a rank that works longer shrinks with that work; Amdahl's law counts "
                "it as fixed, so the curve may lie above it."
            )
    moving = bool(present & {c.COMM_TRANSFER, c.COMM_UNSPLIT}) or (
        known.traffic is not None and known.traffic.total > 0.0
    )
    if moving:
        sentences += _network_assumptions(setting.n, known, most)
    if c.COMM_UNSPLIT in present:
        sentences.append("Waiting inside communication is not known and grows as transfer does.")
    if c.COMM_WAIT in present and growth[c.COMM_WAIT] is jitter and known.resize is None:
        sentences.append("Waiting grows as it does when all ranks are late by chance alike.")
    return tuple(sentences)


def _network_assumptions(n: int, known: Mechanism, most: int) -> list[str]:
    if known.resize is None or known.network is None:
        return ["Communication grows like the bandwidth term of a ring; latency is left out."]
    network = known.network
    if network.algorithm == TREE:
        return ["Communication grows like a tree's: its latency with the logarithm of the GPUs."]
    sentences = ["Communication grows like a ring's: its bytes little, its latency with each GPU."]
    per_node = network.per_node
    if network.shape(most) == TWO_LEVEL and per_node is not None:
        sentences.append(
            f"From {per_node} GPUs on it is a ring inside each node around one between nodes"
            + (
                "; links between nodes are taken to be as fast as those inside, which one node "
                "cannot tell."
                if n <= per_node
                else ", which sets its pace."
            )
        )
    return sentences
