// The search against forecasts of single configurations.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "test_forecaster.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

constexpr const char* kGpt = R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
    "n_embd": 512, "n_head": 8, "n_layer": 6, "n_positions": 1024, "vocab_size": 50304})";
/// A dense layer before layers with experts: two kinds of layers.
constexpr const char* kExperts = R"({"model_type": "deepseek_v2",
    "architectures": ["DeepseekV2ForCausalLM"], "hidden_size": 512, "num_hidden_layers": 5,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1408,
    "moe_intermediate_size": 256, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1, "kv_lora_rank": 128,
    "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "q_lora_rank": null,
    "vocab_size": 32000, "max_position_embeddings": 2048, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "tie_word_embeddings": false})";

constexpr const char* kMixtral = R"({"model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"], "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1024,
    "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
    "max_position_embeddings": 4096, "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "tie_word_embeddings": false})";

TrainingQuery training_query(int64_t seq) {
  TrainingQuery query;
  Request& r = query.request;
  r.mode = Mode::kTraining;
  r.batch = 16;
  r.seq = seq;
  r.optimizer = Optimizer::kAdamW;
  r.optimizer_impl = OptimizerImpl::kFused;
  r.loss = Loss::kFull;
  r.execution.fusion = Fusion::kPointwise;
  r.parallel.main_params = MainParams::kFp32;
  r.parallel.cluster = "a100-sxm-4";
  query.top = 5;
  query.memory_reserve = 0;
  return query;
}

TrainingPlan plan_of(const std::string& config, const TrainingQuery& query) {
  return plan_training(forecaster(), model_from_text(config, "config.json"),
                       load_cluster_gpu_ref(query.request.parallel.cluster), query);
}

/// Every `step`-th of all candidates, as `forecast` has it.
void expect_forecasts(const std::string& config, const TrainingPlan& plan, size_t step) {
  const ModelRef model = model_from_text(config, "config.json");
  const GpuRef gpu = load_gpu_ref(plan.gpu);
  for (size_t i = 0; i < plan.candidates.size(); i += step) {
    const TrainingCandidate& c = plan.candidates[i];
    const Request request = request_of(plan, c);
    const Forecast f = forecaster().forecast(model, gpu, request);
    const std::string where = fmt::format(
        "candidate {}: dp {} tp {} pp {} cp {} ep {} micro-batch {} schedule {} virtual {} zero {} "
        "sp {} ckpt {} {}",
        i, c.dp, c.tp, c.pp, c.cp, c.ep, c.micro_batch_size, static_cast<int>(c.schedule),
        c.layers_per_virtual_stage.value_or(0), static_cast<int>(c.zero), c.sequence_parallel,
        static_cast<int>(c.checkpointing), c.dtype);
    EXPECT_EQ(c.memory.peak_bytes, f.memory.peak_bytes) << where;
    EXPECT_EQ(c.fits(), f.memory.fits) << where;
    EXPECT_LE(c.bound_s, f.latency_s * (1 + 1e-9)) << where;
    if (!c.latency_s) continue;
    EXPECT_NEAR(*c.latency_s, f.latency_s, 1e-9 * f.latency_s) << where;
  }
}

TEST(TrainingPlan, CandidatesAreThoseOfForecasts) {
  for (const auto& [config, seq] : {std::pair{kGpt, 1024}, std::pair{kExperts, 2048}}) {
    TrainingQuery query = training_query(seq);
    query.pruning = Pruning::kOff;
    const TrainingPlan plan = plan_of(config, query);
    EXPECT_EQ(plan.fitting, plan.simulated);
    EXPECT_GT(plan.candidates.size(), 200u);
    expect_forecasts(config, plan, plan.candidates.size() / 60);
  }
}

TEST(TrainingPlan, MemoryOfStatesInTheModelsDtypeIsThatOfForecasts) {
  TrainingQuery query = training_query(1024);
  query.request.parallel.main_params = MainParams::kAsModel;
  query.request.optimizer_impl = OptimizerImpl::kForeach;
  query.space.tp = {1, 2};
  const TrainingPlan plan = plan_of(kGpt, query);
  expect_forecasts(kGpt, plan, plan.candidates.size() / 40);
  // One micro-batch: each stage's memory is that of its one pass.
  query.space.pp = {2};
  query.space.micro_batch_sizes = {8};
  const TrainingPlan one_pass = plan_of(kGpt, query);
  ASSERT_FALSE(one_pass.candidates.empty());
  expect_forecasts(kGpt, one_pass, 1);
}

