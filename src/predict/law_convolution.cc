// The law of convolutions. cuDNN has several algorithms, each with work of its own; the law is the
// time of the one that is fastest, for cuDNN's heuristics choose it or one that is nearly as fast.
// Derivation: research/law_study.md.
//
// Not modelled: FP32 algorithms of libraries other than cuDNN (AMD's GPUs: the implicit product),
// the size of the workspace that an algorithm may take.

#include <algorithm>
#include <cmath>

#include "graph/dtype.h"
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

/// Implicit product: the operand is gathered from the images.
LawTime implicit_product(const Work& w, const Chip& chip) {
  const ImplicitProduct& c = chip.laws.convolution.implicit;
  const auto step = [&](Tile tile, double area, double) {
    return c.step_ratio * vector_step_cycles(chip, tile, area);
  };
  const ProductSizes sizes = w.product(w.reduced);
  const std::span<const double> splits =
      w.of_weight ? std::span<const double>(c.weight_splits) : std::span<const double>(kUnsplit);
  const Blocks best = best_blocks(sizes, w.of_weight ? c.weight_tiles : c.tiles, splits,
                                  chip.laws.convolution.smallest_k_to_split,
                                  cost_of(c.blocks).on(chip), chip.sms, step);
  const double flops = 2 * sizes.batch * sizes.m * sizes.n * sizes.k;
  return {lanes_s(best.cycles, c.dram_share * w.bytes, flops, c.energy_ratio, chip),
          best.tile,
          0,
          c.dram_share * w.bytes / chip.dram_bytes_per_s,
          chip.seconds(best.cycles),
          best.busy};
}

/// Winograd's F(2x2, 3x3) in one kernel. A block transforms tiles of 2 x 2 pixels, in one of some
/// shapes, for some channels of the result.
LawTime fused_winograd(const Work& w, const Chip& chip) {
  const FusedWinograd& c = chip.laws.convolution.fused_winograd;
  const Tile tile = c.tile.front();
  const double area = static_cast<double>(tile.m) * tile.n;
  const double rows = ceil_of(w.height / 2), columns = ceil_of(w.width / 2);
  double blocks = kNever;
  for (const BlockShape& s : c.shapes)
    blocks = std::min(blocks, ceil_of(w.images / s.images) * ceil_of(rows / s.rows) *
                                  ceil_of(columns / s.columns));
  blocks *= ceil_of(w.result / c.result_channels);
  const double step =
      c.step_ratio * vector_step_cycles(chip, tile, area) + chip.units * c.transform_cycles;
  const double cycles =
      waves_of(blocks / chip.sms, 1) * (w.reduced * step + chip.blocks * c.element_cycles * area) +
      chip.blocks * c.fill_cycles;
  const double flops = 2 * blocks * area * w.reduced;
  const double start_s = chip.start * chip.laws.convolution.launch_s;
  return {start_s + lanes_s(cycles, w.bytes, flops, c.energy_ratio, chip), tile, start_s,
          w.bytes / chip.dram_bytes_per_s, chip.seconds(cycles)};
}

/// An algorithm in steps: images and filters are transformed, multiplied point by point, and the
/// result is transformed back.
struct Transform {
  double side;          ///< pixels of a result's tile in each direction
  double points;        ///< of a transformed tile
  double multiply_add;  ///< real ones for each product of two points
  double point_bytes;
};

