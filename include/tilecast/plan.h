#pragma once

// The best parallel configuration of a training step: a search over all that the GPUs of a cluster
// can run. Library: tilecast::plan.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// The values that a search may use; an empty list: all that docs/explanation/plans.md names.
struct TrainingSpace {
  std::vector<int64_t> tp, pp, cp, ep, micro_batch_sizes, virtual_stages;
  std::vector<PipelineSchedule> schedules;
  std::vector<Zero> zero;
  std::vector<Checkpointing> checkpointing;
  std::vector<bool> sequence_parallel;
  std::vector<std::string> dtypes;
};

/// The quantity that the best candidate has least of.
enum class PlanObjective : uint8_t { kTime, kCost, kMemory };
constexpr auto choice_words(PlanObjective) {
  return std::array<std::string_view, 3>{"time", "cost", "memory"};
}

/// Whether candidates that cannot be among the first are left out of the simulation.
enum class Pruning : uint8_t { kOn, kOff };

struct TrainingQuery {
  /// The options that all candidates share: batch, seq, cluster, nodes, attention, optimizer, …
  /// Degrees and what TrainingSpace has are not read.
  Request request;
  std::optional<AttentionKind> attention;  ///< default: flash, where the model has it
  TrainingSpace space;
  PlanObjective objective = PlanObjective::kTime;
  size_t top = 10;  ///< candidates that are ranked by their simulated times
  Pruning pruning = Pruning::kOn;
  std::optional<double> price_per_gpu_hour;
};

/// One configuration. Memory: of the rank that needs most.
struct TrainingCandidate {
  int64_t dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  int64_t micro_batch_size = 1, microbatches = 1;
  int64_t virtual_stages = 1;
  std::optional<int64_t> layers_per_virtual_stage;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  Zero zero = Zero::kNone;
  Checkpointing checkpointing = Checkpointing::kNone;
  bool sequence_parallel = false;
  std::string dtype;
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0, activations_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t margin_bytes = 0;  ///< below 0: it does not fit
  double bound_s = 0;        ///< the step takes at least so long
  /// The step's time as `tilecast forecast` gives it; nullopt: it was not simulated, since it does
  /// not fit or others are faster than its bound.
  std::optional<double> latency_s;
  /// Means over the stages, of a simulated step.
  double compute_s = 0, exposed_communication_s = 0, bubble_s = 0;
  /// The 80 % interval of the step's time, of the ranked candidates.
  std::optional<double> latency_low_s, latency_high_s;
  bool extrapolated = false;  ///< of a ranked one: part of the time comes from no measurement

  bool fits() const { return margin_bytes >= 0; }
};

/// The best candidate that has another value of one option than the winner.
struct PlanAlternative {
  std::string option, value;
  /// Index of the candidate; if none fits, of the one that misses least memory.
  size_t candidate = 0;
};

struct TrainingPlan {
  std::string model, gpu, gpu_name, cluster, cluster_name;
  int64_t nodes = 1, ranks = 1, batch = 1, seq = 1;
  bool has_network = false;  ///< that can join further nodes
  int64_t parameters = 0;
  int64_t device_bytes = 0;  ///< what programs see of a GPU's
  std::optional<double> price_per_gpu_hour;
  PlanObjective objective = PlanObjective::kTime;
  /// Candidates that fit, the best first: simulated ones by their time, then the others by their
  /// bounds. Then candidates that do not fit, the nearest first.
  std::vector<TrainingCandidate> candidates;
  size_t fitting = 0, simulated = 0;
  /// How many of the first are ranked by simulated times.
  size_t ranked = 0;
  std::vector<PlanAlternative> alternatives;
  /// Why degrees of the space are impossible for this model, and how often.
  std::map<std::string, int64_t> impossible;
  /// The winner's share of the GPUs' peak FLOP/s, and the warnings of its forecast.
  double winner_utilization_ratio = 0;
  std::vector<Warning> warnings;
  Request used;  ///< the options that all candidates share

  double tokens_per_s(double seconds) const {
    return static_cast<double>(batch) * static_cast<double>(seq) / seconds;
  }
  double cost_of_step(double seconds) const {
    return seconds / 3600 * static_cast<double>(ranks) * price_per_gpu_hour.value_or(0);
  }
};

/// Throws Error for a model, cluster or options that cannot be forecast, and if the space is empty.
TrainingPlan plan_training(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                           const TrainingQuery& query);

/// The price of an hour of each GPU, in the unit of the list: `text` is one number for all, a list
/// ("H100=2.5,A100=1.2"), or a file: .json ({"H100": 2.5}) or .csv (columns gpu and
/// price_per_gpu_hour). Throws OptionError for another text, Error{kInput} for a GPU without a
/// price.
std::vector<double> gpu_prices(const std::string& text, const std::vector<GpuRef>& gpus);

/// The request that `Forecaster::forecast` needs for a candidate.
Request request_of(const TrainingPlan& plan, const TrainingCandidate& candidate);

}  // namespace tilecast
