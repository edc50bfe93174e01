#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/view.h"
#include "vision_towers.h"

namespace tilecast {
namespace {

PowerTimeline timeline_of(const char* model, const char* gpu, const Request& request) {
  return forecaster().power_timeline(load_model_ref(model), load_gpu_ref(gpu), request);
}

void expect_in_order(const PowerTimeline& t) {
  ASSERT_FALSE(t.ranks.empty());
  for (const RankPower& rank : t.ranks) {
    ASSERT_FALSE(rank.points.empty());
    EXPECT_EQ(rank.points.front().start_s, 0);
    for (size_t i = 0; i < rank.points.size(); ++i) {
      EXPECT_GE(rank.points[i].power_w, t.idle_w);
      EXPECT_LE(rank.points[i].power_w, t.limit_w);
      EXPECT_LE(rank.points[i].start_s, t.seconds * (1 + 1e-12));
      if (i > 0) {
        EXPECT_GE(rank.points[i].start_s, rank.points[i - 1].start_s);
      }
    }
  }
}

TEST(PowerTimelines, OfAPassHaveTheEnergyOfItsForecast) {
  for (const Mode mode : {Mode::kInference, Mode::kTraining}) {
    const Request request{.batch = 4, .mode = mode, .seq = 512, .execution = {.dtype = "bf16"}};
    const PowerTimeline t = timeline_of("llama-3.2-1b", "H100", request);
    expect_in_order(t);
    const Forecast f =
        forecaster().forecast(load_model_ref("llama-3.2-1b"), load_gpu_ref("H100"), request);
    EXPECT_NEAR(t.seconds, f.latency_s, 1e-9);
    EXPECT_NEAR(t.mean_w(), f.power->power_w,
                0.05 * f.power->power_w);  // blocks are held to the limit
    EXPECT_EQ(t.limit_w, f.power->limit_w);
  }
}

TEST(PowerTimelines, OfATrainingStepHaveTheRanksOfItsStages) {
  Request request{.batch = 8, .mode = Mode::kTraining, .seq = 512, .execution = {.dtype = "bf16"}};
  request.execution.pp = 2;
  request.execution.microbatches = 4;
  const PowerTimeline t = timeline_of("gpt2_large", "A100", request);
  expect_in_order(t);
  ASSERT_EQ(t.ranks.size(), 2U);
  EXPECT_EQ(t.work, "training step");
  const Forecast f =
      forecaster().forecast(load_model_ref("gpt2_large"), load_gpu_ref("A100"), request);
  EXPECT_NEAR(t.mean_w(), f.power->power_w, 0.1 * f.power->power_w);
}

TEST(PowerTimelines, OfALaunchBoundStepHaveTheWaitsForTheHostInItsOperations) {
  Request request{.batch = 16, .mode = Mode::kTraining};
  request.execution.tp = 2;
  request.execution.pp = 2;
  request.execution.dp = 2;
  request.parallel.micro_batch_size = 1;
  const PowerTimeline t = timeline_of("gpt2", "H100", request);
  expect_in_order(t);
  const Forecast f = forecaster().forecast(load_model_ref("gpt2"), load_gpu_ref("H100"), request);
  EXPECT_NEAR(t.mean_w(), f.power->power_w, 0.1 * f.power->power_w);
}

Request served(double rate, int64_t requests) {
  Request request{.kind = RequestKind::kServe};
  request.prompt = 512;
  request.output = 64;
  request.load.rate = rate;
  request.load.requests = requests;
  return request;
}

TEST(PowerTimelines, OfAServerShowAMinuteOfItsSteps) {
  const Request request = served(20, 2000);
  const PowerTimeline t = timeline_of("llama-3.2-1b", "H100", request);
  expect_in_order(t);
  EXPECT_NEAR(t.seconds, 60, 1e-9);
  const GenerationForecast f = forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"),
                                                   load_gpu_ref("H100"), request);
  // The forecast takes the kernels of the mean batch.
  EXPECT_NEAR(t.mean_w(), f.power->power_w, 0.1 * f.power->power_w);
  bool prompts = false, decodes = false, waits = false;
  for (const PowerPoint& point : t.ranks[0].points) {
    prompts |= point.what.starts_with("prompts");
    decodes |= point.what.starts_with("decode");
    if (!point.what.empty()) continue;
    waits = true;
    EXPECT_EQ(point.power_w, t.idle_w);
  }
  EXPECT_TRUE(prompts && decodes && waits);
}

void expect_power_of_forecast(const ModelRef& model, const Request& request, double share) {
  const GpuRef gpu = load_gpu_ref("H100");
  const double watts = forecaster().power_timeline(model, gpu, request).mean_w();
  const GenerationForecast f = forecast_generation(forecaster(), model, gpu, request);
  EXPECT_NEAR(watts, f.power->power_w, share * f.power->power_w);
}

TEST(PowerTimelines, OfAServerHaveImagesDraftsAndAdapters) {
  const ModelRef llama = load_model_ref("llama-3.1-8b");
  Request drafts = served(40, 1000);
  drafts.deployment.speculation = {.tokens = 7, .method = DraftMethod::kNgram};
  expect_power_of_forecast(llama, drafts, 0.05);
  // Nearly all requests have the same adapter.
  Request adapters = served(20, 400);
  adapters.lora_rank = 64;
  adapters.adapters = {.count = 100, .skew = 9, .max_loras = 32};
  const double many_w = timeline_of("llama-3.1-8b", "H100", adapters).mean_w();
  adapters.adapters = {.count = 1, .max_loras = 32};
  const double one_w = timeline_of("llama-3.1-8b", "H100", adapters).mean_w();
  EXPECT_NEAR(many_w, one_w, 0.01 * one_w);
  const Json config = {{"model_type", "qwen2_5_vl"},
                       {"hidden_size", 1024},
                       {"intermediate_size", 4096},
                       {"num_attention_heads", 16},
                       {"num_hidden_layers", 4},
                       {"num_key_value_heads", 4},
                       {"vocab_size", 32000},
                       {"max_position_embeddings", 32768},
                       {"vision_config", qwen2_5_tower()}};
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "config.json").string();
  write_file(path, config.dump());
  Request images = served(3, 100);
  images.images = 3;
  images.image_size = 1000;
  expect_power_of_forecast(load_model_ref(path), images, 0.1);
}

