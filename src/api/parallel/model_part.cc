#include "api/parallel/model_part.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/checked.h"
#include "memory/course.h"
#include "memory/plan.h"
#include "ops/op_def.h"
#include "passes/exchange.h"
#include "passes/main_gradients.h"
#include "passes/passes.h"
#include "sim/gradient_times.h"

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
    const Transfer transfer = costs.inside(pass.program().kernels[launch.kernel]).transfer;
    sum.seconds += pass.times[launch.kernel].seconds * count;
    sum.transfer.node_s += transfer.node_s * count;
    sum.transfer.network_s += transfer.network_s * count;
    sum.transfer.both_s += transfer.both_s * count;
  }
  return sum;
}

/// Of the gradients of parameters with so many bytes.
int64_t reduced_bytes(MainParams main_params, DType parameter, int64_t bytes) {
  return has_fp32_gradients(main_params, parameter) ? checked_multiply(bytes, 2) : bytes;
}

/// Prepares and reduces the gradients of a part.
class Reduction {
 public:
  Reduction(const PassSetup& setup, const ParallelPlan& plan, const TimingSetup& timing,
            const CollectiveCosts& costs)
      : setup_(setup), plan_(plan), timing_(timing), costs_(costs) {}

  void add(ModelPart& part) const {
    const bool buckets = plan_.data_ranks() > 1 && overlaps();
    const LastPass last = last_pass(part, buckets && copies());
    int64_t experts = 0;
    for (const ReadyGradient& g : last.gradients) {
      part.gradient_bytes = checked_add(part.gradient_bytes, g.bytes);
      if (is_of_experts(part, g)) experts = checked_add(experts, g.bytes);
    }
    part.load.last_backward_s = part.load.backward_s;
    if (plan_.data_ranks() == 1) return;
    part.reduce = reduce(part.gradient_bytes - experts);
    part.reduce += reduce(experts, plan_.expert_data_group());
    if (setup_.request.parallel.zero == Zero::kParameters) return gather_units(part);
    if (buckets) add_buckets(part, last);
  }

 private:
  bool overlaps() const {
    const Parallel& p = setup_.request.parallel;
    return p.zero != Zero::kParameters && p.overlap_grad_reduce;
  }

  /// PyTorch's DistributedDataParallel copies each gradient into its bucket and back
  /// (torch/csrc/distributed/c10d/reducer.cpp, gradient_as_bucket_view is off by default).
  /// The gradients of Megatron's optimizers, among them those that divide their states, are views
  /// of a buffer.
  bool copies() const {
    const Parallel& p = setup_.request.parallel;
    return p.main_params != MainParams::kFp32 && p.zero == Zero::kNone;
  }

  LastPass last_pass(const ModelPart& part, bool with_copies) const {
    const Graph& graph = part.pass.graph();
    std::vector<double> seconds;
    for (const KernelTime& time : part.pass.times) seconds.push_back(time.seconds);
    GradientCopy copy = nullptr;
    if (with_copies)
      copy = [&](TensorId gradient) { return copy_s(tensor_bytes(graph.tensor(gradient))); };
    return run_last_pass(graph, part.pass.program(), seconds, timing_.host_launch_s(), copy);
  }

  DType dtype() const { return setup_.precision.autocast ? DType::kFp32 : setup_.precision.dtype; }

  /// Expert-parallel ranks have different experts; weights of experts have three dimensions.
  bool is_of_experts(const ModelPart& part, const ReadyGradient& g) const {
    return plan_.ep > 1 && is_expert_weight(part.pass.graph().tensor(g.gradient));
  }

  Exchange reduce(int64_t bytes) const { return reduce(bytes, plan_.data_group()); }
  Exchange reduce(int64_t bytes, const CommGroup& group) const {
    return setup_.request.parallel.zero == Zero::kNone
               ? costs_.all_reduce(bytes, dtype(), group)
               : costs_.reduce_scatter(bytes, dtype(), group);
  }

