// The law of convolutions. cuDNN has several algorithms, each with work of its own; the law is the
// time of the one that is fastest, for cuDNN's heuristics choose it or one that is nearly as fast.
// Fitted on P4, P100, T4, V100 and A100 (FP32) and on H100 (research/law_study.md).
//
// Not modelled: FP32 algorithms of libraries other than cuDNN (AMD's GPUs: the implicit product),
// the size of the workspace that an algorithm may take.

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/blocks.h"
#include "predict/law.h"

namespace tilecast {
namespace {

using Pass = Convolution::Pass;

/// One pass of a convolution, as a library sees it: `reduced` channels are summed up for each of
/// `result` channels.
struct Work {
  double images, groups, reduced, result, height, width, taps, stride, bytes;
  bool dilated, of_weight, of_input;

  explicit Work(const Kernel& kernel) : Work(kernel, std::get<Convolution>(kernel.shape)) {}
  Work(const Kernel& kernel, const Convolution& c)
      : images(static_cast<double>(c.batch)),
        groups(static_cast<double>(c.groups)),
        reduced(static_cast<double>(c.in_channels / c.groups)),
        result(static_cast<double>(c.out_channels / c.groups)),
        height(static_cast<double>(c.out_height)),
        width(static_cast<double>(c.out_width)),
        taps(static_cast<double>(c.window_height * c.window_width)),
        stride(static_cast<double>(c.stride)),
        bytes(static_cast<double>(kernel.bytes())),
        dilated(c.dilation > 1),
        of_weight(c.pass == Pass::kWeightGradient),
        of_input(c.pass == Pass::kInputGradient) {
    if (of_input) std::swap(reduced, result);
  }

