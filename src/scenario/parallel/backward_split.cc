#include "scenario/parallel/backward_split.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/checked.h"
#include "memory/lifetimes.h"
#include "memory/structure.h"
#include "ops/grouped_experts.h"
#include "ops/op_def.h"
#include "ops/products.h"
#include "passes/stage.h"

namespace tilecast {
namespace {

size_t number(TensorId id) { return static_cast<size_t>(id); }

/// A layer of experts computes both in one node, gradients of weights last.
bool has_expert_gradients(const Node& node) {
  static const OpId experts = require_op("experts_backward");
  return node.op == experts && attribute<int64_t>(node, "grouped") != 0 &&
         attribute<int64_t>(node, "frozen") == 0;
}

/// By node of the backward pass: whether all that it computes ends in gradients of weights.
std::vector<bool> ends_in_weights(const Graph& graph) {
  std::vector<bool> useful(graph.tensors.size(), false), read(graph.tensors.size(), false);
  for (const TensorId id : graph.outputs) useful[number(id)] = true;
  for (const Segment& segment : graph.segments) {
    for (const Carry& carry : segment.carries)
      useful[number(carry.initial)] = useful[number(carry.next)] = true;
  }
  std::vector<bool> ends(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.phase != Phase::kBackward) continue;
    const auto is_gradient = [&](TensorId id) {
      return graph.tensor(id).kind == TensorKind::kGradient;
    };
    const bool adds = std::any_of(node.inputs.begin(), node.inputs.end(), is_gradient);
    // What nothing reads is the gradient of the part's input, or a sum in place.
    ends[i] = std::none_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return useful[number(id)] || (!read[number(id)] && !adds);
    });
    for (const TensorId id : node.inputs) {
      read[number(id)] = true;
      if (!ends[i]) useful[number(id)] = true;
    }
  }
  return ends;
}

/// Tensors that come and go, which gradients of weights read.
class KeptTensors {
 public:
  explicit KeptTensors(const Graph& graph) : graph_(graph), storage_(find_storage(graph)) {
    // Tokens that are gathered again for gradients of weights (sequence parallelism) are kept as
    // the rank's part.
    const OpId gather = require_op("all_gather");
    for (const Node& node : graph.nodes) {
      if (node.op == gather && node.phase == Phase::kBackward && node.counts == Counts::kMemoryOnly)
        parts_[node.outputs[0]] = node.inputs[0];
    }
  }

  /// `block`: of the node that reads it.
  void add(TensorId id, const Block& block) {
    const auto part = parts_.find(id);
    const TensorId owner = storage_[number(part == parts_.end() ? id : part->second)];
    if (owner < 0) return;
    const Tensor& tensor = graph_.tensor(owner);
    // The gradient that another part hands back is no tensor of this one's, but is in memory.
    const int64_t carried = copies_carried(owner, block);
    if (tensor.kind != TensorKind::kActivation && !is_received(tensor) && carried == 0) return;
    int64_t& copies = copies_[owner];
    copies = std::max({copies, graph_.repeat_of(tensor.segment), carried});
  }
  void remove(TensorId id) { copies_.erase(storage_[number(id)]); }

  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& [id, copies] : copies_)
      sum =
          checked_add(sum, checked_multiply(block_bytes(memory_bytes(graph_.tensor(id))), copies));
    return sum;
  }

 private:
  /// Each repetition of a layer reads a tensor of its own where it is carried from one to the next;
  /// 0: it is not.
  int64_t copies_carried(TensorId owner, const Block& block) const {
    const Segment& backward = graph_.segments[block.segment];
    const auto carries = [&](const Segment& segment) {
      return std::any_of(segment.carries.begin(), segment.carries.end(), [&](const Carry& carry) {
        return storage_[number(carry.initial)] == owner;
      });
    };
    const bool forward =
        backward.reverses && carries(graph_.segments[static_cast<size_t>(*backward.reverses)]);
    return forward || carries(backward) ? block.repeat : 0;
  }

  const Graph& graph_;
  const std::vector<TensorId> storage_;
  std::map<TensorId, TensorId> parts_;
  std::map<TensorId, int64_t> copies_;  ///< by the tensor that owns the memory
};

/// By node: products whose results go to gradients of weights alone, and what they are added to.
std::vector<bool> weight_gradient_nodes(const Graph& graph) {
  const std::vector<bool> ends = ends_in_weights(graph);
  std::vector<bool> made(graph.tensors.size(), false), nodes(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!ends[i]) continue;
    nodes[i] = is_gemm(node.op) || std::any_of(node.inputs.begin(), node.inputs.end(),
                                               [&](TensorId id) { return made[number(id)]; });
    for (const TensorId id : node.outputs) made[number(id)] = nodes[i];
  }
  return nodes;
}

std::vector<bool> launches_of_nodes(const Graph& graph, const Program& program,
                                    const std::vector<bool>& nodes) {
  std::vector<bool> launches;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Node* const node = program.launches[i].node;
    const size_t after = i + kWeightGradientKernels;
    const bool last = after >= program.launches.size() || program.launches[after].node != node;
    launches.push_back(nodes[static_cast<size_t>(node - graph.nodes.data())] ||
                       (last && has_expert_gradients(*node)));
  }
  return launches;
}

}  // namespace

std::vector<bool> weight_gradient_launches(const Graph& graph, const Program& program) {
  return launches_of_nodes(graph, program, weight_gradient_nodes(graph));
}

BackwardSplit split_backward(const TimedPass& pass) {
  const Graph& graph = pass.graph();
  const Program& program = pass.program();
  const std::vector<bool> nodes = weight_gradient_nodes(graph);
  const std::vector<bool> of_weights = launches_of_nodes(graph, program, nodes);
  KeptTensors kept(graph);
  double weights_s = 0, all_s = 0;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (launch.node->phase != Phase::kBackward) continue;
    const double seconds =
        pass.times[launch.kernel].seconds * static_cast<double>(program.count(launch));
    all_s += seconds;
    if (!of_weights[i]) continue;
    weights_s += seconds;
    for (const TensorId id : launch.node->inputs) kept.add(id, program.blocks[launch.block]);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!nodes[i]) continue;
    for (const TensorId id : graph.nodes[i].outputs) kept.remove(id);
  }
  return {.weights_share = all_s > 0 ? weights_s / all_s : 0, .kept_bytes = kept.bytes()};
}

}  // namespace tilecast
