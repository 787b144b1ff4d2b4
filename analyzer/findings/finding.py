"""What is one bottleneck, and how are its numbers written? Times are ns per rank and step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from analyzer.classify.classes import CLASSES, UNEXPLAINED
from analyzer.classify.evidence import Evidence, Named
from analyzer.config import Thresholds
from analyzer.ranks.pool import Job, KernelMean
from analyzer.ranks.unknown import work_lost
from analyzer.whatif.study import NO_STUDY, Study

MOST_PLACES = 5
NS_PER_MS = 1e6
NS_PER_US = 1e3


class Place(NamedTuple):
    """A kernel, call or operator with its time; `calls` is None where only the time is known."""

    name: str
    ns: float
    calls: float | None


@dataclass(frozen=True)
class Finding:
    """One bottleneck: `title` is the claim; because, so and check are sentences.

    `attack` is the order the headline gives, `why` the sentence it adds, if any, `clause` its
    "because" alone. `saved_ns` is what
    a fix could take away at most, None where shares cannot tell; `removes` is the same by class,
    empty where that cannot be told.
    """

    id: str
    title: str
    attack: str
    time_class: str
    ns: float
    step_ns: float
    saved_ns: float | None
    because: str
    so: str
    check: str
    where: list[Place]
    confidence: str
    whatif: str | None = None
    removes: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    clause: str = ""

    @property
    def share(self) -> float:
        """Part of the step."""
        return self.ns / self.step_ns

    @property
    def speedup_bound(self) -> float | None:
        """What were left if just that time went; None where shares cannot tell or nothing would."""
        if self.saved_ns is None or self.saved_ns >= self.step_ns:
            return None
        return 1.0 / (1.0 - self.saved_ns / self.step_ns)


@dataclass(frozen=True)
class Passed:
    """A bottleneck that was looked for and is none; the sentence says with which numbers."""

    text: str


Outcome = Finding | Passed | None


@dataclass(frozen=True)
class View:
    """A job as detectors read it: its numbers as text, its evidence as places."""

    job: Job
    limits: Thresholds
    study: Study = NO_STUDY

    def fires(self, ns: float, limit: float, edit: str) -> bool:
        """Whether a bottleneck is one: by its share of the step, or by what the replay of its fix
        gains, which is more where others wait for it.
        """
        gain = self.study.gains.get(edit)
        return self.job.share(ns) >= limit or (gain is not None and gain.sure >= limit)

    def beyond(self, ns: float, edit: str) -> str:
        """The sentence on a gain that is well above the share; empty without."""
        gain = self.study.gains.get(edit)
        if gain is None or gain.share - self.job.share(ns) < self.limits.minor_share:
            return ""
        return (
            f"Without it the step is {percent(gain.share)} shorter in the replay, since what waits "
            "for it comes earlier, too."
        )

    @property
    def on_device(self) -> bool:
        """Whether device work was recorded; without it the host timeline is judged."""
        return self.job.timeline == "device"

    @property
    def work(self) -> str:
        """What computes on this timeline."""
        return "kernel" if self.on_device else "operator"

    @property
    def work_lost(self) -> bool:
        """Whether launches of a rank lack their work: what looks idle then may be busy."""
        return work_lost(self.job)

    def ms(self, ns: float) -> str:
        """Milliseconds with the decimals that give the step three significant digits or more."""
        step_ms, ms = self.job.step_ns / NS_PER_MS, ns / NS_PER_MS
        decimals = 0 if step_ms >= 10_000 else max(1, min(6, 2 - math.floor(math.log10(step_ms))))
        text = f"{ms:,.{decimals}f}"
        if ms > 0 and not text.strip("0."):
            return f"<{10.0**-decimals:.{decimals}f} ms"
        return f"{text} ms"

    def both(self, ns: float) -> str:
        """Milliseconds and part of the step."""
        return f"{self.ms(ns)} per step ({percent(self.job.share(ns))})"

    def places(self, facts: Callable[[Evidence], Iterable[Named]]) -> list[Place]:
        """Named evidence of all ranks per step, most time first."""
        sums: dict[str, list[int]] = {}
        for member in self.job.members:
            for row in facts(member.digest.evidence):
                total = sums.setdefault(row.name, [0, 0])
                total[0] += row.ns
                total[1] += row.count
        pairs = self.job.pairs
        found = [Place(name, ns / pairs, count / pairs) for name, (ns, count) in sums.items()]
        return sorted(found, key=lambda p: (-p.ns, p.name))[:MOST_PLACES]

    def idle_places(self, *causes: str) -> list[Place]:
        """Operators and calls seen with idle time of these causes, most time first."""
        sums: dict[str, float] = {}
        for cause in self.job.causes:
            for name, ns in cause.ops if cause.cause in causes else ():
                sums[name] = sums.get(name, 0.0) + ns
        found = [Place(name, ns, None) for name, ns in sums.items()]
        return sorted(found, key=lambda p: (-p.ns, p.name))[:MOST_PLACES]

    def kernel_places(self, chosen: Callable[[KernelMean], bool]) -> list[Place]:
        """Device work per step, most time first."""
        rows = [Place(k.name, k.ns, k.count) for k in self.job.kernels if chosen(k)]
        return rows[:MOST_PLACES]

    def by_rank(self, *classes: str) -> dict[int, float]:
        """ns per step of these classes on each rank."""
        columns = [CLASSES.index(c) for c in classes]
        return {rank: float(ns[columns].sum()) for rank, ns in self.job.by_rank.items()}

    def worst_rank(self, *classes: str) -> str:
        """The sentence on the rank with most of these classes; empty when ranks are alike."""
        rows = self.by_rank(*classes)
        worst = max(rows, key=lambda rank: (rows[rank], -rank))
        others = others_median(rows, worst)
        if others is None or self.job.share(rows[worst] - others) < self.limits.minor_share:
            return ""
        return f"Rank {worst} loses {self.ms(rows[worst])}, {others_are(rows, self.ms(others))}."

    def confidence(self, *doubts: bool) -> str:
        """High, one less for each doubt: the given ones, one step, records or causes missing."""
        unexplained = self.job.share(self.job.mean_ns[UNEXPLAINED])
        common = (
            len(self.job.steps) == 1,
            len(self.job.ranks) < self.job.size,
            self.work_lost,
            unexplained >= self.limits.unexplained_share,
        )
        return ("high", "medium", "low")[min(2, sum((*doubts, *common)))]

    def recorded(self, *flags: str) -> bool:
        """Whether any rank was profiled with any of these options."""
        metas = [m.digest.meta for m in self.job.members]
        return any(meta.flags.get(flag) for meta in metas for flag in flags)

    def below(self, what: str, ns: float, limit: float) -> Passed:
        """That `what` takes `ns` and so stays below its threshold."""
        return Passed(f"{what}: {self.both(ns)}, below {percent(limit)}.")

    def check(self, what: str, limit: float) -> str:
        """How to confirm a fix: the threshold that `what` should fall below."""
        return (
            f"Record at least 5 steps again: {what} should fall below "
            f"{self.both(limit * self.job.step_ns)}; `ceiling compare` then says whether the "
            "step is shorter."
        )


def others_median(rows: Mapping[int, float], rank: int) -> float | None:
    """Median over the other ranks; None without any."""
    rest = [ns for other, ns in rows.items() if other != rank]
    return median(rest) if rest else None


def others_are(rows: Mapping[int, float], value: str) -> str:
    """ "the other 3.0 ms", "the others 3.0 ms in the median"."""
    return f"the other {value}" if len(rows) == 2 else f"the others {value} in the median"


def percent(fraction: float) -> str:
    """A fraction as a percentage with one decimal; what is not zero does not print as zero."""
    text = f"{100 * fraction:.1f}"
    return "<0.1 %" if fraction > 0 and text == "0.0" else f"{text} %"


def microseconds(ns: float) -> str:
    """Microseconds, three significant digits."""
    us = ns / NS_PER_US
    return f"{us:,.0f} µs" if us >= 100 else f"{us:.3g} µs"


def multiple(value: float) -> str:
    """A speedup, three significant digits."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.{2 if value < 9.995 else 1}f}x"


def sentences(*parts: str) -> str:
    """The parts that are not empty, one after the other."""
    return " ".join(part for part in parts if part)
