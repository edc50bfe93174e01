// Shape, work and gradients that pointwise operators share.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/pointwise.h"
#include "ops/promotion.h"

namespace tilecast {

static Shape broadcast(const OpContext& context) {
  Shape result;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Shape& shape = context.input(i).shape;
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t offset = result.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& have = result[offset + d];
      if (have == 1) {
        have = shape[d];
      } else if (shape[d] != 1 && shape[d] != have) {
        context.fail(fmt::format("shapes do not broadcast: {} against {}", format_shape(shape),
                                 format_shape(result)));
      }
    }
  }
  return result;
}

TensorSpec pointwise_spec(const OpContext& context, DType dtype) {
  TensorSpec spec{.shape = broadcast(context), .dtype = dtype};
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (context.input(i).shape == spec.shape) {
      spec.contiguous = context.input(i).contiguous;
      break;
    }
  }
  return spec;
}

std::vector<TensorSpec> infer_pointwise(const OpContext& context) {
  return {pointwise_spec(context, promoted_dtype(context))};
}

std::vector<TensorSpec> infer_compare(const OpContext& context) {
  return {pointwise_spec(context, DType::kBool)};
}

void work_pointwise(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  const int64_t elements = element_count(out.shape);
  Kernel kernel{.shape = Stream{.elements = elements}, .dtype = out.dtype};
  const std::optional<int64_t> per_element = op_def(context.node.op).pointwise_flops;
  kernel.flops = checked_multiply(
      elements, integer_or(context.node, "flops_per_element", per_element.value_or(1)));
  const std::vector<TensorId>& ids = context.node.inputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    // A tensor that is used twice is read once.
    if (std::find(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids[i]) !=
        ids.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    // Reading an expanded view only touches the smaller tensor behind it.
    const Tensor& input = context.input(i);
    kernel.read_bytes = checked_add(
        kernel.read_bytes,
        std::min(tensor_bytes(input), tensor_bytes(context.graph.tensor(input.storage))));
  }
  for (size_t i = 0; i < context.node.outputs.size(); ++i)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.output(i)));
  kernels.push_back(kernel);
}

void pass_on(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  for (TensorId input : node.inputs) {
    if (g.requires_grad(input)) g.add_gradient(input, g.reduce_to(dy, input));
  }
}

void backward_from_output(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("activation_backward", {g.gradient(node.outputs[0]), node.outputs[0]}));
}

void backward_from_input(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("activation_backward", {g.gradient(node.outputs[0]), node.inputs[0]}));
}

OpDef pointwise(std::string_view name, std::string_view doc, std::string_view aten,
                std::string_view onnx, int inputs, int64_t flops,
                void (*backward)(GradientBuilder&, const Node&)) {
  OpDef op{.name = name, .doc = doc, .aten = aten, .onnx = onnx};
  op.min_inputs = inputs;
  op.max_inputs = inputs;
  op.infer = infer_pointwise;
  op.work = work_pointwise;
  op.backward = backward;
  op.pointwise_flops = flops;
  op.example = inputs == 1   ? "x: fp32[64, 256]"
               : inputs == 2 ? "x: fp32[64, 256] y: fp32[64, 256]"
                             : "x: fp32[64, 256] y: fp32[64, 256] z: fp32[64, 256]";
  return op;
}

}  // namespace tilecast
