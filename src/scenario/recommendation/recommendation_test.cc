#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "base/file.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

Request training(int64_t batch, int64_t ranks) {
  Request request;
  request.mode = Mode::kTraining;
  request.batch = batch;
  request.execution.dp = ranks;
  return request;
}

TEST(RecommendationForecast, EightRanksDoTheWorkOfOne) {
  const Forecaster forecaster;
  const ModelRef model = load_model_ref("dlrm_mlperf");
  const GpuRef gpu = load_gpu_ref("nvidia-a100-sxm4-80gb");
  const Forecast one = forecaster.forecast(model, gpu, training(65536, 1));
  const Forecast all = forecaster.forecast(model, gpu, training(65536, 8));
  EXPECT_FALSE(one.memory.fits);  // 97 GiB of tables
  EXPECT_TRUE(all.memory.fits);
  EXPECT_EQ(one.parameters, all.parameters);
  // FLOPs are nearly all of the MLPs, which share the batch.
  EXPECT_NEAR(8 * static_cast<double>(all.flops), static_cast<double>(one.flops),
              0.01 * static_cast<double>(one.flops));
  EXPECT_LT(all.latency_s, one.latency_s / 4);
  ASSERT_TRUE(all.parallel);
  const std::vector<RankTables>& ranks = all.parallel->rank_tables;
  ASSERT_EQ(ranks.size(), 8u);
  int64_t bytes = 0;
  for (const RankTables& rank : ranks) bytes += rank.bytes;
  EXPECT_GE(bytes, 204'184'588 * int64_t{128 * 4 + 4});  // replicas and states add some
  EXPECT_LE(bytes, 1.02 * 204'184'588 * (128 * 4 + 4));
}

TEST(RecommendationForecast, ComputeAndExposedCommunicationAreTheStep) {
  const Forecaster forecaster;
  const ModelRef model = load_model_ref("dlrm_mlperf");
  for (const char* name : {"nvidia-a100-sxm4-80gb", "H100", "MI300X"}) {
    for (const int64_t ranks : {2, 4, 8}) {
      const Forecast f = forecaster.forecast(model, load_gpu_ref(name), training(16384, ranks));
      const StageForecast& rank = f.parallel->stages.front();
      EXPECT_NEAR(rank.compute_s + rank.exposed_communication_s, f.latency_s, 1e-9);
      EXPECT_NEAR(f.forward_s + f.backward_s + f.optimizer_s, f.latency_s, 1e-9);
      EXPECT_GE(rank.exposed_communication_s, -1e-12);
      // Ranks wait for the slowest tables and for exchanges, never longer than for both.
      double tables = 0;
      for (const RankTables& r : f.parallel->rank_tables)
        tables = std::max(tables, r.forward_s + r.backward_s);
      EXPECT_LE(f.latency_s, rank.compute_s + rank.communication_s + tables);
    }
  }
}

/// A model of 128 equal tables, so large that a batch uses few rows twice.
std::string equal_tables() {
  std::string tables;
  for (int i = 0; i < 128; ++i)
    tables += std::string(i == 0 ? "" : ", ") + R"({"name": "t)" + std::to_string(i) +
              R"(", "rows": 20000000, "pooling": 4})";
  return R"({"model_type": "dlrm", "dense_features": 13, "bottom_mlp": [512, 16],
    "top_mlp": [512, 1], "interaction": "cat", "embedding_dim": 16, "tables": [)" +
         tables + "]}";
}

/// As many samples and lookups for each GPU: more nodes have as much to exchange, over slower
/// links.
TEST(RecommendationForecast, MoreNodesAtEqualWorkNeverMakeAStepShorter) {
  const Forecaster forecaster;
  const GpuRef gpu = load_gpu_ref("nvidia-a100-sxm4-80gb");
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "tables.json").string();
  write_file(path, equal_tables());
  const ModelRef model = load_model_ref(path);
  double before = 0;
  for (const int64_t ranks : {8, 16, 32, 64, 128}) {
    Request request = training(2048 * ranks, ranks);
    request.parallel.cluster = "dgx-a100";
    const Forecast f = forecaster.forecast(model, gpu, request);
    // 3 % of the rows of the largest batch are used twice, which shortens the update.
    EXPECT_GT(f.latency_s, 0.99 * before) << ranks;
    before = f.latency_s;
  }
}

