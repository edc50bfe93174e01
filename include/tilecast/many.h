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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ForecastTotals",
             "The numbers of one forecast. Those that do not apply have no value, and none has if "
             "it failed.");
    field("latency_s", "s",
          "time of the pass or of the request; of a server under load, mean time of a request",
          &ForecastTotals::latency_s);
    field("latency_low_s", "s", "80 % interval", &ForecastTotals::latency_low_s);
    field("latency_high_s", "s", "80 % interval", &ForecastTotals::latency_high_s);
    field("forward_s", "s", "of a pass", &ForecastTotals::forward_s);
    field("backward_s", "s", "of a training step", &ForecastTotals::backward_s);
    field("optimizer_s", "s", "of a training step", &ForecastTotals::optimizer_s);
    field("ttft_s", "s",
          "time to first token; of a server under load, 99th percentile of the steady state",
          &ForecastTotals::ttft_s);
    field("tpot_s", "s",
          "time per output token; of a server under load, 99th percentile of the steady state",
          &ForecastTotals::tpot_s);
    field("tokens_per_s", "1/s",
          "output tokens of all sequences; of a server under load, in the steady state",
          &ForecastTotals::tokens_per_s);
    field("flops", "FLOP",
          "as in the forecast of one GPU: of a pass, or of one rank's prefill and decode",
          &ForecastTotals::flops);
    field("bytes", "bytes", "memory traffic, as flops", &ForecastTotals::bytes);
    field("parameters", "", "parameters of the model", &ForecastTotals::parameters);
    field("utilization_ratio", "", "FLOPs / (latency x peak FLOP/s of the device for the dtype)",
          &ForecastTotals::utilization_ratio);
    field("peak_bytes", "bytes", "memory of one rank", &ForecastTotals::peak_bytes);
    field("fits", "", "whether it fits", &ForecastTotals::fits);
    field("dtype", "", "the dtype that was used", &ForecastTotals::dtype);
    field("warning_codes", "", "codes of the warnings, separated by commas",
          &ForecastTotals::warning_codes);
    field("error", "", "why there is no forecast; all numbers are null then",
          &ForecastTotals::error);
  }
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