TEST(TrainingPlan, OtherOptimizersAreThoseOfForecasts) {
  for (const Optimizer optimizer : {Optimizer::kMuon, Optimizer::kAdam8Bit, Optimizer::kAdamW}) {
    TrainingQuery query = training_query(1024);
    query.request.optimizer = optimizer;
    query.request.optimizer_offload = optimizer == Optimizer::kAdamW;
    query.space.tp = {1, 2};
    const TrainingPlan plan = plan_of(kGpt, query);
    ASSERT_FALSE(plan.candidates.empty());
    expect_forecasts(kGpt, plan, plan.candidates.size() / 20 + 1);
    // Muon's step needs whole matrices.
    const bool divided = std::any_of(plan.candidates.begin(), plan.candidates.end(),
                                     [](const auto& c) { return c.zero != Zero::kNone; });
    EXPECT_EQ(divided, optimizer != Optimizer::kMuon);
  }
}

TEST(TrainingPlan, ContextParallelRanksHaveExpertsOfTheirOwn) {
  TrainingQuery query = training_query(4096);
  query.pruning = Pruning::kOff;
  query.space = {.cp = {2, 4}, .ep = {4}, .micro_batch_sizes = {1}, .dtypes = {"bf16"}};
  const TrainingPlan plan = plan_of(kMixtral, query);
  ASSERT_GT(plan.candidates.size(), 4u);
  for (const TrainingCandidate& c : plan.candidates) EXPECT_EQ(c.dp * c.cp, 4);
  expect_forecasts(kMixtral, plan, 1);
  EXPECT_EQ(plan.impossible.count("`ep` 4 does not divide `dp` 1 × `cp` 2"), 1u);
}

TEST(TrainingPlan, OptionsOfTheStepAreThoseOfForecasts) {
  const auto check = [](auto set, int64_t cp) {
    TrainingQuery query = training_query(1024);
    query.pruning = Pruning::kOff;
    query.space = {.cp = {1, cp}, .micro_batch_sizes = {1}, .dtypes = {"bf16"}};
    const TrainingPlan plain = plan_of(kGpt, query);
    set(query.request);
    const TrainingPlan plan = plan_of(kGpt, query);
    EXPECT_GT(plan.candidates.size(), 20u);
    EXPECT_NE(*plan.candidates[0].latency_s, *plain.candidates[0].latency_s);
    expect_forecasts(kGpt, plan, plan.candidates.size() / 10);
    return plan;
  };
  check([](Request& r) { r.optimizer_offload = true; }, 1);
  const TrainingPlan chunked =
      check([](Request& r) { r.cross_entropy = CrossEntropy::kChunked; }, 1);
  for (const TrainingCandidate& c : chunked.candidates) EXPECT_EQ(c.tp, 1);
  const TrainingPlan packed = check([](Request& r) { r.packed_length = 256; }, 2);
  for (const TrainingCandidate& c : packed.candidates) EXPECT_EQ(c.cp, 1);
  EXPECT_FALSE(packed.impossible.empty()) << "`cp` 2 was asked for";
}

TEST(TrainingPlan, ContextParallelRanksExchangeAsAsked) {
  TrainingQuery query = training_query(1024);
  query.pruning = Pruning::kOff;
  query.request.parallel.cp_comm_type = CpCommType::kP2p;
  query.space = {.cp = {1, 2}, .micro_batch_sizes = {1}, .zero = {Zero::kNone}, .dtypes = {"bf16"}};
  const TrainingPlan both = plan_of(kGpt, query);
  for (const int64_t cp : {1, 2})
    EXPECT_TRUE(std::any_of(both.candidates.begin(), both.candidates.end(),
                            [&](const TrainingCandidate& c) { return c.cp == cp; }));
  expect_forecasts(kGpt, both, 1);
  query.space.cp = {2};
  const TrainingPlan plan = plan_of(kGpt, query);
  EXPECT_EQ(request_of(plan, plan.candidates[0]).parallel.cp_comm_type, CpCommType::kP2p);
  const std::vector<LaunchLine> lines = launch_lines(plan);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].command.find("--cp-comm-type p2p"), std::string::npos) << lines[0].command;
  EXPECT_EQ(lines[1].without, "--cp-comm-type p2p");
  query.space.cp = {1};
  EXPECT_THROW(plan_of(kGpt, query), Error);
}

