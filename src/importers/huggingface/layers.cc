#include "importers/huggingface/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

bool half_precision(DType dtype) { return dtype_bits(dtype) < 32; }

const std::vector<std::string>& activations() {
  static const std::vector<std::string> names = {
      "relu", "gelu",  "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "quick_gelu",
      "silu", "swish", "tanh"};
  return names;
}

}  // namespace

TensorId Layers::ids(const std::string& name, Shape shape) {
  return builder_.input(name, std::move(shape), DType::kInt64);
}

TensorId Layers::weight(const std::string& name, Shape shape) {
  return builder_.weight(name, std::move(shape), request_.dtype);
}

TensorId Layers::op(std::string_view op, std::vector<TensorId> inputs, const std::string& name,
                    std::vector<Attribute> attributes) {
  return builder_.op(op, std::move(inputs), name, std::move(attributes));
}

TensorId Layers::view(TensorId x, Shape shape) {
  return op("view", {x}, "view", {{"shape", std::move(shape)}});
}

TensorId Layers::transpose(TensorId x, std::vector<int64_t> order) {
  return op("transpose", {x}, "transpose", {{"order", std::move(order)}});
}

TensorId Layers::linear(TensorId x, const std::string& name, Linear options) {
  const int64_t k = builder_.graph().tensor(x).shape.back();
  const Shape shape = options.weight_is_k_by_n ? Shape{k, options.out} : Shape{options.out, k};
  std::vector<TensorId> inputs = {x, weight(name + ".weight", shape)};
  if (options.bias) inputs.push_back(weight(name + ".bias", {options.out}));
  std::vector<Attribute> attributes;
  if (options.weight_is_k_by_n) attributes.push_back({"weight_layout", 1});
  return op("linear", std::move(inputs), name, std::move(attributes));
}

TensorId Layers::layer_norm(TensorId x, const std::string& name) {
  const int64_t width = builder_.graph().tensor(x).shape.back();
  return op("layer_norm", {x, weight(name + ".weight", {width}), weight(name + ".bias", {width})},
            name);
}

TensorId Layers::rms_norm(TensorId x, const std::string& name, bool weighted) {
  const Shape shape = builder_.graph().tensor(x).shape;
  Shape rows = shape;
  rows.back() = 1;
  const DType dtype = request_.dtype;
  const auto cast = [&](TensorId t, DType to) {
    return half_precision(dtype) ? op("cast", {t}, name, {{"dtype", to}}) : t;
  };
  const TensorId wide = cast(x, DType::kFp32);
  const TensorId squares = op("integer_pow", {wide}, name);
  const TensorId mean = op("reduce_mean", {squares}, name, {{"shape", rows}});
  const TensorId scale = op("rsqrt", {op("add_scalar", {mean}, name)}, name);
  const TensorId normal = cast(op("mul", {wide, scale}, name), dtype);
  if (!weighted) return normal;
  return op("mul", {normal, weight(name + ".weight", {shape.back()})}, name);
}

TensorId Layers::dropout(TensorId x, const std::string& name, bool active) {
  if (!request_.training || !active) return x;
  return builder_.add("dropout", {x}, name).front();
}

TensorId Layers::embedding(TensorId table, TensorId ids, const std::string& name) {
  return op("embedding", {table, ids}, name);
}

TensorId Layers::split_heads(TensorId x, int64_t heads) {
  const Shape shape = builder_.graph().tensor(x).shape;
  const TensorId wide = view(x, {shape[0], shape[1], heads, shape[2] / heads});
  return transpose(wide, {0, 2, 1, 3});
}

TensorId Layers::merge_heads(TensorId x, const std::string& name) {
  const Shape shape = builder_.graph().tensor(x).shape;
  const TensorId swapped = transpose(x, {0, 2, 1, 3});
  const bool dense = builder_.graph().tensor(swapped).contiguous;
  const TensorId copied = dense ? swapped : op("copy", {swapped}, name);
  return view(copied, {shape[0], shape[2], shape[1] * shape[3]});
}

TensorId Layers::matmul(TensorId a, TensorId b, const std::string& name) {
  const auto operand = [&](TensorId t) {
    const Tensor& tensor = builder_.graph().tensor(t);
    const bool flat = tensor.contiguous || tensor.shape[0] == 1;
    return flat ? t : op("copy", {t}, name);
  };
  const TensorId left = operand(a);
  const TensorId right = operand(b);
  return op("matmul", {left, right}, name);
}

TensorId Layers::fused_attention(TensorId q, TensorId k, TensorId v, const std::string& name,
                                 std::vector<Attribute> attributes) {
  const auto rows = [&](TensorId t) { return transpose(t, {0, 2, 1, 3}); };
  const TensorId context =
      builder_.add("attention", {rows(q), rows(k), rows(v)}, name, std::move(attributes)).front();
  const Shape shape = builder_.graph().tensor(context).shape;
  return view(context, {shape[0], shape[1], shape[2] * shape[3]});
}

TensorId Layers::activation(TensorId x, const std::string& function, const std::string& name) {
  if (function == "gelu_new" || function == "gelu_fast") {
    // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))), step by step as transformers computes it.
    const TensorId half = op("mul_scalar", {x}, name);
    const TensorId cube = op("integer_pow", {x}, name);
    const TensorId sum = op("add", {x, op("mul_scalar", {cube}, name)}, name);
    const TensorId curve = op("tanh", {op("mul_scalar", {sum}, name)}, name);
    return op("mul", {half, op("add_scalar", {curve}, name)}, name);
  }
  if (function == "quick_gelu") {  // x sigmoid(1.702 x)
    const TensorId curve = op("sigmoid", {op("mul_scalar", {x}, name)}, name);
    return op("mul", {x, curve}, name);
  }
  if (function == "gelu_pytorch_tanh") return op("gelu", {x}, name);
  if (function == "swish") return op("silu", {x}, name);
  return op(function, {x}, name);
}

TensorId Layers::causal_mask(const std::string& name) {
  const int64_t s = request_.seq;
  const TensorId like = builder_.tensor({.name = name,
                                         .shape = {1, 1, s, s},
                                         .dtype = request_.dtype,
                                         .kind = TensorKind::kReference});
  const TensorId lowest = op("fill", {like}, name);
  const TensorId later = op("compare", {lowest}, name);
  return op("where", {later, lowest}, name);
}

void check_activation(const JsonObject& config, const std::string& key,
                      const std::string& function) {
  const auto& known = activations();
  if (std::find(known.begin(), known.end(), function) == known.end())
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: '{}': unknown activation '{}'{}; known: {}", config.where(), key,
                    shown_name(function), did_you_mean(function, known), join(known, ", ")));
}

}  // namespace tilecast
