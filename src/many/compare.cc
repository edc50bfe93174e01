// The same request on several GPUs.

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/threads.h"
#include "many/job_table.h"
#include "many/totals.h"
#include "scenario/fit.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

/// Facts that are the same in the forecasts on all GPUs.
struct CommonFacts {
  Request used;
  std::vector<std::string> assumptions;
  std::string input = "";
  int64_t gpus = 1;
};

CommonFacts add_result(ComparedGpu& row, const Forecast& f) {
  row.gpu_name = f.gpu_name;
  row.usable_bytes = f.memory.usable_bytes;
  row.memory_is_tight = is_tight(f.memory);
  row.totals = totals_of(f);
  row.warnings = f.warnings;
  return {.used = f.used,
          .assumptions = assumptions(f),
          .input = f.input,
          .gpus = f.parallel ? f.parallel->ranks : 1};
}

void add_load(ComparedGpu& row, const GenerationForecast::Serving& serving) {
  const ServerMetrics& part = serving.steady_or_all();
  row.ttft = part.ttft.p99;
  row.tpot = part.tpot.p99;
  row.goodput_requests_per_s = serving.goodput_requests_per_s;
  row.keeps_up = serving.keeps_up;
}

CommonFacts add_result(ComparedGpu& row, const GenerationForecast& f) {
  row.gpu_name = f.gpu_name;
  row.usable_bytes = f.memory.usable_bytes;
  row.totals = totals_of(f);
  row.warnings = f.warnings;
  if (f.serving) {
    add_load(row, *f.serving);
  } else if (!f.continuous) {
    row.ttft = f.ttft;
    row.tpot = f.tpot;
  }
  return {.used = f.used, .assumptions = assumptions(f), .input = "", .gpus = f.gpus};
}

CommonFacts add_result(ComparedGpu& row, const AcceleratorForecast& f) {
  row.gpu_name = f.accelerator_name;
  row.totals = totals_of(f);
  return {.used = {.batch = f.batch, .seq = f.seq}};
}

CommonFacts forecast_row(ComparedGpu& row, const Forecaster& forecaster, const ModelRef& model,
                         const GpuRef& gpu, const Request& request) {
  row.gpu = row.gpu_name = gpu.id();
  const DeviceRef device = gpu;
  const JobResult job = run_job({forecaster, model, device, request});
  if (job.result)
    return std::visit([&](const auto& forecast) { return add_result(row, forecast); }, *job.result);
  row.totals.error = job.error;
  return {.used = request};
}

/// Whether times say which of the two is faster: times of a server that does not keep up depend on
/// how long the load lasts.
bool has_steady_time(const ComparedGpu& row) { return row.has_time() && row.keeps_up; }

/// For each token where there are tokens; those whose cost is not forecast come last.
double cost_of(const ComparedGpu& row) {
  const ForecastTotals& t = row.totals;
  return t.cost_per_million_tokens.value_or(
      t.cost.value_or(std::numeric_limits<double>::infinity()));
}

/// Neighbours are compared where both fit, or neither does. With limits, rows are ranked by goodput
/// first; equal goodputs leave the order to time.
void compare_neighbours(std::vector<ComparedGpu>& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    const ComparedGpu& above = rows[i - 1];
    if (!has_steady_time(rows[i]) || !has_steady_time(above) || rows[i].fits() != above.fits())
      continue;
    const ForecastTotals &a = above.totals, &b = rows[i].totals;
    rows[i].overlaps_row_above =
        a.latency_s->low <= b.latency_s->high && b.latency_s->low <= a.latency_s->high;
  }
}

/// With the price of this GPU, which was found among those of all: a list may name one of a device
/// file, which only that GPU's own forecast knows.
Request priced(const Request& request, const std::vector<GpuPrice>& prices, size_t gpu) {
  Request own = request;
  if (prices.empty()) return own;
  own.energy.gpu_prices.clear();
  own.energy.gpu_price = prices[gpu];
  own.energy.price_per_gpu_hour = prices[gpu].price_per_gpu_hour;
  return own;
}

}  // namespace

GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options) {
  GpuComparison result{.model = model.name(), .request = request};
  if (!request.energy.gpu_prices.empty())
    result.prices = gpu_prices(request.energy.gpu_prices, gpus);
  result.gpus.resize(gpus.size());
  std::vector<CommonFacts> facts(gpus.size());
  const auto forecast = [&](size_t i) {
    facts[i] =
        forecast_row(result.gpus[i], forecaster, model, gpus[i], priced(request, result.prices, i));
  };
  // The first one builds the pass, which the others find in the forecaster.
  if (!gpus.empty()) forecast(0);
  if (gpus.size() > 1)
    run_parallel(gpus.size() - 1, options.threads, options.poll,
                 [&](size_t i) { forecast(i + 1); });
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (result.gpus[i].totals.error) continue;
    result.request = facts[i].used;
    result.request.energy.gpu_prices = request.energy.gpu_prices;
    result.assumptions = facts[i].assumptions;
    result.input = facts[i].input;
    result.gpus_each = facts[i].gpus;
    break;
  }
  const bool by_cost = !result.prices.empty();
  const auto rank = [&](const ComparedGpu& row) {
    return std::tuple(row.totals.error.has_value(), !row.fits(), !row.has_time(), !row.keeps_up,
                      -row.goodput_requests_per_s.value_or(0), by_cost ? cost_of(row) : 0.0,
                      row.totals.latency_s.value_or(Interval{}).value);
  };
  std::stable_sort(result.gpus.begin(), result.gpus.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  compare_neighbours(result.gpus);
  return result;
}

}  // namespace tilecast
