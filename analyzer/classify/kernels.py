"""What is an event, judged by its name: compute, optimizer, communication, fused, copy? Which one?

Nowhere else in the package is a name read to decide this. Rules are tables of patterns over the
lower-cased name, tried in order. The activity is read off the *head* of a name (the function
without template and call arguments), because harmless kernels carry words like Reduce and Dispatch
in their arguments. `[tool.ceiling.kernels]` puts a user's rules in front. Host calls come last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache

from analyzer.errors import UsageError
from analyzer.trace.schema import Kind


class Activity(IntEnum):
    """What the device does in an event. FUSED is communication and compute in one kernel."""

    COMPUTE = 0
    OPTIMIZER = 1
    COMMUNICATION = 2
    FUSED = 3
    COPY = 4


# Tables of activities: pattern -> why. These names only sound like communication:
NOT_COMMUNICATION = {
    r"^triton_(?:poi|per|red|tem|for|mm|bmm)_": "Inductor names a kernel after what feeds it, too",
    r"get_dispatch_layout": "DeepEP counts tokens locally before it dispatches",
}
FUSED = {
    r"all_?reduce_?fusion": "TensorRT-LLM, FlashInfer, AITER: all-reduce, residual, norm, quantise",
    r"all_?reduce\w*norm|rms_?norm_?lamport": "norm at the end of an all-reduce",
    r"fused_all_?reduce": "vLLM, SGLang",
    r"(?:all_?gather|\bag)_(?:gemm|matmul)": "tensor parallel: gathers while it multiplies",
    r"(?:gemm|matmul)_(?:all_?reduce|reduce_?scatter|rs(?![a-z]))": "tensor parallel, the way back",
}
COMMUNICATION = {
    r"nccl|rccl|msccl": "ncclKernel_, ncclDevKernel_, ncclSymkDevKernel_, rccl, msccl",
    r"oneccl|\bccl::|\bhccl|^hcom_": "Intel XPU, Gaudi, Ascend",
    r"cross_device_reduce|quickreduce::": "custom all-reduce of vLLM, SGLang and AITER",
    r"(?<!warp)(?<!warp_)(?<!block)(?<!block_)all_?reduce": "not the one inside a warp or block",
    r"all_?gather|reduce_?scatter|all_?(?:to|2)_?all": "named after the collective",
    r"multimem_|nvshmem|rocshmem|userbuffers": "in the switch, one-sided, Transformer Engine",
    r"symmetric_memory::|^(?:barrier|put_signal|wait_signal)_kernel$": "symmetric memory",
    r"int(?:er|ra)node(?:_ll)?(?:::|\d)": "DeepEP and its forks; a digit follows in mangled names",
    r"(?:deep_?ep|hybrid_ep|pplx|mori)\W.*(?:dispatch|combine|notify|barrier)": "more of them",
    r"\bep(?:dispatch|combine)|moe_?a2a|moe_comm::|exchangesplit": "MORI, TensorRT-LLM, NVSHMEM",
    r"^\[?(?:cuda )?memcpy (?:ptop|peer)": "copy from one GPU to another",
}
COPY = {
    r"^\[?(?:cuda |hip )?mem(?:cpy|set)(?:_async)?(?:$| )": "copies and sets",
    r"^__amd_rocclr_(?:copy|fill)": "ROCm 7.1 files copies and fills under kernel",
    r"^(?:copy|fill)(?:buffer|device|host|image)": "older ROCm tracers",
    r"^dma_request$": "MTIA",
}
# Searched in the whole name, as the optimizer is a template argument of multi_tensor_apply.
OPTIMIZER = {
    r"fusedoptimizer": "PyTorch with fused=True",
    r"(?:adam|sgd|lamb|adagrad|novograd|lion)\w*functor|lambstage": "apex",
    r"koptimizer|kpreconditionoptimizer": "bitsandbytes",
    r"(?<!codegen_)adamw?_?(?:kernel|cuda|update)": "written by hand",
}
# An all-reduce and nothing else, though it comes from the family of fused kernels.
BARE_ALL_REDUCE = r"allreduce_fusion_kernel.*fusionpattern\)0\b"

# Tables of kinds: (kind, pattern). Attention and norms before matrices, these before reductions
# (splitKreduce belongs to a GEMM).
COMPUTE_KINDS = (
    ("attention", r"^triton_tem_\w*attention"),
    ("matmul", r"^triton_(?:tem|mm|bmm)_"),
    ("triton", r"^triton_"),
    ("elementwise", r"rotary|rope(?!rt)"),
    ("memory", r"reshape_and_cache"),
    ("attention", r"flash(?!infer)|fmha|attn|attention|\bmha_|(?:prefill|decode)with\w*kvcache"),
    ("embedding", r"embedding|bounds_check_indices|linearize_index"),
    ("normalization", r"(?:batch|layer|group|instance|rms|qk)_?norm|\bln_(?:fwd|bwd)"),
    ("normalization", r"\bbn_(?:fw|bw)|softmax|gammabeta|rowwisemoments"),
    ("matmul", r"(?<!fb)gemm|gemv|\bbmm_|matmul|cijk_|nvjet|xmma|splitkreduce|cublaslt|_tensorop_"),
    ("matmul", r"conv(?!ert|ersion)|[s\d]cudnn_|winograd|fft2d|im2(?:d2)?col|[wd]grad|cask_"),
    ("matmul", r"^(?:xxt|xtx|ba_plus_caa)_kernel$"),  # Muon's orthogonalisation in nanogpt traces
    ("memory", r"copy_(?:\w*_)?kernel|copyfunctor|copy_device|fillfunctor|batchedcopy"),
    ("memory", r"transpose|nchwtonhwc|nhwctonchw|tensortransform|permute|\b(?:flip|roll)_"),
    ("memory", r"gather|scatter|index_?(?:select|put|copy|add|elementwise|func)|indexing"),
    ("memory", r"chunk_cat|split_with_sizes|kv_?cache"),
    ("reduction", r"multi_tensor_apply\w*<.*(?:l2norm|lpnorm|maxnorm)"),
    ("elementwise", r"elementwise|pointwise|multi_tensor_apply|dropout|subtensorop|packedtensor"),
    ("elementwise", r"act_and_mul|silu|gelu|swiglu|quant|_cast|\bcast_"),
    ("reduction", r"reduc|argm(?:ax|in)|cumsum|scan|nll|crossentropy|pool"),
    ("triton", r"triton"),
)
# Over the head without punctuation; fits `Collective name` and host op names just as well.
COLLECTIVE_KINDS = (
    ("unspecified", r"^ncclkernelsendrecv"),  # carried any operation (NVIDIA/nccl #739)
    ("dispatch", r"dispatch"),
    ("combine", r"combine"),
    ("reduce_scatter", r"reducescatter"),
    ("all_reduce", r"allreduce|crossdevicereduce|quickreduce"),
    ("all_gather", r"allgather"),
    ("all_to_all", r"all(?:to|2)all"),
    ("broadcast", r"broadcast|bcast"),
    ("send_recv", r"send|recv"),
    ("reduce", r"reduce"),
)
TENSOR_CORE_WORDS = (
    ("no", r"_simt_|opclasssimt|_ffma_|convolve_sgemm|[dw]grad\w*_engine<float"),
    ("yes", r"_tensorop_|opclasstensorop|tensor16x8|nvjet|gmma|mfma|xdl|wmma|_gtcx\d|_mi\d+x\d+"),
    ("yes", r"[sdhi]\d{3,6}(?:gemm|cudnn|fprop|dgrad|wgrad)"),  # s16816gemm, h884cudnn
    ("yes", r"xmma\w*_(?:bf16|f16|e4m3|e5m2|tf32|i8)"),
    ("yes", r"\bbmm_\w*sm\d+|fmhasm|flash_(?:fwd|bwd)|flashattn|fp8|mxfp4|mxe[24]m"),
    ("no", r"f32f32_f32f32_f32|(?<![a-z])[sdczh]gemm|scudnn"),  # ampere_sgemm
    ("no", r"^cijk_\w*_mt\d+x\d+"),  # Tensile without MI: vector units
)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches where any of the patterns does."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


class _Words:
    """A table of (word, pattern) as a function of text: the word of the first pattern that hits."""

    def __init__(self, table: Sequence[tuple[str, str]], default: str) -> None:
        self._table = [(word, re.compile(pattern)) for word, pattern in table]
        self._default = default

    def __call__(self, text: str) -> str:
        return next((word for word, found in self._table if found.search(text)), self._default)


_NOT_COMMUNICATION = _any_of(NOT_COMMUNICATION)
_BARE_ALL_REDUCE = re.compile(BARE_ALL_REDUCE)
_FUSED = _any_of(FUSED)
_COMMUNICATION = _any_of(COMMUNICATION)
_COPY = _any_of(COPY)
_OPTIMIZER = _any_of(OPTIMIZER)
_compute_kind = _Words(COMPUTE_KINDS, default="other")
_collective_word = _Words(COLLECTIVE_KINDS, default="unspecified")
_tensor_core_word = _Words(TENSOR_CORE_WORDS, default="unknown")
_NOT_HEAD = re.compile(r"<unnamed>::|\(anonymous namespace\)::|^void ")


def _head(lowered: str) -> str:
    """Function name without return type, anonymous namespaces, template and call arguments."""
    return re.split(r"[<(]", _NOT_HEAD.sub("", lowered), maxsplit=1)[0]


class KernelRules:
    """The built-in rules with the user's in front; ask once per distinct name, keep the answer."""

    def __init__(self, extra: Mapping[str, Sequence[str]] | None = None) -> None:
        self._extra = [
            (_user_pattern(key, pattern), _user_activity(key))
            for key, patterns in (extra or {}).items()
            for pattern in patterns
        ]

    def activity(self, name: str, kind: Kind = Kind.KERNEL) -> Activity:
        """What the device does; `kind` is the event's category: copies and sets are COPY by it."""
        for pattern, activity in self._extra:
            if pattern.search(name):
                return activity
        lowered = name.lower()
        head = _head(lowered)
        if _NOT_COMMUNICATION.search(head):
            return Activity.COMPUTE
        if _FUSED.search(head) and not _BARE_ALL_REDUCE.search(lowered):
            return Activity.FUSED
        if _COMMUNICATION.search(head):
            return Activity.COMMUNICATION
        if kind != Kind.KERNEL or _COPY.search(head):
            return Activity.COPY
        return Activity.OPTIMIZER if _OPTIMIZER.search(lowered) else Activity.COMPUTE

    def kind(self, name: str, kind: Kind = Kind.KERNEL) -> str:
        """Family for tables: a word of `COMPUTE_KINDS`, "other", "optimizer", or `collective_kind`.

        Copies and sets are "memory", like kernels that only move data.
        """
        activity = self.activity(name, kind)
        if activity in (Activity.COMMUNICATION, Activity.FUSED):
            return collective_kind(name)
        if activity == Activity.OPTIMIZER:
            return "optimizer"
        return "memory" if activity == Activity.COPY else _compute_kind(name.lower())


