// Text generation on several GPUs: what the layouts of a server conserve.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "importers/model.h"
#include "scenario/generation/step_costs.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

struct Layout {
  int64_t tp = 1, dp = 1, ep = 1, pp = 1;
};

std::string text_of(const Layout& l) {
  return "tp " + std::to_string(l.tp) + ", dp " + std::to_string(l.dp) + ", ep " +
         std::to_string(l.ep) + ", pp " + std::to_string(l.pp);
}

Request with(Request request, const Layout& l) {
  request.execution.tp = l.tp;
  request.execution.dp = l.dp;
  request.execution.pp = l.pp;
  request.parallel.ep = l.ep;
  return request;
}

GenerationForecast forecast_layout(const std::string& model, const Request& request,
                                   const std::string& gpu = "H200") {
  return forecast_generation(forecaster(), load_model_ref(model), load_gpu_ref(gpu), request);
}

/// FLOPs of the operators that ranks divide, over all ranks; the ranks repeat others (routers,
/// norms, projections to latent vectors).
std::map<std::string, double> divided_flops(const GenerationForecast& f) {
  std::map<std::string, double> sums;
  for (const KernelForecast& k : f.kernels) {
    const std::string op(k.op);
    if (op != "experts" && op.find("attention") == std::string::npos) continue;
    const std::string name = std::string(k.phase) + " " + (op == "experts" ? op : "attention");
    sums[name] += static_cast<double>(k.flops) * static_cast<double>(k.count) *
                  static_cast<double>(f.tp * f.dp);
  }
  return sums;
}

TEST(ServerLayouts, ConserveTheFlopsOfExpertsAndAttention) {
  const Layout layouts[] = {{.tp = 2},
                            {.tp = 4},
                            {.tp = 4, .ep = 4},
                            {.tp = 4, .ep = 2},
                            {.dp = 4},
                            {.dp = 4, .ep = 4},
                            {.tp = 2, .dp = 4, .ep = 4},
                            {.dp = 8, .ep = 8},
                            {.tp = 2, .dp = 2, .ep = 4, .pp = 2},
                            {.pp = 4}};
  for (const char* model : {"qwen3-30b-a3b", "mixtral-8x7b"}) {
    const Request base{.kind = RequestKind::kGenerate,
                       .batch = 64,
                       .prompt = 128,
                       .output = 16,
                       .execution = {.skew_percent = 0}};
    const auto expected = divided_flops(forecast_layout(model, base));
    ASSERT_EQ(expected.size(), 4U);
    for (const Layout& layout : layouts) {
      const auto found = divided_flops(forecast_layout(model, with(base, layout)));
      for (const auto& [what, flops] : expected)
        EXPECT_NEAR(found.at(what), flops, 1e-6 * flops) << model << " " << text_of(layout) << what;
    }
  }
}

TEST(ServerLayouts, ConserveTheCacheAndTheWeightsOfExperts) {
  for (const char* model : {"qwen3-30b-a3b", "llama-3.1-8b"}) {
    const bool experts = std::string(model) == "qwen3-30b-a3b";
    const Request base{.kind = RequestKind::kGenerate, .batch = 32, .prompt = 512, .output = 64};
    const GenerationForecast one = forecast_layout(model, base);
    for (const Layout& layout : {Layout{.tp = 4}, Layout{.tp = 2, .pp = 4}, Layout{.pp = 2},
                                 Layout{.dp = 4, .ep = 4}, Layout{.tp = 2, .dp = 2, .ep = 2}}) {
      if (!experts && layout.dp > 1) continue;
      const GenerationForecast f = forecast_layout(model, with(base, layout));
      const auto ranks = static_cast<double>(f.ranks), stages = static_cast<double>(f.pp);
      // Layers that stages do not divide evenly: the rank with the most.
      const double layers = experts ? 48 : 32, most = std::ceil(layers / stages);
      const auto cache = static_cast<double>(one.memory.cache_bytes);
      EXPECT_NEAR(static_cast<double>(f.memory.cache_bytes) * ranks, cache * most * stages / layers,
                  1e-9 * cache)
          << model << " " << text_of(layout);
      EXPECT_EQ(f.kv_bytes_per_token, one.kv_bytes_per_token);
      EXPECT_EQ(f.parameters, one.parameters);
      if (layout.pp > 1 || layout.dp > 1) continue;
      const auto weights = static_cast<double>(one.memory.weights_bytes);
      EXPECT_NEAR(static_cast<double>(f.memory.weights_bytes) * ranks, weights, 0.01 * weights);
    }
  }
  // Whole experts or parts of each: the same bytes.
  const Request base{.kind = RequestKind::kGenerate, .batch = 8, .prompt = 64, .output = 8};
  const GenerationForecast parts = forecast_layout("qwen3-30b-a3b", with(base, {.tp = 4}));
  const GenerationForecast whole = forecast_layout("qwen3-30b-a3b", with(base, {.tp = 4, .ep = 4}));
  EXPECT_EQ(parts.memory.weights_bytes, whole.memory.weights_bytes);
  EXPECT_EQ(parts.memory.cache_bytes, whole.memory.cache_bytes);
}

