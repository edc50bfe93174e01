#include "scenario/generation/expert_precision.h"

#include "devices/vendor.h"
#include "ops/builder.h"
#include "request/access.h"

namespace tilecast {
namespace {

/// Smaller differences are within the error of the forecast: measurements of two programs on one
/// GPU differ by 3.5 % in the median (docs/reference/measurements.md).
constexpr double kNoticed = 1.05;

}  // namespace

std::optional<Warning> slower_experts(const std::string& subject, const Graph& graph,
                                      const Program& program, const std::vector<KernelTime>& times,
                                      const Predictor& predictor, const Device& device,
                                      const Conditions& conditions) {
  /// A layer of experts, and the kernels `first` to `last` of `reference`: the same layer in 16
  /// bits.
  struct Pair {
    const Launch* launch;
    size_t first, last;
  };
  std::vector<Kernel> reference;
  std::vector<Pair> pairs;
  for (const Launch& launch : program.launches) {
    const Kernel& kernel = program.kernels[launch.kernel];
    if (!kernel.is<Experts>() || kernel.scheme == QuantScheme::kNone) continue;
    if (times[launch.kernel].extrapolated) continue;  // not measured
    Node node = *launch.node;
    node.set_attribute("scheme", QuantScheme::kNone);
    const size_t first = reference.size();
    lower_node(graph, node, reference);
    pairs.push_back({&launch, first, reference.size()});
  }
  if (pairs.empty()) return std::nullopt;
  const Kernel* found = &program.kernels[pairs.front().launch->kernel];
  if (device.matmul_peak(found->dtype) == 0) return std::nullopt;
  std::vector<KernelTime> reference_times(reference.size());
  predictor.predict(reference, device, conditions, reference_times);
  double reference_s = 0, low_precision_s = 0;
  for (const Pair& pair : pairs) {
    double once_s = 0;
    bool measured = true;
    for (size_t i = pair.first; i < pair.last; ++i) {
      once_s += reference_times[i].seconds;
      measured = measured && !reference_times[i].extrapolated;
    }
    if (!measured) continue;
    found = &program.kernels[pair.launch->kernel];
    reference_s += once_s * static_cast<double>(program.count(*pair.launch));
    low_precision_s +=
        times[pair.launch->kernel].seconds * static_cast<double>(program.count(*pair.launch));
  }
  if (reference_s == 0) return std::nullopt;
  if (low_precision_s < kNoticed * reference_s) return std::nullopt;
  const auto text = [](std::string_view name) { return std::string(name); };
  return Warning{WarningCode::kSlowerExperts,
                 subject,
                 low_precision_s / reference_s - 1,
                 {{"scheme", text(scheme_info(found->scheme).name)},
                  {"dtype", text(dtype_name(found->dtype))},
                  {"software", text(software_name(conditions.software))},
                  {"device", device.id}}};
}

std::optional<Warning> idle_backend(const Request& request, const Device& device,
                                    const GenerationForecast& forecast) {
  const MoeBackend backend = request.execution.moe_backend;
  const bool has_experts = forecast.active_parameters != forecast.parameters;
  const Gpu* gpu = device.as_gpu();
  const bool has_kernels = gpu == nullptr || !is_amd(gpu->architecture);
  if (backend == MoeBackend::kAuto || (has_experts && has_kernels)) return std::nullopt;
  return Warning{
      WarningCode::kNoEffect,
      "moe-backend",
      0,
      {{"value", std::string(choice_name(backend))},
       {"reason", has_experts ? "AMD's GPUs have no such kernels" : "the model has no experts"}}};
}

}  // namespace tilecast
