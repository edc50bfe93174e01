#include "predict/power.h"

#include <algorithm>
#include <vector>

#include "devices/vendor.h"

namespace tilecast {
namespace {

double flop_energy(const Kernel& kernel, const Gpu& gpu, const FlopEnergies& c) {
  if (const Rows* rows = kernel.as<Rows>())
    return rows->function == Rows::Function::kSoftmax ? c.softmax_j_per_flop : c.norm_j_per_flop;
  if (!kernel.uses_matrix_units()) return c.stream_j_per_flop;
  const DType dtype = kernel.compute_dtype();
  const int64_t bits = dtype_bits(dtype);
  const bool on_units = gpu.matrix_peak(dtype) > 0;
  if (dtype == DType::kTf32) return c.matrix_tf32_j_per_flop;
  if (bits > 16) return c.lanes_fp32_j_per_flop;
  if (!on_units) return c.lanes_16_bit_j_per_flop;
  const double units = bits == 16  ? c.matrix_16_bit_j_per_flop
                       : bits == 8 ? c.matrix_8_bit_j_per_flop
                                   : c.matrix_4_bit_j_per_flop;
  const Attention* attention = kernel.as<Attention>();
  if (attention == nullptr) return units;
  // Its exponentials count among its FLOPs; a decode step has few, but its tiles are nearly empty.
  if (!attention->is_decode()) return c.attention_16_bit_j_per_flop;
  const auto heads = static_cast<double>(attention->heads) /
                     static_cast<double>(std::max<int64_t>(1, attention->kv_heads));
  return units + std::max(0.0, c.decode_tile_rows / heads - 1) * c.empty_rows_j_per_flop;
}

/// Whether loads of such a kernel were held on the cards of data/measurements whose power was
/// measured.
bool is_held_kind(const Kernel& kernel) {
  if (kernel.is<Experts>()) return false;
  if (!kernel.uses_matrix_units()) return kernel.is<Rows>() || kernel.is<Stream>();
  return dtype_bits(kernel.compute_dtype()) >= 8;
}

/// Experts in FP8 by blocks whose kernel is slower than the measured one: by its software.
bool converts_slowly(const Kernel& kernel, const Conditions& conditions) {
  return kernel.is<Experts>() && kernel.scheme == QuantScheme::kFp8Block &&
         traits_of(conditions.software).block_fp8_experts_ratio > 1;
}

double byte_energy(MemoryType type, const PowerConstants& c) {
  if (!is_hbm(type)) return c.gddr_j_per_byte;
  return type >= MemoryType::kHbm3e ? c.hbm3e_j_per_byte : c.hbm_j_per_byte;
}

/// Work at each clock: how long it takes, and what power that needs.
class HeldClock {
 public:
  HeldClock(const BoardPower& board, const RepeatedWork& work, std::span<const KernelTime> times)
      : board_(board), work_(work), times_(times) {
    double busy_s = 0;
    units_s_.reserve(times.size());
    for (size_t i = 0; i < times.size(); ++i) {
      const double seconds = times[i].seconds;
      units_s_.push_back(std::min(seconds, board.units_s(work.kernels[i])));
      busy_s += work.counts[i] * seconds;
      switched_j_ += work.counts[i] * times[i].energy.switched_j;
      memory_j_ += work.counts[i] * times[i].energy.memory_j;
    }
    waits_s_ = std::max(0.0, work.elapsed_s - busy_s);
  }

  double seconds(size_t kernel, double share) const {
    return std::max(times_[kernel].seconds, units_s_[kernel] / share);
  }

  double watts(double share) const {
    const double busy_s = busy_seconds(share);
    const double elapsed_s = busy_s + waits_s_;
    if (elapsed_s <= 0) return 0;
    return board_.idle_w(share) + (work_joules(share) + busy_s * board_.busy_w(share)) / elapsed_s;
  }

  /// How many times longer kernels must take at this share, so that the mean power is what the
  /// board holds.
  double waits(double share) const {
    const double busy_s = busy_seconds(share);
    const double above_idle_w = board_.held_w() - board_.idle_w(share);
    const double spare_w = above_idle_w - board_.busy_w(share);
    if (busy_s <= 0 || spare_w <= 0) return 1;
    return (work_joules(share) - above_idle_w * waits_s_) / (busy_s * spare_w);
  }

  /// The highest share at which the board holds its power; the lowest one where none is low enough.
  double share() const {
    if (watts(1) <= board_.held_w()) return 1;
    constexpr int kHalvings = 48;  // as exact as numbers are
    double low = board_.lowest_clock_share(), high = 1;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (watts(middle) > board_.held_w() ? high : low) = middle;
    }
    return low;
  }

 private:
  double busy_seconds(double share) const {
    double busy_s = 0;
    for (size_t i = 0; i < times_.size(); ++i) busy_s += work_.counts[i] * seconds(i, share);
    return busy_s;
  }
  /// Of arithmetic and bytes.
  double work_joules(double share) const {
    return board_.voltage_squared(share) * switched_j_ + memory_j_;
  }

