#pragma once

// The power that a GPU's board draws and the clock that it holds. Power is what an idle board
// draws, plus what its clock and its busy SMs draw, plus the energy of arithmetic and of bytes over
// time. What switches with the clock goes with the square of the voltage, which falls with the
// clock. docs/explanation/power.md has the law with its limits.

#include <cstddef>
#include <optional>
#include <span>

#include "laws/power.h"
#include "predict/predictor.h"

namespace tilecast {

/// The board of a GPU and the most power that it may draw.
class BoardPower {
 public:
  /// `device`: at the highest clock. `limit_w`: default: the board's. Both must outlive it.
  BoardPower(const Device& device, const PowerConstants& constants,
             std::optional<double> limit_w = std::nullopt);

  double limit_w() const { return limit_w_; }
  /// That a board holds, as it controls its clock: somewhat below the limit.
  double held_w() const { return constants_.held_share * limit_w_; }
  /// The limit is below the board's own, with which the laws of kernels were found.
  bool is_capped() const { return limit_w_ < gpu_.board_power_w; }
  double lowest_clock_share() const { return constants_.lowest_clock_share; }
  /// Power of a board with a context that computes nothing, at this share of the highest clock.
  double idle_w(double clock_share) const;
  /// A lower limit leaves nothing for work: it is what a kernel without work draws at the lowest
  /// clock.
  double least_limit_w() const;
  /// What its SMs draw on top of that while a kernel runs.
  double busy_w(double clock_share) const;
  /// The square of the voltage, of that at the highest clock.
  double voltage_squared(double clock_share) const;
  /// At the highest clock.
  KernelEnergy energy_of(const Kernel& kernel) const;
  /// Its power was measured, or that of a card of its class.
  bool is_measured_class() const;
  /// What experts draw beside their work while a slow kernel converts their operands.
  double converting_w() const;
  /// What kernels draw more on a board that has worked for minutes.
  double warm_w() const;
  /// The least time that products need at the highest clock; 0 for other kernels.
  double units_s(const Kernel& kernel) const;

 private:
  const Gpu& gpu_;
  const PowerConstants& constants_;
  double limit_w_;
  double process_ratio_;  ///< energy of a process over that of current ones
};

/// nullopt where the power of the device is not forecast: its file states none, it is a slice, or
/// its chip is no GPU of NVIDIA or AMD.
std::optional<BoardPower> board_power(const Device& device, const PowerConstants& constants,
                                      std::optional<double> limit_w = std::nullopt);

/// Power of one GPU while it runs kernels and waits, at the clocks of the kernels.
struct PowerSum {
  double clock_share_of_waits = 1;
  double energy_j = 0, busy_s = 0, clock_s = 0;
  double measured_s = 0;  ///< in kernels whose power was measured

  void add(const BoardPower& board, const KernelEnergy& energy, double seconds, double count);
  /// Mean share of the highest clock while kernels run.
  double clock_share() const { return busy_s > 0 ? clock_s / busy_s : clock_share_of_waits; }
  /// Mean watts over so many seconds, more than 0, at least over those of the kernels: the rest are
  /// waits at `waits_w`. `warm_w`: what kernels draw more. Not limited by the board.
  double mean_w(double seconds, double waits_w, double warm_w = 0) const;
};

/// The kernels of work that repeats for seconds: each runs so often, and all together take
/// `elapsed_s` at least.
struct RepeatedWork {
  std::span<const Kernel> kernels;
  std::span<const double> counts;
  double elapsed_s = 0;
};

/// Fills in the energies of kernels that run at this share of the highest clock.
void add_energies(const BoardPower& board, std::span<const Kernel> kernels,
                  const Conditions& conditions, double clock_share, std::span<KernelTime> times);
/// Lowers the clock until the mean power is what the board holds: kernels on matrix units cannot be
/// faster than their units at that clock. Where the lowest clock is not low enough for a cap, all
/// kernels wait. `times` have their energies.
void hold_power(const BoardPower& board, const RepeatedWork& work, std::span<KernelTime> times);

}  // namespace tilecast