  /// The kernel that copies a gradient; many are alike.
  double copy_s(int64_t bytes) const {
    const auto [known, fresh] = copy_times_.try_emplace(bytes, 0.0);
    if (!fresh) return known->second;
    const int64_t elements = ceil_divide(bytes * 8, dtype_bits(dtype()));
    const Kernel kernel{.shape = Stream{.elements = elements},
                        .op = require_op("copy"),
                        .dtype = dtype(),
                        .read_bytes = bytes,
                        .write_bytes = bytes};
    KernelTime time;
    timing_.predictor.predict({&kernel, 1}, timing_.device, timing_.conditions, {&time, 1});
    return known->second = time.seconds;
  }

  /// A collective's kernel occupies one multiprocessor for each of its channels while other kernels
  /// run. 24 channels, two for each NVLink of an A100, are a guess for all links; `NCCL_DEBUG=INFO`
  /// on such a machine would settle it.
  double occupied_share() const {
    constexpr double kChannels = 24;
    const Gpu* gpu = setup_.device.as_gpu();
    if (gpu == nullptr) return 0;
    return std::min(1.0, kChannels / static_cast<double>(gpu->sm_count));
  }

  /// Buckets in the order of readiness; one is closed when it has reached its size.
  void add_buckets(ModelPart& part, const LastPass& last_pass) const {
    constexpr double kFirstBucket = 1 << 20;  // kDefaultFirstBucketBytes
    const double cap = setup_.request.parallel.bucket_bytes;
    const double share = occupied_share();
    HostFedStream stream = last_pass.stream;  // goes on with the copies out of the buckets
    std::array<HostFedStream::Sequence, 2> copies_out{};
    std::array<int64_t, 2> bytes{};  // of experts, and of all other weights
    std::array<size_t, 2> left{};
    for (const ReadyGradient& g : last_pass.gradients) ++left[is_of_experts(part, g) ? 0 : 1];
    for (const ReadyGradient& g : last_pass.gradients) {
      const bool experts = is_of_experts(part, g);
      const size_t kind = experts ? 0 : 1;
      int64_t& open = bytes[kind];
      open = checked_add(open, g.bytes);
      if (copies()) {
        const double copy = copy_s(g.bytes);
        part.copy_kernels_s += 2 * copy;
        stream.append(copies_out[kind], copy);
      }
      const bool last = --left[kind] == 0;
      const double limit = part.load.buckets.empty() ? std::min(kFirstBucket, cap) : cap;
      if (static_cast<double>(open) < limit && !last) continue;
      const Exchange reduction =
          reduce(open, experts ? plan_.expert_data_group() : plan_.data_group());
      const double before_s = stream.end_s();
      stream.run(copies_out[kind], 1);
      part.load.buckets.push_back({g.ready_s + part.slowed_s, reduction.seconds, reduction.transfer,
                                   stream.end_s() - before_s});
      part.copies_s += part.load.buckets.back().copy_out_s;
      if (!last) part.slowed_s += share * reduction.seconds;
      copies_out[kind] = {};
      open = 0;
    }
    if (copies()) {
      part.copies_s += last_pass.backward_s - part.load.backward_s;
      part.load.last_backward_s = last_pass.backward_s;
      const double before_s = stream.end_s();
      stream.run(part.optimizer, 1);
      part.optimizer_s = stream.end_s() - before_s;
    }
    part.load.last_backward_s += part.slowed_s;
  }

  /// Bytes of a unit: of its weights, and of the gradients of those that are trained.
  struct UnitBytes {
    int64_t weights = 0, gradients = 0;
    int64_t expert_weights = 0, expert_gradients = 0;  ///< fewer ranks divide them

    void add(const Tensor& weight, bool expert, MainParams main_params) {
      const int64_t bytes = tensor_bytes(weight);
      int64_t& stored = expert ? expert_weights : weights;
      stored = checked_add(stored, bytes);
      if (weight.frozen) return;
      int64_t& reduced = expert ? expert_gradients : gradients;
      reduced = checked_add(reduced, reduced_bytes(main_params, weight.dtype, bytes));
    }
  };

