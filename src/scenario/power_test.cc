#include "scenario/power.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "scenario/internal.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

Forecast powered_forecast(const char* model, const char* gpu, const Request& request) {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref(gpu), request);
}

Forecast powered_step(const EnergyTerms& energy = {}, const std::string& clocks = "",
                      const char* gpu = "H100") {
  return powered_forecast("llama-3.2-1b", gpu,
                          {.batch = 4,
                           .mode = Mode::kTraining,
                           .seq = 1024,
                           .execution = {.dtype = "bf16", .clocks = clocks},
                           .energy = energy});
}

TEST(PowerOfForecasts, ATrainingStepHoldsItsClockAndAPassDoesNot) {
  const Forecast step = powered_step();
  ASSERT_TRUE(step.power);
  EXPECT_EQ(step.used.execution.clocks, "sustained");
  EXPECT_GE(step.latency_s, powered_step({}, "boost").latency_s);
  const Forecast pass = powered_forecast("llama-3.2-1b", "H100", {.execution = {.dtype = "bf16"}});
  EXPECT_EQ(pass.used.execution.clocks, "boost");
  EXPECT_EQ(pass.latency_s, powered_forecast("llama-3.2-1b", "H100",
                                             {.execution = {.dtype = "bf16", .clocks = "boost"}})
                                .latency_s);
}

TEST(PowerOfForecasts, TheBaselineOfTheDataSheetStaysAtItsClock) {
  const auto step = [](const std::string& clocks) {
    return powered_forecast(
        "llama-3.2-1b", "H100",
        {.batch = 4,
         .mode = Mode::kTraining,
         .seq = 1024,
         .execution = {.dtype = "bf16", .predictor = PredictorKind::kRoofline, .clocks = clocks}});
  };
  EXPECT_EQ(step("").used.execution.clocks, "boost");
  EXPECT_EQ(step("").latency_s, step("boost").latency_s);
  EXPECT_GT(step("sustained").latency_s, step("").latency_s);
}

TEST(PowerOfForecasts, PowerIsBetweenIdleAndTheLimit) {
  for (const char* gpu : {"H100", "A100", "V100", "T4", "L4", "B200", "MI300X"}) {
    for (const int64_t batch : {1, 16}) {
      const Forecast f = powered_forecast("gpt2_large", gpu, {.batch = batch, .seq = 512});
      ASSERT_TRUE(f.power) << gpu;
      EXPECT_GE(f.power->power_w, f.power->idle_w) << gpu;
      EXPECT_LE(f.power->power_w, f.power->limit_w) << gpu;
      EXPECT_LE(f.power->power_w.low, f.power->power_w.value) << gpu;
      EXPECT_GE(f.power->power_w.high, f.power->power_w.value) << gpu;
      EXPECT_NEAR(f.power->energy_j, f.power->power_w * f.latency_s, 1e-9 * f.power->energy_j);
    }
  }
}

TEST(PowerOfForecasts, MoreWorkTakesMoreEnergy) {
  double before = 0;
  for (const int64_t batch : {1, 2, 4, 8, 16}) {
    const Forecast f = powered_forecast("gpt2_large", "A100", {.batch = batch, .seq = 512});
    EXPECT_GT(f.power->energy_j, before) << batch;
    before = f.power->energy_j;
  }
}

TEST(PowerOfForecasts, ACapIsHeldAndNeverFaster) {
  const Forecast free = powered_step();
  double before = free.latency_s;
  for (const double cap : {600.0, 450.0, 300.0, 200.0}) {
    const Forecast f = powered_step({.power_cap_w = cap});
    EXPECT_LE(f.power->power_w, cap) << cap;
    EXPECT_GE(f.latency_s, before) << cap;
    EXPECT_EQ(f.power->limit_w, cap);
    before = f.latency_s;
  }
  EXPECT_GT(before, free.latency_s);
}