TEST(RecommendationForecast, IdsOfReplicatedTablesAreNotExchanged) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "tables.json").string();
  write_file(path, R"({"model_type": "dlrm", "dense_features": 13, "bottom_mlp": [512, 16],
    "top_mlp": [512, 1], "interaction": "cat", "embedding_dim": 16,
    "tables": [{"name": "a", "rows": 16, "pooling": 4}, {"name": "b", "rows": 16, "pooling": 4}]})");
  const Forecast f = Forecaster().forecast(
      load_model_ref(path), load_gpu_ref("nvidia-a100-sxm4-80gb"), training(1 << 20, 8));
  for (const RankTables& rank : f.parallel->rank_tables)
    ASSERT_EQ(rank.sent_bytes, 0) << "all tables are replicated";
  for (const StepPart& part : f.parallel->step_parts)
    EXPECT_EQ(part.name.find("ids"), std::string::npos) << part.name;
}

Request inference(int64_t batch, int64_t ranks) {
  Request request = training(batch, ranks);
  request.mode = Mode::kInference;
  return request;
}

TEST(RecommendationForecast, InferenceIsTheForwardPassWithOneExchange) {
  const Forecaster forecaster;
  const ModelRef model = load_model_ref("dlrm_mlperf");
  const GpuRef gpu = load_gpu_ref("nvidia-a100-sxm4-80gb");
  const Forecast one = forecaster.forecast(model, gpu, inference(65536, 1));
  for (const int64_t ranks : {2, 4, 8}) {
    const Forecast f = forecaster.forecast(model, gpu, inference(65536, ranks));
    EXPECT_TRUE(f.memory.fits);
    EXPECT_EQ(f.parameters, one.parameters);
    EXPECT_NEAR(static_cast<double>(ranks * f.flops), static_cast<double>(one.flops),
                0.01 * static_cast<double>(one.flops));
    EXPECT_EQ(f.memory.gradients_bytes + f.memory.optimizer_bytes, 0);
    EXPECT_EQ(f.backward_s + f.optimizer_s, 0);
    EXPECT_LT(f.latency_s, one.latency_s / static_cast<double>(ranks) * 1.2);
    const Forecast trained = forecaster.forecast(model, gpu, training(65536, ranks));
    EXPECT_LE(f.latency_s, trained.forward_s * 1.001);  // tables may be placed otherwise
    double rows = 0;
    for (const RankTables& rank : f.parallel->rank_tables) {
      EXPECT_EQ(rank.backward_s, 0);
      rows += static_cast<double>(rank.bytes);
    }
    EXPECT_GE(rows, 204'184'588.0 * 128 * 4);  // no states; small tables may be replicated
    const StageForecast& rank = f.parallel->stages.front();
    EXPECT_NEAR(rank.compute_s + rank.exposed_communication_s, f.latency_s, 1e-9);
    EXPECT_GE(rank.communication_s, rank.exposed_communication_s);
  }
}

TEST(RecommendationForecast, OtherModelsHaveNoRanksInInference) {
  const Forecaster forecaster;
  const GpuRef gpu = load_gpu_ref("H100");
  EXPECT_ERROR(forecaster.forecast(load_model_ref("gpt2_large"), gpu, inference(8, 2)), kInput,
               "`dp` needs `mode` training");
  Request request = inference(8, 1);
  request.parallel.cluster = "dgx-h100";
  EXPECT_ERROR(forecaster.forecast(load_model_ref("gpt2_large"), gpu, request), kInput,
               "`cluster` needs `mode` training");
}

