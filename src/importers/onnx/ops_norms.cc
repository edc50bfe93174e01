// Norms, softmax and fused attention.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

/// A norm over all dimensions from `axis` on, as rows of one dimension.
struct Flat {
  TensorId x;
  Shape shape;  ///< of the input
};

Flat flat_rows(OnnxCall& call, size_t axis) {
  const Shape shape = call.shape(0);
  Shape rows(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  rows.push_back(
      element_count(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end())));
  return {call.reshape(call.tensor(0), rows), shape};
}

/// A weight or bias as a vector.
TensorId vector_of(OnnxCall& call, size_t i) {
  return call.reshape(call.tensor(i), {element_count(call.shape(i))});
}

void translate_layer_norm(OnnxCall& call) {
  call.name_after(1);
  const size_t axis = call.axis(call.integer("axis", -1), call.shape(0).size());
  const Flat flat = flat_rows(call, axis);
  std::vector<TensorId> inputs = {flat.x, vector_of(call, 1)};
  if (call.has(2)) inputs.push_back(vector_of(call, 2));
  const std::vector<TensorId> results = call.add("layer_norm", inputs);
  call.set(0, call.reshape(results[0], flat.shape));
  call.set(1, results[1]);
  call.set(2, results[2]);
}

void translate_rms_norm(OnnxCall& call) {
  call.name_after(1);
  const size_t axis = call.axis(call.integer("axis", -1), call.shape(0).size());
  const Flat flat = flat_rows(call, axis);
  call.set(0, call.reshape(call.op("rms_norm", {flat.x, vector_of(call, 1)}), flat.shape));
}

void translate_batch_norm(OnnxCall& call) {
  call.name_after(1);
  const bool training = call.integer("training_mode", 0) != 0;
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < (training ? 3 : 5); ++i) inputs.push_back(call.tensor(i));
  std::vector<Attribute> attributes;
  if (training) attributes.push_back({"training", 1});
  call.set(0, call.add("batch_norm", inputs, std::move(attributes))[0]);
}

void translate_group_norm(OnnxCall& call) {
  call.name_after(1);
  const Shape shape = call.shape(0);
  if (shape.size() < 2) call.fail("expected [b, c, ...]");
  const bool instance = call.node().op == "InstanceNormalization";
  const int64_t groups = instance ? shape[1] : call.integer("num_groups", 1);
  if (groups < 1) call.fail(fmt::format("{} groups", groups));
  call.set(0, call.add("group_norm", {call.tensor(0), call.tensor(1), call.tensor(2)},
                       {{"groups", groups}})[0]);
}

/// Divides by the sum of the absolute values, or by the root of the sum of squares.
void translate_lp_norm(OnnxCall& call) {
  const TensorId x = call.tensor(0);
  const auto axis = static_cast<int64_t>(call.axis(call.integer("axis", -1), call.shape(0).size()));
  const bool squares = call.integer("p", 2) == 2;
  const TensorId sum =
      call.reduce("reduce_sum", call.op(squares ? "integer_pow" : "abs", {x}), {axis}, true);
  call.set(0, call.op("div", {x, squares ? call.op("sqrt", {sum}) : sum}));
}

/// (x - mean) / deviation, by default for each channel.
void translate_mean_variance(OnnxCall& call) {
  Shape axes = call.list("axes");
  const size_t rank = call.shape(0).size();
  if (axes.empty()) axes = {0, 2, 3};
  for (int64_t& axis : axes) axis = static_cast<int64_t>(call.axis(axis, rank));
  const TensorId x = call.tensor(0);
  const TensorId centred = call.op("sub", {x, call.reduce("reduce_mean", x, axes, true)});
  const TensorId variance = call.reduce("variance", x, axes, true);
  call.set(0, call.op("div", {centred, call.op("sqrt", {variance})}));
}

/// Local response norm as torch.nn.functional.local_response_norm: squares, their mean over
/// neighbouring channels, a power.
void translate_lrn(OnnxCall& call) {
  const Shape shape = call.shape(0);
  const int64_t size = call.integer("size", 1);
  if (shape.size() < 3 || size < 1 || size > INT32_MAX) call.fail("expected [b, c, ...]");
  const TensorId x = call.tensor(0);
  const TensorId squares =
      call.reshape(call.op("integer_pow", {x}),
                   {shape[0], 1, shape[1], element_count(Shape(shape.begin() + 2, shape.end()))});
  const TensorId mean = call.op("avg_pool", {squares},
                                {{"window", Shape{size, 1}},
                                 {"strides", Shape{1, 1}},
                                 {"pads", Shape{(size - 1) / 2, 0, size / 2, 0}}});
  const TensorId scaled = call.op("add_scalar", {call.op("mul_scalar", {mean})});
  call.set(0, call.op("div", {x, call.reshape(call.op("pow_scalar", {scaled}), shape)}));
}

