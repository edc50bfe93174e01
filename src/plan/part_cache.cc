#include "plan/part_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "memory/peak.h"
#include "passes/passes.h"
#include "scenario/parallel/rank_memory.h"
#include "sim/stream.h"

namespace tilecast {
namespace {

void run_block(HostFedStream& stream, const Program& program, const Block& block,
               const std::vector<KernelTime>& times) {
  HostFedStream::Sequence body;
  for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
    const size_t kernel = program.launches[i].kernel;
    stream.append(body, times[kernel].seconds, program.kernels[kernel].host);
  }
  stream.run(body, block.repeat);
}

/// The weights of a graph alone, in its segments.
Graph weights_of(const Graph& graph) {
  Graph weights;
  weights.name = graph.name;
  for (const Segment& segment : graph.segments)
    weights.segments.push_back({.name = segment.name, .repeat = segment.repeat});
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight) continue;
    Tensor copy = tensor;
    copy.storage = static_cast<TensorId>(weights.tensors.size());
    weights.tensors.push_back(std::move(copy));
  }
  return weights;
}

}  // namespace

std::vector<const ModelPart*> PartCache::parts(const RankLayout& layout, const Request& request) {
  // The memory of one pass through one part of a stage is its peak, with the optimizer
  // (rank_memory).
  const bool plain = is_plain(request, layout);
  if (!modules_)
    modules_ = rank_modules(setup_, {layout.micro_batch, *setup_.request.seq / layout.cp});
  std::vector<const ModelPart*> parts;
  parts.reserve(layout.parts.size());
  for (const LayerRange& layers : layout.parts)
    parts.push_back(&part(layout, request, layers, plain));
  return parts;
}

const ModelPart& PartCache::part(const RankLayout& layout, const Request& request,
                                 const LayerRange& layers, bool plain) {
  Key key{segment_runs(modules_->graph, layers), layout.dp, request.parallel.zero, plain,
          splits_backward(request.parallel.schedule)};
  if (const auto known = parts_.find(key); known != parts_.end()) return known->second;
  const PassSetup setup{setup_.model, setup_.device, request, setup_.precision};
  TimingSetup times = timing(request);
  const CollectiveCosts costs(layout);
  if (plain) {
    times.price_collectives = [&](const Program& program, std::vector<KernelTime>& seconds) {
      costs.price(program, seconds);
    };
    return parts_
        .emplace(std::move(key), make_part({setup, layout, modules_->graph}, layers, times, costs))
        .first->second;
  }
  ModelPart part = base(layout, layers, key.runs);
  add_backward_split(part, request);
  add_optimizer_step(part, layout, setup, times);
  add_exchanges(part, setup, layout, times, costs);
  return parts_.emplace(std::move(key), std::move(part)).first->second;
}

/// Layers that run twice stand for all numbers above one: the graph differs in that number alone.
const PartCache::Pattern& PartCache::pattern(const RankLayout& layout, const LayerRange& layers,
                                             const Runs& runs) {
  Runs kind = runs;
  for (int64_t& number : kind) number = std::min<int64_t>(number, 2);
  const auto [it, fresh] = patterns_.try_emplace(std::move(kind));
  Pattern& pattern = it->second;
  if (!fresh) return pattern;
  Request request = setup_.request;
  request.optimizer = Optimizer::kNone;
  const PassSetup setup{setup_.model, setup_.device, request, setup_.precision};
  try {
    pattern.graph = part_graph({setup, layout, modules_->graph}, layers);
  } catch (...) {
    patterns_.erase(it);
    throw;
  }
  pattern.first_segment = pattern.graph.segments.front().role == Role::kReceived ? 1 : 0;
  const Program program = lower(pattern.graph);
  pattern.times.resize(program.kernels.size());
  const TimingSetup times = timing(request);
  predictor_.predict(program.kernels, times.device, times.conditions, pattern.times);
  CollectiveCosts(layout).price(program, pattern.times);
  return pattern;
}

const ModelPart& PartCache::base(const RankLayout& layout, const LayerRange& layers,
                                 const Runs& runs) {
  if (const auto known = bases_.find(runs); known != bases_.end()) return known->second;
  const Pattern& from = pattern(layout, layers, runs);
  Graph graph = from.graph;
  auto segment = static_cast<int32_t>(from.first_segment);
  for (const int64_t number : runs) {
    if (number == 0) continue;
    graph.segments[static_cast<size_t>(segment)].repeat = number;
    for (Segment& backward : graph.segments) {
      if (backward.reverses == segment) backward.repeat = number;
    }
    ++segment;
  }
  const LifetimeOptions options{.zero_grad = setup_.request.zero_grad,
                                .outputs_sent = !layers.has_end};
  TimedPass pass{.work = std::make_shared<const PassWork>(std::move(graph), options),
                 .times = from.times};
  TILECAST_CHECK(pass.program().kernels.size() == from.times.size()) << setup_.model.name;
  run_kernels(pass, timing(setup_.request));
  return bases_.emplace(runs, describe_part(std::move(pass), options, CollectiveCosts(layout)))
      .first->second;
}

/// The optimizer's step of the rank's share of the weights follows the passes on their stream.
void PartCache::add_optimizer_step(ModelPart& part, const RankLayout& layout,
                                   const PassSetup& setup, const TimingSetup& timing) const {
  const Request& r = setup.request;
  if (!r.optimizer || r.optimizer == Optimizer::kNone) return;
  Graph graph = weights_of(part.pass.graph());
  add_optimizer(
      graph, {.optimizer = *r.optimizer,
              .impl = r.optimizer_impl,
              .scaled_gradients = setup.precision.autocast && setup.precision.dtype == DType::kFp16,
              .main_params = r.parallel.main_params.value_or(MainParams::kAsModel),
              .shards = r.parallel.zero != Zero::kNone ? layout.data_ranks() : 1,
              .expert_ranks = layout.expert_share(),
              .on_host = r.optimizer_offload});
  for (const Tensor& tensor : graph.tensors) {
    const bool host = tensor.kind == TensorKind::kHost;
    if (tensor.kind != TensorKind::kOptimizer && !host) continue;
    int64_t& total = host ? part.memory.host_bytes : part.memory.optimizer_bytes;
    total =
        checked_add(total, checked_multiply(memory_bytes(tensor), graph.repeat_of(tensor.segment)));
  }
  part.memory.optimizer_temporaries_bytes =
      find_peak(find_lifetimes(graph, {.zero_grad = r.zero_grad})).optimizer_computed_bytes;
  const Program program = lower(graph);
  std::vector<KernelTime> times(program.kernels.size());
  timing.predictor.predict(program.kernels, timing.device, timing.conditions, times);
  price_host_work(program, timing.host, times);
  HostFedStream stream(timing.host_launch_s());
  for (const Block& block : part.pass.program().blocks)
    run_block(stream, part.pass.program(), block, part.pass.times);
  const double start_s = stream.end_s();
  for (const Block& block : program.blocks) run_block(stream, program, block, times);
  part.optimizer_s = stream.end_s() - start_s;
  part.optimizer = launches_of(program, Phase::kOptimizer, times, timing.host_launch_s());
}

}  // namespace tilecast