  /// How the parameters of a unit are gathered, and their gradients reduced.
  void exchange(GatheredUnit& unit, const UnitBytes& bytes) const {
    Exchange gather = costs_.all_gather(bytes.weights, dtype(), plan_.data_group()), reduction;
    if (bytes.gradients > 0) reduction += reduce(bytes.gradients);
    if (bytes.expert_weights > 0)
      gather += costs_.all_gather(bytes.expert_weights, dtype(), plan_.expert_data_group());
    if (bytes.expert_gradients > 0)
      reduction += reduce(bytes.expert_gradients, plan_.expert_data_group());
    unit.gather_s = gather.seconds;
    unit.gather_transfer = gather.transfer;
    unit.reduce_s = reduction.seconds;
    unit.reduce_transfer = reduction.transfer;
  }

  /// FSDP's units: each layer, and what comes before and after the layers.
  void gather_units(ModelPart& part) const {
    const Graph& graph = part.pass.graph();
    const Program& program = part.pass.program();
    std::vector<UnitBytes> bytes(graph.segments.size());
    UnitBytes root;
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind != TensorKind::kWeight) continue;
      const bool layer = tensor.segment >= 0 && graph.repeat_of(tensor.segment) > 1;
      (layer ? bytes[static_cast<size_t>(tensor.segment)] : root)
          .add(tensor, plan_.ep > 1 && is_expert_weight(tensor),
               setup_.request.parallel.main_params);
    }
    std::vector<GatheredUnit> units(1);
    exchange(units[0], root);
    std::vector<size_t> first_unit(graph.segments.size(), 0);
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      const Block& block = program.blocks[b];
      const Span& span = part.pass.timeline.spans[b];
      if (block.phase != Phase::kForward) continue;
      if (bytes[block.segment].weights + bytes[block.segment].expert_weights == 0) {
        units.back().forward_s += span.end_s - span.start_s;
        if (block.segment + 1 < graph.segments.size()) first_unit[block.segment] = units.size() - 1;
        continue;
      }
      first_unit[block.segment] = units.size();
      GatheredUnit layer{.forward_s =
                             (span.end_s - span.start_s) / static_cast<double>(block.repeat)};
      exchange(layer, bytes[block.segment]);
      units.insert(units.end(), static_cast<size_t>(block.repeat), layer);
      units.push_back({});  // what follows the layers
    }
    add_backward_times(part, first_unit, units);
    part.load.units = std::move(units);
  }

  static void add_backward_times(const ModelPart& part, const std::vector<size_t>& first_unit,
                                 std::vector<GatheredUnit>& units) {
    const Graph& graph = part.pass.graph();
    size_t last = units.size() - 1;  // the unit that the backward pass is in
    for (size_t b = 0; b < part.pass.program().blocks.size(); ++b) {
      const Block& block = part.pass.program().blocks[b];
      const Span& span = part.pass.timeline.spans[b];
      if (block.phase != Phase::kBackward) continue;
      const std::optional<int32_t> forward = graph.segments[block.segment].reverses;
      const bool layers = forward && block.repeat > 1;
      if (!layers) {
        units[last].backward_s += span.end_s - span.start_s;
        continue;
      }
      const size_t first = first_unit[static_cast<size_t>(*forward)];
      for (size_t r = 0; r < static_cast<size_t>(block.repeat); ++r)
        units[first + r].backward_s +=
            (span.end_s - span.start_s) / static_cast<double>(block.repeat);
      last = first > 0 ? first - 1 : 0;
    }
  }

  const PassSetup& setup_;
  const ParallelPlan& plan_;
  const TimingSetup& timing_;
  const CollectiveCosts& costs_;
  mutable std::map<int64_t, double> copy_times_;  ///< by bytes
};

