// The fewest servers for a given load against forecasts of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "test_forecaster.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

constexpr double kTtftLimit = 0.5, kTpotLimit = 0.02;

ServingQuery sizing_of(const std::vector<std::string>& gpus, double rate, int64_t clients = 0) {
  ServingQuery query;
  query.request.kind = RequestKind::kServe;
  query.request.prompt = 1024;
  query.request.output = 64;
  query.request.load.rate = rate;
  query.request.load.concurrency = clients > 0 ? 1 : 0;
  query.clients = clients;
  for (const std::string& gpu : gpus) query.hardware.push_back({load_gpu_ref(gpu), ""});
  query.ttft_s = query.request.load.ttft_s = kTtftLimit;
  query.tpot_s = query.request.load.tpot_s = kTpotLimit;
  query.space.tp = {1, 2, 4};
  query.space.dtypes = {"bf16"};
  return query;
}

/// The forecast with the options that a plan prints, with another number of servers.
GenerationForecast forecast_of(const ModelRef& model, const ServingPlan& plan,
                               const ServingCandidate& c) {
  std::vector<GivenOption> given = {{"prompt", "1024"}, {"output", "64"}};
  const std::string options = options_text(plan, c);
  const std::vector<std::string> words = split(options, ' ');
  std::string gpu;
  for (size_t w = 0; w + 1 < words.size(); w += 2) {
    const std::string name = words[w].substr(2);
    if (name == "gpu")
      gpu = words[w + 1];
    else
      given.push_back({name, words[w + 1]});
  }
  return forecast_generation(forecaster(), model, load_gpu_ref(gpu), make_request(given));
}

bool keeps_limits(const GenerationForecast& f) {
  const ServerMetrics& part = f.serving->steady_or_all();
  return f.serving->keeps_up && part.ttft.p99.value <= kTtftLimit &&
         part.tpot.p99.value <= kTpotLimit;
}

TEST(ServingSizing, OneReplicaIsEnoughForALowRate) {
  const ServingPlan plan =
      plan_serving(forecaster(), load_model_ref("llama-3-8b"), sizing_of({"H100"}, 0.5));
  ASSERT_GT(plan.meeting, 2u);
  const ServingCandidate& first = plan.candidates.front();
  EXPECT_EQ(first.gpus(), 1);
  EXPECT_EQ(first.replicas, 1);
  EXPECT_EQ(first.prefill_workers, 0);
  EXPECT_DOUBLE_EQ(first.requests_per_s, 0.5);
  for (size_t i = 0; i < plan.meeting; ++i) {
    const ServingCandidate& c = plan.candidates[i];
    EXPECT_TRUE(c.replicas == 1 || c.prefill_workers > 0) << i;
  }
}

/// The numbers of rows are those of `forecast` with their options, and one server less (with
/// workers: one of each kind of its smallest number) misses a limit.
TEST(ServingSizing, RowsAreForecastsAndLessIsNotEnough) {
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingPlan plan = plan_serving(forecaster(), model, sizing_of({"H100", "L40S"}, 60));
  ASSERT_GT(plan.meeting, 4u);
  size_t several = 0;
  for (size_t i = 0; i < plan.meeting; ++i) {
    const ServingCandidate& c = plan.candidates[i];
    const std::string options = options_text(plan, c);
    const GenerationForecast f = forecast_of(model, plan, c);
    const ServerMetrics& part = f.serving->steady_or_all();
    EXPECT_EQ(c.ttft_s, part.ttft.p99.value) << options;
    EXPECT_EQ(c.tpot_s, part.tpot.p99.value) << options;
    EXPECT_EQ(c.requests_per_s, part.requests_per_s) << options;
    EXPECT_EQ(c.gpus(), f.serving->gpus) << options;
    EXPECT_TRUE(keeps_limits(f)) << options;
    // Half of the requests are judged.
    EXPECT_GE(2 * part.requests, f.serving->all.requests) << options;
    if (c.replicas == 1 || c.prefill_workers > 0) continue;
    ++several;
    ServingCandidate fewer = c;
    fewer.replicas -= 1;
    EXPECT_FALSE(keeps_limits(forecast_of(model, plan, fewer))) << options;
  }
  EXPECT_GT(several, 1u);
  for (size_t i = 1; i < plan.meeting; ++i)
    EXPECT_LE(plan.candidates.front().gpus(), plan.candidates[i].gpus());
}

TEST(ServingSizing, ClientsAreThoseOfAllReplicas) {
  const ModelRef model = load_model_ref("llama-3-8b");
  constexpr int64_t kClients = 300;
  const ServingPlan plan = plan_serving(forecaster(), model, sizing_of({"L40S"}, 0, kClients));
  ASSERT_GT(plan.meeting, 2u);
  size_t several = 0;
  for (size_t i = 0; i < plan.meeting; ++i) {
    const ServingCandidate& c = plan.candidates[i];
    EXPECT_GE(c.concurrency * c.replicas, kClients);
    EXPECT_LT((c.concurrency - 1) * c.replicas, kClients);
    const GenerationForecast f = forecast_of(model, plan, c);
    EXPECT_EQ(c.ttft_s, f.serving->steady_or_all().ttft.p99.value) << options_text(plan, c);
    EXPECT_EQ(c.tokens_per_s, f.serving->steady_or_all().output_tokens_per_s);
    several += c.replicas > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 1u);
}

