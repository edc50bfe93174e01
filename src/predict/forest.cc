#include "predict/forest.h"

#include <algorithm>
#include <cmath>

namespace tilecast {

int16_t Forest::quantized(float value, float steps) {
  return static_cast<int16_t>(std::clamp(std::round(value * steps), -32767.0f, 32767.0f));
}

void forest_add(const Forest& forest, const float* inputs, size_t width, size_t count, float weight,
                float* outputs) {
  // A block of inputs stays in the cache while the trees go over it.
  constexpr size_t kBlock = 64;
  std::vector<int16_t> x(kBlock * width);
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t used = std::min(kBlock, count - start);
    for (size_t i = 0; i < used * width; ++i)
      x[i] = Forest::quantized(inputs[start * width + i], Forest::kInputSteps);
    std::array<int32_t, kBlock> sum{};
    for (const Forest::Tree& tree : forest.trees) {
      for (size_t r = 0; r < used; ++r) {
        const int16_t* row = &x[r * width];
        size_t node = 0;
        for (int level = 0; level < Forest::kDepth; ++level)
          node = 2 * node + 1 + (row[tree.feature[node]] < tree.threshold[node] ? 0 : 1);
        sum[r] += tree.leaf[node - Forest::kInner];
      }
    }
    for (size_t r = 0; r < used; ++r)
      outputs[start + r] += weight * (static_cast<float>(sum[r]) / Forest::kLeafSteps);
  }
}

}  // namespace tilecast
