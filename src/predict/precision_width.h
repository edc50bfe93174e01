#pragma once

#include <vector>

#include "predict/trained_on.h"

namespace tilecast {

/// How much wider an interval is for kernels of one precision than for those of all: a factor on
/// its logarithms. Kernels of some precisions scatter more: FP8 by blocks has libraries of its own.
struct PrecisionWidth {
  DType dtype{}, kv_dtype{};
  QuantScheme scheme{};
  double factor = 1;

  bool is_of(const Combination& c) const {
    return c.dtype == dtype && c.kv_dtype == kv_dtype && c.scheme == scheme;
  }
  bool operator==(const PrecisionWidth&) const = default;
};
using PrecisionWidths = std::vector<PrecisionWidth>;

/// 1 where rows of the precision do not say.
double width_of(const PrecisionWidths* widths, const Combination& combination);

}  // namespace tilecast
