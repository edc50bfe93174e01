#include "evaluate/training_runs.h"

#include <cmath>
#include <utility>

#include "base/quantile.h"
#include "evaluate/errors.h"

namespace tilecast {
namespace {

/// Bytes of tensors and workspaces on the last rank, which PyTorch's allocator counts.
int64_t allocated_bytes(const Forecast& f) {
  const int64_t peak =
      f.parallel ? f.parallel->stages.back().memory.peak_bytes : f.memory.peak_bytes;
  return peak - f.memory.framework_bytes;
}

}  // namespace

TrainingRuns::SetUp& TrainingRuns::set_up_of(const ModelMeasurement& m) {
  std::string key =
      m.gpu + '\n' + (m.config_text.empty() ? m.model : m.config_text) + '\n' + m.option;
  for (const auto& [name, text] : m.options)
    key.append(1, '\n').append(name).append(1, ' ').append(text);
  const auto known = set_ups_.find(key);
  if (known != set_ups_.end()) return known->second;
  std::vector<GivenOption> given;
  for (const auto& [name, text] : m.options) given.push_back({name, text});
  Request request = make_request(given);
  request.execution.predictor = predictor_;
  SetUp made{.forecast = forecast_(m, request), .first = &m, .measured_bytes = {}};
  SetUp& stored = set_ups_.emplace(std::move(key), std::move(made)).first->second;
  order_.push_back(&stored);
  return stored;
}

void TrainingRuns::add(const ModelMeasurement& m, std::vector<EvaluationModel>& models) {
  SetUp& set_up = set_up_of(m);
  const Forecast& f = set_up.forecast;
  if (m.peak_bytes) set_up.measured_bytes.push_back(static_cast<double>(*m.peak_bytes));
  if (m.measured_s > 0)
    models.push_back({f.gpu, m.model, m.mode, m.seq, m.batch, m.dtype, m.option, m.measured_s,
                      f.latency_s, error_percent(f.latency_s, m.measured_s)});
}

std::vector<EvaluationPeak> TrainingRuns::peaks() const {
  std::vector<EvaluationPeak> peaks;
  for (const SetUp* set_up : order_) {
    if (set_up->measured_bytes.empty()) continue;
    constexpr double kMedian = 0.5;
    const double measured = quantile(set_up->measured_bytes, kMedian);
    const int64_t forecast = allocated_bytes(set_up->forecast);
    peaks.push_back({set_up->forecast.gpu, set_up->first->model, set_up->first->option,
                     static_cast<int64_t>(measured), forecast,
                     error_percent(static_cast<double>(forecast), measured)});
  }
  return peaks;
}

}  // namespace tilecast
