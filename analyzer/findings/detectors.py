"""Which bottlenecks are looked for? The catalogue, in the order that breaks ties.

A detector says Finding, Passed (with the numbers that made it pass), or None where the trace cannot
tell or the question does not arise. Its thresholds come from the configuration only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from analyzer.config import Thresholds
from analyzer.findings import communicating, lateness, skew, waiting, working
from analyzer.findings.finding import Finding, Outcome, Passed, View
from analyzer.ranks.pool import Job
from analyzer.whatif.study import NO_STUDY, Study

CATALOGUE: dict[str, Callable[[View], Outcome]] = {
    "late-rank": lateness.late_rank,
    "rank-skew": skew.rank_skew,
    "exposed-communication": communicating.exposed_communication,
    "data-loading": waiting.data_loading,
    "kernel-launch": waiting.kernel_launch,
    "host-sync": waiting.host_sync,
    "replicated-optimizer": working.replicated_optimizer,
    "exposed-copies": working.exposed_copies,
    "allocation": waiting.allocation,
    "gloo-on-gpu": communicating.gloo_on_gpu,
    "fp32-matmul": working.fp32_matmul,
    "tiny-kernels": working.tiny_kernels,
    "single-process-loader": waiting.single_process_loader,
    "compute-bound": working.compute_bound,
}


# A serving engine has neither optimizer nor data loader.
TRAINING = frozenset({"data-loading", "replicated-optimizer", "single-process-loader"})
# What to do where nothing is trained; other advice holds for both.
SERVING_ADVICE = {
    "exposed-communication": "Use the engine's custom or symmetric-memory all-reduce, fused with "
    "the norm behind it where it can be; split tensors over fewer GPUs, or serve more replicas.",
    "kernel-launch": "Let the engine capture CUDA graphs for the batch sizes it meets (vLLM: no "
    "enforce_eager; SGLang: cuda_graph_max_bs), schedule the next batch while this one runs, and "
    "keep sampling on the GPU.",
    "host-sync": "Keep sampling and stop checks on the GPU, and overlap the scheduler with the "
    "forward pass (vLLM: async scheduling; SGLang: overlap schedule).",
    "tiny-kernels": "Batch more requests per iteration, decode through CUDA graphs, and use the "
    "engine's fused kernels (attention, norm, sampling, experts).",
    "compute-bound": "Quantise weights and cache (FP8, INT4), raise the batch while latency "
    "allows, cut prompts by prefix caching, or use more or faster GPUs.",
    "allocation": "Let the engine reserve its memory at the start (gpu_memory_utilization, "
    "mem_fraction_static) and keep shapes to those that were captured.",
    "exposed-copies": "Send tokens, not logits, to the host, from pinned memory with "
    "non_blocking=True, and move cache blocks on a stream of their own.",
}


def detect(job: Job, limits: Thresholds, study: Study = NO_STUDY) -> list[Finding | Passed]:
    """What every detector says of the job, in catalogue order, without those that cannot tell."""
    view = View(job, limits, study)
    asked = {n: d for n, d in CATALOGUE.items() if not (job.serving and n in TRAINING)}
    said = (detector(view) for detector in asked.values())
    return [_advised(outcome, job) for outcome in said if outcome is not None]


def _advised(outcome: Finding | Passed, job: Job) -> Finding | Passed:
    if isinstance(outcome, Passed) or not job.serving:
        return outcome
    return replace(outcome, so=SERVING_ADVICE.get(outcome.id, outcome.so))
