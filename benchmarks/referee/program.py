"""What does a host do in one step of a job, call by call?

Nanoseconds. The one idea: every rank and step runs the same list of operations; only the times
drawn for them differ, by their place in the list.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from referee.job import Job
from referee.ops import AUTOGRAD, COMMUNICATION, COMPUTE, LOSS, MAIN, Do, Op

# name, operators, share of a mean kernel
Row = tuple[str, str, str, float]
_GEMM = "ampere_bf16_s16816gemm_bf16_{}_ldg8_f2f_stages_64x3_tn"
_VECTOR = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>(int, at::native::{})"
_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int, float)"
_NORM_GRAD = "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float>(float*)"
_FLASH = "void pytorch_flash::flash_{}_kernel<Flash_traits<64, 128> >(pytorch_flash::Params)"
_SUM = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float> >(float*)"
_FUSED = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::FusedAdamMathFunctor<float> >()"
)
_NCCL = "ncclDevKernel_{}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _vector(functor: str) -> str:
    return _VECTOR.format(functor, functor)


FORWARD: tuple[Row, ...] = (
    ("aten::layer_norm", "aten::native_layer_norm", _NORM, 0.3),
    ("aten::linear", "aten::addmm", _GEMM.format("256x128"), 1.6),
    ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward",
     _FLASH.format("fwd"), 1.9),
    ("aten::linear", "aten::addmm", _GEMM.format("128x128"), 0.6),
    ("aten::layer_norm", "aten::native_layer_norm", _NORM, 0.3),
    ("aten::linear", "aten::addmm", _GEMM.format("256x64"), 1.7),
    ("aten::gelu", "aten::gelu", _vector("GeluCUDAKernelImpl"), 0.5),
    ("aten::linear", "aten::addmm", _GEMM.format("128x256"), 1.1),
)  # fmt: skip
BACKWARD: tuple[Row, ...] = (
    ("AddmmBackward0", "aten::mm", _GEMM.format("128x256"), 1.5),
    ("AddmmBackward0", "aten::mm", _GEMM.format("128x64"), 1.5),
    ("AddmmBackward0", "aten::sum", _SUM, 0.2),
    ("GeluBackward0", "aten::gelu_backward", _vector("GeluBackwardCUDAKernelImpl"), 0.6),
    ("AddmmBackward0", "aten::mm", _GEMM.format("256x128"), 1.5),
    ("NativeLayerNormBackward0", "aten::native_layer_norm_backward", _NORM_GRAD, 0.4),
    ("AddmmBackward0", "aten::mm", _GEMM.format("64x128"), 0.7),
    ("FlashAttentionBackward0", "aten::_flash_attention_backward", _FLASH.format("bwd"), 3.0),
    ("AddmmBackward0", "aten::mm", _GEMM.format("64x256"), 1.2),
    ("AddmmBackward0", "aten::sum", _SUM, 0.2),
    ("NativeLayerNormBackward0", "aten::native_layer_norm_backward", _NORM_GRAD, 0.4),
    ("torch::autograd::AccumulateGrad", "aten::add_", _vector("CUDAFunctor_add"), 0.8),
)


def layer_us(job: Job) -> float:
    """Device time of one layer, forward and backward."""
    return job.kernel_us * sum(row[3] for row in (*FORWARD, *BACKWARD))


@dataclass
class _Writer:
    """Appends operations; knows the job's costs."""

    job: Job
    ops: list[Op] = field(default_factory=list)
    events: int = LOSS
    thread: str = MAIN

    def host(self, micros: float) -> None:
        self.ops.append(Op(Do.HOST, thread=self.thread, host_ns=round(micros * 1000)))

    def annotation(self, do: Do, name: str) -> None:
        self.ops.append(Op(do, name, thread=self.thread, host_ns=2_000))

    def kernel(self, row: Row, micros: float, *, optimizer: bool = False) -> None:
        outer, inner, name, share = row
        if self.thread == AUTOGRAD:
            outer = f"autograd::engine::evaluate_function: {outer}"
        self.ops.append(
            Op(Do.LAUNCH, name, "cudaLaunchKernel", (outer, inner), self.thread,
               host_ns=round(self.job.dispatch_us * 1000), call_ns=round(self.job.call_us * 1000),
               device_ns=round(share * micros * 1000), optimizer=optimizer)
        )  # fmt: skip

    def layer(self, rows: tuple[Row, ...]) -> None:
        for row in rows:
            self.kernel(row, self.job.kernel_us)

    def record(self, event: int, stream: int) -> None:
        self.ops.append(Op(Do.RECORD, call="cudaEventRecord", thread=self.thread, stream=stream,
                           host_ns=600, call_ns=900, event=event))  # fmt: skip

    def wait(self, event: int, stream: int, *, early: bool = False) -> None:
        self.ops.append(Op(Do.WAIT, call="cudaStreamWaitEvent", thread=self.thread, stream=stream,
                           host_ns=600, call_ns=900, event=event, early=early))  # fmt: skip

    def collective(self, kind: str, size: int) -> int:
        """As ProcessGroupNCCL does it; returns the event that tells the end of the collective."""
        self.events += 2
        ready, done = self.events - 1, self.events
        self.record(ready, COMPUTE)
        self.wait(ready, COMMUNICATION)
        words = {"allreduce": "AllReduce_Sum_bf16", "_allgather_base": "AllGather"}
        name = _NCCL.format(words.get(kind, "ReduceScatter_Sum_bf16"))
        self.ops.append(
            Op(Do.COLLECTIVE, name, "cudaLaunchKernelExC",
               (f"c10d::{kind}_", "record_param_comms"), self.thread, COMMUNICATION,
               host_ns=round(self.job.dispatch_us * 500),
               call_ns=round(self.job.call_us * 1200), size=size, kind=kind)
        )  # fmt: skip
        self.record(done, COMMUNICATION)
        return done

    def copy(self, name: str, micros: float, size: int, *, blocks: bool, batch: bool) -> None:
        self.ops.append(
            Op(Do.COPY, name, "cudaMemcpyAsync", ("aten::to", "aten::copy_"),
               host_ns=8_000, call_ns=5_000, device_ns=round(micros * 1000), blocks=blocks,
               batch=batch, size=size)
        )  # fmt: skip

    def sync(self, do: Do, call: str, event: int = -1) -> None:
        self.ops.append(Op(do, call=call, host_ns=1_500, call_ns=2_000, event=event))

    def item(self) -> None:
        """`.item()`: the copy's call or the synchronisation behind it is what blocks."""
        blocks = self.job.copy_call_blocks
        where = "Pageable" if blocks else "Pinned"
        self.copy(f"Memcpy DtoH (Device -> {where})", 1.5, 4, blocks=blocks, batch=False)
        self.sync(Do.SYNC_STREAM, "cudaStreamSynchronize")


