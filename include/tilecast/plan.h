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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("PlanAlternative",
             "The best candidate that has another value of one option than the first.");
    field("option", "", "name of the option", &PlanAlternative::option);
    field("value", "", "its value", &PlanAlternative::value);
    field("candidate", "", "index of the candidate", &PlanAlternative::candidate);
  }
};

/// A reason why degrees of a space are impossible, and how often it applies.
struct ImpossibleDegrees {
  std::string reason;
  int64_t count = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ImpossibleDegrees", "A reason why degrees of a space are impossible.");
    field("reason", "", "why", &ImpossibleDegrees::reason);
    field("count", "", "how often it applies", &ImpossibleDegrees::count);
  }
};
std::vector<ImpossibleDegrees> impossible_degrees(const std::map<std::string, int64_t>& counts);

/// A candidate with what follows from its plan.
struct TrainingCandidateRow;
/// The first candidate of a plan that fits.
struct TrainingWinner;

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
  std::vector<TrainingCandidateRow> rows() const;
  std::optional<TrainingWinner> winner() const;  ///< nullopt: none fits

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TrainingPlan", "The best parallel configurations of a training step.");
    field("schema_version", "", "of this schema", [](const TrainingPlan&) { return 1; });
    field("kind", "", "training", [](const TrainingPlan&) { return std::string_view("training"); },
          {"training"});
    field("model", "", "name of the model", &TrainingPlan::model);
    field("gpu", "", "id of the GPU", &TrainingPlan::gpu);
    field("cluster", "", "id of the cluster", &TrainingPlan::cluster);
    field("nodes", "", "of the cluster", &TrainingPlan::nodes);
    field("ranks", "", "GPUs that take part", &TrainingPlan::ranks);
    field("batch", "", "sequences of a step, over all ranks", &TrainingPlan::batch);
    field("seq", "tokens", "length of a sequence", &TrainingPlan::seq);
    field("parameters", "", "parameters of the model", &TrainingPlan::parameters);
    field("device_bytes", "bytes", "what programs see of a GPU's memory",
          &TrainingPlan::device_bytes);
    field("objective", "", "what the best candidate has least of", &TrainingPlan::objective);
    field("price_per_gpu_hour", "", "null: not given", &TrainingPlan::price_per_gpu_hour);
    field("winner", "", "of the first candidate; null: none fits", &TrainingPlan::winner);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const TrainingPlan& x) { return warning_texts(x.warnings); });
    field("fitting", "", "candidates that fit", &TrainingPlan::fitting);
    field("simulated", "", "candidates that were simulated", &TrainingPlan::simulated);
    field("ranked", "", "candidates that are ranked by simulated times", &TrainingPlan::ranked);
    field("candidates", "",
          "those that fit, the best first, then those that do not, the nearest first",
          &TrainingPlan::rows);
    field("alternatives", "", "the best candidates with another value of an option than the first",
          &TrainingPlan::alternatives);
    field("impossible", "", "degrees that the model does not allow",
          [](const TrainingPlan& x) { return impossible_degrees(x.impossible); });
    field("options", "",
          "options that all candidates share: values by the names of the command-line options "
          "(with _ for -), in their units; options without a value are omitted",
          [](const TrainingPlan& x) { return option_values(x.used); });
  }
};

struct TrainingCandidateRow {
  TrainingCandidate candidate;
  std::optional<int64_t> rank;
  std::optional<double> tokens_per_s, cost_of_step;

