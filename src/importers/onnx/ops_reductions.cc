// Reductions.

#include <algorithm>
#include <numeric>

#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

/// The axes; without any, all dimensions, or none with `noop_with_empty_axes`.
std::optional<Shape> reduced_axes(const OnnxCall& call) {
  const size_t rank = call.shape(0).size();
  if (std::optional<Shape> axes = call.axes(1, rank)) return axes;
  if (call.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  Shape all(rank);
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

/// A reduction with the functions that are computed before and after it.
struct Steps {
  std::string_view op, before, reduction, after;
};

constexpr Steps kSteps[] = {{"ReduceMean", "", "reduce_mean", ""},
                            {"ReduceSum", "", "reduce_sum", ""},
                            {"ReduceMax", "", "reduce_extreme", ""},
                            {"ReduceMin", "", "reduce_extreme", ""},
                            {"ReduceProd", "", "reduce_prod", ""},
                            {"ReduceL1", "", "reduce_sum", ""},  // torch.linalg.vector_norm,
                            {"ReduceL2", "", "reduce_sum", ""},  // one kernel
                            {"ReduceSumSquare", "integer_pow", "reduce_sum", ""},
                            {"ReduceLogSum", "", "reduce_sum", "log"},
                            {"ReduceLogSumExp", "exp", "reduce_sum", "log"}};

void translate_reduce(OnnxCall& call) {
  const Steps& steps = *std::find_if(std::begin(kSteps), std::end(kSteps),
                                     [&](const Steps& s) { return s.op == call.node().op; });
  TensorId x = call.tensor(0);
  if (!steps.before.empty()) x = call.op(steps.before, {x});
  if (const std::optional<Shape> axes = reduced_axes(call); axes && !axes->empty())
    x = call.reduce(steps.reduction, x, *axes, call.integer("keepdims", 1) != 0);
  if (!steps.after.empty()) x = call.op(steps.after, {x});
  call.set(0, x);
}

void translate_argmax(OnnxCall& call) {
  const auto axis = static_cast<int64_t>(call.axis(call.integer("axis", 0), call.shape(0).size()));
  call.set(0, call.reduce("argmax", call.tensor(0), {axis}, call.integer("keepdims", 1) != 0));
}

}  // namespace

std::vector<OnnxOp> onnx_reduction_ops() {
  std::vector<OnnxOp> ops;
  for (const Steps& steps : kSteps) ops.push_back({steps.op, translate_reduce});
  ops.push_back({"ArgMax", translate_argmax});
  ops.push_back({"ArgMin", translate_argmax});
  return ops;
}

}  // namespace tilecast
