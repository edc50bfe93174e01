#include "predict/learned.h"

#include <algorithm>
#include <cmath>

#include "predict/coverage.h"
#include "predict/features.h"
#include "predict/unmeasured.h"

namespace tilecast {
namespace {

/// A kernel on its way to its time.
struct Row {
  const Kernel* kernel;
  Bound bound;
  LawTime law;
  double excess;             ///< how far outside the training range, in widths of that range
  double widening;           ///< the same, as far as no calibration knows such kernels
  std::string_view feature;  ///< which is furthest outside
};

/// The batch's kernels.
struct Batch {
  std::vector<Row> rows;
  std::vector<float> inputs;  ///< standardized features, `width` a row
  size_t width = 0;

  InputRows input_rows() const { return {inputs.data(), width, rows.size()}; }
};

Batch describe_all(KernelKind kind, const CostBatch& batch, const Weights& weights,
                   const LawScales& scales) {
  const KindModel& model = weights.model(kind);
  const KernelKindDef& def = kernel_kind_def(kind);
  const Chip chip(batch.device, weights.laws, scales);
  Batch all{.width = model.mean.size()};
  all.rows.reserve(batch.rows.size());
  all.inputs.resize(batch.rows.size() * all.width);
  for (const size_t i : batch.rows) {
    const Kernel& kernel = batch.kernels[i];
    // The bound first: it throws where the device has no unit for the kernel.
    const Bound bound = bound_of(kind, kernel, batch.device, batch.conditions);
    const Outside outside = standardize(model, def.make(kernel, batch.conditions),
                                        &all.inputs[all.rows.size() * all.width]);
    all.rows.push_back({&kernel, bound, def.law(kernel, chip, batch.conditions), outside.excess,
                        outside.excess,
                        outside.excess > 0 ? feature_names(kind)[outside.feature] : ""});
  }
  return all;
}

/// The calibration's part, as far as the device resembles the calibrated one.
struct Calibrated {
  const KindCalibration* model = nullptr;
  float weight = 0;  ///< 0: nothing

  /// How much the calibration's own interval counts for kernels of a software and precision.
  double share_of(const Combination& combination) const {
    const bool measured = model != nullptr && model->measured(combination);
    return measured ? static_cast<double>(weight) : 0;
  }
  LawScales law() const {
    LawScales scales;
    for (size_t c = 0; model != nullptr && c < kLawConstantCount; ++c)
      scales.logs[c] = static_cast<double>(weight) * model->law.logs[c];
    return scales;
  }
};

Calibrated calibration_of(KernelKind kind, const Weights& weights, const Device& device) {
  if (!weights.calibration || weights.calibration->model(kind).rows == 0) return {};
  const float weight = similarity(signature_of(device), weights.calibration->signature);
  if (weight <= kNegligible) return {};
  return {&weights.calibration->model(kind), weight};
}

void calibrate(const Calibrated& calibrated, const Batch& batch, const Conditions& conditions,
               std::vector<float>& log_factors) {
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    const Combination combination = combination_of(*batch.rows[r].kernel, conditions);
    const double added =
        calibrated.model->at(&batch.inputs[r * batch.width], batch.width, combination);
    log_factors[r] += calibrated.weight * static_cast<float>(added);
  }
}

/// A calibrated device's spread is the calibration's, as far as that counts.
void calibrate_spread(const Calibrated& calibrated, Spread& spread) {
  const double weight = calibrated.weight;
  spread.low += weight * (std::log(calibrated.model->low_ratio) - spread.low);
  spread.high += weight * (std::log(calibrated.model->high_ratio) - spread.high);
  spread.common_share += weight * (1 - spread.common_share);
}

Limit limit_of(const Bound& bound, double seconds, const IntervalConstants& c) {
  // Within twice the latency floor nothing but latency can be seen, and where the data sheet
  // allows a small part of the time no rate explains it.
  if (seconds < 2 * kLatencyFloor || bound.seconds() < c.explains_share * seconds)
    return Limit::kLatency;
  return bound.compute_s >= bound.memory_s ? Limit::kCompute : Limit::kMemory;
}

/// By the most of the data sheet's rates that any measured kernel reached. Where a residual was
/// learned from GPUs with other limits, it may promise more.
double least_seconds(const Bound& bound, const IntervalConstants& c) {
  return std::max(bound.compute_s / c.unit_reached_share, bound.memory_s / c.dram_reached_share);
}

KernelTime finish(const Row& row, const Device& device, double seconds, const Spread& spread,
                  const IntervalConstants& c) {
  const double bound = row.bound.seconds();
  KernelTime time;
  time.seconds = std::max(seconds, least_seconds(row.bound, c));
  // One range beyond the training rows doubles the interval's logarithm; a guess until devices of
  // other generations are measured.
  const double width = 1.0 + std::min(1.0, row.widening);
  time.low_s = std::max(time.seconds * std::exp(spread.low * width), bound);
  time.high_s = time.seconds * std::exp(spread.high * width);
  time.common_share = spread.common_share;
  if (row.kernel->is_product()) time.tile = row.law.tile;
  time.waves = count_waves(*row.kernel, device, row.law.tile);
  time.utilization_ratio = std::min(1.0, bound / time.seconds);
  time.limit = limit_of(row.bound, time.seconds, c);
  time.extrapolated = row.excess > c.extrapolation_share;
  if (time.extrapolated) time.extrapolated_feature = row.feature;
  return time;
}

}  // namespace

