#include <algorithm>
#include <map>
#include <utility>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/output_layer.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

bool is_quantized(const Node& node) {
  const AttributeValue* scheme = node.find_attribute("scheme");
  return scheme != nullptr && *scheme != AttributeValue(QuantScheme::kNone);
}

bool is_float(DType dtype) {
  return dtype == DType::kFp32 || dtype == DType::kBf16 || dtype == DType::kFp16;
}

}  // namespace

namespace {

/// One pass of autocast over a graph.
class Autocast {
 public:
  /// The dtype that a carried tensor must have when it enters a segment, by the tensor's id.
  using Entering = std::map<TensorId, DType>;

  Autocast(const Graph& from, DType low_precision, const Entering& entering)
      : from_(from), low_precision_(low_precision), entering_(entering) {}

  Graph run() {
    const auto rule = [this](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
      for (TensorId& id : inputs) id = converted(b, node, id);
      return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    };
    const auto before = [this](GraphBuilder& b, int32_t segment, std::vector<TensorId>& now) {
      enter(b, segment, now);
    };
    return Rewriter(from_, rule, before).run();
  }

 private:
  TensorId cast(GraphBuilder& b, TensorId id, const std::string& name, DType to) const {
    return b.op("cast", {id}, name + ".cast", {{"dtype", to}});
  }

  /// The low-precision copy of a weight, made once.
  TensorId copy_of(GraphBuilder& b, TensorId weight) {
    const auto [copy, fresh] = cached_.emplace(weight, -1);
    if (fresh) {
      copy->second = cast(b, weight, b.graph().tensor(weight).name, low_precision_);
      // Autocast keeps copies of parameters that require a gradient.
      b.graph().tensor(copy->second).cached = !b.graph().tensor(weight).frozen;
    }
    return copy->second;
  }

  TensorId converted(GraphBuilder& b, const Node& node, TensorId id) {
    const AutocastClass does = op_def(node.op).autocast;
    const DType target = does == AutocastClass::kLowPrecision ? low_precision_ : DType::kFp32;
    const Tensor& tensor = b.graph().tensor(id);
    if (does == AutocastClass::kPromote || !is_float(tensor.dtype) || tensor.dtype == target)
      return id;
    return tensor.kind == TensorKind::kWeight ? copy_of(b, id) : cast(b, id, node.name, target);
  }

  /// Casts before a segment what its first repetition reads: carried tensors, and weights that its
  /// repetitions share (ALBERT), whose copies autocast makes once.
  void enter(GraphBuilder& b, int32_t index, std::vector<TensorId>& now) {
    const Segment& segment = from_.segments[static_cast<size_t>(index)];
    for (const Carry& carry : segment.carries) {
      const auto found = entering_.find(carry.initial);
      TensorId& id = now[static_cast<size_t>(carry.initial)];
      if (found != entering_.end() && b.graph().tensor(id).dtype != found->second)
        id = cast(b, id, segment.name, found->second);
    }
    if (segment.repeat == 1) return;
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = from_.nodes[static_cast<size_t>(segment.first_node + i)];
      if (op_def(node.op).autocast != AutocastClass::kLowPrecision) continue;
      for (const TensorId id : node.inputs) {
        const Tensor& tensor = from_.tensor(id);
        if (tensor.kind == TensorKind::kWeight && tensor.segment != index &&
            tensor.dtype == DType::kFp32)
          copy_of(b, now[static_cast<size_t>(id)]);
      }
    }
  }

  const Graph& from_;
  DType low_precision_;
  const Entering& entering_;
  std::map<TensorId, TensorId> cached_;  ///< the copy of each weight
};

}  // namespace

