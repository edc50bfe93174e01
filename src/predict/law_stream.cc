// Laws of kernels that DRAM limits: pointwise operators, copies, reductions, softmax and norms.

#include <algorithm>

#include "ops/op_def.h"
#include "predict/law.h"

namespace tilecast {
namespace {

/// DRAM bandwidth that streaming kernels reach.
double stream_bytes_per_s(const Chip& chip) {
  const StreamConstants& c = chip.laws.stream;
  return chip.reached_dram_bytes_per_s(!chip.hbm  ? c.gddr_dram_share * chip.uncorrected
                                       : chip.amd ? c.amd_hbm_dram_share
                                                  : c.hbm_dram_share);
}

/// Seconds for all bytes but those that stay in L2 between calls of one kernel. In a model, other
/// kernels come in between: kernels of 67 to 270 MB in models on H100 (50 MB of L2) move 2.9 to 3.3
/// TB/s of 3.35 (data/measurements, model_kernels).
double traffic_s(double bytes, Caches caches, const Chip& chip) {
  if (bytes <= 0) return 0;
  if (caches == Caches::kCold) return bytes / stream_bytes_per_s(chip);
  // Writes stay in L2, less of them the more a call writes beyond its size.
  const StreamConstants& c = chip.laws.stream;
  const double l2 = std::min(chip.l2_bytes, bytes / c.kept_part);
  const double kept = c.kept_ratio * l2 * bytes / (bytes + 2 * l2);
  return std::max((bytes - kept) / stream_bytes_per_s(chip),
                  bytes / chip.l2_bytes_per_s(c.l2_bytes_per_cycle));
}

double vector_s(const Kernel& kernel, const Chip& chip) {
  const double peak =
      std::max(chip.gpu.vector_peak(kernel.dtype), chip.gpu.vector_peak(DType::kFp32));
  return chip.units * static_cast<double>(kernel.flops) / peak;
}

/// Seconds of the SMs: of all rows, and at least those of one row, which no other SM shortens.
double rows_on_sms_s(const RowCost& cost, double rows, double columns, const Chip& chip) {
  const double schedulers =
      static_cast<double>(chip.gpu.schedulers_per_sm) / chip.laws.rows.reference_schedulers;
  const double all =
      rows * (cost.row_cycles + cost.element_cycles * columns) / (chip.sms * schedulers);
  return chip.seconds(chip.units * std::max(all, cost.start_cycles + cost.chain_cycles * columns));
}

}  // namespace

/// Copies and fills: the measured kernels without arithmetic that a residual knows are gathers and
/// scatters, whose rows wait for indices.
static bool only_moves(const Kernel& kernel) {
  static const OpId stream = require_op("stream");
  return kernel.op == stream && kernel.flops == 0;
}

/// Batch norms that are no norm of rows: cuDNN's, with stored statistics, and in training where
/// images are stored by pixel.
static bool is_batch_norm(const Kernel& kernel) {
  static const OpId ops[] = {require_op("batch_norm"), require_op("batch_norm_backward")};
  return kernel.op == ops[0] || kernel.op == ops[1];
}

static LawTime batch_norm_law(const Kernel& kernel, double traffic, const Chip& chip) {
  const StreamConstants& c = chip.laws.stream;
  const auto& stream = std::get<Stream>(kernel.shape);
  const bool training = stream.rows > 1;
  const double memory_s = traffic * (training ? c.batch_norm_ratio : 1);
  const double cycles = training ? 0 : c.batch_norm_cycles / chip.sms;
  const double sms_s =
      chip.seconds(chip.units * cycles * static_cast<double>(stream.rows * stream.elements));
  const double start = stream_start_s(chip);
  return {.seconds = start + std::max(memory_s, sms_s),
          .start_s = start,
          .memory_s = memory_s,
          .compute_s = sms_s,
          .stands_alone = true};
}

LawTime stream_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const double traffic = traffic_s(static_cast<double>(kernel.bytes()), conditions.caches, chip);
  if (is_batch_norm(kernel)) return batch_norm_law(kernel, traffic, chip);
  const double start = stream_start_s(chip), vector = vector_s(kernel, chip);
  LawTime time{start + std::max(traffic, vector), {}, start, traffic, vector};
  time.stands_alone = only_moves(kernel);
  return time;
}

/// Compiled norms and softmaxes whose rows stay in registers: a block has several short rows. On an
/// H100, Inductor's norms of 192 to 768 columns move 3.0 TB/s, of 96 columns 1.9, where PyTorch's
/// own move 0.5 to 1.8 (data/measurements, stages: timm_ops). As many columns as PyTorch's softmax
/// keeps (torch/_inductor/codegen/triton.py, persistent reductions).
static bool keeps_rows_in_registers(const Kernel& kernel, const RowsConstants& c) {
  static const OpId ops[] = {require_op("fused_layer_norm"), require_op("fused_softmax")};
  return (kernel.op == ops[0] || kernel.op == ops[1]) &&
         std::get<Rows>(kernel.shape).columns <= c.register_columns;
}

