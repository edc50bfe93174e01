#include "profile/aten.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/budget.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/number.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/strides.h"
#include "profile/json_cursor.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::optional<DType> dtype_of_type(const std::string& type) {
  struct Named {
    std::string_view name;
    DType dtype;
  };
  static constexpr Named kTypes[] = {{"float", DType::kFp32},
                                     {"c10::BFloat16", DType::kBf16},
                                     {"c10::Half", DType::kFp16},
                                     {"long int", DType::kInt64},
                                     {"long", DType::kInt64},
                                     {"long long", DType::kInt64},
                                     {"int", DType::kInt32},
                                     {"bool", DType::kBool},
                                     {"unsigned char", DType::kInt8},
                                     {"signed char", DType::kInt8},
                                     {"char", DType::kInt8},
                                     {"c10::Float8_e4m3fn", DType::kFp8},
                                     {"c10::Float8_e5m2", DType::kFp8},
                                     {"c10::Float8_e4m3fnuz", DType::kFp8},
                                     {"c10::Float8_e5m2fnuz", DType::kFp8}};
  for (const Named& named : kTypes)
    if (named.name == type) return named.dtype;
  return std::nullopt;
}

/// A list of the call's JSON; an empty one if it is none.
Json list_of(const std::string& text) {
  if (text.empty()) return Json::array();
  try {
    Json list = parse_json(text, "arguments of an operator");
    return list.is_array() ? list : Json::array();
  } catch (const Error&) {
    return Json::array();
  }
}

std::optional<Shape> whole_numbers(const Json& list) {
  Shape shape;
  if (!list.is_array()) return std::nullopt;
  for (const Json& size : list) {
    const std::optional<int64_t> number = whole_number(size, 0, int64_t{1} << 40);
    if (!number) return std::nullopt;
    shape.push_back(*number);
  }
  return shape;
}

/// Sizes of a tensor; nullopt where its bytes or its strides would not fit into 64 bits.
std::optional<Shape> shape_of(const Json& list) {
  std::optional<Shape> shape = whole_numbers(list);
  return shape && is_possible(*shape) ? shape : std::nullopt;
}

TracedTensor traced_tensor(Shape shape, const Json* strides, std::optional<DType> dtype) {
  TracedTensor tensor{std::move(shape), {}, dtype};
  if (strides != nullptr)
    if (std::optional<Shape> given = whole_numbers(*strides);
        given && given->size() == tensor.shape.size())
      tensor.strides = std::move(*given);
  if (tensor.strides.size() != tensor.shape.size())
    tensor.strides = row_major(tensor.shape).strides;
  return tensor;
}

const Json* element(const Json& list, size_t place) {
  return list.is_array() && place < list.size() ? &list[place] : nullptr;
}

/// Dimensions with their strides, the widest stride first; those of 1 element do not matter.
std::vector<std::pair<int64_t, int64_t>> by_stride(const TracedTensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> order;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] != 1) order.emplace_back(tensor.strides[i], tensor.shape[i]);
  std::sort(order.begin(), order.end(), std::greater<>());
  return order;
}

}  // namespace

bool is_possible(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    const int64_t factor = std::max<int64_t>(1, size);
    if (elements > kMostTracedElements / factor) return false;
    elements *= factor;
  }
  return true;
}

int64_t TracedTensor::stored_bytes() const {
  int64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (strides[i] != 0 || shape[i] == 0) elements = checked_multiply(elements, shape[i]);
  return ceil_divide(checked_multiply(elements, dtype_bits(dtype.value_or(DType::kFp32))), 8);
}

bool TracedTensor::is_dense() const {
  int64_t expected = 1;
  const auto order = by_stride(*this);
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (dim->first != expected) return false;
    expected = checked_multiply(expected, dim->second);
  }
  return true;
}

bool TracedTensor::is_row_major() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected = checked_multiply(expected, shape[i]);
  }
  return true;
}

