#pragma once

// Which job runs where and for how long, in plain numbers: jobs, kinds of GPU, and columns. A
// column is one way to run a job, or several beside each other, on GPUs of a kind. A linear program
// gives each column a share of time (Narayanan et al., "Heterogeneity-aware cluster scheduling
// policies for deep learning workloads", OSDI 2020); with `whole`, a job has one column alone.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace tilecast {

inline constexpr double kNoEnd = std::numeric_limits<double>::infinity();

/// The worth of a GPU of each kind: by how much an objective would be better with one more; and the
/// least speed / demand of the jobs.
struct PoolPrices {
  std::vector<double> kinds;
  double least = 0;
};

struct AllocationProblem {
  struct Kind {
    double gpus = 0;
    double price_per_gpu_s = 0;
  };
  struct Job {
    double count = 1;  ///< of jobs that are alike; its columns are of them together
    double weight = 1;
    double steps = 0;            ///< that are left; 0: it goes on without end
    double deadline_s = kNoEnd;  ///< from now
    double elapsed_s = 0;        ///< since it arrived
    double all_steps = 0;        ///< also those done; 0: `steps`
    /// With which objectives compare: as fastest_speeds and equal_speeds say; 0: of the columns.
    double fastest_per_s = 0, equal_per_s = 0;
  };
  struct Part {
    size_t job;
    double steps_per_s;
  };
  struct Use {
    size_t kind;
    double gpus;  ///< while the column runs
  };
  struct Column {
    std::vector<Part> parts;
    std::vector<Use> uses;
    /// What a second of it costs; nullopt: its GPUs' prices.
    std::optional<double> cost_per_s = {};
  };

  std::vector<Kind> kinds;
  std::vector<Job> jobs;
  std::vector<Column> columns;
  bool whole = false;
  /// Prices of an allocation like this one, as it says; they save time and change no objective.
  std::vector<PoolPrices> near;
};

/// A column in a span of time. `end_s` is kNoEnd for a job that goes on without end.
struct TimedColumn {
  size_t column;
  double share;  ///< of the span
  double begin_s = 0, end_s = kNoEnd;
};

struct Allocation {
  bool feasible = false;
  bool proven = true;    ///< no other one is better by more than the solver's gap
  double objective = 0;  ///< in the unit of the function that made it
  std::vector<TimedColumn> placements;
  std::vector<PoolPrices> prices;  ///< of shares of time, by objective; empty: not known
};

/// What a job gets by an allocation.
struct JobShare {
  double steps_per_s = 0;    ///< mean over its time
  double finish_s = kNoEnd;  ///< kNoEnd: it never ends
  double time_share = 0;     ///< of the time until its end in which it runs
  double cost = 0;           ///< until its end; of jobs beside each other: in equal parts
};

// Each function maximizes or minimizes what it is named for; among the best it takes the one with
// the highest throughput, or that ends first. Jobs without a column are left out.

/// How jobs that are alike divide the shares of a job with a `count`. Any way has the same sum of
/// speeds.
enum class Divide {
  kEqually,  ///< each as fast as the others
  kInTurn    ///< the first ones get all the time that they can use
};

/// Objective: the sum of weight x speed / fastest speed.
Allocation maximize_throughput(const AllocationProblem& problem);
/// Objective: the least of speed / (weight x speed by an equal share of the pool).
Allocation maximize_fairness(const AllocationProblem& problem);
/// Objective: the largest of a job's time from its arrival to its end over that by an equal share
/// of the pool (finish-time fairness; Mahajan et al., "Themis", NSDI 2020).
Allocation minimize_finish_time_ratio(const AllocationProblem& problem);
/// Objective: seconds until the last job ends. With `whole`, jobs of a kind run one after another.
Allocation minimize_makespan(const AllocationProblem& problem);
/// Objective: cost of all steps, with as many deadlines met as can be.
Allocation minimize_cost(const AllocationProblem& problem);
/// Objective: the weights of the jobs that meet their deadline.
Allocation meet_deadlines(const AllocationProblem& problem);

/// The same work of each span of time in turns where the GPUs allow it, what is due first and the
/// shortest first: no job ends later, most end earlier.
Allocation in_turns(const AllocationProblem& problem, Allocation allocation);

/// The smallest number of further GPUs of a kind with which all jobs that can meet their deadlines
/// alone do so together; nullopt: no number is enough.
std::optional<double> gpus_to_meet_deadlines(const AllocationProblem& problem, size_t kind);

/// What a second of a column costs.
double cost_per_s(const AllocationProblem& problem, const AllocationProblem::Column& column);
/// The highest speed of each job alone; 0: it has no column.
std::vector<double> fastest_speeds(const AllocationProblem& problem);
/// The speed of each job with an equal part of all GPUs, of each kind.
std::vector<double> equal_speeds(const AllocationProblem& problem);

/// The problem of an allocation that does not tell kinds apart: a job's time is divided among the
/// kinds that it runs on, as the pool is. Its speed is the mean over those, also
/// that beside another job.
AllocationProblem without_kinds(const AllocationProblem& problem);

/// For each job what it gets.
std::vector<JobShare> shares_of(const AllocationProblem& problem, const Allocation& allocation);

}  // namespace tilecast