TEST(TrainingPlan, SchedulesThatDivideTheBackwardPassSayWhyTheyAreLeftOut) {
  const auto reasons = [](const TrainingSpace& space) -> std::string {
    TrainingQuery query = training_query(1024);
    query.space = space;
    try {
      plan_of(kGpt, query);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [&](TrainingSpace space, const std::string& text) {
    space.schedules = {PipelineSchedule::kZbV};
    EXPECT_NE(reasons(space).find(text), std::string::npos) << text << "\n" << reasons(space);
  };
  expect({.tp = {1}, .pp = {1}}, "`pipeline-schedule` zb-v needs `pp` of 2 or more");
  expect({.tp = {1}, .pp = {2}, .zero = {Zero::kParameters}},
         "`pipeline-schedule` zb-v with `zero` 3");
}

TEST(TrainingPlan, TorchtitansZeroBubbleNeedsTwoPartsOnAStage) {
  TrainingQuery query = training_query(1024);
  query.space = {.pp = {2}, .zero = {Zero::kNone}, .dtypes = {"bf16"}};
  query.space.schedules = {PipelineSchedule::kZeroBubble};
  EXPECT_TRUE(launch_lines(plan_of(kGpt, query)).empty());
  query.space.schedules = {PipelineSchedule::kZbV};
  const std::vector<LaunchLine> lines = launch_lines(plan_of(kGpt, query));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].software, "torchtitan");
}

TEST(TrainingPlan, PruningLosesNone) {
  for (const char* cluster : {"a100-sxm-4", "dgx-a100"}) {
    for (const auto& [config, seq] : {std::pair{kGpt, 1024}, std::pair{kExperts, 2048}}) {
      TrainingQuery query = training_query(seq);
      query.request.parallel.cluster = cluster;
      query.space.dtypes = {"bf16"};
      query.space.micro_batch_sizes = {1, 4};
      const TrainingPlan pruned = plan_of(config, query);
      query.pruning = Pruning::kOff;
      const TrainingPlan all = plan_of(config, query);
      EXPECT_LT(pruned.simulated, all.simulated / 2);
      ASSERT_EQ(pruned.ranked, all.ranked);
      for (size_t i = 0; i < all.ranked; ++i)
        EXPECT_EQ(*pruned.candidates[i].latency_s, *all.candidates[i].latency_s) << i;
      for (size_t i = 0; i < all.fitting; ++i)
        EXPECT_LE(all.candidates[i].bound_s, *all.candidates[i].latency_s * (1 + 1e-9));
      // The best of the candidates that have another value of an option, too.
      ASSERT_EQ(pruned.alternatives.size(), all.alternatives.size());
      for (size_t i = 0; i < all.alternatives.size(); ++i)
        EXPECT_DOUBLE_EQ(*pruned.candidates[pruned.alternatives[i].candidate].latency_s,
                         *all.candidates[all.alternatives[i].candidate].latency_s);
    }
  }
}

TEST(TrainingPlan, TheSimplestOfTiesIsFirst) {
  const auto techniques = [](const TrainingCandidate& c) {
    return (c.tp > 1) + (c.pp > 1) + (c.virtual_stages > 1) + (c.cp > 1) + (c.ep > 1) +
           (c.zero != Zero::kNone) + (c.checkpointing != Checkpointing::kNone);
  };
  TrainingQuery query = training_query(1024);
  query.pruning = Pruning::kOff;
  const TrainingPlan plan = plan_of(kGpt, query);
  ASSERT_TRUE(plan.fastest);
  const TrainingCandidate& first = plan.candidates.front();
  const double limit_s = plan.fastest_s * (1 + plan.tie_ratio);
  EXPECT_GT(plan.tie_ratio, 0);
  EXPECT_LE(*first.latency_s, limit_s);
  for (size_t i = 0; i < plan.fitting; ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    EXPECT_GE(*c.latency_s, plan.fastest_s);
    if (*c.latency_s > limit_s) continue;
    EXPECT_GE(techniques(c), techniques(first)) << i;
    if (techniques(c) == techniques(first)) {
      EXPECT_GE(*c.latency_s, *first.latency_s) << i;
    }
  }
  // A row for each layout, and times of later steps above those of earlier ones.
  for (size_t i = 0; i < plan.ranked; ++i) {
    const TrainingCandidate& a = plan.candidates[i];
    for (size_t j = i + 1; j < plan.ranked; ++j) {
      const TrainingCandidate& b = plan.candidates[j];
      EXPECT_TRUE(std::tie(a.dp, a.tp, a.pp, a.cp, a.ep) != std::tie(b.dp, b.tp, b.pp, b.cp, b.ep));
      if (a.step < b.step) {
        EXPECT_LT(*a.latency_s, *b.latency_s);
      }
      EXPECT_LE(a.step, b.step);
    }
  }
}

