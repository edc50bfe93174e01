#include "predict/class_roofline.h"

#include <algorithm>

#include "devices/vendor.h"
#include "predict/bound.h"
#include "predict/law.h"

namespace tilecast {
namespace {

/// Shares of the data sheet's rates.
struct Reached {
  double compute, memory;
};

Reached reached_by(const Kernel& kernel, const ClassRooflineConstants& c) {
  const bool short_type = has_8_bits_or_less(kernel.compute_dtype());
  if (kernel.is_product())
    return {short_type ? c.product_of_8_bits_share : c.product_share, c.product_memory_share};
  if (kernel.is<Experts>()) return {c.experts_share, c.experts_memory_share};
  if (kernel.is<Attention>())
    return {short_type ? c.attention_of_8_bits_share : c.attention_share, c.cache_share};
  return {c.vector_share, c.memory_share};
}

}  // namespace

bool is_known_by_class(const Kernel& kernel, const Device& device) {
  const Gpu* const gpu = device.as_gpu();
  return gpu != nullptr && is_systolic(gpu->architecture) && !kernel.is<Collective>();
}

void estimate_by_class(const CostBatch& batch, const Weights& weights) {
  const ClassRooflineConstants& c = weights.laws.class_roofline;
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    const Bound bound = roofline_bound(kernel, batch.device);
    const Reached reached = reached_by(kernel, c);
    const double compute_s = bound.compute_s / reached.compute;
    const double memory_s = bound.memory_s / reached.memory;
    KernelTime time;
    time.seconds = c.start_s + std::max(compute_s, memory_s);
    time.low_s = std::max(bound.seconds(), time.seconds / c.interval_ratio);
    time.high_s = time.seconds * c.interval_ratio;
    time.limit = std::max(compute_s, memory_s) < c.start_s ? Limit::kLatency
                 : compute_s >= memory_s                   ? Limit::kCompute
                                                           : Limit::kMemory;
    time.waves = count_waves(kernel, batch.device, {});
    time.utilization_ratio = bound.seconds() / time.seconds;
    time.extrapolated = true;
    time.extrapolated_feature = kUnmeasuredArchitecture;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
