// Operators that write a new arrangement of their input, or new constants: pad, tile, roll, flip,
// triangles, windows side by side, prefix sums.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Every input is read once, the output written once; one operation for each element if `sums`.
void work_copy(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.shape = Stream{.elements = element_count(context.output(0).shape)},
                .dtype = context.output(0).dtype};
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void work_sums(const OpContext& context, std::vector<Kernel>& kernels) {
  work_copy(context, kernels);
  kernels.back().flops = element_count(context.output(0).shape);
}

// pad: [beginning of each dimension, then end of each].
std::vector<TensorSpec> infer_pad(const OpContext& context) {
  const Tensor& x = context.input(0);
  const auto& pads = context.attribute<Shape>("pads");
  const size_t dims = x.shape.size();
  if (pads.size() != 2 * dims)
    context.fail(fmt::format("attribute 'pads': expected {} numbers for {}, found {}", 2 * dims,
                             format_shape(x.shape), pads.size()));
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  for (size_t d = 0; d < dims; ++d)
    spec.shape[d] = checked_add(spec.shape[d], checked_add(pads[d], pads[dims + d]));
  return {spec};
}

void backward_pad(GradientBuilder& g, const Node& node) {
  const Shape inside = g.tensor(node.inputs[0]).shape;
  TensorId dy = g.gradient(node.outputs[0]);
  for (size_t d = 0; d < inside.size(); ++d) {
    if (g.tensor(dy).shape[d] != inside[d])
      dy = g.op("slice", {dy}, {{"dim", static_cast<int64_t>(d)}, {"count", inside[d]}});
  }
  g.add_gradient(node.inputs[0], dy);
}

std::vector<TensorSpec> infer_tile(const OpContext& context) {
  const Tensor& x = context.input(0);
  const auto& repeats = context.attribute<Shape>("repeats");
  if (repeats.size() < x.shape.size())
    context.fail(
        fmt::format("attribute 'repeats': expected a number for each dimension of {}, "
                    "found {}",
                    format_shape(x.shape), format_shape(repeats)));
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  spec.shape.insert(spec.shape.begin(), repeats.size() - x.shape.size(), 1);
  for (size_t d = 0; d < repeats.size(); ++d)
    spec.shape[d] = checked_multiply(spec.shape[d], repeats[d]);
  return {spec};
}

void backward_tile(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.reduce_to(g.dense(g.gradient(node.outputs[0])), node.inputs[0]));
}

/// The same movement of the gradient.
void backward_alike(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op(op_def(node.op).name, {g.gradient(node.outputs[0])}, node.attributes));
}

/// cumsum_backward: the gradient in reverse order, summed, in reverse order again.
void backward_cumsum(GradientBuilder& g, const Node& node) {
  const TensorId reversed = g.op("flip", {g.gradient(node.outputs[0])});
  g.add_gradient(node.inputs[0], g.op("flip", {g.op("cumsum", {reversed}, node.attributes)}));
}

std::vector<TensorSpec> infer_shape(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

/// The windows' gradients are summed at the places that they were read from, and back.
template <const char* kOther>
void backward_fold(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op(kOther, {g.dense(g.gradient(node.outputs[0]))},
                                      {{"shape", g.tensor(node.inputs[0]).shape}}));
}
constexpr char kFold[] = "fold";
constexpr char kUnfold[] = "unfold";

// full: constants or a range, without an input.
std::vector<TensorSpec> infer_full(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.attribute<DType>("dtype")}};
}

Operands pad_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"pads", Shape{0, 1, 0, 1}}};
  return operands;
}

Operands tile_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"repeats", Shape{1, 2}}};
  return operands;
}

Operands same_shape_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"shape", Shape{s["rows"], s["columns"]}}};
  return operands;
}

Operands full_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = same_shape_operands(b, s);
  operands.attributes.push_back({"dtype", s.dtype()});
  return operands;
}

OpDef moving(std::string_view name, std::string_view doc, std::string_view aten,
             std::string_view onnx) {
  return {.name = name,
          .doc = doc,
          .aten = aten,
          .onnx = onnx,
          .infer = infer_same,
          .work = work_copy,
          .backward = backward_alike,
          .example = "x: fp32[64, 256]"};
}

OpDef with_shape(OpDef op, std::string_view example) {
  op.attributes = {{.name = "shape",
                    .doc = "the shape of the output",
                    .type = AttributeType::kIntegers,
                    .required = true}};
  op.infer = infer_shape;
  op.operands = same_shape_operands;
  op.example = example;
  return op;
}

}  // namespace

std::vector<OpDef> arrangement_ops() {
  OpDef unfold = with_shape(moving("unfold", "windows of x side by side", "aten::im2col", ""),
                            "x: fp32[2, 16, 8, 8] {shape=[2, 144, 36]}");
  unfold.backward = backward_fold<kFold>;
  OpDef fold =
      with_shape(moving("fold", "sums of windows that lie side by side", "aten::col2im", "Col2Im"),
                 "x: fp32[2, 144, 36] {shape=[2, 16, 8, 8]}");
  fold.work = work_sums;
  fold.backward = backward_fold<kUnfold>;
  OpDef cumsum = moving("cumsum", "sums of all elements up to each", "aten::cumsum", "CumSum");
  cumsum.work = work_sums;
  cumsum.backward = backward_cumsum;
  cumsum.autocast = AutocastClass::kFp32;
  OpDef full = with_shape(
      moving("full", "a new tensor of constants, or of a range", "aten::full", "ConstantOfShape"),
      "{shape=[64, 256], dtype=fp32}");
  full.min_inputs = 0;
  full.max_inputs = 0;
  full.attributes.push_back(
      {.name = "dtype", .doc = "of the output", .type = AttributeType::kDType, .required = true});
  full.infer = infer_full;
  full.backward = nullptr;
  full.operands = full_operands;
  return {{.name = "pad",
           .doc = "more elements at the beginnings and ends of dimensions",
           .aten = "aten::constant_pad_nd",
           .onnx = "Pad",
           .attributes = {{.name = "pads",
                           .doc = "at the beginning of each dimension, then at the end of each",
                           .type = AttributeType::kIntegers,
                           .required = true}},
           .infer = infer_pad,
           .work = work_copy,
           .backward = backward_pad,
           .operands = pad_operands,
           .example = "x: fp32[64, 256] {pads=[0, 1, 0, 1]}"},
          {.name = "tile",
           .doc = "x repeated in each dimension, copied",
           .aten = "aten::repeat",
           .onnx = "Tile",
           .attributes = {{.name = "repeats",
                           .doc = "in each dimension of the output",
                           .type = AttributeType::kIntegers,
                           .required = true,
                           .min = 1}},
           .infer = infer_tile,
           .work = work_copy,
           .backward = backward_tile,
           .operands = tile_operands,
           .example = "x: fp32[64, 256] {repeats=[2, 1]}"},
          unmeasured(moving("roll",
                            "elements shifted along dimensions, those at the end to the beginning",
                            "aten::roll", "")),
          moving("flip", "the reverse order of elements along dimensions", "aten::flip", ""),
          moving("triangle", "the elements of a matrix above or below a diagonal, others 0",
                 "aten::tril", "Trilu"),
          unmeasured(cumsum),
          unmeasured(unfold),
          unmeasured(fold),
          full};
}

}  // namespace tilecast