TEST(TrainingPlan, AReserveLeavesMemoryFree) {
  TrainingQuery query = training_query(1024);
  query.request.batch = 1024;
  query.space = {.tp = {1}, .pp = {1}};
  const TrainingPlan all = plan_of(kGpt, query);
  query.memory_reserve = 0.5;
  const TrainingPlan plan = plan_of(kGpt, query);
  EXPECT_LT(plan.fitting, all.fitting);
  EXPECT_GT(plan.fitting, 0u);
  for (size_t i = 0; i < plan.fitting; ++i)
    EXPECT_LE(1.5 * static_cast<double>(plan.candidates[i].memory.peak_bytes),
              static_cast<double>(plan.device_bytes) + 1);
}

TEST(TrainingPlan, MicroBatchesEndWhereNoneFits) {
  TrainingQuery query = training_query(1024);
  query.request.batch = 1024;
  query.space = {.tp = {1}, .pp = {1}, .checkpointing = {Checkpointing::kNone}};
  const TrainingPlan plan = plan_of(kGpt, query);
  EXPECT_GT(plan.skipped, 0);
  int64_t largest = 0;
  for (size_t i = 0; i < plan.fitting; ++i)
    largest = std::max(largest, plan.candidates[i].micro_batch_size);
  EXPECT_GT(largest, 8);
  // None of what was skipped fits.
  query.space.micro_batch_sizes = {2 * largest, 4 * largest};
  const TrainingPlan larger = plan_of(kGpt, query);
  EXPECT_EQ(larger.fitting, 0u);
}

TEST(TrainingPlan, NodesThatFitAreTheFewest) {
  TrainingQuery query = training_query(1024);
  query.request.parallel.cluster = "dgx-a100";
  query.request.batch = 64;
  const auto plan_on = [&](int64_t nodes) {
    query.request.parallel.nodes = nodes;
    return plan_training(forecaster(), load_model_ref("llama-3.1-70b"),
                         load_cluster_gpu_ref("dgx-a100"), query);
  };
  query.space = {.cp = {1},
                 .micro_batch_sizes = {1},
                 .checkpointing = {Checkpointing::kFull},
                 .dtypes = {"bf16"}};
  const TrainingPlan one = plan_on(1);
  ASSERT_EQ(one.fitting, 0u);
  ASSERT_TRUE(one.nodes_that_fit);
  EXPECT_GT(plan_on(*one.nodes_that_fit).fitting, 0u);
}

TEST(TrainingPlan, ConvolutionalNetworksAreDividedByDataOnly) {
  TrainingQuery query = training_query(1);
  query.request.seq.reset();
  query.request.batch = 256;
  query.request.parallel.cluster = "dgx-h100";
  const TrainingPlan plan = plan_training(forecaster(), load_model_ref("resnet-50"),
                                          load_cluster_gpu_ref("dgx-h100"), query);
  EXPECT_FALSE(plan.counts_tokens);
  for (const TrainingCandidate& c : plan.candidates) EXPECT_EQ(c.dp, 8);
}

