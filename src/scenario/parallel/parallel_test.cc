// Training over several ranks: what must hold whatever the times are.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "scenario/parallel/collective_costs.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "training_steps.h"

namespace tilecast {
namespace {

/// FLOPs of matrix products over all ranks.
double product_flops(const Forecast& f, int64_t ranks_of_a_stage) {
  double flops = 0;
  for (const KernelForecast& k : f.kernels) {
    if (k.shape.type == "gemm")
      flops += static_cast<double>(k.flops) * static_cast<double>(k.count * ranks_of_a_stage);
  }
  return flops;
}

TEST(Parallel, OneRankOfAClusterIsOneGpuToTheBit) {
  Request request = training();
  const Forecast alone = forecast(request);
  request.parallel.cluster = "dgx-a100";
  const Forecast cluster = forecast(request);
  EXPECT_EQ(alone.latency_s, cluster.latency_s);
  EXPECT_EQ(alone.latency_s.low, cluster.latency_s.low);
  EXPECT_EQ(alone.memory.peak_bytes, cluster.memory.peak_bytes);
  ASSERT_TRUE(cluster.parallel);
  EXPECT_EQ(cluster.parallel->ranks, 1);
  EXPECT_EQ(cluster.parallel->communication_s, 0);
}

TEST(Parallel, FrozenWeightsAreNeitherReducedNorGatheredAfterTheStep) {
  Request request = training(8);
  request.execution.dp = 8;
  request.execution.dtype = "bf16";
  request.optimizer = Optimizer::kAdamW;
  const auto step = [&](Zero zero, MainParams main_params, int64_t rank) {
    request.parallel.zero = zero;
    request.parallel.main_params = main_params;
    request.lora_rank = rank;
    request.lora_dtype = rank > 0 ? LoraDType::kFp32 : LoraDType::kAsModel;
    return forecast(request, "llama-3.2-1b");
  };
  // The adapters are fp32, so copies in fp32 of the frozen weights change nothing.
  const Forecast model = step(Zero::kParameters, MainParams::kAsModel, 8);
  const Forecast copies = step(Zero::kParameters, MainParams::kFp32, 8);
  EXPECT_DOUBLE_EQ(copies.parallel->communication_s, model.parallel->communication_s);
  // 1.2 G parameters with all weights, 5.6 M with adapters.
  const double all = step(Zero::kOptimizer, MainParams::kFp32, 0).parallel->communication_s;
  const double adapters = step(Zero::kOptimizer, MainParams::kFp32, 8).parallel->communication_s;
  EXPECT_LT(adapters, 0.1 * all);
}

TEST(Parallel, OnlyDistributedDataParallelCopiesGradients) {
  Request request = training(8);
  request.execution.dp = 8;
  request.optimizer = Optimizer::kAdamW;
  for (const Zero zero : {Zero::kNone, Zero::kOptimizer, Zero::kGradients, Zero::kParameters}) {
    request.parallel.zero = zero;
    EXPECT_EQ(forecast(request, "gpt2").parallel->gradient_copies_s > 0, zero == Zero::kNone);
  }
}

/// Whatever the layout, the ranks together have the model's parameters and work: experts too.
TEST(Parallel, ParametersAndFlopsAreThoseOfTheModelInAllLayouts) {
  const std::string model = "deepseek-v2-lite";
  Request alone = training(16);
  alone.execution.software = software_of("megatron");
  alone.execution.dtype = "bf16";
  const Forecast one = forecast(alone, model);
  struct Degrees {
    int64_t dp, tp, pp, ep;
    int64_t expert_tp;  ///< 0: as tp
    bool divides_tokens;
  };
  for (const Degrees& d :
       {Degrees{16, 1, 1, 1, 0, false}, Degrees{8, 1, 1, 8, 0, false}, Degrees{4, 4, 1, 4, 0, true},
        Degrees{4, 4, 1, 8, 1, true}, Degrees{4, 1, 4, 2, 0, false}, Degrees{2, 2, 2, 4, 1, true},
        Degrees{4, 4, 1, 4, 2, true}, Degrees{8, 1, 1, 4, 2, false}, Degrees{8, 1, 1, 1, 8, false},
        Degrees{4, 2, 1, 2, 4, true}, Degrees{4, 4, 1, 4, 0, false},
        Degrees{1, 8, 1, 1, 0, false}}) {
    Request request = alone;
    request.execution.dp = d.dp;
    request.execution.tp = d.tp;
    request.execution.pp = d.pp;
    request.parallel.ep = d.ep;
    request.parallel.cluster = "dgx-a100";
    request.parallel.sequence_parallel = d.divides_tokens;
    if (d.expert_tp > 0) request.parallel.expert_tp = d.expert_tp;
    const Forecast f = forecast(request, model);
    const std::string layout = std::to_string(d.dp) + " " + std::to_string(d.tp) + " " +
                               std::to_string(d.pp) + " " + std::to_string(d.ep) + " " +
                               std::to_string(d.expert_tp);
    EXPECT_EQ(f.parameters, one.parameters) << layout;
    // `model_flops` is the mean of the ranks. Without sequence parallelism, each rank computes
    // latent vectors (576 numbers of 2,048, in 27 layers) and routers (of 64 experts, in 26) whole.
    constexpr double kWhole = 27.0 * 2048 * 576 + 26.0 * 2048 * 64, kTokens = 16 * 1024;
    const auto others = static_cast<double>(d.divides_tokens ? 0 : d.tp - 1);
    const auto model_flops = static_cast<double>(one.model_flops);
    const double expected = 1 + others * 6 * kTokens * kWhole / model_flops;
    const double all = static_cast<double>(f.model_flops) * static_cast<double>(f.gpus());
    // Tiles of few rows are half empty.
    constexpr double kTiles = 0.02;
    EXPECT_GT(all / model_flops, expected - 1e-3) << layout;
    EXPECT_LT(all / model_flops, expected + kTiles) << layout;
  }
}

/// The rank of one layout has the products of the same work asked in another way: half the batch on
/// half the ranks, or as two micro-batches.
TEST(Parallel, OneRanksWorkIsIndependentOfHowItIsAsked) {
  Request request = training(16);
  request.execution.software = software_of("megatron");
  request.execution.dtype = "bf16";
  request.execution.dp = 8;
  request.parallel.ep = 4;
  request.parallel.cluster = "dgx-a100";
  request.parallel.zero = Zero::kOptimizer;
  const auto expert_seconds = [](const Forecast& f) {
    double seconds = 0;
    for (const KernelForecast& k : f.kernels) {
      if (k.op == "experts" || k.op == "experts_backward") seconds += k.total_s();
    }
    return seconds;
  };
  const Forecast eight = forecast(request, "qwen3-30b-a3b");
  ASSERT_GT(expert_seconds(eight), 0);
  Request fewer = request;
  fewer.execution.dp = 4;
  fewer.batch = 8;
  EXPECT_NEAR(expert_seconds(forecast(fewer, "qwen3-30b-a3b")) / expert_seconds(eight), 1, 1e-9);
  Request twice = request;
  twice.batch = 32;
  twice.parallel.micro_batch_size = 2;
  EXPECT_NEAR(expert_seconds(forecast(twice, "qwen3-30b-a3b")) / expert_seconds(eight), 2, 1e-9);
}

TEST(Parallel, ProductsOfAllRanksHaveTheFlopsOfOneGpu) {
  const std::string model = "llama-3.2-1b";
  const double alone = product_flops(forecast(training(), model), 1);
  const std::vector<std::array<int64_t, 3>> degrees = {{8, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 2}};
  for (const auto& [dp, tp, pp] : degrees) {
    Request request = training();
    request.execution.dp = dp;
    request.execution.tp = tp;
    request.execution.pp = pp;
    request.parallel.vocab_divisible_by = 1;  // 128,256 rows: all degrees divide them
    const Forecast f = forecast(request, model);
    // Each rank computes the angles of rotary embedding itself.
    EXPECT_NEAR(product_flops(f, dp * tp) / alone, 1, 1e-6) << dp << " " << tp << " " << pp;
  }
}

TEST(Parallel, TensorParallelismReducesFourTimesALayer) {
  Request request = training(4);
  request.execution.tp = 4;
  const Forecast f = forecast(request);
  constexpr int64_t kLayers = 36, kHidden = 1280;
  double bytes = 0;
  for (const KernelForecast& k : f.kernels) {
    if (k.op == "all_reduce") bytes += static_cast<double>(k.shape.values[0] * k.count) * 4;
  }
  // Two in each direction; one more after the embedding and one for the gradient of the output
  // layer's input, whose padded vocabularies are divided.
  EXPECT_EQ(bytes, static_cast<double>((4 * kLayers + 2) * 4 * 1024 * kHidden * 4));
}

TEST(Parallel, SequenceParallelismMovesTheSameBytesInOtherCollectives) {
  Request request = training(4);
  request.execution.tp = 4;
  const auto sent = [](const Forecast& f, std::string_view op) {
    double elements = 0;
    for (const KernelForecast& k : f.kernels) {
      if (k.op == op) elements += static_cast<double>(k.shape.values[0] * k.count);
    }
    return elements;
  };
  const double reduced = sent(forecast(request), "all_reduce");
  request.parallel.sequence_parallel = true;
  const Forecast f = forecast(request);
  // A ring's all-reduce is a reduce-scatter and an all-gather.
  constexpr double kTokens = 4 * 1024 * 1280;
  EXPECT_NEAR(sent(f, "reduce_scatter") + sent(f, "all_gather") + 2 * sent(f, "all_reduce"),
              2 * reduced, 3 * kTokens);
}

TEST(Parallel, AccumulatingMicroBatchesTakesThemOneAfterTheOther) {
  const Forecast one = forecast(training(2));
  Request request = training(8);
  request.execution.microbatches = 4;
  const Forecast four = forecast(request);
  EXPECT_NEAR(four.latency_s, 4 * one.latency_s, 1e-9);
  EXPECT_EQ(four.parallel->ranks, 1);
}

/// The host is ahead where kernels are long: copies of gradients then cost the kernels' time alone.
TEST(Parallel, CopiesOfGradientsCostHostTimeOnlyWhereTheHostIsBehind) {
  const auto with = [](int64_t batch, double host_s) {
    Request request = training(batch);
    request.execution.dp = 2;
    request.execution.host_launch_s = host_s;
    return forecast(request, "gpt2_large");
  };
  const Forecast ahead = with(16, 20e-6), free = with(16, 0);
  EXPECT_GT(free.parallel->gradient_copies_s, 0);
  EXPECT_LT(ahead.parallel->gradient_copies_s, 1.05 * free.parallel->gradient_copies_s);
  EXPECT_LT(ahead.latency_s, 1.005 * free.latency_s);
  // 436 gradients of 16 layers' kinds: the host launches a copy of each, and one back.
  const Forecast behind = with(2, 2e-3);
  EXPECT_GT(behind.parallel->gradient_copies_s, 2 * 436 * 2e-3 * 0.9);
}

TEST(Parallel, GradientsOfMainCopiesAreReducedInTheirDtype) {
  const auto communication_s = [](const char* dtype, MainParams main_params) {
    Request request = training(8);
    request.execution.dp = 8;
    request.execution.dtype = dtype;
    request.parallel.main_params = main_params;
    request.parallel.overlap_grad_reduce = false;
    return forecast(request).parallel->communication_s;
  };
  const double narrow = communication_s("bf16", MainParams::kAsModel);
  EXPECT_NEAR(communication_s("bf16", MainParams::kFp32) / narrow, 2, 0.2);
  EXPECT_EQ(communication_s("fp16", MainParams::kFp32),
            communication_s("fp16", MainParams::kAsModel));
  // Parameters and gradients of autocast are fp32 already.
  EXPECT_EQ(communication_s("amp", MainParams::kFp32),
            communication_s("amp", MainParams::kAsModel));
}

/// The latencies with more and more bandwidth between nodes.
std::vector<double> with_faster_networks(Request request, const std::string& model) {
  const TemporaryFolder folder;
  std::vector<double> latencies;
  for (const double factor : {0.25, 0.5, 1.0, 1.4, 2.0, 2.8, 4.0}) {
    Json file = parse_json(cluster_text("dgx-a100"), "dgx-a100");
    double& rate = file["network"]["bytes_per_s"]["value"].get_ref<double&>();
    rate *= factor;
    const std::string path = (folder.path() / "cluster.json").string();
    std::ofstream(path) << file.dump();
    request.parallel.cluster = path;
    latencies.push_back(forecast(request, model).latency_s);
  }
  return latencies;
}

TEST(Parallel, MoreBandwidthIsNeverSlower) {
  Request pipeline = training(32);
  pipeline.execution.dp = 8;
  pipeline.execution.tp = 2;
  pipeline.execution.pp = 2;
  // Gathered parameters and reductions share the network with the experts' exchanges.
  Request experts = training(32);
  experts.execution.dtype = "bf16";
  experts.execution.attention = AttentionKind::kFlash;
  experts.execution.dp = 32;
  experts.execution.tp = 2;
  experts.parallel.ep = 8;
  experts.parallel.zero = Zero::kParameters;
  for (const auto& [request, model] :
       {std::pair{pipeline, "gpt2_large"}, std::pair{experts, "mixtral-8x7b"}}) {
    const std::vector<double> latencies = with_faster_networks(request, model);
    for (size_t i = 1; i < latencies.size(); ++i)
      EXPECT_LE(latencies[i], latencies[i - 1] * (1 + 1e-12)) << model << " " << i;
    EXPECT_LT(latencies.back(), latencies.front());
  }
}

TEST(Parallel, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const auto with = [](auto set) {
    Request request = training();
    set(request);
    return forecast(request);
  };
  EXPECT_ERROR(with([](auto& r) {
                 r.batch = 16;
                 r.execution.dp = 16;
                 r.parallel.cluster = "dgx-a100";
                 r.parallel.nodes = 1;
               }),
               kInput, "= 16 ranks, but 1 node of");
  EXPECT_ERROR(with([](auto& r) { r.execution.dp = 3; }), kInput,
               "`dp` 3 does not divide the batch of 8");
  EXPECT_ERROR(with([](auto& r) { r.execution.microbatches = 3; }), kInput,
               "`microbatches` 3 does not divide");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.pp = 40;
                 r.parallel.cluster = "dgx-a100";
               }),
               kInput, "the model has 36 layers");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.pp = 4;
                 r.parallel.stage_layers = "9,9,9,8";
               }),
               kInput, "expected 4 numbers that sum up to the model's 36 layers");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.dp = 2;
                 r.parallel.slow_ranks = "2:1.5";
               }),
               kInput, "rank 2, but there are 2 ranks");
  EXPECT_ERROR(with([](auto& r) {
                 r.execution.dp = 2;
                 r.parallel.ep = 2;
               }),
               kUnsupported, "the model has no experts");
}

