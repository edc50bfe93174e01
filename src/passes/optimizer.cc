#include <cmath>
#include <map>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "passes/main_gradients.h"
#include "passes/passes.h"

namespace tilecast {

namespace {

/// The step over one group of parameters. PyTorch's default implementation on GPUs is multi-tensor
/// ("foreach"): each arithmetic step is one launch over all parameters of one dtype
/// (torch/optim/adam.py and sgd.py, _multi_tensor_*, 2.1; torch/utils/_foreach_utils.py groups by
/// device and dtype). States are created by
/// zeros_like(parameter), so they have the parameter's dtype.
class OptimizerSteps {
 public:
  OptimizerSteps(Graph& graph, DType dtype, int64_t count)
      : graph_(graph), builder_(graph), dtype_(dtype), count_(count) {
    builder_.set_phase(Phase::kOptimizer);
    parameters_ = flat("parameters", TensorKind::kReference);
    gradients_ = flat("gradients", TensorKind::kReference);
  }

  /// Steps on fp32 copies: gradients that are not fp32 yet are converted first, the parameters
  /// after the step. Source: Megatron-LM, megatron/core/optimizer/optimizer.py
  /// (Float16OptimizerWithFloat16Params).
  void on_main_copies(Optimizer optimizer, OptimizerImpl impl) {
    const TensorId model_gradients = gradients_;
    const DType model = dtype_;
    dtype_ = DType::kFp32;
    if (has_fp32_gradients(MainParams::kFp32, model)) {
      gradients_ = flat("gradients", TensorKind::kReference);
    } else {
      gradients_ = flat("main_gradients", TensorKind::kOptimizer);
      convert(model_gradients, DType::kFp32);
    }
    parameters_ = flat("main_params", TensorKind::kOptimizer);
    run(optimizer, impl);
    convert(parameters_, model);
  }

  /// _amp_foreach_non_finite_check_and_unscale_ reads and writes each gradient once.
  void unscale() { step("mul_scalar", {gradients_}, "grad_scaler.unscale"); }

  void run(Optimizer optimizer, OptimizerImpl impl) {
    if (optimizer == Optimizer::kSgd) {
      step("add", {parameters_, gradients_});
      return;
    }
    const TensorId mean = flat("exp_avg", TensorKind::kOptimizer);
    const TensorId square = flat("exp_avg_sq", TensorKind::kOptimizer);
    if (impl == OptimizerImpl::kFused) return fused({parameters_, gradients_, mean, square});
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
  /// torch/optim/adam.py, _fused_adam: one kernel reads all four and writes all but the gradients.
  /// FLOPs an element: two moving averages (3 and 4), bias corrections and root (5), update (4).
  void fused(const std::vector<TensorId>& inputs) {
    constexpr int64_t kFlops = 16;
    step("fused_pointwise", inputs, "optimizer.step", {{"flops_per_element", kFlops}});
    Node& node = graph_.nodes.back();
    for (int i = 0; i < 2; ++i) {
      Tensor written = graph_.tensor(node.outputs[0]);
      written.storage = -1;
      node.outputs.push_back(builder_.tensor(std::move(written)));
    }
  }

  /// Writes into tensors that exist already.
  void convert(TensorId from, DType to) {
    step("cast", {from}, "optimizer.convert", {{"dtype", to}});
  }

  TensorId flat(const char* name, TensorKind kind) {
    return builder_.tensor({.name = name,
                            .shape = {count_},
                            .dtype = dtype_,
                            .kind = kind,
                            .segment = builder_.current_segment()});
  }

  void step(const char* op, std::vector<TensorId> inputs, const char* name = "optimizer.step",
            std::vector<Attribute> attributes = {}) {
    const TensorId output = builder_.op(op, std::move(inputs), name, std::move(attributes));
    graph_.tensor(output).kind = TensorKind::kReference;  // these kernels work in place
  }

  Graph& graph_;
  GraphBuilder builder_;
  DType dtype_;
  int64_t count_;
  TensorId parameters_, gradients_;
};

/// Parameters that are updated together.
struct Group {
  DType dtype;
  int64_t elements = 0;  ///< of one update
  int64_t updates = 1;   ///< one after the other
};

/// All parameters of a dtype are updated together, in the order of the dtypes; in a loop, each is
/// updated alone, parameters of one size next to each other.
std::vector<Group> groups_of(const Graph& graph, const OptimizerStep& step) {
  std::map<std::pair<DType, int64_t>, int64_t> counts;  // of updates, or of elements
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kWeight || tensor.frozen) continue;
    // Divided by all shards below.
    const bool fewer = step.shards > 1 && is_expert_weight(tensor);
    const auto own = static_cast<double>(element_count(tensor.shape));
    const int64_t elements =
        fewer ? std::llround(own * step.expert_ranks) : element_count(tensor.shape);
    const int64_t repeat = graph.repeat_of(tensor.segment);
    const bool loop = step.impl == OptimizerImpl::kForLoop;
    int64_t& count = counts[{tensor.dtype, loop ? elements : 0}];
    count = checked_add(count, loop ? repeat : checked_multiply(elements, repeat));
  }
  std::vector<Group> groups;
  for (const auto& [key, count] : counts)
    groups.push_back(step.impl == OptimizerImpl::kForLoop ? Group{key.first, key.second, count}
                                                          : Group{key.first, count, 1});
  return groups;
}

}  // namespace

void accumulate_in_fp32(Graph& graph) {
  std::vector<bool> wide(graph.tensors.size(), false);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& tensor = graph.tensors[i];
    if (tensor.kind != TensorKind::kGradient || tensor.dtype != DType::kBf16) continue;
    tensor.dtype = DType::kFp32;
    wide[i] = true;
  }
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || !wide[static_cast<size_t>(node.inputs[0])]) continue;
    for (const TensorId id : node.outputs) graph.tensor(id).dtype = DType::kFp32;
  }
  validate_if_debug(graph);
}

void add_optimizer(Graph& graph, const OptimizerStep& step) {
  if (step.optimizer == Optimizer::kNone) return;
  const std::vector<Group> groups = groups_of(graph, step);
  GraphBuilder builder(graph);
  if (step.impl != OptimizerImpl::kForLoop) builder.begin_segment("optimizer", 1);
  for (Group group : groups) {
    const bool main = step.main_params == MainParams::kFp32 && dtype_bits(group.dtype) < 32;
    group.elements = ceil_divide(group.elements, step.shards);
    if (step.impl == OptimizerImpl::kForLoop) builder.begin_segment("optimizer", group.updates);
    OptimizerSteps steps(graph, group.dtype, group.elements);
    if (step.scaled_gradients) steps.unscale();
    if (main) {
      steps.on_main_copies(step.optimizer, step.impl);
    } else {
      steps.run(step.optimizer, step.impl);
    }
  }
  validate_if_debug(graph);
}

}  // namespace tilecast
