// The layouts of all bundled models against their configs, read here without the importers.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test_forecaster.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

using nlohmann::json;

/// The first of the fields that the config has as a number; 0: none.
int64_t number_of(const json& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (config.contains(name) && config[name].is_number_integer()) return config[name];
  }
  return 0;
}

struct Dims {
  int64_t heads = 0, kv_heads = 0, ffn = 0, experts_ffn = 0;
};

Dims dims_of(const json& whole) {
  const json& c = whole.contains("text_config") ? whole["text_config"] : whole;
  Dims dims;
  dims.heads = number_of(
      c, {"num_attention_heads", "n_head", "num_heads", "decoder_attention_heads", "n_heads"});
  dims.kv_heads = number_of(c, {"num_key_value_heads"});
  // Attention with latents has a key head for each head.
  if (dims.kv_heads == 0 || c.contains("kv_lora_rank")) dims.kv_heads = dims.heads;
  dims.ffn = number_of(c, {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "decoder_ffn_dim"});
  dims.experts_ffn = number_of(c, {"moe_intermediate_size"});
  return dims;
}

void expect_divisible(const TrainingPlan& plan, const Dims& dims, const std::string& where) {
  for (const TrainingCandidate& c : plan.candidates) {
    const bool kv = dims.kv_heads % c.tp == 0 || c.tp % dims.kv_heads == 0;
    EXPECT_TRUE(dims.heads % c.tp == 0 && kv && dims.ffn % c.tp == 0 &&
                dims.experts_ffn % c.tp == 0)
        << where << ": tp " << c.tp << " pp " << c.pp;
    EXPECT_EQ(c.dp * c.tp * c.pp * c.cp, plan.ranks) << where;
    EXPECT_EQ(plan.batch % (c.dp * c.micro_batch_size), 0) << where;
    EXPECT_EQ(c.dp * c.cp % c.ep, 0) << where;
    EXPECT_EQ(plan.seq % c.cp, 0) << where;
  }
}

/// Bundled models on a cluster: all degrees of tensor and pipeline parallelism, one value of each
/// other option.
void check_all(const char* cluster, int64_t batch) {
  for (const auto& entry : std::filesystem::directory_iterator(TILECAST_MODELS)) {
    const json config = json::parse(std::ifstream(entry.path()));
    const Dims dims = dims_of(config);
    if (dims.heads == 0) continue;  // no attention
    const std::string where = fmt::format("{} on {}", entry.path().stem().string(), cluster);
    TrainingQuery query;
    query.request.mode = Mode::kTraining;
    query.request.batch = batch;
    query.request.optimizer = Optimizer::kAdamW;
    query.request.parallel.cluster = cluster;
    query.request.parallel.nodes = 1;
    query.top = 1;
    query.memory_reserve = 0;
    query.space = {.cp = {1},
                   .ep = {1},
                   .micro_batch_sizes = {1},
                   .schedules = {PipelineSchedule::k1F1B},
                   .zero = {Zero::kOptimizer, Zero::kNone},
                   .checkpointing = {Checkpointing::kFull},
                   .sequence_parallel = {false},
                   .dtypes = {"bf16"}};
    try {
      const TrainingPlan plan = plan_training(forecaster(), load_model_ref(entry.path().string()),
                                              load_cluster_gpu_ref(cluster), query);
      EXPECT_TRUE(plan.failures.empty()) << where << ": " << plan.failures.begin()->first;
      expect_divisible(plan, dims, where);
    } catch (const Error& error) {
      // A model that cannot be trained, or that has no layers to divide.
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << where << ": " << error.what();
    }
  }
}

TEST(Divisibility, OfEachCandidateOnNvl72) { check_all("gb200-nvl72", 144); }

TEST(Divisibility, OfEachCandidateOnEightGpus) { check_all("dgx-h100", 16); }

TEST(Divisibility, HeadsThatRanksDoNotDivideAreNoCandidates) {
  TrainingQuery query;
  query.request.mode = Mode::kTraining;
  query.request.batch = 72;
  query.request.seq = 512;
  query.request.parallel.cluster = "gb200-nvl72";
  query.space = {.tp = {3, 6, 8}, .pp = {1}, .cp = {1}, .zero = {Zero::kNone}, .dtypes = {"bf16"}};
  const TrainingPlan plan = plan_training(forecaster(), load_model_ref("llama-2-7b"),
                                          load_cluster_gpu_ref("gb200-nvl72"), query);
  EXPECT_FALSE(plan.impossible.empty());
  for (const TrainingCandidate& c : plan.candidates) EXPECT_EQ(c.tp, 8);
}

}  // namespace
}  // namespace tilecast
