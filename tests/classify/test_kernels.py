"""Real names from real traces and libraries, and what each of them is."""

from __future__ import annotations

import pytest

from analyzer.classify.kernels import (
    Activity,
    KernelRules,
    collective_kind,
    copy_direction,
    is_allocator_call,
    is_blocking_call,
    is_collective_op,
    is_graph_launch,
    is_loader_event,
    is_optimizer_annotation,
    is_pageable_copy,
    is_single_process_loader,
    tensor_core,
)
from analyzer.errors import UsageError
from analyzer.trace.schema import Kind

RULES = KernelRules()

COMMUNICATION = [
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
    ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, ncclWork*)", "reduce_scatter"),
    ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"),
    ("ncclDevKernel_Reduce_Sum_f32_TREE_LL(ncclDevComm*)", "reduce"),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)", "broadcast"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "unspecified"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "unspecified"),
    ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymkDevWorkArgs4K)", "all_reduce"),
    ("ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_bf16", "reduce_scatter"),
    ("void rccl_main_kernel<1>(ncclDevKernelArgs)", "unspecified"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "all_reduce"),
    ("void sglang::cross_device_reduce_2stage<__half, 4>(sglang::RankData*)", "all_reduce"),
    ("_ZN4vllm26cross_device_reduce_2stageI14__hip_bfloat16Li8EEEvPNS_8RankDataE", "all_reduce"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8>(AllReduceParams)", "all_reduce"),
    (
        "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)2, "
        "__nv_bfloat16, true>(flashinfer::trtllm_mnnvl_allreduce::AllReduceFusionParams)",
        "all_reduce",
    ),
    (
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
        "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)0, __nv_bfloat16, 8>(int)",
        "all_reduce",
    ),
    (
        "quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>>>",
        "all_reduce",
    ),
    (
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "all_reduce",
    ),
    (
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(int)",
        "all_reduce",
    ),
    ("c10d::symmetric_memory::barrier_kernel(unsigned int**, int)", "unspecified"),
    ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "dispatch"),
    ("void deep_ep::internode_ll::combine<true, 7168, 9>(void*)", "combine"),
    ("void deep_ep::intranode::cached_notify_combine<8>(void**)", "combine"),
    ("void dpsk::ep::internode::notify_dispatch<false, 8>(int const*)", "dispatch"),
    ("_ZN7deep_ep9internode8dispatchILb0ELi8EEEvP4int4", "dispatch"),
    ("mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(int)", "dispatch"),
    ("void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel<true>(int)", "all_to_all"),
    ("void nvshmemi_proxy_quiet_kernel<int>(int)", "unspecified"),
    ("userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int)", "unspecified"),
    ("oneccl_allreduce_pcie", "all_reduce"),
    ("hcom_allGather__428_0_1", "all_gather"),
    ("Memcpy PtoP (Device -> Device)", "unspecified"),
]

FUSED = [
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
    "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>(int)",
    "void aiter::allreduce_fusion_kernel_1stage<bf16, 8>(int)",
    "moereduce_allreduce_fusion_kernel_oneshot_lamport<__half, 8, true, true, false>(int)",
    "void oneshotAllreduceFusionKernel<(unsigned char)4, __nv_bfloat16, true>(AllReduceParams)",
    "void tensorrt_llm::kernels::one_shot_all_reduce_norm_kernel<__half, 8>(AllReduceParams)",
    "void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<__nv_bfloat16, float>(int)",
    "_fused_all_gather_matmul_kernel",
]

# Harmless names with the words of communication in them.
COMPUTE = [
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)", "reduction"),
    (
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*>>(long*)",
        "reduction",
    ),
    ("void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)", "matmul"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int>(cublasSplitKParams<float>)", "matmul"),
    ("void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64>>(int)", "attention"),
    (
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(int)",
        "normalization",
    ),
    ("triton_poi_fused_add_all_reduce_4", "triton"),
    ("triton_red_fused__to_copy_all_gather_into_tensor_mul_2", "triton"),
    ("triton_tem_fused_mm_3", "matmul"),
    ("triton_tem_fused_flex_attention_1", "attention"),
    ("triton_per_fused__flash_attn_backward_mul_8", "triton"),
    ("void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*, int*)", "other"),
    ("void warpAllReduceSoftmax<float>(float*)", "normalization"),
    ("void moe_combine_kernel<float>(float*)", "other"),
    ("void cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*)", "normalization"),
    ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "matmul"),
    ("volta_scudnn_128x64_relu_interior_nn_v1", "matmul"),
    ("Cijk_Alik_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN", "matmul"),
    ("void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(int)", "normalization"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
        "memory",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(i)",
        "elementwise",
    ),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 2>(float*)", "memory"),
    ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>(int)", "memory"),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise"),
    (
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<>()",
        "embedding",
    ),
    ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "memory"),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, "
        "LpNormFunctor<float, 1>>(int)",
        "reduction",
    ),
]

