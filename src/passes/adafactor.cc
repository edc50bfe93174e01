// Adafactor (Shazeer and Stern 2018): second moments of matrices by row and by column.

#include <fmt/format.h>

#include "passes/optimizer_steps.h"

namespace tilecast {

/// torch/optim/_adafactor.py, _single_tensor_adafactor (2.13), which it takes unless `foreach` is
/// asked for; without weight decay, its default. The host reads two norms of each parameter.
void OptimizerSteps::adafactor() {
  TensorId before = -1;
  if (elements_before_ > 0)
    before = make("allocate", {},
                  {{"outputs", fmt::format("{}[{}]", dtype_name(dtype_), elements_before_)}});
  read_norm(parameters_);
  const TensorId update = shape_.size() > 1 ? variance_of_matrix() : variance_of_vector();
  step("maximum_scalar", {update});
  if (before >= 0) hold({before});
  step("rsqrt", {update});
  step("mul", {update, gradients_});
  read_norm(update);
  step("add", {parameters_, update});
}

TensorId OptimizerSteps::variance_of_vector() {
  const TensorId variance = like("variance", TensorKind::kOptimizer);
  const TensorId squared = make("mul", {gradients_, gradients_});
  step("lerp", {variance, squared});
  const TensorId estimate = make("copy", {variance});
  hold({squared});
  return estimate;
}

/// The product of the two factors is as large as the parameter.
TensorId OptimizerSteps::variance_of_matrix() {
  const size_t last = shape_.size() - 1;
  Shape row = shape_, column = shape_, one = shape_;
  row[last] = column[last - 1] = one[last] = one[last - 1] = 1;
  const TensorId rows = tensor("row_var", TensorKind::kOptimizer, row, dtype_);
  const TensorId columns = tensor("col_var", TensorKind::kOptimizer, column, dtype_);
  factor(last, rows);
  factor(last - 1, columns);
  const TensorId estimate = make(shape_.size() > 2 ? "matmul" : "gemm", {rows, columns});
  const TensorId mean = make("reduce_mean", {rows}, {{"shape", one}});
  step("maximum_scalar", {mean});
  step("div", {estimate, mean});
  return estimate;
}

/// The mean of squares over a dimension: a norm, its square, a division, and the moving average.
void OptimizerSteps::factor(size_t dim, TensorId state) {
  Shape shape = shape_;
  shape[dim] = 1;
  const TensorId mean = make("reduce_sum", {gradients_}, {{"shape", shape}});
  step("integer_pow", {mean});
  step("div_scalar", {mean});
  step("lerp", {state, mean});
}

/// tensor.norm(2).item()
void OptimizerSteps::read_norm(TensorId of) {
  make("item", {make("reduce_sum", {of}, {{"shape", Shape{1}}})});
}

}  // namespace tilecast
