#include "ops/shapes.h"

#include <fmt/format.h>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Operands {
  std::vector<TensorId> inputs;
  std::vector<Attribute> attributes;
};

Operands operands(GraphBuilder& b, const OpDef& op, DType dtype, const KernelShape& s) {
  const auto input = [&](Shape shape, DType type) { return b.input("x", std::move(shape), type); };
  if (op.name == "linear")
    return {{input({s.m, s.k}, dtype), input({s.n, s.k}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "matmul")
    return {{input({s.batch, s.m, s.k}, dtype), input({s.batch, s.k, s.n}, dtype)}, {}};
  if (op.name == "gemm") return {{input({s.m, s.k}, dtype), input({s.k, s.n}, dtype)}, {}};
  if (op.name == "layer_norm")
    return {{input({s.m, s.n}, dtype), input({s.n}, dtype), input({s.n}, dtype)}, {}};
  if (op.name == "layer_norm_backward" || op.name == "layer_norm_weight_backward")
    return {{input({s.m, s.n}, dtype), input({s.m, s.n}, dtype), input({s.m}, DType::kFp32),
             input({s.m}, DType::kFp32)},
            {}};
  if (op.name == "embedding") return {{input({s.k, s.n}, dtype), input({s.m}, DType::kInt64)}, {}};
  if (op.name == "embedding_backward")
    return {{input({s.m, s.n}, dtype), input({s.m}, DType::kInt64)}, {{"shape", {s.k, s.n}}}};
  if (op.name == "where") return {{input({s.m, s.n}, DType::kBool), input({s.m, s.n}, dtype)}, {}};
  if (op.name == "gather_rows") return {{input({s.m, s.n}, dtype)}, {{"rows", {s.m}}}};
  Operands result;
  for (int i = 0; i < op.min_inputs; ++i) result.inputs.push_back(input({s.m, s.n}, dtype));
  if (op.name.starts_with("reduce_")) result.attributes = {{"shape", {s.m, 1}}};
  if (op.name == "cat") {
    result.inputs.push_back(input({s.m, s.n}, dtype));
    result.attributes = {{"dim", {1}}};
  }
  if (op.name == "cast")
    result.attributes = {
        {"dtype", {static_cast<int64_t>(dtype == DType::kFp32 ? DType::kBf16 : DType::kFp32)}}};
  if (op.name.starts_with("fused_")) result.attributes = {{"flops_per_element", {1}}};
  return result;
}

}  // namespace

std::vector<Kernel> kernels_of_shape(std::string_view op, DType dtype, const KernelShape& shape) {
  const OpDef& definition = op_def(require_op(op));
  for (int64_t size : {shape.batch, shape.m, shape.n, shape.k}) {
    if (size < 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: sizes must be at least 1, found {}", op, size));
  }
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