  const BoardPower& board_;
  const RepeatedWork& work_;
  std::span<const KernelTime> times_;
  std::vector<double> units_s_;
  double switched_j_ = 0, memory_j_ = 0, waits_s_ = 0;
};

}  // namespace

BoardPower::BoardPower(const Device& device, const PowerConstants& constants,
                       std::optional<double> limit_w)
    : gpu_(device.gpu()),
      constants_(constants),
      limit_w_(limit_w.value_or(gpu_.board_power_w)),
      process_ratio_(gpu_.process_nm.value_or(0) >= constants.old_process_nm
                         ? constants.old_process_ratio
                         : 1) {}

double BoardPower::voltage_squared(double clock_share) const {
  const double rest = constants_.voltage_at_rest;
  const double voltage = rest + (1 - rest) * clock_share;
  return voltage * voltage;
}

double BoardPower::idle_w(double clock_share) const {
  const double of_clock = constants_.clock_share * clock_share * voltage_squared(clock_share);
  return gpu_.board_power_w * (constants_.idle_share + of_clock);
}

double BoardPower::least_limit_w() const {
  const double share = lowest_clock_share();
  return (idle_w(share) + busy_w(share)) / constants_.held_share;
}

double BoardPower::busy_w(double clock_share) const {
  return gpu_.board_power_w * constants_.busy_share * clock_share * voltage_squared(clock_share);
}

KernelEnergy BoardPower::energy_of(const Kernel& kernel) const {
  return {
      .switched_j = static_cast<double>(kernel.flops) * process_ratio_ *
                    flop_energy(kernel, gpu_, constants_.flop),
      .memory_j = static_cast<double>(kernel.bytes()) * byte_energy(gpu_.memory_type, constants_),
      .measured = is_measured_class() && is_held_kind(kernel)};
}

bool BoardPower::is_measured_class() const {
  return gpu_.matrix_instruction == MatrixInstruction::kWgmma && is_hbm(gpu_.memory_type);
}

double BoardPower::converting_w() const {
  return gpu_.board_power_w * constants_.converted_experts_share;
}

double BoardPower::warm_w() const { return gpu_.board_power_w * constants_.warm_share; }

double BoardPower::units_s(const Kernel& kernel) const {
  if (!kernel.is_product() && !kernel.is<Experts>()) return 0;
  const DType dtype = kernel.compute_dtype();
  // The law of products in FP32 has a term of its own for the board's power, but none for a cap.
  const double units = dtype == DType::kFp32 ? 0 : gpu_.matrix_peak(dtype);
  const double peak = is_capped() ? gpu_.matmul_peak(dtype) : units;
  return peak > 0 ? static_cast<double>(kernel.flops) / (constants_.reached_share * peak) : 0;
}

std::optional<BoardPower> board_power(const Device& device, const PowerConstants& constants,
                                      std::optional<double> limit_w) {
  const Gpu* const gpu = device.as_gpu();
  if (gpu == nullptr || !gpu->states_board_power || device.is_slice ||
      is_systolic(gpu->architecture))
    return std::nullopt;
  return BoardPower(device, constants, limit_w);
}

void PowerSum::add(const BoardPower& board, const KernelEnergy& energy, double seconds,
                   double count) {
  const double share = energy.clock_share;
  const double above_idle = board.idle_w(share) + board.busy_w(share);
  energy_j += count * (board.voltage_squared(share) * energy.switched_j + energy.memory_j +
                       seconds * above_idle);
  busy_s += count * seconds;
  if (energy.measured) measured_s += count * seconds;
  clock_s += count * seconds * share;
}

double PowerSum::mean_w(double seconds, double waits_w, double warm_w) const {
  const double all_s = std::max(seconds, busy_s);
  return (energy_j + busy_s * warm_w + (all_s - busy_s) * waits_w) / all_s;
}

void add_energies(const BoardPower& board, std::span<const Kernel> kernels,
                  const Conditions& conditions, double clock_share, std::span<KernelTime> times) {
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].energy = board.energy_of(kernels[i]);
    if (converts_slowly(kernels[i], conditions))
      times[i].energy.switched_j += board.converting_w() * times[i].seconds;
    times[i].energy.clock_share = clock_share;
  }
}

void hold_power(const BoardPower& board, const RepeatedWork& work, std::span<KernelTime> times) {
  const HeldClock held(board, work, times);
  const double share = held.share();
  if (share >= 1) return;
  const double waits = board.is_capped() ? std::max(1.0, held.waits(share)) : 1.0;
  // Each time is read once more before it changes.
  for (size_t i = 0; i < times.size(); ++i) {
    KernelTime& time = times[i];
    time.energy.clock_share = share;
    if (time.seconds <= 0) continue;
    const double slower = waits * held.seconds(i, share) / time.seconds;
    time.seconds *= slower;
    time.low_s *= slower;
    time.high_s *= slower;
  }
}

}  // namespace tilecast