std::vector<TracedArgument> arguments_of(const OperatorCall& call) {
  const Json dims = list_of(call.dims), types = list_of(call.types);
  const Json strides = list_of(call.strides), values = list_of(call.values);
  std::vector<TracedArgument> arguments;
  for (size_t i = 0; i < dims.size(); ++i) {
    TracedArgument& argument = arguments.emplace_back();
    const Json* type = element(types, i);
    const std::string word = type != nullptr && type->is_string() ? type->get<std::string>() : "";
    if (const Json* value = element(values, i); value != nullptr && value->is_string())
      argument.value = value->get<std::string>();
    const std::optional<DType> dtype = dtype_of_type(word);
    argument.is_list = word == "TensorList";
    if (argument.is_list) {
      // The trace does not say what its tensors hold; `work_of` takes the dtype of the others.
      for (size_t t = 0; t < dims[i].size(); ++t)
        if (std::optional<Shape> shape = shape_of(dims[i][t])) {
          const Json* all = element(strides, i);
          argument.tensors.push_back(traced_tensor(
              std::move(*shape), all == nullptr ? nullptr : element(*all, t), std::nullopt));
        }
    } else if (!word.empty() && word != "Scalar" && word != "ScalarList" &&
               argument.value.empty()) {
      if (std::optional<Shape> shape = shape_of(dims[i]))
        argument.tensors.push_back(traced_tensor(std::move(*shape), element(strides, i), dtype));
    }
  }
  return arguments;
}

const TracedTensor* tensor_at(const Arguments& arguments, size_t place) {
  if (place >= arguments.size() || arguments[place].is_list) return nullptr;
  const auto& tensors = arguments[place].tensors;
  if (tensors.size() != 1 || tensors.front().is_scalar() || !tensors.front().dtype) return nullptr;
  return tensors.front().elements() > 0 ? &tensors.front() : nullptr;
}

std::vector<int64_t> numbers_at(const Arguments& arguments, size_t place) {
  if (place >= arguments.size() || arguments[place].value.empty()) return {};
  try {
    const Json list = parse_json(arguments[place].value, "a list");
    std::vector<int64_t> numbers;
    for (const Json& entry : list.is_array() ? list : Json::array({list})) {
      const auto number = whole_number(entry, INT32_MIN, int64_t{1} << 40);
      if (!number) return {};
      numbers.push_back(*number);
    }
    return numbers;
  } catch (const Error&) {
    return {};
  }
}

int64_t number_at(const Arguments& arguments, size_t place, int64_t fallback) {
  return place < arguments.size() ? parse_number<int64_t>(arguments[place].value).value_or(fallback)
                                  : fallback;
}

bool flag_at(const Arguments& arguments, size_t place) {
  return place < arguments.size() &&
         (arguments[place].value == "True" || arguments[place].value == "true" ||
          arguments[place].value == "1");
}

bool TracedTensor::is_transposed() const {
  const size_t n = shape.size();
  return n >= 2 && strides[n - 2] == 1 && (strides[n - 1] != 1 || shape[n - 1] > 1) &&
         shape[n - 2] > 1;
}

CallWork stream_work(DType dtype, int64_t elements, int64_t flops, int64_t read_bytes,
                     int64_t write_bytes, int64_t rows) {
  static const OpId stream = require_op("stream");
  Kernel kernel{.shape = Stream{.rows = rows, .elements = elements},
                .op = stream,
                .dtype = dtype,
                .flops = flops,
                .read_bytes = read_bytes,
                .write_bytes = write_bytes};
  return {.kernels = {kernel}};
}

CallGraph::CallGraph() { graph_.name = "call"; }

TensorId CallGraph::input(const TracedTensor& tensor) {
  return input(tensor.shape, tensor.dtype.value());
}

TensorId CallGraph::input(Shape shape, DType dtype) {
  return GraphBuilder(graph_).input("x", std::move(shape), dtype);
}

std::vector<TensorId> CallGraph::add(std::string_view op, std::vector<TensorId> inputs,
                                     std::vector<Attribute> attributes) {
  GraphBuilder builder(graph_);
  if (graph_.segments.empty()) builder.begin_segment("call", 1);
  return builder.add(op, std::move(inputs), "call", std::move(attributes));
}

CallWork CallGraph::work() const {
  CallWork work;
  for (const Node& node : graph_.nodes) {
    lower_node(graph_, node, work.kernels);
    work.by_traffic = work.by_traffic || op_def(node.op).unmeasured;
  }
  return work;
}

