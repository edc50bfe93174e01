#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "devices/device.h"
#include "laws/tile.h"
#include "ops/kernel.h"
#include "predict/bound.h"
#include "predict/conditions.h"
#include "predict/weights.h"

namespace tilecast {

/// The limit that holds a kernel back.
enum class Limit : uint8_t { kCompute, kMemory, kLatency, kNetwork };
std::string_view limit_name(Limit limit);

/// Energy of one launch beside what the board draws all the time (predict/power.h), and the clock
/// at which it runs.
struct KernelEnergy {
  double switched_j = 0;   ///< of its arithmetic, at the voltage of the highest clock
  double memory_j = 0;     ///< of its bytes
  double clock_share = 1;  ///< of the highest clock
  bool measured = false;   ///< power of such a kernel was measured on a card of the class
};

/// Time of one kernel, launch overhead excluded, and why.
struct KernelTime {
  double seconds = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  Limit limit = Limit::kMemory;
  std::optional<Tile> tile;                                ///< matrix products only
  Waves waves = {.tiles = 0, .waves = 0, .occupancy = 0};  ///< of its blocks; 0: it has none
  double utilization_ratio = 0;  ///< least time that the data sheet allows, over the forecast
  std::string_view predictor;    ///< CostModel::name, or "roofline"
  /// Share of the interval's square that all kernels of `predictor` have in common.
  double common_share = 1;
  bool extrapolated = false;
  std::string_view extrapolated_feature;  ///< which one, the furthest outside
  KernelEnergy energy;                    ///< filled in where power is forecast
};

/// Kernels × device × conditions → seconds. A pure function: the same kernels give the same bits.
class Predictor {
 public:
  virtual ~Predictor() = default;
  /// times.size() == kernels.size(). Throws Error{kUnsupported} where the device has no unit for a
  /// kernel's dtype.
  virtual void predict(std::span<const Kernel> kernels, const Device& device,
                       const Conditions& conditions, std::span<KernelTime> times) const = 0;
  /// The constants of the laws that it forecasts with.
  virtual const LawConstants& laws() const { return bundled_laws(); }
};

/// As Predictor::predict where each kernel has conditions of its own, as measurements have.
void predict_each(const Predictor& predictor, std::span<const Kernel> kernels,
                  std::span<const Conditions> conditions, const Device& device,
                  std::span<KernelTime> times);

/// Each kernel by the first model of the table of cost models that covers it (cost_models.h). Not
/// modelled: the host's pace, clocks that depend on what ran before, concurrent kernels. `weights`
/// must outlive it.
std::unique_ptr<Predictor> make_learned_predictor(const Weights& weights);

/// max(FLOPs / peak, bytes / bandwidth) for everything but collectives: the baseline (Williams,
/// Waterman, Patterson 2009).
std::unique_ptr<Predictor> make_roofline_predictor();

}  // namespace tilecast
