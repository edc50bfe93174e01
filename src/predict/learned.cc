#include "predict/learned.h"

#include <algorithm>
#include <cmath>

#include "predict/coverage.h"
#include "predict/efficiency.h"
#include "predict/features.h"
#include "predict/power.h"

namespace tilecast {
namespace {

// A twentieth of a feature's training range beyond it is still taken as inside: the edge is where
// the outermost of thousands of rows happened to fall.
constexpr double kExtrapolates = 0.05;

/// A kernel on its way to its time.
struct Row {
  const Kernel* kernel;
  Bound bound;
  Law law;
  Tile tile;
  double excess;             ///< how far outside the training range, in widths of that range
  std::string_view feature;  ///< which is furthest outside
};

/// What the profiles of the vendor's library tell of the tile that it picks.
Tile profiled_tile(const Weights& weights, const Kernel& kernel, const Device& device) {
  const TileTree* tree = weights.tiles_of(device.vendor);
  return tree == nullptr ? Tile{} : choose_tile(*tree, tile_features(kernel, device));
}

/// The batch's kernels: what all models of efficiency see.
struct Batch {
  std::vector<Row> rows;
  std::vector<float> inputs;  ///< standardized features, `width` a row
  std::vector<float> caps;    ///< logits that the board's power allows
  size_t width = 0;

  InputRows input_rows() const { return {inputs.data(), width, rows.size()}; }
};

Batch describe_all(NetKind kind, const CostBatch& batch, const Weights& weights) {
  const Net& net = weights.net(kind);
  Batch all{.width = net.mean.size()};
  all.rows.reserve(batch.rows.size());
  all.caps.reserve(batch.rows.size());
  all.inputs.resize(batch.rows.size() * all.width);
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    const auto [bound, tile, features] =
        describe(weights, kind, kernel, batch.device, batch.conditions);
    const Outside outside = standardize(net, features, &all.inputs[all.rows.size() * all.width]);
    all.caps.push_back(power_cap_logit(kernel, batch.device, bound, weights.vector_pj_per_flop));
    all.rows.push_back({&kernel, bound, law_of(kind, bound, batch.device), tile, outside.excess,
                        outside.excess > 0 ? feature_names(kind)[outside.feature] : ""});
  }
  return all;
}

/// What a device's calibration adds, as far as the device is the one that was calibrated.
struct Calibrated {
  const CalibrationNet* net = nullptr;
  float weight = 0;  ///< 0: nothing
};

Calibrated calibration_of(NetKind kind, const Weights& weights, const Device& device) {
  if (!weights.calibration || weights.calibration->net(kind).rows == 0) return {};
  const float weight = similarity(signature_of(device), weights.calibration->signature);
  if (weight <= kNegligible) return {};
  return {&weights.calibration->net(kind), weight};
}

/// A calibration acts on the logit: a factor on the time becomes part of it.
void calibrate_logits(const Calibrated& calibrated, const Batch& batch, std::vector<float>& logits,
                      std::vector<float>& log_factors) {
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    const Law& law = batch.rows[r].law;
    if (log_factors[r] != 0) {
      const double seconds = law.seconds(logits[r]) * std::exp(log_factors[r]);
      logits[r] = static_cast<float>(law.logit(seconds));
      log_factors[r] = 0;
    }
    const float* inputs = &batch.inputs[r * batch.width];
    logits[r] += calibrated.weight * static_cast<float>(calibrated.net->at(inputs, batch.width));
  }
}

/// A calibrated device's spread is the calibration's, as far as that counts.
void calibrate_spread(const Calibrated& calibrated, Spread& spread) {
  const double weight = calibrated.weight;
  spread.low += weight * (std::log(calibrated.net->low_ratio) - spread.low);
  spread.high += weight * (std::log(calibrated.net->high_ratio) - spread.high);
  spread.common_share += weight * (1 - spread.common_share);
}

Limit limit_of(const Bound& bound, double reference, double seconds) {
  // Within twice the latency floor nothing but latency can be seen, and where the data sheet
  // allows a tenth of the time no rate explains it.
  constexpr double kExplains = 0.1;
  if (seconds < 2 * kLatencyFloor || reference < kExplains * seconds) return Limit::kLatency;
  return bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
}

KernelTime finish(const Row& row, const Device& device, double law_s, const Spread& spread) {
  const double bound = row.bound.seconds();
  KernelTime time;
  time.seconds = std::max(law_s, bound) + row.bound.cold_s;
  // One range beyond the training rows doubles the interval's logarithm; a guess until devices of
  // other generations are measured.
  const double width = 1.0 + std::min(1.0, row.excess);
  time.low_s = std::max(time.seconds * std::exp(spread.low * width), bound);
  time.high_s = time.seconds * std::exp(spread.high * width);
  time.common_share = spread.common_share;
  if (row.kernel->is_product()) time.tile = row.tile;
  time.waves = count_waves(*row.kernel, device, row.tile).waves;
  // Of what the data sheet allows where the caches are as the forecast takes them to be.
  const double reference = row.bound.law_s + row.bound.cold_s;
  time.utilization_ratio = std::min(1.0, reference / time.seconds);
  time.limit = limit_of(row.bound, reference, time.seconds);
  time.extrapolated = row.excess > kExtrapolates;
  if (time.extrapolated) time.extrapolated_feature = row.feature;
  return time;
}

}  // namespace

void estimate_learned(NetKind kind, const CostBatch& batch, const Weights& weights) {
  const Net& net = weights.net(kind);
  Batch all = describe_all(kind, batch, weights);
  const std::vector<Near> near = near_residuals(net, batch.data_sheet);
  std::vector<float> logits(all.rows.size()), log_factors(all.rows.size(), 0.0f);
  base_logits(net, all.input_rows(), all.caps, logits);
  add_residuals(near, batch.conditions.software, all.input_rows(), logits, log_factors);
  const Calibrated calibrated = calibration_of(kind, weights, batch.data_sheet);
  if (calibrated.weight > 0) calibrate_logits(calibrated, all, logits, log_factors);
  Coverages coverages(net, near, batch.data_sheet);
  for (size_t r = 0; r < all.rows.size(); ++r) {
    Row& row = all.rows[r];
    const Coverage& coverage = coverages.of(combination_of(*row.kernel, batch.conditions));
    const std::string_view missing = coverages.unmeasured(*row.kernel, coverage);
    if (!missing.empty()) {
      row.excess = std::max(row.excess, 1.0);
      row.feature = missing;
    }
    Spread spread = spread_of(net, near, coverage, row.law.size());
    if (calibrated.weight > 0) calibrate_spread(calibrated, spread);
    const double law_s = row.law.seconds(logits[r]) * std::exp(log_factors[r]);
    batch.times[batch.rows[r]] = finish(row, batch.device, law_s, spread);
  }
}

Described describe(const Weights& weights, NetKind kind, const Kernel& kernel, const Device& device,
                   const Conditions& conditions) {
  const NetDef& def = net_def(kind);
  Bound bound = physical_bound(kernel, device, def.caches);
  if (conditions.caches == Caches::kWarm) bound.cold_s = 0;
  const Tile tile = def.profiled_tiles ? profiled_tile(weights, kernel, device) : Tile{};
  return {bound, tile, def.make(kernel, device, conditions, bound, tile)};
}

}  // namespace tilecast
