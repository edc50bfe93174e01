// Training over several ranks: what must hold whatever the times are.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "base/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string cluster_text(std::string_view id) {
  for (const EmbeddedFile& file : embedded_files("clusters/")) {
    if (file.path.find(id) != std::string_view::npos) return std::string(file.content);
  }
  return "";
}

/// A training step on A100s.
Request training(int64_t batch = 8) {
  Request request;
  request.mode = Mode::kTraining;
  request.batch = batch;
  request.seq = 1024;
  return request;
}

Forecast forecast(const Request& request, const std::string& model = "gpt2_large") {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref("nvidia-a100-sxm4-80gb"),
                               request);
}

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
  EXPECT_EQ(alone.latency_low_s, cluster.latency_low_s);
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

TEST(Parallel, ProductsOfAllRanksHaveTheFlopsOfOneGpu) {
  const std::string model = "llama-3.2-1b";
  const double alone = product_flops(forecast(training(), model), 1);
  const std::vector<std::array<int64_t, 3>> degrees = {{8, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 2}};
  for (const auto& [dp, tp, pp] : degrees) {
    Request request = training();
    request.execution.dp = dp;
    request.execution.tp = tp;
    request.execution.pp = pp;
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
  // Two in each direction. Four ranks do not divide the vocabulary of 50,257 rows.
  EXPECT_EQ(bytes, static_cast<double>(4 * kLayers * 4 * 1024 * kHidden * 4));
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

TEST(Parallel, EachStageIsComputeExposedCommunicationAndBubble) {
  Request request = training(16);
  request.execution.dp = 2;
  request.execution.tp = 2;
  request.execution.pp = 2;
  request.execution.microbatches = 4;
  const Forecast f = forecast(request);
  ASSERT_TRUE(f.parallel);
  EXPECT_EQ(f.parallel->ranks, 8);
  for (const StageForecast& s : f.parallel->stages)
    EXPECT_NEAR(s.compute_s + s.exposed_communication_s + s.bubble_s, f.latency_s, 1e-9);
}

/// All that is printed: passes, copies of gradients, slower kernels, the optimizer, what is exposed
/// and bubbles.
TEST(Parallel, PrintedPartsAddUpToTheLatency) {
  struct Step {
    const char* model;
    int64_t batch, dp, pp, microbatches;
    Zero zero = Zero::kNone;
  };
  for (const Step& step :
       {Step{"bert_large", 16, 2, 1, 1}, Step{"resnet-50", 128, 4, 1, 1},
        Step{"vit-base", 64, 8, 1, 1}, Step{"gpt2_large", 16, 2, 2, 4},
        Step{"llama-3.2-1b", 16, 8, 1, 2}, Step{"gpt2", 16, 8, 1, 1, Zero::kOptimizer},
        Step{"gpt2", 16, 8, 1, 2, Zero::kParameters}}) {
    for (const double host_us : {0.0, 5.0, 20.0, 100.0}) {
      Request request{.batch = step.batch, .mode = Mode::kTraining, .optimizer = Optimizer::kAdamW};
      request.execution.dp = step.dp;
      request.execution.pp = step.pp;
      request.execution.microbatches = step.microbatches;
      request.execution.host_launch_s = host_us * 1e-6;
      request.parallel.zero = step.zero;
      const Forecast f = forecast(request, step.model);
      const auto m = static_cast<double>(step.microbatches);
      for (const StageForecast& s : f.parallel->stages) {
        EXPECT_NEAR(
            m * (s.forward_s + s.backward_s) + s.gradient_copies_s + s.slowed_s + s.optimizer_s,
            s.compute_s, 1e-9 * f.latency_s)
            << step.model << " " << host_us;
        EXPECT_NEAR(s.compute_s + s.exposed_communication_s + s.bubble_s, f.latency_s,
                    1e-9 * f.latency_s)
            << step.model << " " << host_us;
      }
    }
  }
}

/// The totals of a step are the sums of one stage, whatever divides the model: their parts add up,
/// and communication is in none but its own.
TEST(Parallel, TotalsOfAStepAddUpToTheLatency) {
  struct Step {
    int64_t tp, pp, dp, microbatches;
    Zero zero = Zero::kNone;
    const char* slow_ranks = "";
    int64_t virtual_layers = 0;
  };
  for (const Step& step :
       {Step{2, 2, 2, 8}, Step{8, 1, 1, 1}, Step{1, 4, 2, 4}, Step{2, 2, 2, 4, Zero::kOptimizer},
        Step{2, 1, 4, 2, Zero::kParameters}, Step{2, 2, 2, 4, Zero::kNone, "3:1.5"},
        Step{2, 2, 2, 4, Zero::kNone, "", 4}}) {
    Request request{.batch = 32, .mode = Mode::kTraining, .optimizer = Optimizer::kAdamW};
    request.seq = 2048;
    request.execution.dtype = "bf16";
    request.execution.attention = AttentionKind::kFlash;
    request.execution.tp = step.tp;
    request.execution.pp = step.pp;
    request.execution.dp = step.dp;
    request.execution.microbatches = step.microbatches;
    request.parallel.zero = step.zero;
    request.parallel.slow_ranks = step.slow_ranks;
    if (step.virtual_layers > 0) {
      request.parallel.schedule = PipelineSchedule::kInterleaved;
      request.parallel.layers_per_virtual_stage = step.virtual_layers;
    }
    const Forecast f = forecast(request, "llama-3.2-1b");
    const ParallelForecast& p = *f.parallel;
    const std::string text = testing::PrintToString(std::vector{step.tp, step.pp, step.dp});
    EXPECT_NEAR(f.forward_s + f.backward_s + f.optimizer_s + p.gradient_copies_s + p.slowed_s +
                    p.exposed_communication_s + p.bubble_s,
                f.latency_s, 1e-9 * f.latency_s)
        << text;
    const StageForecast& slowest = p.stages[static_cast<size_t>(p.slowest_stage)];
    for (const StageForecast& stage : p.stages) EXPECT_LE(stage.compute_s, slowest.compute_s);
    EXPECT_EQ(p.exposed_communication_s, slowest.exposed_communication_s) << text;
    EXPECT_EQ(p.bubble_s, slowest.bubble_s) << text;
    EXPECT_GT(f.backward_s, f.forward_s) << text;
    const double passes_s = static_cast<double>(p.microbatches) * slowest.forward_s;
    if (step.tp > 1 && step.slow_ranks[0] == 0) {
      EXPECT_LT(f.forward_s, passes_s) << text << ": collectives inside passes are not computing";
    }
    if (step.tp == 1) {
      EXPECT_NEAR(f.forward_s, passes_s, 1e-9 * f.latency_s) << text;
    }
  }
}

/// DistributedDataParallel's buckets are in memory beside the gradients.
TEST(Parallel, GradientsAndBucketsAreWhatIsThereAtThePeak) {
  for (const int64_t dp : {1, 2}) {
    Request request = training(8);
    request.execution.dp = dp;
    request.execution.microbatches = 2;
    const MemoryForecast m = forecast(request).memory;
    EXPECT_EQ(m.gradients_bytes + m.gradient_buckets_bytes, m.at_peak.gradients_bytes) << dp;
    EXPECT_EQ(m.gradient_buckets_bytes > 0, dp > 1);
  }
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

std::set<std::string> codes_of(const Forecast& f) {
  std::set<std::string> codes;
  for (const Warning& warning : f.warnings) codes.emplace(warning_code_name(warning.code));
  return codes;
}

TEST(Parallel, SeveralGpusHaveTheWarningsOfOne) {
  struct Step {
    const char *model, *gpu, *dtype;
    int64_t batch;
    std::set<std::string> codes;  ///< of one GPU, at least
  };
  for (const Step& step :
       {Step{"resnet-50", "MI300X", "amp", 64, {"unmeasured_operators", "extrapolated"}},
        Step{"gpt2", "B200", "bf16", 8, {"extrapolated"}},
        Step{"bert-base", "H100", "bf16", 1, {"host_wait"}}}) {
    Request request{.batch = step.batch, .mode = Mode::kTraining};
    request.execution.dtype = step.dtype;
    const auto forecast_of = [&] {
      return forecaster().forecast(load_model_ref(step.model), load_gpu_ref(step.gpu), request);
    };
    const Forecast alone = forecast_of();
    const std::set<std::string> one = codes_of(alone);
    for (const std::string& code : step.codes) EXPECT_TRUE(one.contains(code)) << code;
    request.batch *= 8;
    request.execution.dp = 8;
    const Forecast many = forecast_of();
    for (const std::string& code : one)
      EXPECT_TRUE(codes_of(many).contains(code)) << step.model << " " << code;
    // The same kernels, so the same shares of their time.
    for (const Warning& a : alone.warnings) {
      for (const Warning& b : many.warnings) {
        if (a.code == b.code && a.code != WarningCode::kHostWait) {
          EXPECT_NEAR(a.share, b.share, 1e-6);
        }
      }
    }
  }
}

TEST(Parallel, PcieOfOneMeasuredServerIsNamed) {
  Request request = training(8);
  request.execution.tp = 8;
  const auto on = [&](const char* gpu) {
    return codes_of(
        forecaster().forecast(load_model_ref("llama-3.2-1b"), load_gpu_ref(gpu), request));
  };
  EXPECT_TRUE(on("L40S").contains("one_measured_server"));
  EXPECT_TRUE(on("MI210").contains("unmeasured_links"));
  EXPECT_FALSE(on("H100").contains("one_measured_server"));
  // A cluster file has the rates of its owner's server.
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "cluster.json").string();
  std::ofstream(path) << cluster_text("l40s-pcie");
  request.parallel.cluster = path;
  EXPECT_FALSE(on("L40S").contains("one_measured_server"));
}

TEST(Parallel, MemoryThatHardlySufficesIsSaid) {
  bool seen = false;
  for (int64_t batch = 2; batch <= 256; batch += 2) {
    Request request = training(batch);
    request.execution.dp = 2;
    request.execution.dtype = "bf16";
    request.execution.attention = AttentionKind::kFlash;
    const Forecast f = forecast(request);
    const bool tight = codes_of(f).contains("tight_memory");
    seen = seen || tight;
    const double share =
        static_cast<double>(f.memory.margin_bytes) / static_cast<double>(f.memory.usable_bytes());
    EXPECT_EQ(tight, share >= 0 && share < 1 - 1 / 1.1) << batch;
    if (!f.memory.fits) break;
  }
  EXPECT_TRUE(seen);
}

TEST(Parallel, ZeroTakesLessMemoryStepByStep) {
  Request request = training(8);
  request.execution.dp = 8;
  request.optimizer = Optimizer::kAdamW;
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const Zero zero : {Zero::kNone, Zero::kOptimizer, Zero::kGradients, Zero::kParameters}) {
    request.parallel.zero = zero;
    const Forecast f = forecast(request);
    EXPECT_LT(f.memory.peak_bytes, before) << static_cast<int>(zero);
    before = f.memory.peak_bytes;
  }
}

// Megatron-LM, docs/source/api-guide/dist_optimizer.md: 18 and 6 + 12/d bytes a parameter in bf16,
// 20 and 4 + 16/d in fp16, 16 and 8 + 8/d in fp32, for Adam.
TEST(Parallel, MainCopiesTakeTheBytesThatMegatronStates) {
  struct Row {
    const char* dtype;
    double whole, kept, divided;
  };
  for (const Row& row : {Row{"bf16", 18, 6, 12}, Row{"fp16", 20, 4, 16}, Row{"fp32", 16, 8, 8}}) {
    for (const int64_t dp : {1, 2, 8}) {
      for (const Zero zero : {Zero::kNone, Zero::kOptimizer}) {
        Request request = training(8);
        request.execution.dp = dp;
        request.execution.dtype = row.dtype;
        request.optimizer = Optimizer::kAdam;
        request.parallel.main_params = MainParams::kFp32;
        request.parallel.zero = zero;
        const MemoryForecast memory = forecast(request).memory;
        const double bytes = static_cast<double>(memory.weights_bytes + memory.gradients_bytes +
                                                 memory.optimizer_bytes);
        const double expected =
            zero == Zero::kNone ? row.whole : row.kept + row.divided / static_cast<double>(dp);
        const auto parameters = static_cast<double>(forecast(request).parameters);
        EXPECT_NEAR(bytes / parameters, expected, 1e-3)
            << row.dtype << " dp " << dp << " zero " << static_cast<int>(zero);
        // The buffer stays through the step.
        const double gradients = std::string(row.dtype) == "fp16" ? 2 : 4;
        EXPECT_NEAR(static_cast<double>(memory.at_peak.gradients_bytes) / parameters, gradients,
                    0.01)
            << row.dtype << " dp " << dp;
      }
    }
  }
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
                 r.execution.dp = 4;
                 r.parallel.cluster = "dgx-a100";
                 r.parallel.nodes = 1;
               }),
               kInput, "= 4 ranks, but 1 node of");
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