TEST(ServerLayouts, APipelineIsSlowerForOneSequenceAndFasterForMany) {
  const Request few{.kind = RequestKind::kGenerate, .batch = 1, .prompt = 512, .output = 32};
  Request many = few;
  many.batch = 256;
  const auto tpot = [](const Request& request, int64_t pp) {
    return forecast_layout("llama-3.1-8b", with(request, {.pp = pp})).tpot.value;
  };
  EXPECT_GT(tpot(few, 4), tpot(few, 1));
  EXPECT_LT(tpot(few, 4), 1.05 * tpot(few, 1));  // sends only
  // Each batch reads the weights of its stage, so the gain is small, but the cache is divided.
  EXPECT_LT(forecast_layout("llama-3.1-8b", with(many, {.pp = 4})).memory.peak_bytes,
            forecast_layout("llama-3.1-8b", many).memory.peak_bytes);
}

TEST(ServerLayouts, EveryBundledDecoderCanBeDividedIntoStages) {
  for (const std::string& name : bundled_models()) {
    const Request base{.kind = RequestKind::kGenerate, .batch = 4, .prompt = 64, .output = 8};
    GenerationForecast one, two;
    try {
      one = forecast_layout(name, base, "B200");
    } catch (const Error&) {
      continue;  // does not generate text, or has fewer positions
    }
    if (name == "opt") continue;  // a single layer
    two = forecast_layout(name, with(base, {.pp = 2}), "B200");
    EXPECT_NEAR(2 * static_cast<double>(two.flops), static_cast<double>(one.flops),
                1e-6 * static_cast<double>(one.flops))
        << name;
    EXPECT_LT(two.memory.weights_bytes, one.memory.weights_bytes) << name;
  }
}

TEST(ServerLayouts, AServersStepCostsWhatItsGraphCosts) {
  const ModelRef model = load_model_ref("qwen3-30b-a3b");
  const GpuRef gpu = load_gpu_ref("H200");
  for (const Layout& layout : {Layout{.tp = 2, .ep = 2}, Layout{.dp = 4, .ep = 4},
                               Layout{.tp = 2, .dp = 2, .ep = 4, .pp = 2}}) {
    Request request = with({.kind = RequestKind::kGenerate, .prompt = 64, .output = 8}, layout);
    request.execution.software = software_of("vllm");
    request.execution.host_launch_s = 5e-6;
    const ServedModel served(forecaster(), model, gpu, request);
    const std::vector<ServingBatch> equal(static_cast<size_t>(layout.dp),
                                          {.decoding = 64, .decode_context = 767});
    std::vector<ServingBatch> one_busy = equal;
    for (size_t r = 1; r < one_busy.size(); ++r) one_busy[r].decoding = 1;
    for (size_t part = 0; part < served.stages.size(); ++part) {
      KnownTimes known;
      StepCosts costs(served, part, {}, known);
      const double graph_s =
          time_step(served, {{64, 1, 767}}, StepLaunch::kCudaGraph, part).totals.seconds;
      EXPECT_NEAR(costs.seconds(equal) / graph_s, 1, 1e-3) << text_of(layout);
      // A CUDA graph has one size: ranks with less work take as long.
      EXPECT_NEAR(costs.seconds(one_busy) / graph_s, 1, 1e-3) << text_of(layout);
    }
  }
}

TEST(ServerLayouts, SkewedExpertsMakeTheBusiestRankSlower) {
  Request request{.kind = RequestKind::kGenerate, .batch = 256, .prompt = 128, .output = 8};
  request = with(request, {.dp = 8, .ep = 8});
  request.execution.skew_percent = 0;
  const double even = forecast_layout("qwen3-30b-a3b", request).tpot.value;
  request.execution.skew_percent = 120;
  EXPECT_GT(forecast_layout("qwen3-30b-a3b", request).tpot.value, even);
  request.deployment.all2all = All2All::kDeepEp;
  EXPECT_GT(forecast_layout("qwen3-30b-a3b", request).tpot.value, even);
}

