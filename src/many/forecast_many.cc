// Tables of forecasts: each distinct row is forecast once, on all cores.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/threads.h"
#include "many/distinct_rows.h"
#include "many/job_table.h"
#include "many/row_groups.h"
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
    }
  }

  std::vector<JobColumn> job_columns() const {
    using Kind = JobColumn::Kind;
    std::vector<JobColumn> columns;
    for (const OptionColumn& column : columns_) {
      const bool is_parameter = column.name.starts_with(OptionColumn::kParameters);
      columns.push_back(
          {.kind = column.name == "model" ? Kind::kModel
                   : column.name == "gpu" ? Kind::kGpu
                   : is_parameter         ? Kind::kParameter
                                          : Kind::kOption,
           .name = is_parameter
                       ? column.name.substr(std::string_view(OptionColumn::kParameters).size())
                       : column.name,
           .words = &column.words,
           .code = [&column](size_t row) { return column.codes[row]; }});
    }
    return columns;
  }

 private:
  static void check_name(const std::string& name) {
    // Whether the device has it depends on the row.
    if (name.starts_with(OptionColumn::kParameters)) return;
    std::vector<std::string> names = {"model", "gpu"};
    for (const OptionDef& option : request_options()) names.push_back(option.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw OptionError(
          fmt::format("column '{}' is no option{}", shown_name(name), did_you_mean(name, names)));
  }

  const std::vector<OptionColumn>& columns_;
};

/// The numbers of a result; what is wrong with a row goes to `error`.
ForecastTotals totals_of(const JobResult& job) {
  if (job.result) return totals_of(*job.result);
  ForecastTotals failed;
  failed.error = job.error;
  return failed;
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
  const std::vector<JobGroup> groups = group_rows(columns, distinct);
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
