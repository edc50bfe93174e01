#pragma once

#include <vector>

#include "lower/program.h"
#include "predict/predictor.h"
#include "scenario/parallel/rank_layout.h"

namespace tilecast {

/// Serving software runs some small kernels of a step inside another kernel or beside it on a
/// second stream, so that their latency does not count: they take the least time that their traffic
/// and FLOPs allow.
/// - Norms after a small all-reduce between GPUs joined by NVLink, in the same kernel: vLLM's pass
///   fuse_allreduce_rms (without data parallelism and pipelines), SGLang's
///   --enable-flashinfer-allreduce-fusion, TensorRT-LLM's AllReduceFusionOp.RESIDUAL_RMS_NORM.
/// - Shared experts of few tokens, beside the routed ones: vLLM's and TensorRT-LLM's second stream;
///   SGLang counts a shared expert as one more of the routed.
/// Written from memory of these releases.
///
/// By kernel of the program, whether it is one of them.
std::vector<bool> hidden_kernels(const Program& program, const RankLayout& plan,
                                 const Device& device, Software software);

/// The least time of the kernel, with an interval up to the time that it takes where it is not
/// hidden.
void hide_latency(const Kernel& kernel, const Device& device, KernelTime& time);

}  // namespace tilecast
