#include "base/checked.h"
#include "ops/builder.h"
#include "passes/passes.h"

namespace tilecast {

// PyTorch's default on a GPU is the multi-tensor ("foreach") implementation: each arithmetic step
// is one launch over all parameters (torch/optim/adam.py and sgd.py, _multi_tensor_*, 2.1).
void add_optimizer(Graph& graph, Optimizer optimizer) {
  if (optimizer == Optimizer::kNone) return;
  const int64_t count = graph.parameter_count();
  GraphBuilder builder(graph);
  builder.set_phase(Phase::kOptimizer);
  builder.begin_segment("optimizer", 1);
  const auto flat = [&](const char* name, TensorKind kind) {
    return builder.tensor({.name = name, .shape = {count}, .dtype = DType::kFp32, .kind = kind});
  };
  const TensorId parameters = flat("parameters", TensorKind::kReference);
  const TensorId gradients = flat("gradients", TensorKind::kReference);
  const auto step = [&](const char* op, std::vector<TensorId> inputs) {
    const TensorId output = builder.op(op, std::move(inputs), "optimizer.step");
    graph.tensor(output).kind = TensorKind::kReference;  // these kernels work in place
    return output;
  };
  if (optimizer == Optimizer::kSgd) {
    step("add", {parameters, gradients});
    return;
  }
  const TensorId mean = flat("exp_avg", TensorKind::kOptimizer);
  const TensorId square = flat("exp_avg_sq", TensorKind::kOptimizer);
  if (optimizer == Optimizer::kAdamW) step("mul_scalar", {parameters});
  step("lerp", {mean, gradients});
  step("mul_scalar", {square});
  step("addcmul", {square, gradients});
  // The denominator is a temporary of the parameters' size.
  const TensorId root = builder.op("sqrt", {square}, "optimizer.step");
  step("div_scalar", {root});
  step("add_scalar", {root});
  step("addcdiv", {parameters, mean, root});
}

}  // namespace tilecast