OPTIMIZER = [
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
    "FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>(int)",
    "void kOptimizerStatic8bit2State<__half, 1>(__half*)",
]


@pytest.mark.parametrize("name, collective", COMMUNICATION)
def test_a_kernel_that_only_moves_data_between_ranks_is_communication(
    name: str, collective: str
) -> None:
    assert (RULES.activity(name), RULES.kind(name)) == (Activity.COMMUNICATION, collective)


@pytest.mark.parametrize("name", FUSED)
def test_communication_and_compute_in_one_kernel_is_a_class_of_its_own(name: str) -> None:
    assert RULES.activity(name) == Activity.FUSED


@pytest.mark.parametrize("name, kind", COMPUTE)
def test_a_compute_kernel_stays_compute_whatever_its_arguments_are_called(
    name: str, kind: str
) -> None:
    assert (RULES.activity(name), RULES.kind(name)) == (Activity.COMPUTE, kind)


@pytest.mark.parametrize("name", OPTIMIZER)
def test_an_optimizer_kernel_is_known_by_its_functor(name: str) -> None:
    assert (RULES.activity(name), RULES.kind(name)) == (Activity.OPTIMIZER, "optimizer")


@pytest.mark.parametrize(
    "name", ["__amd_rocclr_copyBuffer.kd", "__amd_rocclr_fillBufferAligned", "CopyHostToDevice"]
)
def test_a_copy_filed_under_kernels_by_rocm_equals_a_copy_filed_as_copy(name: str) -> None:
    assert RULES.activity(name, Kind.KERNEL) == RULES.activity(name, Kind.MEMCPY) == Activity.COPY
    assert RULES.kind(name, Kind.KERNEL) == "memory"


@pytest.mark.parametrize(
    "name, kind",
    [
        ("Memcpy HtoD (Pinned -> Device)", Kind.MEMCPY),
        ("Memcpy DtoD (Device -> Device)", Kind.MEMCPY),
        ("Memset (Device)", Kind.MEMSET),
        ("a name no rule knows", Kind.MEMCPY),
    ],
)
def test_copies_and_sets_are_copies(name: str, kind: Kind) -> None:
    assert RULES.activity(name, kind) == Activity.COPY


def test_a_triton_kernel_called_memcpy_is_a_kernel() -> None:
    assert RULES.activity("memcpy_fp16_kernel") == Activity.COMPUTE


def test_a_users_rule_comes_before_the_built_in_ones_and_ignores_case() -> None:
    rules = KernelRules({"communication": ["my_ring"], "compute": [r"^ncclDevKernel_Warmup"]})
    assert rules.activity("void My_Ring_exchange<float>(float*)") == Activity.COMMUNICATION
    assert rules.kind("void My_Ring_exchange<float>(float*)") == "unspecified"
    assert rules.activity("ncclDevKernel_Warmup(int)") == Activity.COMPUTE


def test_an_empty_list_of_user_rules_changes_nothing() -> None:
    assert KernelRules({"communication": []}).activity("gemm_kernel") == Activity.COMPUTE


def test_an_unknown_key_names_the_keys_there_are() -> None:
    with pytest.raises(UsageError, match="'comm'") as failure:
        KernelRules({"comm": ["x"]})
    assert failure.value.hint == "use one of: compute, optimizer, communication, fused, copy"


def test_a_pattern_that_does_not_compile_is_named() -> None:
    with pytest.raises(UsageError, match=r"communication: 'ring\(' is no regular expression"):
        KernelRules({"communication": ["ring("]})


@pytest.mark.parametrize(
    "text, collective",
    [
        ("_allgather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("allreduce_coalesced", "all_reduce"),
        ("all_to_allv", "all_to_all"),
        ("nccl:_broadcast_oop", "broadcast"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("wait", "unspecified"),
    ],
)
def test_collective_names_of_metadata_use_the_same_words(text: str, collective: str) -> None:
    assert collective_kind(text) == collective


@pytest.mark.parametrize(
    "name, uses",
    [
        ("ampere_sgemm_128x64_nn", False),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", True),
        ("ampere_fp16_sgemm_fp16_128x64_tn", False),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", True),
        ("volta_scudnn_128x64_relu_interior_nn_v1", False),
        ("volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", True),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_tn_align1>(int)", False),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(int)", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_aligna4", False),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_tensor16x8x8_kernel", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", True),
        ("cutlass3x_sm100_tensorop_s256x128x16gemm_bf16", True),
        ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", True),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7>(int)", False),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int)", False),
        ("Cijk_Alik_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_SN", True),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1", False),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8", True),
        ("gemm_kernel", None),
        ("SubTensorOpWithScalar1d", None),
    ],
)
def test_the_name_of_a_matrix_kernel_says_which_units_it_uses(name: str, uses: bool | None) -> None:
    assert tensor_core(name) is uses


