// Copies, gathers, optimizers' lists and pointwise operators of a trace: kernels that stream.

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ops/op_def.h"
#include "profile/aten.h"

namespace tilecast {
namespace {

int64_t bytes_of(DType dtype, int64_t elements) {
  return ceil_divide(checked_multiply(elements, dtype_bits(dtype)), 8);
}

/// copy_(to, from).
std::optional<CallWork> copied(const Arguments& arguments) {
  const TracedTensor *to = tensor_at(arguments, 0), *from = tensor_at(arguments, 1);
  if (to == nullptr || from == nullptr) return std::nullopt;
  return stream_work(*to->dtype, to->elements(), 0, from->stored_bytes(), to->stored_bytes());
}

std::optional<CallWork> filled(const Arguments& arguments) {
  const TracedTensor* to = tensor_at(arguments, 0);
  if (to == nullptr) return std::nullopt;
  return stream_work(*to->dtype, to->elements(), 0, 0, to->stored_bytes());
}

/// Reads by indices, as the rows of a table.
CallWork gather_work(DType dtype, int64_t elements, int64_t read_bytes, int64_t write_bytes) {
  static const OpId gather = require_op("embedding");
  CallWork work = stream_work(dtype, elements, 0, read_bytes, write_bytes);
  work.kernels.front().op = gather;
  return work;
}

/// Rows of `x` along a dimension, as many as there are indices.
std::optional<CallWork> rows_gathered(const TracedTensor* x, int64_t dim,
                                      const TracedTensor* index) {
  if (x == nullptr || index == nullptr) return std::nullopt;
  const auto n = static_cast<int64_t>(x->shape.size());
  const int64_t d = dim < 0 ? dim + n : dim;
  if (d < 0 || d >= n) return std::nullopt;
  const int64_t each = x->elements() / x->shape[static_cast<size_t>(d)];
  const int64_t elements = checked_multiply(each, index->elements());
  const int64_t bytes = bytes_of(*x->dtype, elements);
  return gather_work(*x->dtype, elements, checked_add(bytes, index->stored_bytes()), bytes);
}

/// As many elements as there are indices.
std::optional<CallWork> elements_gathered(const Arguments& arguments) {
  const TracedTensor *x = tensor_at(arguments, 0), *index = tensor_at(arguments, 2);
  if (x == nullptr || index == nullptr) return std::nullopt;
  const int64_t bytes = bytes_of(*x->dtype, index->elements());
  return gather_work(*x->dtype, index->elements(), checked_add(bytes, index->stored_bytes()),
                     bytes);
}

std::optional<CallWork> embedding_gradient(const Arguments& arguments) {
  const TracedTensor *dy = tensor_at(arguments, 0), *ids = tensor_at(arguments, 1);
  const int64_t rows = number_at(arguments, 2, 0);
  if (dy == nullptr || ids == nullptr || rows < 1) return std::nullopt;
  CallGraph graph;
  graph.add("embedding_backward", {graph.input(*dy), graph.input(*ids)},
            {{"shape", Shape{rows, dy->shape.back()}}});
  return graph.work();
}

/// cat(list, dim). Lists state no dtype.
std::optional<CallWork> joined(const Arguments& arguments, const CallHints& hints) {
  if (arguments.empty() || !arguments[0].is_list || !hints.dtype) return std::nullopt;
  const DType dtype = *hints.dtype;
  int64_t elements = 0;
  for (const TracedTensor& tensor : arguments[0].tensors)
    elements = checked_add(elements, tensor.elements());
  if (elements < 1) return std::nullopt;
  const int64_t bytes = bytes_of(dtype, elements);
  return stream_work(dtype, elements, 0, bytes, bytes);
}

/// _foreach_add_, _fused_adamw_: reads all lists, writes the first, or all but the gradients.
/// _foreach_norm writes a number for each tensor; _foreach_zero_ reads nothing.
std::optional<CallWork> of_lists(std::string_view name, const Arguments& arguments,
                                 const CallHints& hints) {
  const bool fused = name.starts_with("_fused_adam") || name.starts_with("_fused_sgd");
  if ((!name.starts_with("_foreach_") && !fused) || !hints.dtype) return std::nullopt;
  const DType dtype = *hints.dtype;
  int64_t lists = 0, elements = 0, all = 0, tensors = 0;
  for (const TracedArgument& argument : arguments) {
    if (!argument.is_list) continue;
    int64_t sum = 0;
    for (const TracedTensor& tensor : argument.tensors) sum = checked_add(sum, tensor.elements());
    if (sum == 0) continue;
    if (++lists == 1) {
      elements = sum;
      tensors = static_cast<int64_t>(argument.tensors.size());
    }
    if (fused && sum < elements) continue;  // the steps: a number for each parameter
    all = checked_add(all, sum);
  }
  if (elements < 1) return std::nullopt;
  constexpr int64_t kAdamFlops = 12;
  const bool zero = name == "_foreach_zero_", reduces = name == "_foreach_norm";
  const int64_t written = reduces ? tensors : fused ? std::max(all - elements, elements) : elements;
  CallWork work =
      stream_work(dtype, reduces ? std::max<int64_t>(1, elements / tensors) : elements,
                  checked_multiply(fused  ? kAdamFlops
                                   : zero ? 0
                                          : 1,
                                   elements),
                  zero ? 0 : bytes_of(dtype, all), bytes_of(dtype, written), reduces ? tensors : 1);
  work.by_traffic = true;  // lists of several dtypes are taken to be of one
  return work;
}

std::optional<CallWork> pooled(std::string_view name, const Arguments& arguments) {
  const bool backward = name == "max_pool2d_with_indices_backward";
  if (!backward && name != "max_pool2d_with_indices") return std::nullopt;
  const size_t first = backward ? 2 : 1;
  const TracedTensor* x = tensor_at(arguments, backward ? 1 : 0);
  const std::vector<int64_t> window = numbers_at(arguments, first);
  std::vector<int64_t> stride = numbers_at(arguments, first + 1);
  const std::vector<int64_t> padding = numbers_at(arguments, first + 2);
  if (x == nullptr || x->shape.size() != 4 || window.empty()) return std::nullopt;
  if (stride.empty()) stride = window;
  if (backward) {  // fills the result with zeros, reads gradient and indices, writes the result
    const TracedTensor* dy = tensor_at(arguments, 0);
    if (dy == nullptr) return std::nullopt;
    const int64_t index = bytes_of(DType::kInt64, dy->elements());
    CallWork work = stream_work(*x->dtype, x->elements(), 0, checked_add(dy->stored_bytes(), index),
                                x->stored_bytes());
    work.by_traffic = true;
    return work;
  }
  CallGraph graph;
  graph.add("max_pool2d", {graph.input(*x)},
            {{"window", window.front()},
             {"stride", stride.front()},
             {"padding", padding.empty() ? int64_t{0} : padding.front()}});
  return graph.work();
}

/// Kernels of torch.compile state all tensors that they read or write; those of templates
/// (products) have work that their arguments do not tell.
std::optional<CallWork> compiled(std::string_view name, const Arguments& arguments) {
  if (!name.starts_with("triton_poi_") && !name.starts_with("triton_per_") &&
      !name.starts_with("triton_red_"))
    return std::nullopt;
  int64_t bytes = 0, most = 0, last = 0;
  DType dtype = DType::kFp32;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TracedTensor* tensor = tensor_at(arguments, i);
    if (tensor == nullptr) continue;
    last = tensor->stored_bytes();
    bytes = checked_add(bytes, last);
    most = std::max(most, tensor->elements());
    dtype = *tensor->dtype;
  }
  if (most == 0) return std::nullopt;
  CallWork work = stream_work(dtype, most, most, bytes - last, last);
  work.by_traffic = true;
  return work;
}

struct Pointwise {
  std::string_view name;
  int64_t flops;
  bool to_bool = false;
};
/// FLOPs an element: each arithmetic operation and each transcendental counts once.
constexpr Pointwise kPointwise[] = {{"add", 1},
                                    {"sub", 1},
                                    {"rsub", 1},
                                    {"mul", 1},
                                    {"div", 1},
                                    {"pow", 2},
                                    {"neg", 1},
                                    {"sqrt", 1},
                                    {"rsqrt", 2},
                                    {"exp", 1},
                                    {"cos", 1},
                                    {"sin", 1},
                                    {"log", 1},
                                    {"relu", 1},
                                    {"tanh", 1},
                                    {"sigmoid", 3},
                                    {"gelu", 5},
                                    {"silu", 4},
                                    {"softplus", 4},
                                    {"abs", 1},
                                    {"clamp", 2},
                                    {"clamp_min", 1},
                                    {"clamp_max", 1},
                                    {"maximum", 1},
                                    {"minimum", 1},
                                    {"where", 1},
                                    {"masked_fill", 1},
                                    {"reciprocal", 1},
                                    {"erf", 2},
                                    {"lerp", 3},
                                    {"addcmul", 3},
                                    {"addcdiv", 3},
                                    {"hardtanh", 2},
                                    {"leaky_relu", 2},
                                    {"hardswish", 3},
                                    {"hardsigmoid", 3},
                                    {"elu", 3},
                                    {"mish", 5},
                                    {"sign", 1},
                                    {"floor", 1},
                                    {"ceil", 1},
                                    {"round", 1},
                                    {"exp2", 1},
                                    {"log2", 1},
                                    {"square", 1},
                                    {"remainder", 2},
                                    {"floor_divide", 2},
                                    {"cumsum", 1},
                                    {"native_dropout", 2},
                                    {"native_dropout_backward", 2},
                                    {"gelu_backward", 8},
                                    {"silu_backward", 6},
                                    {"tanh_backward", 3},
                                    {"sigmoid_backward", 3},
                                    {"threshold_backward", 1},
                                    {"hardswish_backward", 4},
                                    {"hardtanh_backward", 2},
                                    {"leaky_relu_backward", 2},
                                    {"elu_backward", 3},
                                    {"mse_loss", 2},
                                    {"mse_loss_backward", 3},
                                    {"tril", 1},
                                    {"triu", 1},
                                    {"bernoulli", 1},
                                    {"eq", 1, true},
                                    {"ne", 1, true},
                                    {"lt", 1, true},
                                    {"le", 1, true},
                                    {"gt", 1, true},
                                    {"ge", 1, true},
                                    {"logical_and", 1, true},
                                    {"logical_or", 1, true},
                                    {"logical_not", 1, true},
                                    {"bitwise_and", 1},
                                    {"bitwise_or", 1},
                                    {"bitwise_not", 1},
                                    {"bitwise_xor", 1},
                                    {"isnan", 1, true},
                                    {"isinf", 1, true},
                                    {"_to_copy", 0},
                                    {"clone", 0},
                                    {"roll", 0},
                                    {"flip", 0},
                                    {"constant_pad_nd", 0}};

Shape broadcast_shape(const std::vector<const TracedTensor*>& tensors) {
  Shape shape;
  for (const TracedTensor* tensor : tensors) {
    const Shape& other = tensor->shape;
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    const size_t skipped = shape.size() - other.size();
    for (size_t i = 0; i < other.size(); ++i)
      if (other[i] != 1) shape[skipped + i] = other[i];
  }
  return shape;
}

/// The widest floating-point dtype; fp16 with bf16 is fp32.
DType wider(DType a, DType b) {
  const auto rank = [](DType dtype) {
    return dtype == DType::kFp32 ? 2 : dtype == DType::kFp16 || dtype == DType::kBf16 ? 1 : 0;
  };
  if (rank(a) == 1 && rank(b) == 1 && a != b) return DType::kFp32;
  return rank(b) > rank(a) || (rank(a) == 0 && dtype_bits(b) > dtype_bits(a)) ? b : a;
}

}  // namespace

