// Fast and slow hosts.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "laws/constants.h"
#include "passes.h"
#include "scenario/timing.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "text_requests.h"

namespace tilecast {
namespace {

const HostConstants& ratios() { return bundled_laws().host; }

HostCosts costs_of(HostClass host) {
  Execution execution{.software = software_of("trtllm"), .software_version = "1.0"};
  execution.host = host;
  complete(execution, Software{});
  return host_costs(execution);
}

TEST(Host, AFastAndASlowOneTakeTheirShareOfAllCosts) {
  const HostCosts typical = costs_of(HostClass::kTypical), fast = costs_of(HostClass::kFast),
                  slow = costs_of(HostClass::kSlow);
  ASSERT_GT(typical.sequence_overhead_s, 0);
  for (double HostCosts::* cost :
       {&HostCosts::host_launch_s, &HostCosts::step_overhead_s, &HostCosts::sequence_overhead_s,
        &HostCosts::request_overhead_s, &HostCosts::request_turn_s, &HostCosts::ngram_token_s}) {
    EXPECT_DOUBLE_EQ(fast.*cost, ratios().fast_ratio * typical.*cost);
    EXPECT_DOUBLE_EQ(slow.*cost, ratios().slow_ratio * typical.*cost);
  }
}

TEST(Host, AServersStepsAndRequestsDependOnIt) {
  const auto forecast = [](HostClass host) {
    Request request{.kind = RequestKind::kServe, .prompt = 64, .output = 16};
    request.load.rate = 0.01;
    request.load.requests = 20;
    request.execution.host = host;
    return forecast_text("llama-3.2-1b", "H100", request);
  };
  const GenerationForecast typical = forecast(HostClass::kTypical),
                           slow = forecast(HostClass::kSlow), fast = forecast(HostClass::kFast);
  const HostCosts costs = software_def(software_of("vllm")).costs;
  EXPECT_NEAR(slow.tpot.value - typical.tpot.value,
              (ratios().slow_ratio - 1) * costs.step_overhead_s, 1e-9);
  EXPECT_LT(fast.tpot.value, typical.tpot.value);
  const double more = slow.serving->all.ttft.median.value - typical.serving->all.ttft.median.value;
  EXPECT_GE(more,
            (ratios().slow_ratio - 1) * (costs.request_overhead_s + costs.request_turn_s) - 1e-9);
}

TEST(Host, AnEagerPassOfSmallKernelsTakesAsMuchLonger) {
  const auto seconds = [](HostClass host) {
    Request request{.seq = 16};
    request.execution.host = host;
    return forecast("gpt2", "H100", request).latency_s.value;
  };
  // The GPU's last kernels, and those of the output layer, do not wait for the host.
  const double longer = seconds(HostClass::kSlow) / seconds(HostClass::kTypical) - 1;
  EXPECT_GT(longer, 0.9 * (ratios().slow_ratio - 1));
  EXPECT_LE(longer, ratios().slow_ratio - 1);
}

TEST(Host, AssumptionsSayWhichOneItIs) {
  Request request{.kind = RequestKind::kGenerate, .prompt = 64, .output = 16};
  const auto words = [&] {
    for (const std::string& each : assumptions(forecast_text("llama-3.2-1b", "H100", request)))
      if (each.find("a launch") != std::string::npos) return each;
    return std::string();
  };
  EXPECT_EQ(words(), "vLLM, 50 us of a typical host a launch");
  request.execution.host = HostClass::kSlow;
  EXPECT_EQ(words(), "vLLM, 75 us of a slow host a launch");
}

TEST(Host, TimesThatAreGivenStay) {
  Request request{.kind = RequestKind::kGenerate, .prompt = 64, .output = 16};
  request.execution.host_launch_s = 30e-6;
  request.execution.step_overhead_s = 200e-6;
  request.execution.sequence_overhead_s = 0;
  const double typical = forecast_text("llama-3.2-1b", "H100", request).request.value;
  request.execution.host = HostClass::kSlow;
  EXPECT_EQ(forecast_text("llama-3.2-1b", "H100", request).request.value, typical);
}

/// A step whose optimizer the host computes.
Request offloaded() {
  Request request{.batch = 8, .mode = Mode::kTraining, .seq = 64};
  request.execution.dtype = "bf16";
  request.optimizer_offload = true;
  return request;
}

Request offloaded_tables() {
  Request request{.batch = 2048, .mode = Mode::kTraining};
  request.optimizer_offload = true;
  return request;
}

TEST(OffloadedOptimizer, TakesTheRatesOfTheLinkAndOfTheHostsMemory) {
  const Forecast f = forecast("gpt2", "H100", offloaded());
  double link = 0;
  for (const Link& each : find_device("H100").links)
    if (each.kind == "pcie") link = each.bytes_per_s * ratios().link_ratio;
  ASSERT_GT(link, 0);
  // Gradients in fp32, parameters in bf16; Adam reads four fp32 numbers, and writes three and the
  // parameter in bf16.
  const auto parameters = static_cast<double>(f.parameters);
  const double copied_s = (4 + 2) * parameters / link;
  EXPECT_NEAR(f.optimizer_s, copied_s + 30 * parameters / ratios().memory_bytes_per_s, 1e-4);
  EXPECT_EQ(f.memory.optimizer_bytes, 0);
  EXPECT_EQ(f.memory.host_optimizer_bytes, 16 * f.parameters);
  Request twice = offloaded();
  twice.host_bytes_per_s = 2 * ratios().memory_bytes_per_s;
  EXPECT_NEAR(forecast("gpt2", "H100", twice).optimizer_s,
              copied_s + 15 * parameters / ratios().memory_bytes_per_s, 1e-4);
}

TEST(OffloadedOptimizer, AssumptionsSayItsRates) {
  const std::vector<std::string> words = assumptions(forecast("gpt2", "H100", offloaded()));
  EXPECT_TRUE(std::any_of(words.begin(), words.end(), [](const std::string& each) {
    return each.find("adamw on the host, 460 GB/s of its memory, 53.5 GB/s of its link") !=
           std::string::npos;
  })) << "0.85 of the rate in the data sheet";
}

TEST(OffloadedOptimizer, IsRefusedForTheDefaultOfModelsWithTables) {
  EXPECT_ERROR(forecast("dlrm_mlperf", "H100", offloaded_tables()), kInput,
               "`optimizer-offload` with `optimizer` sgd: hosts update by Adam");
}

TEST(OffloadedOptimizer, SharesTheHostsMemoryWithTheOtherGpusOfANode) {
  Request request = offloaded();
  const double alone_s = forecast("gpt2", "H100", request).optimizer_s;
  request.execution.dp = 8;
  const Forecast eight = forecast("gpt2", "H100", request);
  const double update_s = 30 * static_cast<double>(eight.parameters) / ratios().memory_bytes_per_s;
  EXPECT_NEAR(eight.optimizer_s - alone_s, 7 * update_s, 0.02 * update_s);
  // Each of them updates an eighth.
  request.parallel.zero = Zero::kOptimizer;
  const Forecast divided = forecast("gpt2", "H100", request);
  EXPECT_NEAR(divided.optimizer_s, eight.optimizer_s / 8, 1e-4);
  EXPECT_NEAR(static_cast<double>(divided.memory.host_optimizer_bytes),
              static_cast<double>(2 * eight.parameters), 64);
}

}  // namespace
}  // namespace tilecast
