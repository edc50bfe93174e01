// The kernels of low-rank adapters in a step of serving software.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "importers/model.h"
#include "lower/program.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/serving.h"

namespace tilecast {
namespace {

Graph step_with_adapters(const std::string& model, const StepAdapters& adapters, int64_t tp = 1) {
  const Graph modules = load_model(model).build({.dtype = DType::kBf16});
  return fuse(shard(modules, tp), {.groups = {{8, 1, 100}}, .adapters = adapters});
}

StepAdapters of_rank_16(std::vector<std::string> targets = {"all-linear"}) {
  return {.rank = 16, .kept_rank = 32, .slots = 4, .used = 3, .targets = std::move(targets)};
}

/// Shapes of the weights of adapters by the ends of their names.
std::map<std::string, Shape> adapter_weights(const Graph& graph) {
  std::map<std::string, Shape> shapes;
  for (const Tensor& tensor : graph.tensors) {
    const size_t at = tensor.name.find(".lora_");
    if (tensor.kind != TensorKind::kWeight || at == std::string::npos) continue;
    const size_t dot = tensor.name.rfind('.', at - 1);
    shapes[tensor.name.substr(dot == std::string::npos ? 0 : dot + 1)] = tensor.shape;
  }
  return shapes;
}

TEST(ServedAdapters, MergedLayersHaveOneCallOfEachKernel) {
  // llama-3-8b: hidden 4096, keys of 1024, ffn 14336. Four slots, rank 32 kept.
  const std::map<std::string, Shape> shapes =
      adapter_weights(step_with_adapters("llama-3-8b", of_rank_16()));
  std::multiset<Shape> found;
  for (const auto& [name, shape] : shapes) found.insert(shape);
  EXPECT_EQ(found, (std::multiset<Shape>{{4, 3 * 32, 4096},  // q, k and v
                                         {4, 4096 + 2 * 1024, 32},
                                         {4, 32, 4096},  // o
                                         {4, 4096, 32},
                                         {4, 2 * 32, 4096},  // gate and up
                                         {4, 2 * 14336, 32},
                                         {4, 32, 14336},  // down
                                         {4, 4096, 32}}));
}

TEST(ServedAdapters, RanksHaveTheirSharesOfAColumnsOutputsAndARowsInputs) {
  std::multiset<Shape> found;
  for (const auto& [name, shape] :
       adapter_weights(step_with_adapters("llama-3-8b", of_rank_16(), 8)))
    found.insert(shape);
  EXPECT_EQ(found, (std::multiset<Shape>{{4, 3 * 32, 4096},
                                         {4, (4096 + 2 * 1024) / 8, 32},
                                         {4, 32, 4096 / 8},
                                         {4, 4096, 32},
                                         {4, 2 * 32, 4096},
                                         {4, 2 * 14336 / 8, 32},
                                         {4, 32, 14336 / 8},
                                         {4, 4096, 32}}));
}

TEST(ServedAdapters, OnlyTheLayersThatAreNamed) {
  std::multiset<Shape> found;
  for (const auto& [name, shape] :
       adapter_weights(step_with_adapters("llama-3-8b", of_rank_16({"q_proj", "v_proj"}))))
    found.insert(shape);
  EXPECT_EQ(found, (std::multiset<Shape>{{4, 2 * 32, 4096}, {4, 4096 + 1024, 32}}));
}

TEST(ServedAdapters, KernelsComputeTheAdaptersThatAreUsed) {
  const Graph graph = step_with_adapters("llama-3-8b", of_rank_16({"o_proj"}));
  const Program program = lower(graph);
  std::vector<Kernel> kernels;
  for (const Launch& launch : program.launches) {
    if (op_def(launch.node->op).name.starts_with("lora"))
      kernels.push_back(program.kernels[launch.kernel]);
  }
  ASSERT_EQ(kernels.size(), 2U);
  // 8 tokens in 16 bits times [16, 4096] of 3 adapters, into fp32.
  EXPECT_EQ(kernels[0].flops, 2 * 8 * 16 * 4096);
  EXPECT_EQ(kernels[0].read_bytes, 2 * (8 * 4096 + 3 * 16 * 4096));
  EXPECT_EQ(kernels[0].write_bytes, 4 * 8 * 16);
  // … times [4096, 16] of each, added to what the layer wrote.
  EXPECT_EQ(kernels[1].flops, 2 * 8 * 16 * 4096);
  EXPECT_EQ(kernels[1].read_bytes, 4 * 8 * 16 + 2 * (3 * 4096 * 16 + 8 * 4096));
  EXPECT_EQ(kernels[1].write_bytes, 2 * 8 * 4096);
}

TEST(ServedAdapters, ABufferThatIsClearedIsOneMoreKernel) {
  StepAdapters adapters = of_rank_16({"o_proj"});
  const size_t without = lower(step_with_adapters("llama-3-8b", adapters)).launches.size();
  adapters.clears_buffer = true;
  EXPECT_EQ(lower(step_with_adapters("llama-3-8b", adapters)).launches.size(), without + 1);
}

TEST(ServedAdapters, WhatTheyReadIsNotQuantizedBefore) {
  const Graph modules = load_model("llama-3-8b").build({.dtype = DType::kBf16});
  StepRequest request{.groups = {{8, 1, 100}},
                      .scheme_of = [](std::string_view, Role) { return QuantScheme::kFp8; },
                      .fusions = {.norms_quantize = true}};
  const auto quantized_before = [&] {
    const Graph graph = fuse(modules, request);
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
      return node.find_attribute("quantized_input") != nullptr;
    });
  };
  EXPECT_EQ(quantized_before(), 2) << "q, k, v after one norm, gate and up after the other";
  request.adapters = of_rank_16({"q_proj"});
  EXPECT_EQ(quantized_before(), 1);
}

}  // namespace
}  // namespace tilecast
