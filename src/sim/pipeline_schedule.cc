#include "sim/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"

namespace tilecast {
namespace {

/// Pass number `i` of all forward, or all backward, passes of a stage. Interleaved: as many
/// micro-batches as there are stages go through one part after the other.
PipelinePass pass_at(const PipelineShape& p, int64_t i, PassKind kind) {
  if (p.chunks == 1) return {kind, 0, i};
  const int64_t group = p.stages * p.chunks;
  const int64_t part = i % group / p.stages;
  return {kind, kind == PassKind::kForward ? part : p.chunks - 1 - part,
          i / group * p.stages + i % p.stages};
}

/// ZB-H1: gradients of weights start after as many of inputs as there are stages before this one,
/// and then follow one to one.
std::vector<PipelinePass> zero_bubble_order(const PipelineShape& p, int64_t stage) {
  const int64_t all = p.microbatches, ahead = forward_ahead(p, stage);
  std::vector<PipelinePass> order;
  order.reserve(static_cast<size_t>(3 * all));
  const auto add = [&](PassKind kind, int64_t i) { order.push_back({kind, 0, i}); };
  for (int64_t i = 0; i < ahead; ++i) add(PassKind::kForward, i);
  int64_t weights = 0;
  for (int64_t i = 0; i < all; ++i) {
    if (ahead + i < all) add(PassKind::kForward, ahead + i);
    add(PassKind::kInputGradients, i);
    if (i >= stage) add(PassKind::kWeightGradients, weights++);
  }
  while (weights < all) add(PassKind::kWeightGradients, weights++);
  return order;
}

/// The order of a stage with two parts, of a schedule for at least 2 · stages - 1 micro-batches;
/// those that there are not are left out.
class ZbVOrder {
 public:
  ZbVOrder(const PipelineShape& shape, int64_t stage) : p_(shape), stage_(stage) {}

  std::vector<PipelinePass> run() {
    const int64_t all = std::max(2 * p_.stages - 1, p_.microbatches);
    repeat(2 * (p_.stages - stage_) - 1, [&] { forward(0); });
    repeat(stage_, [&] { forward(1), forward(0); });
    repeat(p_.stages - stage_, [&] { forward(1), inputs(1), weights(1); });
    while (forward_[1] < forward_[0] || forward_[0] < all) {
      if (forward_[0] < all) forward(0);
      inputs(0), weights(0);
      forward(1), inputs(1), weights(1);
    }
    repeat(stage_, [&] { inputs(0), inputs(1); });
    repeat(p_.stages - stage_, [&] { inputs(0), weights(0); });
    while (weights_[1] < inputs_[1]) weights(1);
    while (weights_[0] < inputs_[0]) weights(0);
    return std::move(order_);
  }

 private:
  template <typename Passes>
  static void repeat(int64_t times, const Passes& passes) {
    for (int64_t i = 0; i < times; ++i) passes();
  }
  void forward(size_t part) { add(PassKind::kForward, part, forward_[part]); }
  void inputs(size_t part) { add(PassKind::kInputGradients, part, inputs_[part]); }
  void weights(size_t part) { add(PassKind::kWeightGradients, part, weights_[part]); }
  void add(PassKind kind, size_t part, int64_t& next) {
    if (next < p_.microbatches) order_.push_back({kind, static_cast<int64_t>(part), next});
    ++next;
  }

  const PipelineShape& p_;
  const int64_t stage_;
  std::vector<PipelinePass> order_;
  /// By part: the next micro-batch of each kind of pass.
  std::array<int64_t, 2> forward_{}, inputs_{}, weights_{};
};

/// For each part of the stage: the most micro-batches whose forward pass has run on it and whose
/// backward pass has not. One more than before the first backward pass; from then on each forward
/// pass follows a backward pass.
std::vector<int64_t> most_in_flight(const PipelineShape& p, int64_t stage) {
  return forward_passes(p, std::min(forward_ahead(p, stage) + 1, p.microbatches * p.chunks));
}

}  // namespace

const char* pass_name(PassKind kind) {
  constexpr std::array kNames = {"forward", "backward", "backward (inputs)", "backward (weights)"};
  return kNames.at(static_cast<size_t>(kind));
}

int64_t part_number(const PipelineShape& p, int64_t stage, int64_t chunk) {
  const bool back = p.schedule == PipelineSchedule::kZbV && chunk == 1;
  return chunk * p.stages + (back ? p.stages - 1 - stage : stage);
}

int64_t stage_of_part(const PipelineShape& p, int64_t number) {
  const int64_t along = number % p.stages;
  const bool back = p.schedule == PipelineSchedule::kZbV && number >= p.stages;
  return back ? p.stages - 1 - along : along;
}

/// Forward passes before the first backward pass.
int64_t forward_ahead(const PipelineShape& p, int64_t stage) {
  const int64_t all = p.microbatches * p.chunks;
  if (p.schedule == PipelineSchedule::kGPipe) return all;
  int64_t ahead = p.stages - stage - 1;
  if (p.chunks > 1) ahead = 2 * ahead + (p.chunks - 1) * p.stages;
  return std::min(ahead, all);
}

std::vector<PipelinePass> pipeline_order(const PipelineShape& p, int64_t stage) {
  if (p.schedule == PipelineSchedule::kZbV) return ZbVOrder(p, stage).run();
  if (p.schedule == PipelineSchedule::kZeroBubble) return zero_bubble_order(p, stage);
  const int64_t all = p.microbatches * p.chunks, ahead = forward_ahead(p, stage);
  std::vector<PipelinePass> order;
  order.reserve(static_cast<size_t>(2 * all));
  for (int64_t i = 0; i < ahead; ++i) order.push_back(pass_at(p, i, PassKind::kForward));
  for (int64_t i = 0; i < all; ++i) {
    if (ahead + i < all) order.push_back(pass_at(p, ahead + i, PassKind::kForward));
    order.push_back(pass_at(p, i, PassKind::kBackward));
  }
  return order;
}

std::vector<int64_t> forward_passes(const PipelineShape& p, int64_t passes) {
  std::vector<int64_t> counts(static_cast<size_t>(p.chunks));
  const int64_t group = p.stages * p.chunks;
  for (int64_t c = 0; c < p.chunks; ++c) {
    const int64_t rest = passes % group - c * p.stages;
    counts[static_cast<size_t>(c)] =
        p.chunks == 1 ? passes : passes / group * p.stages + std::clamp<int64_t>(rest, 0, p.stages);
  }
  return counts;
}

int64_t most_bytes_in_flight(const PipelineShape& p, int64_t stage,
                             std::span<const PassBytes> parts) {
  int64_t now = 0, most = 0;
  if (!splits_backward(p.schedule)) {
    const std::vector<int64_t> counts = most_in_flight(p, stage);
    for (size_t i = 0; i < parts.size(); ++i)
      most = checked_add(most, checked_multiply(counts[i], parts[i].saved));
    return most;
  }
  for (const PipelinePass& pass : pipeline_order(p, stage)) {
    const PassBytes& bytes = parts[static_cast<size_t>(pass.chunk)];
    if (pass.kind == PassKind::kForward) now = checked_add(now, bytes.saved);
    // What it keeps for the gradients of weights grows as what was saved goes.
    if (pass.kind == PassKind::kInputGradients) now = checked_add(now, bytes.kept - bytes.saved);
    most = std::max(most, now);
    if (pass.kind == PassKind::kWeightGradients) now -= bytes.kept;
  }
  return most;
}

}  // namespace tilecast
