"""What one training step of the simulated job does: its ops, kernels, buckets, in launch order.

A transformer under DistributedDataParallel. Device times are microseconds on an A100 at scale 1;
a scenario stretches them. Kernel and op names are of the kinds PyTorch really writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    """One job to simulate; times in microseconds where the name says so."""

    name: str
    layers: int
    profiled_steps: int
    kernel_scale: float
    dispatch_us: float
    layers_per_bucket: int
    bucket_elements: int
    last_bucket_elements: int
    bus_gb_per_s: float
    batch_bytes: int
    loader_prep_us: float
    loader_workers: int
    loss_read: (
        str  # "none", "lagged" (last step's loss, by event) or "item" (this step's, blocking)
    )
    step_jitter: float = 0.002
    loader_jitter: float = 0.005
    compute_factor: dict[int, float] = field(default_factory=dict)
    loader_delay_us: dict[int, float] = field(default_factory=dict)  # the most, evenly from nothing
    ranks: int = 4
    first_step: int = 10
    warmup_steps: int = 3


@dataclass(frozen=True)
class Launch:
    """One op that launches one kernel; `phase` is forward, backward or optimizer."""

    op: str
    inner: str
    kernel: str
    device_us: float
    phase: str


@dataclass(frozen=True)
class Bucket:
    """One gradient bucket, reduced as soon as the kernel launched before it is done."""

    elements: int


Work = Launch | Bucket

GEMM = "ampere_bf16_s16816gemm_bf16_{}_ldg8_f2f_stages_64x3_{}"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, {}ul> >"
    "(int, at::native::{}, std::array<char*, {}ul>)"
)
LAYER_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*)"
)
LAYER_NORM_GRAD = (
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized"
    "<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*)"
)
GAMMA_BETA = (
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16,"
    " float, 32u, 8u, 64u, true, true>(long, long, c10::BFloat16 const*, c10::BFloat16 const*)"
)
FLASH_FORWARD = (
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4,"
    " false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)"
)
FLASH_BACKWARD = (
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::"
    "Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t> >"
    "(pytorch_flash::Flash_bwd_params)"
)
REDUCE = (
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16,"
    " at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float,"
    " c10::BFloat16> >, unsigned int, c10::BFloat16, 4, 4> >(at::native::ReduceOp<c10::BFloat16>)"
)
SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float,"
    " at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*)"
)
FUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous"
    " namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
    "FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double>"
    "(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>)"
)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _gemm(tile: str, layout: str) -> str:
    return GEMM.format(tile, layout)


def _elementwise(functor: str, arrays: int) -> str:
    return ELEMENTWISE.format(functor, arrays, functor, arrays)


ADD = _elementwise("CUDAFunctor_add<c10::BFloat16>", 3)
GELU = _elementwise("GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}", 2)
GELU_GRAD = _elementwise("GeluBackwardCUDAKernelImpl::{lambda(c10::BFloat16)#1}", 3)
COPY = _elementwise("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2)

# op, inner op, kernel, device microseconds
FORWARD_LAYER = (
    ("aten::layer_norm", "aten::native_layer_norm", LAYER_NORM, 60.0),
    ("aten::linear", "aten::addmm", _gemm("256x128", "tn"), 420.0),
    (
        "aten::scaled_dot_product_attention",
        "aten::_flash_attention_forward",
        FLASH_FORWARD,
        500.0,
    ),
    ("aten::linear", "aten::addmm", _gemm("128x128", "tn"), 150.0),
    ("aten::add", "aten::add", ADD, 80.0),
    ("aten::layer_norm", "aten::native_layer_norm", LAYER_NORM, 60.0),
    ("aten::linear", "aten::addmm", _gemm("256x128", "tn"), 560.0),
    ("aten::gelu", "aten::gelu", GELU, 160.0),
    ("aten::linear", "aten::addmm", _gemm("128x256", "tn"), 540.0),
    ("aten::add", "aten::add", ADD, 80.0),
)
BACKWARD_LAYER = (
    ("AddmmBackward0", "aten::mm", _gemm("128x256", "nn"), 550.0),
    ("AddmmBackward0", "aten::mm", _gemm("128x128", "nt"), 560.0),
    ("AddmmBackward0", "aten::sum", REDUCE, 50.0),
    ("GeluBackward0", "aten::gelu_backward", GELU_GRAD, 200.0),
    ("AddmmBackward0", "aten::mm", _gemm("256x128", "nn"), 560.0),
    ("AddmmBackward0", "aten::mm", _gemm("128x128", "nt"), 570.0),
    ("NativeLayerNormBackward0", "aten::native_layer_norm_backward", LAYER_NORM_GRAD, 110.0),
    ("NativeLayerNormBackward0", "aten::native_layer_norm_backward", GAMMA_BETA, 60.0),
    ("AddmmBackward0", "aten::mm", _gemm("128x128", "nn"), 150.0),
    ("AddmmBackward0", "aten::mm", _gemm("64x128", "nt"), 160.0),
    (
        "ScaledDotProductFlashAttentionBackward0",
        "aten::_flash_attention_backward",
        FLASH_BACKWARD,
        1250.0,
    ),
    ("AddmmBackward0", "aten::mm", _gemm("256x128", "nn"), 420.0),
    ("AddmmBackward0", "aten::mm", _gemm("128x128", "nt"), 430.0),
    ("NativeLayerNormBackward0", "aten::native_layer_norm_backward", LAYER_NORM_GRAD, 110.0),
    ("AccumulateGrad", "aten::add_", ADD, 60.0),
)
HEAD = (
    ("aten::linear", "aten::addmm", _gemm("256x128", "tn"), 1400.0),
    ("aten::cross_entropy_loss", "aten::_log_softmax", SOFTMAX, 420.0),
)
HEAD_BACKWARD = (
    ("AddmmBackward0", "aten::mm", _gemm("256x128", "nn"), 1400.0),
    ("AddmmBackward0", "aten::mm", _gemm("128x256", "nt"), 1450.0),
)
STEM = (("aten::to", "aten::copy_", COPY, 60.0), ("aten::add", "aten::add", ADD, 60.0))
STEM_BACKWARD = (("AddBackward0", "aten::sum", REDUCE, 70.0),)
OPTIMIZER_KERNELS = 4
OPTIMIZER_KERNEL_US = 210.0


def step_work(scenario: Scenario) -> Iterator[Work]:
    """Forward, backward with its buckets, optimizer: everything a step launches, in order."""
    scale = scenario.kernel_scale
    for row in (*STEM, *FORWARD_LAYER * scenario.layers, *HEAD):
        yield _launch(row, scale, "forward")
    for row in HEAD_BACKWARD:
        yield _launch(row, scale, "backward")
    for layer in range(1, scenario.layers + 1):
        for row in BACKWARD_LAYER:
            yield _launch(row, scale, "backward")
        if layer % scenario.layers_per_bucket == 0:
            yield Bucket(scenario.bucket_elements)
    for row in STEM_BACKWARD:
        yield _launch(row, scale, "backward")
    yield Bucket(scenario.last_bucket_elements)
    for _ in range(OPTIMIZER_KERNELS):
        row = ("aten::_fused_adamw_", "aten::_fused_adamw_", FUSED_ADAM, OPTIMIZER_KERNEL_US)
        yield _launch(row, scale, "optimizer")


def _launch(row: tuple[str, str, str, float], scale: float, phase: str) -> Launch:
    op, inner, kernel, device_us = row
    return Launch(op, inner, kernel, device_us * scale, phase)


def all_reduce_ns(scenario: Scenario, elements: int) -> int:
    """Time of one ring all-reduce of float32 once everybody is there: latency plus bus time."""
    bus_bytes = 4 * elements * 2 * (scenario.ranks - 1) / scenario.ranks
    return 18_000 + round(bus_bytes / scenario.bus_gb_per_s)