TEST(Parallel, UnevenStagesAreHandled) {
  Request request = training(8);
  request.execution.pp = 5;
  request.execution.microbatches = 8;
  const Forecast f = forecast(request);
  std::vector<int64_t> layers;
  for (const StageForecast& s : f.parallel->stages) layers.push_back(s.layers);
  EXPECT_EQ(layers, (std::vector<int64_t>{7, 8, 7, 7, 7}));
}

/// The bias by relative positions is computed by the first stage of a stack; the others receive
/// it, each tensor-parallel rank its heads.
TEST(Parallel, StagesReceiveTheHeadsOfABias) {
  Request request = training(8);
  request.seq = 256;
  const double alone = product_flops(forecast(request, "t5-large"), 1);
  request.execution.pp = 2;
  for (const int64_t tp : {1, 2, 4}) {
    for (const bool sequence_parallel : {false, true}) {
      if (tp == 1 && sequence_parallel) continue;
      request.execution.tp = tp;
      request.parallel.sequence_parallel = sequence_parallel;
      EXPECT_NEAR(product_flops(forecast(request, "t5-large"), tp) / alone, 1, 0.01) << tp;
      EXPECT_GT(forecast(request, "switchxl4").latency_s.value, 0);
    }
  }
}

TEST(Parallel, MessagesBetweenStagesTakeTheLinksBetweenTheirRanks) {
  RankLayout layout{.cluster = with_nodes(find_cluster("dgx-h100"), 2), .tp = 4, .pp = 4};
  // Two stages fill a node.
  EXPECT_EQ(layout.links_after(0), StageLinks::kInNode);
  EXPECT_EQ(layout.links_after(1), StageLinks::kNetwork);
  EXPECT_EQ(layout.links_after(2), StageLinks::kInNode);
  EXPECT_EQ(layout.links_after(3), StageLinks::kNetwork);
  layout.tp = 8;
  layout.pp = 2;
  EXPECT_EQ(layout.links_after(0), StageLinks::kNetwork);
  layout.tp = 2;
  EXPECT_EQ(layout.links_after(0), StageLinks::kInNode);
  EXPECT_EQ(layout.links_after(1), StageLinks::kInNode);
  const CollectiveCosts costs(layout);
  constexpr int64_t kBytes = int64_t{64} << 20;
  EXPECT_LT(costs.send(kBytes, DType::kBf16, true, StageLinks::kInNode).seconds,
            0.5 * costs.send(kBytes, DType::kBf16, true, StageLinks::kNetwork).seconds);
}