def step_program(job: Job) -> list[Op]:
    """The operations of one step, in the order the host issues them."""
    out = _Writer(job)
    out.annotation(Do.OPEN, "ProfilerStep#{}")
    for micro in range(job.micro_batches):
        _input(out)
        last = micro == job.micro_batches - 1
        _forward(out)
        out.host(20)
        out.thread = AUTOGRAD
        _backward(out, communicates=last)
        out.thread = MAIN
        out.host(12)
    if job.strategy == "clip":
        _clip(out)
    _optimizer(out)
    _end(out)
    out.annotation(Do.CLOSE, "ProfilerStep#{}")
    return out.ops


def _input(out: _Writer) -> None:
    loader = out.job.loader
    kind = "MultiProcessing" if loader.workers else "SingleProcess"
    name = f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__"
    out.ops.append(Op(Do.LOAD, name, host_ns=3_000, call_ns=40_000 if loader.workers else 0,
                      device_ns=round(loader.batch_us * 1000)))  # fmt: skip
    pageable = loader.copy == "pageable"
    where = "Pageable" if pageable else "Pinned"
    size = round(loader.copy_us * 1000 * (5 if pageable else 12))
    name = f"Memcpy HtoD ({where} -> Device)"
    out.copy(name, loader.copy_us, size, blocks=pageable, batch=True)
    if loader.copy != "pinned":
        out.sync(Do.SYNC_STREAM, "cudaStreamSynchronize")


