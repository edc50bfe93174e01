#include <algorithm>
#include <map>

#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/recompute.h"
#include "passes/stage.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Tensors made outside a segment's body and read inside it, in order of first use.
std::vector<TensorId> outer_inputs(const Graph& graph, int32_t index) {
  const Segment& segment = graph.segments[static_cast<size_t>(index)];
  const OpId keep = require_op("keep");
  std::vector<TensorId> result;
  for (int32_t i = 0; i < segment.node_count; ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
    // What variables hold gets no gradient from there.
    const size_t count = node.op == keep ? 1 : node.inputs.size();
    for (size_t input = 0; input < count; ++input) {
      const TensorId id = node.inputs[input];
      if (graph.tensor(id).segment == index || graph.tensor(id).kind == TensorKind::kWeight)
        continue;
      if (std::find(result.begin(), result.end(), id) == result.end()) result.push_back(id);
    }
  }
  return result;
}

void backward_of_node(GradientBuilder& g, const Node& node) {
  if (op_def(node.op).backward == nullptr) return;
  bool reached = false;
  bool needed = op_def(node.op).updates_in_backward;
  for (TensorId id : node.outputs) reached = reached || g.gradient(id) >= 0;
  for (TensorId id : node.inputs) needed = needed || g.requires_grad(id);
  if (!reached || !needed) return;
  g.set_name(node.name);
  g.builder().set_counts(node.counts);
  const RoleScope role(g.builder(), node.role);
  op_def(node.op).backward(g, node);
  g.builder().set_counts(Counts::kAll);
}

/// Sequence parallelism keeps a rank's part of what it gathers, and gathers it again in the
/// backward pass (Korthikanti et al. 2022, section 4.2.2). Megatron does so beside the product for
/// the gradient of the input (tensor_parallel/layers.py,
/// LinearWithGradAccumulationAndAsyncCommunication), so that it takes memory but no time.
/// Casts of it to 8 bits are made again too.
void gather_again(GradientBuilder& g, Node& gather, std::vector<Node>& readers) {
  const OpId fp8_cast = require_op("fp8_cast");
  std::vector<Node> again = {gather};
  for (const Node& node : readers) {
    if (node.op == fp8_cast && node.inputs[0] == gather.outputs[0]) again.push_back(node);
  }
  for (Node& node : again) node.counts = Counts::kMemoryOnly;
  const std::vector<Node> copies = recompute(g, again).copies;
  for (size_t i = 0; i < again.size(); ++i) {
    for (size_t o = 0; o < again[i].outputs.size(); ++o) {
      for (Node& node : readers)
        std::replace(node.inputs.begin(), node.inputs.end(), again[i].outputs[o],
                     copies[i].outputs[o]);
    }
  }
  gather.outputs = copies[0].outputs;
}

/// Norms of a layer that are computed again before the first gradient that reads them
/// (Megatron-LM's CheckpointWithoutOutput).
class NormsAgain {
 public:
  NormsAgain(GradientBuilder& g, const std::vector<Node>& body, bool wanted) : g_(g) {
    if (!wanted) return;
    const OpId layer_norm = require_op("layer_norm"), rms_norm = require_op("rms_norm");
    for (const Node& node : body) {
      if (node.op == layer_norm || node.op == rms_norm) makers_.emplace(node.outputs[0], node);
    }
  }

  /// The node with inputs that are computed again.
  void prepare(Node& node) {
    for (TensorId& id : node.inputs) {
      const auto maker = makers_.find(id);
      if (maker == makers_.end()) continue;
      const auto [copy, fresh] = copies_.try_emplace(id, -1);
      if (fresh) copy->second = recompute(g_, {maker->second}).copies[0].outputs[0];
      id = copy->second;
    }
  }

 private:
  GradientBuilder& g_;
  std::map<TensorId, Node> makers_;
  std::map<TensorId, TensorId> copies_;
};

void backward_of(GradientBuilder& g, const std::vector<Node>& nodes, NormsAgain& norms) {
  const OpId gather = require_op("all_gather");
  for (size_t end = nodes.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && nodes[begin].op != gather) --begin;
    std::vector<Node> run(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                          nodes.begin() + static_cast<std::ptrdiff_t>(end));
    Node first = run.front();
    run.erase(run.begin());
    for (Node& node : run) norms.prepare(node);
    norms.prepare(first);
    if (first.op == gather && first.phase == Phase::kForward) gather_again(g, first, run);
    for (auto node = run.rbegin(); node != run.rend(); ++node) backward_of_node(g, *node);
    backward_of_node(g, first);
    end = begin;
  }
}

/// The backward pass of nodes that are computed again first.
void backward_with_second_run(GradientBuilder& g, Graph& graph, const std::vector<Node>& nodes) {
  const Recomputed run = recompute(g, nodes);
  for (auto node = run.copies.rbegin(); node != run.copies.rend(); ++node)
    backward_of_node(g, *node);
  remove_unneeded(graph, run);
}