/// Of four stages on two nodes, the second sends to the third over the network. The model has no
/// embeddings that the first and the last share.
TEST(Parallel, AFasterNetworkShortensAPipelineOfHalfNodes) {
  Request request = training(8);
  request.execution.tp = 4;
  request.execution.pp = 4;
  request.parallel.micro_batch_size = 1;
  const std::vector<double> latencies = with_faster_networks(request, "llama-3-8b");
  EXPECT_LT(latencies.back(), latencies.front());
}

/// Training of a model with experts, on the ranks of two nodes.
Request of_experts(int64_t skew) {
  Request request = training(16);
  request.execution.dtype = "bf16";
  request.execution.attention = AttentionKind::kFlash;
  request.execution.dp = 16;
  request.parallel.ep = 8;
  request.parallel.cluster = "dgx-a100";
  request.execution.skew_percent = skew;
  return request;
}

TEST(Parallel, SkewedExpertsTakeLongerAndMoreMemoryOnTheRankThatHasMost) {
  const std::string model = "qwen3-30b-a3b";
  const Forecast even = forecast(of_experts(0), model);
  double before_s = 0;
  int64_t before_bytes = 0;
  for (const int64_t skew : {0, 60, 120, 200, 300}) {
    const Forecast f = forecast(of_experts(skew), model);
    EXPECT_GT(f.latency_s, before_s) << skew;
    EXPECT_GT(f.memory.peak_bytes, before_bytes) << skew;
    before_s = f.latency_s;
    before_bytes = f.memory.peak_bytes;
    // The work and traffic of all ranks together do not depend on who does it.
    EXPECT_EQ(f.flops, even.flops) << skew;
    EXPECT_EQ(f.bytes, even.bytes) << skew;
  }
  Request request = of_experts(120);
  request.parallel.ep = 1;
  EXPECT_ERROR(forecast(request, model), kInput, "`skew` needs `ep`");
}

