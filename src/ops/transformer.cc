// Further fused kernels of a transformer layer.

#include <fmt/format.h>

#include <initializer_list>

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

/// rotary: rotary embedding of queries and keys in one kernel, or step by step.
std::vector<TensorSpec> infer_rotary(const OpContext& context) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < context.input_count(); ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  return specs;
}

/// Elements that a kernel reads and writes for each of the tensor's.
struct Passes {
  double read, written;
};

void add_passes(const Tensor& x, std::initializer_list<Passes> all, std::vector<Kernel>& kernels) {
  const int64_t elements = element_count(x.shape);
  const int64_t bytes = tensor_bytes(x);
  const auto part = [bytes](double share) {
    return static_cast<int64_t>(share * static_cast<double>(bytes));
  };
  for (const auto& [read, written] : all)
    kernels.push_back({.shape = Stream{.elements = elements},
                       .dtype = x.dtype,
                       .flops = elements,
                       .read_bytes = part(read),
                       .write_bytes = part(written)});
}

/// megatron-core 0.16, rope_utils.py, _apply_rotary_pos_emb_bshd. Positions that are all rotated
/// leave an empty rest, which is sliced off and put back by a copy.
void add_rotary_steps(const Tensor& x, bool reverse, std::vector<Kernel>& kernels) {
  if (!reverse) {
    // Of the angles, in fp32: the function, times the scale, cast.
    const Shape& shape = x.shape;
    const Shape angles = shape.size() < 2 ? shape : Shape(shape.end() - 2, shape.end());
    const Tensor table{.shape = angles, .dtype = DType::kFp32};
    add_passes(table, {{1, 1}, {1, 1}, {1, 0.5}, {1, 1}, {1, 1}, {1, 0.5}}, kernels);
    // Times the cosines; half negated and both put together, times the sines; the sum; the copy.
    add_passes(x, {{1, 1}, {0.5, 0.5}, {1, 1}, {1, 1}, {2, 1}, {1, 1}}, kernels);
    return;
  }
  // Both products; half negated and both put together; their sum; the slice's gradient in zeros,
  // the rest's zeros, and the sum of both.
  add_passes(x, {{1, 1}, {1, 1}, {0.5, 0.5}, {1, 1}, {2, 1}, {0, 1}, {1, 1}, {0, 1}, {2, 1}},
             kernels);
}

void work_rotary(const OpContext& context, std::vector<Kernel>& kernels) {
  if (context.integer("steps") != 0) {
    for (size_t i = 0; i < context.input_count(); ++i)
      add_rotary_steps(context.input(i), context.integer("reverse") != 0, kernels);
    return;
  }
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
  const auto steps = attribute<int64_t>(node, "steps");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (g.requires_grad(node.inputs[i]) && g.gradient(node.outputs[i]) >= 0)
      g.add_gradient(node.inputs[i], g.op("rotary", {g.gradient(node.outputs[i])},
                                          {{"steps", steps}, {"reverse", steps}}));
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
       .attributes = {flag_attribute("steps", "1: step by step, cosines and sines too"),
                      flag_attribute("reverse", "1: the steps of the gradient")},
       .infer = infer_rotary,
       .work = work_rotary,
       .backward = backward_rotary,
       .example = "q: bf16[2, 128, 512] k: bf16[2, 128, 128]"},
  };
}

}  // namespace tilecast
