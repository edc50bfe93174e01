// Further fused kernels of a transformer layer.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// So many rows of elements in all, where they are equally long.
Stream streamed_rows(int64_t elements, int64_t rows) {
  if (rows <= 0 || elements % rows != 0) return {.elements = elements};
  return {.rows = rows, .elements = elements / rows};
}

/// append_cache: writes new tokens to the end of the cache.
std::vector<TensorSpec> infer_append_cache(const OpContext& context) {
  return {{.shape = context.input(0).shape, .dtype = context.input(0).dtype, .view = true}};
}

void work_append_cache(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.dtype = context.input(0).dtype};
  int64_t elements = 0;
  for (size_t i = 1; i < context.input_count(); ++i) {
    const Tensor& added = context.input(i);
    elements = checked_add(elements, element_count(added.shape));
    kernel.read_bytes = checked_add(kernel.read_bytes, tensor_bytes(added));
    Tensor stored = added;
    stored.dtype = context.input(0).dtype;
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(stored));
  }
  kernel.shape = Stream{.elements = elements};
  kernels.push_back(kernel);
}

/// rotary: rotary embedding of queries and keys in one kernel.
std::vector<TensorSpec> infer_rotary(const OpContext& context) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < context.input_count(); ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  return specs;
}

void work_rotary(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.dtype = context.input(0).dtype};
  const Shape& shape = context.input(0).shape;
  int64_t elements = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    elements = checked_add(elements, element_count(context.input(i).shape));
    kernel.read_bytes = checked_add(kernel.read_bytes, tensor_bytes(context.input(i)));
  }
  kernel.shape = streamed_rows(
      elements, shape.empty() || shape.back() == 0 ? 1 : element_count(shape) / shape.back());
  kernel.write_bytes = kernel.read_bytes;
  kernel.flops = checked_multiply(elements, 3);  // x cos + rotated x sin
  kernels.push_back(kernel);
}

/// The same rotation the other way round.
void backward_rotary(GradientBuilder& g, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (g.requires_grad(node.inputs[i]) && g.gradient(node.outputs[i]) >= 0)
      g.add_gradient(node.inputs[i], g.op("rotary", {g.gradient(node.outputs[i])}));
  }
}

/// gated_activation: act(gate) * up in one kernel, for rows that hold gate and up side by side.
std::vector<TensorSpec> infer_gated_activation(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  if (spec.shape.empty() || spec.shape.back() % 2 != 0)
    context.fail(fmt::format("expected rows of an even length, found {}",
                             format_shape(context.input(0).shape)));
  spec.shape.back() /= 2;
  return {spec};
}

void work_gated_activation(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t elements = element_count(context.output(0).shape);
  const int64_t columns = context.output(0).shape.back();
  Kernel kernel{.shape = streamed_rows(elements, columns == 0 ? 0 : elements / columns),
                .dtype = context.input(0).dtype};
  kernel.flops = checked_multiply(elements, context.integer("flops_per_element"));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

std::vector<SizeDef> append_cache_sizes() {
  return {{.name = "batch", .doc = "sequences"},
          {.name = "tokens", .doc = "new tokens per sequence", .other_names = {"m"}},
          {.name = "keys", .doc = "tokens per sequence in the cache", .other_names = {"n"}},
          {.name = "width", .doc = "elements per token in the cache", .other_names = {"k"}},
          kv_dtype_size("dtype of the cache", "as the tokens")};
}

Operands append_cache_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("cache", {s["batch"], s["keys"], s["width"]}, s.dtype_or("kv_dtype", s.dtype())),
           b.input("x", {s["batch"], s["tokens"], s["width"]}, s.dtype())},
          {}};
}

Operands gated_activation_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], checked_multiply(2, s["columns"])}, s.dtype())}, {}};
}

OpDef gated_activation_def(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .aten = "",
          .onnx = "",
          .attributes = {{.name = "flops_per_element",
                          .doc = "of the activation and the product",
                          // SwiGLU: negate, exp, add, divide; times the other half
                          .default_value = int64_t{5}}},
          .infer = infer_gated_activation,
          .work = work_gated_activation,
          .operands = gated_activation_operands,
          .example = "x: bf16[64, 512]"};
}

}  // namespace

std::vector<OpDef> transformer_ops() {
  return {
      {.name = "append_cache",
       .doc = "writes new keys and values into a cache",
       .aten = "",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_append_cache,
       .work = work_append_cache,
       .sizes = append_cache_sizes(),
       .operands = append_cache_operands,
       .example = "cache: bf16[2, 512, 256] k: bf16[2, 1, 128] v: bf16[2, 1, 128]"},
      gated_activation_def("gated_activation",
                           "activation of the first half of each row times the second half "
                           "(SwiGLU, GeGLU)"),
      gated_activation_def("compiled_gated_activation",
                           "gated_activation as a compiler writes it: a pointwise kernel, without "
                           "a block for each row"),
      {.name = "rotary",
       .doc = "rotary position embedding of all inputs in one kernel",
       .aten = "",
       .onnx = "RotaryEmbedding",
       .min_inputs = 1,
       .max_inputs = 2,
       .infer = infer_rotary,
       .work = work_rotary,
       .backward = backward_rotary,
       .example = "q: bf16[2, 128, 512] k: bf16[2, 128, 128]"},
  };
}

}  // namespace tilecast
