#include "api/expert_precision.h"

#include <fmt/format.h>

#include "ops/builder.h"

namespace tilecast {
namespace {

/// Below this the forecast's own error decides: two programs measured on one GPU differ by 3.5 % in
/// the median (docs/data.md).
constexpr double kNoticed = 1.05;

}  // namespace

std::optional<std::string> slower_experts(const Graph& graph, const Lowered& lowered,
                                          const std::vector<KernelTime>& times,
                                          const Predictor& predictor, const Device& device) {
  std::vector<Kernel> wide;
  double narrow_s = 0;
  const Kernel* found = nullptr;
  std::vector<double> counts;
  for (const Launch& launch : lowered.launches) {
    const Kernel& kernel = lowered.distinct[launch.kernel];
    if (kernel.family != KernelFamily::kExperts || kernel.scheme == Scheme::kNone) continue;
    if (times[launch.kernel].extrapolated) continue;  // no measurement says so
    Node node = *launch.node;
    for (Attribute& attribute : node.attributes) {
      if (attribute.name == "scheme") attribute.values = {0};
    }
    const size_t before = wide.size();
    lower_node(graph, node, wide);
    for (size_t i = before; i < wide.size(); ++i) {
      wide[i].software = kernel.software;
      counts.push_back(static_cast<double>(launch.count));
    }
    narrow_s += times[launch.kernel].seconds * static_cast<double>(launch.count);
    found = &kernel;
  }
  if (found == nullptr || device.matmul_peak(found->dtype) == 0) return std::nullopt;
  std::vector<KernelTime> wide_times(wide.size());
  predictor.predict(wide, device, wide_times);
  double wide_s = 0;
  for (size_t i = 0; i < wide.size(); ++i) wide_s += wide_times[i].seconds * counts[i];
  if (narrow_s < kNoticed * wide_s) return std::nullopt;
  return fmt::format("experts in {} take {:.0f} % longer than in {} with {} on {}",
                     scheme_info(found->scheme).name, 100 * (narrow_s / wide_s - 1),
                     dtype_name(found->dtype), software_name(found->software), device.id);
}

}  // namespace tilecast
