#include "predict/embedding.h"

#include <algorithm>

#include "predict/bound.h"
#include "predict/law.h"

namespace tilecast {

double bag_seconds(const BagBytes& bytes, const Chip& chip) {
  const EmbeddingBagConstants& c = chip.laws.embedding_bag;
  const double gather = c.gather_share * chip.dram_bytes_per_s;
  const double l2 = std::max(chip.l2_bytes_per_s(c.l2_bytes_per_cycle), chip.dram_bytes_per_s);
  return (bytes.all - bytes.gathered) / chip.dram_bytes_per_s +
         (bytes.gathered - bytes.hits) / gather + bytes.hits / l2;
}

double bag_chain_s(double pooling, const Chip& chip) {
  return chip.laws.embedding_bag.row_s * pooling;
}

void estimate_embedding_bags(const CostBatch& batch, const Weights& weights) {
  const Chip chip(batch.device, weights.laws);
  const double width = chip.laws.embedding_bag.interval_ratio;
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    const EmbeddingBag& bag = std::get<EmbeddingBag>(kernel.shape);
    const auto all = static_cast<double>(kernel.bytes());
    const auto gathered = static_cast<double>(bag.gathered_bytes);
    const double hits = gathered * bag.hits.at(chip.l2_bytes);
    const double chain_s = bag.pass == EmbeddingBag::Pass::kForward
                               ? bag_chain_s(static_cast<double>(bag.pooling), chip)
                               : 0;
    const double moved_s = bag_seconds({all, gathered, hits}, chip) + chain_s;
    const double compute_s = roofline_bound(kernel, batch.device).compute_s;
    const double bound_s = std::max(all / chip.gpu.l2_bytes_per_s(), compute_s);
    KernelTime time;
    time.seconds = chip.laws.stream.start_s + std::max(moved_s, compute_s);
    time.low_s = std::max(time.seconds / width, bound_s);
    time.high_s = time.seconds * width;
    time.limit = time.seconds < 2 * kLatencyFloor ? Limit::kLatency
                 : compute_s > moved_s            ? Limit::kCompute
                                                  : Limit::kMemory;
    time.waves = count_waves(kernel, batch.device, {});
    time.utilization_ratio = std::min(1.0, bound_s / time.seconds);
    time.extrapolated = true;
    time.extrapolated_feature = kLawAlone;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