@pytest.mark.parametrize(
    "name, starts",
    [
        ("record_param_comms", True),
        ("c10d::_allgather_base_", True),
        ("nccl:all_reduce", True),
        ("gloo:all_reduce", True),
        ("_c10d_functional::all_gather_into_tensor", True),
        ("_c10d_functional::wait_tensor", False),
        ("symm_mem::multimem_all_reduce_", True),
        ("vllm::all_gather", True),
        ("vllm::moe_forward", False),
        ("aten::copy_", False),
        ("FSDP::all_gather", False),
    ],
)
def test_a_collective_op_is_one_that_starts_a_transfer(name: str, starts: bool) -> None:
    assert is_collective_op(name) is starts


@pytest.mark.parametrize(
    "name, is_loader, single",
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", True, True),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True, False),
        ("enumerate(DataPipe)#BatcherIterDataPipe", True, False),
        ("DataLoader.__next__", True, False),
        ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", True, False),
        ("## wait_for_batch ##", False, False),
        ("DataLoader._try_get_data", False, False),
    ],
)
def test_loader_events_are_the_waits_for_the_next_batch(
    name: str, is_loader: bool, single: bool
) -> None:
    assert (is_loader_event(name), is_single_process_loader(name)) == (is_loader, single)


@pytest.mark.parametrize(
    "name, blocks",
    [
        ("cudaStreamSynchronize", True),
        ("cudaDeviceSynchronize", True),
        ("cudaEventSynchronize", True),
        ("hipDeviceSynchronize", True),
        ("cuCtxSynchronize", True),
        ("cudaMemcpy", True),
        ("cuMemcpyDtoH_v2", True),
        ("hipMemcpyWithStream", True),
        ("synchronizeStream", True),
        ("urQueueFinish", True),
        ("zeCommandQueueSynchronize", True),
        ("AscendCL@aclrtSynchronizeStream", True),
        ("cudaEventQuery", False),
        ("cudaMemcpyAsync", False),
        ("cuMemcpyDtoHAsync_v2", False),
        ("cudaStreamWaitEvent", False),
        ("cudaLaunchKernel", False),
        ("cudaMemcpyPeer", False),
    ],
)
def test_a_blocking_call_waits_for_the_device(name: str, blocks: bool) -> None:
    assert is_blocking_call(name) is blocks


@pytest.mark.parametrize(
    "name, allocates",
    [
        ("cudaMalloc", True),
        ("cudaFree", True),
        ("cudaHostAlloc", True),
        ("cudaFreeHost", True),
        ("cudaMallocAsync", True),
        ("hipMalloc", True),
        ("hipHostMalloc", True),
        ("cuMemMap", True),
        ("urUSMDeviceAlloc", True),
        ("cudaMemcpyAsync", False),
        ("cuMemcpyHtoD_v2", False),
        ("cudaMemsetAsync", False),
    ],
)
def test_an_allocator_call_gets_or_returns_memory(name: str, allocates: bool) -> None:
    assert is_allocator_call(name) is allocates


@pytest.mark.parametrize(
    "name, launches",
    [
        ("cudaGraphLaunch", True),
        ("cudaGraphLaunch_v10000", True),
        ("hipGraphLaunch", True),
        ("cudaGraphInstantiate", False),
        ("cudaLaunchKernel", False),
    ],
)
def test_only_the_launch_of_a_graph_is_a_graph_launch(name: str, launches: bool) -> None:
    assert is_graph_launch(name) is launches


def test_zero_grad_is_not_the_optimizer_step() -> None:
    assert is_optimizer_annotation("Optimizer.step#FusedAdam.step")
    assert not is_optimizer_annotation("Optimizer.zero_grad#FusedAdam.zero_grad")


@pytest.mark.parametrize(
    "name, direction, pageable",
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", True),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", False),
        ("CopyDeviceToDevice", None, False),
    ],
)
def test_a_copy_says_where_it_goes_unless_rocm_wrote_it(
    name: str, direction: str | None, pageable: bool
) -> None:
    assert (copy_direction(name), is_pageable_copy(name)) == (direction, pageable)