TEST(PowerOfForecasts, CostsAreEnergyAndTimeTimesThePrices) {
  Request request{.batch = 8, .mode = Mode::kTraining, .seq = 512};
  request.tokens = int64_t{1} << 30;
  request.execution.dp = 2;
  request.energy = {
      .power_cap_w = {}, .price_per_gpu_hour = 3, .price_per_kwh = 0.2, .carbon_g_per_kwh = 400};
  const Forecast f = powered_forecast("gpt2_large", "A100", request);
  ASSERT_TRUE(f.power && f.training_run);
  const double kwh = f.power->energy_j / 3.6e6;
  EXPECT_EQ(*f.power->energy_cost, 0.2 * kwh);
  EXPECT_EQ(*f.power->carbon_g, 400 * kwh);
  EXPECT_NEAR(*f.power->gpu_cost, 3 * 2 * f.latency_s / 3600, 1e-12);
  EXPECT_NEAR(*f.power->energy_per_token_j, f.power->energy_j / (8 * 512), 1e-9);
  EXPECT_NEAR(*f.training_run->cost,
              3 * f.training_run->gpu_hours + 0.2 * *f.training_run->energy_kwh, 1e-9);
  EXPECT_NEAR(*f.training_run->energy_kwh, kwh * static_cast<double>(*request.tokens) / (8 * 512),
              1e-6 * *f.training_run->energy_kwh);
  const Forecast unpriced = powered_forecast("gpt2_large", "A100", {.batch = 8, .seq = 512});
  EXPECT_FALSE(unpriced.power->gpu_cost || unpriced.power->cost_per_million_tokens);
}

TEST(PowerOfForecasts, CapsThatNoBoardHasAreRefused) {
  EXPECT_ERROR(powered_step({.power_cap_w = 20}), kInput, "nothing for work");
  EXPECT_ERROR(powered_step({.power_cap_w = 900}), kInput, "more than the limit");
  EXPECT_ERROR(powered_step({.power_cap_w = 500}, "boost"), kInput, "contradicts");
}

TEST(PowerOfForecasts, TheBestCapTakesLeastEnergy) {
  EnergyTerms best;
  best.best_power_cap = true;
  const Forecast f = powered_step(best);
  ASSERT_TRUE(f.power && f.used.energy.power_cap_w);
  EXPECT_FALSE(f.used.energy.best_power_cap);
  for (const double cap : {700.0, 560.0, 420.0, 280.0, 210.0})
    EXPECT_LE(*f.power->energy_per_token_j,
              *powered_step({.power_cap_w = cap}).power->energy_per_token_j)
        << cap;
  EXPECT_LT(*f.power->energy_per_token_j, *powered_step().power->energy_per_token_j);
}

TEST(PowerOfForecasts, CardsThatWereNeverMeasuredHaveWiderIntervals) {
  const auto pass = [](const char* gpu) {
    return *powered_forecast("gpt2_large", gpu, {.seq = 512, .execution = {.dtype = "bf16"}}).power;
  };
  const PowerForecast h100 = pass("H100"), mi300x = pass("MI300X"), b200 = pass("B200");
  EXPECT_GT(h100.coverage_ratio, 0.9);
  EXPECT_EQ(mi300x.coverage_ratio, 0);
  EXPECT_EQ(b200.coverage_ratio, 0);
  const auto width = [](const PowerForecast& p) { return p.power_w.high / p.power_w.value; };
  EXPECT_NEAR(width(h100), std::exp(0.14), 0.02);
  EXPECT_NEAR(width(mi300x), std::exp(0.3), 0.01);
  EXPECT_GT(width(mi300x), width(h100));
}

TEST(PowerOfForecasts, ServersAndCoolingStandApart) {
  const std::string path = ::testing::TempDir() + "/powered_node.json";
  const auto fact = [](const char* value, const char* unit) {
    return fmt::format(R"({{"value": {}, "unit": "{}", "source": "a test"}})", value, unit);
  };
  std::string file = fmt::format(
      R"({{"schema_version": 1, "id": "node", "name": "A node", "device": "nvidia-h100-sxm5-80gb",
          "gpus_per_node": {}, "links": [{{"kind": "nvlink", "gpus": {}, "start_s": {},
          "latency_s": {}, "fabric": {{"value": "switch", "source": "a test"}}}}]}})",
      fact("8", "1"), fact("8", "1"), fact("5e-6", "s"), fact("1e-6", "s"));
  const auto step = [&](const std::string& text) {
    write_file(path, text);
    Request request{.batch = 8, .mode = Mode::kTraining, .seq = 512};
    request.parallel.cluster = path;
    request.execution.dp = 4;
    request.energy.price_per_kwh = 0.2;
    return powered_forecast("gpt2_large", "H100", request);
  };
  const Forecast bare = step(file);
  ASSERT_TRUE(bare.power);
  EXPECT_FALSE(bare.power->server_energy_j || bare.power->facility_energy_j);
  file.insert(1,
              fmt::format(R"("server_w": {}, "pue": {}, )", fact("2400", "W"), fact("1.25", "1")));
  const Forecast f = step(file);
  // Half of the node's GPUs take part.
  EXPECT_NEAR(*f.power->server_energy_j, 1200 * f.latency_s, 1e-9 * *f.power->server_energy_j);
  EXPECT_NEAR(*f.power->facility_energy_j, 1.25 * (f.power->energy_j + *f.power->server_energy_j),
              1e-9 * *f.power->facility_energy_j);
  EXPECT_EQ(*f.power->facility_energy_cost, 0.2 * *f.power->facility_energy_j / 3.6e6);
  EXPECT_EQ(f.power->energy_j.value, bare.power->energy_j.value);
  EXPECT_EQ(*f.power->energy_cost, *bare.power->energy_cost);
}

