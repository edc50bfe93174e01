#include "predict/roofline.h"

#include "predict/bound.h"

namespace tilecast {

KernelTime roofline_time(const Kernel& kernel, const Device& device) {
  const Bound bound = roofline_bound(kernel, device);
  KernelTime time;
  time.seconds = bound.seconds();
  time.low_s = time.seconds;
  time.high_s = time.seconds;
  time.limit = bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
  time.waves = count_waves(kernel, device, {});
  time.utilization_ratio = 1.0;
  return time;
}

void estimate_unlearned(const CostBatch& batch, const Weights& weights) {
  for (const size_t i : batch.rows) {
    KernelTime time = roofline_time(batch.kernels[i], batch.device);
    time.seconds += weights.laws.stream.start_s;
    time.high_s = weights.laws.intervals.no_model_ratio * time.seconds;
    time.utilization_ratio = time.low_s / time.seconds;
    time.extrapolated = true;
    time.extrapolated_feature = kNoModel;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
