// 'tilecast shard': a placement of embedding tables on the GPUs of a cluster.

#include <fmt/format.h>

#include <charconv>

#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

constexpr int64_t kMostNodes = 1 << 20, kMostBatch = 1 << 30, kMostRows = 1'000'000;

double share_of(const Given& given, double default_value) {
  const std::string text = text_of(given, "gpu-memory-utilization");
  if (text.empty()) return default_value;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value > 0 && value <= 1))
    throw UsageError(fmt::format(
        "--gpu-memory-utilization: expected a number above 0 and at most 1, found '{}'", text));
  return value;
}

void run_shard(const Given& given) {
  ShardQuery query;
  query.tables = text_of(given, "TABLES");
  query.cluster = text_of(given, "cluster");
  query.nodes = integer_of(given, "nodes", 0, 1, kMostNodes);
  query.batch = integer_of(given, "batch", query.batch, 1, kMostBatch);
  query.dtype = text_of(given, "dtype", query.dtype);
  query.memory_share = share_of(given, query.memory_share);
  query.seed = static_cast<uint64_t>(
      integer_of(given, "seed", static_cast<int64_t>(query.seed), 0, int64_t{1} << 62));
  const std::string output = text_of(given, "output-file"), format = text_of(given, "format");
  TableStyle style = output_style(output);
  style.rows = static_cast<size_t>(integer_of(given, "rows", 30, 0, kMostRows));
  if (given.count("rows") && (format == "json" || format == "csv"))
    throw UsageError("--rows applies to tables; other formats contain all tables");
  const ShardForecast forecast = shard_tables(query);
  if (format == "json") return emit(shard_json(forecast), output);
  emit(format == "csv" ? shard_csv(forecast) : shard_table(forecast, style), output,
       forecast.warnings);
}

}  // namespace

Command shard_command() {
  const ShardQuery defaults;
  return {.name = "shard",
          .help = "A fast placement of embedding tables on a cluster",
          .usage = {"TABLES --cluster CLUSTER [options]"},
          .groups =
              {{"Options",
                {{.names = "TABLES",
                  .help = "file with a list of tables (.json), or a recommendation model",
                  .kind = ValueKind::kFile,
                  .required = true},
                 cluster_option(),
                 {.names = "--nodes",
                  .value = "N",
                  .default_value = "as the cluster's file says",
                  .help = "of the cluster"},
                 {.names = "--batch",
                  .value = "N",
                  .default_value = std::to_string(defaults.batch),
                  .help = "samples of a step, over all ranks"},
                 {.names = "--dtype",
                  .default_value = defaults.dtype,
                  .help = "of the sums that ranks exchange, and of tables that state none",
                  .choices = {"fp32", "fp16", "bf16"}},
                 {.names = "--gpu-memory-utilization",
                  .value = "X",
                  .default_value = fmt::format("{}", defaults.memory_share),
                  .help = "share of each GPU's memory that tables may use"},
                 {.names = "--seed",
                  .value = "N",
                  .default_value = std::to_string(defaults.seed),
                  .help = "of the search"},
                 {.names = "--rows", .value = "N", .default_value = "30", .help = "tables to show"},
                 format_option({"table", "json", "csv"}),
                 output_option()}}},
          .examples = {"tilecast shard dlrm_mlperf --cluster dgx-a100",
                       "tilecast shard tables.json --cluster dgx-h100 --nodes 16 --format csv"},
          .run = run_shard};
}

}  // namespace tilecast
