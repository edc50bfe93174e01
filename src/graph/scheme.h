#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"

namespace tilecast {

/// How a layer's weights are stored and multiplied. "Weight only": stored narrow, widened on chip
/// and multiplied in the activations' type, which every device can.
enum class QuantScheme : uint8_t {
  kNone,      ///< as the activations
  kFp8,       ///< weights and activations in 8 bits, one scale a tensor
  kFp8Block,  ///< a scale per 128 x 128 weights and per 128 activations
  kInt8,      ///< weights and activations in 8 bits, a scale per channel
  kInt8WeightOnly,
  kInt4WeightOnly,   ///< groups of 128 (GPTQ, AWQ)
  kFp4WeightOnly,    ///< groups of 32 (MXFP4)
  kFp4,              ///< weights and activations in 4 bits, groups of 16 (NVFP4)
  kFp8WeightOnly,    ///< a scale per channel or larger
  kNvfp4WeightOnly,  ///< weights as kFp4 has them
};
inline constexpr size_t kSchemeCount = 10;

struct QuantSchemeInfo {
  std::string_view name;
  DType weight_dtype = DType::kBf16;   ///< as stored; meaningless for kNone
  std::optional<DType> compute_dtype;  ///< by the matrix units; nullopt: the activations' type
  int64_t group_size = 0;  ///< weights that share a scale; 0: all of a tensor or channel
  int64_t scale_bits = 0;  ///< of one group's scale
};

const QuantSchemeInfo& scheme_info(QuantScheme scheme);
/// "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo".
std::vector<std::string> scheme_names();
/// nullopt where no scheme has that name.
std::optional<QuantScheme> find_scheme(std::string_view name);

/// Throws Error{kInput} with the known names.
QuantScheme parse_scheme(std::string_view name, const std::string& where);

/// Bytes of so many weights, scales included. Throws Error{kInput} on overflow.
int64_t scheme_bytes(QuantScheme scheme, int64_t count, DType activations);

/// Bytes of a tensor of their scales alone: one in single precision where no group shares one.
int64_t scale_bytes(QuantScheme scheme, int64_t count);

/// The weight-only scheme that stores weights as this one does; itself where it is one, or kNone.
QuantScheme weight_only(QuantScheme scheme);

/// The type that the matrix units multiply.
DType compute_dtype(QuantScheme scheme, DType activations);

}  // namespace tilecast
