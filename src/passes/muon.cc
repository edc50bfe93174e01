// Muon (Keller Jordan 2024): momentum whose singular values a Newton-Schulz iteration moves to one.

#include <utility>

#include "passes/optimizer_steps.h"

namespace tilecast {

/// torch/optim/_muon.py, _single_tensor_muon (2.13): the only implementation, one matrix after the
/// other; with weight decay and Nesterov's momentum, which are its defaults.
void OptimizerSteps::muon() {
  const TensorId momentum = like("momentum_buffer", TensorKind::kOptimizer);
  step("lerp", {momentum, gradients_});
  const TensorId update = make("lerp", {gradients_, momentum});
  const TensorId x = orthogonal(update);
  step("mul_scalar", {parameters_});
  step("add", {parameters_, x});
}

/// _zeropower_via_newtonschulz: five iterations in bf16 on the matrix, or on its transpose where it
/// has more rows than columns, so that the inner products X Xᵀ are of the smaller side. Old values
/// live until variables get new ones.
TensorId OptimizerSteps::orthogonal(TensorId update) {
  constexpr int kIterations = 5;
  const int64_t rows = shape_[shape_.size() - 2], columns = shape_.back();
  bool transposed = rows > columns;
  TensorId x = update;
  if (dtype_ != DType::kBf16) x = make("cast", {update}, {{"dtype", DType::kBf16}});
  Shape one(shape_.size(), 1);
  if (shape_.size() > 2) one[0] = shape_[0];
  const TensorId norm = make("reduce_sum", {x}, {{"shape", one}});
  step("div", {x, make("maximum_scalar", {norm})});
  TensorId gram = -1, sum = -1;
  for (int i = 0; i < kIterations; ++i) {
    const TensorId new_gram = product(x, x, transposed ? "transpose_a" : "transpose_b");
    if (gram >= 0) hold({gram});
    gram = new_gram;
    const TensorId new_sum = make("addmm", {gram, gram, gram});
    if (sum >= 0) hold({sum});
    sum = new_sum;
    TensorId old = x;
    if (transposed) {
      Shape shape = shape_;
      std::swap(shape.back(), shape[shape.size() - 2]);
      old = make("alias", {x}, {{"shape", shape}, {"dense", int64_t{0}}});
    }
    x = make("addmm", {old, sum, old});
    transposed = false;
  }
  hold({update, gram, sum});
  return rows > columns ? make("alias", {x}, {{"shape", shape_}, {"dense", int64_t{0}}}) : x;
}

TensorId OptimizerSteps::product(TensorId a, TensorId b, const char* transposed) {
  return make(shape_.size() > 2 ? "matmul" : "gemm", {a, b}, {{transposed, int64_t{1}}});
}

}  // namespace tilecast
