#include "graph/scheme.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// Groups and scales: DeepSeek-V3 report (fp8 blocks of 128 x 128, fp32 scales); GPTQ and AWQ's
// usual 128 with half-precision scale and 4-bit zero point; OCP Microscaling v1.0 (32, 8-bit
// scales); NVIDIA's NVFP4 (16, 8-bit scales).
constexpr SchemeInfo kSchemes[kSchemeCount] = {
    {"none", DType::kBf16, std::nullopt, 0, 0},
    {"fp8", DType::kFp8, DType::kFp8, 0, 0},
    {"fp8_block", DType::kFp8, DType::kFp8, 128 * 128, 32},
    {"int8", DType::kInt8, DType::kInt8, 0, 0},
    {"int8_wo", DType::kInt8, std::nullopt, 0, 0},
    {"int4_wo", DType::kInt4, std::nullopt, 128, 16 + 4},
    {"fp4_wo", DType::kFp4, std::nullopt, 32, 8},
    {"fp4", DType::kFp4, DType::kFp4, 16, 8},
    {"fp8_wo", DType::kFp8, std::nullopt, 0, 0},
    {"nvfp4_wo", DType::kFp4, std::nullopt, 16, 8},
};

constexpr int64_t kBitsPerByte = 8;

/// Of all groups' scales.
int64_t scale_bits(const SchemeInfo& info, int64_t count) {
  return info.group == 0 ? 0 : checked_multiply(ceil_divide(count, info.group), info.scale_bits);
}

}  // namespace

const SchemeInfo& scheme_info(Scheme scheme) { return kSchemes[static_cast<size_t>(scheme)]; }

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (size_t i = 1; i < kSchemeCount; ++i) names.emplace_back(kSchemes[i].name);
  return names;
}

std::optional<Scheme> find_scheme(std::string_view name) {
  for (size_t i = 1; i < kSchemeCount; ++i) {
    if (kSchemes[i].name == name) return static_cast<Scheme>(i);
  }
  return std::nullopt;
}

Scheme parse_scheme(std::string_view name, const std::string& where) {
  if (const std::optional<Scheme> found = find_scheme(name)) return *found;
  throw Error(ErrorKind::kInput, fmt::format("{}: unknown scheme '{}'; known: {}", where,
                                             shown_name(name), join(scheme_names(), ", ")));
}

int64_t scheme_bytes(Scheme scheme, int64_t count, DType activations) {
  const SchemeInfo& info = scheme_info(scheme);
  const int64_t bits =
      checked_multiply(count, dtype_bits(scheme == Scheme::kNone ? activations : info.weight));
  return ceil_divide(checked_add(bits, scale_bits(info, count)), kBitsPerByte);
}

int64_t scale_bytes(Scheme scheme, int64_t count) {
  const SchemeInfo& info = scheme_info(scheme);
  if (info.group == 0) return 4;
  return ceil_divide(scale_bits(info, count), kBitsPerByte);
}

Scheme weight_only(Scheme scheme) {
  switch (scheme) {
    case Scheme::kFp8:
    case Scheme::kFp8Block:
      return Scheme::kFp8WeightOnly;
    case Scheme::kInt8:
      return Scheme::kInt8WeightOnly;
    case Scheme::kFp4:
      return Scheme::kNvfp4WeightOnly;
    default:
      return scheme;
  }
}

DType multiplied_dtype(Scheme scheme, DType activations) {
  return scheme_info(scheme).multiplied.value_or(activations);
}

}  // namespace tilecast
