"""What is wrong with the data, and what that forbids to conclude. One small rule per defect.

A rule returns the sentence when its defect is there, else "". Severity: error (the numbers are not
the run's), warning (some conclusions are not allowed), info (good to know).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.classify.kernels import Activity
from analyzer.config import Thresholds
from analyzer.findings.finding import percent
from analyzer.ranks.pool import Job
from analyzer.ranks.unknown import ON_THE_HOST_ONLY, no_collectives
from analyzer.report import caveats_lost as lost
from analyzer.report import caveats_ranks as together
from analyzer.report import damage
from analyzer.report.damage import ranks_text
from analyzer.report.document import Caveat
from analyzer.timeline.steps import RULE_WHOLE

# Below this share of device work without a launch record the idle causes hardly change.
UNLINKED_SHARE = 0.05
EARLY_START_SHARE = 0.01

RANK_NOTES = ("rank-by-order", "rank-disputed")


@dataclass(frozen=True)
class Rule:
    """A defect: its id, how bad it is, what it forbids, and the sentence it is told in."""

    id: str
    severity: str
    forbids: tuple[str, ...]
    text: Callable[[Job, Thresholds], str]


class Note(NamedTuple):
    """A remark of whoever read the files: the caveat's id and its sentence."""

    id: str
    text: str


def caveats(job: Job, notes: Sequence[Note], limits: Thresholds) -> list[Caveat]:
    """All caveats, the worst first; `notes` say whose rank was guessed or is disputed, and how the
    files were read.
    """
    found = [
        Caveat(id=rule.id, severity=rule.severity, text=text, forbids=list(rule.forbids))
        for rule in RULES
        if (text := rule.text(job, limits))
    ]
    found += map(_noted, notes)
    order = ("error", "warning", "info")
    return sorted(found, key=lambda c: order.index(c.severity))


def _noted(note: Note) -> Caveat:
    if note.id in RANK_NOTES:
        forbids = ["which rank is which"]
        return Caveat(id=note.id, severity="warning", text=note.text, forbids=forbids)
    return Caveat(id=note.id, severity="info", text=note.text, forbids=[])


def _world_size(job: Job, limits: Thresholds) -> str:
    if job.world_size is not None:
        return ""
    return f"No file says how many ranks the run had; {job.size} is taken, as many as were given."


def _no_marks(job: Job, limits: Thresholds) -> str:
    if not any(m.digest.step_rule == RULE_WHOLE for m in job.members):
        return ""
    return (
        "No step marks that device work can be assigned to: the whole recording is one step, "
        "first-use costs included."
    )


def _few_steps(job: Job, limits: Thresholds) -> str:
    n = len(job.steps)
    if n < 2 or n >= limits.min_steps:
        return ""
    return f"Only {n} steps could be used: no interval can be given."


def _single_step(job: Job, limits: Thresholds) -> str:
    if len(job.steps) > 1 or not all(m.digest.marked for m in job.members):
        return ""
    if job.timeline == "host" or job.serving:
        return "One step only, and one step may not be typical."
    return (
        "One step only: it starts at its host mark, so host time before its first kernel counts as "
        "idle even if later steps would hide it, and one step may not be typical."
    )


def _lost_records(job: Job, limits: Thresholds) -> str:
    thin = {
        (m.rank, s.index)
        for m in job.members
        for s in m.digest.steps
        if s.dropped.startswith(("only", "no device"))
    }
    if not thin:
        return ""
    ranks = sorted({rank for rank, _ in thin})
    return (
        f"{len(thin)} step(s) of {ranks_text(ranks)} hold far fewer device records than others "
        "and were left out: the profiler lost them."
    )


def _flags(job: Job, limits: Thresholds) -> str:
    names = ("with_stack", "profile_memory", "record_shapes")
    on = [n for n in names if any(m.digest.meta.flags.get(n) for m in job.members)]
    if not on:
        return ""
    return (
        f"Profiled with {', '.join(on)}: host times are inflated, so launch and data-loading times "
        "are upper bounds."
    )