/// Without attention nothing is left of selective checkpointing, which is no candidate then.
TEST(TrainingPlan, SelectiveCheckpointingNeedsScores) {
  TrainingQuery query = training_query(1);
  query.request.seq.reset();
  query.request.batch = 64;
  query.request.execution.attention = AttentionKind::kEager;
  const TrainingPlan images = plan_training(forecaster(), load_model_ref("resnet-50"),
                                            load_cluster_gpu_ref("a100-sxm-4"), query);
  EXPECT_TRUE(images.impossible.empty());
  query = training_query(1024);
  query.request.execution.attention = AttentionKind::kEager;
  query.space = {.tp = {1}, .pp = {1}};
  const TrainingPlan text = plan_of(kGpt, query);
  EXPECT_TRUE(std::any_of(text.candidates.begin(), text.candidates.end(), [](const auto& c) {
    return c.checkpointing == Checkpointing::kSelective;
  }));
}

TEST(TrainingPlan, GpusInPlaceOfNodes) {
  TrainingQuery query = training_query(1024);
  query.request.parallel.cluster = "dgx-a100";
  query.space.micro_batch_sizes = {2};
  for (const auto& [gpus, nodes, of_node] :
       {std::array<int64_t, 3>{1, 1, 1}, {4, 1, 4}, {16, 2, 8}}) {
    query.gpus = gpus;
    const TrainingPlan plan = plan_of(kGpt, query);
    EXPECT_EQ(plan.ranks, gpus);
    EXPECT_EQ(plan.nodes, nodes);
    EXPECT_EQ(plan.gpus_per_node, of_node);
    for (const TrainingCandidate& c : plan.candidates) {
      EXPECT_EQ(c.dp * c.tp * c.pp * c.cp, gpus);
      EXPECT_LE(c.tp, of_node);
    }
    expect_forecasts(kGpt, plan, std::max<size_t>(1, plan.candidates.size() / 20));
  }
  query.gpus = 12;  // neither one node nor two with the same number
  query.request.batch = 48;
  EXPECT_EQ(plan_of(kGpt, query).gpus_per_node, 6);
}

/// What is computed again counts in the hardware's utilization only.
TEST(TrainingPlan, UtilizationsAreThoseOfTheForecast) {
  TrainingQuery query = training_query(1024);
  query.space.checkpointing = {Checkpointing::kFull};
  const TrainingPlan plan = plan_of(kGpt, query);
  const Forecast f =
      forecaster().forecast(model_from_text(kGpt, "config.json"), load_gpu_ref(plan.gpu),
                            request_of(plan, plan.candidates.front()));
  ASSERT_TRUE(plan.winner());
  EXPECT_EQ(plan.winner()->mfu_ratio, f.mfu_ratio);
  EXPECT_EQ(plan.winner()->utilization_ratio, f.utilization_ratio);
  EXPECT_GT(f.utilization_ratio, 1.1 * f.mfu_ratio);
}

TEST(TrainingPlan, LaunchLinesHaveTheDegreesOfTheFirst) {
  TrainingQuery query = training_query(1024);
  query.space = {.tp = {2},
                 .pp = {1},
                 .micro_batch_sizes = {2},
                 .zero = {Zero::kParameters},
                 .sequence_parallel = {true},
                 .dtypes = {"bf16"}};
  query.request.cross_entropy = CrossEntropy::kCompiled;
  query.request.packed_length = 256;
  const TrainingPlan plan = plan_of(kGpt, query);
  const std::vector<LaunchLine> lines = launch_lines(plan);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].without, "--packed-sequence-length 256");
  EXPECT_EQ(lines[1].without, "--cross-entropy compiled --packed-sequence-length 256");
  EXPECT_EQ(lines[0].software, "megatron");
  for (const char* flag :
       {"--nproc-per-node 4 ", "--tensor-model-parallel-size 2 ", "--micro-batch-size 2 ",
        "--global-batch-size 16 ", " --bf16", " --sequence-parallel",
        "--data-parallel-sharding-strategy optim_grads_params", "--cross-entropy-loss-fusion"})
    EXPECT_NE(lines[0].command.find(flag), std::string::npos) << flag << lines[0].command;
  EXPECT_EQ(lines[1].software, "torchtitan");
  for (const char* flag :
       {"--training.local_batch_size 2 ", "--parallelism.data_parallel_shard_degree 2 ",
        "--parallelism.tensor_parallel_degree 2 "})
    EXPECT_NE(lines[1].command.find(flag), std::string::npos) << flag << lines[1].command;
}

