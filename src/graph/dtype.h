#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// Element types. kTf32: stored as fp32, multiplied by matrix units with ten mantissa bits.
enum class DType : uint8_t {
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  kFp8,
  kInt8,
  kInt32,
  kInt64,
  kBool,
  kInt4,
  kFp4
};
inline constexpr size_t kDTypeCount = 11;

inline constexpr int64_t kBitsPerByte = 8;

/// Bits of one element in memory.
int64_t dtype_bits(DType dtype);

/// The name used in data, options and output: "fp32", "bf16", …
std::string_view dtype_name(DType dtype);

/// nullopt if no dtype has that name.
std::optional<DType> find_dtype(std::string_view name);

/// Throws Error{kInput} that lists the known names.
DType parse_dtype(std::string_view name, const std::string& where);

/// All names, in the order of the enumeration.
std::vector<std::string> dtype_names();
/// Names of those that kernels compute in; the others are only stored.
std::vector<std::string> computed_dtype_names();

}  // namespace tilecast
