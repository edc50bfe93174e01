#include "passes/optimizer_steps.h"

#include "ops/adam.h"
#include "passes/main_gradients.h"

namespace tilecast {
namespace {

constexpr const char* kStep = "optimizer.step";

}  // namespace

OptimizerSteps::OptimizerSteps(Graph& graph, DType dtype, Shape shape)
    : graph_(graph), builder_(graph), dtype_(dtype), shape_(std::move(shape)) {
  builder_.set_phase(Phase::kOptimizer);
  parameters_ = like("parameters", TensorKind::kReference);
  gradients_ = like("gradients", TensorKind::kReference);
}

/// Gradients that are not fp32 yet are converted first, the parameters after the step. Source:
/// Megatron-LM, megatron/core/optimizer/optimizer.py (Float16OptimizerWithFloat16Params).
void OptimizerSteps::on_main_copies(Optimizer optimizer, OptimizerImpl impl) {
  const TensorId model_gradients = gradients_;
  const DType model = dtype_;
  dtype_ = DType::kFp32;
  if (has_fp32_gradients(MainParams::kFp32, model)) {
    gradients_ = like("gradients", TensorKind::kReference);
  } else {
    gradients_ = like("main_gradients", TensorKind::kOptimizer);
    convert(model_gradients, DType::kFp32);
  }
  parameters_ = like("main_params", TensorKind::kOptimizer);
  run(optimizer, impl);
  convert(parameters_, model);
}

/// _amp_foreach_non_finite_check_and_unscale_ reads and writes each gradient once.
void OptimizerSteps::unscale() { step("mul_scalar", {gradients_}, "grad_scaler.unscale"); }

void OptimizerSteps::run(Optimizer optimizer, OptimizerImpl impl) {
  switch (optimizer) {
    case Optimizer::kNone:
      return;
    case Optimizer::kSgd:
      return step("add", {parameters_, gradients_});
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return adam(optimizer, impl);
    case Optimizer::kMuon:
      return muon();
    case Optimizer::kAdafactor:
      return adafactor();
    case Optimizer::kAdam8Bit:
    case Optimizer::kLion:
      return bitsandbytes(optimizer);
  }
}

/// Megatron-LM's HybridDeviceOptimizer (core/optimizer/cpu_offloading) and DeepSpeed's CPUAdam: the
/// host has the gradients in the dtype in which they are accumulated, all else in fp32.
void OptimizerSteps::on_host(MainParams main_params) {
  const DType model = dtype_;
  if (has_fp32_gradients(main_params, model)) {
    dtype_ = DType::kFp32;
    gradients_ = like("gradients", TensorKind::kReference);
  }
  builder_.op("host_copy", {gradients_}, "optimizer.gradients_to_host");
  graph_.tensor(graph_.nodes.back().outputs[0]).kind = TensorKind::kReference;
  const TensorId gradients = like("host_gradients", TensorKind::kHost);
  dtype_ = DType::kFp32;
  std::vector<TensorId> inputs = {like("host_params", TensorKind::kHost), gradients,
                                  like("exp_avg", TensorKind::kHost),
                                  like("exp_avg_sq", TensorKind::kHost)};
  const std::vector<TensorId> written =
      builder_.add("host_adam", std::move(inputs), "optimizer.host_step", {{"dtype", model}});
  for (const TensorId id : written) graph_.tensor(id).kind = TensorKind::kReference;
  step("host_copy", {written.back()}, "optimizer.params_to_gpu");
}

/// PyTorch's default implementation on GPUs is multi-tensor ("foreach"): each arithmetic step is
/// one launch over all parameters of one dtype (torch/optim/adam.py and sgd.py, _multi_tensor_*,
/// 2.1; torch/utils/_foreach_utils.py groups by device and dtype). States are created by
/// zeros_like(parameter), so they have the parameter's dtype.
void OptimizerSteps::adam(Optimizer optimizer, OptimizerImpl impl) {
  const TensorId mean = like("exp_avg", TensorKind::kOptimizer);
  const TensorId square = like("exp_avg_sq", TensorKind::kOptimizer);
  if (impl == OptimizerImpl::kFused) return fused_adam({parameters_, gradients_, mean, square});
  if (optimizer == Optimizer::kAdamW) step("mul_scalar", {parameters_});
  step("lerp", {mean, gradients_});
  step("mul_scalar", {square});
  step("addcmul", {square, gradients_});
  // The denominator is a temporary as large as the parameters.
  const TensorId root = make("sqrt", {square});
  step("div_scalar", {root});
  step("add_scalar", {root});
  step("addcdiv", {parameters_, mean, root});
}

/// torch/optim/adam.py, _fused_adam: one kernel reads all four and writes all but the gradients.
void OptimizerSteps::fused_adam(const std::vector<TensorId>& inputs) {
  step("fused_pointwise", inputs, kStep, {{"flops_per_element", kAdamFlops}});
  Node& node = graph_.nodes.back();
  for (int i = 0; i < 2; ++i) {
    Tensor written = graph_.tensor(node.outputs[0]);
    written.storage = -1;
    node.outputs.push_back(builder_.tensor(std::move(written)));
  }
}

TensorId OptimizerSteps::tensor(const char* name, TensorKind kind, Shape shape, DType dtype) {
  return builder_.tensor({.name = name,
                          .shape = std::move(shape),
                          .dtype = dtype,
                          .kind = kind,
                          .segment = builder_.current_segment()});
}

TensorId OptimizerSteps::like(const char* name, TensorKind kind) {
  return tensor(name, kind, shape_, dtype_);
}

void OptimizerSteps::convert(TensorId from, DType to) {
  step("cast", {from}, "optimizer.convert", {{"dtype", to}});
}

void OptimizerSteps::step(const char* op, std::vector<TensorId> inputs, const char* name,
                          std::vector<Attribute> attributes) {
  const TensorId output = builder_.op(op, std::move(inputs), name, std::move(attributes));
  graph_.tensor(output).kind = TensorKind::kReference;
}

TensorId OptimizerSteps::make(const char* op, std::vector<TensorId> inputs,
                              std::vector<Attribute> attributes) {
  return builder_.op(op, std::move(inputs), kStep, std::move(attributes));
}

void OptimizerSteps::hold(std::vector<TensorId> ids) { make("hold", std::move(ids)); }

}  // namespace tilecast