LawTime in_steps(const Work& w, const Transform& t, const TransformCost& c, const Chip& chip) {
  constexpr double kTransforms = 3;
  const ConvolutionConstants& all = chip.laws.convolution;
  const BlockCost cost = {.fill = all.steps.fill_cycles,
                          .element = all.steps.element_cycles,
                          .idle_share = all.steps.idle_share,
                          .shortest_k = all.steps.shortest_k};
  const double tiles = w.images * ceil_of(w.height / t.side) * ceil_of(w.width / t.side);
  // The gradient of the weight sums over the tiles.
  const ProductSizes sizes =
      w.of_weight ? ProductSizes(t.points, w.reduced, w.result, tiles * t.multiply_add)
                  : ProductSizes(t.points, tiles, w.result, w.reduced * t.multiply_add);
  const auto step = [&](Tile tile, double area, double) {
    return c.step_ratio * vector_step_cycles(chip, tile, area);
  };
  const bool large = t.multiply_add == 1 && chip.gpu.architecture >= Architecture::kAmpere;
  const Blocks best = best_blocks(sizes, large ? all.steps.ampere_tiles : all.steps.tiles, kUnsplit,
                                  all.smallest_k_to_split, cost.on(chip), chip.sms, step);
  const double point = t.points * t.point_bytes, image = kFp32Bytes * w.pixels();
  const double images = image * w.reduced + point * tiles * w.reduced;
  const double filters = (kFp32Bytes * w.taps + point) * w.reduced * w.result;
  const double results = image * w.result + point * tiles * w.result;
  const double moved = point * (tiles * w.reduced + w.reduced * w.result + tiles * w.result);
  const double product_s =
      lanes_s(best.cycles, moved, 2 * sizes.batch * sizes.m * sizes.n * sizes.k, 1, chip);
  const double transforms_s =
      (c.images_ratio * images + c.filters_ratio * filters + c.result_ratio * results) /
          chip.dram_bytes_per_s +
      (images + filters + results) / chip.l2_bytes_per_s(c.sm_bytes_per_cycle);
  const double start_s = kTransforms * chip.start * all.launch_s;
  return {
      start_s + product_s + transforms_s, best.tile, start_s, transforms_s, product_s, best.busy};
}

/// Winograd's algorithm for windows of `window` x `window`.
LawTime winograd(const Work& w, double window, double side, const Chip& chip) {
  const double points = side + window - 1;
  return in_steps(w, {side, points * points, 1, kFp32Bytes}, chip.laws.convolution.winograd, chip);
}

/// FFTs of tiles of `size` in each direction: complex numbers, half of them stored.
LawTime fourier(const Work& w, double size, const Chip& chip) {
  const double side = size + 1 - std::sqrt(w.taps);
  if (side < size / 2) return {kNever};
  const double points = size * (size / 2 + 1);
  constexpr double kComplexProduct = 4;  // multiply-adds
  return in_steps(w, {side, points, kComplexProduct, 2 * kFp32Bytes}, chip.laws.convolution.fourier,
                  chip);
}

/// Seconds of the SMs for so many cycles of one for each element.
double elements_s(double elements, double cycles, const Chip& chip) {
  return chip.seconds(chip.units * elements * cycles / chip.sms);
}

/// Whether cuDNN has the kernel: images stored by pixel, and small windows in FP16
/// (aten/src/ATen/native/Convolution.cpp, use_cudnn_depthwise).
bool is_depthwise_of_cudnn(const Work& w, DType stored, bool channels_last, const Chip& chip) {
  return channels_last ||
         (stored == DType::kFp16 && w.taps <= chip.laws.convolution.depthwise.plain_taps);
}

/// Seconds of the lanes for a window of its own for each channel. Weights' gradients of large
/// windows in 32 bits have no kernel of their own.
double depthwise_lanes_s(const Work& w, DType stored, bool channels_last, const Chip& chip) {
  const Depthwise& c = chip.laws.convolution.depthwise;
  // The gradient of a strided window's input visits each of its pixels with all taps.
  const double outputs =
      w.groups * w.pixels() * (w.of_input && channels_last ? w.stride * w.stride : 1);
  const bool slow = w.of_weight && w.taps > c.slow_taps && element_bytes(stored) == kFp32Bytes;
  if (!slow && !is_depthwise_of_cudnn(w, stored, channels_last, chip)) {
    const bool gradient = w.of_input || w.of_weight;
    const double pixel = gradient ? c.gradient_pixel_cycles : c.pixel_cycles;
    const double tap = gradient ? c.gradient_tap_cycles : c.tap_cycles;
    return elements_s(outputs, pixel + tap * w.taps, chip);
  }
  const double reached = slow ? c.slow_reached_share
                         : channels_last && has_16_bits(stored) && !w.of_input
                             ? c.half_reached_share
                             : c.reached_share;
  return chip.units * 2 * outputs * w.taps / (reached * chip.gpu.vector_peak(DType::kFp32));
}

LawTime depthwise(const Work& w, DType stored, bool channels_last, const Chip& chip) {
  const double lanes_s = depthwise_lanes_s(w, stored, channels_last, chip);
  const double start_s = stream_start_s(chip), memory_s = w.bytes / chip.dram_bytes_per_s;
  return {start_s + root_of_squares(lanes_s, memory_s), {}, start_s, memory_s, lanes_s};
}

