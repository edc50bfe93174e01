// The kernels that eager PyTorch launches for a module. Source: the model files of transformers,
// with eager attention.

#include "ops/decompose.h"

#include "ops/decomposition.h"

namespace tilecast {

std::string name_prefix(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

/// pow, mean, add, rsqrt, mul, mul; in half precision with casts to and from fp32.
std::vector<TensorId> decompose_rms_norm(GraphBuilder& b, const Node& node, const EagerForm& form) {
  if (form.fused_modules) return b.add("rms_norm", node.inputs, node.name, node.attributes);
  Decomposition f(b, node);
  const TensorId x = node.inputs[0];
  const DType dtype = b.graph().tensor(x).dtype;
  Shape rows = f.shape(x);
  rows.back() = 1;
  const auto cast = [&](TensorId t, DType to) {
    return dtype_bits(dtype) < 32 ? f.own("cast", {t}, {{"dtype", to}}) : t;
  };
  const TensorId wide = cast(x, DType::kFp32);
  const TensorId squares = f.own("integer_pow", {wide});
  const TensorId mean = f.own("reduce_mean", {squares}, {{"shape", rows}});
  const TensorId scale = f.own("rsqrt", {f.own("add_scalar", {mean})});
  // T5's code multiplies x itself, which autograd then keeps beside the copy that was squared.
  const TensorId unit = f.own("mul", {f.flag("keeps_input") ? x : wide, scale});
  if (node.inputs.size() == 2 && f.flag("wide_weight"))
    return {cast(f.own("mul", {unit, cast(node.inputs[1], DType::kFp32)}), dtype)};
  const TensorId normal = cast(unit, dtype);
  if (node.inputs.size() == 1) return {normal};
  return {f.own("mul", {normal, node.inputs[1]})};
}

std::vector<TensorId> decompose_dropout(GraphBuilder& b, const Node& node, const EagerForm& form) {
  if (!form.training) return {node.inputs[0], -1};
  return b.add("dropout", node.inputs, node.name);
}

std::vector<TensorId> decompose_batch_norm(GraphBuilder& b, const Node& node,
                                           const EagerForm& form) {
  const bool training = form.training || attribute<int64_t>(node, "training") != 0;
  return b.add("batch_norm", node.inputs, node.name, {{"training", training ? 1 : 0}});
}

std::vector<TensorId> decompose_gelu_new(GraphBuilder& b, const Node& node, const EagerForm& form) {
  if (form.fused_modules) return b.add("gelu_new", node.inputs, node.name);
  Decomposition f(b, node);
  const TensorId x = node.inputs[0];
  const TensorId half = f.own("mul_scalar", {x});
  const TensorId cube = f.own("integer_pow", {x});
  const TensorId sum = f.own("add", {x, f.own("mul_scalar", {cube})});
  const TensorId curve = f.own("tanh", {f.own("mul_scalar", {sum})});
  return {f.own("mul", {half, f.own("add_scalar", {curve})})};
}

std::vector<TensorId> decompose_quick_gelu(GraphBuilder& b, const Node& node, const EagerForm&) {
  Decomposition f(b, node);
  const TensorId x = node.inputs[0];
  const TensorId curve = f.own("sigmoid", {f.own("mul_scalar", {x})});
  return {f.own("mul", {x, curve})};
}

/// Two statements of a function, which holds its argument (transformers, activations.py).
std::vector<TensorId> decompose_relu2(GraphBuilder& b, const Node& node, const EagerForm&) {
  Decomposition f(b, node);
  const TensorId square = f.own("integer_pow", {f.own("relu", {node.inputs[0]})});
  return {f.own("keep", {square, node.inputs[0]})};
}

std::vector<TensorId> decompose_split_heads(GraphBuilder& b, const Node& node,
                                            const EagerForm& form) {
  Decomposition f(b, node);
  const Shape s = f.shape(node.inputs[0]);
  if (s.size() == 4) return {f.transpose(node.inputs[0], {0, 2, 1, 3})};
  const auto heads = attribute<int64_t>(node, "heads");
  const TensorId strided = f.split_heads(node.inputs[0], heads);
  if (!f.flag("copied") || form.fused_attention) return {strided};
  return {f.view(f.own("copy", {strided}), {s[0] * heads, s[1], s[2] / heads})};
}

/// Cosines and sines for each position, [1, 1, s, rope_dim]; computed once per forward pass.
std::vector<TensorId> decompose_rotary_table(GraphBuilder& b, const Node& node, const EagerForm&) {
  Decomposition f(b, node);
  const int64_t s = f.shape(node.inputs[0])[1];
  const auto rope_dim = attribute<int64_t>(node, "rope_dim");
  const DType dtype = b.graph().tensor(node.inputs[0]).dtype;
  const TensorId frequencies = b.tensor(
      {.name = "rotary_emb.inv_freq", .shape = {1, rope_dim / 2, 1}, .kind = TensorKind::kBuffer});
  const TensorId places = b.input("position_ids", {1, 1, s}, DType::kFp32);
  const TensorId angles = f.own("matmul", {frequencies, places});
  const TensorId half = f.transpose(angles, {0, 2, 1});
  const TensorId both = f.own("cat", {half, half}, {{"dim", 2}});
  const auto wave = [&](const char* function) {
    TensorId t = f.own("mul_scalar", {f.own(function, {both})});
    if (dtype != DType::kFp32) t = f.own("cast", {t}, {{"dtype", dtype}});
    return f.view(t, {1, 1, s, rope_dim});
  };
  const TensorId cos = wave("cos");
  return {cos, wave("sin")};
}

std::vector<TensorId> decompose_apply_rotary(GraphBuilder& b, const Node& node,
                                             const EagerForm& form) {
  if (form.fused_modules)
    return b.add("rotary", {node.inputs[0]}, node.name,
                 {{"steps", attribute<int64_t>(node, "scaled")}});
  return {Decomposition(b, node).rotate(node.inputs[0], node.inputs[1], node.inputs[2], node.name)};
}

}  // namespace tilecast
