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

std::vector<PipelinePass> pipeline_order(const PipelineShape& p, int64_t stage) {
  const int64_t all = p.microbatches * p.chunks;
  int64_t ahead = all;  // forward passes before the first backward pass
  if (p.schedule != PipelineSchedule::kGPipe) {
    ahead = p.stages - stage - 1;
    if (p.chunks > 1) ahead = 2 * ahead + (p.chunks - 1) * p.stages;
    ahead = std::min(ahead, all);
  }
  std::vector<PipelinePass> order;
  order.reserve(static_cast<size_t>(2 * all));
  for (int64_t i = 0; i < ahead; ++i) order.push_back(pass_at(p, i, false));
  for (int64_t i = 0; i < all; ++i) {
    if (ahead + i < all) order.push_back(pass_at(p, ahead + i, false));
    order.push_back(pass_at(p, i, true));
  }
  return order;
}

std::vector<int64_t> most_in_flight(const PipelineShape& p, int64_t stage) {
  // The parts' activations count together: the moment at which most of all are in memory.
  std::vector<int64_t> now(static_cast<size_t>(p.chunks), 0), most = now;
  int64_t sum = 0, largest = 0;
  for (const PipelinePass& pass : pipeline_order(p, stage)) {
    const int64_t change = pass.backward ? -1 : 1;
    now[static_cast<size_t>(pass.chunk)] += change;
    sum += change;
    if (sum <= largest) continue;
    largest = sum;
    most = now;
  }
  return most;
}

}  // namespace tilecast