/// Where a word stands in a name with no letter beside it; npos: nowhere.
static size_t find_word(std::string_view name, std::string_view word) {
  const auto is_letter = [&](size_t at) {
    return at < name.size() &&
           ((name[at] >= 'a' && name[at] <= 'z') || (name[at] >= 'A' && name[at] <= 'Z'));
  };
  size_t at = name.find(word);
  while (at != std::string_view::npos &&
         ((at > 0 && is_letter(at - 1)) || is_letter(at + word.size())))
    at = name.find(word, at + 1);
  return at;
}

CallHints hints_of(std::string_view kernel) {
  struct Mark {
    std::string_view text;
    DType dtype;
    bool is_word = false;  ///< also a part of other names: "Pointwise", "bfloat16"
  };
  // Of what a kernel's template arguments name, the first counts: that of its elements.
  static constexpr Mark kMarks[] = {
      {"OpaqueType<2u>", DType::kBf16},  {"BFloat16", DType::kBf16},
      {"__nv_bfloat16", DType::kBf16},   {"Half", DType::kFp16},
      {"OpaqueType<4u>", DType::kFp32},  {"float", DType::kFp32, true},
      {"OpaqueType<8u>", DType::kInt64}, {"long", DType::kInt64, true},
      {"OpaqueType<1u>", DType::kInt8},  {"int", DType::kInt32, true}};
  CallHints hints;
  hints.tf32 = kernel.find("tf32") != std::string_view::npos ||
               kernel.find("s1688gemm") != std::string_view::npos;
  size_t first = std::string_view::npos;
  for (const Mark& mark : kMarks) {
    const size_t at = mark.is_word ? find_word(kernel, mark.text) : kernel.find(mark.text);
    if (at < first) {
      first = at;
      hints.dtype = mark.dtype;
    }
  }
  return hints;
}

/// Whether a tensor has gaps or repeats, or two are stored in different orders.
static bool has_strides(const Arguments& arguments) {
  std::vector<const TracedTensor*> tensors;
  for (const TracedArgument& argument : arguments)
    for (const TracedTensor& tensor : argument.tensors)
      if (!tensor.is_scalar()) tensors.push_back(&tensor);
  return std::any_of(tensors.begin(), tensors.end(), [&](const TracedTensor* tensor) {
    return !tensor->is_dense() || tensor->is_row_major() != tensors.front()->is_row_major();
  });
}

std::string_view without_aten(std::string_view name) {
  constexpr std::string_view kAten = "aten::";
  return name.starts_with(kAten) ? name.substr(kAten.size()) : name;
}

/// Operators whose work depends on arguments that are no tensors: strides, dimensions, flags.
static bool needs_values(std::string_view name) {
  constexpr std::string_view kNames[] = {"sum",
                                         "mean",
                                         "amax",
                                         "amin",
                                         "max",
                                         "min",
                                         "argmax",
                                         "argmin",
                                         "all",
                                         "any",
                                         "prod",
                                         "norm",
                                         "var",
                                         "std",
                                         "var_mean",
                                         "std_mean",
                                         "linalg_vector_norm",
                                         "native_batch_norm",
                                         "cudnn_batch_norm",
                                         "miopen_batch_norm",
                                         "native_group_norm",
                                         "index_select"};
  return is_convolution(name) || is_attention(name) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::optional<CallWork> work_of(const OperatorCall& call, const CallHints& hints) {
  if (call.values.empty() && needs_values(without_aten(call.name))) return std::nullopt;
  return work_of(without_aten(call.name), arguments_of(call), hints);
}

std::optional<CallWork> work_of(std::string_view name, const Arguments& arguments,
                                const CallHints& hints) {
  if (arguments.empty()) return std::nullopt;
  try {
    std::optional<CallWork> work = product_work(name, arguments, hints);
    if (!work) work = convolution_work(name, arguments, hints);
    if (!work) work = attention_work(name, arguments);
    if (!work) work = rows_work(name, arguments);
    if (!work) work = movement_work(name, arguments, hints);
    if (!work) work = pointwise_work(name, arguments);
    if (!work || work->kernels.empty()) return std::nullopt;
    work->is_strided = has_strides(arguments);
    return work;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return std::nullopt;  // sizes that contradict each other: another operator of that name
  }
}

}  // namespace tilecast
