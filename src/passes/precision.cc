#include <algorithm>
#include <map>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

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
        // Autocast keeps copies of parameters that require a gradient.
        b.graph().tensor(copy->second).cached = !b.graph().tensor(id).frozen;
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
