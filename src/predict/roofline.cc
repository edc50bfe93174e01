#include "predict/roofline.h"

#include "predict/bound.h"
#include "predict/law.h"

namespace tilecast {

KernelTime roofline_time(const Kernel& kernel, const Device& device) {
  const Bound bound = roofline_bound(kernel, device);
  KernelTime time;
  time.seconds = bound.seconds();
  time.low_s = time.seconds;
  time.high_s = time.seconds;
  time.limit = bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
  time.waves = count_waves(kernel, device, {}).waves;
  time.utilization_ratio = 1.0;
  return time;
}

void estimate_unlearned(const CostBatch& batch, const Weights&) {
  constexpr double kHighest = 4;
  for (const size_t i : batch.rows) {
    KernelTime time = roofline_time(batch.kernels[i], batch.device);
    time.seconds += kLatencyFloor;
    time.high_s = kHighest * time.seconds;
    time.utilization_ratio = time.low_s / time.seconds;
    time.extrapolated = true;
    time.extrapolated_feature = kNoModel;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
