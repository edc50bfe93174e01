#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/cluster.h"
#include "tilecast/forecast.h"
#include "tilecast/llm.h"
#include "tilecast/shard.h"
#include "tilecast/warning.h"

namespace tilecast {

struct TableStyle {
  int width = 80;      ///< maximum line length of a table in columns; at least 40
  bool color = false;  ///< ANSI colors
  size_t rows = 20;    ///< kernels to show
};

/// Totals first, then the operators that take the most time, one line for each group of identical
/// kernels. Warnings are not included: a program shows them beside its own messages.
std::string forecast_table(const Forecast& forecast, const TableStyle& style);
/// The output of `forecast --format json`, schema version 1.
std::string forecast_json(const Forecast& forecast);
/// One line per kernel.
std::string forecast_csv(const Forecast& forecast);

/// Memory over time: the peak with its contents, then each repetition of the model's segments.
std::string memory_table(const MemoryTimeline& timeline, const TableStyle& style);
/// The output of `forecast --memory-timeline json`, schema version 1.
std::string memory_json(const MemoryTimeline& timeline);
/// A picture of the parts over time, with the peak's contents.
std::string memory_svg(const MemoryTimeline& timeline);

/// The operations of a step in Chrome's trace format, which Perfetto reads: a process for each
/// rank, a thread for computing and one for communication; times in us.
std::string step_trace_json(const std::vector<StepOperation>& operations);

/// Time to first token, time per token, memory, and what a prefill and a decode step spend.
std::string llm_table(const LlmForecast& forecast, const TableStyle& style = {});
/// The output of `forecast --format json`, with further keys for text generation; see
/// docs/explanation/servers.md.
std::string llm_json(const LlmForecast& forecast);
/// One line per kernel, "prefill" or "decode" as its phase.
std::string llm_csv(const LlmForecast& forecast);

/// An output format of forecasts, with its name in --format.
struct ForecastFormat {
  std::string_view name;
  std::string (*pass)(const Forecast& forecast, const TableStyle& style);
  std::string (*tokens)(const LlmForecast& forecast, const TableStyle& style);
  bool is_table = false;        ///< uses width and rows of the style
  bool holds_warnings = false;  ///< the output contains the warnings; else a program shows them
  bool shows_largest_batch = false;  ///< and remedies: add_remedies (src/api/remedies.h)
};
/// All formats; the first is the default.
std::span<const ForecastFormat> forecast_formats();

/// The kernels that were asked for, beside the sizes that each of them has.
struct KernelQuestion {
  std::string gpu;                   ///< id
  std::string clocks = "boost";      ///< KernelOptions::clocks
  std::string software = "pytorch";  ///< KernelOptions::software
  std::vector<GivenSize> lists;      ///< the sizes that are lists
};

/// The kernels of one operator, with what determines their time.
std::string kernel_table(const std::vector<KernelForecast>& kernels, const KernelQuestion& question,
                         const TableStyle& style = {});
std::string kernel_json(const std::vector<KernelForecast>& kernels, const KernelQuestion& question,
                        const std::vector<std::string>& warnings = {});
/// Sentences that name the kernels that are extrapolated.
std::vector<std::string> kernel_warnings(const std::vector<KernelForecast>& kernels);

/// Lists of the known GPUs, models and operators. Numbers in JSON are in SI units.
std::string gpus_table(const std::vector<GpuEntry>& gpus, const TableStyle& style = {});
std::string gpus_json(const std::vector<GpuEntry>& gpus);
std::string clusters_table(const std::vector<ClusterEntry>& clusters, const TableStyle& style = {});
std::string clusters_json(const std::vector<ClusterEntry>& clusters);
/// The time of one collective, with what it is made of.
std::string collective_table(const CollectiveForecast& forecast, const TableStyle& style = {});
std::string collective_json(const CollectiveForecast& forecast);
/// A placement of embedding tables: its times, ranks and tables, and what simple rules give.
std::string shard_table(const ShardForecast& forecast, const TableStyle& style = {});
std::string shard_json(const ShardForecast& forecast);
/// One line per part of a table.
std::string shard_csv(const ShardForecast& forecast);
std::string models_table(const std::vector<ModelEntry>& models, const TableStyle& style = {});
std::string models_json(const std::vector<ModelEntry>& models);
std::string ops_table(const std::vector<OpEntry>& ops, const TableStyle& style = {});
std::string ops_json(const std::vector<OpEntry>& ops);

}  // namespace tilecast
