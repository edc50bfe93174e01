#pragma once

// Power, energy and cost of a forecast, from its kernels.

#include <optional>
#include <vector>

#include "predict/power.h"
#include "tilecast/request.h"
#include "tilecast/result.h"

namespace tilecast {

/// The clock of the request where it leaves it out: `by_default`, "sustained" where a cap is given
/// and "boost" for the baseline of the data sheet and where power is not forecast. Throws
/// Error{kInput} for a cap that the board cannot have or that the clock contradicts,
/// Error{kUnsupported} for a sustained clock of a device whose power is not forecast.
void complete_clocks(Request& request, const Device& device, const LawConstants& laws,
                     const char* by_default);

/// What the power of a forecast follows from. `holds`: its kernels run at the clock that the
/// board's power allows while they repeat.
struct PowerTerms {
  const Device& device;
  const PowerConstants& constants;
  const Execution& execution;
  std::optional<double> cap_w;

  std::optional<BoardPower> board() const { return board_power(device, constants, cap_w); }
  bool holds() const { return execution.clocks == "sustained"; }
  /// Of the highest clock: that of the option `clocks`.
  double clock_share() const;
};

/// What a forecast adds up: kernels of one rank of each stage, each of which takes `seconds`.
struct PoweredJob {
  const std::vector<KernelForecast>& kernels;
  Interval seconds;
  int64_t stages = 1, ranks = 1;
  std::optional<double> tokens;  ///< of one of `requests`
  double requests = 1;           ///< whose kernels these are: the energy is of one
  bool warm = false;             ///< a server that has worked for minutes
};

/// nullopt where power is not forecast. `request`: its prices and cluster count.
std::optional<PowerForecast> power_of(const PoweredJob& job, const PowerTerms& terms,
                                      const Request& request);

/// Power of one kind of GPUs that work for the same requests in two pools.
struct PoolPower {
  const PowerForecast& power;
  int64_t gpus = 1;
};
/// Of both: power is the mean of all GPUs, energies and costs of a request are sums. Their errors
/// are taken as fully correlated.
PowerForecast power_of_both(const PoolPower& a, const PoolPower& b);

/// The power of a forecast; nullopt where none is stated.
std::optional<PowerForecast> power_in(const Result& result);

/// Prices change nothing where power is not forecast.
void warn_of_idle_prices(std::vector<Warning>& warnings, const EnergyTerms& prices,
                         const std::optional<PowerForecast>& power);

/// Adds energy and cost of a whole run, of so many steps as `run` has.
void add_run_energy(TrainingRun& run, const PowerForecast& step, const EnergyTerms& prices,
                    double steps);

}  // namespace tilecast
