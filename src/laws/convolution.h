#pragma once

// Constants of the law of convolutions (src/predict/law_convolution.cc). What each is and how it
// was found: data/laws.

#include <vector>

#include "laws/products.h"
#include "laws/tile.h"

namespace tilecast {

class ConstantTable;

/// Implicit product on FP32 lanes: the operand is gathered from the images; blocks have 128
/// pixels.
struct ImplicitProduct {
  std::vector<Tile> tiles, weight_tiles;
  std::vector<double> weight_splits;
  double step_ratio, dram_share, energy_ratio;
  SplitBlocks blocks;

  void describe(ConstantTable& table);
  bool operator==(const ImplicitProduct&) const = default;
};

/// F(2x2, 3x3) of Winograd in one kernel: 16 products of 32 x 32 for 32 tiles of 2 x 2 pixels.
struct FusedWinograd {
  std::vector<BlockShape> shapes;
  std::vector<Tile> tile;
  double result_channels, step_ratio, transform_cycles, energy_ratio, element_cycles, fill_cycles;

  void describe(ConstantTable& table);
  bool operator==(const FusedWinograd&) const = default;
};

/// Products of algorithms in steps: images and filters are transformed, multiplied point by
/// point, and the result is transformed back.
struct SteppedProduct {
  std::vector<Tile> tiles, ampere_tiles;
  double fill_cycles, element_cycles, idle_share, shortest_k;

  void describe(ConstantTable& table);
  bool operator==(const SteppedProduct&) const = default;
};

/// Algorithms that transform images and filters.
struct TransformCost {
  double images_ratio, filters_ratio, result_ratio, sm_bytes_per_cycle, step_ratio;

  void describe(ConstantTable& table);
  bool operator==(const TransformCost&) const = default;
};

/// A window of its own for each channel, on FP32 lanes. Images stored by pixel, and small windows
/// in FP16, have cuDNN's kernels, others PyTorch's own, which compute an address for each element.
struct Depthwise {
  double reached_share, half_reached_share, slow_reached_share, slow_taps, plain_taps;
  double pixel_cycles, tap_cycles, gradient_pixel_cycles, gradient_tap_cycles;

  void describe(ConstantTable& table);
  bool operator==(const Depthwise&) const = default;
};

/// Groups of channels in 16 bits, stored by pixel: a kernel takes as many groups as fill its tile.
struct GroupedByPixel {
  double tile_channels, widest_gradient, whole_groups, repacked_cycles;

  void describe(ConstantTable& table);
  bool operator==(const GroupedByPixel&) const = default;
};

/// Implicit products on matrix units.
struct GatherCost {
  double step_ratio, chain_cycles, fill_cycles, slab_channels, strided_ratio, tf32_input_ratio,
      tf32_weight_ratio, launch_us;

  void describe(ConstantTable& table);
  bool operator==(const GatherCost&) const = default;
};

/// Blocks of implicit products on matrix units.
struct MatrixUnitBlocks {
  std::vector<Tile> tiles;
  std::vector<double> splits;
  double split_cycles, element_cycles, idle_share, shortest_k, issue_share, small_slab_channels,
      hbm_j_per_flop, gddr_j_per_flop, ramp_s, ramp_half_s;

  void describe(ConstantTable& table);
  bool operator==(const MatrixUnitBlocks&) const = default;
};

/// Convolutions and their gradients: the time of the fastest algorithm of cuDNN.
struct ConvolutionConstants {
  double launch_s, smallest_k_to_split;
  ImplicitProduct implicit;
  FusedWinograd fused_winograd;
  SteppedProduct steps;
  double winograd_3_side, winograd_5_side;
  TransformCost winograd;
  std::vector<double> fourier_sides;
  TransformCost fourier;
  Depthwise depthwise;
  GroupedByPixel grouped;
  GatherCost gather, plain;
  MatrixUnitBlocks units;

  void describe(ConstantTable& table);
  bool operator==(const ConvolutionConstants&) const = default;
};

}  // namespace tilecast
