#include "scenario/parallel/model_part.h"

#include <algorithm>

#include "base/checked.h"
#include "memory/by_purpose.h"
#include "memory/peak.h"
#include "ops/op_def.h"
#include "passes/exchange.h"
#include "passes/passes.h"
#include "scenario/parallel/backward_split.h"
#include "scenario/parallel/gradient_reduction.h"

namespace tilecast {
namespace {

bool is_collective(const Program& program, const Launch& launch) {
  return program.kernels[launch.kernel].is<Collective>();
}

/// The collectives inside a phase.
Exchange inner_exchange(const TimedPass& pass, Phase phase, const CollectiveCosts& costs) {
  Exchange sum;
  for (const Launch& launch : pass.program().launches) {
    if (launch.node->phase != phase || !is_collective(pass.program(), launch)) continue;
    const auto count = static_cast<double>(pass.program().count(launch));
    const Transfer transfer = costs.inside(pass.program(), launch).transfer;
    sum.seconds += pass.times[launch.kernel].seconds * count;
    sum.transfer.node_s += transfer.node_s * count;
    sum.transfer.network_s += transfer.network_s * count;
    sum.transfer.both_s += transfer.both_s * count;
  }
  return sum;
}

Request with_share(const Request& request, const RankShare& share) {
  Request own = request;
  own.batch = share.sequences;
  own.seq = share.tokens;
  return own;
}

int64_t gathered_bytes(const Graph& graph) {
  int64_t root = 0, layer = 0;
  std::vector<int64_t> bytes(graph.segments.size(), 0);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight || tensor.segment < 0) continue;
    int64_t& sum = bytes[static_cast<size_t>(tensor.segment)];
    sum = checked_add(sum, tensor_bytes(tensor));
  }
  for (size_t s = 0; s < bytes.size(); ++s) {
    if (graph.segments[s].is_layers()) {
      layer = std::max(layer, bytes[s]);
    } else {
      root = checked_add(root, bytes[s]);
    }
  }
  return checked_add(root, 2 * layer);
}

}  // namespace

PartMemory part_memory(const PassWork& work, const LifetimeOptions& options) {
  const Graph& graph = work.graph;
  PartMemory memory{.weights_bytes = work.memory.weights_bytes,
                    .gradients_bytes = work.memory.gradients_bytes,
                    .optimizer_bytes = work.memory.optimizer_bytes,
                    .inputs_bytes = work.memory.inputs_bytes,
                    .host_bytes = work.memory.host_bytes,
                    .gathered_bytes = gathered_bytes(graph)};
  for (const Tensor& tensor : graph.tensors) {
    const bool gradient = tensor.kind == TensorKind::kGradient;
    if ((tensor.kind != TensorKind::kWeight && !gradient) || !is_expert_weight(tensor)) continue;
    int64_t& total = gradient ? memory.expert_gradients_bytes : memory.expert_weights_bytes;
    total =
        checked_add(total, checked_multiply(memory_bytes(tensor), graph.repeat_of(tensor.segment)));
  }
  const Lifetimes lifetimes = find_lifetimes(graph, options);
  int32_t forward_end = 0;
  for (size_t i = 0; i < lifetimes.steps.size(); ++i) {
    if (graph.nodes[static_cast<size_t>(lifetimes.steps[i].node)].phase == Phase::kForward)
      forward_end = static_cast<int32_t>(i);
  }
  memory.saved_bytes = bytes_across(lifetimes, forward_end);
  for (const TensorId id : received_inputs(graph))
    memory.saved_bytes =
        checked_add(memory.saved_bytes, block_bytes(tensor_bytes(graph.tensor(id))));
  const MemoryPeak peak = find_peak(lifetimes);
  memory.working_bytes = std::max<int64_t>(0, peak.computed_bytes - memory.saved_bytes);
  memory.optimizer_temporaries_bytes = peak.optimizer_computed_bytes;
  return memory;
}

ModelModules rank_modules(const PassSetup& setup, const RankShare& share) {
  ModelModules modules = build_modules(setup.model, with_share(setup.request, share),
                                       setup.precision, LayerForm::kSingle);
  const Request& r = setup.request;
  if (r.execution.tp > 1)
    modules.vocabulary = pad_vocabulary(
        modules.graph, checked_multiply(r.parallel.vocab_divisible_by, r.execution.tp));
  return modules;
}

