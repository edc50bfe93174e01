// Plans of servers by energy and under a cap.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving_simulation.h"
#include "serving_query.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

TEST(ServingEnergy, LeastEnergyIsThatOfForecasts) {
  ServingQuery query = query_of({"H100", "L40S"});
  query.space.tp = {1, 2};
  query.objective = PlanObjective::kEnergy;
  const ModelRef model = load_model_ref("llama-3-8b");
  const ServingPlan plan = plan_serving(forecaster(), model, query);
  ASSERT_GT(plan.meeting, 5u);
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const ServingCandidate& c = plan.candidates[i];
    EXPECT_EQ(c.prefill_workers, 0);
    EXPECT_EQ(c.meets, c.energy_per_token_j.has_value());
    // The first may be a simpler layout that ties; further ones are in order within layouts.
    if (c.meets) {
      EXPECT_LE(*plan.candidates.front().energy_per_token_j,
                *c.energy_per_token_j / (1 - ServingPlan::kTieRatio));
    }
    if (!c.meets || i % 4 != 0) continue;
    const GenerationForecast f = forecast_generation(
        forecaster(), model, query.hardware[c.hardware].gpu, request_of(plan, c));
    EXPECT_EQ(*c.energy_per_token_j, *f.power->energy_per_token_j);
    EXPECT_EQ(*c.power_w, f.power->power_w.value);
    EXPECT_LE(*c.power_w, f.power->limit_w);
    EXPECT_GE(*c.power_w, f.power->idle_w);
  }
}

TEST(ServingEnergy, ServersForALoadMayTakeLeastEnergy) {
  ServingQuery query = query_of({"H100", "L40S"});
  query.request.load.concurrency = 0;
  query.request.load.rate = 20;
  query.space.tp = {1, 2};
  query.objective = PlanObjective::kEnergy;
  const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  ASSERT_GT(plan.meeting, 1u);
  for (size_t i = 1; i < plan.layouts; ++i)
    EXPECT_LE(*plan.candidates.front().energy_per_token_j,
              *plan.candidates[i].energy_per_token_j / (1 - ServingPlan::kTieRatio));
}

TEST(ServingEnergy, ACapNeverMakesServersFaster) {
  ServingQuery query = query_of({"H100"});
  query.space = {.tp = {1}, .prefill_workers = {0}, .concurrency = {1, 16, 64}, .dtypes = {"bf16"}};
  query.ttft_s = query.tpot_s = query.request.load.ttft_s = query.request.load.tpot_s = {};
  const auto throughput = [&](std::optional<double> cap_w) {
    query.request.energy.power_cap_w = cap_w;
    const ServingPlan plan = plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
    std::map<int64_t, double> by_clients;
    for (const ServingCandidate& c : plan.candidates) by_clients[c.concurrency] = c.tokens_per_s;
    return by_clients;
  };
  std::map<int64_t, double> before = throughput({});
  for (const double cap_w : {500.0, 350.0, 250.0}) {
    const std::map<int64_t, double> now = throughput(cap_w);
    for (const auto& [clients, tokens_per_s] : now)
      EXPECT_LE(tokens_per_s, before.at(clients) * (1 + 1e-9)) << cap_w << ' ' << clients;
    before = now;
  }
}

TEST(ServingEnergy, ForgottenResultsHaveNoPower) {
  ServingCandidate c;
  c.power_w = c.energy_per_token_j = 500;
  c.power_interval = {500, 450, 550};
  forget_results(c);
  EXPECT_FALSE(c.power_w || c.energy_per_token_j);
  EXPECT_EQ(c.power_interval.high, 0);
}

TEST(ServingEnergy, ObjectivesThatCannotBeRankedAreRefused) {
  ServingQuery query = query_of({"H100"});
  const auto plan = [&](PlanObjective objective) {
    query.objective = objective;
    return plan_serving(forecaster(), load_model_ref("llama-3-8b"), query);
  };
  EXPECT_ERROR(plan(PlanObjective::kMemory), kInput, "applies to training");
  EXPECT_ERROR(plan(PlanObjective::kCost), kInput, "needs prices");
  query.has_prices = true;
  query.hardware[0].price.price_per_gpu_hour = 0;
  EXPECT_ERROR(plan(PlanObjective::kCost), kInput, "the price of nvidia-h100-sxm5-80gb is 0");
  query.space.prefill_workers = {1};
  EXPECT_ERROR(plan(PlanObjective::kEnergy), kInput, "prefill workers is not forecast");
  query.space.prefill_workers = {};
  query.hardware[0].gpu = load_gpu_ref("H100:1g.10gb");
  EXPECT_ERROR(plan(PlanObjective::kEnergy), kInput, "a part of a GPU");
}

}  // namespace
}  // namespace tilecast