/// Gradients of wide groups in 16 bits that are stored by pixel run on lanes, as depthwise windows,
/// unless kernels of matrix units take whole numbers of the groups.
bool is_grouped_on_lanes(const Work& w, DType stored, const Chip& chip) {
  const GroupedByPixel& c = chip.laws.convolution.grouped;
  return w.groups > 1 && std::fmod(w.groups, c.whole_groups) != 0 && has_16_bits(stored) &&
         (w.of_weight || w.of_input) && std::max(w.reduced, w.result) > c.widest_gradient;
}

LawTime grouped_on_lanes(const Work& w, const Chip& chip) {
  const double flops = 2 * w.groups * w.pixels() * w.taps * w.reduced * w.result;
  const double lanes_s =
      chip.units * flops /
      (chip.laws.convolution.depthwise.reached_share * chip.gpu.vector_peak(DType::kFp32));
  const double start_s = stream_start_s(chip), memory_s = w.bytes / chip.dram_bytes_per_s;
  return {start_s + root_of_squares(lanes_s, memory_s), {}, start_s, memory_s, lanes_s};
}

/// Seconds in which the images and results of groups whose channels do not divide a tile are copied
/// to a layout with padding, and back.
double repacking_s(const Work& w, DType stored, const Chip& chip) {
  const GroupedByPixel& c = chip.laws.convolution.grouped;
  const double channels = std::max(w.reduced, w.result);
  if (w.groups == 1 || channels >= c.tile_channels || std::fmod(c.tile_channels, channels) == 0)
    return 0;
  return elements_s(w.bytes / element_bytes(stored), c.repacked_cycles, chip);
}

/// Seconds in which images and results are copied from the layout in which they are stored to the
/// one that kernels read: two launches.
double conversion_s(const Work& w, const Chip& chip) {
  return 2 * chip.start * chip.laws.convolution.launch_s + 2 * w.bytes / chip.dram_bytes_per_s;
}

void add_conversion(LawTime& time, const Work& w, const Chip& chip) {
  const double seconds = conversion_s(w, chip);
  time.seconds += seconds;
  time.memory_s += seconds;
}

LawTime on_lanes(const Work& w, bool channels_last, const Chip& chip) {
  constexpr double kSmall = 3, kLarge = 5;  // windows that Winograd's algorithm is used for
  const ConvolutionConstants& c = chip.laws.convolution;
  LawTime best = implicit_product(w, chip);
  const auto take = [&](LawTime other) {
    if (other.seconds < best.seconds) best = other;
  };
  // On H100, 33 of 37 images and 16 of 19 of their gradients that have these windows ran an
  // implicit product (data/measurements): from Hopper on, only weights' gradients are transformed.
  const bool transforms = chip.gpu.architecture < Architecture::kHopper || w.of_weight;
  if (transforms && w.transforms(kSmall * kSmall)) {
    take(winograd(w, kSmall, c.winograd_3_side, chip));
    if (!w.of_weight) take(fused_winograd(w, chip));
  }
  if (transforms && w.transforms(kLarge * kLarge))
    take(winograd(w, kLarge, c.winograd_5_side, chip));
  if (transforms && w.taps > 1 && w.transforms(w.taps)) {
    for (const double size : c.fourier_sides) take(fourier(w, size, chip));
  }
  best.seconds += stream_start_s(chip);
  best.start_s += stream_start_s(chip);
  // FP32 kernels read images by channel.
  if (channels_last && w.taps > 1) add_conversion(best, w, chip);
  return best;
}

/// As many channels as the kernels read: small slabs of them, larger ones beyond two of these.
double padded(double channels, double small, double slab) {
  return channels <= 2 * small ? small * ceil_of(channels / small)
                               : slab * ceil_of(channels / slab);
}

/// Whether a kernel in 16 bits reads images by channel as they are: the product of one window of
/// one pixel, if all pixels of a channel are whole reads of 16 bytes. On H100, 1 x 1 convolutions
/// of 28 x 28 and 56 x 56 pixels take the same time in both layouts; those of 14 x 14 and 7 x 7,
/// strided and larger ones are copied (data/measurements, stages).
bool reads_by_channel(const Work& w, DType stored, const Chip& chip) {
  // As many numbers in 16 bits as the kernels that read by pixel take at least.
  const double read_bytes = 2 * chip.laws.convolution.units.small_slab_channels;
  const bool forward = !w.of_weight && !w.of_input;
  return forward && w.taps == 1 && w.stride == 1 && w.groups == 1 &&
         std::fmod(w.height * w.width * element_bytes(stored), read_bytes) == 0;
}

