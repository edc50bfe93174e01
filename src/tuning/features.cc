#include "tuning/features.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace tilecast::tuning {
namespace {

/// Cost of a kernel beside its work, in microseconds (the 1st percentile of all measured times in
/// MIOpen's find databases is 9 us, the shortest 3 us).
constexpr double kLaunchUs = 5;

class Row {
 public:
  explicit Row(Features& features) : features_(features) {}
  void add(double value) { features_.x[at_++] = static_cast<float>(value); }
  void flag(bool value) { add(value ? 1 : 0); }
  /// How often 2 divides the size, at most `most` times.
  void twos(int64_t size, int most) {
    add(std::min(std::countr_zero(static_cast<uint64_t>(size)), most));
  }
  size_t count() const { return at_; }

 private:
  Features& features_;
  size_t at_ = 0;
};

/// The matrix product that the pass asks for (implicit GEMM), per group.
struct Product {
  double m, n, k;
};

Product product_of(const ConvProblem& p) {
  const auto taps = static_cast<double>(p.c / p.group * p.r * p.s);
  const auto results = static_cast<double>(p.k / p.group);
  const double pixels = static_cast<double>(p.n) * static_cast<double>(p.oh * p.ow);
  if (p.pass == ConvPass::kForward) return {results, pixels, taps};
  if (p.pass == ConvPass::kInputGradient) return {taps, pixels, results};
  return {results, taps, pixels};
}

void add_kind(Row& row, const ConvProblem& p) {
  for (const ConvPass pass :
       {ConvPass::kForward, ConvPass::kInputGradient, ConvPass::kWeightGradient})
    row.flag(p.pass == pass);
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8})
    row.flag(p.dtype == dtype);
  row.flag(p.channels_last);
  row.flag(p.stride_h == 1 && p.stride_w == 1);
  row.flag(p.stride_h == 2 && p.stride_w == 2);
  row.add(log2_size(static_cast<double>(p.stride_h * p.stride_w)));
  row.add(log2_size(static_cast<double>(std::max(p.dil_h, p.dil_w))));
  row.flag(p.pad_h == 0 && p.pad_w == 0);
  row.flag(2 * p.pad_h == p.r - 1 && 2 * p.pad_w == p.s - 1);
  row.add(log2_size(static_cast<double>(1 + p.pad_h + p.pad_w)));
  row.flag(p.r == 1 && p.s == 1);
  row.flag(p.r == 3 && p.s == 3);
  row.flag(p.r == 5 && p.s == 5);
  row.flag(p.r == p.s);
  row.flag(p.c == p.group && p.group > 1);
  row.flag(p.group == 1);
}

void add_alignment(Row& row, const ConvProblem& p) {
  const int64_t cg = p.c / p.group;
  row.twos(p.n, 6);
  row.twos(cg, 7);
  row.twos(p.k / p.group, 7);
  row.twos(p.c, 3);
  row.twos(p.k, 3);
  row.twos(p.oh * p.ow, 6);
  row.twos(p.ow, 3);
  row.twos(p.w, 3);
  row.twos(p.h * p.w, 4);
  row.twos(p.n * (p.oh * p.ow), 7);
  row.twos(cg * p.r * p.s, 6);
}

void add_tiles(Row& row, const ConvProblem& p, const Product& product, const TunedChip& chip) {
  for (const double tile : {16, 32, 64, 128, 256}) row.add(log2_size(tile_waste(product.m, tile)));
  for (const double tile : {32, 64, 128, 256}) row.add(log2_size(tile_waste(product.n, tile)));
  for (const double tile : {4, 8, 16, 32}) row.add(log2_size(tile_waste(product.k, tile)));
  for (const double tile : {32, 64, 128}) {
    const double tiles =
        std::ceil(product.m / tile) * std::ceil(product.n / tile) * static_cast<double>(p.group);
    const double waves = tiles / chip.units;
    row.add(log2_size(waves));
    row.add(log2_size(std::ceil(waves) / waves));
  }
  const auto oh = static_cast<double>(p.oh), ow = static_cast<double>(p.ow);
  const auto h = static_cast<double>(p.h), w = static_cast<double>(p.w);
  const auto r = static_cast<double>(p.r), s = static_cast<double>(p.s);
  for (const double tile : {2, 3, 6}) {  // Winograd's
    row.add(log2_size(tile_waste(oh, tile) * tile_waste(ow, tile)));
    row.add(log2_size(tile_waste(h, tile) * tile_waste(w, tile)));
  }
  row.add(log2_size(tile_waste(r, 3) * tile_waste(s, 3)));
  row.add(log2_size(tile_waste(r, 2) * tile_waste(s, 2)));
  row.add(log2_size(static_cast<double>(p.n) * std::ceil(oh / 2) * std::ceil(ow / 2)));
  row.add(log2_size(tile_waste(static_cast<double>(p.k / p.group), 32)));
  row.add(log2_size(tile_waste(ow, 16)));
  row.add(log2_size(tile_waste(ow, 32)));
  row.add(log2_size(tile_waste(oh * ow, 64)));
}

}  // namespace

