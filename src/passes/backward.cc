#include <algorithm>
#include <map>

#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/recompute.h"
#include "passes/stage.h"
#include "passes/sublayers.h"
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
/// Casts of it to fewer bits are made again too.
void gather_again(GradientBuilder& g, Node& gather, std::vector<Node>& readers) {
  const OpId fp8_cast = require_op("fp8_cast"), fp4_cast = require_op("fp4_cast");
  std::vector<Node> again = {gather};
  for (const Node& node : readers) {
    if ((node.op == fp8_cast || node.op == fp4_cast) && node.inputs[0] == gather.outputs[0])
      again.push_back(node);
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

/// Between the projections: step by step, or one fused kernel.
bool is_attention(const Node& node) {
  static const OpId fused = require_op("attention");
  return node.attention_core || node.op == fused;
}

/// What makes attention's queries, keys and values from latent vectors (MLA): all between the last
/// norms before it and its core.
std::vector<Node> latent_up_of(const std::vector<Node>& body) {
  const BodyOrder order(body);
  std::vector<bool> makes_inputs(body.size(), false), makes_norms(body.size(), false);
  for (const Node& node : body) {
    if (is_attention(node)) order.mark_sources(node, makes_inputs, is_norm);
  }
  for (size_t i = 0; i < body.size(); ++i) {
    if (!makes_inputs[i] || !is_norm(body[i])) continue;
    makes_norms[i] = true;
    order.mark_sources(body[i], makes_norms, [](const Node&) { return false; });
  }
  std::vector<Node> up;
  for (size_t i = 0; i < body.size(); ++i) {
    if (makes_inputs[i] && !makes_norms[i] && !is_attention(body[i])) up.push_back(body[i]);
  }
  return up;
}

/// Modules of a layer that are computed again before the first gradient that reads them
/// (Megatron-LM's CheckpointWithoutOutput).
class ModulesAgain {
 public:
  /// `whole`: nodes that run again with their sublayer.
  ModulesAgain(GradientBuilder& g, const std::vector<Node>& body, const RecomputedModules& modules,
               const std::vector<bool>& whole)
      : g_(g) {
    if (modules.norms) {
      for (size_t i = 0; i < body.size(); ++i) {
        if (is_norm(body[i]) && !whole[i]) add(body[i]);
      }
    }
    if (modules.latent_up) {
      for (const Node& node : latent_up_of(body)) add(node);
    }
  }

  /// The node with inputs that are computed again.
  void prepare(Node& node) {
    for (TensorId& id : node.inputs) {
      const auto maker = makers_.find(id);
      if (maker == makers_.end()) continue;
      if (copies_.count(id) == 0) {
        Node again = maker->second;
        prepare(again);
        const std::vector<TensorId> made = recompute(g_, {again}).copies[0].outputs;
        for (size_t i = 0; i < made.size(); ++i) copies_[maker->second.outputs[i]] = made[i];
      }
      id = copies_.at(id);
    }
  }

  bool makes(TensorId id) const { return makers_.count(id) > 0; }

 private:
  void add(const Node& node) {
    for (const TensorId id : node.outputs) makers_.emplace(id, node);
  }

  GradientBuilder& g_;
  std::map<TensorId, Node> makers_;
  std::map<TensorId, TensorId> copies_;
};

void backward_of(GradientBuilder& g, const std::vector<Node>& nodes, ModulesAgain& modules) {
  const OpId gather = require_op("all_gather");
  for (size_t end = nodes.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && nodes[begin].op != gather) --begin;
    std::vector<Node> run(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                          nodes.begin() + static_cast<std::ptrdiff_t>(end));
    Node first = run.front();
    run.erase(run.begin());
    const bool gathers =
        first.op == gather && first.phase == Phase::kForward && !modules.makes(first.outputs[0]);
    if (gathers) {
      modules.prepare(first);
      gather_again(g, first, run);
    }
    for (auto node = run.rbegin(); node != run.rend(); ++node) {
      modules.prepare(*node);
      backward_of_node(g, *node);
    }
    modules.prepare(first);
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

/// The same of a sublayer. Megatron-LM's checkpoint runs all of it again, also what no gradient
/// reads (tensor_parallel/random.py, CheckpointFunction).
void backward_with_whole_second_run(GradientBuilder& g, const std::vector<Node>& nodes) {
  const Recomputed run = recompute(g, nodes);
  for (auto node = run.copies.rbegin(); node != run.copies.rend(); ++node)
    backward_of_node(g, *node);
}

/// Nodes of sublayers that run again as a whole.
std::vector<bool> whole_sublayers(const std::vector<Node>& body, const RecomputedModules& modules) {
  std::vector<bool> whole(body.size(), false);
  if (!modules.mlp && !modules.experts) return whole;
  const std::vector<Sublayer> kinds = sublayers_of(body);
  for (size_t i = 0; i < body.size(); ++i)
    whole[i] = (kinds[i] == Sublayer::kMlp && modules.mlp) ||
               (kinds[i] == Sublayer::kExperts && modules.experts);
  return whole;
}

void backward_of_body(GradientBuilder& g, Graph& graph, const Segment& segment,
                      Checkpointing checkpointing, const RecomputedModules& modules) {
  // Copies: adding nodes may move them.
  const auto first = graph.nodes.begin() + segment.first_node;
  const std::vector<Node> nodes(first, first + segment.node_count);
  const bool selects = checkpointing == Checkpointing::kSelective && !segment.carries.empty();
  const RecomputedModules chosen = selects ? modules : RecomputedModules{};
  const std::vector<bool> whole = whole_sublayers(nodes, chosen);
  ModulesAgain again(g, nodes, chosen, whole);
  if (checkpointing == Checkpointing::kNone || segment.carries.empty())
    return backward_of(g, nodes, again);
  if (checkpointing == Checkpointing::kFull) return backward_with_second_run(g, graph, nodes);
  for (size_t end = nodes.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && nodes[begin - 1].attention_core == nodes[end - 1].attention_core &&
           whole[begin - 1] == whole[end - 1])
      --begin;
    std::vector<Node> run(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                          nodes.begin() + static_cast<std::ptrdiff_t>(end));
    if (whole[begin]) {
      for (Node& node : run) again.prepare(node);
      backward_with_whole_second_run(g, run);
    } else if (run.front().attention_core && modules.attention) {
      for (Node& node : run) again.prepare(node);
      backward_with_second_run(g, graph, run);
    } else {
      backward_of(g, run, again);
    }
    end = begin;
  }
}

/// Layers that are trained, or that pass gradients on: not those of a teacher.
bool is_trained(const GradientBuilder& g, const Graph& graph, const Segment& segment) {
  const auto first = graph.nodes.begin() + segment.first_node;
  return segment.carries.empty() ||
         std::any_of(first, first + segment.node_count, [&](const Node& node) {
           return std::any_of(node.outputs.begin(), node.outputs.end(),
                              [&](TensorId id) { return g.requires_grad(id); });
         });
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
  for (int32_t i = forward_segments - 1; i >= 0; --i) {
    if (is_trained(g, graph, graph.segments[static_cast<size_t>(i)]))
      backward_of_segment(g, graph, i, checkpointing, modules);
  }
  freeze_untrained(graph);
  validate_if_debug(graph);
}

}  // namespace tilecast