void backward_of_body(GradientBuilder& g, Graph& graph, const Segment& segment,
                      Checkpointing checkpointing, const RecomputedModules& modules) {
  // Copies: adding nodes may move them.
  const auto first = graph.nodes.begin() + segment.first_node;
  const std::vector<Node> nodes(first, first + segment.node_count);
  const bool selects = checkpointing == Checkpointing::kSelective && !segment.carries.empty();
  NormsAgain norms(g, nodes, selects && modules.norms);
  if (checkpointing == Checkpointing::kNone || segment.carries.empty())
    return backward_of(g, nodes, norms);
  if (checkpointing == Checkpointing::kFull) return backward_with_second_run(g, graph, nodes);
  for (size_t end = nodes.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && nodes[begin - 1].attention_core == nodes[end - 1].attention_core) --begin;
    const std::vector<Node> run(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                                nodes.begin() + static_cast<std::ptrdiff_t>(end));
    if (run.front().attention_core && modules.attention) {
      backward_with_second_run(g, graph, run);
    } else {
      backward_of(g, run, norms);
    }
    end = begin;
  }
}

void backward_of_segment(GradientBuilder& g, Graph& graph, int32_t index,
                         Checkpointing checkpointing, const RecomputedModules& modules) {
  // A copy: adding a segment may move them.
  const Segment segment = g.graph().segments[static_cast<size_t>(index)];
  const bool repeats = segment.repeat > 1;

  // A gradient that several repetitions add to needs an initial value before the first one.
  std::vector<std::pair<TensorId, TensorId>> shared;  // outer tensor, its gradient on entry
  if (repeats) {
    for (TensorId id : outer_inputs(g.graph(), index)) {
      const bool carried = std::any_of(segment.carries.begin(), segment.carries.end(),
                                       [&](const Carry& carry) { return carry.initial == id; });
      if (carried || !g.requires_grad(id)) continue;
      if (g.gradient(id) < 0) {
        g.builder().begin_segment(segment, 1);
        g.set_name(g.tensor(id).name);
        g.set_gradient(id, g.op("fill", {id}));
      }
      shared.emplace_back(id, g.gradient(id));
    }
  }

  g.builder().begin_segment(segment, segment.repeat);
  g.builder().reverses(index);
  std::vector<TensorId> incoming;
  for (const Carry& carry : segment.carries) incoming.push_back(g.gradient(carry.next));
  backward_of_body(g, graph, segment, checkpointing, modules);
  for (size_t i = 0; i < segment.carries.size(); ++i) {
    const TensorId outgoing = g.gradient(segment.carries[i].initial);
    if (incoming[i] >= 0 && outgoing >= 0 && repeats) g.builder().carry(incoming[i], outgoing);
  }
  for (const auto& [id, entry] : shared) {
    if (g.gradient(id) != entry) g.builder().carry(entry, g.gradient(id));
  }
}

/// Weights that the model reads but that get no gradient (indexers of sparse attention, which
/// transformers runs without): an optimizer leaves them out.
void freeze_untrained(Graph& graph) {
  std::vector<bool> read(graph.tensors.size(), false), trained(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) {
    if (op_def(node.op).updates_in_backward) return;
    for (const TensorId id : node.inputs) read[static_cast<size_t>(id)] = true;
  }
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kGradient && tensor.origin >= 0)
      trained[static_cast<size_t>(tensor.origin)] = true;
  }
  for (size_t id = 0; id < graph.tensors.size(); ++id) {
    Tensor& tensor = graph.tensors[id];
    if (tensor.kind == TensorKind::kWeight && read[id] && !trained[id]) tensor.frozen = true;
  }
}

}  // namespace

void add_backward(Graph& graph, Checkpointing checkpointing, const RecomputedModules& modules) {
  GradientBuilder g(graph);
  g.mark_requires_grad(received_inputs(graph));
  if (graph.outputs.empty() || !g.requires_grad(graph.outputs.front()))
    throw Error(ErrorKind::kUnsupported, graph.name +
                                             ": the model's output depends on no weight, so there "
                                             "is nothing to train; use `mode` inference");
  // A given gradient costs no memory: the caller's.
  for (const TensorId id : graph.losses.empty() ? graph.outputs : graph.losses) {
    if (!g.requires_grad(id)) continue;
    // A copy: adding a tensor may move it.
    const Tensor output = graph.tensor(id);  // NOLINT(performance-unnecessary-copy-initialization)
    g.set_gradient(id, g.builder().tensor({.name = output.name + ".grad",
                                           .shape = output.shape,
                                           .dtype = output.dtype,
                                           .kind = TensorKind::kReference}));
  }
  const auto forward_segments = static_cast<int32_t>(graph.segments.size());
  for (int32_t i = forward_segments - 1; i >= 0; --i)
    backward_of_segment(g, graph, i, checkpointing, modules);
  freeze_untrained(graph);
  validate_if_debug(graph);
}

}  // namespace tilecast
