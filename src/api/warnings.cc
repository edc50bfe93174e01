#include "api/warnings.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/text.h"
#include "predict/roofline.h"

namespace tilecast {

std::optional<Warning> extrapolation_warning(const std::string& subject, const Timeline& timeline,
                                             const std::vector<KernelTime>& times) {
  double outside = 0, all = 0;
  for (const Event& event : timeline.events) {
    const double seconds = event.duration_s * static_cast<double>(event.count);
    all += seconds;
    if (times[event.kernel].extrapolated) outside += seconds;
  }
  if (outside <= kNoticedShare * all) return std::nullopt;
  return Warning{WarningCode::kExtrapolated, subject, outside / all, {}};
}

std::optional<Warning> no_model_warning(const std::string& subject,
                                        const std::vector<KernelForecast>& kernels) {
  std::set<std::string> missing;
  double all = 0, without = 0;
  for (const KernelForecast& k : kernels) {
    const double seconds = k.latency_s * static_cast<double>(k.count);
    all += seconds;
    if (k.extrapolated_feature != kNoModel) continue;
    without += seconds;
    missing.insert(fmt::format("{} {}", k.op, k.dtype));
  }
  if (missing.empty()) return std::nullopt;
  const std::vector<std::string> names(missing.begin(), missing.end());
  return Warning{WarningCode::kNoModel, subject, without / all, {{"kernels", join(names, ", ")}}};
}

std::optional<Warning> host_wait_warning(const std::string& subject, const Totals& totals) {
  if (totals.host_wait_s <= kNoticedShare * totals.seconds) return std::nullopt;
  return Warning{WarningCode::kHostWait, subject, totals.host_wait_s / totals.seconds, {}};
}

void add_warning(std::vector<Warning>& warnings, std::optional<Warning> warning) {
  if (warning) warnings.push_back(*std::move(warning));
}

void add_messages(std::vector<Warning>& warnings, WarningCode code, const std::string& subject,
                  const std::vector<std::string>& messages) {
  for (const std::string& message : messages)
    warnings.push_back({code, subject, 0, {{"message", message}}});
}

}  // namespace tilecast
