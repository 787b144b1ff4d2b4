"""What does the device wait for while nothing computes or communicates?

A loader, a launch or a blocking call that runs beside other work costs nothing of the step, however
long it is: only idle time counts.
"""

from __future__ import annotations

from statistics import median

from analyzer.classify.classes import DATA_LOADING, HOST_OTHER, HOST_SYNC, LAUNCH
from analyzer.findings.finding import (
    Finding,
    Outcome,
    Passed,
    Place,
    View,
    microseconds,
    percent,
    sentences,
)


def data_loading(view: View) -> Outcome:
    """Time in which the next batch is waited for; None where that was not recorded."""
    job, limits = view.job, view.limits
    ns = job.mean_ns[DATA_LOADING]
    if ns == 0 and not (job.any(lambda e: e.loader.events) and _idle_has_causes(view)):
        return None
    if not view.fires(ns, limits.data_loading_share, "no-data-loading"):
        if job.share(ns) < limits.data_hidden_share:
            return Passed(f"Data loading is hidden: {view.both(ns)} are waited for.")
        return view.below("Waiting for data loading", ns, limits.data_loading_share)
    waited = min(job.cause_ns("loader"), ns) if view.on_device else ns
    copied = ns - waited
    return Finding(
        id="data-loading",
        title=f"{'The GPU' if view.on_device else 'Training'} waits for the next batch",
        attack="Speed up data loading",
        time_class=DATA_LOADING,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} pass before the next batch is there:",
            f"{view.ms(waited)} blocked in the loader and {view.ms(copied)} copying the batch."
            if copied > 0
            else "all of it blocked in the loader.",
            view.beyond(ns, "no-data-loading"),
            view.worst_rank(DATA_LOADING),
        ),
        so=_feed(view, waited, copied),
        check=view.check("data loading", limits.data_loading_share),
        where=_loader_places(view),
        confidence=view.confidence(),
        whatif="no-data-loading",
        removes={DATA_LOADING: ns},
    )


def _feed(view: View, waited: float, copied: float) -> str:
    """What would hide the part that takes longer, the loader or the copy of the batch."""
    if copied > waited:
        return "Pin the loader's memory (pin_memory=True) and copy with non_blocking=True."
    if view.job.any(lambda e: e.loader.single_process):
        return "First give the loader processes of its own: num_workers above 0."
    rest = view.job.step_ns - waited
    factor = f"{view.job.step_ns / rest:,.1f} times the" if rest > 0 else "more"
    return (
        f"Give the loader {factor} workers (num_workers) if the host has the cores for them, or "
        "make a batch cheaper: decode less, cache, prepare ahead."
    )


def _loader_places(view: View) -> list[Place]:
    """The loader's calls; on the host, where causes are not kept, only if there is one name."""
    if view.on_device:
        return view.idle_places("loader")
    names = sorted({n for m in view.job.members for n in m.digest.evidence.loader.names})
    ns = view.job.mean_ns[DATA_LOADING]
    return [Place(names[0], ns, None)] if len(names) == 1 else []


def single_process_loader(view: View) -> Outcome:
    """Batches made by the training process itself, where that is waited for."""
    job, limit = view.job, view.limits.data_loading_share
    if not (job.any(lambda e: e.loader.events) and _idle_has_causes(view)):
        return None
    if not job.any(lambda e: e.loader.single_process):
        return Passed("Batches are made in processes of their own.")
    whole = job.mean_ns[DATA_LOADING]
    ns = min(job.cause_ns("loader"), whole) if view.on_device else whole
    if job.share(ns) < limit:
        return Passed(
            f"Batches are made in the training process, but only {view.both(ns)} are waited for."
        )
    return Finding(
        id="single-process-loader",
        title="Batches are made in the training process itself",
        attack="Give the loader worker processes",
        time_class=DATA_LOADING,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because="The loader is a _SingleProcessDataLoaderIter (num_workers=0): nothing is launched "
        f"while it makes a batch, which costs {view.both(ns)}. This is part of data loading.",
        so="Set num_workers to a few per GPU, with persistent_workers=True and pin_memory=True.",
        check=view.check("data loading", limit),
        where=_loader_places(view),
        confidence=view.confidence(),
        whatif="no-data-loading",
        removes={DATA_LOADING: ns},
    )


def kernel_launch(view: View) -> Outcome:
    """Idle because kernels were launched late; None on the host or where launches are missing."""
    job, limits = view.job, view.limits
    if not _launches_known(view):
        return None
    ns, late = job.mean_ns[LAUNCH], _empty_queue(view)
    if not view.fires(ns, limits.launch_share, "launching"):
        return view.below("Late launches", ns, limits.launch_share)
    if late < limits.launch_depth1_share:
        return Passed(
            f"Kernels are queued in time: of idle time {percent(late)} lies before a late launch; "
            f"{view.both(ns)} are gaps between kernels that were queued."
        )
    pace, slow = _pace(view)
    causes = ("dispatch", "launch_call", "launch_latency", "queue_gap")
    parts = [view.ms(job.cause_ns(cause)) for cause in causes]
    return Finding(
        id="kernel-launch",
        title="The GPU waits for kernels that are launched late",
        attack="Cut launch overhead",
        time_class=LAUNCH,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} are idle because the host launches too slowly: {parts[0]} with the "
            f"host in operators or between two, {parts[1]} in the launch call, {parts[2]} from "
            f"there to the start, {parts[3]} between queued kernels.",
            f"The queue was empty in {percent(late)} of idle time.",
            view.beyond(ns, "launching"),
            pace,
            view.worst_rank(LAUNCH),
        ),
        so=_launch_less(view),
        check=view.check("late launches", limits.launch_share),
        where=view.idle_places(*causes),
        confidence=view.confidence(not slow, _inflated(view)),
        whatif="no-launch-overhead",
        removes={LAUNCH: ns},
    )


