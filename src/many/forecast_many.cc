// Tables of forecasts: each distinct row is forecast once, on all cores.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "base/threads.h"
#include "many/distinct_rows.h"
#include "many/job_table.h"
#include "many/totals.h"
#include "scenario/internal.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

/// The columns of a table, checked.
class Table {
 public:
  Table(const std::vector<OptionColumn>& columns, size_t rows) : columns_(columns) {
    std::set<std::string> names;
    for (const OptionColumn& column : columns) {
      check_name(column.name);
      if (!names.insert(column.name).second)
        throw Error(ErrorKind::kInput, fmt::format("column '{}' is there twice", column.name));
      if (column.codes.size() != rows)
        throw Error(ErrorKind::kInput, fmt::format("column '{}' has {} rows; expected {}",
                                                   column.name, column.codes.size(), rows));
      if (column.name == "batch") batch_ = &column;
    }
  }

  std::vector<JobColumn> job_columns() const {
    using Kind = JobColumn::Kind;
    std::vector<JobColumn> columns;
    for (const OptionColumn& column : columns_)
      columns.push_back({.kind = column.name == "model" ? Kind::kModel
                                 : column.name == "gpu" ? Kind::kGpu
                                                        : Kind::kOption,
                         .name = column.name,
                         .words = &column.words,
                         .code = [&column](size_t row) { return column.codes[row]; }});
    return columns;
  }

  /// The batch of a row, as far as it is a number.
  int64_t batch_of(size_t row) const {
    if (batch_ == nullptr || batch_->codes[row] == OptionColumn::kNotGiven) return Request{}.batch;
    return parse_whole(batch_->words[static_cast<size_t>(batch_->codes[row])]).value_or(0);
  }

 private:
  static void check_name(const std::string& name) {
    std::vector<std::string> names = {"model", "gpu"};
    for (const OptionDef& option : request_options()) names.push_back(option.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw OptionError(
          fmt::format("column '{}' is no option{}", shown_name(name), did_you_mean(name, names)));
  }

  const std::vector<OptionColumn>& columns_;
  const OptionColumn* batch_ = nullptr;
};

/// The numbers of a result; what is wrong with a row goes to `error`.
ForecastTotals totals_of(const JobResult& job) {
  if (job.result) return totals_of(*job.result);
  ForecastTotals failed;
  failed.error = job.error;
  return failed;
}

/// Rows of one group are forecast by one thread.
struct RowGroup {
  std::vector<size_t> kinds;     ///< indices of DistinctRows::first, by batch
  std::vector<int64_t> batches;  ///< of them, rising
};

/// The distinct rows, those together that are alike but for GPU and batch: their passes are built
/// once for a GPU's batch, and mostly once for many batches.
std::vector<RowGroup> by_pass(const Table& table, const std::vector<OptionColumn>& columns,
                              const DistinctRows& distinct) {
  // Three batches of a group are built (BatchPasses); few enough rows to keep all cores busy.
  constexpr size_t kMostBatches = 32;
  std::vector<OptionColumn> others;
  for (const OptionColumn& column : columns) {
    if (column.name == "gpu" || column.name == "batch") continue;
    others.push_back({.name = column.name, .words = column.words});
    for (const size_t row : distinct.first) others.back().codes.push_back(column.codes[row]);
  }
  const DistinctRows models = find_distinct(others, distinct.first.size());
  std::vector<std::map<int64_t, std::vector<size_t>>> by_batch(models.first.size());
  for (size_t i = 0; i < models.kind.size(); ++i)
    by_batch[models.kind[i]][table.batch_of(distinct.first[i])].push_back(i);
  std::vector<RowGroup> groups;
  for (const auto& batches : by_batch) {
    RowGroup group;
    for (const auto& [batch, kinds] : batches) {
      if (group.batches.size() == kMostBatches) groups.push_back(std::exchange(group, RowGroup{}));
      group.batches.push_back(batch);
      group.kinds.insert(group.kinds.end(), kinds.begin(), kinds.end());
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

ForecastTable forecast_many(const Forecaster& forecaster, const std::vector<OptionColumn>& columns,
                            size_t rows, const ManyOptions& options) {
  const Table table(columns, rows);
  JobTable jobs(forecaster, table.job_columns());
  jobs.load(options);
  DistinctRows distinct = find_distinct(columns, rows);
  ForecastTable result;
  result.distinct.resize(distinct.first.size());
  const std::vector<RowGroup> groups = by_pass(table, columns, distinct);
  SharedLayers layers;
  run_parallel(groups.size(), options.threads, options.poll, [&](size_t g) {
    BatchPasses passes(forecaster.impl().passes, groups[g].batches);
    for (const size_t i : groups[g].kinds)
      result.distinct[i] =
          totals_of(jobs.run(distinct.first[i], {.passes = &passes, .layers = &layers}));
  });
  result.rows = std::move(distinct.kind);
  return result;
}

}  // namespace tilecast
