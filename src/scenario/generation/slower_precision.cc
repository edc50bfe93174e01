#include "scenario/generation/slower_precision.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/dtype.h"
#include "graph/scheme.h"
#include "scenario/generation/step_timer.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// A cache of 8 bits saves no time where attention is a small part of a step: differences below this
// share are within the noise of measurements.
constexpr double kNoticedSlower = 0.02;

/// The forecast of another request; nullopt: it cannot be forecast.
std::optional<GenerationForecast> forecast_of(const Inquiry& inquiry, const Request& request) {
  try {
    return forecast_generation(inquiry.forecaster, inquiry.model, inquiry.gpu(), request);
  } catch (const Error&) {
    return std::nullopt;  // a remark on a forecast that was made must not become its error
  }
}

bool has_16_bits(const std::string& dtype) {
  return dtype == dtype_name(DType::kBf16) || dtype == dtype_name(DType::kFp16);
}

/// Adds the warning with the times that are longer than those of the reference by a share or more.
void warn(GenerationForecast& forecast, const std::optional<GenerationForecast>& reference,
          Warning warning, double least_share) {
  // A precision that does not fit is no alternative.
  if (!reference || (!reference->memory.fits && forecast.memory.fits)) return;
  const size_t before = warning.facts.size();
  const auto compare = [&](const char* name, double seconds, double reference_s) {
    if (seconds < (1 + least_share) * reference_s) return;
    warning.share = std::max(warning.share, seconds / reference_s - 1);
    warning.facts.push_back({std::string(name) + "_s", seconds});
    warning.facts.push_back({std::string("reference_") + name + "_s", reference_s});
  };
  // A prompt that takes longer matters where the whole request is not shorter for it.
  if (forecast.request.value >= reference->request.value)
    compare("ttft", forecast.ttft.value, reference->ttft.value);
  if (forecast.output > 1) compare("tpot", forecast.tpot.value, reference->tpot.value);
  if (warning.facts.size() > before) forecast.warnings.push_back(std::move(warning));
}

}  // namespace

void warn_of_slower_precision(GenerationForecast& forecast, const Inquiry& inquiry) {
  if (inquiry.request.kind != RequestKind::kGenerate) return;
  if (find_scheme(inquiry.request.execution.dtype)) {
    Request own = inquiry.request;
    own.execution.dtype.clear();
    own.execution.kv_dtype = forecast.kv_dtype;  // the cache stays as it is
    const std::optional<GenerationForecast> reference = forecast_of(inquiry, own);
    if (reference && has_16_bits(reference->dtype))
      warn(forecast, reference,
           {WarningCode::kSlowerPrecision,
            "",
            0,
            {{"dtype", forecast.dtype}, {"reference_dtype", reference->dtype}}},
           0);
  }
  if (!has_16_bits(forecast.kv_dtype)) {
    Request wide = inquiry.request;
    wide.execution.kv_dtype = dtype_name(DType::kBf16);
    warn(forecast, forecast_of(inquiry, wide),
         {WarningCode::kSlowerPrecision,
          "cache",
          0,
          {{"dtype", forecast.kv_dtype}, {"reference_dtype", wide.execution.kv_dtype}}},
         kNoticedSlower);
  }
}

double decode_slowdown(const ServedModel& served, const Request& changed) {
  const StepGroup group{.sequences = served.sequences_of_rank(served.asked.batch),
                        .tokens = 1,
                        .past = served.asked.prompt + served.asked.output / 2};
  const ServedModel other(served, changed);
  const double now_s = time_step(served, {group}, StepLaunch::kCudaGraph).totals.seconds;
  return time_step(other, {group}, StepLaunch::kCudaGraph).totals.seconds / now_s - 1;
}

}  // namespace tilecast