/// Before operator set 13, all dimensions from the axis on are one row.
void translate_softmax(OnnxCall& call) {
  constexpr int64_t kOneAxis = 13;
  const Shape shape = call.shape(0);
  if (shape.empty()) call.fail("expected rows, found a scalar");
  const bool log = call.node().op == "LogSoftmax";
  const std::string_view op = log ? "log_softmax" : "softmax";
  const size_t axis =
      call.axis(call.integer("axis", call.opset() < kOneAxis ? 1 : -1), shape.size());
  const bool last = axis + 1 == shape.size();
  if (call.opset() < kOneAxis && !last) {
    const Flat flat = flat_rows(call, axis);
    return call.set(0, call.reshape(call.op(op, {flat.x}), shape));
  }
  if (last) return call.set(0, call.op(op, {call.tensor(0)}));
  if (!log)
    return call.set(0, call.op(op, {call.tensor(0)}, {{"dim", static_cast<int64_t>(axis)}}));
  Shape order(shape.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[axis], order.back());
  const TensorId rows = call.op("copy", {call.transpose(call.tensor(0), order)});
  call.set(0, call.transpose(call.op(op, {rows}), order));
}

// Attention: q, k, v [b, heads, s, size], or [b, s, heads · size] with the numbers of heads.

TensorId heads_of(OnnxCall& call, size_t input, const char* attribute) {
  const Shape s = call.shape(input);
  if (s.size() == 4) return call.tensor(input);
  const int64_t heads = call.integer(attribute, 0);
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0)
    call.fail(fmt::format("{} heads do not fit {}", heads, format_shape(s)));
  return call.op("split_heads", {call.tensor(input)}, {{"heads", heads}});
}

void translate_attention(OnnxCall& call) {
  const bool flat = call.shape(0).size() == 3;
  const TensorId q = heads_of(call, 0, "q_num_heads");
  TensorId k = heads_of(call, 1, "kv_num_heads"), v = heads_of(call, 2, "kv_num_heads");
  if (call.has(4)) k = call.cat({call.tensor(4), k}, 2);
  if (call.has(5)) v = call.cat({call.tensor(5), v}, 2);
  std::vector<TensorId> inputs = {q, k, v};
  const bool masked = call.has(3);
  if (masked) {
    Shape mask = call.shape(3);
    if (mask.size() < 4) mask.insert(mask.begin(), 4 - mask.size(), 1);
    inputs.push_back(call.reshape(call.tensor(3), mask));
  }
  std::vector<Attribute> attributes;
  if (call.integer("is_causal", 0) != 0) attributes.push_back({"causal", 1});
  if (call.number("softcap", 0) != 0) attributes.push_back({"softcap", 1});
  const TensorId context = call.op("sdpa", inputs, std::move(attributes));
  const Shape s = call.shape_of(context), queries = call.shape_of(q);
  if (flat) {
    call.set(0, context);
  } else {
    const int64_t size = s[2] / queries[1];
    const TensorId rows = call.reshape(context, {s[0], s[1], queries[1], size});
    call.set(0, call.transpose(rows, {0, 2, 1, 3}));
  }
  call.set(1, k);
  call.set(2, v);
}

/// Cosines or sines [b, s, size / 2] as [b, 1, s, size / 2]: a table; positions select rows.
TensorId waves(OnnxCall& call, size_t input) {
  TensorId x = call.tensor(input);
  if (call.has(3)) x = call.op("index_select", {x, call.tensor(3)}, {{"dim", 0}});
  Shape shape = call.shape_of(x);
  if (shape.size() != 3) call.fail("expected cosines and sines [b, s, size / 2]");
  shape.insert(shape.begin() + 1, 1);
  return call.reshape(x, shape);
}

/// Both halves of each head are turned: x cos - y sin and x sin + y cos.
void translate_rotary(OnnxCall& call) {
  const Shape shape = call.shape(0);
  const TensorId x = heads_of(call, 0, "num_heads");
  const int64_t given = call.integer("rotary_embedding_dim", 0), size = call.shape_of(x)[3];
  const int64_t turned = given == 0 ? size : given;
  if (turned < 2 || turned > size || turned % 2 != 0)
    call.fail(fmt::format("cannot turn {} of {} elements", turned, size));
  const TensorId cos = waves(call, 1), sin = waves(call, 2);
  const std::vector<TensorId> half =
      call.add("split", {call.slice(x, 3, turned)}, {{"parts", 2}, {"dim", 3}});
  const auto mul = [&](TensorId a, TensorId b) { return call.op("mul", {a, b}); };
  std::vector<TensorId> parts = {call.op("sub", {mul(half[0], cos), mul(half[1], sin)}),
                                 call.op("add", {mul(half[0], sin), mul(half[1], cos)})};
  if (turned < size) parts.push_back(call.slice(x, 3, size - turned));
  const TensorId y = call.cat(std::move(parts), 3);
  call.set(0, shape.size() == 3 ? call.reshape(call.transpose(y, {0, 2, 1, 3}), shape) : y);
}

}  // namespace

std::vector<OnnxOp> onnx_norm_ops() {
  return {{"LayerNormalization", translate_layer_norm},
          {"SimplifiedLayerNormalization", translate_rms_norm},
          {"RMSNormalization", translate_rms_norm},
          {"BatchNormalization", translate_batch_norm},
          {"GroupNormalization", translate_group_norm},
          {"InstanceNormalization", translate_group_norm},
          {"LpNormalization", translate_lp_norm},
          {"MeanVarianceNormalization", translate_mean_variance},
          {"LRN", translate_lrn},
          {"Softmax", translate_softmax},
          {"LogSoftmax", translate_softmax},
          {"Attention", translate_attention},
          {"RotaryEmbedding", translate_rotary}};
}

}  // namespace tilecast
