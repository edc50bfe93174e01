// Experts that other ranks divide than the tensor-parallel ones.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "training_steps.h"

namespace tilecast {
namespace {

constexpr const char* kModel = "qwen3-30b-a3b";
constexpr double kLayers = 48, kHidden = 2048, kTopK = 8;

Request experts_request(int64_t dp, int64_t tp, int64_t ep, int64_t expert_tp) {
  Request request = training(16);
  request.execution.software = software_of("megatron");
  request.execution.dtype = "bf16";
  request.execution.dp = dp;
  request.execution.tp = tp;
  request.parallel.ep = ep;
  request.parallel.expert_tp = expert_tp;
  request.parallel.sequence_parallel = tp > 1;
  request.parallel.cluster = "dgx-a100";
  return request;
}

TEST(ExpertTensorParallel, RanksDivideTheWeightsOfExpertsByBothDegrees) {
  const auto weights = [](int64_t ep, int64_t expert_tp) {
    const Request request = experts_request(16, 1, ep, expert_tp);
    return static_cast<double>(forecast(request, kModel).memory.weights_bytes);
  };
  // 128 experts of three matrices of 2,048 x 768.
  constexpr double kExperts = 2 * kLayers * 128 * 3 * kHidden * 768;
  const double whole = weights(1, 1);
  for (const auto& [ep, expert_tp] :
       {std::pair{4, 1}, std::pair{4, 2}, std::pair{1, 8}, std::pair{2, 8}, std::pair{8, 2}}) {
    const double left = 1.0 / (ep * expert_tp);
    EXPECT_NEAR((whole - weights(ep, expert_tp)) / kExperts, 1 - left, 1e-4)
        << ep << " " << expert_tp;
  }
}

TEST(ExpertTensorParallel, RanksOfAnExpertGatherTheRowsThatTheyWereSent) {
  // A micro-batch of two sequences of 1,024 tokens on a rank; each token goes to eight experts.
  constexpr double kRows = 2 * 1024 * kTopK;
  for (const auto& [dp, tp, expert_tp] : {std::tuple{8, 1, 2}, std::tuple{8, 2, 4}}) {
    Request request = experts_request(dp, tp, 2, expert_tp);
    const Forecast f = forecast(request, kModel);
    double gathered = 0, scattered = 0;
    for (const KernelForecast& k : f.kernels) {
      double* const sum = k.op == "expert_all_gather"       ? &gathered
                          : k.op == "expert_reduce_scatter" ? &scattered
                                                            : nullptr;
      if (sum != nullptr) *sum += static_cast<double>(k.shape.values[0] * k.count);
    }
    const double expected = 2 * kLayers * kRows / tp * expert_tp * kHidden;
    EXPECT_NEAR(gathered / expected, 1, 1e-9) << "forward, and for the gradient of the sum";
    EXPECT_NEAR(scattered / expected, 1, 1e-9);
  }
}

TEST(ExpertTensorParallel, RanksOfTheBusiestExpertsGatherMostRows) {
  const auto elements = [](int64_t skew_percent, std::string_view op) {
    Request request = experts_request(8, 1, 2, 2);
    request.execution.skew_percent = skew_percent;
    double sum = 0;
    for (const KernelForecast& k : forecast(request, kModel).kernels) {
      if (k.op == op) sum += static_cast<double>(k.shape.values[0] * k.count);
    }
    return sum;
  };
  const double busiest = elements(200, "expert_dispatch") / elements(0, "expert_dispatch");
  EXPECT_GT(busiest, 1.01);
  for (const char* op : {"expert_all_gather", "expert_reduce_scatter"})
    EXPECT_NEAR(elements(200, op) / elements(0, op), busiest, 1e-6) << op;
}

TEST(ExpertTensorParallel, TheTensorParallelRanksAreTheDefault) {
  Request request = experts_request(4, 2, 2, 2);
  const Forecast given = forecast(request, kModel);
  request.parallel.expert_tp.reset();
  const Forecast not_given = forecast(request, kModel);
  EXPECT_EQ(given.latency_s, not_given.latency_s);
  EXPECT_EQ(given.memory.peak_bytes, not_given.memory.peak_bytes);
}

TEST(ExpertTensorParallel, ImpossibleLayoutsAreRefused) {
  const auto refused = [](Request request, const std::string& model = kModel) -> std::string {
    try {
      forecast(request, model);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(
      has(refused(experts_request(8, 1, 1, 3)), "`expert-tensor-parallel-size` 3 does not"));
  EXPECT_TRUE(has(refused(experts_request(8, 1, 8, 2)), "`ep` 8 does not divide these ranks over"));
  Request whole_rows = experts_request(4, 4, 2, 2);
  whole_rows.parallel.sequence_parallel = false;
  EXPECT_TRUE(has(refused(whole_rows), "needs `sequence-parallel` on"));
  Request once = experts_request(8, 1, 2, 2);
  once.parallel.token_dispatcher = TokenDispatcher::kFlex;
  EXPECT_TRUE(has(refused(once), "use alltoall"));
  EXPECT_TRUE(has(refused(experts_request(8, 1, 1, 2), "llama-3.2-1b"), "has no experts"));
}

}  // namespace
}  // namespace tilecast
