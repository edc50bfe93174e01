#include "graph/dtype.h"

#include <fmt/format.h>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t bits;
  bool computed = false;  ///< kernels compute in it; others are only stored
};

constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {DType::kFp32, "fp32", 32, true}, {DType::kTf32, "tf32", 32, true},
    {DType::kFp16, "fp16", 16, true}, {DType::kBf16, "bf16", 16, true},
    {DType::kFp8, "fp8", 8, true},    {DType::kInt8, "int8", 8, true},
    {DType::kInt32, "int32", 32},     {DType::kInt64, "int64", 64},
    {DType::kBool, "bool", 8},        {DType::kInt4, "int4", 4},
    {DType::kFp4, "fp4", 4, true},
};

}  // namespace

int64_t dtype_bits(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bits; }

std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

DType parse_dtype(std::string_view name, const std::string& where) {
  if (const std::optional<DType> found = find_dtype(name)) return *found;
  throw Error(ErrorKind::kInput, fmt::format("{}: unknown dtype '{}'; known: {}", where,
                                             shown_name(name), join(dtype_names(), ", ")));
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DTypeInfo& info : kDTypes) names.emplace_back(info.name);
  return names;
}

std::vector<std::string> computed_dtype_names() {
  std::vector<std::string> names;
  for (const DTypeInfo& info : kDTypes) {
    if (info.computed) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace tilecast
