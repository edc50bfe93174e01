#pragma once

// The jobs of a pool, forecast: how fast each is on each kind of GPU, alone and in pairs.

#include <string>
#include <vector>

#include "allocation/problem.h"
#include "base/number.h"
#include "tilecast/allocate.h"

namespace tilecast {

// What numbers of jobs may be. Beyond these ranges, the linear programs lose all digits of the
// smaller numbers, and sums of times end as infinities.
inline constexpr NumberRange kWeightRange{"weight", 1e-6, 1e6};
inline constexpr NumberRange kStepsRange{"steps", 1e-3, 1e15};
inline constexpr NumberRange kSpeedRange{"steps_per_s", 1e-9, 1e9};
inline constexpr NumberRange kDeadlineRange{"deadline_s", 1e-9, 1e12};  ///< 30,000 years
inline constexpr NumberRange kArrivalRange{"arrival_s", 0, 1e12};

inline constexpr int64_t kMostGpus = 1'000'000;  ///< of a kind, and of a job

/// Throws Error{kInput} for an empty pool, no jobs, unknown dtypes and numbers out of range.
void check_pool(const AllocationQuery& query);

/// The kind as the pool names it.
const std::string& name_of(const PoolKind& kind);

/// The kinds of the pool, none in use.
std::vector<PoolUse> unused(const std::vector<PoolKind>& pool);

class PoolSpeeds {
 public:
  /// Forecasts; jobs that are alike once. What cannot be forecast is an option with an error.
  /// `query` must outlive it.
  PoolSpeeds(const Forecaster& forecaster, const AllocationQuery& query,
             const ManyOptions& options);

  /// The places of a job, with the time and cost of its steps.
  std::vector<PlaceOption> options(size_t job) const;
  bool fits_somewhere(size_t job) const;

  /// The columns of jobs; a column's jobs are indices into `jobs`.
  std::vector<AllocationProblem::Column> columns(const std::vector<size_t>& jobs) const;
  std::vector<AllocationProblem::Kind> kinds() const;

  /// The power of a job on so many GPUs of a kind. Throws Error{kUnsupported} where it is not
  /// forecast.
  double watts(size_t job, size_t kind, double gpus) const;
  /// The dtype of a job on so many GPUs of a kind.
  const std::string& dtype(size_t job, size_t kind, double gpus) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  /// A job on some GPUs of a kind.
  struct Way {
    size_t kind = 0;
    PlaceOption option;
    JobAlone alone;  ///< of one GPU
    int64_t usable_bytes = 0;
  };
  struct Type {
    size_t job = 0;      ///< the first of those that are alike
    size_t request = 0;  ///< jobs that differ only in their bounds have the same number
    std::vector<Way> ways;
    std::vector<const Way*> best;  ///< by kind and number of GPUs the fastest that fits
  };
  struct PairSpeeds {
    size_t a = 0, b = 0, kind = 0;  ///< types
    double of_a = 0, of_b = 0;      ///< relative
  };

  void find_types();
  void add_ways();
  using Ways = std::vector<std::pair<const Type*, Way*>>;
  void forecast(const Forecaster& forecaster, const ManyOptions& options);
  /// Of ways with the same forecast.
  void forecast_ways(const Forecaster& forecaster, const Ways& ways) const;
  void set_speed(const PoolJob& job, const Result& result, Way& way) const;
  void forecast_pairs(const ManyOptions& options);
  void add_pairs(const std::vector<size_t>& jobs,
                 std::vector<AllocationProblem::Column>& columns) const;
  const Way* best(size_t type, size_t kind, double gpus) const;

  const AllocationQuery& query_;
  std::vector<size_t> type_of_;  ///< by job
  std::vector<Type> types_;
  /// By type, what it can run beside, the best sum of speeds first.
  std::vector<std::vector<PairSpeeds>> pairs_;
  std::vector<std::string> warnings_;
};

}  // namespace tilecast