/// A token goes to a rank once. With 8 experts a token on 8 ranks, the mean rank gets all of them
/// already; on 16, no rank can get more than twice the mean.
TEST(Parallel, ASkewedDispatchSendsATokenToARankOnce) {
  const auto sent = [](int64_t ep, int64_t skew) {
    Request request = of_experts(skew);
    request.parallel.ep = ep;
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
  EXPECT_GT(exposed.latency_high_s / exposed.latency_s, 1 + 0.9 * share);
  EXPECT_LT(exposed.latency_low_s / exposed.latency_s, 1 - 0.45 * share);
  EXPECT_LT(exposed.latency_low_s, exposed.latency_s);
}

/// Bytes that each micro-batch in flight keeps on a stage.
int64_t saved_bytes(Request request, size_t stage, const std::string& model = "gpt2_large") {
  request.parallel.schedule = PipelineSchedule::kGPipe;
  request.parallel.micro_batch_size = 1;
  request.execution.attention = AttentionKind::kFlash;
  const auto activations = [&](int64_t batch) {
    request.batch = batch;
    return forecast(request, model).parallel->stages[stage].activations_bytes;
  };
  return (activations(4) - activations(2)) / 2;
}

TEST(Parallel, SequenceParallelRanksKeepTheirPartAlone) {
  Request request = training();
  const int64_t whole = saved_bytes(request, 0);
  request.execution.tp = 4;
  request.parallel.sequence_parallel = true;
  // They keep nothing of what they gather. The rest has no parts: ids, 512-byte blocks.
  EXPECT_LE(static_cast<double>(saved_bytes(request, 0)), static_cast<double>(whole) / 4 * 1.01);
}

/// Bytes kept for each layer and micro-batch, in units of sequence × hidden size / tensor-parallel
/// ranks.
double kept_of_a_layer(const std::string& model, int64_t layers, int64_t hidden) {
  Request request = training();
  request.execution.dtype = "bf16";
  request.execution.fusion = Fusion::kPointwise;
  request.execution.pp = 4;
  request.execution.tp = 4;
  request.parallel.cluster = "dgx-a100";
  request.parallel.sequence_parallel = true;
  const int64_t stages = request.execution.pp, ranks = request.execution.tp;
  return static_cast<double>(saved_bytes(request, 1, model) * stages * ranks) /
         static_cast<double>(layers * 1024 * hidden);
}

/// The count of Korthikanti et al. 2022 (tensor and sequence parallelism, the core of attention
/// computed again) is 34 bytes: inputs of two norms 4, of the products after them 4, queries, keys
/// and values 6, the result of attention 2, masks of two dropouts 2, the activation's input 8 and
/// output 8. FlashAttention keeps a number for each row and head beside that.
TEST(Parallel, ALayerOfGptKeepsWhatMegatronsAuthorsCount) {
  EXPECT_NEAR(kept_of_a_layer("gpt3_67", 32, 4096), 34, 0.34);
}

/// With fused norms and activations in 16 bits: the inputs of two norms (4 bytes) and of the
/// products after them (4), queries (2), keys and values (1), the result of attention (2), gate, up
/// and their product (3 x 2 x 3.5).
TEST(Parallel, ALayerOfLlamaKeepsNothingInFp32) {
  EXPECT_NEAR(kept_of_a_layer("llama-3-8b", 32, 4096), 34, 0.34);
}

TEST(Parallel, AStageKeepsTheInputsOfCheckpointedLayersAlone) {
  Request request = training();
  request.execution.pp = 3;
  request.checkpointing = Checkpointing::kFull;
  constexpr int64_t kLayers = 12, kHidden = 1280;  // of gpt2_large on the middle stage
  EXPECT_EQ(saved_bytes(request, 1), kLayers * 1024 * kHidden * 4);
}

TEST(Parallel, RanksTogetherHoldOneModelWhereExpertsAreDividedTwice) {
  // An expert has dp / ep replicas, which ZeRO divides: with ep of 8, two.
  for (const MainParams main_params : {MainParams::kAsModel, MainParams::kFp32}) {
    for (const Zero zero : {Zero::kOptimizer, Zero::kGradients, Zero::kParameters}) {
      for (const int64_t ep : {1, 2, 8}) {
        Request request{
            .batch = 16,
            .mode = Mode::kTraining,
            .seq = 512,
            .optimizer = Optimizer::kAdamW,
            .execution = {.dtype = "bf16", .attention = AttentionKind::kFlash, .dp = 16}};
        request.parallel.zero = zero;
        request.parallel.main_params = main_params;
        request.parallel.ep = ep;
        const bool wide = main_params == MainParams::kFp32;
        const Forecast f =
            forecaster().forecast(load_model_ref("mixtral-8x7b"), load_gpu_ref("H100"), request);
        const double parameters = 46.7028e9, shares = 16;
        const auto held = [&](int64_t bytes) {
          return shares * static_cast<double>(bytes) / parameters;
        };
        EXPECT_NEAR(held(f.memory.optimizer_bytes), wide ? 12 : 4, 0.01) << ep;
        if (zero >= Zero::kGradients) {
          EXPECT_NEAR(held(f.memory.gradients_bytes), wide ? 4 : 2, 0.01) << ep;
        }
        if (zero == Zero::kParameters) {
          EXPECT_NEAR(held(f.memory.weights_bytes), 2, 0.01) << ep;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilecast
