#pragma once

// Speculative decoding: what makes drafts, and what a pass of it takes.

#include <memory>

#include "scenario/generation/step_graph.h"

namespace tilecast {

/// Tokens that a step of a sequence writes on average: the draft's before the first that is
/// refused, and one of the model itself. Source: Leviathan et al. 2023, equation 1.
double tokens_per_step(const Speculation& speculation);

/// The model's own layer for multi-token prediction, or a smaller model.
class Drafter {
 public:
  /// `served` must outlive this object. Throws Error{kUnsupported} if neither exists.
  explicit Drafter(const ServedModel& served);

  /// One pass, which makes one token for each sequence of the groups.
  Interval pass(std::vector<StepGroup> groups) const;
  /// The draft of a decode step.
  Interval draft(int64_t sequences, int64_t past) const;
  int64_t weights_bytes() const { return weights_bytes_; }
  /// Adds what it keeps of each token.
  void add_caches(Decoder& decoder) const;

 private:
  void use_own_layer();
  void use_model(const std::string& name);
  Graph projection(int64_t tokens) const;

  const ServedModel& served_;
  std::optional<ServedStage> layer_;  ///< the model's own
  std::optional<ModelRef> model_;
  GpuRef gpu_;
  Request request_;  ///< of the smaller model
  std::unique_ptr<ServedModel> smaller_;
  int64_t weights_bytes_ = 0;
};

}  // namespace tilecast
