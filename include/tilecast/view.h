#pragma once

// Answers as text: tables, JSON, CSV, SVG, pages (HTML).

#include <string>
#include <vector>

#include "tilecast/allocate.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/profile.h"
#include "tilecast/search.h"
#include "tilecast/share.h"

namespace tilecast {

struct TableStyle {
  int width = 80;       ///< maximum line length of a table in columns; at least 40
  bool color = false;   ///< ANSI colors
  size_t rows = 20;     ///< kernels to show
  std::string command;  ///< the command line that was asked, for pages
};

std::string accelerator_table(const AcceleratorForecast& forecast, const TableStyle& style);

/// As "text", "svg" or "perfetto" (Chrome's trace format; a cycle is shown as a microsecond).
std::string occupancy_picture(const AcceleratorOccupancy& occupancy, const std::string& format);

std::string accelerator_evaluation_table(const std::vector<AcceleratorEvaluation>& files,
                                         const TableStyle& style);

/// Two forecasts side by side: totals, options, kernels and memory that differ.
std::string difference_table(const Comparison& comparison, const TableStyle& style = {});

/// A line for each job, then what they have in common.
std::string share_table(const ShareForecast& forecast, const TableStyle& style = {});

/// Totals of a trace, its operators, and those that are slower than they should be.
std::string trace_table(const TraceReport& report, const TableStyle& style = {});

/// A line for each job with its places, then the pool and the objective.
std::string allocation_table(const AllocationForecast& forecast, const TableStyle& style = {});
/// A line for each policy.
std::string simulation_table(const ClusterSimulation& simulation, const TableStyle& style = {});
/// The pool over time, under each policy.
std::string simulation_svg(const ClusterSimulation& simulation);

/// A line for each GPU, with the interval of its time and whether it is certainly slower than the
/// line above.
std::string comparison_table(const GpuComparison& comparison, const TableStyle& style = {});

std::string tune_table(const std::vector<TuneForecast>& forecasts, const TableStyle& style);

std::string product_table(const ProductForecast& forecast, const TableStyle& style);

std::string tune_evaluation_table(const std::vector<TuneEvaluation>& files,
                                  const TableStyle& style);

std::string evaluation_table(const Evaluation& evaluation, const TableStyle& style = {});

/// Errors of pairs and slices by GPU, beside plain rules.
std::string sharing_evaluation_table(const SharingEvaluation& evaluation,
                                     const TableStyle& style = {});

/// Forecast against measured relative speeds, a panel for each GPU.
std::string sharing_evaluation_svg(const SharingEvaluation& evaluation);

/// Errors of servers in all, by software, by GPU, and of each group.
std::string server_evaluation_table(const ServerEvaluation& evaluation,
                                    const TableStyle& style = {});

/// What measured pairs say of each job.
std::string pair_calibration_table(const PairCalibration& result, const TableStyle& style = {});

/// Totals first, then the operators that take the most time, one line for each group of identical
/// kernels. Warnings are not included: a program shows them beside its own messages.
std::string forecast_table(const Forecast& forecast, const TableStyle& style);

/// Memory over time: the peak with its contents, then each repetition of the model's segments.
std::string memory_table(const MemoryTimeline& timeline, const TableStyle& style);

/// A picture of the parts over time, with the peak's contents.
std::string memory_svg(const MemoryTimeline& timeline);

/// Mean, highest and lowest power of each rank, and by what it computes.
std::string power_table(const PowerTimeline& timeline, const TableStyle& style);

/// A picture of power over time, a panel for each rank.
std::string power_svg(const PowerTimeline& timeline);

/// Power over time in Chrome's trace format: a counter for each rank, and what it computes.
std::string power_trace_json(const PowerTimeline& timeline);

/// The operations of a step in Chrome's trace format, which Perfetto reads: a process for each
/// rank, a thread for computing and one for communication; times in us.
std::string step_trace_json(const std::vector<StepOperation>& operations);

/// Time to first token, time per token, memory, and what a prefill and a decode step spend.
std::string llm_table(const GenerationForecast& forecast, const TableStyle& style = {});

/// The output of `forecast --format json`, with further keys for text generation; see
/// docs/explanation/servers.md.
std::string llm_json(const GenerationForecast& forecast);

/// The kernels of one operator, with what determines their time.
std::string kernel_table(const KernelAnswer& answer, const TableStyle& style = {});

/// Sentences that name the kernels that are extrapolated.
std::vector<std::string> kernel_warnings(const std::vector<KernelForecast>& kernels);

/// Lists of the known GPUs, models and operators. Numbers in JSON are in SI units.
/// Each number of a file with its source.
std::string data_file_table(const DataFile& file, const TableStyle& style);

std::string installation_table(const Installation& installation, const TableStyle& style);

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

/// The winner, why, the next candidates, and what does not fit.
std::string plan_table(const TrainingPlan& plan, const TableStyle& style = {});

/// Plans of the same training on different GPUs: the best of each, those that fit first by tokens/s
/// for each GPU, or with prices by cost.
std::vector<TrainingPlan> sorted_plans(const std::vector<TrainingPlan>& plans);

std::string plans_table(const std::vector<TrainingPlan>& plans, const TableStyle& style = {});

std::string plan_table(const ServingPlan& plan, const TableStyle& style = {});

/// The Pareto front: tokens/s for each GPU against tokens/s of a user, for each kind of GPU.
std::string plan_svg(const ServingPlan& plan);

}  // namespace tilecast