TEST(PowerOfForecasts, ClocksAreBetweenTheLowestAndTheHighest) {
  for (const char* gpu : {"H100", "A100", "L4", "MI300X"}) {
    for (const double share : {1.0, 0.6, 0.4}) {
      const double limit = powered_step({}, "", gpu).power->limit_w;
      const Forecast f = powered_step({.power_cap_w = share * limit}, "", gpu);
      const double boost = powered_step({}, "boost", gpu).power->clock_hz;
      EXPECT_LE(f.power->clock_hz, boost) << gpu;
      EXPECT_GE(f.power->clock_hz, 0.3 * boost * (1 - 1e-9)) << gpu;
    }
  }
}

TEST(PowerOfForecasts, GenerationStatesItsPower) {
  Request request{.kind = RequestKind::kGenerate, .batch = 4};
  request.prompt = 512;
  request.output = 64;
  const GenerationForecast f = forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"),
                                                   load_gpu_ref("H100"), request);
  ASSERT_TRUE(f.power);
  EXPECT_GT(f.power->power_w, f.power->idle_w);
  EXPECT_LT(f.power->power_w, f.power->limit_w);
  EXPECT_NEAR(*f.power->tokens_per_kwh, 3.6e6 / *f.power->energy_per_token_j, 1);
}

/// A server under load that writes 64 tokens for each request.
Request served_request(int64_t prompt, double rate, int64_t requests) {
  Request request{.kind = RequestKind::kServe};
  request.prompt = prompt;
  request.output = 64;
  request.load.rate = rate;
  request.load.requests = requests;
  return request;
}

GenerationForecast served_forecast(const Request& request) {
  return forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"), load_gpu_ref("H100"),
                             request);
}

TEST(PowerOfForecasts, AServerUnderLoadStatesItsOwn) {
  const auto served = [](double rate) { return served_forecast(served_request(512, rate, 200)); };
  const GenerationForecast idle = served(0.1), busy = served(40);
  ASSERT_TRUE(idle.power && busy.power && idle.serving && busy.serving);
  EXPECT_NEAR(idle.power->power_w, idle.power->idle_w, 0.05 * idle.power->idle_w);
  EXPECT_GT(busy.power->power_w, 1.5 * idle.power->power_w);
  EXPECT_LT(*busy.power->energy_per_token_j, 0.1 * *idle.power->energy_per_token_j);
  // Watts over tokens a second.
  EXPECT_NEAR(*busy.power->energy_per_token_j,
              busy.power->power_w / busy.serving->steady_or_all().output_tokens_per_s,
              0.02 * *busy.power->energy_per_token_j);
}

TEST(PowerOfForecasts, TokensOfAServerCostWhatItsGpusCost) {
  Request request = served_request(256, 8, 200);
  request.deployment.replicas = 2;
  request.energy = {
      .power_cap_w = {}, .price_per_gpu_hour = 3, .price_per_kwh = 0.2, .carbon_g_per_kwh = {}};
  const GenerationForecast f = served_forecast(request);
  ASSERT_TRUE(f.power && f.serving);
  const double tokens_per_hour = 3600 * f.serving->steady_or_all().output_tokens_per_s;
  const double an_hour = 2 * (3 + 0.2 * f.power->power_w / 1000);
  EXPECT_NEAR(*f.power->cost_per_million_tokens, an_hour * 1e6 / tokens_per_hour,
              0.02 * *f.power->cost_per_million_tokens);
}