int64_t gathered_bytes(const Graph& graph) {
  int64_t root = 0, layer = 0;
  std::vector<int64_t> bytes(graph.segments.size(), 0);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight || tensor.segment < 0) continue;
    int64_t& sum = bytes[static_cast<size_t>(tensor.segment)];
    sum = checked_add(sum, tensor_bytes(tensor));
  }
  for (size_t s = 0; s < bytes.size(); ++s) {
    if (graph.segments[s].repeat > 1) {
      layer = std::max(layer, bytes[s]);
    } else {
      root = checked_add(root, bytes[s]);
    }
  }
  return checked_add(root, 2 * layer);
}

}  // namespace

PartMemory part_memory(const PassWork& work, const CourseOptions& options) {
  const Graph& graph = work.graph;
  PartMemory memory{.weights_bytes = work.memory.weights_bytes,
                    .gradients_bytes = work.memory.gradients_bytes,
                    .optimizer_bytes = work.memory.optimizer_bytes,
                    .inputs_bytes = work.memory.inputs_bytes,
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

Graph part_graph(const PassSetup& setup, const ParallelPlan& plan, const LayerRange& layers) {
  Request share = setup.request;
  share.batch = plan.micro_batch;
  share.seq = *setup.request.seq / plan.cp;
  Graph modules = build_modules(setup.model, share, setup.precision);
  modules = divide_context(modules, plan.cp);
  modules = divide_experts(
      modules,
      {.ranks = plan.ep, .skew_percent = setup.request.execution.skew_percent.value_or(0)});
  modules = part_of(modules, layers);
  const auto logits = [&] {
    const Shape& shape = modules.tensor(modules.outputs.front()).shape;
    return shape.empty() ? 0 : shape.back();
  };
  const int64_t all_logits = modules.outputs.empty() ? 0 : logits();
  modules = shard(modules, {.ranks = plan.tp,
                            .training = true,
                            .sequence_parallel = setup.request.parallel.sequence_parallel});
  const bool divided_step = setup.request.parallel.zero != Zero::kNone;
  return complete_graph(std::move(modules), setup.model, share, setup.precision,
                        {.has_head = layers.has_end,
                         .vocabulary_ranks = all_logits > 0 && logits() < all_logits ? plan.tp : 1,
                         .optimizer_shards = divided_step ? plan.data_ranks() : 1,
                         .expert_ranks = plan.ep});
}

HostFedStream::Sequence launches_of(const Program& program, Phase phase,
                                    const std::vector<KernelTime>& times, double host_launch_s) {
  const HostFedStream stream(host_launch_s);
  HostFedStream::Sequence launches;
  for (const Block& block : program.blocks) {
    if (block.phase != phase) continue;
    for (int64_t r = 0; r < block.repeat; ++r) {
      for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i)
        stream.append(launches, times[program.launches[i].kernel].seconds);
    }
  }
  return launches;
}

ModelPart make_part(const PassSetup& setup, const ParallelPlan& plan, const LayerRange& layers,
                    const TimingSetup& timing, const CollectiveCosts& costs) {
  const CourseOptions options{.zero_grad = setup.request.zero_grad,
                              .outputs_sent = !layers.has_end};
  ModelPart part = describe_part(
      time_pass(std::make_shared<const PassWork>(part_graph(setup, plan, layers), options), timing),
      options, costs);
  part.optimizer =
      launches_of(part.pass.program(), Phase::kOptimizer, part.pass.times, timing.host_launch_s());
  add_exchanges(part, setup, plan, timing, costs);
  return part;
}

ModelPart describe_part(TimedPass pass, const CourseOptions& options,
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

void add_exchanges(ModelPart& part, const PassSetup& setup, const ParallelPlan& plan,
                   const TimingSetup& timing, const CollectiveCosts& costs) {
  // The gradient that goes back has the same size.
  for (const ReceivedTensor& tensor : part.received) {
    const Exchange sending =
        costs.send(tensor.bytes, tensor.dtype, setup.request.parallel.sequence_parallel);
    part.load.send_backward_s += sending.seconds;
    part.load.send_backward_transfer += sending.transfer;
  }
  Reduction(setup, plan, timing, costs).add(part);
}

}  // namespace tilecast