LawTime rows_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const RowsConstants& c = chip.laws.rows;
  const auto& rows = std::get<Rows>(kernel.shape);
  const bool softmax = rows.function == Rows::Function::kSoftmax;
  const double traffic = traffic_s(static_cast<double>(kernel.bytes()), conditions.caches, chip);
  if (keeps_rows_in_registers(kernel, c)) {
    const double start_s = stream_start_s(chip);
    return {.seconds = start_s + traffic,
            .start_s = start_s,
            .memory_s = traffic,
            .stands_alone = true};
  }
  const auto count = static_cast<double>(rows.rows), columns = static_cast<double>(rows.columns);
  const bool once = softmax && rows.columns <= c.register_columns;
  const RowCost& cost = !softmax ? c.norm : once ? c.short_softmax : c.long_softmax;
  const double sms_s = rows_on_sms_s(cost, count, columns, chip);
  const double start = stream_start_s(chip);
  if (once) return {start + overlapped_s(traffic, sms_s), {}, start, traffic, sms_s};
  // The input is read a second time: from L2, or from DRAM where the rows of all blocks in flight
  // do not fit into L2.
  const double row_bytes =
      static_cast<double>(kernel.read_bytes) / static_cast<double>(std::max<int64_t>(1, rows.rows));
  const double block_threads =
      std::clamp(columns / c.columns_per_thread, c.fewest_threads, c.most_threads);
  const double in_flight = c.threads_in_flight / block_threads * row_bytes;
  const double fit = chip.l2_bytes / in_flight;
  const double miss = 1 / (1 + fit * fit);
  const auto input = static_cast<double>(kernel.read_bytes);
  const double again = input / chip.l2_bytes_per_s(c.l2_bytes_per_cycle) +
                       c.missed_share * miss * input / stream_bytes_per_s(chip);
  const double readings = (softmax ? c.softmax_reading_ratio : 1) * again;
  return {start + overlapped_s(traffic + readings, sms_s), {}, start, traffic + readings, sms_s};
}

std::optional<BlockRows> block_rows_of(const Kernel& kernel) {
  using Kind = BlockRows::Kind;
  static const OpId ops[] = {require_op("rms_norm"), require_op("add_rms_norm"),
                             require_op("gated_activation"), require_op("rotary")};
  if (kernel.op == ops[0] || kernel.op == ops[1]) {
    const auto& norm = std::get<Rows>(kernel.shape);
    return BlockRows{Kind::kNorm, norm.rows, norm.columns};
  }
  if (kernel.op != ops[2] && kernel.op != ops[3]) return std::nullopt;
  const auto& stream = std::get<Stream>(kernel.shape);
  return BlockRows{kernel.op == ops[2] ? Kind::kGate : Kind::kRotary, stream.rows, stream.elements};
}

namespace {

/// Kernels that move rows by vectors of 16 bytes. The kernels before have left their tensors in L2:
/// the larger these are beside it, the less of them. What is written where it was read goes to DRAM
/// only as far as L2 cannot hold it: a guess, which norms of 8,192 tokens on an RTX 4090 would
/// settle.
LawTime vector_rows_law(const Kernel& kernel, const BlockRows& block_rows, const Chip& chip) {
  const BlockRowsConstants& c = chip.laws.block_rows;
  const bool norm = block_rows.kind == BlockRows::Kind::kNorm;
  const VectorRowCost& cost = norm                                        ? c.norm_by_vectors
                              : block_rows.kind == BlockRows::Kind::kGate ? c.gate_by_vectors
                                                                          : c.rotary_by_vectors;
  static const OpId norm_alone = require_op("rms_norm");
  const bool in_place = kernel.op != norm_alone && block_rows.kind != BlockRows::Kind::kGate;
  const auto bytes = static_cast<double>(kernel.bytes());
  const double tensors = in_place ? static_cast<double>(kernel.read_bytes) : bytes;
  const double fill = tensors / chip.l2_bytes;
  const double missed = tensors * fill / (fill + c.missed_l2_ratio);
  const double evicted = (bytes - tensors) * std::max(0.0, 1 - 1 / std::max(fill, 1.0));
  const auto columns = static_cast<double>(block_rows.columns);
  const double read_again =
      norm ? static_cast<double>(block_rows.rows) * columns * element_bytes(kernel.dtype) : 0;
  const double l2_s = (bytes + read_again) / chip.l2_bytes_per_s(cost.l2_bytes_per_cycle);
  const double dram_s = (missed + evicted) / stream_bytes_per_s(chip);
  const double chain_s = chip.seconds(chip.units * cost.chain_cycles * columns);
  const double start = stream_start_s(chip);
  return {.seconds = start + chain_s + l2_s + dram_s,
          .start_s = start,
          .memory_s = l2_s + dram_s,
          .compute_s = chain_s,
          .stands_alone = true};
}

}  // namespace

LawTime block_rows_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const BlockRows block_rows = *block_rows_of(kernel);
  const bool norm = block_rows.kind == BlockRows::Kind::kNorm;
  if (!traits_of(conditions.software).has_row_blocks)
    return norm ? rows_law(kernel, chip, conditions) : stream_law(kernel, chip, conditions);
  if (traits_of(conditions.software).moves_rows_by_vectors && !conditions.scalar_rows)
    return vector_rows_law(kernel, block_rows, chip);
  const BlockRowsConstants& c = chip.laws.block_rows;
  const RowCost& cost = norm                                        ? c.norm
                        : block_rows.kind == BlockRows::Kind::kGate ? c.gate
                                                                    : c.rotary;
  const auto rows = static_cast<double>(block_rows.rows);
  const auto columns = static_cast<double>(block_rows.columns);
  // Small operands, which the kernel before has left in L2.
  double traffic = traffic_s(static_cast<double>(kernel.bytes()), Caches::kWarm, chip);
  if (norm)
    traffic += rows * columns * element_bytes(kernel.dtype) /
               chip.l2_bytes_per_s(c.second_reading_bytes_per_cycle);
  const double sms_s = rows_on_sms_s(cost, rows, columns, chip);
  const double start = stream_start_s(chip);
  return {start + overlapped_s(traffic, sms_s), {}, start, traffic, sms_s};
}

}  // namespace tilecast
