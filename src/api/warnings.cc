#include "api/warnings.h"

#include <fmt/format.h>

#include <map>
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

std::vector<std::string> unmapped_operators(const Timeline& timeline, const Program& program) {
  struct Share {
    int64_t count = 0;
    double seconds = 0;
  };
  std::map<std::string, Share> unmapped;
  double all = 0;
  for (const Event& event : timeline.events) {
    const double seconds = event.duration_s * static_cast<double>(event.count);
    all += seconds;
    const AttributeValue* name = program.launches[event.launch].node->find_attribute("unmapped");
    if (name == nullptr) continue;
    Share& share = unmapped[std::get<std::string>(*name)];
    share.count += event.count;
    share.seconds += seconds;
  }
  std::vector<std::string> parts;
  double sum = 0;
  for (const auto& [name, share] : unmapped) {
    sum += share.seconds;
    parts.push_back(
        fmt::format("{} ({} times, {:.1f} %)", name, share.count, 100 * share.seconds / all));
  }
  if (parts.empty()) return {};
  return {fmt::format(
      "{:.1f} % of the kernels' time is of operators that Tilecast does not know, forecast as "
      "one kernel each that reads and writes its tensors once: {}",
      100 * sum / all, join(parts, ", "))};
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
