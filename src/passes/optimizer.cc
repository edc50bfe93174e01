#include <map>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {

namespace {

/// PyTorch's default implementation on GPUs, multi-tensor ("foreach"): each arithmetic step is one
/// launch over all parameters of one dtype (torch/optim/adam.py and sgd.py, _multi_tensor_*, 2.1;
/// torch/utils/_foreach_utils.py groups by device and dtype). States are created by
/// zeros_like(parameter), so they have the parameter's dtype.
class OptimizerSteps {
 public:
  OptimizerSteps(Graph& graph, DType dtype, int64_t count)
      : graph_(graph), builder_(graph), dtype_(dtype), count_(count) {
    builder_.set_phase(Phase::kOptimizer);
    parameters_ = flat("parameters", TensorKind::kReference);
    gradients_ = flat("gradients", TensorKind::kReference);
  }

  /// _amp_foreach_non_finite_check_and_unscale_ reads and writes each gradient once.
  void unscale() { step("mul_scalar", {gradients_}, "grad_scaler.unscale"); }

  void run(Optimizer optimizer) {
    if (optimizer == Optimizer::kSgd) {
      step("add", {parameters_, gradients_});
      return;
    }
    const TensorId mean = flat("exp_avg", TensorKind::kOptimizer);
    const TensorId square = flat("exp_avg_sq", TensorKind::kOptimizer);
    if (optimizer == Optimizer::kAdamW) step("mul_scalar", {parameters_});
    step("lerp", {mean, gradients_});
    step("mul_scalar", {square});
    step("addcmul", {square, gradients_});
    // The denominator is a temporary as large as the parameters.
    const TensorId root = builder_.op("sqrt", {square}, "optimizer.step");
    step("div_scalar", {root});
    step("add_scalar", {root});
    step("addcdiv", {parameters_, mean, root});
  }

 private:
  TensorId flat(const char* name, TensorKind kind) {
    return builder_.tensor({.name = name, .shape = {count_}, .dtype = dtype_, .kind = kind});
  }

  void step(const char* op, std::vector<TensorId> inputs, const char* name = "optimizer.step") {
    const TensorId output = builder_.op(op, std::move(inputs), name);
    graph_.tensor(output).kind = TensorKind::kReference;  // these kernels work in place
  }

  Graph& graph_;
  GraphBuilder builder_;
  DType dtype_;
  int64_t count_;
  TensorId parameters_, gradients_;
};

/// Number of parameters of each dtype, repetitions included, in the order of the dtypes.
std::map<DType, int64_t> parameters_by_dtype(const Graph& graph) {
  std::map<DType, int64_t> counts;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight) continue;
    int64_t& count = counts[tensor.dtype];
    count = checked_add(
        count, checked_multiply(element_count(tensor.shape), graph.repeat_of(tensor.segment)));
  }
  return counts;
}

}  // namespace

void add_optimizer(Graph& graph, const OptimizerStep& step) {
  if (step.optimizer == Optimizer::kNone) return;
  const std::map<DType, int64_t> counts = parameters_by_dtype(graph);
  GraphBuilder(graph).begin_segment("optimizer", 1);
  for (const auto& [dtype, count] : counts) {
    OptimizerSteps steps(graph, dtype, count);
    if (step.scaled_gradients) steps.unscale();
    steps.run(step.optimizer);
  }
  validate_if_debug(graph);
}

}  // namespace tilecast
