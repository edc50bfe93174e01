#include "scenario/parallel/backward_split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "importers/model.h"
#include "lower/program.h"
#include "scenario/internal.h"
#include "scenario/pass/pass.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "training_steps.h"

namespace tilecast {
namespace {

struct ProductFlops {
  int64_t inputs = 0, weights = 0;
};

/// FLOPs of the products of the backward pass, by what they are for.
ProductFlops product_flops_of(const Request& asked, const std::string& name) {
  const ModelRef model = load_model_ref(name);
  const GpuRef gpu = load_gpu_ref("b200");
  const auto [request, precision] = checked_pass(model.content->model, gpu.content->device, asked);
  const Graph graph = build_graph(model.content->model, request, precision);
  const Program program = lower(graph);
  const std::vector<bool> of_weights = weight_gradient_launches(graph, program);
  ProductFlops flops;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    const Kernel& kernel = program.kernels[launch.kernel];
    if (of_weights[i]) {
      EXPECT_EQ(launch.node->phase, Phase::kBackward) << launch.node->name;
    }
    if (launch.node->phase != Phase::kBackward || !kernel.is<Gemm>() || launch.node->recomputed)
      continue;
    (of_weights[i] ? flops.weights : flops.inputs) += kernel.flops * program.count(launch);
  }
  return flops;
}

/// Each layer multiplies once for its input's gradient and once for its weight's.
TEST(BackwardSplit, ProductsForInputsAndWeightsHaveTheSameWork) {
  for (const char* software : {"pytorch", "megatron"}) {
    for (const char* model : {"llama-3.2-1b", "gpt2", "mixtral-8x7b"}) {
      for (const Checkpointing checkpointing : {Checkpointing::kNone, Checkpointing::kFull}) {
        for (const char* dtype : {"bf16", "fp8", "fp4"}) {
          Request request = training(1);
          request.execution.dtype = dtype;
          request.execution.software = software_of(software);
          request.execution.attention = AttentionKind::kFlash;
          request.checkpointing = checkpointing;
          const ProductFlops flops = product_flops_of(request, model);
          EXPECT_GT(flops.weights, 0) << model;
          EXPECT_EQ(flops.weights, flops.inputs) << software << " " << model << " " << dtype;
        }
      }
    }
  }
}

TEST(BackwardSplit, FrozenWeightsHaveNoGradients) {
  Request request = training(1);
  request.execution.dtype = "bf16";
  request.execution.attention = AttentionKind::kFlash;
  request.lora_rank = 8;
  const ProductFlops flops = product_flops_of(request, "llama-3.2-1b");
  EXPECT_GT(flops.weights, 0);
  EXPECT_LT(flops.weights, flops.inputs / 20);
}

/// A pipeline of four stages with a schedule.
Request pipeline(PipelineSchedule schedule) {
  Request request = training(16);
  request.execution.dtype = "bf16";
  request.execution.fusion = Fusion::kPointwise;
  request.execution.attention = AttentionKind::kFlash;
  request.execution.pp = 4;
  request.parallel.micro_batch_size = 1;
  request.parallel.schedule = schedule;
  return request;
}

/// The second of four stages holds three micro-batches before their backward pass, and one more
/// between that and the gradients of weights. That keeps, in bytes for each token and hidden
/// element, the inputs of products: of queries, keys and values 2, of attention's output 2, of gate
/// and up 2, of down 7; and gradients: of queries 2, keys and values 1, attention's output layer 2,
/// gate and up 14, down 2.
TEST(BackwardSplit, AMicroBatchThatWaitsKeepsWhatProductsRead) {
  const auto activations = [](PipelineSchedule schedule) {
    return forecast(pipeline(schedule), "llama-3-8b").parallel->stages[1].memory.activations_bytes;
  };
  const int64_t kept =
      activations(PipelineSchedule::kZeroBubble) - activations(PipelineSchedule::k1F1B);
  constexpr double kLayers = 8, kTokens = 1024, kHidden = 4096;
  EXPECT_NEAR(static_cast<double>(kept) / (kLayers * kTokens * kHidden), 34, 0.34);
}

/// The same kernels run, whatever the schedule; the zero bubbles of the papers are shorter.
TEST(BackwardSplit, SchedulesDoTheSameWork) {
  const Forecast plain = forecast(pipeline(PipelineSchedule::k1F1B), "llama-3-8b");
  double before = plain.latency_s;
  for (const PipelineSchedule schedule : {PipelineSchedule::kZeroBubble, PipelineSchedule::kZbV}) {
    const Forecast f = forecast(pipeline(schedule), "llama-3-8b");
    // Each part computes the angles of rotary embedding itself.
    EXPECT_NEAR(static_cast<double>(f.model_flops) / static_cast<double>(plain.model_flops), 1,
                1e-6);
    EXPECT_EQ(f.parameters, plain.parameters);
    EXPECT_LT(f.latency_s, before);
    before = f.latency_s;
    int64_t layers = 0;
    for (const StageForecast& stage : f.parallel->stages) layers += stage.layers;
    EXPECT_EQ(layers, 32);
  }
}

TEST(BackwardSplit, WhatSchedulesCannotDoIsRefused) {
  const auto with = [](auto set) {
    Request request = pipeline(PipelineSchedule::kZeroBubble);
    set(request);
    return forecast(request, "llama-3.2-1b");
  };
  EXPECT_ERROR(with([](auto& r) { r.execution.pp = 1; }), kInput,
               "`pipeline-schedule` zero-bubble needs `pp` of 2 or more");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.dp = 2;
                 r.parallel.zero = Zero::kParameters;
               }),
               kInput, "`pipeline-schedule` zero-bubble with `zero` 3");
  EXPECT_ERROR(with([](auto& r) { r.execution.fusion = Fusion::kInductor; }), kInput,
               "`pipeline-schedule` zero-bubble with `fusion` inductor");
  EXPECT_ERROR(with([](auto& r) {
                 r.parallel.schedule = PipelineSchedule::kZbV;
                 r.execution.pp = 16;
                 r.parallel.cluster = "dgx-a100";
               }),
               kInput, "16 layers in 32 parts");
}

}  // namespace
}  // namespace tilecast