/// Flex dispatchers send a token to a rank once. With 8 experts a token on 8 ranks, the mean rank
/// gets all of them already; on 16, no rank can get more than twice the mean.
TEST(Parallel, ASkewedDispatchSendsATokenToARankOnce) {
  const auto sent = [](int64_t ep, int64_t skew) {
    Request request = of_experts(skew);
    request.parallel.ep = ep;
    request.parallel.token_dispatcher = TokenDispatcher::kFlex;
    double bytes = 0;
    for (const KernelForecast& k : forecast(request, "qwen3-30b-a3b").kernels) {
      if (k.op == "expert_dispatch") bytes += static_cast<double>(k.bytes * k.count);
    }
    return bytes;
  };
  EXPECT_EQ(sent(8, 120), sent(8, 0));
  double before = sent(16, 0);
  for (const int64_t skew : {30, 60, 120, 300}) {
    const double now = sent(16, skew);
    EXPECT_GE(now, before) << skew;
    EXPECT_LE(now, 2 * sent(16, 0)) << skew;
    before = now;
  }
  EXPECT_GT(before, 1.9 * sent(16, 0));
}

/// An all-to-all sends a copy for each expert, on however few ranks they are.
TEST(Parallel, AnAllToAllSendsACopyForEachExpert) {
  const auto sent = [](TokenDispatcher dispatcher, int64_t ep, int64_t skew) {
    Request request = of_experts(skew);
    request.parallel.ep = ep;
    request.parallel.token_dispatcher = dispatcher;
    int64_t bytes = 0;
    double seconds = 0;
    for (const KernelForecast& k : forecast(request, "qwen3-30b-a3b").kernels) {
      if (k.op != "expert_dispatch") continue;
      bytes += k.bytes * k.count;
      seconds += k.latency_s * static_cast<double>(k.count);
    }
    return std::pair(bytes, seconds);
  };
  const auto [all, all_s] = sent(TokenDispatcher::kAllToAll, 4, 0);
  const auto [once, once_s] = sent(TokenDispatcher::kFlex, 4, 0);
  EXPECT_EQ(all, 2 * once) << "8 experts on 4 ranks";
  EXPECT_GT(all_s, once_s);
  EXPECT_EQ(all, sent(TokenDispatcher::kAllToAll, 8, 0).first);
  EXPECT_GT(sent(TokenDispatcher::kAllToAll, 4, 60).first, all) << "of the rank with most";
}