void autocast(Graph& graph, DType low_precision) {
  // Where the first repetition of a segment would get another dtype than the others (a linear layer
  // before residuals in fp32), its input is cast. Each round fixes one segment at least.
  Autocast::Entering entering;
  for (size_t round = 0; round <= graph.segments.size(); ++round) {
    Graph result = Autocast(graph, low_precision, entering).run();
    bool agrees = true;
    for (size_t i = 0; i < graph.segments.size() && agrees; ++i) {
      for (size_t c = 0; c < graph.segments[i].carries.size(); ++c) {
        const Carry& carry = result.segments[i].carries[c];
        const DType next = result.tensor(carry.next).dtype;
        if (result.tensor(carry.initial).dtype == next) continue;
        entering[graph.segments[i].carries[c].initial] = next;
        agrees = false;
      }
    }
    if (!agrees) continue;
    graph = std::move(result);
    validate_if_debug(graph);
    return;
  }
  throw Error(ErrorKind::kInternal, "autocast: the dtypes of a repeated part do not settle");
}

namespace {

/// Which nodes of a graph have weights that can be quantized.
class Quantizable {
 public:
  explicit Quantizable(const Graph& graph, const SchemeOf& scheme_of)
      : graph_(graph), scheme_of_(scheme_of), uses_(graph.tensors.size(), 0) {
    for (const Node& node : graph.nodes) {
      for (TensorId id : node.inputs) uses_[static_cast<size_t>(id)] += 1;
    }
  }

  /// Scheme of one of the graph's nodes; kNone: not quantized.
  QuantScheme scheme_of(const Node& node) const {
    if (!is_quantizable(node)) return QuantScheme::kNone;
    const size_t weight = op_def(node.op).quantization->weights.front();
    return scheme_of_(node.name, graph_.tensor(node.inputs[weight]).role);
  }

 private:
  bool is_quantizable(const Node& node) const {
    // Towers are not quantized in serving either (docs/explanation/limits.md).
    const int32_t segment = graph_.tensor(node.outputs[0]).segment;
    if (graph_.segments[static_cast<size_t>(segment)].role == Role::kVision) return false;
    const OpDef& op = op_def(node.op);
    return op.quantization && !is_output_layer(graph_, node) && !is_quantized(node) &&
           std::all_of(op.quantization->weights.begin(), op.quantization->weights.end(),
                       [&](size_t i) { return own_weight(node.inputs[i]); });
  }

  bool own_weight(TensorId id) const {
    return graph_.tensor(id).kind == TensorKind::kWeight && uses_[static_cast<size_t>(id)] == 1;
  }

  const Graph& graph_;
  const SchemeOf& scheme_of_;
  std::vector<int> uses_;
};

}  // namespace

SchemeOf scheme_by_name(std::function<QuantScheme(std::string_view node)> of) {
  if (!of) return nullptr;
  return [of = std::move(of)](std::string_view node, Role) { return of(node); };
}

void quantize_linears(Graph& graph, const SchemeOf& scheme_of) {
  const Quantizable quantizable(graph, scheme_of);
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const OpDef& op = op_def(node.op);
    const QuantScheme scheme = quantizable.scheme_of(node);
    return scheme == QuantScheme::kNone
               ? b.add(op.name, std::move(inputs), node.name, node.attributes)
               : op.quantization->rewrite(b, node, std::move(inputs), scheme);
  };
  graph = Rewriter(graph, rule).run();
  validate_if_debug(graph);
}

void quantize_frozen(Graph& graph, const SchemeOf& scheme_of) {
  static const OpId linear = require_op("linear");
  const Quantizable quantizable(graph, scheme_of);
  const auto rule = [&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    const bool stores = node.op == linear && graph.tensor(node.inputs[1]).frozen;
    const QuantScheme scheme = stores ? quantizable.scheme_of(node) : QuantScheme::kNone;
    if (scheme != QuantScheme::kNone) {
      Tensor& weight = b.graph().tensor(inputs[1]);
      const DType dtype = weight.dtype;
      weight.dtype = scheme_info(scheme).weight_dtype;
      const TensorId scales =
          b.scales(weight.name, scheme, element_count(weight.shape), weight.segment);
      inputs[1] = b.op("dequantize_weight", {inputs[1], scales}, node.name + ".dequantize",
                       {{"scheme", scheme}, {"dtype", dtype}});
    }
    return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  };
  graph = Rewriter(graph, rule).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
