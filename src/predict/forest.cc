#include "predict/forest.h"

#include <algorithm>

namespace tilecast {

int16_t Forest::quantized(float value, float steps) {
  // To the nearest whole step, halves away from 0; std::round is a call on processors without
  // SSE 4.1.
  const float scaled = std::clamp(value * steps, -32767.0f, 32767.0f);
  return static_cast<int16_t>(scaled + (scaled < 0 ? -0.5f : 0.5f));
}

Forest Forest::view(std::span<const Tree> trees) {
  Forest forest;
  forest.view_ = trees;
  return forest;
}

bool Forest::operator==(const Forest& other) const {
  return std::ranges::equal(trees(), other.trees());
}

void forest_add(const Forest& forest, const float* inputs, size_t width, size_t count, float weight,
                float* outputs) {
  // A block of inputs stays in the cache while the trees go over it; a few walk a tree in step, so
  // that one's loads hide the other's.
  constexpr size_t kBlock = 64;
  constexpr size_t kAbreast = 8;
  std::vector<int16_t> x(kBlock * width);
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t used = std::min(kBlock, count - start);
    for (size_t i = 0; i < used * width; ++i)
      x[i] = Forest::quantized(inputs[start * width + i], Forest::kInputSteps);
    // Rows beyond the last walk along and are not read.
    const size_t walking = (used + kAbreast - 1) / kAbreast * kAbreast;
    std::array<int32_t, kBlock> sum{};
    for (const Forest::Tree& tree : forest.trees()) {
      for (size_t r = 0; r < walking; r += kAbreast) {
        std::array<uint32_t, kAbreast> node{};
        for (int level = 0; level < Forest::kDepth; ++level) {
          for (size_t i = 0; i < kAbreast; ++i) {
            const uint32_t at = node[i];
            const int16_t value = x[(r + i) * width + tree.feature[at]];
            node[i] = 2 * at + 1 + (value < tree.threshold[at] ? 0 : 1);
          }
        }
        for (size_t i = 0; i < kAbreast; ++i) sum[r + i] += tree.leaf[node[i] - Forest::kInner];
      }
    }
    for (size_t r = 0; r < used; ++r)
      outputs[start + r] += weight * (static_cast<float>(sum[r]) / Forest::kLeafSteps);
  }
}

}  // namespace tilecast
