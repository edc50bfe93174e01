#include "predict/unmeasured.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"

namespace tilecast {

bool is_unmeasured(const Kernel& kernel) {
  const OpDef& op = op_def(kernel.op);
  if (!op.unmeasured) return false;
  // Batch norms of images stored by pixel were measured: they stream, and their operators have a
  // layout.
  return !kernel.is<Stream>() || find_attribute_def(op, "channels_last") == nullptr;
}

void mark_unmeasured(const Kernel& kernel, const IntervalConstants& c, KernelTime& time) {
  const bool rows = kernel.is<Rows>();
  constexpr double kRounded = 1 + 1e-12;  // the bound comes from a ratio
  const double bound = time.utilization_ratio * time.seconds * kRounded;
  const double low = rows ? time.seconds * std::exp(c.unmeasured_rows_low_log) : time.low_s;
  time.low_s = std::min(time.low_s, std::max(bound, low));
  time.high_s = std::max(time.high_s, time.seconds * std::exp(rows ? c.unmeasured_rows_high_log
                                                                   : c.unmeasured_stream_high_log));
  time.common_share = 1;  // an operator is off by much the same wherever it runs
  time.extrapolated = true;
  time.extrapolated_feature = kUnmeasuredOperator;
}

}  // namespace tilecast
