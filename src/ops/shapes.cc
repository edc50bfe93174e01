#include "ops/shapes.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Operands {
  std::vector<TensorId> inputs;
  std::vector<Attribute> attributes;
};

Operands convolution(GraphBuilder& b, const OpDef& op, DType dtype, const KernelShape& s) {
  const int64_t width = s.image_width == 0 ? s.n : s.image_width;
  const int64_t window_width = s.window_width == 0 ? s.window_size : s.window_width;
  const int64_t padding = s.padding.value_or(s.window_size / 2);
  if (s.k % s.groups != 0 || s.m % s.groups != 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: {} groups do not divide {} and {} channels",
                                               op.name, s.groups, s.k, s.m));
  const TensorId x = b.input("x", {s.batch, s.k, s.n, width}, dtype);
  const TensorId w = b.input("w", {s.m, s.k / s.groups, s.window_size, window_width}, dtype);
  const std::vector<Attribute> attributes = {
      {"stride", s.stride}, {"padding", padding}, {"groups", s.groups}};
  if (op.name == "conv2d") return {{x, w}, attributes};
  const auto output = [&](int64_t size, int64_t window) {
    const int64_t room = checked_add(size, checked_multiply(2, padding)) - window;
    if (room < 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: a window of {} is larger than a padded image of {}", op.name,
                              window, checked_add(size, checked_multiply(2, padding))));
    return room / s.stride + 1;
  };
  const Shape gradient = {s.batch, s.m, output(s.n, s.window_size), output(width, window_width)};
  return {{b.input("dy", gradient, dtype), x, w}, attributes};
}

