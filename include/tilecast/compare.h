#pragma once

// The same request on several GPUs.

#include <optional>
#include <string>
#include <vector>

#include "tilecast/llm.h"
#include "tilecast/many.h"
#include "tilecast/report.h"

namespace tilecast {

/// The forecast on one GPU, or why there is none (`totals.error`). For a server under load,
/// `totals` has the times and tokens/s of the steady state, with the 99th percentile of TTFT and
/// TPOT; all are nullopt if it does not start, for lack of memory.
struct ComparedGpu {
  std::string gpu;           ///< id
  std::string gpu_name;      ///< the product name
  int64_t usable_bytes = 0;  ///< what a program can use of the memory
  ForecastTotals totals;
  std::optional<Estimate> ttft, tpot;
  /// Requests per second that meet the limits on TTFT and TPOT; nullopt: no limits were given.
  std::optional<double> goodput_requests_per_s;
  bool keeps_up = true;  ///< the server with the load
  /// A pass fits, but less is free than the caching allocator may be unable to use: a tenth of the
  /// peak.
  bool memory_is_tight = false;
  /// The 80 % intervals of this GPU and of the one before it in the list overlap: which is faster
  /// is not certain. nullopt: it is the first of those that fit, or of those that do not, or one of
  /// the two has no time, or one that grows with the length of the run.
  std::optional<bool> overlaps_row_above;
  std::vector<Warning> warnings;

  /// `value` of a GPU with a forecast; else nullptr.
  template <typename T>
  const T* if_forecast(const T& value) const {
    return totals.error ? nullptr : &value;
  }
  bool fits() const { return totals.fits.value_or(false); }
  bool has_time() const { return totals.latency_s.has_value(); }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ComparedGpu", "The forecast on one GPU, or why there is none.");
    field("gpu", "", "id of the GPU", &ComparedGpu::gpu);
    field("gpu_name", "", "the product name", &ComparedGpu::gpu_name);
    field("usable_bytes", "bytes",
          "what a program can use of the GPU's memory; the peak must fit into it",
          [](const ComparedGpu& x) { return x.if_forecast(x.usable_bytes); });
    field.flat(&ComparedGpu::totals, {"warning_codes"});
    field("ttft", "", "of a server under load: 99th percentile of the steady state",
          &ComparedGpu::ttft);
    field("tpot", "", "of a server under load: 99th percentile of the steady state",
          &ComparedGpu::tpot);
    field("goodput_requests_per_s", "1/s",
          "requests that meet the limits on TTFT and TPOT; null: no limits were given",
          &ComparedGpu::goodput_requests_per_s);
    field("keeps_up", "",
          "whether a server keeps up with the load; its times grow with the length of the run if "
          "it does not",
          [](const ComparedGpu& x) { return x.if_forecast(x.keeps_up); });
    field("memory_is_tight", "",
          "of a pass: it fits, but less than a tenth of the peak is free, which the caching "
          "allocator may be unable to use",
          [](const ComparedGpu& x) { return x.if_forecast(x.memory_is_tight); });
    field("overlaps_row_above", "",
          "the 80 % intervals of latency_s of this GPU and of the one before it overlap: which of "
          "the two is faster is not certain. null: it is the first of those that fit, or of those "
          "that do not, or one of the two has no time that can be compared",
          &ComparedGpu::overlaps_row_above);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const ComparedGpu& x) { return warning_texts(x.warnings); });
    field("warning_codes", "", "code of each warning, in the order of warnings",
          [](const ComparedGpu& x) { return warning_code_names(x.warnings); });
  }
};

struct GpuComparison {
  std::string model;
  Request request;
  std::string input;      ///< as in Forecast; "" for text generation
  int64_t gpus_each = 1;  ///< GPUs of each kind that the request uses
  /// Sorted: requests that fit before requests that do not, errors last; servers that keep up with
  /// the load before others; then by goodput, else by time.
  std::vector<ComparedGpu> gpus;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("GpuComparison", "The same request on several GPUs.");
    field("schema_version", "", "of this schema", [](const GpuComparison&) { return 1; });
    field("kind", "", "gpu_comparison",
          [](const GpuComparison&) { return std::string_view("gpu_comparison"); },
          {"gpu_comparison"});
    field("model", "", "name of the model", &GpuComparison::model);
    field("gpus_each", "", "GPUs of each kind that the request uses", &GpuComparison::gpus_each);
    field("gpus", "",
          "those that fit, then those that do not, then those without a forecast; servers that "
          "keep up with the load come before those that do not, a higher goodput before a lower "
          "one; else the fastest first",
          &GpuComparison::gpus);
    field("options", "",
          "the request with all defaults: values by the names of the command-line options (with _ "
          "for -), in their units; options without a value are omitted",
          [](const GpuComparison& x) { return option_values(x.request); });
  }
};

/// Forecasts the request on each GPU. If a GPU has no forecast, its row says why. The result does
/// not depend on the number of threads.
GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options = {});

/// A line for each GPU, with the interval of its time and whether it is certainly slower than the
/// line above.
std::string comparison_table(const GpuComparison& comparison, const TableStyle& style = {});

}  // namespace tilecast
