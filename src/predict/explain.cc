#include "predict/explain.h"

#include <algorithm>
#include <array>

#include "predict/coverage.h"
#include "predict/kernel_kinds.h"
#include "predict/learned.h"
#include "predict/residual.h"
#include "predict/roofline.h"

namespace tilecast {
namespace {

/// The kind by the name of the model that made the time; nullopt: not a learned model.
std::optional<KernelKind> kind_of(const KernelTime& time) {
  for (size_t k = 0; k < kKernelKindCount; ++k) {
    if (kernel_kind_name(static_cast<KernelKind>(k)) == time.predictor)
      return static_cast<KernelKind>(k);
  }
  return std::nullopt;
}

std::optional<NearestRows> nearest_rows(KernelKind kind, const Kernel& kernel, const Device& device,
                                        const Conditions& conditions, const Weights& weights) {
  const KindModel& model = weights.model(kind);
  const Applied applied = applied_residual(model, kind, device);
  if (applied.residual == nullptr || applied.nearest == nullptr) return std::nullopt;
  Coverages coverages(model, applied, device);
  const Coverage& coverage = coverages.of(combination_of(kernel, conditions));
  NearestRows rows{.of = applied.residual->of,
                   .own_class = applied.own_class,
                   .device = applied.nearest->source,
                   .similarity = similarity(signature_of(device), applied.nearest->signature),
                   .on_device = coverage.on_nearest,
                   .in_class = coverage.in_class,
                   .anywhere = coverage.anywhere};
  std::array<float, kMaxFeatures> inputs{};
  const Outside outside =
      standardize(model, kernel_kind_def(kind).make(kernel, conditions), inputs.data());
  if (outside.excess > 0) rows.outside = feature_names(kind)[outside.feature];
  return rows;
}

}  // namespace

Explanation explain(const Kernel& kernel, const Device& device, const Conditions& conditions,
                    const KernelTime& time, const Weights& weights) {
  std::optional<Device> store;
  const Device& running = running_device(device, conditions, store);
  Explanation result;
  if (running.as_gpu() == nullptr || kernel.is<Collective>()) return result;
  result.clock_hz = running.gpu().boost_clock_hz;
  result.roofline_s = time.utilization_ratio * time.seconds;
  const std::optional<KernelKind> kind = kind_of(time);
  if (!kind) return result;
  const Law law = kernel_kind_def(*kind).law;
  Chip chip(running, weights.laws, calibrated_scales(*kind, weights, device));
  result.law = law(kernel, chip, conditions);
  chip.board_power_w = kNever;
  result.power_s = std::max(0.0, result.law->seconds - law(kernel, chip, conditions).seconds);
  result.learned_factor =
      time.seconds / ((result.law->seconds - result.law->fused_s) * result.law->version_ratio);
  result.nearest = nearest_rows(*kind, kernel, device, conditions, weights);
  return result;
}

}  // namespace tilecast
