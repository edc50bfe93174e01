#include "plan/group_cache.h"

#include "scenario/parallel/parallel_step.h"
#include "scenario/parallel/rank_memory.h"
#include "sim/step_bound.h"
#include "tilecast/request.h"

namespace tilecast {

void set_candidate(Request& r, const TrainingCandidate& c) {
  r.execution.dp = c.dp;
  r.execution.tp = c.tp;
  r.execution.pp = c.pp;
  r.execution.microbatches = 1;
  r.execution.dtype = c.dtype;
  r.checkpointing = c.checkpointing;
  Parallel& p = r.parallel;
  p.cp = c.cp;
  if (c.cp == 1) p.cp_comm_type = CpCommType::kAllGather;  // ranks that exchange nothing
  p.ep = c.ep;
  p.micro_batch_size = c.micro_batch_size;
  p.schedule = c.schedule;
  p.layers_per_virtual_stage = c.layers_per_virtual_stage;
  p.sequence_parallel = c.sequence_parallel;
  p.zero = c.zero;
}

GroupCache::GroupCache(const TrainingFacts& facts, const TrainingCandidate& any)
    : facts_(facts), request_(facts.shared), precision_(facts.precisions.at(any.dtype)) {
  set_candidate(request_, any);
  check_request(request_);
  parts_of_group_ = std::make_unique<PartCache>(
      PassSetup{facts_.model, facts_.device, request_, precision_}, facts_.predictor);
}

void GroupCache::judge(TrainingCandidate& c) {
  const Step step = step_of(c);
  c.bound_s = least_step_s(step.step);
  add_memory(c, step);
}

void GroupCache::simulate(TrainingCandidate& c) {
  const Step step = step_of(c);
  const StepTimes times = simulate_step(step.step, Folding::kSymmetric);
  c.latency_s = times.seconds;
  c.compute_s = c.exposed_communication_s = c.bubble_s = 0;
  const auto stages = static_cast<double>(times.stages.size());
  for (const StageTimes& stage : times.stages) {
    c.compute_s += stage.compute_s / stages;
    c.exposed_communication_s += stage.exposed_communication_s / stages;
    c.bubble_s += stage.bubble_s / stages;
  }
}

GroupCache::Step GroupCache::step_of(const TrainingCandidate& c) {
  Step s{.request = request_, .layout = {}, .parts = {}, .step = {}};
  set_candidate(s.request, c);
  s.layout = lay_out_ranks(facts_.model, facts_.cluster, facts_.layers, s.request);
  s.parts = parts_of_group_->parts(s.layout, s.request);
  s.step = training_step(s.parts, {facts_.model, facts_.device, s.request, precision_}, s.layout,
                         CollectiveCosts(s.layout));
  return s;
}

/// Memory of the rank that needs most: among stages with the same parts, the first has most
/// micro-batches in flight, unless gradients of weights are passes of their own.
void GroupCache::add_memory(TrainingCandidate& c, const Step& s) const {
  const PassSetup setup{facts_.model, facts_.device, s.request, precision_};
  std::vector<const ModelPart*> before;
  c.memory = {};
  for (int64_t stage = 0; stage < s.layout.pp; ++stage) {
    std::vector<const ModelPart*> parts;
    for (int64_t chunk = 0; chunk < s.layout.pipeline.chunks; ++chunk)
      parts.push_back(s.parts[static_cast<size_t>(part_number(s.layout.pipeline, stage, chunk))]);
    if (parts == before && !splits_backward(c.schedule)) continue;
    const Memory memory = rank_memory(parts, stage, setup, s.layout);
    before = std::move(parts);
    if (memory.peak_bytes > c.memory.peak_bytes) c.memory = memory;
  }
}

}  // namespace tilecast