Operands operands(GraphBuilder& b, const OpDef& op, DType dtype, const KernelShape& s) {
  const auto input = [&](Shape shape, DType type) { return b.input("x", std::move(shape), type); };
  if (op.name == "linear")
    return {{input({s.m, s.k}, dtype), input({s.n, s.k}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "matmul")
    return {{input({s.batch, s.m, s.k}, dtype), input({s.batch, s.k, s.n}, dtype)}, {}};
  if (op.name == "gemm") return {{input({s.m, s.k}, dtype), input({s.k, s.n}, dtype)}, {}};
  if (op.name == "quantized_linear") {
    const DType stored = scheme_info(s.scheme).weight;
    return {{input({s.m, s.k}, dtype), input({s.n, s.k}, stored), input({1}, DType::kFp32)},
            {{"scheme", s.scheme}}};
  }
  if (op.name == "attention" || op.name == "attention_backward") {
    const int64_t kv_heads = s.kv_heads == 0 ? s.heads : s.kv_heads;
    const TensorId q = input({s.batch, s.m, s.heads, s.k}, dtype);
    const auto key = [&] {
      return input({s.batch, s.n, kv_heads, s.k}, s.kv_dtype.value_or(dtype));
    };
    Operands result{{q, key(), key()}, {{"causal", s.causal ? 1 : 0}, {"window", s.window}}};
    if (op.name == "attention_backward") {
      for (int i = 0; i < 2; ++i)
        result.inputs.push_back(input({s.batch, s.m, s.heads, s.k}, dtype));
      result.inputs.push_back(input({s.batch, s.heads, s.m}, DType::kFp32));
    }
    return result;
  }
  if (op.name == "cached_attention") {
    const int64_t kv_heads = s.kv_heads == 0 ? s.heads : s.kv_heads;
    return {{input({s.batch, s.m, s.heads, s.k}, dtype),
             input({s.batch, s.n, 2 * kv_heads * s.k}, s.kv_dtype.value_or(dtype))},
            {{"kv_heads", kv_heads}, {"causal", s.causal ? 1 : 0}, {"window", s.window}}};
  }
  if (op.name == "append_cache") {
    const TensorId cache = input({s.batch, s.n, s.k}, s.kv_dtype.value_or(dtype));
    return {{cache, input({s.batch, s.m, s.k}, dtype)}, {}};
  }
  if (op.name == "experts" || op.name == "experts_backward") {
    if (s.ranks < 1 || s.experts % s.ranks != 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("{} ranks do not divide {} experts", s.ranks, s.experts));
    const int64_t own = s.experts / s.ranks;
    Operands result{{input({s.m, s.k}, dtype), input({own, (s.gated ? 2 : 1) * s.n, s.k}, dtype),
                     input({own, s.k, s.n}, dtype)},
                    {{"chosen", s.chosen},
                     {"ranks", s.ranks},
                     {"skew_percent", s.skew_percent},
                     {"scheme", s.scheme}}};
    if (op.name == "experts_backward")
      result.inputs.insert(result.inputs.begin(), input({s.m, s.k}, dtype));
    return result;
  }
  if (op.name == "all_reduce") return {{input({s.m, s.n}, dtype)}, {{"ranks", s.ranks}}};
  if (op.name == "rms_norm") return {{input({s.m, s.n}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "add_rms_norm")
    return {{input({s.m, s.n}, dtype), input({s.m, s.n}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "gated_activation") return {{input({s.m, 2 * s.n}, dtype)}, {}};
  if (op.name == "layer_norm")
    return {{input({s.m, s.n}, dtype), input({s.n}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "layer_norm_backward" || op.name == "layer_norm_weight_backward")
    return {{input({s.m, s.n}, dtype), input({s.m, s.n}, dtype), input({s.m}, DType::kFp32),
             input({s.m}, DType::kFp32)},
            {}};
  if (op.name == "embedding") return {{input({s.k, s.n}, dtype), input({s.m}, DType::kInt64)}, {}};
  if (op.name == "embedding_backward")
    return {{input({s.m, s.n}, dtype), input({s.m}, DType::kInt64)}, {{"shape", Shape{s.k, s.n}}}};
  if (op.name == "where") return {{input({s.m, s.n}, DType::kBool), input({s.m, s.n}, dtype)}, {}};
  if (op.name == "gather_rows") return {{input({s.m, s.n}, dtype)}, {{"rows", s.m}}};
  if (op.name.starts_with("conv2d")) return convolution(b, op, dtype, s);
  if (op.name == "group_norm") return {{input({s.m, s.n}, dtype)}, {{"groups", 1}}};
  if (op.name == "group_norm_backward")
    return {{input({s.m, s.n}, dtype), input({s.m, s.n}, dtype)}, {{"groups", 1}}};
  if (op.name == "upsample") return {{input({s.batch, s.k, s.m, s.n}, dtype)}, {}};
  if (op.name == "pad_columns") return {{input({s.m, s.n}, dtype)}, {{"columns", s.k}}};
  Operands result;
  for (int i = 0; i < op.min_inputs; ++i) result.inputs.push_back(input({s.m, s.n}, dtype));
  if (op.name.starts_with("reduce_")) result.attributes = {{"shape", Shape{s.m, 1}}};
  if (op.name == "cat") {
    result.inputs.push_back(input({s.m, s.n}, dtype));
    result.attributes = {{"dim", 1}};
  }
  if (op.name == "cast")
    result.attributes = {{"dtype", dtype == DType::kFp32 ? DType::kBf16 : DType::kFp32}};
  if (op.name.starts_with("fused_")) result.attributes = {{"flops_per_element", 1}};
  return result;
}

/// Names as on the command line.
void check_sizes(std::string_view op, const KernelShape& s) {
  const auto at_least = [&](std::string_view name, int64_t size, int64_t least) {
    if (size < least)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {} must be at least {}, found {}", op, name, least, size));
  };
  for (const auto& [name, size] : {std::pair<std::string_view, int64_t>{"batch", s.batch},
                                   {"m", s.m},
                                   {"n", s.n},
                                   {"k", s.k},
                                   {"heads", s.heads},
                                   {"experts", s.experts},
                                   {"chosen", s.chosen},
                                   {"ranks", s.ranks},
                                   {"window_size", s.window_size},
                                   {"stride", s.stride},
                                   {"groups", s.groups}})
    at_least(name, size, 1);
  for (const auto& [name, size] : {std::pair<std::string_view, int64_t>{"kv_heads", s.kv_heads},
                                   {"window", s.window},
                                   {"skew", s.skew_percent},
                                   {"padding", s.padding.value_or(0)},
                                   {"window_width", s.window_width},
                                   {"image_width", s.image_width}})
    at_least(name, size, 0);
  constexpr int64_t kMostSkew = 300;  // a Zipf exponent of 3: one expert gets nearly all
  if (s.skew_percent > kMostSkew)
    throw Error(ErrorKind::kInput, fmt::format("{}: skew must be at most {}, found {}", op,
                                               kMostSkew, s.skew_percent));
  if (op.find("attention") != std::string_view::npos && s.kv_heads > 0 && s.heads % s.kv_heads != 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {} kv_heads do not divide {} heads", op, s.kv_heads, s.heads));
  if (op.starts_with("experts") && s.chosen > s.experts)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a token cannot go to {} of {} experts: chosen must be at most "
                            "experts",
                            op, s.chosen, s.experts));
}

}  // namespace

std::vector<Kernel> kernels_of_shape(std::string_view op, DType dtype, const KernelShape& shape) {
  const OpDef& definition = op_def(require_op(op));
  if (op == "quantized_linear" && shape.scheme == Scheme::kNone)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a scheme is needed: {}", op, join(scheme_names(), ", ")));
  check_sizes(op, shape);
  if (definition.work == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} launches no kernel: it is a view of its input", op));
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_segment("main", 1);
  Operands given = operands(builder, definition, dtype, shape);
  builder.add(op, std::move(given.inputs), std::string(op), std::move(given.attributes));
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes.front(), kernels);
  return kernels;
}

}  // namespace tilecast
