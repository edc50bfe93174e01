// Times of a training step over several ranks: what is printed adds up.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "training_steps.h"

namespace tilecast {
namespace {

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
      Request request = as_published(
          {.batch = step.batch, .mode = Mode::kTraining, .optimizer = Optimizer::kAdamW});
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

Request tensor_parallel_experts() {
  Request request = training(16);
  request.seq = 1024;
  request.execution.software = software_of("megatron");
  request.execution.dtype = "bf16";
  request.execution.dp = 4;
  request.execution.tp = 2;
  request.execution.microbatches = 2;
  request.parallel.ep = 4;
  request.parallel.sequence_parallel = true;
  request.parallel.zero = Zero::kOptimizer;
  request.optimizer = Optimizer::kAdam;
  return request;
}

/// Two ranks that divide each expert, or twice as many with whole ones: the same work and states.
TEST(Parallel, ExpertsOnTensorParallelRanksHaveTheSameWorkAndStates) {
  Request request = tensor_parallel_experts();
  const Forecast divided = forecast(request, "mixtral-8x7b");
  request.parallel.ep = 8;
  request.parallel.expert_tp = 1;
  const Forecast whole = forecast(request, "mixtral-8x7b");
  constexpr double kRounded = 1e-3;  // routers, half-empty tiles
  EXPECT_NEAR(static_cast<double>(whole.model_flops) / static_cast<double>(divided.model_flops), 1,
              kRounded);
  EXPECT_EQ(whole.parameters, divided.parameters);
  EXPECT_EQ(whole.memory.weights_bytes, divided.memory.weights_bytes);
  EXPECT_EQ(whole.memory.optimizer_bytes, divided.memory.optimizer_bytes);
  // Each sends its own tokens, not those of both.
  EXPECT_LT(whole.parallel->communication_s, divided.parallel->communication_s);
}

/// Eight experts a token on sixteen ranks of two nodes: a rank gets a token once, as the other node
/// does.
TEST(Parallel, FlexDispatchersSendATokenOnce) {
  Request request = training(16);
  request.seq = 1024;
  request.execution.software = software_of("megatron");
  request.execution.dtype = "bf16";
  request.execution.dp = 16;
  request.parallel.cluster = "dgx-h100";
  request.parallel.ep = 16;
  request.parallel.zero = Zero::kOptimizer;
  request.optimizer = Optimizer::kAdam;
  const Forecast all_to_all = forecast(request, "qwen3-30b-a3b");
  request.parallel.token_dispatcher = TokenDispatcher::kFlex;
  const Forecast flex = forecast(request, "qwen3-30b-a3b");
  // Between the nodes 1 copy instead of 4, inside 6.5 instead of 8.
  EXPECT_LT(flex.parallel->communication_s, 0.6 * all_to_all.parallel->communication_s);
  EXPECT_GT(flex.parallel->communication_s, 0.1 * all_to_all.parallel->communication_s);
  EXPECT_LT(flex.model_flops, all_to_all.model_flops);
  EXPECT_NEAR(static_cast<double>(flex.model_flops) / static_cast<double>(all_to_all.model_flops),
              1, 1e-3)
      << "the work of sorting";
  EXPECT_EQ(flex.memory.peak_bytes, all_to_all.memory.peak_bytes);
  // What is received is sorted once, not by sender and by expert.
  EXPECT_LT(flex.forward_s, all_to_all.forward_s);
}

TEST(Parallel, OverlapsShortenAStepByItsExchangesAtMost) {
  const Request plain = tensor_parallel_experts();
  const Forecast before = forecast(plain, "mixtral-8x7b");
  for (const bool experts : {false, true}) {
    Request request = plain;
    (experts ? request.parallel.moe_comm_overlap : request.parallel.tp_comm_overlap) = true;
    const Forecast f = forecast(request, "mixtral-8x7b");
    EXPECT_LT(f.latency_s, before.latency_s) << experts;
    EXPECT_GT(f.latency_s, before.latency_s - before.parallel->exposed_communication_s) << experts;
    EXPECT_EQ(f.model_flops, before.model_flops);
    EXPECT_EQ(f.memory.peak_bytes, before.memory.peak_bytes);
  }
}

}  // namespace
}  // namespace tilecast