TEST(PowerTimelines, OfAServerBeginWhereItsForecastCounts) {
  Request request = served(3, 100);
  request.load.session_turns = 5;
  request.load.session_turn_delay_s = 20;
  const PowerTimeline t = timeline_of("llama-3-8b", "H100", request);
  // The 100 requests take half a minute, those before them longer.
  EXPECT_LT(t.seconds, 50);
}

TEST(PowerTimelines, OfAnIdleServerAreMostlyIdle) {
  const PowerTimeline t = timeline_of("llama-3.2-1b", "H100", served(0.05, 20));
  EXPECT_NEAR(t.mean_w(), t.idle_w, 0.05 * t.idle_w);
}

TEST(PowerTimelines, OfAShortRunShowAllOfIt) {
  const PowerTimeline t = timeline_of("llama-3.2-1b", "H100", served(40, 50));
  EXPECT_LT(t.seconds, 10);
  EXPECT_GT(t.seconds, 0.5);
}

TEST(PowerTimelines, ServersWithADataParallelRankOrStagesHaveThem) {
  Request request = served(10, 100);
  request.execution.pp = 2;
  expect_in_order(timeline_of("llama-3.2-1b", "H100", request));
  request.execution.pp = 1;
  request.deployment.replicas = 2;
  expect_in_order(timeline_of("llama-3.2-1b", "H100", request));
}

TEST(PowerTimelines, WhatHasNoneIsRefused) {
  Request request{.kind = RequestKind::kGenerate};
  EXPECT_ERROR(timeline_of("llama-3.2-1b", "H100", request), kInput, "a server under load");
  EXPECT_ERROR(timeline_of("gpt2", "H100:1g.10gb", {}), kUnsupported, "is not forecast");
  Request best;
  best.energy.best_power_cap = true;
  EXPECT_ERROR(timeline_of("gpt2", "H100", best), kInput, "takes a cap in watts");
  // 405 billion parameters fit no GPU.
  EXPECT_ERROR(timeline_of("llama-3.1-405b", "H100", served(1, 10)), kInput, "does not run");
}

TEST(PowerTimelines, TellStepsOfPromptsFromThoseThatAlsoDecode) {
  const PowerTimeline t{
      .gpu_name = "GPU",
      .seconds = 3,
      .limit_w = 700,
      .ranks = {{.points = {{0, 600, "prompts of 64 tokens"},
                            {1, 500, "prompts of 64 tokens, decode of 2 sequences"},
                            {2, 400, "decode of 2 sequences"}}}}};
  std::vector<std::string> kinds;
  const Json trace = parse_json(power_trace_json(t), "the trace");
  for (const Json& event : trace["traceEvents"])
    if (event.contains("cat")) kinds.push_back(event["cat"]);
  EXPECT_EQ(kinds, (std::vector<std::string>{"prompts", "prompts and decode", "decode"}));
}

TEST(PowerTimelines, AreCountersInATrace) {
  const PowerTimeline t = timeline_of("llama-3.2-1b", "H100", served(40, 50));
  const Json events = parse_json(power_trace_json(t), "the trace")["traceEvents"];
  size_t counters = 0;
  double last_us = -1;
  for (const Json& event : events) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "power");
    EXPECT_GE(event["ts"].get<double>(), last_us);
    last_us = event["ts"].get<double>();
    ++counters;
  }
  EXPECT_EQ(counters, t.ranks[0].points.size() + 1);
  const std::string picture = power_svg(t);
  EXPECT_NE(picture.find("limit"), std::string::npos);
  EXPECT_NE(picture.find("<polyline"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
