"""Which communication costs time? Only what runs while nothing computes, on device or host."""

from __future__ import annotations

from collections import Counter

from analyzer.classify.classes import (
    COMM_UNSPLIT,
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

COMMUNICATION = GROUPS["communication"]
_CANNOT_SPLIT = (
    "How much of it is waiting and how much is transfer cannot be told: a collective runs from the "
    "arrival of its own rank, so most of it may be waiting for another."
)
# Kind of collective -> what hides it; the first is the kind with most exposed time.
_HIDE = {
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


def exposed_communication(view: View) -> Outcome:
    """Communication that nothing hides; None where none was recorded."""
    job, limit = view.job, view.limits.exposed_comm_share
    ns = job.group_ns["communication"]
    if ns + job.hidden_ns == 0:
        return None
    if job.share(ns) < limit:
        return view.below("Exposed communication", ns, limit)
    kinds = _exposed_kinds(view)
    fused = sum(k.exposed_ns for k in job.kernels if k.activity == Activity.FUSED)
    return Finding(
        id="exposed-communication",
        title=f"Communication is not hidden behind {view.work}s",
        attack="Hide communication",
        time_class=max(COMMUNICATION, key=lambda c: job.mean_ns[c]),
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} run while no {view.work} computes; another "
            f"{view.ms(job.hidden_ns)} run beside computing.",
            _CANNOT_SPLIT if job.mean_ns[COMM_UNSPLIT] > 0 else "",
            _last_to_arrive(view),
            f"{view.ms(fused)} of it is in kernels that also compute." if fused else "",
        ),
        so=sentences(
            _HIDE.get(kinds[0], _HIDE_ANY) if kinds else _HIDE_ANY,
            "Look for a late rank before the network.",
        ),
        check=view.check("exposed communication", limit),
        where=_exposed_places(view),
        confidence=view.confidence(fused > 0),
        whatif="no-communication",
        removes={c: job.mean_ns[c] for c in COMMUNICATION},
    )


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
    rows = [k for k in view.job.kernels if k.activity in kinds and k.exposed_ns > 0]
    rows.sort(key=lambda k: (-k.exposed_ns, k.name))
    return [Place(k.name, k.exposed_ns, k.count) for k in rows[:MOST_PLACES]]


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