TunedChip tuned_chip(const Device& device, DType dtype) {
  const Gpu& gpu = device.gpu();
  TunedChip chip;
  chip.units = static_cast<double>(gpu.sm_count);
  chip.clock_ghz = gpu.boost_clock_hz / 1e9;
  chip.gbytes_per_s = device.memory_bytes_per_s / 1e9;
  chip.l2_mib = static_cast<double>(gpu.l2_bytes) / (1 << 20);
  chip.vector_tflops = gpu.vector_peak(DType::kFp32) / 1e12;
  chip.vector_dtype_tflops = gpu.vector_peak(dtype) / 1e12;
  if (chip.vector_dtype_tflops <= 0) chip.vector_dtype_tflops = chip.vector_tflops;
  chip.peak_tflops = gpu.matmul_peak(dtype) / 1e12;
  if (chip.peak_tflops <= 0) chip.peak_tflops = gpu.matmul_peak(DType::kFp32) / 1e12;
  chip.matrix_unit = gpu.matrix_instruction == MatrixInstruction::kMfma;
  chip.architecture = gpu.architecture;
  const auto known = std::find(kMeasuredClasses.begin(), kMeasuredClasses.end(), gpu.architecture);
  if (known != kMeasuredClasses.end())
    chip.kernel_class = static_cast<int>(known - kMeasuredClasses.begin());
  return chip;
}

double roofline_us(const ConvProblem& p, const TunedChip& chip, double peak_tflops) {
  const double bytes = p.input_bytes() + p.output_bytes() + p.weight_bytes();
  return std::max(p.flops() / peak_tflops * 1e-6, bytes / chip.gbytes_per_s * 1e-3) + kLaunchUs;
}

Features features_of(const ConvProblem& p, const TunedChip& chip) {
  Features features;
  Row row(features);
  for (const int64_t size :
       {p.n, p.c / p.group, p.k / p.group, p.group, p.oh, p.ow, p.h, p.w, p.r, p.s})
    row.add(log2_size(static_cast<double>(size)));
  add_kind(row, p);
  const Product product = product_of(p);
  row.add(log2_size(product.m));
  row.add(log2_size(product.n));
  row.add(log2_size(product.k));
  const double x = p.input_bytes(), y = p.output_bytes(), weights = p.weight_bytes();
  const double flops = p.flops(), bytes = x + y + weights;
  row.add(log2_size(flops) - 30);
  row.add(log2_size(x) - 20);
  row.add(log2_size(y) - 20);
  row.add(log2_size(weights) - 20);
  row.add(log2_size(flops / bytes));
  const double compute_us = flops / chip.peak_tflops * 1e-6;
  const double vector_us = flops / chip.vector_tflops * 1e-6;
  const double memory_us = bytes / chip.gbytes_per_s * 1e-3;
  features.roofline_us = roofline_us(p, chip, chip.peak_tflops);
  features.vector_roofline_us = roofline_us(p, chip, chip.vector_dtype_tflops);
  row.add(log2_size(compute_us));
  row.add(log2_size(vector_us));
  row.add(log2_size(memory_us));
  row.add(log2_size(compute_us / memory_us));
  row.add(log2_size(features.roofline_us));
  row.add(log2_size(1 + compute_us / kLaunchUs));
  row.add(log2_size(bytes / (chip.l2_mib * (1 << 20))));
  add_alignment(row, p);
  add_tiles(row, p, product, chip);
  row.add(log2_size(chip.units) - 6.5);
  row.add(log2_size(chip.peak_tflops / chip.gbytes_per_s));
  row.add(log2_size(chip.peak_tflops / chip.vector_tflops));
  row.flag(chip.matrix_unit);
  row.add(log2_size(chip.clock_ghz));
  row.add(log2_size(chip.gbytes_per_s) - 10);
  TILECAST_CHECK(row.count() == kProblemFeatures);
  for (int i = 0; i < static_cast<int>(kKernelClasses); ++i) row.flag(chip.kernel_class == i);
  return features;
}

}  // namespace tilecast::tuning
