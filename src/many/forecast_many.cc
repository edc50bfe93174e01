// Tables of forecasts: each distinct row is forecast once, on all cores.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "api/internal.h"
#include "api/scenario.h"
#include "base/text.h"
#include "many/distinct_rows.h"
#include "many/parallel.h"
#include "many/totals.h"
#include "tilecast/error.h"
#include "tilecast/llm.h"
#include "tilecast/many.h"

namespace tilecast {
namespace {

/// A loaded model or GPU, or why it could not be loaded.
template <typename T>
struct Loaded {
  std::optional<T> value;
  std::string error;
};

template <typename T, typename Load>
Loaded<T> try_load(const std::string& word, const Load& load) {
  try {
    return {load(word), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

ModelRef load_word(const std::string& word) {
  return word.starts_with("{") ? model_from_text(word, "config") : load_model_ref(word);
}

class Table {
 public:
  Table(const Forecaster& forecaster, const std::vector<OptionColumn>& columns, size_t rows)
      : forecaster_(forecaster), columns_(columns) {
    std::set<std::string> names;
    for (const OptionColumn& column : columns) {
      check_name(column.name);
      if (!names.insert(column.name).second)
        throw Error(ErrorKind::kInput, fmt::format("column '{}' is there twice", column.name));
      if (column.codes.size() != rows)
        throw Error(ErrorKind::kInput, fmt::format("column '{}' has {} rows; expected {}",
                                                   column.name, column.codes.size(), rows));
      if (column.name == "model") model_ = &column;
      if (column.name == "gpu") gpu_ = &column;
      if (column.name == "batch") batch_ = &column;
    }
  }

  void load(const ManyOptions& options) {
    if (model_ != nullptr) models_.resize(model_->words.size());
    if (gpu_ != nullptr) gpus_.resize(gpu_->words.size());
    run_parallel(models_.size(), options,
                 [&](size_t i) { models_[i] = try_load<ModelRef>(model_->words[i], load_word); });
    run_parallel(gpus_.size(), options,
                 [&](size_t i) { gpus_[i] = try_load<GpuRef>(gpu_->words[i], load_gpu_ref); });
  }

  /// The batch of a row, as far as it is a number.
  int64_t batch_of(size_t row) const {
    int64_t batch = Request{}.batch;
    if (batch_ == nullptr || batch_->codes[row] == OptionColumn::kNotGiven) return batch;
    const std::string& word = batch_->words[static_cast<size_t>(batch_->codes[row])];
    const char* const end = word.data() + word.size();
    const auto [rest, failed] = std::from_chars(word.data(), end, batch);
    return failed == std::errc() && rest == end ? batch : 0;
  }

  /// Where the passes of the rows come from.
  BatchPasses passes_of(const std::vector<int64_t>& batches) const {
    return {forecaster_.impl().passes, batches};
  }

  /// The forecast of a row; what is wrong with it goes to `error`.
  ForecastTotals forecast(size_t row, BatchPasses& passes) const {
    ForecastTotals failed;
    try {
      const ModelRef& model = value_of(models_, model_, row, "model");
      const Request request = make_request(options_of(row));
      const DeviceRef device = gpu_of(row, request);
      return totals_of(answer({.forecaster = forecaster_,
                               .model = model,
                               .device = device,
                               .request = request,
                               .detail = Detail::kNumbers,
                               .passes = &passes}));
    } catch (const Error& error) {
      failed.error = error.what();
    } catch (const std::bad_alloc&) {
      failed.error = "out of memory";
    } catch (const std::exception& error) {
      failed.error = fmt::format("this is a bug: {}", error.what());
    }
    return failed;
  }

 private:
  static void check_name(const std::string& name) {
    std::vector<std::string> names = {"model", "gpu"};
    for (const OptionDef& option : request_options()) names.push_back(option.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw OptionError(
          fmt::format("column '{}' is no option{}", shown_name(name), did_you_mean(name, names)));
  }

  template <typename T>
  static const T& value_of(const std::vector<Loaded<T>>& loaded, const OptionColumn* column,
                           size_t row, const char* name) {
    if (column == nullptr || column->codes[row] == OptionColumn::kNotGiven)
      throw OptionError(fmt::format("`{}` is missing", name));
    const Loaded<T>& entry = loaded[static_cast<size_t>(column->codes[row])];
    if (!entry.value) throw Error(ErrorKind::kInput, entry.error);
    return *entry.value;
  }

  /// The row's GPU, or that of its cluster.
  GpuRef gpu_of(size_t row, const Request& request) const {
    const std::string& cluster = request.parallel.cluster;
    const bool given = gpu_ != nullptr && gpu_->codes[row] != OptionColumn::kNotGiven;
    if (cluster.empty()) return value_of(gpus_, gpu_, row, "gpu");
    return load_gpu_or_cluster(given ? gpu_->words[static_cast<size_t>(gpu_->codes[row])] : "",
                               cluster);
  }

  std::vector<GivenOption> options_of(size_t row) const {
    std::vector<GivenOption> given;
    for (const OptionColumn& column : columns_) {
      const int32_t code = column.codes[row];
      if (&column == model_ || &column == gpu_ || code == OptionColumn::kNotGiven) continue;
      given.push_back({column.name, column.words[static_cast<size_t>(code)]});
    }
    return given;
  }

  const Forecaster& forecaster_;
  const std::vector<OptionColumn>& columns_;
  const OptionColumn *model_ = nullptr, *gpu_ = nullptr, *batch_ = nullptr;
  std::vector<Loaded<ModelRef>> models_;  // by word
  std::vector<Loaded<GpuRef>> gpus_;
};

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
  Table table(forecaster, columns, rows);
  table.load(options);
  DistinctRows distinct = find_distinct(columns, rows);
  ForecastTable result;
  result.distinct.resize(distinct.first.size());
  const std::vector<RowGroup> groups = by_pass(table, columns, distinct);
  run_parallel(groups.size(), options, [&](size_t g) {
    BatchPasses passes = table.passes_of(groups[g].batches);
    for (const size_t i : groups[g].kinds)
      result.distinct[i] = table.forecast(distinct.first[i], passes);
  });
  result.rows = std::move(distinct.kind);
  return result;
}

}  // namespace tilecast
