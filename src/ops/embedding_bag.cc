// Embedding bags of recommendation models: sums of rows of a table (Naumov et al. 2019).

#include <fmt/format.h>

#include "ops/embedding_work.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// embedding_bag: weight [rows, dim], ids [bags, pooling] → [bags, dim].
EmbeddingBag bag_sizes(const OpContext& context) {
  const Tensor& weight = context.input(0);
  const Tensor& ids = context.input(1);
  if (weight.shape.size() != 2 || ids.shape.size() != 2)
    context.fail(
        fmt::format("expected a table [rows, dim] and ids [bags, pooling], found {} and {}",
                    format_shape(weight.shape), format_shape(ids.shape)));
  if (ids.dtype != DType::kInt64 && ids.dtype != DType::kInt32)
    context.fail(fmt::format("expected whole-number ids, found {}", dtype_name(ids.dtype)));
  if (const std::string why = contradiction(context.attribute<Shape>("reuse"), weight.shape[0],
                                            element_count(ids.shape));
      !why.empty())
    context.fail(fmt::format("attribute 'reuse': {}", why));
  return {.bags = ids.shape[0],
          .pooling = ids.shape[1],
          .dim = weight.shape[1],
          .table_rows = weight.shape[0]};
}

std::vector<TensorSpec> infer_bag(const OpContext& context) {
  const EmbeddingBag sizes = bag_sizes(context);
  return {{.shape = {sizes.bags, sizes.dim}, .dtype = context.input(0).dtype}};
}

/// How the batch uses the rows of the table; without `reuse` all are equally popular.
TableAccess bag_access(const OpContext& context, double rows, double lookups) {
  const Shape& reuse = context.attribute<Shape>("reuse");
  return reuse.empty() ? uniform_access(rows, lookups)
                       : counted_access(reuse, rows, lookups, lookups);
}

void work_bag(const OpContext& context, std::vector<Kernel>& kernels) {
  const EmbeddingBag sizes = bag_sizes(context);
  const Tensor& out = context.output(0);
  const auto rows = static_cast<double>(sizes.table_rows);
  const double element_bytes = static_cast<double>(dtype_bits(out.dtype)) / 8;
  const TableWork work{
      .rows = rows,
      .dim = static_cast<double>(sizes.dim),
      .bags = static_cast<double>(sizes.bags),
      .element_bytes = element_bytes,
      .result_bytes = element_bytes,
      .access = bag_access(context, rows, static_cast<double>(sizes.bags * sizes.pooling))};
  kernels.push_back(tables_kernel({.tables = {&work, 1}, .dtype = out.dtype}));
}

/// Each row of a bag gets the bag's gradient; the rest is the dense backward of an embedding.
void backward_bag(GradientBuilder& g, const Node& node) {
  const TensorId weight = node.inputs[0], ids = node.inputs[1];
  if (!g.requires_grad(weight)) return;
  // A copy: adding nodes may move the tensors.
  const Shape bags = g.tensor(ids).shape, table = g.tensor(weight).shape;
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const TensorId single = g.op("view", {dy}, {{"shape", Shape{bags[0], 1, table[1]}}});
  const TensorId each = g.op("expand", {single}, {{"shape", Shape{bags[0], bags[1], table[1]}}});
  g.add_gradient(weight, g.op("embedding_backward", {each, ids}, {{"shape", table}}));
}

std::vector<SizeDef> bag_size_defs() {
  return {{.name = "bags", .doc = "sums that are taken", .other_names = {"m"}},
          {.name = "pooling", .doc = "rows of a sum"},
          {.name = "dim", .doc = "elements of a row", .other_names = {"n"}},
          {.name = "table_rows", .doc = "rows of the table", .other_names = {"k"}},
          reuse_size()};
}

Operands bag_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands{{b.input("w", {s["table_rows"], s["dim"]}, s.dtype()),
                     b.input("i", {s["bags"], s["pooling"]}, DType::kInt64)},
                    {}};
  if (ReuseCounts counts = reuse_of(s); !counts.empty())
    operands.attributes = {{"reuse", std::move(counts)}};
  return operands;
}

}  // namespace

std::vector<OpDef> embedding_bag_ops() {
  return {
      {.name = "embedding_bag",
       .doc = "sums of rows of a table, selected by ids",
       .aten = "aten::embedding_bag",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{.name = "reuse",
                       .doc = "rows that the batch uses once, twice, 4, 8, ... times; all other "
                              "lookups go to rows that are used once; empty: all rows alike",
                       .type = AttributeType::kIntegers,
                       .default_value = Shape{}}},
       .infer = infer_bag,
       .work = work_bag,
       .backward = backward_bag,
       .sizes = bag_size_defs(),
       .operands = bag_operands,
       .example = "w: fp32[1000, 64] i: int64[16, 8]"}};
}

}  // namespace tilecast
