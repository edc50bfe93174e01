// The operators of ONNX that are translated. Operators on single elements that are not in a table
// here come from the operator table (OpDef::onnx).

#include <algorithm>
#include <unordered_map>

#include "importers/onnx/call.h"
#include "importers/onnx/calls.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// ONNX's name → the operator of the table.
const std::unordered_map<std::string_view, std::string_view>& pointwise_names() {
  static const std::unordered_map<std::string_view, std::string_view> names = [] {
    std::unordered_map<std::string_view, std::string_view> all;
    for (const OpDef& op : op_table()) {
      if (op.pointwise_flops && !op.onnx.empty() &&
          std::ranges::none_of(op.attributes, &AttributeDef::required))
        all.emplace(op.onnx, op.name);
    }
    return all;
  }();
  return names;
}

void translate_pointwise(OnnxCall& call) {
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.has(i)) inputs.push_back(call.tensor(i));
  }
  call.set(0, call.op(pointwise_names().at(call.node().op), std::move(inputs)));
}

std::unordered_map<std::string_view, OnnxOp> all_ops() {
  std::unordered_map<std::string_view, OnnxOp> all;
  for (const auto& [onnx, op] : pointwise_names()) all[onnx] = {onnx, translate_pointwise};
  for (std::vector<OnnxOp> (*family)() :
       {onnx_pointwise_ops, onnx_product_ops, onnx_window_ops, onnx_norm_ops, onnx_view_ops,
        onnx_movement_ops, onnx_reduction_ops, onnx_recurrent_ops, onnx_quantization_ops}) {
    for (const OnnxOp& op : family()) all[op.op] = op;
  }
  // Computed when their inputs are constants (fold.cc), which they always are.
  const OnnxOp folded{"", [](OnnxCall& call) { call.fail("its inputs are not constants"); }};
  for (const std::string_view op : {"Constant", "Shape", "Size"}) all[op] = folded;
  return all;
}

const std::unordered_map<std::string_view, OnnxOp>& known_ops() {
  static const std::unordered_map<std::string_view, OnnxOp> ops = all_ops();
  return ops;
}

}  // namespace

std::vector<std::string_view> onnx_op_names() {
  std::vector<std::string_view> names = {"If", "Loop"};
  for (const auto& [name, op] : known_ops()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const OnnxOp* find_onnx_op(const OnnxNode& node) {
  const std::unordered_map<std::string_view, OnnxOp>& ops = known_ops();
  // ONNX Runtime's norms have the inputs of ONNX's.
  const bool norm = node.op == "SimplifiedLayerNormalization" || node.op == "LayerNormalization";
  const bool known = node.domain.empty() || node.domain == kTorchDomain ||
                     (node.domain == "com.microsoft" && norm);
  if (!known) return nullptr;
  const auto found = ops.find(node.op);
  return found == ops.end() ? nullptr : &found->second;
}

}  // namespace tilecast
