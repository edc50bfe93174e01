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

  bool fits() const { return totals.fits.value_or(false); }
  bool has_time() const { return totals.latency_s.has_value(); }
};

struct GpuComparison {
  std::string model;
  Request request;
  std::string input;      ///< as in Forecast; "" for text generation
  int64_t gpus_each = 1;  ///< GPUs of each kind that the request uses
  /// Sorted: requests that fit before requests that do not, errors last; servers that keep up with
  /// the load before others; then by goodput, else by time.
  std::vector<ComparedGpu> gpus;
};

/// Forecasts the request on each GPU. If a GPU has no forecast, its row says why. The result does
/// not depend on the number of threads.
GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options = {});

/// A line for each GPU, with the interval of its time and whether it is certainly slower than the
/// line above.
std::string comparison_table(const GpuComparison& comparison, const TableStyle& style = {});
/// The output of `forecast --gpus … --format json`, schema version 1.
std::string comparison_json(const GpuComparison& comparison);
/// A line for each GPU, with the columns of `forecast_many`.
std::string comparison_csv(const GpuComparison& comparison);

}  // namespace tilecast