TEST(TrainingPlan, AdaptersHaveNoLineOfScriptsThatTrainAllWeights) {
  TrainingQuery query = training_query(1024);
  query.request.lora_rank = 8;
  const TrainingPlan plan = plan_of(kGpt, query);
  EXPECT_GT(plan.fitting, 0u);
  EXPECT_TRUE(launch_lines(plan).empty());
}

TEST(TrainingPlan, EncodersHaveNoLineOfScriptsThatTrainDecoders) {
  const TrainingPlan plan = plan_of(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"],
      "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
      "intermediate_size": 1024, "vocab_size": 30522, "max_position_embeddings": 512,
      "type_vocab_size": 2, "hidden_act": "gelu"})",
                                    training_query(512));
  EXPECT_GT(plan.fitting, 0u);
  EXPECT_TRUE(launch_lines(plan).empty());
}

TEST(TrainingPlan, LeastMemoryIsFirstIfAskedFor) {
  TrainingQuery query = training_query(1024);
  query.objective = PlanObjective::kMemory;
  const TrainingPlan plan = plan_of(kGpt, query);
  for (size_t i = 1; i < plan.fitting; ++i)
    EXPECT_LE(plan.candidates[i - 1].memory.peak_bytes, plan.candidates[i].memory.peak_bytes);
}

TEST(TrainingPlan, LeastEnergyOrLeastCostWithItIsFirstIfAskedFor) {
  TrainingQuery query = training_query(1024);
  query.objective = PlanObjective::kEnergy;
  const TrainingPlan plan = plan_of(kGpt, query);
  ASSERT_GT(plan.ranked, 1u);
  for (size_t i = 1; i < plan.ranked; ++i)
    EXPECT_LE(*plan.candidates[i - 1].energy_j, *plan.candidates[i].energy_j);
  EXPECT_FALSE(plan.fastest);
  query.objective = PlanObjective::kCost;
  query.price_per_gpu_hour = 2;
  query.request.energy.price_per_kwh = 100;
  const TrainingPlan priced = plan_of(kGpt, query);
  for (size_t i = 1; i < priced.ranked; ++i)
    EXPECT_LE(priced.cost_of_step(priced.candidates[i - 1]),
              priced.cost_of_step(priced.candidates[i]));
  const TrainingCandidate& best = priced.candidates.front();
  EXPECT_NEAR(priced.cost_of_step(best),
              priced.cost_of_step(*best.latency_s) + 100 * *best.energy_j / 3.6e6, 1e-12);
}

TEST(TrainingPlan, PowerKeepsItsLimitsAndACapMakesNoneFaster) {
  TrainingQuery query = training_query(1024);
  const TrainingPlan free = plan_of(kGpt, query);
  double before = free.fastest_s;
  for (const double cap_w : {320.0, 240.0}) {
    query.request.energy.power_cap_w = cap_w;
    const TrainingPlan plan = plan_of(kGpt, query);
    EXPECT_GE(plan.fastest_s, before * (1 - 1e-9)) << cap_w;
    before = plan.fastest_s;
    for (size_t i = 0; i < plan.ranked; ++i) {
      const TrainingCandidate& c = plan.candidates[i];
      ASSERT_TRUE(c.power_w && c.energy_j);
      EXPECT_GT(*c.power_w, 0);
      EXPECT_LE(*c.power_w, cap_w);
      EXPECT_NEAR(*c.energy_j, *c.power_w * *c.latency_s * static_cast<double>(plan.ranks),
                  1e-9 * *c.energy_j);
    }
  }
}

TEST(TrainingPlan, WhatDoesNotFitSaysByHowMuch) {
  TrainingQuery query = training_query(1024);
  query.request.batch = 1024;
  query.space = {.tp = {1}, .pp = {1}, .micro_batch_sizes = {1, 256}};
  const TrainingPlan plan = plan_of(kGpt, query);
  ASSERT_LT(plan.fitting, plan.candidates.size());
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    EXPECT_EQ(c.fits(), i < plan.fitting);
    EXPECT_EQ(c.memory.margin_bytes(), plan.device_bytes - c.memory.peak_bytes);
  }
}

TEST(TrainingPlan, ASpaceWithoutConfigurationsIsRefused) {
  TrainingQuery query = training_query(1024);
  query.space.tp = {3};
  EXPECT_THROW(plan_of(kGpt, query), Error);
}

}  // namespace
}  // namespace tilecast
