#include "predict/embedding.h"

#include <algorithm>

#include "predict/bound.h"
#include "predict/law.h"

namespace tilecast {

namespace {

// Fitted on FP32 rows of the kit's embedding_bag on an H100 that take more than 10 us
// (data/measurements/nvidia-h100-sxm5-80gb/movement.csv, 2026-11-22;
// docs/explanation/recommendation.md).

/// Bytes per clock and SM that L2 delivers: the fastest measured row, nearly all of it in L2,
/// reaches 27.6.
constexpr double kL2BytesPerClock = 28;
/// DRAM bandwidth that rows at random places reach, over that of large streams.
constexpr double kGatherShare = 0.8;
/// Seconds per row of a bag, which one warp reads one after the other: DRAM's latency, over the
/// reads that are in flight.
constexpr double kRowSeconds = 0.1e-6;

}  // namespace

double bag_seconds(const BagBytes& bytes, const Chip& chip) {
  const double gather = kGatherShare * chip.dram_bytes_per_s;
  const double l2 = std::max(chip.l2_bytes_per_s(kL2BytesPerClock), chip.dram_bytes_per_s);
  return (bytes.all - bytes.gathered) / chip.dram_bytes_per_s +
         (bytes.gathered - bytes.hits) / gather + bytes.hits / l2;
}

double bag_chain_s(double pooling) { return kRowSeconds * pooling; }

void estimate_embedding_bags(const CostBatch& batch, const Weights&) {
  constexpr double kWidth = 2;
  const Chip chip(batch.device);
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    const EmbeddingBag& bag = std::get<EmbeddingBag>(kernel.shape);
    const auto all = static_cast<double>(kernel.bytes());
    const auto gathered = static_cast<double>(bag.gathered_bytes);
    const double hits = gathered * bag.hits.at(chip.l2_bytes);
    const double chain_s = bag.pass == EmbeddingBag::Pass::kForward
                               ? bag_chain_s(static_cast<double>(bag.pooling))
                               : 0;
    const double moved_s = bag_seconds({all, gathered, hits}, chip) + chain_s;
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
