// A placement of embedding tables on the GPUs of a cluster.

#include <fmt/format.h>

#include "command/question.h"
#include "command/shared_options.h"

namespace tilecast {
namespace {

std::vector<OptionGroup> shard_groups() {
  constexpr int64_t kMostNodes = 1 << 20, kMostBatch = 1 << 30;
  using Asked = ShardQuery;
  const Asked defaults;
  return {{"Options",
           {{.names = "TABLES",
             .help = "file with a list of tables (.json), or a recommendation model",
             .kind = ValueKind::kFile,
             .required = true,
             .set = into<&Asked::tables>()},
            cluster_option(into<&Asked::cluster>()),
            whole_option("--nodes", "as the cluster's file says", "of the cluster",
                         into<&Asked::nodes>(), 1, kMostNodes),
            whole_option("--batch", std::to_string(defaults.batch),
                         "samples of a step, over all ranks", into<&Asked::batch>(), 1, kMostBatch),
            {.names = "--dtype",
             .default_value = defaults.dtype,
             .help = "of the sums that ranks exchange, and of tables that state none",
             .choices = {"fp32", "fp16", "bf16"},
             .set = into<&Asked::dtype>()},
            {.names = "--gpu-memory-utilization",
             .value = "X",
             .default_value = fmt::format("{}", defaults.memory_share),
             .help = "share of each GPU's memory that tables may use",
             .type = ValueType::kNumber,
             .set = into<&Asked::memory_share>()},
            whole_option("--seed", std::to_string(defaults.seed), "of the search",
                         into<&Asked::seed>(), 0, int64_t{1} << 62)}}};
}

Reply answer_shard(ShardQuery&& query, const Given&, const Asking&) {
  ShardForecast forecast = shard_tables(query);
  std::vector<std::string> warnings = forecast.warnings;
  return {.answer = std::move(forecast), .warnings = std::move(warnings)};
}

}  // namespace

Question shard_question() {
  return question_of<ShardQuery, shard_groups, answer_shard>(
      "shard", "A fast placement of embedding tables on a cluster", {{"", "Placement"}});
}

}  // namespace tilecast