  double pixels() const { return images * height * width; }
  bool is_depthwise() const { return groups > 1 && reduced == 1 && result == 1; }
  /// Whether algorithms that transform tiles of the image apply.
  bool transforms(double of_taps) const {
    return taps == of_taps && stride == 1 && groups == 1 && !dilated;
  }
  /// The product that the definition asks for. The gradient of a strided convolution's input falls
  /// into stride^2 such products, each with a part of the window.
  ProductSizes product(double channels) const {
    if (of_weight) return {groups, result, channels * taps, pixels()};
    if (!of_input) return {groups, pixels(), result, channels * taps};
    const double phases = stride * stride;
    return {groups, pixels() * phases, result, std::max(1.0, taps / phases) * channels};
  }
};

/// Seconds of lanes and DRAM; `energy`: that of a FLOP, over that of a plain product's.
double lanes_s(double cycles, double bytes, double flops, double energy, const Chip& chip) {
  return single_precision_s(chip.seconds(cycles), bytes / chip.dram_bytes_per_s,
                            energy * flops * vector_energy(chip) / chip.board_power_w);
}

constexpr std::array<double, 1> kUnsplit = {1};

// Each further launch of an algorithm in steps (guess: what a launch in a graph takes).
constexpr double kLaunch = 3e-6;

/// Implicit product: the operand is gathered from the images. Blocks have 128 pixels.
LawTime implicit_product(const Work& w, const Chip& chip) {
  constexpr double kLonger = 1.18;   // cycles of a step, over a plain product's
  constexpr double kFromDram = 0.4;  // of the operands: the rest is in L2 from the last call
  constexpr double kEnergy = 0.95;
  constexpr std::array<Tile, 3> kTiles = {Tile{128, 32}, Tile{128, 64}, Tile{128, 128}};
  constexpr std::array<Tile, 4> kWeightTiles = {Tile{32, 32}, Tile{64, 64}, Tile{128, 64},
                                                Tile{128, 128}};
  constexpr std::array<double, 6> kSplits = {1, 2, 4, 8, 16, 32};
  constexpr BlockCost kCost = {8000, 0, 3000, 0.0375, 0.5, 16};
  const auto step = [&](Tile tile, double area, double) {
    return kLonger * vector_step_cycles(chip, tile, area);
  };
  const ProductSizes sizes = w.product(w.reduced);
  const Blocks best =
      w.of_weight ? best_blocks(sizes, kWeightTiles, kSplits, 128, kCost.on(chip), chip.sms, step)
                  : best_blocks(sizes, kTiles, kUnsplit, 128, kCost.on(chip), chip.sms, step);
  const double flops = 2 * sizes.batch * sizes.m * sizes.n * sizes.k;
  return {lanes_s(best.cycles, kFromDram * w.bytes, flops, kEnergy, chip), best.tile};
}

/// Winograd's F(2x2, 3x3) in one kernel. A block transforms 32 tiles of 2 x 2 pixels, in one of six
/// shapes, for 32 channels of the result: 16 products of 32 x 32. Its grid is that of cuDNN's
/// kernels ("winograd_128x128_…_tile148t").
LawTime fused_winograd(const Work& w, const Chip& chip) {
  struct Shape {
    double images, rows, columns;
  };
  constexpr Shape kShapes[] = {{1, 4, 8}, {2, 4, 4}, {2, 2, 8}, {4, 1, 8}, {4, 2, 4}, {4, 4, 2}};
  constexpr Tile kBlock = {128, 128};
  constexpr double kArea = 128 * 128;
  constexpr double kStep = 1.05, kTransform = 70;  // of a plain product's cycles; cycles beside
  constexpr double kEnergy = 1.34;
  const double rows = ceil_of(w.height / 2), columns = ceil_of(w.width / 2);
  double blocks = 1e30;
  for (const Shape& s : kShapes)
    blocks = std::min(blocks, ceil_of(w.images / s.images) * ceil_of(rows / s.rows) *
                                  ceil_of(columns / s.columns));
  blocks *= ceil_of(w.result / 32);
  const double step = kStep * vector_step_cycles(chip, kBlock, kArea) + chip.units * kTransform;
  const double cycles =
      waves_of(blocks / chip.sms, 1) * (w.reduced * step + chip.blocks * 0.3 * kArea) +
      chip.blocks * 5000;
  const double flops = 2 * blocks * kArea * w.reduced;
  return {chip.start * kLaunch + lanes_s(cycles, w.bytes, flops, kEnergy, chip), kBlock};
}

/// An algorithm in steps: images and filters are transformed, multiplied point by point, and the
/// result is transformed back.
struct Transform {
  double side;          ///< pixels of a result's tile in each direction
  double points;        ///< of a transformed tile
  double multiply_add;  ///< real ones for each product of two points
  double point_bytes;
  /// Traffic of the three transforms over what DRAM would take for it, and bytes that an SM moves
  /// per clock.
  double images_share, filters_share, result_share, sm_bytes;
  double step;  ///< cycles of the products, over plain ones'
};
// F(4x4, 3x3), and for windows of 5 x 5 F(5x5, 5x5).
constexpr Transform kWinograd3 = {4, 36, 1, 4, 1.0, 2.6, 0.4, 5.5, 1};
constexpr Transform kWinograd5 = {5, 81, 1, 4, 1.0, 2.6, 0.4, 5.5, 1};

LawTime in_steps(const Work& w, const Transform& t, const Chip& chip) {
  constexpr std::array<Tile, 5> kTiles = {Tile{32, 32}, Tile{64, 32}, Tile{64, 64}, Tile{128, 64},
                                          Tile{128, 128}};
  // From Ampere on, cuDNN has these products in large tiles only: all 2,594 rows of A100.
  constexpr std::array<Tile, 1> kLargeTiles = {Tile{128, 128}};
  constexpr BlockCost kCost = {5000, 0, 0, 0.0375, 0.5, 16};
  const double tiles = w.images * ceil_of(w.height / t.side) * ceil_of(w.width / t.side);
  // The gradient of the weight sums over the tiles.
  const ProductSizes sizes =
      w.of_weight ? ProductSizes(t.points, w.reduced, w.result, tiles * t.multiply_add)
                  : ProductSizes(t.points, tiles, w.result, w.reduced * t.multiply_add);
  const auto step = [&](Tile tile, double area, double) {
    return t.step * vector_step_cycles(chip, tile, area);
  };
  const bool large = t.multiply_add == 1 && chip.gpu.architecture >= Architecture::kAmpere;
  const Blocks best =
      large ? best_blocks(sizes, kLargeTiles, kUnsplit, 128, kCost.on(chip), chip.sms, step)
            : best_blocks(sizes, kTiles, kUnsplit, 128, kCost.on(chip), chip.sms, step);
  const double point = t.points * t.point_bytes, image = 4 * w.pixels();
  const double images = image * w.reduced + point * tiles * w.reduced;
  const double filters = (4 * w.taps + point) * w.reduced * w.result;
  const double results = image * w.result + point * tiles * w.result;
  const double moved = point * (tiles * w.reduced + w.reduced * w.result + tiles * w.result);
  const double product_s =
      lanes_s(best.cycles, moved, 2 * sizes.batch * sizes.m * sizes.n * sizes.k, 1, chip);
  const double transforms_s =
      (t.images_share * images + t.filters_share * filters + t.result_share * results) /
          chip.dram_bytes_per_s +
      (images + filters + results) / chip.l2_bytes_per_s(t.sm_bytes);
  return {3 * chip.start * kLaunch + product_s + transforms_s, best.tile};
}

/// FFTs of tiles of 16 or 32 in each direction: complex numbers; half of them are stored.
LawTime fourier(const Work& w, double size, const Chip& chip) {
  const double side = size + 1 - std::sqrt(w.taps);
  if (side < size / 2) return {1e30};
  const double points = size * (size / 2 + 1);
  return in_steps(w, {side, points, 4, 8, 1.9, 0.45, 1.9, 18.7, 0.95}, chip);
}

/// A window of its own for each channel. Each thread multiplies for some pixels without reuse from
/// registers: H100 reaches 0.085 of its lanes' rate. Weights' gradients of large windows in 32 bits
/// have no such kernel and reach 0.0055.
LawTime depthwise(const Work& w, DType stored, const Chip& chip) {
  const bool slow = w.of_weight && w.taps > 25 && dtype_bits(stored) == 32;
  const double reached = slow ? 0.0055 : 0.085;
  const double flops = 2 * w.groups * w.pixels() * w.taps;
  const double lanes_s = chip.units * flops / (reached * chip.gpu.vector_peak(DType::kFp32));
  return {stream_start_s(chip) + root_of_squares(lanes_s, w.bytes / chip.dram_bytes_per_s)};
}

/// Seconds in which images and results are copied from the layout in which they are stored to the
/// one that kernels read: two launches.
double conversion_s(const Work& w, const Chip& chip) {
  return 2 * chip.start * kLaunch + 2 * w.bytes / chip.dram_bytes_per_s;
}

LawTime on_lanes(const Work& w, bool channels_last, const Chip& chip) {
  LawTime best = implicit_product(w, chip);
  const auto take = [&](LawTime other) {
    if (other.seconds < best.seconds) best = other;
  };
  // On H100, 33 of 37 images and 16 of 19 of their gradients that have these windows ran an
  // implicit product (data/measurements): from Hopper on, only weights' gradients are transformed.
  const bool transforms = chip.gpu.architecture < Architecture::kHopper || w.of_weight;
  if (transforms && w.transforms(9)) {
    take(in_steps(w, kWinograd3, chip));
    if (!w.of_weight) take(fused_winograd(w, chip));
  }
  if (transforms && w.transforms(25)) take(in_steps(w, kWinograd5, chip));
  if (transforms && w.taps > 1 && w.transforms(w.taps)) {
    take(fourier(w, 16, chip));
    take(fourier(w, 32, chip));
  }
  best.seconds += stream_start_s(chip);
  // FP32 kernels read images by channel.
  if (channels_last && w.taps > 1) best.seconds += conversion_s(w, chip);
  return best;
}

/// Implicit products on matrix units, fitted on H100: what they take beside a plain product.
struct GatherCost {
  double step;        ///< cycles of a step of k, over a plain product's
  double chain;       ///< least cycles of a step
  double fill;        ///< cycles of the kernel's start and end
  double slab;        ///< channels that one step of a window's tap reads together
  double strided;     ///< further factor for gradients of strided inputs
  double tf32_input;  ///< and in TF32, whose units read operands in one order only
  double tf32_weight;
};
constexpr GatherCost kGather = {1.34, 11, 6200, 32, 1.37, 1.58, 3};
constexpr GatherCost kPlain = {1, 1.6, 2300, 8, 1, 1.58, 3};

/// As many channels as the kernels read: tensor cores take 8, larger slabs beyond two of these.
double padded(double channels, double slab) {
  return channels <= 16 ? 8 * ceil_of(channels / 8) : slab * ceil_of(channels / slab);
}

LawTime on_matrix_units(const Work& w, const Kernel& kernel, bool channels_last, const Chip& chip) {
  constexpr std::array<Tile, 6> kTiles = {Tile{64, 32},  Tile{64, 64},   Tile{64, 128},
                                          Tile{128, 64}, Tile{128, 128}, Tile{128, 256}};
  constexpr std::array<double, 5> kSplits = {1, 2, 4, 8, 16};
  const bool gathers = w.taps > 1 || w.stride > 1;
  const GatherCost& c = gathers ? kGather : kPlain;
  const DType dtype = kernel.compute_dtype();
  double factor = c.step;
  if (w.of_input && w.stride > 1) factor *= c.strided;
  if (dtype == DType::kTf32) factor *= w.of_weight ? c.tf32_weight : w.of_input ? c.tf32_input : 1;
  const double per_clock = chip.device.matmul_peak(dtype) / (chip.sms * chip.clock_hz);
  const double power = chip.energy * (chip.hbm ? 0.25e-12 : 0.60e-12) * per_clock * chip.sms *
                       chip.clock_hz / chip.board_power_w;
  const BlockCost cost = {c.fill, 2600, 0, 0.03, 0.05, 64};
  const double channels = w.of_weight ? w.reduced : padded(w.reduced, c.slab);
  const Blocks best =
      best_blocks(w.product(channels), kTiles, kSplits, 0, cost.on(chip), chip.sms,
                  [&](Tile, double area, double busy) {
                    const double step = 2 * area / per_clock * factor;
                    return chip.units * std::max(step * (1 + power * busy), c.chain + 0.1 * step);
                  });
  const double memory_s =
      w.bytes / chip.dram_bytes_per_s + 2.8e-6 * w.bytes / (w.bytes + chip.dram_bytes_per_s * 2e-6);
  LawTime time = {launch_latency_s(gathers ? 2.2 : 1.6, chip) +
                      root_of_squares(memory_s, chip.seconds(best.cycles)),
                  best.tile};
  // Their kernels read images by pixel.
  if (!channels_last) time.seconds += conversion_s(w, chip);
  return time;
}

}  // namespace

LawTime convolution_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const bool single = kernel.compute_dtype() == DType::kFp32;
  if (chip.amd) {
    // Their libraries' algorithms are not known: the implicit product, as a plain one.
    return single ? single_precision_law(kernel, chip, conditions)
                  : low_precision_law(kernel, chip, conditions);
  }
  const Work work(kernel);
  if (work.is_depthwise()) return depthwise(work, kernel.dtype, chip);
  const bool channels_last = std::get<Convolution>(kernel.shape).channels_last != 0;
  return single ? on_lanes(work, channels_last, chip)
                : on_matrix_units(work, kernel, channels_last, chip);
}

}  // namespace tilecast
