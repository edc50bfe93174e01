#include "sim/pipeline_schedule.h"

#include <algorithm>

namespace tilecast {
namespace {

/// Pass number `i` of all forward, or all backward, passes of a stage. Interleaved: as many
/// micro-batches as there are stages go through one part after the other.
PipelinePass pass_at(const PipelineShape& p, int64_t i, bool backward) {
  if (p.chunks == 1) return {backward, 0, i};
  const int64_t group = p.stages * p.chunks;
  const int64_t part = i % group / p.stages;
  return {backward, backward ? p.chunks - 1 - part : part, i / group * p.stages + i % p.stages};
}

}  // namespace

/// Forward passes before the first backward pass.
int64_t forward_ahead(const PipelineShape& p, int64_t stage) {
  const int64_t all = p.microbatches * p.chunks;
  if (p.schedule == PipelineSchedule::kGPipe) return all;
  int64_t ahead = p.stages - stage - 1;
  if (p.chunks > 1) ahead = 2 * ahead + (p.chunks - 1) * p.stages;
  return std::min(ahead, all);
}

std::vector<PipelinePass> pipeline_order(const PipelineShape& p, int64_t stage) {
  const int64_t all = p.microbatches * p.chunks, ahead = forward_ahead(p, stage);
  std::vector<PipelinePass> order;
  order.reserve(static_cast<size_t>(2 * all));
  for (int64_t i = 0; i < ahead; ++i) order.push_back(pass_at(p, i, false));
  for (int64_t i = 0; i < all; ++i) {
    if (ahead + i < all) order.push_back(pass_at(p, ahead + i, false));
    order.push_back(pass_at(p, i, true));
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

std::vector<int64_t> most_in_flight(const PipelineShape& p, int64_t stage) {
  // One more than before the first backward pass; from then on each forward pass follows a backward
  // pass.
  return forward_passes(p, std::min(forward_ahead(p, stage) + 1, p.microbatches * p.chunks));
}

}  // namespace tilecast