def _forward(out: _Writer) -> None:
    job = out.job
    if job.strategy == "fsdp":
        gathered = out.collective("_allgather_base", _shard_bytes(job, 0))
    for layer in range(job.layers):
        if job.strategy == "fsdp":
            mine = gathered
            if layer < job.layers - 1:
                gathered = out.collective("_allgather_base", _shard_bytes(job, layer + 1))
            out.wait(mine, COMPUTE, early=True)
        for half in (FORWARD[:4], FORWARD[4:]):
            out.layer(half)
            if job.strategy == "tp":
                done = out.collective("allreduce", job.layer_bytes)
                out.wait(done, COMPUTE, early=True)
        if layer < job.layers_read:
            out.item()
    if job.strategy == "tp":  # the cross entropy of a sharded vocabulary
        out.wait(out.collective("allreduce", job.layer_bytes // 100), COMPUTE, early=True)


def _shard_bytes(job: Job, layer: int) -> int:
    """The first layer also holds the embedding."""
    return job.layer_bytes * 3 // 2 if layer == 0 else job.layer_bytes


def _backward(out: _Writer, *, communicates: bool) -> None:
    {"tp": _backward_tp, "fsdp": _backward_fsdp}.get(out.job.strategy, _backward_ddp)(
        out, communicates
    )


def _backward_ddp(out: _Writer, communicates: bool) -> None:
    """Also of a single device, which has nothing to reduce."""
    job = out.job
    reduced: list[int] = []
    for layer in range(1, job.layers + 1):
        out.layer(BACKWARD)
        full = layer % job.layers_per_bucket == 0 or layer == job.layers
        if communicates and full and job.ranks > 1:
            layers = (layer - 1) % job.layers_per_bucket + 1
            # The last bucket also holds the embedding.
            extra = job.layer_bytes // 3 if layer == job.layers else 0
            reduced.append(out.collective("allreduce", layers * job.layer_bytes + extra))
    for event in reduced:
        out.wait(event, COMPUTE)


def _backward_fsdp(out: _Writer, communicates: bool) -> None:
    job = out.job
    gathered = out.collective("_allgather_base", _shard_bytes(job, job.layers - 1))
    for layer in reversed(range(job.layers)):
        mine = gathered
        if layer > 0:
            gathered = out.collective("_allgather_base", _shard_bytes(job, layer - 1))
        out.wait(mine, COMPUTE, early=True)
        out.layer(BACKWARD)
        scattered = out.collective("_reduce_scatter_base", _shard_bytes(job, layer))
    out.wait(scattered, COMPUTE)


def _backward_tp(out: _Writer, communicates: bool) -> None:
    halves = (BACKWARD[:6], BACKWARD[6:]) * out.job.layers
    for i, half in enumerate(halves):
        out.layer(half)
        done = out.collective("allreduce", out.job.layer_bytes)
        out.wait(done, COMPUTE, early=i < len(halves) - 1)


def _clip(out: _Writer) -> None:
    job = out.job
    for _ in range(3):
        out.kernel(("aten::_foreach_norm", "aten::_foreach_norm", _SUM, 0.2), job.kernel_us)
    out.item()
    for _ in range(2):
        row = ("aten::_foreach_mul_", "aten::_foreach_mul_", _vector("MulFunctor"), 0.2)
        out.kernel(row, job.kernel_us)


def _optimizer(out: _Writer) -> None:
    job = out.job
    out.annotation(Do.OPEN, "Optimizer.step#AdamW.step")
    names = (
        ("aten::_fused_adamw_", "aten::_fused_adamw_", _FUSED),
        ("aten::addcmul_", "aten::addcmul_", _vector("addcmul_cuda_kernel")),
    )
    name = names[0 if job.optimizer_fused else 1]
    for _ in range(job.optimizer_kernels):
        out.kernel((*name, 1.0), job.optimizer_us / job.optimizer_kernels, optimizer=True)
    out.annotation(Do.CLOSE, "Optimizer.step#AdamW.step")
    out.host(8)


def _end(out: _Writer) -> None:
    job = out.job
    if job.step_end == "item":
        out.item()
    elif job.step_end == "device":
        out.sync(Do.SYNC_DEVICE, "cudaDeviceSynchronize")
    elif job.step_end == "lagged":
        out.copy("Memcpy DtoH (Device -> Pinned)", 1.5, 4, blocks=False, batch=False)
        out.sync(Do.SYNC_EVENT, "cudaEventSynchronize", LOSS)
        out.record(LOSS, COMPUTE)
    out.host(10 + job.log_us)
