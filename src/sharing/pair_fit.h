#pragma once

// What measured pairs say beside the law of sharing.
//
// The law gives each job of a pair the slow-down 1/r - 1. Its logarithm gets four effects: of the
// job that is slowed and of its model, of the partner that slows and of its model. They are drawn
// towards zero, so that a job with few pairs stays near the law and a model's batches share what is
// known. Found on Gavel's pairs, where r = 1/(1 + s p) with a sensitivity and a pressure for each
// job explains all pairs within 4 to 8 %: there these effects are additive.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tilecast/result.h"

namespace tilecast {

/// The speed of a job beside a partner over that alone.
struct PairRow {
  size_t job = 0, partner = 0;
  double law = 1;       ///< relative speed by the law, in (0, 1]
  double measured = 1;  ///< above 0
};

/// Effects on log(1/r - 1) by job.
struct PairFit {
  struct Effect {
    bool known = false;  ///< the job or its model is in a pair
    double slowed_log = 0, slows_log = 0;
  };
  std::vector<Effect> jobs;
  /// Standard deviation of log(measured / fitted) of a pair that is not fitted.
  double spread_log = 0;
};

/// `model_of_job`: the jobs of one model have the same number. Rows in another order give the same
/// result. No row: no effects.
PairFit fit_pairs(std::span<const PairRow> rows, std::span<const size_t> model_of_job);

/// The relative speed of the law with the sum of effects: 1 / (1 + (1/law - 1) exp(log)).
double with_pair_effects(double law, double log);

/// The row's relative speed by the fit.
double fitted_speed(const PairFit& fit, const PairRow& row);

/// A fitted relative speed with its interval.
Interval fitted_interval(double speed, double spread_log);

/// A row by a fit that did not see it.
struct LeftOutRow {
  size_t row = 0;
  double speed = 1, spread_log = 0;
};

/// Each row by the rows of the other pairs. From `most_fits` pairs on several are left out at once.
std::vector<LeftOutRow> leave_out_pairs(std::span<const PairRow> rows,
                                        std::span<const size_t> model_of_job,
                                        size_t most_fits = 400);

/// The rows of each job by all rows of other jobs and those of the job with `kept` partners, which
/// `seed` chooses.
std::vector<LeftOutRow> leave_out_jobs(std::span<const PairRow> rows,
                                       std::span<const size_t> model_of_job, size_t kept,
                                       uint64_t seed);

}  // namespace tilecast
