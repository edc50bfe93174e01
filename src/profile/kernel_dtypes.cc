// Dtypes of operators from the names of their kernels, for traces that state sizes alone.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "profile/aten.h"
#include "profile/formats.h"

namespace tilecast {
namespace {

/// Whether the operands are of a dtype that no graph has (fp64), or that no argument of an operator
/// names (fp8 and less, whose products also have scales).
bool is_of_other_dtype(std::string_view kernel) {
  constexpr std::string_view kMarks[] = {"double", "f64f64", "dgemm",  "d884gemm", "_ddd_", "e4m3",
                                         "e5m2",   "fp8",    "Float8", "_qq",      "e2m1",  "fp4"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
    return kernel.find(mark) != std::string_view::npos;
  });
}

/// Of libraries' kernels, which state their operands first; the first mark that is found counts.
std::optional<DType> dtype_of_library(std::string_view kernel) {
  constexpr std::pair<std::string_view, DType> kMarks[] = {
      {"bf16", DType::kBf16},     {"bfloat16", DType::kBf16}, {"_tst_", DType::kBf16},
      {"f16f16", DType::kFp16},   {"fp16", DType::kFp16},     {"half_t", DType::kFp16},
      {"_hsh_", DType::kFp16},    {"hgemm", DType::kFp16},    {"h884", DType::kFp16},
      {"tf32", DType::kFp32},     {"sgemm", DType::kFp32},    {"f32f32", DType::kFp32},
      {"s1688gemm", DType::kFp32}};
  for (const auto& [text, dtype] : kMarks)
    if (kernel.find(text) != std::string_view::npos) return dtype;
  return std::nullopt;
}

std::optional<DType> dtype_of_kernel(std::string_view kernel) {
  if (is_of_other_dtype(kernel)) return std::nullopt;
  if (const std::optional<DType> dtype = dtype_of_library(kernel)) return dtype;
  return hints_of(kernel).dtype;
}

const char* type_of_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "c10::BFloat16";
    case DType::kFp16:
      return "c10::Half";
    case DType::kInt64:
      return "long int";
    case DType::kInt32:
      return "int";
    case DType::kInt8:
      return "signed char";
    default:
      return "float";
  }
}

/// Where an operator has indices or labels; -1: nowhere.
int index_place(std::string_view name) {
  if (name == "embedding" || name == "embedding_dense_backward" || name == "nll_loss_forward")
    return 1;
  return name == "index_select" || name == "gather" || name == "nll_loss_backward" ? 2 : -1;
}

/// The types of a call's arguments, as record_shapes writes them, if all tensors have one dtype.
std::string types_of(const OperatorCall& call, DType dtype) {
  const int index = index_place(without_aten(call.name));
  std::string types = "[";
  int place = 0, depth = 0;
  for (size_t i = 0; i < call.dims.size(); ++i) {
    const char c = call.dims[i];
    if (c == ']') --depth;
    if (c != '[' || ++depth != 2) continue;
    const bool is_tensor = i + 1 < call.dims.size() && call.dims[i + 1] != ']';
    const char* type = place == index ? "long int" : type_of_dtype(dtype);
    types += place == 0 ? "\"" : ", \"";
    types += is_tensor ? type : "";
    types += "\"";
    ++place;
  }
  return types + "]";
}

class KernelTypes {
 public:
  explicit KernelTypes(ProfilerTrace& trace) : trace_(trace) {}
  void run();

 private:
  /// The call with a dtype; the same one where the trace states it.
  int32_t typed(int32_t call, std::optional<DType> dtype);

  ProfilerTrace& trace_;
  std::map<std::pair<int32_t, DType>, int32_t> typed_;
};

int32_t KernelTypes::typed(int32_t call, std::optional<DType> dtype) {
  const OperatorCall& bare = trace_.calls[static_cast<size_t>(call)];
  if (!dtype || !bare.types.empty() || bare.dims.empty()) return call;
  const auto next = static_cast<int32_t>(trace_.calls.size());
  const auto [found, added] = typed_.emplace(std::pair{call, *dtype}, next);
  if (added) {
    OperatorCall one = bare;
    one.types = types_of(one, *dtype);
    trace_.calls.push_back(std::move(one));
    trace_.typed_by_kernels = true;
  }
  return found->second;
}

void KernelTypes::run() {
  // An operator's first kernel that tells a dtype tells that of the operator.
  std::map<int32_t, DType> of_operator;
  for (const DeviceEvent& event : trace_.events) {
    if (event.op < 0 || of_operator.contains(event.op)) continue;
    if (const auto dtype = dtype_of_kernel(trace_.names[event.name]))
      of_operator.emplace(event.op, *dtype);
  }
  for (const auto& [op, dtype] : of_operator) {
    int32_t& call = trace_.operators[static_cast<size_t>(op)].call;
    call = typed(call, dtype);
  }
  for (DeviceEvent& event : trace_.events) {
    if (event.op >= 0)
      event.call = trace_.operators[static_cast<size_t>(event.op)].call;
    else if (event.call >= 0)
      event.call = typed(event.call, dtype_of_kernel(trace_.names[event.name]));
  }
}

}  // namespace

void type_by_kernels(ProfilerTrace& trace) { KernelTypes(trace).run(); }

}  // namespace tilecast
