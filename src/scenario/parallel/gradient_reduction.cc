#include "scenario/parallel/gradient_reduction.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/checked.h"
#include "ops/op_def.h"
#include "passes/exchange.h"
#include "passes/main_gradients.h"
#include "sim/gradient_times.h"

namespace tilecast {
namespace {

/// Bytes of the gradients of parameters with so many bytes.
int64_t reduced_bytes(MainParams main_params, DType parameter, int64_t bytes) {
  return has_fp32_gradients(main_params, parameter) ? checked_multiply(bytes, 2) : bytes;
}

/// Prepares and reduces the gradients of a part.
class Reduction {
 public:
  Reduction(const PassSetup& setup, const RankLayout& layout, const TimingSetup& timing,
            const CollectiveCosts& costs)
      : setup_(setup), layout_(layout), timing_(timing), costs_(costs) {}

  void add(ModelPart& part) const {
    const bool buckets = layout_.data_ranks() > 1 && overlaps();
    const LastPass last = last_pass(part, buckets && copies());
    int64_t experts = 0;
    for (const ReadyGradient& g : last.gradients) {
      part.gradient_bytes = checked_add(part.gradient_bytes, g.bytes);
      if (is_of_experts(part, g)) experts = checked_add(experts, g.bytes);
    }
    part.load.last_backward_s = part.load.backward_s;
    if (layout_.data_ranks() == 1) return;
    part.reduce = reduce(part.gradient_bytes - experts);
    part.reduce += reduce(experts, layout_.expert_data_group());
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
    return !p.has_fp32_copies() && p.zero == Zero::kNone;
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
    return (layout_.ep > 1 || layout_.expert_tp) &&
           is_expert_weight(part.pass.graph().tensor(g.gradient));
  }

  Exchange reduce(int64_t bytes) const { return reduce(bytes, layout_.data_group()); }
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

  /// Buckets in the order of readiness; one is closed when it has reached its size.
  void add_buckets(ModelPart& part, const LastPass& last_pass) const {
    constexpr double kFirstBucket = 1 << 20;  // kDefaultFirstBucketBytes
    const double cap = setup_.request.parallel.bucket_bytes;
    const double share = occupied_share(setup_.device);
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
          reduce(open, experts ? layout_.expert_data_group() : layout_.data_group());
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
    Exchange gather = costs_.all_gather(bytes.weights, dtype(), layout_.data_group()), reduction;
    if (bytes.gradients > 0) reduction += reduce(bytes.gradients);
    if (bytes.expert_weights > 0)
      gather += costs_.all_gather(bytes.expert_weights, dtype(), layout_.expert_data_group());
    if (bytes.expert_gradients > 0)
      reduction += reduce(bytes.expert_gradients, layout_.expert_data_group());
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
      const bool layer =
          tensor.segment >= 0 && graph.segments[static_cast<size_t>(tensor.segment)].is_layers();
      (layer ? bytes[static_cast<size_t>(tensor.segment)] : root)
          .add(tensor, layout_.ep > 1 && is_expert_weight(tensor),
               setup_.request.parallel.main_params.value_or(MainParams::kAsModel));
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
      const bool layers = forward && graph.segments[static_cast<size_t>(*forward)].is_layers();
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
  const RankLayout& layout_;
  const TimingSetup& timing_;
  const CollectiveCosts& costs_;
  mutable std::map<int64_t, double> copy_times_;  ///< by bytes
};

}  // namespace

void reduce_gradients(ModelPart& part, const PassSetup& setup, const RankLayout& layout,
                      const TimingSetup& timing, const CollectiveCosts& costs) {
  Reduction(setup, layout, timing, costs).add(part);
}

}  // namespace tilecast
