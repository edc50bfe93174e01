#pragma once

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "predict/weights.h"
#include "sizes.h"

namespace tilecast {

/// The weights that the build embeds.
inline const Weights& embedded_weights() {
  static const Weights weights = load_weights("");
  return weights;
}

/// Kernels of several operators in FP32, log-uniform in their sizes.
inline std::vector<Kernel> random_kernels(size_t count, uint64_t seed) {
  const char* ops[] = {"linear",  "matmul",     "add",       "gelu",
                       "softmax", "layer_norm", "embedding", "copy"};
  Rng rng(seed);
  const auto size = [&](int bits) { return static_cast<int64_t>(std::exp2(rng.uniform() * bits)); };
  std::vector<Kernel> kernels;
  for (size_t i = 0; i < count; ++i) {
    const SizeList sizes = {{"batch", size(7)}, {"m", size(14)}, {"n", size(14)}, {"k", size(13)}};
    const char* op = ops[rng.below(8)];
    for (const Kernel& k : kernels_of_sizes(op, DType::kFp32, taken_sizes(op, sizes)))
      kernels.push_back(k);
  }
  return kernels;
}

}  // namespace tilecast