/// A slow rank's kernels take longer, the collectives of its tensor-parallel group do not.
TEST(Parallel, SlowRanksDoNotLengthenTheCollectivesInsideAPass) {
  Request request = training(8);
  request.execution.tp = 8;
  const Forecast even = forecast(request, "llama-3.2-1b");
  request.parallel.slow_ranks = "3:2";
  const Forecast slow = forecast(request, "llama-3.2-1b");
  ASSERT_GT(even.parallel->exposed_communication_s, 0.05 * even.latency_s);
  EXPECT_NEAR(slow.latency_s, 2 * even.latency_s - even.parallel->exposed_communication_s,
              1e-9 * slow.latency_s);
  EXPECT_NEAR(slow.parallel->exposed_communication_s, even.parallel->exposed_communication_s,
              1e-9 * slow.latency_s);
}

/// Reductions between nodes were not measured: where they are exposed, the interval says so.
TEST(Parallel, TheIntervalContainsTheExchanges) {
  Request request = training(16);
  request.execution.dp = 16;
  request.parallel.cluster = "dgx-a100";
  request.parallel.overlap_grad_reduce = false;
  const Forecast exposed = forecast(request);
  const double share = exposed.parallel->exposed_communication_s / exposed.latency_s;
  ASSERT_GT(share, 0.05);
  // 80 % of what is not measured lies within half to twice.
  EXPECT_GT(exposed.latency_s.high / exposed.latency_s, 1 + 0.9 * share);
  EXPECT_LT(exposed.latency_s.low / exposed.latency_s, 1 - 0.45 * share);
  EXPECT_LT(exposed.latency_s.low, exposed.latency_s);
}

