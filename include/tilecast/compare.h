#pragma once

// The same request on several GPUs.

#include <optional>
#include <string>
#include <vector>

#include "tilecast/llm.h"
#include "tilecast/many.h"
#include "tilecast/report.h"

namespace tilecast {

/// The forecast on one GPU, or why there is none (`totals.error`).
struct ComparedGpu {
  std::string gpu;       ///< id
  std::string gpu_name;  ///< the product name
  int64_t device_bytes = 0;
  ForecastTotals totals;
  // Of text generation: a static batch, or the steady state of a server under load.
  std::optional<Estimate> ttft, tpot;         ///< of a server: 99th percentiles
  std::optional<double> served_tokens_per_s;  ///< output tokens of a server under load
  std::vector<Warning> warnings;

  bool fits() const { return totals.fits.value_or(false); }
};

struct GpuComparison {
  std::string model;
  Request request;
  int64_t gpus_each = 1;          ///< GPUs of each kind that the request uses
  std::vector<ComparedGpu> gpus;  ///< those that fit, the fastest first; those that do not; errors
};

/// Forecasts the request on each GPU. Throws Error for an unknown GPU or model; what cannot be
/// forecast on one of the GPUs is in its row. The result does not depend on the number of threads.
GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options = {});

/// A line for each GPU, with the interval of its time and whether the order is certain.
std::string comparison_table(const GpuComparison& comparison, const TableStyle& style = {});
/// The output of `forecast --gpus … --format json`, schema version 1.
std::string comparison_json(const GpuComparison& comparison);
/// A line for each GPU, with the columns of `forecast_many`.
std::string comparison_csv(const GpuComparison& comparison);

}  // namespace tilecast
