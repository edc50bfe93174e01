// Laws of kernels that DRAM limits: pointwise operators, copies, reductions, softmax and norms.

#include <algorithm>
#include <array>

#include "ops/op_def.h"
#include "predict/law.h"

namespace tilecast {
namespace {

/// DRAM bandwidth that streaming kernels reach, over that of the data sheet: 0.90 to 0.96 with HBM
/// (P100, the first with it, 0.79), 0.77 to 0.83 with GDDR; on AMD's GPUs 0.77 to 0.83 with HBM.
double stream_bytes_per_s(const Chip& chip) {
  return chip.reached_dram_bytes_per_s(chip.hbm ? (chip.amd ? 0.80 : 0.90) : 0.79);
}

/// Seconds for all bytes but those that stay in L2 between calls of one kernel. In a model, other
/// kernels come in between: kernels of 67 to 270 MB in models on H100 (50 MB of L2) move 2.9 to 3.3
/// TB/s of 3.35 (data/measurements, model_kernels).
double traffic_s(double bytes, Caches caches, const Chip& chip) {
  if (bytes <= 0) return 0;
  if (caches == Caches::kCold) return bytes / stream_bytes_per_s(chip);
  // Writes stay in L2, less of them the more a call writes beyond its size.
  const double l2 = std::min(chip.l2_bytes, bytes / 2.4);
  const double kept = 1.2 * l2 * bytes / (bytes + 2 * l2);
  return std::max((bytes - kept) / stream_bytes_per_s(chip), bytes / chip.l2_bytes_per_s(64));
}

double vector_s(const Kernel& kernel, const Chip& chip) {
  const double peak =
      std::max(chip.gpu.vector_peak(kernel.dtype), chip.gpu.vector_peak(DType::kFp32));
  return chip.units * static_cast<double>(kernel.flops) / peak;
}

/// Cost of the rows of softmax and norms on the SMs, beside moving them. Fitted on PyTorch's
/// kernels on H100 (data/measurements, torch_ops).
struct RowCost {
  double row, column;   ///< cycles of an SM per row and per element, with four schedulers
  double start, chain;  ///< cycles of one row, and per element of it, that nothing shortens
};
constexpr RowCost kNormRow = {330, 0.33, 0, 3.2};      // a block per row: running mean and variance
constexpr RowCost kShortSoftmax = {10, 0.45, 0, 2.2};  // a warp per row
constexpr RowCost kLongSoftmax = {300, 0.61, 1850, 0.4};  // a block per row, three passes
// Kernels of serving software, a block of up to 1024 threads per row. Fitted on Vidur's profiles of
// A40, A100 and H100. An element of a norm is read twice, one of a gated activation is two inputs.
constexpr RowCost kServedNorm = {25, 0.54, 0, 0.84};
constexpr RowCost kServedGate = {60, 0.80, 0, 0.75};
constexpr RowCost kServedRotary = {60, 0.60, 0, 0.60};
/// Bytes per clock and SM at which the second reading of a norm's rows comes from the caches.
constexpr double kSecondReading = 4.5;

/// Seconds of the SMs for all rows; at least the seconds of one row, which no other SM shortens.
double rows_on_sms_s(const RowCost& cost, double rows, double columns, const Chip& chip) {
  const double schedulers = static_cast<double>(chip.gpu.schedulers_per_sm) / 4;
  const double all = rows * (cost.row + cost.column * columns) / (chip.sms * schedulers);
  return chip.seconds(chip.units * std::max(all, cost.start + cost.chain * columns));
}

}  // namespace

LawTime stream_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const double traffic = traffic_s(static_cast<double>(kernel.bytes()), conditions.caches, chip);
  return {stream_start_s(chip) + std::max(traffic, vector_s(kernel, chip))};
}

LawTime rows_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const auto& rows = std::get<Rows>(kernel.shape);
  const bool softmax = rows.function == Rows::Function::kSoftmax;
  const double traffic = traffic_s(static_cast<double>(kernel.bytes()), conditions.caches, chip);
  const auto count = static_cast<double>(rows.rows), columns = static_cast<double>(rows.columns);
  // Softmax keeps rows of up to 1024 columns in registers (PyTorch's persistent kernel).
  constexpr int64_t kInRegisters = 1024;
  const bool once = softmax && rows.columns <= kInRegisters;
  const RowCost& cost = !softmax ? kNormRow : once ? kShortSoftmax : kLongSoftmax;
  const double sms_s = rows_on_sms_s(cost, count, columns, chip);
  if (once) return {stream_start_s(chip) + overlapped_s(traffic, sms_s)};
  // The input is read a second time: from L2, or from DRAM where the rows of all blocks in flight
  // do not fit into L2.
  const double row_bytes =
      static_cast<double>(kernel.read_bytes) / static_cast<double>(std::max<int64_t>(1, rows.rows));
  const double block_threads = std::clamp(columns / 4, 32.0, 1024.0);
  // Threads of a GPU with 80 SMs of 2048 threads; with the device's own number, more SMs would make
  // a kernel slower.
  constexpr double kThreads = 80 * 2048;
  const double in_flight = std::max(80.0, kThreads / block_threads) * row_bytes;
  const double fit = chip.l2_bytes / in_flight;
  const double miss = 1 / (1 + fit * fit);
  const auto input = static_cast<double>(kernel.read_bytes);
  const double again =
      input / chip.l2_bytes_per_s(16) + 0.8 * miss * input / stream_bytes_per_s(chip);
  return {stream_start_s(chip) + overlapped_s(traffic + (softmax ? 1.3 : 1.0) * again, sms_s)};
}

std::optional<BlockRows> block_rows_of(const Kernel& kernel) {
  using Kind = BlockRows::Kind;
  static const std::array<OpId, 4> ops = {require_op("rms_norm"), require_op("add_rms_norm"),
                                          require_op("gated_activation"), require_op("rotary")};
  if (kernel.op == ops[0] || kernel.op == ops[1]) {
    const auto& norm = std::get<Rows>(kernel.shape);
    return BlockRows{Kind::kNorm, norm.rows, norm.columns};
  }
  if (kernel.op != ops[2] && kernel.op != ops[3]) return std::nullopt;
  const auto& stream = std::get<Stream>(kernel.shape);
  return BlockRows{kernel.op == ops[2] ? Kind::kGate : Kind::kRotary, stream.rows, stream.elements};
}

LawTime block_rows_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const BlockRows block_rows = *block_rows_of(kernel);
  const bool norm = block_rows.kind == BlockRows::Kind::kNorm;
  if (!traits_of(conditions.software).has_row_blocks)
    return norm ? rows_law(kernel, chip, conditions) : stream_law(kernel, chip, conditions);
  const RowCost& cost = norm                                        ? kServedNorm
                        : block_rows.kind == BlockRows::Kind::kGate ? kServedGate
                                                                    : kServedRotary;
  const auto rows = static_cast<double>(block_rows.rows);
  const auto columns = static_cast<double>(block_rows.columns);
  // Small operands, which the kernel before has left in L2.
  double traffic = traffic_s(static_cast<double>(kernel.bytes()), Caches::kWarm, chip);
  if (norm)
    traffic += rows * columns * static_cast<double>(dtype_bits(kernel.dtype)) / 8 /
               chip.l2_bytes_per_s(kSecondReading);
  const double sms_s = rows_on_sms_s(cost, rows, columns, chip);
  return {stream_start_s(chip) + overlapped_s(traffic, sms_s)};
}

}  // namespace tilecast