def _idle_has_causes(view: View) -> bool:
    """Whether waiting can be told: on the device only a gap whose work has a launch has a cause,
    and none where work was not recorded.
    """
    linked = view.job.total(lambda e: e.launches.calls) > 0
    return not view.on_device or (linked and not view.work_lost)


def _launches_known(view: View) -> bool:
    """Whether idle time can be held against launches."""
    return view.on_device and _idle_has_causes(view)


def _empty_queue(view: View) -> float:
    """Part of idle time in which nothing was queued."""
    idle = view.job.total(lambda e: e.launches.idle_ns)
    return view.job.total(lambda e: e.launches.late_idle_ns) / idle if idle else 0.0


def _launch_less(view: View) -> str:
    """Ways to launch less; capturing graphs is no news to a job that launches them."""
    graphs = view.job.any(lambda e: e.launches.coverage.graph_calls)
    capture = "" if graphs else ' (mode="reduce-overhead" also captures CUDA graphs)'
    return (
        f"Launch fewer and longer kernels: torch.compile{capture}; a larger batch per GPU; fused "
        "optimizers (fused=True); no Python work between operators."
    )


def _pace(view: View) -> tuple[str, bool]:
    """How long kernels are and how often the host launches one; whether launching is the slower."""
    count = view.job.total(lambda e: e.kernels.count)
    every = [i for m in view.job.members if (i := m.digest.evidence.launches.interval_ns)]
    if not count or not every:
        return "", False
    length, interval = view.job.total(lambda e: e.kernels.ns) / count, median(every)
    tiny = view.job.total(lambda e: e.kernels.tiny_count) / count
    return (
        f"A kernel lasts {microseconds(length)} on average ({percent(tiny)} are shorter than "
        f"{view.limits.tiny_kernel_us:g} µs), a launch call comes every {microseconds(interval)}.",
        interval > length,
    )


def _inflated(view: View) -> bool:
    """Recording stacks or memory makes host calls longer than they are without."""
    return view.recorded("with_stack", "profile_memory")


def host_sync(view: View) -> Outcome:
    """Idle after a blocking call had drained the queue; None where launches are missing."""
    job, limit = view.job, view.limits.host_sync_share
    if not _launches_known(view):
        return None
    ns = job.mean_ns[HOST_SYNC]
    if not view.fires(ns, limit, "no-host-sync"):
        return view.below("Idle after blocking calls", ns, limit)
    calls = ", ".join(p.name for p in view.places(lambda e: e.host.blocking)[:3])
    return Finding(
        id="host-sync",
        title="Blocking calls drain the GPU's queue",
        attack="Remove blocking calls",
        time_class=HOST_SYNC,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} are idle while the queue refills after a call that waited for it to "
            "drain. The wait itself is not counted: the GPU works meanwhile.",
            f"Calls seen: {calls}." if calls else "",
            view.beyond(ns, "no-host-sync"),
            view.worst_rank(HOST_SYNC),
        ),
        so="Keep .item(), .cpu(), printed tensors and synchronize() out of the step or do them "
        "every n steps; copy from pinned memory with non_blocking=True.",
        check=view.check("host sync", limit),
        where=view.idle_places("sync"),
        confidence=view.confidence(_inflated(view)),
        whatif="no-host-sync",
        removes={HOST_SYNC: ns},
    )


def allocation(view: View) -> Outcome:
    """Idle while the host gets or returns memory; None on the host or without launch records."""
    job, limit = view.job, view.limits.minor_share
    if not (view.on_device and _idle_has_causes(view)):
        return None
    ns = min(job.cause_ns("allocator"), job.mean_ns[HOST_OTHER])
    if job.share(ns) < limit:
        return view.below("Idle while memory is allocated", ns, limit)
    where = view.idle_places("allocator")
    return Finding(
        id="allocation",
        title="The GPU waits while memory is allocated",
        attack="Keep allocation out of the step",
        time_class=HOST_OTHER,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} are idle with the host in {', '.join(p.name for p in where)}.",
            "This is one window: start-up may be in it." if len(job.steps) == 1 else "",
            view.worst_rank(HOST_OTHER),
        ),
        so="The caching allocator should make no such calls once it is warm: drop empty_cache(), "
        "keep shapes constant, try expandable_segments:True, leave some memory free.",
        check=view.check("idle time in allocation calls", limit),
        where=where,
        confidence=view.confidence(),
        removes={HOST_OTHER: ns},
    )
