#include "scenario/generation/slower_precision.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/dtype.h"
#include "graph/scheme.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The same request in the precision of the checkpoint; nullopt: it cannot be forecast.
std::optional<LlmForecast> in_own_precision(const LlmForecast& forecast, const Inquiry& inquiry) {
  Request request = inquiry.request;
  request.execution.dtype.clear();
  request.execution.kv_dtype = forecast.kv_dtype;  // the cache stays as it is
  try {
    return forecast_llm(inquiry.forecaster, inquiry.model, inquiry.gpu(), request);
  } catch (const Error&) {
    return std::nullopt;  // a remark on a forecast that was made must not become its error
  }
}

bool has_16_bits(const std::string& dtype) {
  return dtype == dtype_name(DType::kBf16) || dtype == dtype_name(DType::kFp16);
}

}  // namespace

void warn_of_slower_precision(LlmForecast& forecast, const Inquiry& inquiry) {
  const Request& request = inquiry.request;
  if (request.kind != RequestKind::kGenerate || !find_scheme(request.execution.dtype)) return;
  const std::optional<LlmForecast> own = in_own_precision(forecast, inquiry);
  if (!own || !has_16_bits(own->dtype)) return;
  // A precision that does not fit is no alternative.
  if (!own->fits && forecast.fits) return;
  Warning warning{WarningCode::kSlowerPrecision,
                  "",
                  0,
                  {{"dtype", forecast.dtype}, {"reference_dtype", own->dtype}}};
  const auto compare = [&](const char* name, double seconds, double reference_s) {
    if (seconds < reference_s) return;
    warning.share = std::max(warning.share, seconds / reference_s - 1);
    warning.facts.push_back({std::string(name) + "_s", seconds});
    warning.facts.push_back({std::string("reference_") + name + "_s", reference_s});
  };
  constexpr size_t kFactsOfBoth = 2;
  // A prompt that takes longer matters where the whole request is not shorter for it.
  if (forecast.request.seconds >= own->request.seconds)
    compare("ttft", forecast.ttft.seconds, own->ttft.seconds);
  if (forecast.output > 1) compare("tpot", forecast.tpot.seconds, own->tpot.seconds);
  if (warning.facts.size() > kFactsOfBoth) forecast.warnings.push_back(std::move(warning));
}

}  // namespace tilecast
