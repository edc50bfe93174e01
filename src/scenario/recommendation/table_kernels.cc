#include "scenario/recommendation/table_kernels.h"

#include <algorithm>

#include "ops/embedding_work.h"
#include "ops/op_def.h"

namespace tilecast {

TableKernels table_kernels(const PlacementSetup& placing, const ShardProblem& problem,
                           const TablePlacement& placement, size_t rank,
                           const TimingSetup& timing) {
  std::vector<TableWork> works;
  double replicated_s = 0;
  for (size_t t = 0; t < placement.size(); ++t) {
    const auto& ranks = placement[t].ranks;
    if (std::find(ranks.begin(), ranks.end(), static_cast<int32_t>(rank)) == ranks.end()) continue;
    const ShardChoice& choice = problem.tables[t].choices[placement[t].choice];
    works.push_back(shard_work(placing, t, choice));
    if (choice.way == ShardWay::kReplicated && placing.mode == Mode::kTraining)
      replicated_s += dense_update_s(placing, t, choice);
  }
  TableKernels result;
  if (works.empty()) return result;
  using Pass = EmbeddingBag::Pass;
  const bool trains = placing.mode == Mode::kTraining;
  for (const Pass pass : {Pass::kForward, Pass::kSort, Pass::kUpdate}) {
    if (pass != Pass::kForward && !trains) break;
    result.kernels.push_back(
        tables_kernel({.tables = works,
                       .pass = pass,
                       .optimizer = placing.tables.optimizer,
                       .dtype = pass == Pass::kSort ? DType::kInt64 : placing.dtype}));
    result.kernels.back().op =
        require_op(pass == Pass::kForward ? "embedding_bags" : "embedding_bags_backward");
  }
  result.times.resize(result.kernels.size());
  timing.predictor.predict(result.kernels, timing.device, timing.conditions, result.times);
  const auto launched = [&](size_t i) {
    return std::max(result.times[i].seconds, timing.host_launch_s());
  };
  result.forward_s = launched(0);
  if (trains) result.backward_s = launched(1) + launched(2) + replicated_s;
  return result;
}

}  // namespace tilecast
