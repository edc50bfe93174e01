#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"

namespace tilecast {

/// A quantization scheme: how the weights of a layer are stored and multiplied. Weight-only schemes
/// store weights in low precision; the kernel converts them to the activations' dtype before it
/// multiplies, which every device supports.
enum class QuantScheme : uint8_t {
  kNone,      ///< not quantized: the activations' dtype
  kFp8,       ///< weights and activations in 8 bits, one scale per tensor
  kFp8Block,  ///< one scale per 128 x 128 weights and per 128 activations
  kInt8,      ///< weights and activations in 8 bits, one scale per channel
  kInt8WeightOnly,
  kInt4WeightOnly,   ///< groups of 128 (GPTQ, AWQ)
  kFp4WeightOnly,    ///< groups of 32 (MXFP4)
  kFp4,              ///< weights and activations in 4 bits, groups of 16 (NVFP4)
  kFp8WeightOnly,    ///< one scale per channel or per tensor
  kNvfp4WeightOnly,  ///< weights stored as in kFp4
  /// Weights in 4 bits, activations in 8, both in groups of 32 (MXFP4 x MXFP8): multiplied as fp8.
  kFp4Fp8,
};
inline constexpr size_t kSchemeCount = 11;

struct QuantSchemeInfo {
  std::string_view name;
  DType weight_dtype = DType::kBf16;  ///< dtype of the stored weights; unused for kNone
  /// Dtype of the matrix products; nullopt: the activations' dtype.
  std::optional<DType> compute_dtype;
  int64_t group_size = 0;  ///< weights that share a scale; 0: a whole tensor or channel
  int64_t scale_bits = 0;  ///< size of one group's scale, zero point included
};

const QuantSchemeInfo& scheme_info(QuantScheme scheme);
/// "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo",
/// "fp4_fp8".
std::vector<std::string> scheme_names();
/// Names that checkpoints and serving software have for schemes: "awq", "int4", "nvfp4".
std::vector<std::string> scheme_aliases();
/// nullopt if no scheme has that name.
std::optional<QuantScheme> find_scheme(std::string_view name);

/// Throws Error{kInput} that lists the known names.
QuantScheme parse_scheme(std::string_view name, const std::string& where);

/// Bytes of `count` weights with their scales. Throws Error{kInput} on overflow.
int64_t scheme_bytes(QuantScheme scheme, int64_t count, DType activations);

/// Bytes of the scales alone; a scheme without groups has one fp32 scale.
int64_t scale_bytes(QuantScheme scheme, int64_t count);

/// The weight-only scheme that stores weights in the same way; returns weight-only schemes and
/// kNone unchanged.
QuantScheme weight_only(QuantScheme scheme);

/// The dtype of the matrix products for activations of this dtype.
DType compute_dtype(QuantScheme scheme, DType activations);

}  // namespace tilecast
