#include "api/missing_models.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "predict/roofline.h"

namespace tilecast {

std::optional<std::string> missing_models(const std::vector<KernelForecast>& kernels) {
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
  return fmt::format(
      "these weights hold no model of {}: {:.0f} % of the time is the roofline of the data sheet; "
      "add measurements of such kernels with 'tilecast train --data'",
      join(std::vector<std::string>(missing.begin(), missing.end()), ", "), 100 * without / all);
}

}  // namespace tilecast
