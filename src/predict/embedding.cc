#include "predict/embedding.h"

#include <algorithm>

#include "predict/bound.h"
#include "predict/law.h"

namespace tilecast {

double bag_seconds(const BagBytes& bytes, const Chip& chip) {
  const double l2 = std::max(chip.gpu.l2_bytes_per_s(), chip.dram_bytes_per_s);
  return (bytes.all - bytes.hits) / chip.dram_bytes_per_s + bytes.hits / l2;
}

void estimate_embedding_bags(const CostBatch& batch, const Weights&) {
  constexpr double kWidth = 2;
  const Chip chip(batch.device);
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    const EmbeddingBag& bag = std::get<EmbeddingBag>(kernel.shape);
    const auto all = static_cast<double>(kernel.bytes());
    const double hits = static_cast<double>(bag.gathered_bytes) * bag.hits.at(chip.l2_bytes);
    const double moved_s = bag_seconds({all, hits}, chip);
    const double compute_s = roofline_bound(kernel, batch.device).compute_s;
    const double bound_s = std::max(all / chip.gpu.l2_bytes_per_s(), compute_s);
    KernelTime time;
    time.seconds = kLatencyFloor + std::max(moved_s, compute_s);
    time.low_s = std::max(time.seconds / kWidth, bound_s);
    time.high_s = time.seconds * kWidth;
    time.limit = time.seconds < 2 * kLatencyFloor ? Limit::kLatency
                 : compute_s > moved_s            ? Limit::kCompute
                                                  : Limit::kMemory;
    time.waves = count_waves(kernel, batch.device, {}).waves;
    time.utilization_ratio = std::min(1.0, bound_s / time.seconds);
    time.extrapolated = true;
    time.extrapolated_feature = kLawAlone;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
