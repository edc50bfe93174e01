#pragma once

// What a step of a server takes. A simulation asks for thousands of different steps; a few of each
// kind are forecast, and the others lie between them.

#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <vector>

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// A positive function of D sizes that is computed at knots (1, 2, 3, 4, 6, 8, 12, …, and those
/// that are named) when they are first needed, and is linear in the logarithms between them.
template <size_t D>
class LazyGrid {
 public:
  using Knots = std::array<int64_t, D>;
  LazyGrid(const std::vector<int64_t>& named, std::function<double(const Knots&)> value);
  double at(const std::array<double, D>& sizes);

 private:
  double log_at(const std::array<size_t, D>& indices);

  std::vector<int64_t> knots_;
  std::vector<double> logs_;  ///< of the knots
  std::function<double(const Knots&)> value_;
  std::unordered_map<uint64_t, double> known_;  ///< logarithms of values
};

/// Seconds of a step: linear layers, norms and what else works on all tokens by the number of
/// tokens; the output layer by the number of sequences; attention by groups: the decoding sequences
/// in one call, the prompts that begin in one, the prompts that go on in one, as variable-length
/// kernels take them. Prompts of different lengths count as so many of one length that tokens and
/// pairs of tokens stay the same.
class StepCosts {
 public:
  /// `named`: sizes at which nothing is interpolated.
  StepCosts(const LlmSteps& steps, const std::vector<int64_t>& named);
  double seconds(const ServingBatch& batch);

 private:
  enum class Part { kGroup, kHead, kRest };
  double part_s(const StepRequest::Group& group, Part part) const;
  double prompts_s(const std::vector<PromptChunk>& prompts, bool fresh);

  const LlmSteps& steps_;
  LazyGrid<1> rest_, head_;
  LazyGrid<2> decode_;   ///< sequences, keys that each attends to: those in the cache and its own
  LazyGrid<2> fresh_;    ///< prompts, tokens of each
  LazyGrid<3> later_;    ///< prompts, tokens of each, tokens in the cache
  double launch_s_ = 0;  ///< what the host takes to launch a step kernel by kernel
};

}  // namespace tilecast
