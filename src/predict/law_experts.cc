// The law of fused layers of experts: two grouped matrix products, one tile size for all experts,
// between passes that gather the tokens and add up the results.

#include <algorithm>
#include <cmath>

#include "predict/law.h"
#include "predict/law_cdna.h"

namespace tilecast {
namespace {

struct Layer {
  double experts;  ///< that get a token, at least one
  double tokens;   ///< of each
  double weight_bytes;
  double step_per_element;  ///< cycles of an SM for one step of k, per element of a tile
  double power;             ///< what these grow by if all SMs are busy
  double step_per_column;   ///< cycles of an SM for one step of k, per column of a tile
};

/// Cycles of one of the grouped products: [tokens, k] x [k, n] for each expert.
double product_cycles(const Layer& layer, double n, double k, const Chip& chip) {
  const ExpertsConstants& c = chip.laws.experts;
  double best = kNever;
  for (const double rows : c.tile_rows) {
    const double area = rows * c.tile_columns;
    const double blocks =
        layer.experts * std::ceil(layer.tokens / rows) * std::ceil(n / c.tile_columns);
    const double waves = waves_of(blocks / chip.sms, c.idle_share);
    // The mean share of the SMs that have a block is blocks / (SMs · waves).
    const double step = layer.step_per_element * (1 + layer.power * blocks / chip.sms / waves);
    const double row = step * area + layer.step_per_column * c.tile_columns;
    best = std::min(best, waves * (k * row + chip.blocks * c.element_cycles * area));
  }
  return best + chip.blocks * c.fill_cycles;
}

/// One of the products in FP32. No library has a grouped kernel for it: the experts' products run
/// as in layers, one for each expert in one batch.
double single_precision_product_s(const Layer& layer, double n, double k, const Chip& chip,
                                  const Conditions& conditions) {
  const auto whole = [](double size) { return std::max<int64_t>(1, std::llround(size)); };
  const Gemm gemm{.batch = whole(layer.experts),
                  .m = whole(layer.tokens),
                  .n = whole(n),
                  .k = whole(k),
                  .batched = true};
  Kernel product{.shape = gemm, .dtype = DType::kFp32};
  const double tokens = layer.experts * layer.tokens;
  product.flops = whole(2 * tokens * n * k);
  product.read_bytes = whole(kFp32Bytes * (layer.experts * n * k + tokens * k));
  product.write_bytes = whole(kFp32Bytes * tokens * n);
  return single_precision_law(product, chip, conditions).seconds;
}

/// Whether Marlin's kernels compute the layer: they convert weights to 16 bits.
bool runs_marlin(const Kernel& kernel, const Conditions& conditions) {
  return conditions.moe_backend == MoeBackend::kMarlin && converts_weights(kernel);
}

double padded(double size, double multiple) { return std::ceil(size / multiple) * multiple; }

/// Marlin's layer: its blocks share the work evenly, so there are no waves; a weight is converted
/// once for each tile of an expert's tokens.
LawTime marlin_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const MarlinExperts& c = chip.laws.experts.marlin;
  const auto& e = std::get<Experts>(kernel.shape);
  const double experts = std::max(1.0, e.active_experts);
  const double tokens = std::max(1.0, e.assignments / experts);
  // The tile is chosen by the tokens of all experts, busy or not.
  const double mean = e.assignments * static_cast<double>(e.ranks) /
                      std::max(1.0, static_cast<double>(e.num_experts));
  const auto tile = std::find_if(c.tile_rows.begin(), c.tile_rows.end(),
                                 [&](double rows) { return mean / rows < c.least_fill; });
  const double rows = tile == c.tile_rows.end() ? c.tile_rows.back() : *tile;
  const double io_bytes = 2.0 * static_cast<double>(kernel.write_bytes);
  const double weight_bytes = std::max(0.0, static_cast<double>(kernel.bytes()) - io_bytes);
  // Both products' columns and reductions are padded, so that either dimension has both multiples.
  const double hidden = padded(static_cast<double>(e.hidden_dim), c.column_multiple);
  const double ffn = padded(static_cast<double>(e.ffn_dim), c.reduction_multiple);
  const double padding =
      hidden * ffn / static_cast<double>(e.hidden_dim) / static_cast<double>(e.ffn_dim);
  const double weights =
      padding * static_cast<double>(kernel.flops) / 2 / std::max(1.0, e.assignments);
  const double sheet = chip.device.matmul_peak(kernel.compute_dtype()) / chip.sms / chip.clock_hz;
  const double rate = std::min(sheet, c.mma_flops_per_cycle);
  const double tile_cycles =
      weights * (2 * rows / rate * c.reached_ratio * chip.units + c.conversion_cycles * chip.units);
  const double compute_s =
      chip.seconds(experts * std::ceil(tokens / rows) * tile_cycles / chip.sms);
  const double weights_s = padding * weight_bytes / chip.dram_bytes_per_s;
  constexpr double kHiddenPasses = 2, kInnerPasses = 3;
  const double elements = e.assignments * (kHiddenPasses * hidden + kInnerPasses * ffn);
  const double activations_s =
      c.activation_passes * elements * element_bytes(kernel.dtype) / chip.dram_bytes_per_s;
  const double start_s = launch_latency_s(traits_of(conditions.software).expert_launches_us, chip);
  LawTime law{start_s + std::max(weights_s, compute_s) + activations_s,
              {},
              start_s,
              weights_s + activations_s,
              compute_s};
  law.stands_alone = true;
  return law;
}

}  // namespace

