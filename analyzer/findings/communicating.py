"""Which communication costs time? Only what runs while nothing computes, on device or host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from analyzer.classify.classes import (
    COMM_TRANSFER,
    COMM_UNSPLIT,
    COMM_WAIT,
    COMPUTE,
    COPY,
    DATA_LOADING,
    DEPENDENCY,
    GROUPS,
    HOST_OTHER,
    HOST_SYNC,
    LAUNCH,
    OPTIMIZER,
    UNEXPLAINED,
)
from analyzer.classify.kernels import Activity, collective_kind
from analyzer.findings.finding import (
    MOST_PLACES,
    Finding,
    Outcome,
    Place,
    View,
    others_are,
    others_median,
    sentences,
)
from analyzer.ranks.agreement import MISMATCHES
from analyzer.ranks.pool import CollectiveMean, Job
from analyzer.ranks.stragglers import Late

COMMUNICATION = GROUPS["communication"]
# Kind of collective -> what hides it; the first is the kind with most exposed time.
HIDE = {
    "all_reduce": "Start the reduction earlier and in smaller pieces (DDP: bucket_cap_mb, "
    "static_graph); where tensors are split, overlap it with the next matrix product.",
    "all_gather": "Gather the next layer's parameters while this one computes (FSDP: "
    "forward_prefetch, backward_prefetch).",
    "reduce_scatter": "Let gradients leave while the next layer's backward runs (FSDP: "
    "backward_prefetch, units that are not too small).",
    "all_to_all": "Split the tokens in two so that one half computes while the other is exchanged, "
    "and balance the experts.",
    "send_recv": "Such kernels hold the pipeline's bubble: use more micro-batches or an "
    "interleaved schedule.",
}
_HIDE_ANY = "Start it earlier, so that computing hides it, or send less."

# What makes a rank arrive late, in words; every class but communication.
_MORE = {
    COMPUTE: "computing",
    OPTIMIZER: "optimizer",
    DATA_LOADING: "data loading",
    COPY: "copies",
    LAUNCH: "late launches",
    HOST_SYNC: "blocking calls",
    HOST_OTHER: "other host work",
    DEPENDENCY: "waiting between streams",
    UNEXPLAINED: "unexplained time",
}
_MOST_REASONS = 2


def late_reasons(view: View, late: Late) -> list[tuple[str, float]]:
    """Class and ns of what a late rank does more of than the others, above noise, most first."""
    told = [row for row in late.because if view.job.share(row[1]) >= view.limits.noise_share]
    return told[:_MOST_REASONS]


def late_because(view: View, late: Late) -> str:
    """Why a rank arrives late, as a sentence: what it does more of than the others."""
    told = late_reasons(view, late)
    if not told:
        return "What delays it is not in its own trace."
    more = " and ".join(f"{view.ms(ns)} more of {_MORE[name]}" for name, ns in told)
    others = "the other" if len(view.job.ranks) == 2 else "the others in the median"
    return f"{more} than {others}."


def exposed_communication(view: View) -> Outcome:
    """Transfer, and what could not be split, that nothing hides; None where none was recorded."""
    job, limit = view.job, view.limits.exposed_comm_share
    if job.group_ns["communication"] + job.hidden_ns == 0:
        return None
    removes = {c: job.mean_ns[c] for c in (COMM_TRANSFER, COMM_UNSPLIT)}
    ns = sum(removes.values())
    split = job.together.method is not None
    if job.share(ns) < limit:
        return view.below("Exposed transfer" if split else "Exposed communication", ns, limit)
    kinds = _exposed_kinds(view)
    fused = sum(k.exposed_ns for k in job.kernels if k.activity == Activity.FUSED)
    return Finding(
        id="exposed-communication",
        title=f"Communication is not hidden behind {view.work}s",
        attack="Hide communication",
        time_class=max(removes, key=lambda c: removes[c]),
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} run while no {view.work} computes; another "
            f"{view.ms(job.hidden_ns)} run beside computing.",
            _what_is_split(view),
            "" if split else _last_to_arrive(view),
            f"{view.ms(fused)} of it is in kernels that also compute." if fused else "",
        ),
        so=sentences(
            HIDE.get(kinds[0], _HIDE_ANY) if kinds else _HIDE_ANY,
            "" if split else "Look for a late rank before the network.",
        ),
        check=view.check("exposed transfer" if split else "exposed communication", limit),
        where=_exposed_places(view),
        confidence=view.confidence(fused > 0, mismatched(job)),
        whatif="no-communication",
        removes=removes,
    )


def _what_is_split(view: View) -> str:
    """How much of it is transfer, and why the rest cannot be told."""
    transfer, unsplit = (view.job.mean_ns[c] for c in (COMM_TRANSFER, COMM_UNSPLIT))
    waiting = f"waiting for other ranks ({view.ms(view.job.mean_ns[COMM_WAIT])}) is not in it"
    if unsplit == 0:
        return f"All of it is transfer: {waiting}."
    if transfer > 0:
        return (
            f"{view.ms(transfer)} of it is transfer: {waiting}. How much of the other "
            f"{view.ms(unsplit)} is waiting cannot be told ({_left_out(view.job)})."
        )
    return (
        f"How much of it is waiting and how much is transfer cannot be told "
        f"({_left_out(view.job)}): a collective runs from the arrival of its own rank, so most of "
        "it may be waiting for another."
    )


def mismatched(job: Job) -> bool:
    """Whether ranks disagree on some collectives: the rest may be one operation only by chance."""
    return any(job.together.matching.left[why] for why in MISMATCHES)


def _left_out(job: Job) -> str:
    """Why communication was not split: the most frequent reason."""
    matching = job.together.matching
    if len(job.ranks) == 1:
        return "only one rank was recorded"
    if not matching.left:
        return "members of its groups were not recorded"
    reason, records = matching.left.most_common(1)[0]
    return f"not joined: {records:,} of {matching.records:,} records, {reason}"


def _exposed_kinds(view: View) -> list[str]:
    """Kinds of collectives, the most exposed first; on the host by their length."""
    total: Counter[str] = Counter()
    for c in view.job.collectives:
        total[c.kind] += round(c.exposed_ns)
    if not view.on_device:
        for place in view.places(lambda e: e.host.gloo):
            total[collective_kind(place.name)] += round(place.ns)
    return [kind for kind, ns in total.most_common() if ns > 0]


def _exposed_places(view: View) -> list[Place]:
    if not view.on_device:
        return view.places(lambda e: e.host.gloo)
    kinds = (Activity.COMMUNICATION, Activity.FUSED)
    collectives = view.job.collectives
    if collectives and all(c.transfer_ns is not None for c in collectives):
        return kind_places((c, c.transfer_ns) for c in collectives)
    rows = [k for k in view.job.kernels if k.activity in kinds and k.exposed_ns > 0]
    rows.sort(key=lambda k: (-k.exposed_ns, k.name))
    return [Place(k.name, k.exposed_ns, k.count) for k in rows[:MOST_PLACES]]


def kind_places(parts: Iterable[tuple[CollectiveMean, float | None]]) -> list[Place]:
    """A part of the collectives by kind, hidden or not, most first; unknown parts are left out."""
    sums: dict[str, list[float]] = {}
    for collective, ns in parts:
        if ns:
            total = sums.setdefault(collective.kind, [0.0, 0.0])
            total[0] += ns
            total[1] += collective.count
    found = [Place(f"{kind} (hidden or not)", ns, n) for kind, (ns, n) in sums.items()]
    return sorted(found, key=lambda p: (-p.ns, p.name))[:MOST_PLACES]


def _last_to_arrive(view: View) -> str:
    """The rank whose collectives are shortest is the one the others wait for; empty if alike."""
    rows = view.by_rank(*COMMUNICATION)
    least = min(rows, key=lambda rank: (rows[rank], rank))
    others = others_median(rows, least)
    if others is None or view.job.share(others - rows[least]) < view.limits.minor_share:
        return ""
    text = f"Rank {least} has {view.ms(rows[least])} of it, {others_are(rows, view.ms(others))}"
    more = {
        name: times[least] - (others_median(times, least) or 0.0)
        for name in _MORE
        for times in [view.by_rank(name)]
    }
    name = max(more, key=lambda c: more[c])
    if view.job.share(more[name]) < view.limits.noise_share:
        return f"{text}: it probably arrives last."
    return f"{text}: it probably arrives last, after {view.ms(more[name])} more of {_MORE[name]}."


def gloo_on_gpu(view: View) -> Outcome:
    """Gloo collectives on the host of a GPU job, as far as the GPU idles meanwhile at most."""
    job, limit = view.job, view.limits.exposed_comm_share
    gloo = job.total(lambda e: e.host.gloo_ns)
    if not view.on_device or gloo == 0:
        return None
    ns = min(gloo, job.total(lambda e: e.launches.idle_ns))
    if job.share(ns) < limit:
        return view.below("Idle beside gloo collectives", ns, limit)
    alone = not any(k.activity in (Activity.COMMUNICATION, Activity.FUSED) for k in job.kernels)
    return Finding(
        id="gloo-on-gpu",
        title="GPU training communicates through gloo on the host",
        attack="Move gloo collectives to the GPU",
        time_class=max((LAUNCH, HOST_SYNC, HOST_OTHER, UNEXPLAINED), key=lambda c: job.mean_ns[c]),
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"Gloo collectives take {view.ms(gloo)} of host time per step; the GPU idles for at "
            f"most {view.both(ns)} of it.",
            "No collective runs on the GPU." if alone else "Others run on the GPU.",
        ),
        so='Create the process group with backend="nccl" (or "cpu:gloo,cuda:nccl") and keep the '
        "tensors that are reduced on the GPU.",
        check=view.check("idle time beside gloo", limit),
        where=view.places(lambda e: e.host.gloo),
        confidence=view.confidence(not alone),
    )
