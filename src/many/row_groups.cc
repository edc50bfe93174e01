#include "many/row_groups.h"

#include <map>
#include <utility>

#include "base/number.h"

namespace tilecast {
namespace {

/// The batch of a row, as far as it is a number.
int64_t batch_of(const OptionColumn* column, size_t row) {
  if (column == nullptr || column->codes[row] == OptionColumn::kNotGiven) return Request{}.batch;
  return parse_whole(column->words[static_cast<size_t>(column->codes[row])]).value_or(0);
}

/// Three batches of a group are built (BatchPasses); few enough rows to keep all cores busy.
void add_groups(const std::map<int64_t, std::vector<size_t>>& by_batch,
                std::vector<JobGroup>& groups) {
  constexpr size_t kMostBatches = 32, kMostRows = 512;
  JobGroup group;
  for (const auto& [batch, kinds] : by_batch) {
    if (group.batches.size() == kMostBatches) groups.push_back(std::exchange(group, JobGroup{}));
    for (const size_t kind : kinds) {
      if (group.kinds.size() >= kMostRows) groups.push_back(std::exchange(group, JobGroup{}));
      if (group.batches.empty() || group.batches.back() != batch) group.batches.push_back(batch);
      group.kinds.push_back(kind);
    }
  }
  if (!group.kinds.empty()) groups.push_back(std::move(group));
}

}  // namespace

std::vector<JobGroup> group_rows(const std::vector<OptionColumn>& columns,
                                 const DistinctRows& distinct) {
  std::vector<OptionColumn> others;
  const OptionColumn* batches = nullptr;
  for (const OptionColumn& column : columns) {
    if (column.name == "batch") batches = &column;
    if (column.name == "gpu" || column.name == "batch" ||
        column.name.starts_with(OptionColumn::kParameters))
      continue;
    others.push_back({.name = column.name, .words = column.words, .codes = {}});
    for (const size_t row : distinct.first) others.back().codes.push_back(column.codes[row]);
  }
  const DistinctRows models = find_distinct(others, distinct.first.size());
  std::vector<std::map<int64_t, std::vector<size_t>>> by_batch(models.first.size());
  for (size_t i = 0; i < models.kind.size(); ++i)
    by_batch[models.kind[i]][batch_of(batches, distinct.first[i])].push_back(i);
  std::vector<JobGroup> groups;
  for (const auto& rows : by_batch) add_groups(rows, groups);
  return groups;
}

}  // namespace tilecast
