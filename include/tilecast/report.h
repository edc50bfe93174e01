#pragma once

#include <optional>
#include <string>

#include "tilecast/forecast.h"
#include "tilecast/llm.h"

namespace tilecast {

struct TableStyle {
  int width = 100;     ///< columns of the terminal
  bool color = false;  ///< ANSI colors
  size_t rows = 20;    ///< kernels to show
  std::optional<int64_t> largest_batch;
};

/// Totals first, then the operators that cost most, one line for alike kernels.
std::string forecast_table(const Forecast& forecast, const TableStyle& style);
/// The contract of `forecast --format json`, schema version 1.
std::string forecast_json(const Forecast& forecast, std::optional<int64_t> largest_batch);
/// One line per kernel.
std::string forecast_csv(const Forecast& forecast);

/// Time to first token, time per token, memory, and what a prefill and a decode step spend.
std::string llm_table(const LlmForecast& forecast);
/// The contract of `forecast --format json` with the keys that only token by token has;
/// docs/serving.md.
std::string llm_json(const LlmForecast& forecast);
/// One line per kernel, "prefill" or "decode" as its phase.
std::string llm_csv(const LlmForecast& forecast);

/// One operator explained.
std::string kernel_table(const std::vector<KernelForecast>& kernels, const std::string& gpu);
std::string kernel_json(const std::vector<KernelForecast>& kernels, const std::string& gpu);

std::string catalog_table(const Catalog& catalog);
std::string catalog_json(const Catalog& catalog);

}  // namespace tilecast
