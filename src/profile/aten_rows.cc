// Softmax, norms, losses and reductions of a trace.

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "profile/aten.h"

namespace tilecast {
namespace {

/// The tensor with a dimension at its end; the row that a kernel reduces.
Shape with_last(Shape shape, int64_t dim) {
  const auto n = static_cast<int64_t>(shape.size());
  const int64_t d = dim < 0 ? dim + n : dim;
  if (d < 0 || d >= n) return {};
  std::rotate(shape.begin() + d, shape.begin() + d + 1, shape.end());
  return shape;
}

/// [rows, columns] where the last dimensions of `normalized` elements are a row.
Shape rows_of(const TracedTensor& x, int64_t columns) {
  if (columns < 1 || x.elements() % columns != 0) return {};
  return {x.elements() / columns, columns};
}

int64_t row_length(const Arguments& arguments, size_t place) {
  const std::vector<int64_t> normalized = numbers_at(arguments, place);
  int64_t columns = normalized.empty() ? 0 : 1;
  for (int64_t size : normalized) columns = checked_multiply(columns, size);
  return columns;
}

std::optional<CallWork> softmax(const char* op, const Arguments& arguments, size_t dim_place,
                                bool backward) {
  const TracedTensor* x = tensor_at(arguments, 0);
  if (x == nullptr) return std::nullopt;
  const Shape shape = with_last(x->shape, number_at(arguments, dim_place, -1));
  if (shape.empty()) return std::nullopt;
  CallGraph graph;
  std::vector<TensorId> inputs = {graph.input(shape, *x->dtype)};
  if (backward) inputs.push_back(graph.input(shape, *x->dtype));
  graph.add(op, std::move(inputs));
  return graph.work();
}

std::optional<CallWork> norm(const char* op, const Arguments& arguments) {
  const TracedTensor* x = tensor_at(arguments, 0);
  if (x == nullptr) return std::nullopt;
  int64_t columns = row_length(arguments, 1);
  // A trace without numbers has the weight's length.
  if (const TracedTensor* w = tensor_at(arguments, 2); columns == 0 && w != nullptr)
    columns = w->elements();
  const Shape shape = rows_of(*x, columns);
  if (shape.empty()) return std::nullopt;
  CallGraph graph;
  std::vector<TensorId> inputs = {graph.input(shape, *x->dtype)};
  for (size_t place = 2; place < 4; ++place)
    if (const TracedTensor* w = tensor_at(arguments, place);
        w != nullptr && w->shape.size() == 1 && w->elements() == columns)
      inputs.push_back(graph.input({columns}, *w->dtype));
  graph.add(op, std::move(inputs));
  return graph.work();
}

/// Of a layer norm: a kernel for the input, others for weight and bias. The root mean square norm
/// has one statistic in place of two.
std::optional<CallWork> norm_backward(const Arguments& arguments) {
  const TracedTensor *dy = tensor_at(arguments, 0), *x = tensor_at(arguments, 1);
  if (dy == nullptr || x == nullptr) return std::nullopt;
  const Shape shape = rows_of(*x, row_length(arguments, 2));
  if (shape.empty()) return std::nullopt;
  CallGraph graph;
  const std::vector<TensorId> inputs = {
      graph.input(shape, *dy->dtype), graph.input(shape, *x->dtype),
      graph.input({shape[0]}, DType::kFp32), graph.input({shape[0]}, DType::kFp32)};
  graph.add("layer_norm_backward", inputs);
  const std::string& mask = arguments.back().value;
  if (mask.find("True", mask.find(',')) != std::string::npos)
    graph.add("layer_norm_weight_backward", inputs);
  return graph.work();
}

std::optional<CallWork> batch_norm(const Arguments& arguments) {
  const TracedTensor* x = tensor_at(arguments, 0);
  if (x == nullptr || x->shape.size() < 2) return std::nullopt;
  const bool training = flag_at(arguments, 5);
  const int64_t bytes = x->stored_bytes(), elements = x->elements();
  // Statistics, then the result: the input is read twice in training.
  constexpr int64_t kStatisticsFlops = 3, kResultFlops = 2;
  CallWork work =
      stream_work(*x->dtype, elements, checked_multiply(kResultFlops, elements), bytes, bytes);
  if (training) {
    const CallWork statistics =
        stream_work(*x->dtype, elements / x->shape[1], checked_multiply(kStatisticsFlops, elements),
                    bytes, 8 * x->shape[1], x->shape[1]);
    work.kernels.insert(work.kernels.begin(), statistics.kernels.front());
  }
  work.by_traffic = true;
  return work;
}

/// Two sums by channels, then the input's gradient: both tensors are read twice.
std::optional<CallWork> batch_norm_backward(const Arguments& arguments) {
  const TracedTensor *dy = tensor_at(arguments, 0), *x = tensor_at(arguments, 1);
  if (dy == nullptr || x == nullptr || x->shape.size() < 2) return std::nullopt;
  const int64_t read = checked_add(dy->stored_bytes(), x->stored_bytes());
  constexpr int64_t kSumFlops = 4, kResultFlops = 5;
  const int64_t elements = x->elements();
  CallWork work =
      stream_work(*x->dtype, elements / x->shape[1], checked_multiply(kSumFlops, elements), read,
                  8 * x->shape[1], x->shape[1]);
  work.kernels.push_back(stream_work(*x->dtype, elements, checked_multiply(kResultFlops, elements),
                                     read, x->stored_bytes())
                             .kernels.front());
  work.by_traffic = true;
  return work;
}

std::optional<CallWork> group_norm(const Arguments& arguments) {
  const TracedTensor* x = tensor_at(arguments, 0);
  if (x == nullptr || x->shape.size() < 2) return std::nullopt;
  CallGraph graph;
  graph.add("group_norm", {graph.input(*x)}, {{"groups", number_at(arguments, 6, 1)}});
  return graph.work();
}

/// Elements of the result: those of the dimensions that stay.
int64_t kept_elements(const TracedTensor& x, const std::vector<int64_t>& dims) {
  if (dims.empty()) return 1;
  const auto n = static_cast<int64_t>(x.shape.size());
  int64_t kept = 1;
  for (int64_t d = 0; d < n; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end() &&
        std::find(dims.begin(), dims.end(), d - n) == dims.end())
      kept = checked_multiply(kept, x.shape[static_cast<size_t>(d)]);
  return kept;
}

std::optional<CallWork> reduction(const Arguments& arguments, int64_t flops,
                                  size_t dims_place = 1) {
  const TracedTensor* x = tensor_at(arguments, 0);
  if (x == nullptr) return std::nullopt;
  const int64_t results = kept_elements(*x, numbers_at(arguments, dims_place));
  const int64_t elements = x->elements();
  return stream_work(*x->dtype, elements / std::max<int64_t>(1, results),
                     checked_multiply(flops, elements), x->stored_bytes(),
                     checked_multiply(results, dtype_bits(*x->dtype)) / 8, results);
}

std::optional<CallWork> loss(const TracedTensor* x, const TracedTensor* labels) {
  if (x == nullptr || labels == nullptr || x->shape.size() != 2) return std::nullopt;
  CallGraph graph;
  graph.add("nll_loss", {graph.input(*x), graph.input(*labels)});
  return graph.work();
}

/// An element of each row: another operator, fill_, has set the gradient to zeros before.
std::optional<CallWork> loss_backward(const TracedTensor* x, const TracedTensor* labels) {
  if (x == nullptr || labels == nullptr || x->shape.size() != 2) return std::nullopt;
  const int64_t rows = labels->elements();
  return stream_work(*x->dtype, rows, rows, labels->stored_bytes(),
                     checked_multiply(rows, dtype_bits(*x->dtype)) / 8);
}

}  // namespace

std::optional<CallWork> rows_work(std::string_view name, const Arguments& arguments) {
  if (name == "_softmax" || name == "_safe_softmax") return softmax("softmax", arguments, 1, false);
  if (name == "_log_softmax") return softmax("log_softmax", arguments, 1, false);
  if (name == "_softmax_backward_data") return softmax("softmax_backward", arguments, 2, true);
  if (name == "_log_softmax_backward_data")
    return softmax("log_softmax_backward", arguments, 2, true);
  if (name == "native_layer_norm") return norm("layer_norm", arguments);
  if (name == "_fused_rms_norm") return norm("rms_norm", arguments);
  if (name == "native_layer_norm_backward" || name == "_fused_rms_norm_backward")
    return norm_backward(arguments);
  if (name == "native_group_norm") return group_norm(arguments);
  if (name == "native_batch_norm" || name == "cudnn_batch_norm" || name == "miopen_batch_norm")
    return batch_norm(arguments);
  if (name == "native_batch_norm_backward" || name == "cudnn_batch_norm_backward" ||
      name == "miopen_batch_norm_backward")
    return batch_norm_backward(arguments);
  if (name == "nll_loss_forward") return loss(tensor_at(arguments, 0), tensor_at(arguments, 1));
  if (name == "nll_loss_backward")
    return loss_backward(tensor_at(arguments, 1), tensor_at(arguments, 2));
  static constexpr std::string_view kReductions[] = {
      "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "all", "any", "prod"};
  if (std::find(std::begin(kReductions), std::end(kReductions), name) != std::end(kReductions))
    return reduction(arguments, 1);
  // The order of the norm stands before its dimensions.
  if (name == "norm" || name == "linalg_vector_norm") return reduction(arguments, 1, 2);
  if (name == "var" || name == "std" || name == "var_mean" || name == "std_mean")
    return reduction(arguments, 3);
  return std::nullopt;
}

}  // namespace tilecast