/// Rate of the matrix units for this type over that of their pipes, which int8 shows: below 1 where
/// sums in FP32 run at half rate, as on GeForce boards. What else takes time is hidden there.
double pipe_share(DType dtype, const Chip& chip) {
  const auto bits = static_cast<double>(dtype_bits(dtype));
  const double pipes = chip.device.matmul_peak(DType::kInt8) * kBitsPerByte / bits;
  const double rate = chip.device.matmul_peak(dtype);
  return pipes > rate && chip.gpu.matrix_peak(DType::kInt8) > 0 ? rate / pipes : 1;
}

LawTime on_matrix_units(const Work& w, const Kernel& kernel, bool channels_last, const Chip& chip) {
  const bool gathers = w.taps > 1 || w.stride > 1;
  const MatrixUnitBlocks& units = chip.laws.convolution.units;
  const GatherCost& c = gathers ? chip.laws.convolution.gather : chip.laws.convolution.plain;
  const DType dtype = kernel.compute_dtype();
  double factor = c.step_ratio;
  if (w.of_input && w.stride > 1) factor *= c.strided_ratio;
  if (dtype == DType::kTf32)
    factor *= w.of_weight ? c.tf32_weight_ratio : w.of_input ? c.tf32_input_ratio : 1;
  factor = std::max(1.0, factor * pipe_share(dtype, chip));
  const double per_clock = chip.device.matmul_peak(dtype) / (chip.sms * chip.clock_hz);
  const double gddr_j_per_flop = has_16_bits(dtype) || dtype == DType::kTf32
                                     ? units.gddr_j_per_flop
                                     : chip.laws.tensor_matmul.of_8_bits.gddr_j_per_flop;
  // Units that wait for what else the kernel does need less power.
  const UnitsPower power(chip, units.hbm_j_per_flop, gddr_j_per_flop,
                         per_clock * chip.sms * chip.clock_hz);
  const BlockCost cost = {.fill = c.fill_cycles,
                          .split = units.split_cycles,
                          .element = units.element_cycles,
                          .idle_share = units.idle_share,
                          .shortest_k = units.shortest_k};
  const double channels =
      w.of_weight ? w.reduced : padded(w.reduced, units.small_slab_channels, c.slab_channels);
  const Blocks best = best_blocks(
      w.product(channels), units.tiles, units.splits, 0, cost.on(chip), chip.sms,
      [&](Tile, double area, double busy) {
        const double step = 2 * area / per_clock * factor;
        return chip.units * std::max(step * power.stretch(chip.hbm ? busy : busy / factor),
                                     c.chain_cycles + units.issue_share * step);
      });
  const double memory_s =
      w.bytes / chip.dram_bytes_per_s +
      units.ramp_s * w.bytes / (w.bytes + chip.dram_bytes_per_s * units.ramp_half_s);
  const double start_s = launch_latency_s(c.launch_us, chip);
  const double compute_s = chip.seconds(best.cycles);
  LawTime time = {start_s + root_of_squares(memory_s, compute_s),
                  best.tile,
                  start_s,
                  memory_s,
                  compute_s,
                  best.busy};
  // Other kernels read images by pixel.
  if (!channels_last && !reads_by_channel(w, kernel.dtype, chip)) add_conversion(time, w, chip);
  if (channels_last) {
    const double seconds = repacking_s(w, kernel.dtype, chip);
    time.seconds += seconds;
    time.memory_s += seconds;
  }
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
  const bool channels_last = std::get<Convolution>(kernel.shape).channels_last != 0;
  if (work.is_depthwise()) return depthwise(work, kernel.dtype, channels_last, chip);
  if (channels_last && is_grouped_on_lanes(work, kernel.dtype, chip))
    return grouped_on_lanes(work, chip);
  return single ? on_lanes(work, channels_last, chip)
                : on_matrix_units(work, kernel, channels_last, chip);
}

}  // namespace tilecast