/// A lower rate never takes more GPUs, of any layout.
TEST(ServingSizing, LessLoadNeedsNoMoreGpus) {
  const ModelRef model = load_model_ref("llama-3-8b");
  std::map<std::string, int64_t> before;
  int64_t least = 0;
  for (const double rate : {2.0, 10.0, 40.0, 120.0, 400.0}) {
    ServingQuery query = sizing_of({"H100", "A100"}, rate);
    query.space.prefill_workers = {0};
    const ServingPlan plan = plan_serving(forecaster(), model, query);
    ASSERT_GT(plan.meeting, 0u) << rate;
    EXPECT_GE(plan.candidates.front().gpus(), least) << rate;
    least = plan.candidates.front().gpus();
    for (size_t i = 0; i < plan.meeting; ++i) {
      const ServingCandidate& c = plan.candidates[i];
      int64_t& gpus = before[plan.gpu_ids[c.hardware] + std::to_string(c.tp)];
      EXPECT_GE(c.gpus(), gpus) << rate << " " << options_text(plan, c);
      gpus = c.gpus();
    }
  }
  EXPECT_GT(least, 4);
}

/// With a number of GPUs, no candidate takes more; a load that they cannot serve has no winner, and
/// the nearest says what it misses.
TEST(ServingSizing, TheNumberOfGpusIsTheMost) {
  const ModelRef model = load_model_ref("llama-3-8b");
  for (const double rate : {5.0, 5000.0}) {
    ServingQuery query = sizing_of({"L40S"}, rate);
    query.gpus = 4;
    const ServingPlan plan = plan_serving(forecaster(), model, query);
    EXPECT_EQ(plan.meeting > 0, rate < 1000) << rate;
    EXPECT_EQ(plan.winner().has_value(), rate < 1000) << rate;
    for (const ServingCandidate& c : plan.candidates) EXPECT_LE(c.gpus(), 4) << rate;
    if (plan.meeting > 0) continue;
    const ServingCandidate& nearest = plan.candidates.front();
    EXPECT_TRUE(nearest.simulated);
    EXPECT_TRUE(nearest.excess > 1 || !nearest.keeps_up);
  }
}

/// Without limits, servers keep up with the rate.
TEST(ServingSizing, WithoutLimitsServersKeepUp) {
  ServingQuery query = sizing_of({"L40S"}, 30);
  query.ttft_s = query.tpot_s = query.request.load.ttft_s = query.request.load.tpot_s = {};
  query.space.tp = {1};
  query.space.prefill_workers = {0};
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  ASSERT_EQ(plan.meeting, 1u);
  ServingCandidate c = plan.candidates.front();
  EXPECT_TRUE(c.keeps_up);
  ASSERT_GT(c.replicas, 1);
  c.replicas = std::max<int64_t>(1, c.replicas / 2);
  EXPECT_FALSE(forecast_of(model, plan, c).serving->keeps_up);
}

/// Prices decide, and the fewest GPUs are named beside the cheapest.
TEST(ServingSizing, TheCheapestComesFirstAndTheFewestIsNamed) {
  ServingQuery query = sizing_of({"H100", "L40S"}, 60);
  query.has_prices = true;
  query.hardware[0].price.price_per_gpu_hour = 100;
  query.hardware[1].price.price_per_gpu_hour = 1;
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  const ServingCandidate& first = plan.candidates.front();
  EXPECT_EQ(first.hardware, 1u);
  ASSERT_TRUE(plan.fewest);
  const ServingCandidate& fewest = plan.candidates[*plan.fewest];
  EXPECT_LT(fewest.gpus(), first.gpus());
  EXPECT_EQ(plan.price_per_hour(first), static_cast<double>(first.gpus()));
  for (size_t i = 0; i < plan.meeting; ++i) {
    EXPECT_GE(plan.price_per_hour(plan.candidates[i]), plan.price_per_hour(first));
    EXPECT_GE(plan.candidates[i].gpus(), fewest.gpus());
  }
}

/// Of the front, none is better both for a user and in GPUs.
TEST(ServingSizing, NoneIsBetterThanTheFront) {
  const ServingPlan plan =
      plan_serving(forecaster(), load_model_ref("llama-3-8b"), sizing_of({"H100"}, 60));
  ASSERT_GT(plan.front.size(), 1u);
  for (const size_t i : plan.front) {
    for (size_t j = 0; j < plan.meeting; ++j) {
      const ServingCandidate &on = plan.candidates[i], &c = plan.candidates[j];
      EXPECT_FALSE(c.user_tokens_per_s > on.user_tokens_per_s && c.gpus() < on.gpus());
    }
  }
}

}  // namespace
}  // namespace tilecast
