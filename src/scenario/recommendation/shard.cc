// Placements of embedding tables: a list of tables and a cluster → costs → search → results.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/bundled.h"
#include "placement/costs.h"
#include "placement/search.h"
#include "tilecast/error.h"
#include "tilecast/result.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

std::vector<std::string> bundled_recommendation_models() {
  std::vector<std::string> names;
  for (const std::string& name : bundled_models()) {
    if (load_bundled_model(name).recommendation) names.push_back(name);
  }
  return names;
}

/// A file with a list of tables, or the config of a recommendation model.
TableSet load_tables(const std::string& name) {
  if (!is_there(name)) {
    if (find_bundled_model(name)) {
      const Model model = load_bundled_model(name);
      if (model.recommendation) return model.recommendation->tables;
    }
    const std::vector<std::string> known = bundled_recommendation_models();
    throw Error(ErrorKind::kNotFound,
                fmt::format("{}: no such file or bundled model with embedding tables{}; known: {}",
                            shown_name(name), did_you_mean(name, known), join(known, ", ")));
  }
  const std::string where = printable(name);
  const std::string content = read_file(name);
  Json json = parse_json(content, where);
  if (json.is_array()) json = Json{{"tables", std::move(json)}};  // the list alone
  const JsonObject config(json, where);
  if (config.has("model_type") || config.has("bottom_mlp")) {
    const Model model = import_model(content, where);
    if (model.recommendation) return model.recommendation->tables;
    config.fail("tables", "this model has no embedding tables to place");
  }
  config.reject_unknown({"source", "embedding_dim", "sparse_optimizer", "reuse", "tables"});
  return read_tables(config);
}

DType dtype_of(const ShardQuery& query) {
  const std::optional<DType> dtype = find_dtype(query.dtype);
  if (!dtype || (*dtype != DType::kFp32 && *dtype != DType::kFp16 && *dtype != DType::kBf16))
    throw Error(ErrorKind::kInput, fmt::format("`dtype`: expected fp32, fp16 or bf16, found '{}'",
                                               shown_name(query.dtype)));
  return *dtype;
}

[[noreturn]] void refuse_shortage(const ShardQuery& query, const ShardForecast& f, int64_t least,
                                  int64_t missing, int64_t gpus_per_node) {
  std::string advice = "; a placement by hand, or a larger memory share, may fit";
  if (f.usable_bytes > 0 && least > checked_multiply(f.usable_bytes, f.ranks)) {
    const int64_t gpus = ceil_divide(least, f.usable_bytes);
    advice = fmt::format("; {} GPUs ({} nodes) have room for them: --nodes {}", gpus,
                         ceil_divide(gpus, gpus_per_node), ceil_divide(gpus, gpus_per_node));
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: the tables do not fit: with their optimizer states they take {}, "
                          "and {} GPUs of {} have {} for them ({} % of their memory): {} are "
                          "missing{}",
                          shown_name(query.tables), format_bytes(least), f.ranks, f.cluster_name,
                          format_bytes(f.usable_bytes * f.ranks),
                          std::lround(100 * query.memory_share), format_bytes(missing), advice));
}

ShardCost shown(const PlacementCost& cost) {
  return {.forward_s = cost.forward_s,
          .backward_s = cost.backward_s,
          .exchange_s = cost.exchange_s,
          .reduce_s = cost.reduce_s};
}

void describe_tables(ShardForecast& f, const PlacementSetup& setup, const ShardProblem& problem,
                     const TablePlacement& placement) {
  for (size_t t = 0; t < placement.size(); ++t) {
    const ShardChoice& c = problem.tables[t].choices[placement[t].choice];
    const EmbeddingTable& table = setup.tables.tables[t];
    f.tables.push_back({.name = table.name,
                        .way = kShardWayWords[static_cast<size_t>(c.way)],
                        .rows = table.rows,
                        .dim = table.dim,
                        .reuse = table.reuse.empty() ? kUniformReuse : table.reuse,
                        .bytes = c.part.bytes,
                        .forward_s = c.part.forward_s,
                        .backward_s = c.part.backward_s,
                        .ranks = {placement[t].ranks.begin(), placement[t].ranks.end()}});
  }
  const double sum_bytes =
      static_cast<double>(setup.batch) * static_cast<double>(dtype_bits(setup.dtype)) / 8;
  const std::vector<RankLoad> loads = rank_loads(problem, placement);
  for (size_t r = 0; r < loads.size(); ++r)
    f.rank_tables.push_back({.rank = static_cast<int64_t>(r),
                             .parts = loads[r].parts,
                             .bytes = loads[r].bytes,
                             .lookups = loads[r].lookups,
                             .forward_s = loads[r].forward_s,
                             .backward_s = loads[r].backward_s,
                             .sent_bytes = loads[r].columns * sum_bytes});
}

}  // namespace

ShardForecast shard_tables(const ShardQuery& query) {
  const TableSet tables = load_tables(query.tables);
  const Cluster found = find_cluster(query.cluster);
  const Cluster cluster = query.nodes > 0 ? with_nodes(found, query.nodes) : found;
  constexpr int64_t kMostRanks = 4096;
  if (cluster.gpus() > kMostRanks)
    throw Error(ErrorKind::kInput, fmt::format("`nodes`: {} GPUs are too many; the most are {}",
                                               cluster.gpus(), kMostRanks));
  ShardForecast f{.cluster = cluster.id,
                  .cluster_name = cluster.name,
                  .gpu = cluster.device.id,
                  .dtype = query.dtype,
                  .nodes = cluster.nodes,
                  .ranks = cluster.gpus(),
                  .batch = query.batch};
  f.usable_bytes =
      static_cast<int64_t>(query.memory_share * static_cast<double>(cluster.device.memory_bytes));
  const PlacementSetup setup{.tables = tables,
                             .cluster = cluster,
                             .ranks = f.ranks,
                             .batch = query.batch,
                             .dtype = dtype_of(query),
                             .bytes_per_rank = f.usable_bytes};
  const ShardProblem problem = placement_problem(setup);
  const int64_t least = least_bytes(problem), room = checked_multiply(f.usable_bytes, f.ranks);
  if (least > room) refuse_shortage(query, f, least, least - room, cluster.gpus_per_node);
  const TablePlacement placement = search_placement(problem, {.seed = query.seed});
  const PlacementCost cost = cost_of(problem, placement);
  if (cost.missing_bytes > 0)
    refuse_shortage(query, f, least, cost.missing_bytes, cluster.gpus_per_node);
  f.cost = shown(cost);
  f.bound_s = cost_bound(problem);
  for (size_t t = 0; t < problem.tables.size(); ++t)
    f.tables_bytes = checked_add(f.tables_bytes, problem.tables[t].choices.front().part.bytes);
  describe_tables(f, setup, problem, placement);
  for (size_t rule = 0; rule < std::size(kRuleWords); ++rule) {
    const PlacementCost other = cost_of(problem, place_by_rule(problem, static_cast<Rule>(rule)));
    f.baselines.push_back(
        {.name = kRuleWords[rule], .fits = other.missing_bytes == 0, .cost = shown(other)});
  }
  f.warnings = tables.warnings;
  return f;
}

}  // namespace tilecast