std::optional<CallWork> movement_work(std::string_view name, const Arguments& arguments,
                                      const CallHints& hints) {
  if (name == "copy_") return copied(arguments);
  if (name == "fill_" || name == "zero_" || name == "normal_" || name == "uniform_" ||
      name == "random_" || name == "exponential_")
    return filled(arguments);
  if (name == "cat") return joined(arguments, hints);
  if (name == "index_select")
    return rows_gathered(tensor_at(arguments, 0), number_at(arguments, 1, 0),
                         tensor_at(arguments, 2));
  if (name == "embedding")
    return rows_gathered(tensor_at(arguments, 0), 0, tensor_at(arguments, 1));
  if (name == "gather") return elements_gathered(arguments);
  if (name == "embedding_dense_backward") return embedding_gradient(arguments);
  if (auto work = pooled(name, arguments)) return work;
  if (auto work = of_lists(name, arguments, hints)) return work;
  return compiled(name, arguments);
}

std::optional<CallWork> pointwise_work(std::string_view name, const Arguments& arguments) {
  const bool in_place = name.ends_with('_');
  if (in_place) name.remove_suffix(1);
  const auto found = std::find_if(std::begin(kPointwise), std::end(kPointwise),
                                  [&](const Pointwise& entry) { return entry.name == name; });
  if (found == std::end(kPointwise)) return std::nullopt;
  std::vector<const TracedTensor*> tensors;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const TracedTensor* tensor = tensor_at(arguments, i)) tensors.push_back(tensor);
  if (tensors.empty()) return std::nullopt;
  const int64_t elements = element_count(broadcast_shape(tensors));
  DType dtype = *tensors.front()->dtype;
  int64_t read = 0;
  for (const TracedTensor* tensor : tensors) {
    dtype = wider(dtype, *tensor->dtype);
    read = checked_add(read, tensor->stored_bytes());
  }
  const DType result = found->to_bool ? DType::kBool : in_place ? *tensors.front()->dtype : dtype;
  int64_t written = bytes_of(result, elements);
  if (name == "native_dropout") written = checked_add(written, elements);  // its mask
  return stream_work(dtype, elements, checked_multiply(found->flops, elements), read, written);
}

}  // namespace tilecast
