#pragma once

// Many forecasts at once: a table with a column for each option.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/request.h"

namespace tilecast {

/// The values of one option, a value for each row.
struct OptionColumn {
  static constexpr int32_t kNotGiven = -1;  ///< the row has the option's default

  std::string name;                ///< "model", "gpu", or the name of an option of a request
  std::vector<std::string> words;  ///< the values as text, each once
  std::vector<int32_t> codes;      ///< for each row the index of its word, or kNotGiven
};

/// The numbers of one forecast. Those that do not apply are nullopt, and all are if it failed.
struct ForecastTotals {
  std::optional<double> latency_s, latency_low_s, latency_high_s;
  std::optional<double> forward_s, backward_s, optimizer_s;  ///< of a pass
  std::optional<double> ttft_s, tpot_s, tokens_per_s;        ///< of text generation
  std::optional<int64_t> flops, bytes, parameters;
  std::optional<double> utilization_ratio;
  std::optional<int64_t> peak_bytes;
  std::optional<bool> fits;
  std::optional<std::string> dtype;          ///< that was used
  std::optional<std::string> warning_codes;  ///< separated by commas
  std::optional<std::string> error;          ///< why there is no forecast
};

/// A column of results.
struct TotalsColumn {
  std::string_view name;
  std::variant<std::optional<double> ForecastTotals::*, std::optional<int64_t> ForecastTotals::*,
               std::optional<bool> ForecastTotals::*, std::optional<std::string> ForecastTotals::*>
      field;
};
/// All columns, in the order of tables.
std::span<const TotalsColumn> totals_columns();

/// Forecasts of the rows of a table. Rows that are alike share one.
struct ForecastTable {
  std::vector<ForecastTotals> distinct;
  std::vector<uint32_t> rows;  ///< for each row the index of its forecast

  const ForecastTotals& of_row(size_t row) const { return distinct[rows[row]]; }
};

struct ManyOptions {
  int threads = 0;  ///< 0: one for each core that the process may use
  /// Called from time to time by the calling thread; what it throws ends the run. May be null.
  std::function<void()> poll;
};

/// Forecasts each of `rows` rows. A model is a name, a path, or the text of a config (starting with
/// "{"). A row that cannot be forecast has an `error`, and the others are not affected. Throws
/// OptionError for a column that is no option, Error{kInput} for columns of different lengths or a
/// name that is there twice. The result does not depend on the number of threads.
ForecastTable forecast_many(const Forecaster& forecaster, const std::vector<OptionColumn>& columns,
                            size_t rows, const ManyOptions& options = {});

}  // namespace tilecast