  /// `value` of a simulated step; else nullptr.
  template <typename T>
  const T* if_simulated(const T& value) const {
    return candidate.latency_s ? &value : nullptr;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TrainingCandidate",
             "One parallel configuration. Memory is that of the rank that needs most.");
    field("rank", "", "by simulated times; null: not among the first", &TrainingCandidateRow::rank);
    field("fits", "", "whether it fits",
          [](const TrainingCandidateRow& x) { return x.candidate.fits(); });
    field("dp", "", "data-parallel ranks",
          [](const TrainingCandidateRow& x) { return (x.candidate.dp); });
    field("tp", "", "tensor-parallel ranks",
          [](const TrainingCandidateRow& x) { return (x.candidate.tp); });
    field("pp", "", "pipeline stages",
          [](const TrainingCandidateRow& x) { return (x.candidate.pp); });
    field("cp", "", "context-parallel ranks",
          [](const TrainingCandidateRow& x) { return (x.candidate.cp); });
    field("ep", "", "expert-parallel ranks",
          [](const TrainingCandidateRow& x) { return (x.candidate.ep); });
    field("micro_batch_size", "", "sequences of a micro-batch",
          [](const TrainingCandidateRow& x) { return (x.candidate.micro_batch_size); });
    field("microbatches", "", "of each data-parallel rank",
          [](const TrainingCandidateRow& x) { return (x.candidate.microbatches); });
    field("pipeline_schedule", "", "order of the micro-batches",
          [](const TrainingCandidateRow& x) { return (x.candidate.schedule); });
    field("virtual_stages", "", "parts of the model on each pipeline stage",
          [](const TrainingCandidateRow& x) { return (x.candidate.virtual_stages); });
    field("num_layers_per_virtual_pipeline_stage", "", "null: not interleaved",
          [](const TrainingCandidateRow& x) { return (x.candidate.layers_per_virtual_stage); });
    field("zero", "", "what data-parallel ranks divide",
          [](const TrainingCandidateRow& x) { return (x.candidate.zero); });
    field("checkpointing", "", "what the backward pass computes again",
          [](const TrainingCandidateRow& x) { return (x.candidate.checkpointing); });
    field("sequence_parallel", "", "whether tensor-parallel ranks divide the sequence",
          [](const TrainingCandidateRow& x) { return (x.candidate.sequence_parallel); });
    field("dtype", "", "of the step",
          [](const TrainingCandidateRow& x) { return (x.candidate.dtype); });
    field("latency_s", "s", "of a step; null: not simulated",
          [](const TrainingCandidateRow& x) { return (x.candidate.latency_s); });
    field("bound_s", "s", "a step takes at least so long",
          [](const TrainingCandidateRow& x) { return (x.candidate.bound_s); });
    field("peak_bytes", "bytes", "of the rank that needs most, as the next",
          [](const TrainingCandidateRow& x) { return (x.candidate.peak_bytes); });
    field("margin_bytes", "bytes", "the GPU's memory less peak_bytes",
          [](const TrainingCandidateRow& x) { return (x.candidate.margin_bytes); });
    field("weights_bytes", "bytes", "parameters and buffers",
          [](const TrainingCandidateRow& x) { return (x.candidate.weights_bytes); });
    field("gradients_bytes", "bytes", "gradients of the parameters",
          [](const TrainingCandidateRow& x) { return (x.candidate.gradients_bytes); });
    field("optimizer_bytes", "bytes", "optimizer states",
          [](const TrainingCandidateRow& x) { return (x.candidate.optimizer_bytes); });
    field("activations_bytes", "bytes", "tensors that are kept for the backward pass",
          [](const TrainingCandidateRow& x) { return (x.candidate.activations_bytes); });
    field.if_set(
        "compute_s", "s", "mean of the stages of a simulated step, as the next two",
        [](const TrainingCandidateRow& x) { return x.if_simulated(x.candidate.compute_s); });
    field.if_set("exposed_communication_s", "s", "communication while nothing is computed",
                 [](const TrainingCandidateRow& x) {
                   return x.if_simulated(x.candidate.exposed_communication_s);
                 });
    field.if_set("bubble_s", "s", "waiting for other stages", [](const TrainingCandidateRow& x) {
      return x.if_simulated(x.candidate.bubble_s);
    });
    field.if_set("latency_low_s", "s", "80 % interval, as the next; only of ranked candidates",
                 [](const TrainingCandidateRow& x) { return (x.candidate.latency_low_s); });
    field.if_set("latency_high_s", "s", "80 % interval",
                 [](const TrainingCandidateRow& x) { return (x.candidate.latency_high_s); });
    field.if_set("extrapolated", "",
                 "of ranked candidates: part of the time comes from no measurement of the GPU's "
                 "class or links",
                 [](const TrainingCandidateRow& x) {
                   return x.candidate.latency_low_s ? &x.candidate.extrapolated : nullptr;
                 });
    field.if_set("tokens_per_s", "1/s", "of a simulated step", &TrainingCandidateRow::tokens_per_s);
    field.if_set("cost_of_step", "", "in the unit of the price, of a simulated step",
                 &TrainingCandidateRow::cost_of_step);
  }
};

struct TrainingWinner {
  std::string options;
  double latency_low_s = 0, latency_high_s = 0;
  bool extrapolated = false;
  double utilization_ratio = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TrainingWinner", "The first candidate.");
    field("options", "", "of tilecast forecast, beside the shared ones", &TrainingWinner::options);
    field("latency_low_s", "s", "80 % interval", &TrainingWinner::latency_low_s);
    field("latency_high_s", "s", "80 % interval", &TrainingWinner::latency_high_s);
    field("extrapolated", "",
          "part of the time comes from no measurement of the GPU's class or links",
          &TrainingWinner::extrapolated);
    field("utilization_ratio", "", "share of its FLOPs in the GPUs' peak",
          &TrainingWinner::utilization_ratio);
  }
};

/// Plans of the same training on different GPUs.
struct TrainingPlans {
  std::vector<TrainingPlan> plans;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TrainingPlans", "Plans of the same training on different GPUs.");
    field("schema_version", "", "of this schema", [](const TrainingPlans&) { return 1; });
    field("kind", "", "training_comparison",
          [](const TrainingPlans&) { return std::string_view("training_comparison"); },
          {"training_comparison"});
    field("plans", "", "the best of each GPU first", &TrainingPlans::plans);
  }
};

/// The options of a candidate, as the command line has them.
std::string options_text(const TrainingCandidate& candidate);

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
