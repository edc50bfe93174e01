#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/llm.h"
#include "tilecast/warning.h"

namespace tilecast {

struct TableStyle {
  int width = 80;      ///< columns that no line of a table exceeds; at least 40
  bool color = false;  ///< ANSI colors
  size_t rows = 20;    ///< kernels to show
  std::optional<int64_t> largest_batch;
};

/// The sentence that a program shows.
std::string warning_text(const Warning& warning);
std::vector<std::string> warning_texts(const std::vector<Warning>& warnings);
/// "extrapolated", "does_not_fit": the word that JSON has for a code.
std::string_view warning_code_name(WarningCode code);
std::vector<std::string> warning_code_names(const std::vector<Warning>& warnings);

/// Totals first, then the operators that cost most, one line for alike kernels. Without the
/// warnings, which a program shows where it shows its own.
std::string forecast_table(const Forecast& forecast, const TableStyle& style);
/// The contract of `forecast --format json`, schema version 1.
std::string forecast_json(const Forecast& forecast, std::optional<int64_t> largest_batch);
/// One line per kernel.
std::string forecast_csv(const Forecast& forecast);

/// Time to first token, time per token, memory, and what a prefill and a decode step spend.
std::string llm_table(const LlmForecast& forecast, const TableStyle& style = {});
/// The contract of `forecast --format json` with the keys that only token by token has;
/// docs/serving.md.
std::string llm_json(const LlmForecast& forecast);
/// One line per kernel, "prefill" or "decode" as its phase.
std::string llm_csv(const LlmForecast& forecast);

/// A format of forecasts, as --format names it.
struct ForecastFormat {
  std::string_view name;
  std::string (*pass)(const Forecast& forecast, const TableStyle& style);
  std::string (*tokens)(const LlmForecast& forecast, const TableStyle& style);
  bool is_table = false;             ///< has a width and shows a part of the kernels
  bool holds_warnings = false;       ///< else a program shows them beside it
  bool shows_largest_batch = false;  ///< TableStyle::largest_batch is of use
};
/// All formats; the first is the default.
std::span<const ForecastFormat> forecast_formats();

/// One operator explained.
std::string kernel_table(const std::vector<KernelForecast>& kernels, const std::string& gpu,
                         const TableStyle& style = {});
std::string kernel_json(const std::vector<KernelForecast>& kernels, const std::string& gpu,
                        const std::vector<std::string>& warnings = {});
/// Which kernels are extrapolated, in sentences.
std::vector<std::string> kernel_warnings(const std::vector<KernelForecast>& kernels);

/// Lists of what Tilecast knows: tables for people; JSON with numbers in SI units.
std::string gpus_table(const std::vector<GpuEntry>& gpus, const TableStyle& style = {});
std::string gpus_json(const std::vector<GpuEntry>& gpus);
std::string models_table(const std::vector<ModelEntry>& models, const TableStyle& style = {});
std::string models_json(const std::vector<ModelEntry>& models);
std::string ops_table(const std::vector<OpEntry>& ops, const TableStyle& style = {});
std::string ops_json(const std::vector<OpEntry>& ops);

}  // namespace tilecast