/// How wrong the model may be, and how runs differ, are stated apart; the interval joins both.
TEST(Parallel, TheIntervalIsOfTheMeanRunAndOfRunsAroundIt) {
  Request request = training(16);
  request.execution.dp = 8;
  const Forecast f = forecast(request);
  ASSERT_TRUE(f.parallel->interval_parts);
  const IntervalParts& parts = *f.parallel->interval_parts;
  const double machine = std::log1p(parts.machine_spread_ratio);
  EXPECT_GT(machine, 0.01);
  EXPECT_LT(machine, 0.05);
  const auto logs = [&](double end) { return std::abs(std::log(end / f.latency_s)); };
  EXPECT_NEAR(logs(f.latency_s.high), std::hypot(logs(parts.model_high_s), machine), 1e-12);
  EXPECT_NEAR(logs(f.latency_s.low), std::hypot(logs(parts.model_low_s), machine), 1e-12);
  request.execution.dp = 1;
  request.execution.microbatches = 2;
  EXPECT_FALSE(forecast(request).parallel->interval_parts) << "one rank";
}

/// A host so slow that the kernels and exchanges change nothing: machines differ all the same.
TEST(Parallel, TheIntervalOfAStepThatWaitsForItsHostHasTwoEnds) {
  Request request = training(8);
  request.execution.dp = 8;
  request.execution.host_launch_s = 0.1;
  const Forecast f = forecast(request, "gpt2");
  EXPECT_LE(f.parallel->interval_parts->model_low_s, f.latency_s);
  EXPECT_LT(f.latency_s.low, f.latency_s);
  EXPECT_GT(f.latency_s.high, f.latency_s);
}

}  // namespace
}  // namespace tilecast
