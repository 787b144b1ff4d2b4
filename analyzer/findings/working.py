"""What could be done faster or not at all? Detectors of time in which the device works."""

from __future__ import annotations

from analyzer.classify.classes import COMPUTE, COPY, OPTIMIZER
from analyzer.classify.kernels import Activity, collective_kind
from analyzer.findings.finding import Finding, Outcome, Passed, View, percent, sentences
from analyzer.ranks.pool import Job


def replicated_optimizer(view: View) -> Outcome:
    """An optimizer step that every rank repeats; None for one rank or where none was seen."""
    job, limit = view.job, view.limits.optimizer_share
    ns = job.mean_ns[OPTIMIZER]
    if job.size == 1 or ns == 0:
        return None
    if job.share(ns) < limit:
        return view.below("Optimizer", ns, limit)
    if _sharded(job):
        return Passed(f"The optimizer is sharded: {view.both(ns)}.")
    saved = ns * (1 - 1 / job.size)
    split = any(c.group_size and c.group_size < job.size for c in job.collectives)
    return Finding(
        id="replicated-optimizer",
        title="Every rank repeats the optimizer step",
        attack="Shard the optimizer",
        time_class=OPTIMIZER,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=saved,
        because=sentences(
            f"{view.both(ns)} update weights, and no reduce-scatter with an all-gather shows that "
            f"ranks share this work. Shared by {job.size} ranks, {view.ms(saved)} of it would go.",
            "Some groups are smaller than the run, so that weights may be split already."
            if split
            else "",
        ),
        so="Use the fused implementation (fused=True), then shard the optimizer: FSDP "
        "(fully_shard), ZeroRedundancyOptimizer or ZeRO stage 1.",
        check=view.check("the optimizer", limit),
        where=view.kernel_places(lambda k: k.activity == Activity.OPTIMIZER),
        confidence=view.confidence(True, split),
        whatif="no-optimizer",
        removes={OPTIMIZER: saved},
    )


def _sharded(job: Job) -> bool:
    """Whether gradients are scattered and weights gathered, on the device or through gloo."""
    kinds = {c.kind for c in job.collectives}
    kinds |= {collective_kind(g.name) for m in job.members for g in m.digest.evidence.host.gloo}
    return {"reduce_scatter", "all_gather"} <= kinds


def exposed_copies(view: View) -> Outcome:
    """Copies and sets with nothing beside them, batches excepted; None on the host timeline."""
    job, limit = view.job, view.limits.copy_share
    if not view.on_device:
        return None
    ns = job.mean_ns[COPY]
    if job.share(ns) < limit:
        return view.below("Copies that run alone", ns, limit)
    pageable = job.total(lambda e: e.copies.pageable_ns)
    blamed = 2 * pageable >= ns
    return Finding(
        id="exposed-copies",
        title="Copies from or to pageable host memory run alone"
        if blamed
        else "Memory copies run alone",
        attack="Hide memory copies",
        time_class=COPY,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=ns,
        because=sentences(
            f"{view.both(ns)} copy or set memory while nothing computes or communicates.",
            f"{view.ms(pageable)} of it is from or to pageable host memory, for which the "
            "launching thread waits."
            if pageable
            else "",
            view.worst_rank(COPY),
        ),
        so="Keep the host's side in pinned memory (pin_memory) and copy with non_blocking=True."
        if blamed
        else "Leave data on the GPU, copy on a stream of its own, and drop copies that only change "
        "layout or type.",
        check=view.check("copies that run alone", limit),
        where=view.places(lambda e: e.copies.exposed),
        confidence=view.confidence(),
        removes={COPY: ns},
    )


def fp32_matmul(view: View) -> Outcome:
    """Matrix kernels on ordinary units, as their names say; None where no matrix kernel ran."""
    job, limit = view.job, view.limits.fp32_matmul_share
    matrix = job.total(lambda e: e.kernels.matmul_ns)
    if matrix == 0:
        return None
    plain, whole = (
        job.total(lambda e: e.kernels.plain_matmul_ns),
        job.total(lambda e: e.kernels.ns),
    )
    if plain / whole < limit:
        return Passed(
            f"Matrix kernels use tensor cores or do not say: {percent(plain / whole)} of kernel "
            "time is in matrix kernels without."
        )
    ns = min(plain, job.mean_ns[COMPUTE])
    return Finding(
        id="fp32-matmul",
        title="Matrix kernels run without tensor cores",
        attack="Use tensor cores",
        time_class=COMPUTE,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=None,
        because=f"{view.both(ns)} are spent in matrix kernels whose names say ordinary FP32 or "
        f"FP64 units: {percent(plain / whole)} of kernel time. How much faster tensor cores would "
        "be depends on shapes and GPU and cannot be told from a trace.",
        so='Use bfloat16 or float16 autocast, or torch.set_float32_matmul_precision("high") for '
        "TF32 (Ampere and newer); sizes that are multiples of 8 help. GPUs before Volta have none.",
        check=view.check("matrix kernels without tensor cores", limit * job.share(whole)),
        where=view.places(lambda e: e.kernels.plain_matmul),
        confidence=view.confidence(True),
    )


