// Parts of DeepSeek-V4 around its attention: keys for several tokens each, an output projection in
// groups, and hyper-connections (several residual streams). Sources: transformers 5.23,
// modeling_deepseek_v4.py.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/decompose.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

void expect_one(const OpContext& context, bool fits, const char* what) {
  if (!fits)
    context.fail(fmt::format("expected {}, found {}", what, format_shape(context.input(0).shape)));
}

AttributeDef number(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .default_value = int64_t{1}, .min = 1};
}

// compress: kv and gate [.., s, width] → one vector of `columns` for every `ratio` tokens.
std::vector<TensorSpec> infer_compress(const OpContext& context) {
  Shape shape = context.input(0).shape;
  expect_one(context, shape.size() > 1 && context.input(1).shape == shape,
             "kv and gate [.., tokens, width] of one shape");
  shape.back() = context.integer("columns");
  int64_t& tokens = shape[shape.size() - 2];
  tokens = ceil_divide(tokens, context.integer("ratio"));
  return {{.shape = std::move(shape), .dtype = context.input(0).dtype}};
}

/// Softmax of the gate over the tokens of an entry (5 FLOPs) and the weighted sum (2).
void work_compress(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.shape = Stream{.elements = element_count(context.output(0).shape)},
                .dtype = context.input(0).dtype};
  kernel.flops = checked_multiply(7, element_count(context.input(0).shape));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

std::vector<TensorSpec> infer_expand_streams(const OpContext& context) {
  Shape shape = context.input(0).shape;
  shape.back() = checked_multiply(shape.back(), context.integer("streams"));
  return {{.shape = std::move(shape), .dtype = context.input(0).dtype}};
}

/// merge_streams: streams [.., n · hidden] and their weights → [.., hidden].
std::vector<TensorSpec> infer_merge_streams(const OpContext& context) {
  Shape shape = context.input(0).shape;
  const int64_t streams = context.integer("streams");
  expect_one(context, !shape.empty() && shape.back() % streams == 0, "rows of whole streams");
  shape.back() /= streams;
  return {{.shape = std::move(shape), .dtype = context.input(0).dtype}};
}

/// One kernel, as in serving software: `per_element` FLOPs for each element of the streams.
template <int64_t kPerElement>
void work_streams(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.shape = Stream{.elements = element_count(context.output(0).shape)},
                .dtype = context.input(0).dtype};
  kernel.flops = checked_multiply(kPerElement, element_count(context.input(0).shape));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

/// update_streams: each stream is a weighted sum of all streams (n products) and of the new output.
void work_update_streams(const OpContext& context, std::vector<Kernel>& kernels) {
  work_streams<1>(context, kernels);
  kernels.back().flops =
      checked_multiply(2 * (context.integer("streams") + 1), element_count(context.input(0).shape));
}

// grouped_linear: x [.., groups · k], weight [groups · n, k] → [.., groups · n].
std::vector<TensorSpec> infer_grouped_linear(const OpContext& context) {
  Shape shape = context.input(0).shape;
  const Shape& weight = context.input(1).shape;
  const int64_t groups = context.integer("groups");
  expect_one(context,
             !shape.empty() && weight.size() == 2 && weight[0] % groups == 0 &&
                 shape.back() == checked_multiply(groups, weight[1]),
             "x [.., groups · k] and a weight [groups · n, k]");
  shape.back() = weight[0];
  return {{.shape = std::move(shape), .dtype = context.input(0).dtype}};
}

void work_grouped_linear(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& x = context.input(0).shape;
  const Shape& weight = context.input(1).shape;
  const int64_t groups = context.integer("groups");
  const Gemm gemm{.batch = groups,
                  .m = element_count(x) / x.back(),
                  .n = weight[0] / groups,
                  .k = weight[1],
                  .batched = true};
  Kernel kernel{.shape = gemm, .dtype = context.input(0).dtype};
  kernel.flops = checked_product({2, gemm.m, weight[0], weight[1]});
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

Placement shard_grouped_linear(ShardedNode& n) {
  if (n.splits[1] == nullptr) return shard_replicated(n);
  const int64_t groups = attribute<int64_t>(n.whole, "groups");
  n.node.set_attribute("groups", groups * n.shape(1)[0] / n.shape_before(1)[0]);
  return {
      .kind = Placement::Kind::kSharded, .dim = n.shape_before(0).size() - 1, .split = n.splits[1]};
}

Operands three_inputs(GraphBuilder& b, const GivenSizes& s) {
  const int64_t rows = s["rows"], columns = s["columns"];
  return {{b.input("x", {rows, columns}, s.dtype()), b.input("y", {rows, columns}, s.dtype()),
           b.input("w", {rows, 1}, s.dtype())},
          {}};
}

Operands two_inputs(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = three_inputs(b, s);
  operands.inputs.pop_back();
  operands.attributes = {{"columns", s["columns"]}};
  return operands;
}

}  // namespace

void refuse_gradient(GradientBuilder& g, const Node& node) {
  OpContext{g.graph(), node}.fail(
      "its gradient is not forecast: training of models with compressed attention or several "
      "residual streams (DeepSeek-V4) is not supported; forecast inference");
}

std::vector<OpDef> stream_ops() {
  const AttributeDef ratio = number("ratio", "tokens per key");
  const AttributeDef streams = number("streams", "residual streams");
  return {
      {.name = "grouped_linear",
       .doc = "a linear layer for each group of columns, in one batched product",
       .aten = "aten::bmm",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {number("groups", "of columns")},
       .infer = infer_grouped_linear,
       .work = work_grouped_linear,
       .backward = refuse_gradient,
       .autocast = AutocastClass::kLowPrecision,
       .shard = shard_grouped_linear,
       .example = "x: bf16[2, 128, 256] w: bf16[64, 64] {groups=4}"},
      {.name = "compress",
       .doc = "one vector for every `ratio` tokens: their sum, weighted by the softmax of a gate",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {ratio, {.name = "columns", .doc = "of a vector", .required = true, .min = 1}},
       .infer = infer_compress,
       .work = work_compress,
       .backward = refuse_gradient,
       .operands = two_inputs,
       .example = "kv: bf16[2, 128, 64] gate: bf16[2, 128, 64] {ratio=4, columns=64}"},
      {.name = "expand_streams",
       .doc = "copies rows to several residual streams",
       .attributes = {streams},
       .infer = infer_expand_streams,
       .work = work_streams<0>,
       .backward = refuse_gradient,
       .example = "x: bf16[2, 128, 64] {streams=4}"},
      {.name = "merge_streams",
       .doc = "weighted sum of residual streams (hyper-connections)",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {streams},
       .infer = infer_merge_streams,
       .work = work_streams<2>,
       .backward = refuse_gradient,
       .operands =
           [](GraphBuilder& b, const GivenSizes& s) {
             Operands operands = two_inputs(b, s);
             operands.attributes.clear();
             return operands;
           },
       .example = "x: bf16[2, 128, 256] w: bf16[2, 128, 4] {streams=4}"},
      {.name = "update_streams",
       .doc = "mixes residual streams and adds a layer's output to each (hyper-connections)",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {streams},
       .infer = infer_same,
       .work = work_update_streams,
       .operands = three_inputs,
       .decompose = decompose_update_streams,
       .example = "x: bf16[2, 128, 256] y: bf16[2, 128, 64] w: bf16[2, 128, 24] {streams=4}"},
  };
}

}  // namespace tilecast