LawTime experts_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  // Marlin's kernels are written for NVIDIA's matrix units.
  if (!chip.amd && runs_marlin(kernel, conditions)) return marlin_law(kernel, chip, conditions);
  if (chip.cdna3 && kernel.compute_dtype() != DType::kFp32)
    return cdna_experts_law(kernel, chip, conditions);
  const ExpertsConstants& c = chip.laws.experts;
  const auto& e = std::get<Experts>(kernel.shape);
  const auto hidden = static_cast<double>(e.hidden_dim), ffn = static_cast<double>(e.ffn_dim);
  const double rate = chip.device.matmul_peak(kernel.compute_dtype());
  const double experts = std::max(1.0, e.active_experts);
  const double io_bytes = 2.0 * static_cast<double>(kernel.write_bytes);
  Layer layer{
      .experts = experts,
      .tokens = std::max(1.0, e.assignments / experts),
      .weight_bytes = std::max(0.0, static_cast<double>(kernel.bytes()) - io_bytes),
      .step_per_element = 2 / (rate / (chip.sms * chip.clock_hz)) * chip.units * c.reached_ratio,
      .power = UnitsPower(chip, c.hbm_j_per_flop, c.gddr_j_per_flop, rate).share_of_board(),
      .step_per_column = converts_weights(kernel) ? c.conversion_cycles * chip.units : 0};
  // The first product has gate and up where the experts are gated: by the FLOPs.
  const double flops_per_pair =
      static_cast<double>(kernel.flops) / std::max(kFewest, e.assignments);
  const double columns = std::max(1.0, flops_per_pair / (2 * hidden) - ffn);
  const double warm =
      conditions.caches == Caches::kCold
          ? 0
          : ramp(c.l2_fit_ratio - static_cast<double>(kernel.bytes()) / chip.l2_bytes, 0,
                 c.l2_fit_span_ratio);
  const SoftwareTraits& traits = traits_of(conditions.software);
  const double start_s = launch_latency_s(traits.expert_launches_us, chip);
  double seconds = start_s, memory_s = 0;
  for (const auto& [n, k] : {std::pair{columns, hidden}, std::pair{hidden, ffn}}) {
    if (kernel.compute_dtype() == DType::kFp32) {
      seconds += single_precision_product_s(layer, n, k, chip, conditions);
      continue;
    }
    const double share = n * k / (columns * hidden + hidden * ffn);
    const double cold_s = c.dram_time_ratio * layer.weight_bytes * share / chip.dram_bytes_per_s;
    const double warm_s =
        std::min(cold_s, layer.weight_bytes * share / chip.l2_bytes_per_s(c.l2_bytes_per_cycle));
    const double weights_s = cold_s * (1 - warm) + warm_s * warm;
    memory_s += weights_s;
    seconds +=
        cold_s * (1 - warm) + warm_s * warm + chip.seconds(product_cycles(layer, n, k, chip));
  }
  const double activations_s = e.assignments * hidden * element_bytes(kernel.dtype) *
                               c.activation_passes / chip.dram_bytes_per_s;
  memory_s += activations_s;
  seconds += activations_s;
  LawTime law{seconds, {}, start_s, memory_s, seconds - start_s - memory_s};
  if (kernel.scheme == QuantScheme::kFp8Block) law.version_ratio = traits.block_fp8_experts_ratio;
  return law;
}

}  // namespace tilecast