# A step of fewer is a snippet: there is nothing to fuse.
FEWEST_KERNELS = 20


def tiny_kernels(view: View) -> Outcome:
    """Too many short kernels, where they or their launches cost time; None for a few kernels."""
    job, limits = view.job, view.limits
    count = job.total(lambda e: e.kernels.count)
    if count < FEWEST_KERNELS:
        return None
    tiny, ns = job.total(lambda e: e.kernels.tiny_count), job.total(lambda e: e.kernels.tiny_ns)
    ns = min(ns, job.mean_ns[COMPUTE] + job.mean_ns[OPTIMIZER])
    part = f"{percent(tiny / count)} of kernels are shorter than {limits.tiny_kernel_us:g} µs"
    if tiny / count < limits.tiny_kernel_share:
        return Passed(f"Kernels are long enough: {part}.")
    overhead = job.group_ns["launch_overhead"]
    if job.share(ns) < limits.minor_share and job.share(overhead) < limits.launch_share:
        return Passed(f"Short kernels cost little: {part}, together {view.both(ns)}.")
    return Finding(
        id="tiny-kernels",
        title="Most kernels are too short to fill the GPU",
        attack="Fuse short kernels",
        time_class=COMPUTE,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=None,
        because=f"{part} ({tiny:,.0f} of {count:,.0f} per step). They take {view.both(ns)}, beside "
        f"{view.ms(overhead)} of launch overhead. What fusing saves cannot be told from shares.",
        so="Let torch.compile fuse them, use foreach or fused optimizers, and replace chains of "
        "element-wise operators by one.",
        check=f"Record at least 5 steps again: less than {percent(limits.tiny_kernel_share)} of "
        f"kernels should be shorter than {limits.tiny_kernel_us:g} µs; `ceiling compare` then says "
        "whether the step is shorter.",
        where=view.kernel_places(
            lambda k: (
                k.activity <= Activity.OPTIMIZER
                and k.count > 0
                and k.ns / k.count < limits.tiny_kernel_us * 1000
            )
        ),
        confidence=view.confidence(True),
    )


def compute_bound(view: View) -> Outcome:
    """Nearly the whole step computes: information on which work that is, no alarm."""
    job, limit = view.job, view.limits.compute_bound_share
    ns = job.mean_ns[COMPUTE]
    if job.share(ns) < limit:
        return None
    matrix, memory = work_kinds(job)
    kinds = (
        ""
        if matrix is None or memory is None
        else f"Of kernel time {percent(matrix)} is matrix work and {percent(memory)} is work that "
        "mostly moves memory. A GPU that computes all the time may still compute slowly."
    )
    return Finding(
        id="compute-bound",
        title="The step is bound by computing",
        attack=f"Speed up {view.work}s",
        time_class=COMPUTE,
        ns=ns,
        step_ns=job.step_ns,
        saved_ns=None,
        because=sentences(f"{view.both(ns)} compute.", kinds),
        so="Fuse what moves memory (torch.compile, fused norms and optimizers); keep it in 16 bit."
        if memory is not None and matrix is not None and memory > matrix
        else "Lower the precision (bfloat16, FP8), compute less (no recomputing, no padding), or "
        "use more or faster GPUs.",
        check="Record at least 5 steps again: the step should be shorter than "
        f"{view.ms(job.step_ns)}.",
        where=view.kernel_places(lambda k: k.activity == Activity.COMPUTE),
        confidence=view.confidence(),
    )


def work_kinds(job: Job) -> tuple[float | None, float | None]:
    """Parts of compute kernel time in matrix work and in moving memory; None without kernels."""
    whole = job.total(lambda e: e.kernels.ns)
    if whole == 0:
        return None, None
    matrix, memory = (
        job.total(lambda e: e.kernels.matmul_ns),
        job.total(lambda e: e.kernels.memory_ns),
    )
    return matrix / whole, memory / whole
