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

/// Memory over time: the peak with its contents, then each repetition of the model's segments.
std::string memory_table(const MemoryTimeline& timeline, const TableStyle& style);
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

/// The kernels that were asked for, beside the sizes that each of them has.
struct KernelQuestion {
  std::string gpu;                   ///< id
  std::string clocks = "boost";      ///< KernelOptions::clocks
  std::string software = "pytorch";  ///< KernelOptions::software
  std::vector<GivenSize> lists;      ///< the sizes that are lists

  /// The text of a list; nullptr: it was not given.
  const std::string* list_named(std::string_view name) const {
    for (const GivenSize& list : lists) {
      if (list.name == name) return std::get_if<std::string>(&list.value);
    }
    return nullptr;
  }
};

/// The kernels of one operator.
struct KernelAnswer {
  KernelQuestion asked;
  std::vector<KernelForecast> kernels;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("KernelAnswer", "The kernels of one operator.");
    field("schema_version", "", "of this schema", [](const KernelAnswer&) { return 1; });
    field("gpu", "", "id of the GPU", [](const KernelAnswer& x) { return (x.asked.gpu); });
    field("clocks", "", "the option `clocks`: boost, base or a number of MHz",
          [](const KernelAnswer& x) { return (x.asked.clocks); });
    field("software", "", "whose kernels run the operator",
          [](const KernelAnswer& x) { return (x.asked.software); });
    field.if_set("reuse", "",
                 "rows of a table that the batch uses once, twice, 4, 8, ... times, as given",
                 [](const KernelAnswer& x) { return x.asked.list_named("reuse"); });
    field("kernels", "", "what it launches", &KernelAnswer::kernels);
    field("warnings", "", "sentences that readers of the numbers should know",
          &KernelAnswer::warnings);
  }
};

/// The kernels of one operator, with what determines their time.
std::string kernel_table(const std::vector<KernelForecast>& kernels, const KernelQuestion& question,
                         const TableStyle& style = {});
/// Sentences that name the kernels that are extrapolated.
std::vector<std::string> kernel_warnings(const std::vector<KernelForecast>& kernels);

/// Lists of the known GPUs, models and operators. Numbers in JSON are in SI units.
std::string gpus_table(const std::vector<GpuEntry>& gpus, const TableStyle& style = {});
std::string clusters_table(const std::vector<ClusterEntry>& clusters, const TableStyle& style = {});
/// The time of one collective, with what it is made of.
std::string collective_table(const CollectiveForecast& forecast, const TableStyle& style = {});
/// A placement of embedding tables: its times, ranks and tables, and what simple rules give.
std::string shard_table(const ShardForecast& forecast, const TableStyle& style = {});
/// One line per part of a table.
std::string shard_csv(const ShardForecast& forecast);
std::string models_table(const std::vector<ModelEntry>& models, const TableStyle& style = {});
std::string ops_table(const std::vector<OpEntry>& ops, const TableStyle& style = {});

}  // namespace tilecast
