#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tilecast {

/// Gradient-boosted regression trees (Friedman 2001): the sum of one leaf of each tree. All trees
/// are complete and equally deep, so that a walk is a fixed number of comparisons.
class Forest {
 public:
  static constexpr int kDepth = 6;
  static constexpr size_t kInner = (size_t{1} << kDepth) - 1;
  static constexpr size_t kLeaves = size_t{1} << kDepth;

  /// Inputs and thresholds are compared as whole numbers of 1 / kInputSteps, leaves are such of
  /// 1 / kLeafSteps: half the size, and what training saw is exactly what a forecast computes.
  static constexpr float kInputSteps = 2048;
  static constexpr float kLeafSteps = 8192;
  static int16_t quantized(float value, float steps);

  /// Node i's children are 2i + 1 (feature < threshold) and 2i + 2.
  struct Tree {
    std::array<int16_t, kInner + 1> threshold{};  ///< one more, to fill a word
    std::array<int16_t, kLeaves> leaf{};
    std::array<uint8_t, kInner + 1> feature{};
    bool operator==(const Tree&) const = default;
  };

  Forest() = default;
  explicit Forest(std::vector<Tree> trees) : owned_(std::move(trees)) {}
  /// Trees that lie in memory which outlives the forest, as the program's embedded weights do.
  static Forest view(std::span<const Tree> trees);

  std::span<const Tree> trees() const { return owned_.empty() ? view_ : owned_; }
  bool operator==(const Forest& other) const;

 private:
  std::vector<Tree> owned_;
  std::span<const Tree> view_;
};

/// Adds weight · forest(x) to outputs, for `count` inputs of `width` floats that lie one after the
/// other. The same input gives the same bits whatever stands beside it.
void forest_add(const Forest& forest, const float* inputs, size_t width, size_t count, float weight,
                float* outputs);

}  // namespace tilecast
