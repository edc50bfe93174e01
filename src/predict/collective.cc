#include "predict/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilecast/error.h"

namespace tilecast {

double all_reduce_s(const Kernel& kernel, const Device& device) {
  double link = 0;
  for (const Link& l : device.links) link = std::max(link, l.bytes_per_s);
  if (link == 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the device file names no links; several ranks cannot be forecast",
                            device.id));
  constexpr double kStart = 4e-6, kPerRank = 1e-6;
  const auto n = static_cast<double>(std::get<Collective>(kernel.shape).ranks);
  return kStart + kPerRank * n + 2 * (n - 1) / n * static_cast<double>(kernel.read_bytes) / link;
}

void estimate_all_reduce(const CostBatch& batch, const Weights&) {
  for (const size_t i : batch.rows) {
    KernelTime time;
    time.seconds = all_reduce_s(batch.kernels[i], batch.device);
    // No measurement went into the law: half to twice the time is a guess.
    time.low_s = time.seconds / 2;
    time.high_s = time.seconds * 2;
    time.limit = Limit::kNetwork;
    time.utilization_ratio = 1;
    batch.times[i] = time;
  }
}

}  // namespace tilecast