TEST(ServerLayouts, MoreNodesTakeTheNetwork) {
  Request request{.kind = RequestKind::kGenerate, .batch = 64, .prompt = 128, .output = 8};
  request.parallel.cluster = "hgx-h200";
  const GenerationForecast near = forecast_layout("deepseek-v3", with(request, {.dp = 8, .ep = 8}));
  const GenerationForecast far =
      forecast_layout("deepseek-v3", with(request, {.dp = 16, .ep = 16}));
  EXPECT_EQ(near.cluster, "hgx-h200");
  EXPECT_GT(far.communication_s, near.communication_s);
  EXPECT_LT(far.memory.weights_bytes, near.memory.weights_bytes);
}

/// The warnings about links, by the GPU of a server with tp 8.
TEST(ServerLayouts, PcieOfOneMeasuredServerAndGuessedLinksAreNamed) {
  Request request{.kind = RequestKind::kGenerate, .batch = 16, .prompt = 512, .output = 8};
  request.execution.tp = 8;
  const auto of_links = [&](const char* gpu) {
    std::set<WarningCode> codes;
    for (const Warning& w : forecast_generation(forecaster(), load_model_ref("llama-3.1-8b"),
                                                load_gpu_ref(gpu), request)
                                .warnings) {
      if (w.code == WarningCode::kOneMeasuredServer || w.code == WarningCode::kUnmeasuredLinks)
        codes.insert(w.code);
    }
    return codes;
  };
  using Codes = std::set<WarningCode>;
  EXPECT_EQ(of_links("L40S"), Codes{WarningCode::kOneMeasuredServer});
  EXPECT_TRUE(of_links("MI210").contains(WarningCode::kUnmeasuredLinks));
  EXPECT_EQ(of_links("H100"), Codes{});
}

TEST(Replicas, OneIsTheServer) {
  Request request{.kind = RequestKind::kServe, .prompt = 256, .output = 64};
  request.load.rate = 4;
  request.load.requests = 100;
  const GenerationForecast one = forecast_layout("llama-3.1-8b", request);
  request.deployment.router = Router::kRoundRobin;
  const GenerationForecast routed = forecast_layout("llama-3.1-8b", request);
  ASSERT_TRUE(one.serving && routed.serving);
  EXPECT_EQ(one.serving->all.tpot.p99.value, routed.serving->all.tpot.p99.value);
  EXPECT_EQ(one.serving->all.ttft.p99.value, routed.serving->all.ttft.p99.value);
  EXPECT_EQ(one.latency.value, routed.latency.value);
  request.deployment.replicas = 2;
  request.load.rate = 8;
  const GenerationForecast two = forecast_layout("llama-3.1-8b", request);
  EXPECT_EQ(two.gpus, 2);
  EXPECT_NEAR(two.serving->all.requests_per_s / 2, one.serving->all.requests_per_s, 0.6);
}

TEST(Layouts, RefuseWhatCannotBe) {
  const Request base{.kind = RequestKind::kGenerate, .batch = 8, .prompt = 64, .output = 8};
  EXPECT_ERROR(forecast_layout("llama-3.1-8b", with(base, {.dp = 2})), kUnsupported,
               "use `replicas` for several servers");
  EXPECT_ERROR(forecast_layout("llama-3.1-8b", with(base, {.tp = 2, .ep = 2})), kUnsupported,
               "leave `ep` at 1");
  EXPECT_ERROR(forecast_layout("qwen3-30b-a3b", with(base, {.tp = 2, .ep = 4})), kInput,
               "`ep` 4 does not divide `tp` 2 x `dp` 1 = 2 ranks");
  EXPECT_ERROR(forecast_layout("llama-3.1-8b", with(base, {.pp = 64})), kInput,
               "has 32 layers that stages can divide");
  Request deepep = with(base, {.tp = 2, .dp = 2, .ep = 4});
  deepep.deployment.all2all = All2All::kDeepEp;
  EXPECT_ERROR(forecast_layout("qwen3-30b-a3b", deepep), kInput, "`all2all-backend` deepep");
}

}  // namespace
}  // namespace tilecast
