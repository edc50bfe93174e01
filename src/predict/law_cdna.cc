#include "predict/law_cdna.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/dtype.h"

namespace tilecast {
namespace {

/// Energy of a FLOP over the power of the board, s/FLOP. Energy falls with the process.
double board_s_per_flop(DType dtype, const Chip& chip) {
  const CdnaBlocks& c = chip.laws.tensor_matmul.cdna3;
  constexpr int64_t kFewBits = 4;
  const auto bits = static_cast<double>(dtype_bits(dtype));
  const double joule = dtype_bits(dtype) <= kFewBits ? c.of_4_bits_j_per_flop
                       : has_8_bits_or_less(dtype)
                           ? c.of_8_bits_j_per_flop
                           : c.of_16_bits_j_per_flop * bits / (2 * kBitsPerByte);
  return chip.energy * joule * process_nm(chip) / c.reference_process_nm / chip.board_power_w;
}

/// Cycles of a compute unit for one step of k of a tile.
struct CdnaStep {
  double per_element;        ///< on the matrix units
  double power;              ///< what these grow by if all compute units are busy
  double row_bytes;          ///< that a row of the tile takes through the caches
  double column_bytes;       ///< the same of a column
  double conversion_cycles;  ///< of a column, on the general lanes
  double feed_bytes_per_cycle;
  double units;

  CdnaStep(const Kernel& kernel, const Chip& chip)
      : feed_bytes_per_cycle(chip.laws.tensor_matmul.cdna3.feed_bytes_per_cycle),
        units(chip.units) {
    const DType dtype = kernel.compute_dtype();
    const double rate = chip.device.matmul_peak(dtype);
    per_element = 2 / (rate / (chip.sms * chip.clock_hz));
    power = board_s_per_flop(dtype, chip) * rate;
    row_bytes = column_bytes = element_bytes(dtype);
    conversion_cycles = 0;
  }
  double cycles(double rows, double columns, double busy) const {
    const double multiply = per_element * rows * columns * (1 + power * busy);
    const double feed = (rows * row_bytes + columns * column_bytes) / feed_bytes_per_cycle +
                        columns * conversion_cycles;
    return units * root_of_squares(multiply, feed);
  }
};

/// Whether the weights are stored in the order in which registers hold them. They do not pass
/// through shared memory then. AITER has such kernels for FP8 with a scale for each row and for
/// FP4.
bool weights_in_register_order(QuantScheme scheme) {
  return scheme == QuantScheme::kFp8 || scheme == QuantScheme::kFp4 ||
         scheme == QuantScheme::kFp4Fp8;
}

}  // namespace

Blocks cdna_product_blocks(const ProductSizes& sizes, const Kernel& kernel, const Chip& chip) {
  const TensorMatmulConstants& all = chip.laws.tensor_matmul;
  const CdnaBlocks& c = all.cdna3;
  CdnaStep step(kernel, chip);
  if (weights_in_register_order(kernel.scheme)) step.column_bytes = 0;
  const bool block_scaled = kernel.scheme == QuantScheme::kFp8Block;
  const double conversion = converts_weights(kernel) ? all.conversion_ratio : 1;
  const BlockCost cost =
      BlockCost{.fill = c.fill_cycles,
                .split = c.split_cycles,
                .element = c.element_cycles,
                .idle_share = c.idle_share,
                .shortest_k = c.shortest_k,
                .latency = block_scaled ? c.block_scaled_latency_cycles : c.latency_cycles}
          .on(chip);
  // Kernels for 8 and 4 bits do not split k, but those with scales of blocks do.
  const bool splits = block_scaled || !has_8_bits_or_less(kernel.compute_dtype());
  const auto step_cycles = [&](Tile tile, double area, double busy) {
    // Sums of blocks with a scale of their own take registers beside those of the tile.
    if (block_scaled && area > c.most_block_scaled_elements) return kNever;
    return conversion * step.cycles(tile.m, tile.n, busy);
  };
  return best_blocks(sizes, c.tiles, splits ? std::span<const double>(all.splits) : kUnsplit, 0,
                     cost, chip.sms, step_cycles);
}

LawTime cdna_experts_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const CdnaExperts& c = chip.laws.experts.cdna3;
  const auto& e = std::get<Experts>(kernel.shape);
  const auto hidden = static_cast<double>(e.hidden_dim), ffn = static_cast<double>(e.ffn_dim);
  const double experts = std::max(1.0, e.active_experts);
  const double tokens = std::max(1.0, e.assignments / experts);
  const double weight_bytes = std::max(
      0.0, static_cast<double>(kernel.bytes()) - 2.0 * static_cast<double>(kernel.write_bytes));
  CdnaStep step(kernel, chip);
  step.column_bytes = static_cast<double>(weight_bits(kernel)) / kBitsPerByte;
  if (converts_weights(kernel)) step.conversion_cycles = c.conversion_cycles;
  const double most_elements = kernel.scheme == QuantScheme::kFp8Block
                                   ? chip.laws.tensor_matmul.cdna3.most_block_scaled_elements
                                   : kNever;
  const auto product_cycles = [&](double n, double k) {
    double best = kNever;
    for (const double rows : c.tile_rows) {
      for (const double columns : c.tile_columns) {
        if (rows * columns > most_elements) continue;
        const double blocks = experts * ceil_of(tokens / rows) * ceil_of(n / columns) / chip.sms;
        // Blocks of an expert start as soon as others end.
        const double waves = std::max(1.0, blocks);
        const double element = chip.blocks * c.element_cycles * rows * columns;
        best = std::min(best, waves * (k * step.cycles(rows, columns, blocks / waves) + element));
      }
    }
    return best + chip.blocks * c.fill_cycles;
  };
  // The first product has gate and up where the experts are gated: by the FLOPs.
  const double flops_per_pair =
      static_cast<double>(kernel.flops) / std::max(kFewest, e.assignments);
  const double first_columns = std::max(1.0, flops_per_pair / (2 * hidden) - ffn);
  const double input_bytes = element_bytes(kernel.compute_dtype());
  const double output_bytes = element_bytes(kernel.dtype);
  LawTime law{.start_s = launch_latency_s(traits_of(conditions.software).expert_launches_us, chip)};
  law.seconds = law.start_s;
  struct Product {
    double n, k, results;
  };
  for (const Product& product :
       {Product{first_columns, hidden, ffn}, Product{hidden, ffn, hidden}}) {
    const double share = product.n * product.k / (first_columns * hidden + hidden * ffn);
    const double row_bytes = product.k * input_bytes + product.results * output_bytes;
    const double memory_s =
        (weight_bytes * share + c.activation_passes * e.assignments * row_bytes) /
        chip.dram_bytes_per_s;
    const double compute_s = chip.seconds(product_cycles(product.n, product.k));
    law.memory_s += memory_s;
    law.compute_s += compute_s;
    law.seconds += root_of_squares(memory_s, compute_s);
  }
  if (kernel.scheme == QuantScheme::kFp8Block)
    law.version_ratio = traits_of(conditions.software).block_fp8_experts_ratio;
  return law;
}

}  // namespace tilecast
