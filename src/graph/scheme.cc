#include "graph/scheme.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/text.h"
#include "graph/dtype.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// Sources of group sizes and scales: DeepSeek-V3 report (fp8 blocks of 128 x 128, fp32 scales);
// GPTQ and AWQ's usual 128 with half-precision scale and 4-bit zero point; OCP Microscaling v1.0
// (32, 8-bit scales); NVIDIA's NVFP4 (16, 8-bit scales). Blackwell multiplies 4-bit weights with
// 8-bit activations at its rate for fp8 (PTX ISA, tcgen05.mma.kind::mxf8f6f4).
constexpr QuantSchemeInfo kSchemes[kSchemeCount] = {
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
    {"fp4_fp8", DType::kFp4, DType::kFp8, 32, 8},
};

struct Alias {
  std::string_view name;
  QuantScheme scheme;
};
constexpr Alias kAliases[] = {
    {"awq", QuantScheme::kInt4WeightOnly},  {"gptq", QuantScheme::kInt4WeightOnly},
    {"int4", QuantScheme::kInt4WeightOnly}, {"w4a16", QuantScheme::kInt4WeightOnly},
    {"nvfp4", QuantScheme::kFp4},           {"mxfp4", QuantScheme::kFp4Fp8}};

/// Bits of the scales of all groups.
int64_t scale_bits(const QuantSchemeInfo& info, int64_t count) {
  return info.group_size == 0
             ? 0
             : checked_multiply(ceil_divide(count, info.group_size), info.scale_bits);
}

}  // namespace

const QuantSchemeInfo& scheme_info(QuantScheme scheme) {
  return kSchemes[static_cast<size_t>(scheme)];
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (size_t i = 1; i < kSchemeCount; ++i) names.emplace_back(kSchemes[i].name);
  return names;
}

std::vector<std::string> scheme_aliases() {
  std::vector<std::string> names;
  for (const Alias& alias : kAliases) names.emplace_back(alias.name);
  return names;
}

std::optional<QuantScheme> find_scheme(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.scheme;
  }
  for (size_t i = 1; i < kSchemeCount; ++i) {
    if (kSchemes[i].name == name) return static_cast<QuantScheme>(i);
  }
  return std::nullopt;
}

QuantScheme parse_scheme(std::string_view name, const std::string& where) {
  if (const std::optional<QuantScheme> found = find_scheme(name)) return *found;
  throw Error(ErrorKind::kInput, fmt::format("{}: unknown scheme '{}'; known: {}", where,
                                             shown_name(name), join(scheme_names(), ", ")));
}

int64_t scheme_bytes(QuantScheme scheme, int64_t count, DType activations) {
  const QuantSchemeInfo& info = scheme_info(scheme);
  const int64_t bits = checked_multiply(
      count, dtype_bits(scheme == QuantScheme::kNone ? activations : info.weight_dtype));
  return ceil_divide(checked_add(bits, scale_bits(info, count)), kBitsPerByte);
}

int64_t scale_bytes(QuantScheme scheme, int64_t count) {
  const QuantSchemeInfo& info = scheme_info(scheme);
  if (info.group_size == 0) return 4;
  return ceil_divide(scale_bits(info, count), kBitsPerByte);
}

QuantScheme weight_only(QuantScheme scheme) {
  switch (scheme) {
    case QuantScheme::kFp8:
    case QuantScheme::kFp8Block:
      return QuantScheme::kFp8WeightOnly;
    case QuantScheme::kInt8:
      return QuantScheme::kInt8WeightOnly;
    case QuantScheme::kFp4:
      return QuantScheme::kNvfp4WeightOnly;
    case QuantScheme::kFp4Fp8:
      return QuantScheme::kFp4WeightOnly;
    default:
      return scheme;
  }
}

DType compute_dtype(QuantScheme scheme, DType activations) {
  return scheme_info(scheme).compute_dtype.value_or(activations);
}

}  // namespace tilecast
