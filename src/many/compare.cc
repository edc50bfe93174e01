// The same request on several GPUs.

#include "tilecast/compare.h"

#include <algorithm>
#include <tuple>

#include "many/parallel.h"
#include "many/totals.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// What a forecast says of its GPU, whatever the GPU.
struct CommonFacts {
  Request used;
  int64_t gpus = 1;
};

CommonFacts add_pass(ComparedGpu& row, const Forecast& f) {
  row.gpu_name = f.gpu_name;
  row.device_bytes = f.memory.device_bytes;
  row.totals = totals_of(f);
  row.warnings = f.warnings;
  return {.used = f.used, .gpus = f.parallel ? f.parallel->ranks : 1};
}

CommonFacts add_tokens(ComparedGpu& row, const LlmForecast& f) {
  row.gpu_name = f.gpu_name;
  row.device_bytes = f.device_bytes;
  row.totals = totals_of(f);
  row.ttft = f.ttft;
  row.tpot = f.tpot;
  row.warnings = f.warnings;
  if (f.serving) {
    const ServedPart& part = f.serving->steady ? *f.serving->steady : f.serving->all;
    row.ttft = part.ttft.p99;
    row.tpot = part.tpot.p99;
    row.served_tokens_per_s = part.output_tokens_per_s;
  }
  return {.used = f.used, .gpus = f.gpus};
}

CommonFacts forecast_row(ComparedGpu& row, const Forecaster& forecaster, const ModelRef& model,
                         const GpuRef& gpu, const Request& request) {
  row.gpu = row.gpu_name = gpu.id();
  try {
    return request.kind == RequestKind::kPass
               ? add_pass(row, forecaster.forecast(model, gpu, request))
               : add_tokens(row, forecast_llm(forecaster, model, gpu, request));
  } catch (const Error& error) {
    row.totals.error = error.what();
  }
  return {.used = request};
}

}  // namespace

GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options) {
  GpuComparison result{.model = model.name(), .request = request};
  result.gpus.resize(gpus.size());
  std::vector<CommonFacts> facts(gpus.size());
  const auto forecast = [&](size_t i) {
    facts[i] = forecast_row(result.gpus[i], forecaster, model, gpus[i], request);
  };
  // The first one builds the pass, which the others find in the forecaster.
  if (!gpus.empty()) forecast(0);
  if (gpus.size() > 1) run_parallel(gpus.size() - 1, options, [&](size_t i) { forecast(i + 1); });
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (result.gpus[i].totals.error) continue;
    result.request = facts[i].used;
    result.gpus_each = facts[i].gpus;
    break;
  }
  const auto rank = [](const ComparedGpu& row) {
    return std::tuple(row.totals.error.has_value(), !row.fits(), row.totals.latency_s.value_or(0));
  };
  std::stable_sort(result.gpus.begin(), result.gpus.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return result;
}

}  // namespace tilecast