Bound bound_of(KernelKind kind, const Kernel& kernel, const Device& device,
               const Conditions& conditions) {
  const bool cold = kernel_kind_def(kind).cold && conditions.caches == Caches::kCold;
  return physical_bound(kernel, device, cold ? Caches::kCold : Caches::kWarm);
}

LawScales calibrated_scales(KernelKind kind, const Weights& weights, const Device& device) {
  return calibration_of(kind, weights, device).law();
}

void estimate_learned(KernelKind kind, const CostBatch& batch, const Weights& weights) {
  const KindModel& model = weights.model(kind);
  const Calibrated calibrated = calibration_of(kind, weights, batch.data_sheet);
  Batch all = describe_all(kind, batch, weights, calibrated.law());
  const Applied applied = applied_residual(model, kind, batch.data_sheet);
  std::vector<float> log_factors(all.rows.size(), 0.0f);
  add_residual(applied, batch.conditions.software, all.input_rows(), log_factors);
  if (calibrated.weight > 0) calibrate(calibrated, all, batch.conditions, log_factors);
  Coverages coverages(model, applied, batch.data_sheet);
  for (size_t r = 0; r < all.rows.size(); ++r) {
    Row& row = all.rows[r];
    const Coverage& coverage = coverages.of(combination_of(*row.kernel, batch.conditions));
    const std::string_view missing = coverages.unmeasured(*row.kernel, coverage);
    if (!missing.empty()) {
      row.excess = std::max(row.excess, 1.0);
      // Where other classes were measured, the interval is that of left-out classes: wide enough.
      const bool judged = coverage.anywhere && missing == coverage.missing;
      const double wider =
          coverage.anywhere && missing == "vendor" ? kUnmeasuredVendorRatio - 1 : 1;
      if (!judged)
        row.widening =
            std::max(row.widening, wider * (1.0 - calibrated.share_of(coverage.combination)));
      row.feature = missing;
    }
    // A calibration of matrix units says nothing about the lanes that multiply FP32.
    if (coverage.other_unit || row.law.stands_alone) log_factors[r] = 0;
    Spread spread = spread_of(applied, coverage, size_of(row.law.seconds));
    if (calibrated.weight > 0) calibrate_spread(calibrated, spread);
    // A factor below 1 says that the launches that are fused were shorter, too.
    const double factor = std::exp(log_factors[r]);
    const double seconds = (row.law.seconds * factor - row.law.fused_s * std::min(1.0, factor)) *
                           row.law.version_ratio;
    batch.times[batch.rows[r]] = finish(row, batch.device, seconds, spread, weights.laws.intervals);
  }
}

}  // namespace tilecast
