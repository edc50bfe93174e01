#include "predict/unmeasured.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"

namespace tilecast {

bool is_unmeasured(const Kernel& kernel) {
  const OpDef& op = op_def(kernel.op);
  if (!op.unmeasured) return false;
  return !kernel.is<Stream>() || find_attribute_def(op, "training") == nullptr;
}

void mark_unmeasured(const Kernel& kernel, KernelTime& time) {
  // Logarithms of measured over forecast, between which 80 % of the rows lie of operators that
  // share a law without being what it was made for, each operator counted alike: eight of the law
  // of pointwise kernels (gathers, reductions, dropout, casts, backward passes), two of the laws of
  // softmax and layer norm (their backward passes); PyTorch on one H100, by the law alone
  // (data/measurements).
  constexpr double kStreamHigh = 1.8, kRowsLow = -0.25, kRowsHigh = 0.7;
  const bool rows = kernel.is<Rows>();
  constexpr double kRounded = 1 + 1e-12;  // the bound comes from a ratio
  const double bound = time.utilization_ratio * time.seconds * kRounded;
  const double low = rows ? time.seconds * std::exp(kRowsLow) : time.low_s;
  time.low_s = std::min(time.low_s, std::max(bound, low));
  time.high_s = std::max(time.high_s, time.seconds * std::exp(rows ? kRowsHigh : kStreamHigh));
  time.common_share = 1;  // an operator is off by much the same wherever it runs
  time.extrapolated = true;
  time.extrapolated_feature = kUnmeasuredOperator;
}

}  // namespace tilecast