TEST(PowerOfForecasts, PricesOfAServerAreUsedToTheDigit) {
  Request request = served_request(256, 8, 200);
  request.execution.tp = 2;
  request.energy = {
      .power_cap_w = {}, .price_per_gpu_hour = 3, .price_per_kwh = 0.2, .carbon_g_per_kwh = 400};
  const PowerForecast p = *served_forecast(request).power;
  const double kwh = p.energy_j / 3.6e6;
  EXPECT_EQ(*p.energy_cost, 0.2 * kwh);
  EXPECT_EQ(*p.carbon_g, 400 * kwh);
  EXPECT_EQ(*p.cost_per_million_tokens, 1e6 * (*p.gpu_cost + *p.energy_cost) / 64);
  // Energy is the power of both GPUs times the time for which their price is paid.
  const double paid_s = *p.gpu_cost / 3 * 3600 / 2;
  EXPECT_NEAR(p.energy_j, 2 * p.power_w * paid_s, 1e-9 * p.energy_j);
}

TEST(PowerOfForecasts, OfServersLiesBetweenIdleAndTheLimit) {
  for (const char* gpu : {"H100", "A100", "L4", "B200", "MI300X"}) {
    for (const double rate : {0.2, 5.0, 200.0}) {
      for (const char* clocks : {"boost", "sustained", "1200"}) {
        Request request = served_request(256, rate, 100);
        request.execution.clocks = clocks;
        const GenerationForecast f = forecast_generation(
            forecaster(), load_model_ref("llama-3.2-1b"), load_gpu_ref(gpu), request);
        ASSERT_TRUE(f.power) << gpu;
        EXPECT_GE(f.power->power_w.low, f.power->idle_w) << gpu << ' ' << rate;
        EXPECT_LE(f.power->power_w.high, f.power->limit_w) << gpu << ' ' << rate;
        const double boost_hz = load_gpu_ref(gpu).content->device.gpu().boost_clock_hz;
        EXPECT_LE(f.power->clock_hz, boost_hz * (1 + 1e-9)) << gpu;
        EXPECT_GE(f.power->clock_hz, 0.3 * boost_hz) << gpu;
      }
    }
  }
}

TEST(PowerOfForecasts, MoreWorkOfAServerTakesMoreEnergy) {
  const auto joules = [](int64_t prompt, int64_t output) {
    Request request = served_request(prompt, 0, 128);
    request.load.concurrency = 16;
    request.output = output;
    return served_forecast(request).power->energy_j.value;
  };
  double before = 0;
  for (const int64_t prompt : {128, 512, 2048}) {
    const double now = joules(prompt, 64);
    EXPECT_GT(now, before) << prompt;
    before = now;
  }
  EXPECT_GT(joules(128, 256), joules(128, 64));
  Request request{.kind = RequestKind::kGenerate};
  before = 0;
  for (const int64_t batch : {1, 4, 16, 64}) {
    request.batch = batch;
    const GenerationForecast f = served_forecast(request);
    EXPECT_GT(f.power->energy_j, before) << batch;
    before = f.power->energy_j;
  }
}

TEST(PowerOfForecasts, ACapMakesNoServerFaster) {
  Request request = served_request(1024, 0, 128);
  request.load.concurrency = 32;
  request.execution.clocks = "sustained";
  GenerationForecast before = served_forecast(request);
  for (const double cap_w : {500.0, 350.0, 250.0}) {
    request.energy.power_cap_w = cap_w;
    const GenerationForecast f = served_forecast(request);
    EXPECT_LE(f.power->power_w.high, cap_w);
    EXPECT_EQ(f.power->limit_w, cap_w);
    EXPECT_GE(f.serving->all.tpot.mean.value, before.serving->all.tpot.mean.value) << cap_w;
    EXPECT_GE(f.serving->all.ttft.mean.value, before.serving->all.ttft.mean.value) << cap_w;
    EXPECT_LE(f.serving->all.output_tokens_per_s, before.serving->all.output_tokens_per_s) << cap_w;
    before = f;
  }
}

TEST(PowerOfForecasts, OptionsOfAServerAreInItsCommandOrNamedBesideIt) {
  Request request = served_request(256, 8, 50);
  const auto line = [&] { return launch_lines(served_forecast(request)).at(0); };
  EXPECT_EQ(line().without, "");
  request.deployment.replicas = 2;
  request.load.prefix_len = 64;
  request.load.prefix_caching = false;
  EXPECT_EQ(line().without, "--enable-prefix-caching off --replicas 2");
}

}  // namespace
}  // namespace tilecast