def _profiler(job: Job, limits: Thresholds) -> str:
    # Beside a busy device its work costs nothing: only what the device waits for counts.
    ns = job.cause_ns("profiler")
    if job.timeline == "host":
        ns = job.total(lambda e: e.host.profiler_ns)
    share = job.share(ns)
    if share < limits.profiler_overhead_share:
        return ""
    return (
        f"The profiler's own work takes {percent(share)} of the step: time the run without it too."
    )


def _slowdown(job: Job) -> tuple[float, str] | None:
    """By what part the profiler lengthened the step, and the sentence; None where it was not
    measured. Ranks of one step wait for each other, so the mean over those that say it will do.
    """
    said = [ns for m in job.members if (ns := m.digest.meta.unprofiled_step_ns) is not None]
    if not said:
        return None
    without = sum(said) / len(said)
    share = job.step_ns / without - 1.0
    both = f"{job.step_ns / 1e6:.4g} ms a step under it, {without / 1e6:.4g} ms before it began"
    if share <= 0:
        return share, f"The profiler did not slow the run: {both}."
    return share, f"The profiler slowed the run by {percent(share)}: {both}."


def _slowed(job: Job, limits: Thresholds) -> str:
    found = _slowdown(job)
    return found[1] if found and found[0] >= limits.profiler_overhead_share else ""


def _not_slowed(job: Job, limits: Thresholds) -> str:
    found = _slowdown(job)
    return found[1] if found and found[0] < limits.profiler_overhead_share else ""


def _unlinked(job: Job, limits: Thresholds) -> str:
    shares = [m.digest.unlinked_share for m in job.members if m.digest.unlinked_share is not None]
    share = sum(shares) / len(shares) if shares else 0.0
    if share < UNLINKED_SHARE:
        return ""
    return (
        f"{percent(share)} of the device work has no launch record (launched before the recording, "
        "or lost): it counts as work, but idle time before it stays unexplained."
    )


def _no_device(job: Job, limits: Thresholds) -> str:
    if job.timeline != "host":
        return ""
    return (
        "No device work was recorded: classes are of the host timeline, where operators count as "
        "compute. On a GPU job this means that the GPU activity was not profiled."
    )


def _no_collectives(job: Job, limits: Thresholds) -> str:
    why = no_collectives(job)
    if not why:
        return ""
    seen = "collectives on the host only" if why == ON_THE_HOST_ONLY else "no collective"
    return (
        f"A run of {job.size} ranks, but {seen} {'were' if seen.endswith('only') else 'was'} "
        "recorded: communication on the device is not measured, not zero."
    )


def _no_loader(job: Job, limits: Thresholds) -> str:
    if job.serving or job.any(lambda e: e.loader.events):
        return ""
    return (
        "No data-loader events were recorded: data loading cannot be told from other host time "
        "(loaders other than torch.utils.data.DataLoader leave none)."
    )


def _unexplained(job: Job, limits: Thresholds) -> str:
    share = job.share(job.mean_ns["unexplained"])
    if share < limits.unexplained_share:
        return ""
    time = "idle time" if job.timeline == "device" else "time"
    return f"{percent(share)} of the step is {time} that the trace does not explain."


def _fused(job: Job, limits: Thresholds) -> str:
    ns = sum(k.ns for k in job.kernels if k.activity == Activity.FUSED)
    if not ns:
        return ""
    return (
        f"{ns / 1e6:.3g} ms per step run in kernels that communicate and compute at once: "
        "they count as communication."
    )


def _devices(job: Job, limits: Thresholds) -> str:
    most = max(m.digest.evidence.kernels.devices for m in job.members)
    if most < 2:
        return ""
    return (
        f"One process drives {most} devices: their timelines are laid over each other, so time in "
        "which only some of them work counts as busy."
    )


def _graphs(job: Job, limits: Thresholds) -> str:
    if not job.any(lambda e: e.launches.coverage.graph_calls_recorded):
        return ""
    return "Work launched as graphs has one launch for many kernels: launch times are per graph."