Graph part_graph(const SharedModel& shared, const LayerRange& layers) {
  const auto& [setup, layout, whole] = shared;
  const Request share =
      with_share(setup.request, {layout.micro_batch, *setup.request.seq / layout.cp});
  Graph modules = divide_context(
      whole,
      {.ranks = layout.cp, .type = setup.request.parallel.cp_comm_type, .tensor_ranks = layout.tp});
  modules =
      divide_experts(modules, {.ranks = layout.ep,
                               .skew_percent = setup.request.execution.skew_percent.value_or(0),
                               .tensor_ranks = layout.expert_tp.value_or(0),
                               .sends_once = layout.sends_once,
                               .counts_awaited = !layout.expert_overlap});
  modules = part_of(modules, layers);
  const auto logits = [&] {
    const Shape& shape = modules.tensor(modules.outputs.front()).shape;
    return shape.empty() ? 0 : shape.back();
  };
  const int64_t all_logits = modules.outputs.empty() ? 0 : logits();
  modules = shard(modules, {.ranks = layout.tp,
                            .training = true,
                            .sequence_parallel = setup.request.parallel.sequence_parallel});
  // Before the graph is moved away: arguments have no order.
  const bool divided_vocabulary = all_logits > 0 && logits() < all_logits;
  const bool divided_step = setup.request.parallel.zero != Zero::kNone;
  return complete_graph(std::move(modules), setup.model, share, setup.precision,
                        {.has_head = layers.has_end,
                         .vocabulary_ranks = divided_vocabulary ? layout.tp : 1,
                         .optimizer_shards = divided_step ? layout.data_ranks() : 1,
                         .expert_ranks = layout.expert_share()});
}

HostFedStream::Sequence launches_of(const Program& program, Phase phase,
                                    const std::vector<KernelTime>& times, double host_launch_s) {
  const HostFedStream stream(host_launch_s);
  HostFedStream::Sequence launches;
  for (const Block& block : program.blocks) {
    if (block.phase != phase) continue;
    for (int64_t r = 0; r < block.repeat; ++r) {
      for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
        const size_t kernel = program.launches[i].kernel;
        stream.append(launches, times[kernel].seconds, program.kernels[kernel].host);
      }
    }
  }
  return launches;
}

ModelPart make_part(const SharedModel& shared, const LayerRange& layers, const TimingSetup& timing,
                    const CollectiveCosts& costs) {
  const LifetimeOptions options{.zero_grad = shared.setup.request.zero_grad,
                                .outputs_sent = !layers.has_end};
  ModelPart part = describe_part(
      time_pass(std::make_shared<const PassWork>(part_graph(shared, layers), options), timing),
      options, costs);
  part.optimizer =
      launches_of(part.pass.program(), Phase::kOptimizer, part.pass.times, timing.host_launch_s());
  add_backward_split(part, shared.setup.request);
  add_exchanges(part, shared.setup, shared.layout, timing, costs);
  return part;
}

ModelPart describe_part(TimedPass pass, const LifetimeOptions& options,
                        const CollectiveCosts& costs) {
  ModelPart part;
  part.pass = std::move(pass);
  part.memory = part_memory(*part.pass.work, options);
  PartLoad& load = part.load;
  const Timeline& timeline = part.pass.timeline;
  load.forward_s = timeline.phase_s(Phase::kForward);
  load.backward_s = timeline.phase_s(Phase::kBackward);
  part.optimizer_s = timeline.phase_s(Phase::kOptimizer);
  const Exchange forward = inner_exchange(part.pass, Phase::kForward, costs),
                 backward = inner_exchange(part.pass, Phase::kBackward, costs);
  load.forward_communication_s = forward.seconds;
  load.forward_transfer = forward.transfer;
  load.backward_communication_s = backward.seconds;
  load.backward_transfer = backward.transfer;
  const Graph& graph = part.pass.graph();
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kWeight && !tensor.frozen) {
      const int64_t bytes = checked_multiply(tensor_bytes(tensor), graph.repeat_of(tensor.segment));
      part.trained_bytes = checked_add(part.trained_bytes, bytes);
      if (is_expert_weight(tensor))
        part.trained_expert_bytes = checked_add(part.trained_expert_bytes, bytes);
    }
    if (is_received(tensor)) part.received.push_back({tensor_bytes(tensor), tensor.dtype});
  }
  return part;
}

void add_backward_split(ModelPart& part, const Request& request) {
  if (!splits_backward(request.parallel.schedule)) return;
  const BackwardSplit split = split_backward(part.pass);
  part.weight_gradients_share = split.weights_share;
  part.memory.kept_bytes = split.kept_bytes;
}

void add_exchanges(ModelPart& part, const PassSetup& setup, const RankLayout& layout,
                   const TimingSetup& timing, const CollectiveCosts& costs) {
  for (int64_t stage = 0; stage < layout.pp && !part.received.empty(); ++stage) {
    const StageLinks links = layout.links_after(stage);
    const auto [receives, fresh] = part.receives.try_emplace(links);
    if (!fresh) continue;
    for (const ReceivedTensor& tensor : part.received)
      receives->second +=
          costs.send(tensor.bytes, tensor.dtype, setup.request.parallel.sequence_parallel, links);
  }
  reduce_gradients(part, setup, layout, timing, costs);
}

}  // namespace tilecast