def _user_activity(key: str) -> Activity:
    """The activity that a key of `[tool.ceiling.kernels]` names."""
    known = {activity.name.lower(): activity for activity in Activity}
    if key not in known:
        raise UsageError(
            f"[tool.ceiling.kernels] has an unknown key {key!r}", f"use one of: {', '.join(known)}"
        )
    return known[key]


def _user_pattern(key: str, pattern: str) -> re.Pattern[str]:
    """A user's pattern, compiled to ignore case."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise UsageError(
            f"[tool.ceiling.kernels] {key}: {pattern!r} is no regular expression: {error}",
            "escape brackets in kernel names with a backslash",
        ) from error


@cache
def collective_kind(name: str) -> str:
    """Which collective a kernel, host op or `Collective name` says it is, else "unspecified".

    A kernel's name is a hint (one NCCL kernel can run several operations): metadata goes first.
    """
    return _collective_word(re.sub(r"[^a-z0-9]", "", _head(name.lower())))


def tensor_core(name: str) -> bool | None:
    """True if the name of a matrix kernel says matrix units, False ordinary ones, None neither."""
    return {"yes": True, "no": False}.get(_tensor_core_word(name.lower()))


_COLLECTIVE_OP = re.compile(
    r"^(?:record_param_comms$|c10d::|_?c10d_functional::(?!wait_tensor)|symm_mem::"
    r"|(?:nccl|rccl|gloo|mpi|ucc|xccl|ccl|hccl):"
    r"|vllm::(?:all_reduce|all_gather|reduce_scatter|all_to_all))"
)
_LOADER = re.compile(
    r"^enumerate\(DataLoader\)#.*\.__next__$|^enumerate\(DataPipe\)#"
    r"|DataLoader\w*\.__next__$"
    r"|^\[pl\]\[profile\].*dataloader_next$"
)
_VERSION = r"(?:_v\d+)?(?:_pt[sd]z)?$"
_BLOCKING = re.compile(
    r"^(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx|Thread)Synchronize"
    + _VERSION
    # hipMemcpyWithStream waits for the copy: it is what a blocking `.to()` is on ROCm
    + r"|^(?:cuda|hip|cu)Memcpy(?!.*Async|.*Peer)\w*$"
    r"|^ur(?:QueueFinish|EventWait)$|^ze\w*(?:HostS|QueueS)ynchronize$"
    r"|^(?:AscendCL@)?aclrt(?:Synchronize\w+|Memcpy)$|^synchronizeStream$"
)
_ALLOCATOR = re.compile(
    r"^(?:cuda|hip)(?:Ext)?(?:Malloc|Free|Host(?:Alloc|Malloc|Free|Register|Unregister))\w*$"
    r"|^cuMem(?:Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess)\w*$"
    r"|^urUSM(?:\w*Alloc|Free)$|^(?:AscendCL@)?aclrt(?:Malloc|Free)\w*$"
)
_STREAM_WAIT = re.compile(r"^(?:cuda|hip|cu)StreamWaitEvent" + _VERSION)
_WHOLE_DEVICE = re.compile(r"(?:Device|Ctx|Thread)Synchronize" + _VERSION)
_GRAPH_LAUNCH = re.compile(r"^(?:cuda|hip|cu)GraphLaunch" + _VERSION)
_KERNEL_LAUNCH = re.compile(r"Launch(?:Cooperative)?Kernel|KernelLaunch|GraphLaunch")
_COPY_DIRECTION = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH)\b")


def is_collective_op(name: str) -> bool:
    """True for a host op or span that starts a collective: ask it of a copy's innermost host op.

    A list-output all-gather also copies locally, but under an `aten::copy_` of its own.
    """
    return _COLLECTIVE_OP.search(name) is not None


def is_host_collective(name: str) -> bool:
    """True for the span in which a backend on the host runs a collective, not the call for it."""
    return name.startswith(("gloo:", "mpi:", "ucc:"))


def is_loader_event(name: str) -> bool:
    """True for the span in which the training loop asks its loader (or Lightning's) for a batch."""
    return _LOADER.search(name) is not None


def is_single_process_loader(name: str) -> bool:
    """True for a loader event whose batches are made in the training process (num_workers=0)."""
    return is_loader_event(name) and "_SingleProcessDataLoaderIter" in name


def is_blocking_call(name: str) -> bool:
    """True for a runtime call that returns only when the device has finished something."""
    return _BLOCKING.search(name) is not None


def waits_for_device(name: str) -> bool:
    """True for a blocking call that waits for all streams of the device."""
    return _WHOLE_DEVICE.search(name) is not None


def is_stream_wait(name: str) -> bool:
    """True for the call that makes work launched later on a stream wait for an event."""
    return _STREAM_WAIT.search(name) is not None


def is_allocator_call(name: str) -> bool:
    """True for a runtime call that gets, maps or returns device or pinned memory."""
    return _ALLOCATOR.search(name) is not None


def is_graph_launch(name: str) -> bool:
    """True for the call that launches a captured graph: one launch, many kernels."""
    return _GRAPH_LAUNCH.search(name) is not None


def is_kernel_launch(name: str) -> bool:
    """True for a call that must lead to device work; not a complete list of launch calls."""
    return _KERNEL_LAUNCH.search(name) is not None


def is_optimizer_annotation(name: str) -> bool:
    """True for PyTorch's own mark around an optimizer step; `zero_grad` is not part of the step."""
    return name.startswith("Optimizer.step#")


def copy_direction(name: str) -> str | None:
    """HtoD, DtoH, DtoD, PtoP or HtoH as a copy's name says; None on ROCm copies that do not say."""
    found = _COPY_DIRECTION.search(name)
    return found.group(1) if found else None


def is_pageable_copy(name: str) -> bool:
    """True for a copy from or to pageable host memory, for which the launching thread waits."""
    return "Pageable" in name
