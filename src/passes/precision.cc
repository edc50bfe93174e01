#include <algorithm>
#include <functional>
#include <map>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// Rewrites a graph node by node; the dtypes of outputs follow from the new inputs.
class Rewriter {
 public:
  /// Adds the replacement of a node, given its inputs in the new graph. Returns its outputs.
  using Rule =
      std::function<std::vector<TensorId>(GraphBuilder&, const Node&, std::vector<TensorId>)>;

  Rewriter(const Graph& from, Rule rule) : from_(from), rule_(std::move(rule)), b_(to_) {
    now_.assign(from.tensors.size(), -1);
  }

  Graph run() {
    to_.name = from_.name;
    copy_given();
    for (const Segment& segment : from_.segments) {
      b_.begin_segment(segment.name, segment.repeat);
      if (segment.reverses) b_.reverses(*segment.reverses);
      for (int32_t i = 0; i < segment.node_count; ++i)
        rewrite(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) b_.carry(now(carry.initial), now(carry.next));
    }
    for (TensorId id : from_.outputs) to_.outputs.push_back(now(id));
    for (TensorId id : from_.losses) to_.losses.push_back(now(id));
    return std::move(to_);
  }

 private:
  TensorId now(TensorId id) const { return now_[static_cast<size_t>(id)]; }

  /// Copies tensors that no node computes: inputs, weights, buffers.
  void copy_given() {
    const std::vector<bool> made = made_tensors(from_);
    for (size_t id = 0; id < made.size(); ++id) {
      if (made[id]) continue;
      Tensor tensor = from_.tensors[id];
      tensor.storage = tensor.storage == static_cast<TensorId>(id) ? -1 : now(tensor.storage);
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  void rewrite(const Node& node) {
    std::vector<TensorId> inputs;
    for (TensorId id : node.inputs) inputs.push_back(now(id));
    b_.set_phase(node.phase);
    b_.set_counts(node.counts);
    b_.set_attention_core(node.attention_core);
    const std::vector<TensorId> outputs = rule_(b_, node, std::move(inputs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      now_[static_cast<size_t>(node.outputs[i])] = outputs[i];
      to_.tensor(outputs[i]).held = from_.tensor(node.outputs[i]).held;
    }
  }

  const Graph& from_;
  Rule rule_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
};

bool is_quantized(const Node& node) {
  const AttributeValue* scheme = node.find_attribute("scheme");
  return scheme != nullptr && *scheme != AttributeValue(QuantScheme::kNone);
}

bool is_float(DType dtype) {
  return dtype == DType::kFp32 || dtype == DType::kBf16 || dtype == DType::kFp16;
}

}  // namespace

void autocast(Graph& graph, DType low_precision) {
  std::map<TensorId, TensorId> cached;  // the cast copy of each weight
  const auto rule = [low_precision, &cached](GraphBuilder& b, const Node& node,
                                             std::vector<TensorId> inputs) {
    const AutocastClass does = op_def(node.op).autocast;
    const DType target = does == AutocastClass::kLowPrecision ? low_precision : DType::kFp32;
    for (TensorId& id : inputs) {
      const Tensor& tensor = b.graph().tensor(id);
      if (does == AutocastClass::kPromote || !is_float(tensor.dtype) || tensor.dtype == target)
        continue;
      const std::vector<Attribute> attributes = {{"dtype", target}};
      if (tensor.kind != TensorKind::kWeight) {
        id = b.op("cast", {id}, node.name + ".cast", attributes);
        continue;
      }
      const auto [copy, fresh] = cached.emplace(id, -1);
      if (fresh) {
        copy->second = b.op("cast", {id}, tensor.name + ".cast", attributes);
        b.graph().tensor(copy->second).cached = true;
      }
      id = copy->second;
    }
    return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  };
  graph = Rewriter(graph, rule).run();
  validate_if_debug(graph);
}

void quantize_linears(Graph& graph, const SchemeOf& scheme_of) {
  std::vector<int> uses(graph.tensors.size(), 0);
  for (const Node& node : graph.nodes) {
    for (TensorId id : node.inputs) uses[static_cast<size_t>(id)] += 1;
  }
  const auto own_weight = [&](TensorId id) {
    return graph.tensor(id).kind == TensorKind::kWeight && uses[static_cast<size_t>(id)] == 1;
  };
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const bool is_output = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
    });
    const OpDef& op = op_def(node.op);
    const bool stores =
        op.quantization && !is_output && !is_quantized(node) &&
        std::all_of(op.quantization->weights.begin(), op.quantization->weights.end(),
                    [&](size_t i) { return own_weight(node.inputs[i]); });
    const QuantScheme scheme = stores ? scheme_of(node.name) : QuantScheme::kNone;
    return scheme == QuantScheme::kNone
               ? b.add(op.name, std::move(inputs), node.name, node.attributes)
               : op.quantization->rewrite(b, node, std::move(inputs), scheme);
  };
  graph = Rewriter(graph, rule).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