TEST(RecommendationForecast, RefusesOtherParallelism) {
  const Forecaster forecaster;
  const ModelRef model = load_model_ref("dlrm_mlperf");
  Request request = training(65536, 1);
  request.execution.tp = 8;
  EXPECT_ERROR(forecaster.forecast(model, load_gpu_ref("H100"), request), kUnsupported,
               "`tp`: recommendation models are divided by `dp` only");
}

/// Seconds of one table by all that forecast it: both operators, a model, and the placement. `list`
/// as in `--reuse` and in the field `rows`; "": none is given.
std::array<double, 4> seconds_of_reuse(const std::string& list) {
  const Forecaster forecaster;
  const GpuRef gpu = load_gpu_ref("H100");
  std::vector<GivenSize> sizes = {{"bags", int64_t{4096}},
                                  {"pooling", int64_t{4}},
                                  {"dim", int64_t{128}},
                                  {"table_rows", int64_t{20000}}};
  if (!list.empty()) sizes.push_back({"reuse", list});
  const auto of_operator = [&](const char* op) {
    return forecaster.kernel(op, gpu, "fp32", sizes).front().latency_s;
  };
  const double bag = of_operator("embedding_bag");
  sizes.push_back({"tables", int64_t{1}});
  const double bags = of_operator("embedding_bags");

  const TemporaryFolder folder;
  const std::string path = (folder.path() / "dlrm.json").string();
  const std::string reuse =
      list.empty() ? "" : R"("reuse": {"r": {"batch": 4096, "rows": ")" + list + R"("}}, )";
  const std::string name = list.empty() ? "" : R"(, "reuse": "r")";
  std::ofstream(path) << R"({"model_type": "dlrm", "dense_features": 4, "bottom_mlp": [128], )"
                      << R"("top_mlp": [1], "interaction": "cat", )" << reuse
                      << R"("tables": [{"name": "t", "rows": 20000, "dim": 128, "pooling": 4)"
                      << name << "}]}";
  const Forecast f = forecaster.forecast(load_model_ref(path), gpu, inference(4096, 1));
  const auto row = std::find_if(f.kernels.begin(), f.kernels.end(),
                                [](const KernelForecast& k) { return k.op == "embedding_bags"; });
  const double model = row == f.kernels.end() ? 0 : row->latency_s.value;
  const ShardForecast placed = shard_tables({.tables = path, .cluster = "dgx-h100", .batch = 4096});
  return {bag, bags, model, placed.tables.front().forward_s};
}

/// A list says of all other lookups that they go to rows of their own; so "0" is no missing list.
TEST(EmbeddingReuse, AListOfNoRepeatedRowsMeansTheSameEverywhere) {
  const std::array<double, 4> none = seconds_of_reuse(""), zero = seconds_of_reuse("0"),
                              one = seconds_of_reuse("1");
  for (size_t way = 0; way < none.size(); ++way) {
    EXPECT_EQ(zero[way], one[way]) << way;
    EXPECT_GT(zero[way], none[way]) << way;
  }
  for (const auto& seconds : {none, zero}) {
    EXPECT_EQ(seconds[1], seconds[0]);
    EXPECT_EQ(seconds[2], seconds[0]);
  }
}

TEST(ShardTables, MoreNodesAndMoreMemoryDoNotMakeTablesMissing) {
  ShardQuery query{.tables = "dlrm_mlperf", .cluster = "dgx-a100"};
  query.memory_share = 0.1;  // 64 GiB of 98
  EXPECT_ERROR(shard_tables(query), kUnsupported, "34.1 GiB are missing");
  query.nodes = 2;
  const ShardForecast f = shard_tables(query);
  EXPECT_EQ(f.ranks, 16);
  for (const RankTables& rank : f.rank_tables) EXPECT_LE(rank.bytes, f.usable_bytes);
  EXPECT_GE(f.cost.total_s(), f.bound_s);
  for (const ShardBaseline& rule : f.baselines) {
    if (rule.fits) {
      EXPECT_GE(rule.cost.total_s(), f.cost.total_s());
    }
  }
}

}  // namespace
}  // namespace tilecast