def _clock(job: Job, limits: Thresholds) -> str:
    early = sum(m.digest.evidence.launches.starts_before_launch for m in job.members)
    calls = sum(m.digest.evidence.launches.calls for m in job.members)
    if early < EARLY_START_SHARE * max(calls, 1) or not early:
        return ""
    return (
        f"{early:,} kernels start before their launch: host and device clocks are a little apart, "
        "and launch latencies are lower bounds."
    )


def _vendor(job: Job, limits: Thresholds) -> str:
    names = {c.name.lower() for m in job.members for c in m.digest.meta.categories}
    if not names & {"mtia_ccp_events", "hpu_op", "privateuse1_runtime", "enqueue", "glow_runtime"}:
        return ""
    return "Traces of this vendor were seen rarely: kernel names and launch links are unverified."


def _unknown(job: Job, limits: Thresholds) -> str:
    unknown = sorted({c.name for m in job.members for c in m.digest.meta.categories if not c.known})
    if not unknown:
        return ""
    named = ", ".join(n or "(none)" for n in unknown[:5])
    return f"Events of unknown categories were left out: {named}."


RULES = (
    Rule("truncated", "warning", ("last steps",), damage.truncated),
    Rule("damaged-file", "error", ("exact numbers of that rank",), damage.damaged),
    Rule("malformed-events", "warning", (), damage.malformed),
    Rule("untimed-events", "warning", (), damage.untimed),
    Rule("negative-durations", "info", (), damage.negative),
    Rule("overrunning-durations", "warning", ("length of those events",), damage.overrun),
    Rule("graph-under-recorded", "error", lost.FORBIDDEN, lost.graphs),
    Rule("launches-without-work", "error", lost.FORBIDDEN, lost.kernels),
    Rule("shared-launches", "warning", ("launch overhead by kernel",), lost.shared),
    Rule("no-device-work", "warning", ("device time", "launch overhead"), _no_device),
    Rule("several-devices", "warning", ("per-device idle time",), _devices),
    Rule("ranks-missing", "warning", ("waits between ranks", "late ranks"), together.missing_ranks),
    Rule("one-rank", "warning", ("waits between ranks", "late ranks"), together.one_rank),
    Rule(
        "ranks-not-joined", "warning", ("wait against transfer", "late ranks"), together.not_joined
    ),
    Rule("clocks-not-aligned", "warning", ("late ranks", "who arrives first"), together.clocks),
    Rule("collectives-unmatched", "warning", ("all waits between ranks",), together.unmatched),
    Rule("group-assumed", "warning", ("waits of groups that are not named",), together.assumed),
    Rule("world-size-unknown", "info", (), _world_size),
    Rule("ranks-disagree", "error", ("that this is one run",), together.ranks_disagree),
    Rule("steps-differ", "warning", ("comparison of ranks step by step",), together.steps_differ),
    Rule("no-step-marks", "warning", ("time per step", "intervals"), _no_marks),
    Rule("single-step", "warning", ("intervals", "steady state"), _single_step),
    Rule("few-steps", "info", ("intervals",), _few_steps),
    Rule("lost-records", "warning", (), _lost_records),
    Rule("cpu-times-inflated", "warning", ("absolute host times",), _flags),
    Rule("profiler-overhead", "warning", ("absolute step time",), _profiler),
    Rule("profiler-slowdown", "warning", ("absolute step time",), _slowed),
    Rule("profiler-slowdown", "info", (), _not_slowed),
    Rule("unlinked-work", "info", ("full attribution of idle time",), _unlinked),
    Rule("no-collectives", "warning", ("communication",), _no_collectives),
    Rule("no-loader-events", "info", ("data loading",), _no_loader),
    Rule("unexplained-idle", "warning", ("the cause of all idle time",), _unexplained),
    Rule("fused-kernels", "info", (), _fused),
    Rule("graph-launches", "info", ("launch overhead by kernel",), _graphs),
    Rule("clock-offset", "info", (), _clock),
    Rule("unverified-vendor", "info", (), _vendor),
    Rule("unknown-categories", "info", (), _unknown),
)
