#pragma once

// A layer as seven nested loops, and how it is cut into tiles.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilecast::accelerator {

/// The loops of a layer: images n, output channels k, input channels c, output rows p and columns
/// q, filter rows r and columns s. A matrix product [p,c] x [c,k] has n = q = r = s = 1.
enum class Dim : uint8_t { kN, kK, kC, kP, kQ, kR, kS };
inline constexpr size_t kDimCount = 7;
inline constexpr std::string_view kDimNames = "nkcpqrs";
/// Sizes by Dim.
using Sizes = std::array<int64_t, kDimCount>;
inline constexpr Sizes kOnes = {1, 1, 1, 1, 1, 1, 1};

constexpr int64_t size_of(const Sizes& sizes, Dim dim) { return sizes[static_cast<size_t>(dim)]; }

enum class Operand : uint8_t { kInput, kWeight, kOutput };
inline constexpr size_t kOperandCount = 3;
inline constexpr std::array<Operand, kOperandCount> kOperands = {Operand::kInput, Operand::kWeight,
                                                                 Operand::kOutput};

enum class LayerKind : uint8_t { kProduct, kDepthwise, kPooling, kElementwise };
inline constexpr size_t kLayerKindCount = 4;
std::string_view layer_kind_name(LayerKind kind);

struct Layer {
  LayerKind kind = LayerKind::kProduct;
  Sizes sizes = kOnes;
  int64_t stride = 1;
  int64_t inputs = 1;  ///< tensors that an element-wise layer reads
  /// A pooling that is applied as outputs are stored: elements of its window, and its stride.
  int64_t pool_elements = 1, pool_stride = 1;

  /// Whether the operand has the dimension. Outside products, a channel is k in all operands.
  bool uses(Operand operand, Dim dim) const;
  bool reduces(Dim dim) const { return !uses(Operand::kOutput, dim); }
  int64_t macs() const;
  /// Elements of an operand in a block of these sizes; inputs with their halo.
  int64_t elements(Operand operand, const Sizes& sizes) const;
  /// Input rows or columns that `outputs` windows of `window` read.
  int64_t input_extent(int64_t outputs, int64_t window) const;
  bool operator==(const Layer&) const = default;
};

/// "k 64, c 256, p 56, q 56": the sizes of a layer that are not 1.
std::string layer_sizes_text(const Layer& layer);

/// How a layer runs: loops around tiles, and the size of a tile. Loops inside a tile are fixed by
/// the accelerator's dataflow.
struct Mapping {
  std::string order;  ///< loops around tiles, outermost first: "kcp"
  Sizes tile = kOnes;
  bool operator==(const Mapping&) const = default;
};

/// Reads "order=kcp tile=k64,c256,p14,q14": what is left out is not divided. Throws Error{kInput}.
Mapping parse_mapping(std::string_view text, const Layer& layer, const std::string& where);
std::string mapping_text(const Mapping& mapping, const Layer& layer);

/// Throws Error{kInput} if the mapping does not cover the layer: a tile of 0 or larger than the
/// layer, a divided dimension without a loop, a dimension named twice.
void check_covers(const Mapping& mapping, const Layer& layer, const std::string& where);

}  // namespace tilecast::accelerator
