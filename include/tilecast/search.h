#pragma once

// Many questions at once: tables of forecasts, comparisons of GPUs, plans, placements, tuning,
// sweeps.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// A column of a sweep's results, for pages.
struct SweepResultColumn {
  std::string name, unit;
  std::vector<std::string> values;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SweepResultColumn;
    field.is("SweepColumn", "A column of a sweep's results.");
    field("name", "", "an option, a number of the device, or a result", &Self::name);
    field("unit", "", "of its values; empty: none", &Self::unit);
    field("values", "", "of the points, as text; empty: there is none", &Self::values);
  }
};

struct SweepResult {
  std::string output;
  size_t combinations = 0, failed = 0, rejected = 0;
  std::vector<std::string> pareto;
  std::string front_lines;  ///< of the output, with its header
  std::vector<int64_t> front;
  std::vector<SweepResultColumn> columns;
  std::string shortfall;  ///< which points failed; "": none

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SweepResult;
    field.is_document("Sweep", "Forecasts of the points of a sweep.");
    field("kind", "", "sweep", [](const Self&) { return std::string_view("sweep"); }, {"sweep"});
    field("output", "", "the file with a row for each point", &Self::output);
    field("combinations", "", "how many points it has", &Self::combinations);
    field("failed", "", "without a forecast: see `error` in the file", &Self::failed);
    field("rejected", "", "points that a condition of `where` refuses: they have no row",
          &Self::rejected);
    field("pareto", "", "what the front is about, with min: or max: before each field",
          &Self::pareto);
    field("front", "",
          "`index` of the points that fit and that no other one beats in the fields of `pareto`; "
          "without such fields of the accelerators that no other one of the same model and options "
          "beats in cycles, multipliers and bytes on the chip",
          &Self::front);
    field.if_set("columns", "",
                 "of pages: the points of the front and others, as many as a page shows",
                 [](const Self& x) { return x.columns.empty() ? nullptr : &x.columns; });
    field.warnings([](const Self& x) {
      return x.shortfall.empty() ? std::vector<std::string>() : std::vector{x.shortfall};
    });
  }
};

struct SweepOptions {
  /// Grows by a row for each result: CSV, or a JSON object in each line where it ends in ".jsonl".
  std::string output;
  int threads = 0;  ///< 0: one for each core that the process may use
  /// Fields of the front: "latency_s", "max:tokens_per_s", "time".
  std::vector<std::string> pareto;
  bool columns = false;  ///< SweepResult::columns are wanted
};

/// Forecasts all points of the spec in a file (docs/guide/sweep_many.md). What `output` has already
/// is not computed again. Throws Error{kInput} for a broken spec or an output of another one.
SweepResult run_sweep(const std::string& spec_file, const SweepOptions& options,
                      const ShowProgress& progress = {});

/// Request for a placement.
struct ShardQuery {
  std::string tables;     ///< file with a list of tables, or a recommendation model
  std::string cluster;    ///< id, alias or file
  int64_t nodes = 0;      ///< of the cluster; 0: as the cluster's file says
  int64_t batch = 65536;  ///< samples of all ranks; default: that of MLPerf's DLRM-DCNv2
  /// Dtype of the sums that ranks exchange, and of tables that state none.
  std::string dtype = "fp32";
  /// Share of each GPU's memory that tables may use. Default: TorchRec's planner keeps 15 % free
  /// (torchrec/distributed/planner/storage_reservations.py).
  double memory_share = 0.85;
  uint64_t seed = 1;  ///< of the search
};

/// The fastest placement that a search finds. A pure function of the query. Throws
/// Error{kNotFound} for an unknown cluster or file, Error{kInput} for a broken file and where the
/// tables do not fit: the message says how much is missing.
ShardForecast shard_tables(const ShardQuery& query);

/// The values of one option, a value for each row.
struct OptionColumn {
  static constexpr int32_t kNotGiven = -1;  ///< the row has the option's default
  /// Before the name of a number of the row's device: "parameters.memory_bytes_per_s".
  static constexpr const char* kParameters = "parameters.";

  /// "model", "gpu", the name of an option of a request, or that of a number of the device.
  std::string name;
  std::vector<std::string> words;  ///< the values as text, each once
  std::vector<int32_t> codes;      ///< for each row the index of its word, or kNotGiven
};

/// The numbers of one forecast. Those that do not apply are nullopt, and all are if it failed.
struct ForecastTotals {
  std::optional<Interval> latency_s;
  std::optional<double> forward_s, backward_s, optimizer_s;
  std::optional<double> ttft_s, tpot_s, tokens_per_s;
  std::optional<int64_t> flops, bytes, parameters;
  std::optional<double> utilization_ratio;
  std::optional<double> power_w, energy_j, energy_per_token_j, cost, cost_per_million_tokens;
  std::optional<int64_t> peak_bytes;
  std::optional<bool> fits;
  std::optional<std::string> dtype;
  std::optional<std::string> warning_codes;
  std::optional<std::string> error;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ForecastTotals;
    field.is("ForecastTotals",
             "The numbers of one forecast. Those that do not apply have no value, and none has if "
             "it failed.");
    field.interval(
        {"latency_s", "latency_low_s", "latency_high_s"}, "s",
        "time of the pass or of the request; of a server under load, mean time of a request",
        &Self::latency_s);
    field("forward_s", "s", "of a pass", &Self::forward_s);
    field("backward_s", "s", "of a training step", &Self::backward_s);
    field("optimizer_s", "s", "of a training step", &Self::optimizer_s);
    field("ttft_s", "s",
          "time to first token; of a server under load, 99th percentile of the steady part",
          &Self::ttft_s);
    field("tpot_s", "s",
          "time per output token; of a server under load, 99th percentile of the steady part",
          &Self::tpot_s);
    field("tokens_per_s", "1/s",
          "output tokens of all sequences; of a server under load, in the steady part",
          &Self::tokens_per_s);
    field("flops", "FLOP",
          "as in the forecast of one GPU: of a pass, or of one rank's prefill and decode",
          &Self::flops);
    field("bytes", "bytes", "memory traffic, as flops", &Self::bytes);
    field("parameters", "", "parameters of the model", &Self::parameters);
    field("utilization_ratio", "", "FLOPs / (latency x peak FLOP/s of the device for the dtype)",
          &Self::utilization_ratio);
    field("power_w", "W", "of one GPU's board, the mean of its time", &Self::power_w);
    field("energy_j", "J",
          "of all GPUs' boards: of a pass or step, of a batch of generated text, of a request of a "
          "server under load",
          &Self::energy_j);
    field("energy_per_token_j", "J", "that of a token", &Self::energy_per_token_j);
    field("cost", "", "of energy_j's work: GPUs and energy, as far as prices were given",
          &Self::cost);
    field("cost_per_million_tokens", "", "the same of tokens", &Self::cost_per_million_tokens);
    field("peak_bytes", "bytes", "memory of one rank", &Self::peak_bytes);
    field("fits", "", "whether it fits", &Self::fits);
    field("dtype", "", "the dtype that was used", &Self::dtype);
    field("warning_codes", "", "codes of the warnings, separated by commas", &Self::warning_codes);
    field("error", "", "why there is no forecast; all numbers are null then", &Self::error);
  }
};

/// Forecasts of the rows of a table. Rows that are alike share one.
struct ForecastTable {
  std::vector<ForecastTotals> distinct;
  std::vector<uint32_t> rows;  ///< for each row the index of its forecast

  const ForecastTotals& of_row(size_t row) const { return distinct[rows[row]]; }
};

struct ManyOptions {
  int threads = 0;  ///< 0: one for each core that the process may use
  /// Called from time to time by the calling thread; what it throws ends the run. May be null.
  std::function<void()> poll;
};

/// Forecasts each of `rows` rows. A model is a name, a path, or the text of a config (starting with
/// "{"). A row that cannot be forecast has an `error`, and the others are not affected. Throws
/// OptionError for a column that is no option, Error{kInput} for columns of different lengths or a
/// name that is there twice. The result does not depend on the number of threads.
ForecastTable forecast_many(const Forecaster& forecaster, const std::vector<OptionColumn>& columns,
                            size_t rows, const ManyOptions& options = {});

/// The forecast on one GPU, or why there is none (`totals.error`). For a server under load,
/// `totals` has the times and tokens/s of the steady part, with the 99th percentile of TTFT and
/// TPOT; all are nullopt if it does not start, for lack of memory.
struct ComparedGpu {
  std::string gpu;
  std::string gpu_name;
  int64_t usable_bytes = 0;
  ForecastTotals totals;
  std::optional<Interval> ttft, tpot;
  std::optional<double> goodput_requests_per_s;
  bool keeps_up = true;
  bool memory_is_tight = false;
  std::optional<bool> overlaps_row_above;
  std::vector<Warning> warnings;

  /// `value` of a GPU with a forecast; else nullptr.
  template <typename T>
  const T* if_forecast(const T& value) const {
    return totals.error ? nullptr : &value;
  }
  bool fits() const { return totals.fits.value_or(false); }
  bool has_time() const { return totals.latency_s.has_value(); }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ComparedGpu;
    field.is("ComparedGpu", "The forecast on one GPU, or why there is none.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("usable_bytes", "bytes",
          "what a program can use of the GPU's memory; the peak must fit into it",
          [](const Self& x) { return x.if_forecast(x.usable_bytes); });
    field.flat(&Self::totals, {"warning_codes"});
    field("ttft", "", "of a server under load: 99th percentile of the steady part", &Self::ttft);
    field("tpot", "", "of a server under load: 99th percentile of the steady part", &Self::tpot);
    field("goodput_requests_per_s", "1/s",
          "requests that meet the limits on TTFT and TPOT; null: no limits were given",
          &Self::goodput_requests_per_s);
    field("keeps_up", "",
          "whether a server keeps up with the load; its times grow with the length of the run if "
          "it does not",
          [](const Self& x) { return x.if_forecast(x.keeps_up); });
    field("memory_is_tight", "",
          "of a pass: it fits, but less than a tenth of the peak is free, which the caching "
          "allocator may be unable to use",
          [](const Self& x) { return x.if_forecast(x.memory_is_tight); });
    field("overlaps_row_above", "",
          "the 80 % intervals of latency_s of this GPU and of the one before it overlap: which of "
          "the two is faster is not certain. null: it is the first of those that fit, or of those "
          "that do not, or one of the two has no time that can be compared",
          &Self::overlaps_row_above);
    field.warnings(&Self::warnings);
  }
};

struct GpuComparison {
  std::string model;
  Request request;
  std::string input;  ///< as in Forecast; "" for text generation
  int64_t gpus_each = 1;
  std::vector<std::string> assumptions;
  std::vector<ComparedGpu> gpus;
  std::vector<GpuPrice> prices;  ///< of the rows that have one, where prices are by GPU

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = GpuComparison;
    field.is_document("GpuComparison", "The same request on several GPUs.");
    field("kind", "", "gpu_comparison",
          [](const Self&) { return std::string_view("gpu_comparison"); }, {"gpu_comparison"});
    field("model", "", "name of the model", &Self::model);
    field("gpus_each", "", "GPUs of each kind that the request uses", &Self::gpus_each);
    field("assumptions", "",
          "what matters to the numbers, as in a forecast; of the first GPU given",
          &Self::assumptions);
    field("gpus", "",
          "those that fit, then those that do not, then those without a forecast; servers that "
          "keep up with the load come before those that do not, a higher goodput before a lower "
          "one; else the fastest first, or where prices are by GPU the cheapest",
          &Self::gpus);
    field.if_set("gpu_prices", "", "the rows that costs follow from, where prices are by GPU",
                 [](const Self& x) { return x.prices.empty() ? nullptr : &x.prices; });
    field.options(&Self::request);
  }
};

/// Forecasts the request on each GPU. If a GPU has no forecast, its row says why. The result does
/// not depend on the number of threads.
GpuComparison compare_gpus(const Forecaster& forecaster, const ModelRef& model,
                           const std::vector<GpuRef>& gpus, const Request& request,
                           const ManyOptions& options = {});

/// One of two forecasts that are compared.
struct ComparedForecast {
  std::string name;  ///< as asked: "H100", "old.json"
  std::string model, gpu, dtype;
  Interval latency_s;
  std::optional<double> ttft_s, tpot_s, tokens_per_s;
  int64_t peak_bytes = 0;
  bool fits = true;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ComparedForecast;
    field.is("ComparedForecast", "One of two forecasts that are compared.");
    field("name", "", "as it was asked for", &Self::name);
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("dtype", "", "the dtype that was used", &Self::dtype);
    field.interval({"latency_s", "latency_low_s", "latency_high_s"}, "s",
                   "time of the pass or of the request", &Self::latency_s);
    field("ttft_s", "s", "time to first token; of a server under load the p99 of its steady part",
          &Self::ttft_s);
    field("tpot_s", "s", "time per output token, likewise", &Self::tpot_s);
    field("tokens_per_s", "1/s", "of training, or written", &Self::tokens_per_s);
    field("peak_bytes", "bytes", "memory of one GPU", &Self::peak_bytes);
    field("fits", "", "whether it fits", &Self::fits);
  }
};

/// What both forecasts spend on kernels of one phase and name, without the number of the layer.
struct KernelDifference {
  std::string phase, name, op;
  std::optional<double> a_s, b_s;  ///< of all together; nullopt: there are none
  int64_t a_count = 0, b_count = 0;

  double difference_s() const { return b_s.value_or(0) - a_s.value_or(0); }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = KernelDifference;
    field.is("KernelDifference",
             "What both forecasts spend on kernels of one phase and name, all layers together.");
    field("phase", "", "the part of the step that runs them", &Self::phase);
    field("name", "", "in the model, without the number of the layer", &Self::name);
    field("op", "", "operator of 'tilecast ops'", &Self::op);
    field("a_s", "s", "in the first; null: it has none", &Self::a_s);
    field("b_s", "s", "in the second; null: it has none", &Self::b_s);
    field("difference_s", "s", "second less first", &Self::difference_s);
    field("a_count", "", "kernels of the first", &Self::a_count);
    field("b_count", "", "kernels of the second", &Self::b_count);
  }
};

/// A part of the memory in both.
struct MemoryDifference {
  std::string name;
  int64_t a_bytes = 0, b_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryDifference;
    field.is("MemoryDifference", "A part of the memory in both forecasts.");
    field("name", "", "of the part", &Self::name);
    field("a_bytes", "bytes", "in the first", &Self::a_bytes);
    field("b_bytes", "bytes", "in the second", &Self::b_bytes);
    field("difference_bytes", "bytes", "second less first",
          [](const Self& x) { return x.b_bytes - x.a_bytes; });
  }
};

/// An option whose values differ.
struct OptionDifference {
  std::string option, a, b;  ///< "": not given

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = OptionDifference;
    field.is("OptionDifference", "An option whose values differ.");
    field("option", "", "its name", &Self::option);
    field("a", "", "in the first; empty: none", &Self::a);
    field("b", "", "in the second; empty: none", &Self::b);
  }
};

/// Two forecasts side by side.
struct Comparison {
  ComparedForecast a, b;
  std::vector<OptionDifference> options;
  std::vector<KernelDifference> kernels;  ///< the largest difference first
  std::vector<MemoryDifference> memory;

  /// Which of the two is faster is not certain.
  bool overlaps() const {
    return a.latency_s.low <= b.latency_s.high && b.latency_s.low <= a.latency_s.high;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Comparison;
    field.is_document("Comparison", "Two forecasts side by side.");
    field("a", "", "the first", &Self::a);
    field("b", "", "the second", &Self::b);
    field("ratio", "", "latency of the second over that of the first",
          [](const Self& x) { return x.b.latency_s / x.a.latency_s; });
    field("overlaps", "",
          "the 80 % intervals of the latencies overlap: which of the two is faster is not certain",
          &Self::overlaps);
    field("options", "", "options whose values differ", &Self::options);
    field("kernels", "", "by phase and name, the largest difference first", &Self::kernels);
    field("memory", "", "by part", &Self::memory);
  }
};

/// A forecast as JSON (`--format json`), and what to call it.
struct NamedForecast {
  std::string name, json;
};

/// Throws Error{kInput} for a text that is no forecast.
Comparison compare_forecasts(const NamedForecast& a, const NamedForecast& b);

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
enum class PlanObjective : uint8_t { kTime, kCost, kMemory, kEnergy };

constexpr auto choice_words(PlanObjective) {
  return std::array<std::string_view, 4>{"time", "cost", "memory", "energy"};
}

/// Whether candidates that cannot be among the first are left out of the simulation.
enum class Pruning : uint8_t { kOn, kOff };

struct TrainingQuery {
  /// The options that all candidates share: batch, seq, cluster, nodes, attention, optimizer, …
  /// Degrees and what TrainingSpace has are not read.
  Request request;
  int64_t gpus = 0;  ///< in place of `nodes`: as many of each node; 0: all of the nodes
  TrainingSpace space;
  PlanObjective objective = PlanObjective::kTime;
  size_t top = 10;  ///< layouts that are ranked by simulated times
  Pruning pruning = Pruning::kOn;
  /// Memory that stays free, as a share of the peak: what the caching allocator cannot use, and
  /// buffers of collectives. Source: 49 of 56 measured steps above 20 GiB reserved at most 1.1
  /// times what they allocated (data/measurements/nvidia-h100-sxm5-80gb/models*.csv).
  double memory_reserve = kMemoryReserve;
  static constexpr double kMemoryReserve = 0.1;
  std::optional<double> price_per_gpu_hour;
  std::optional<GpuPrice> gpu_price = {};  ///< where that is from a list or a table
  int threads = 0;                         ///< 0: one for each core that the process may use
  ShowProgress show_progress;              ///< may be null
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
  Memory memory;
  int64_t reserve_bytes = 0;
  double bound_s = 0;
  /// nullopt: it was not simulated, since it does not fit or others are faster than its bound.
  std::optional<double> latency_s;
  double compute_s = 0, exposed_communication_s = 0, bubble_s = 0;
  std::optional<Interval> ranked_s;  ///< `latency_s` with its interval, of ranked candidates
  /// Of ranked candidates where power is forecast: a GPU's mean, and of a step of all GPUs.
  std::optional<double> power_w, energy_j;
  bool extrapolated = false;
  /// Of a ranked one: candidates of one step differ by less than the errors of their times.
  int64_t step = 0;
  /// Of a ranked one: others with the same degrees that may be as fast, and have no row.
  int64_t alike = 0;

  bool fits() const { return missing_bytes() <= 0; }
  int64_t missing_bytes() const { return reserve_bytes - memory.margin_bytes(); }
};

/// The best candidate that has another value of one option than the winner.
struct PlanAlternative {
  std::string option, value;
  size_t candidate = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PlanAlternative;
    field.is("PlanAlternative",
             "The best candidate that has another value of one option than the first.");
    field("option", "", "name of the option", &Self::option);
    field("value", "", "its value", &Self::value);
    field("candidate", "", "index of the candidate; if none fits, the one that misses least memory",
          &Self::candidate);
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

struct TrainingPlan;
/// Empty: no candidate fits (or keeps the limits), or no software is known that runs it.
std::vector<LaunchLine> launch_lines(const TrainingPlan& plan);

struct TrainingPlan {
  std::string model, gpu, gpu_name, cluster, cluster_name;
  int64_t nodes = 1, ranks = 1, batch = 1, seq = 1;
  bool counts_tokens = true;  ///< false: the batch is of images, whose size the model fixes
  bool is_decoder = true;     ///< it generates text; scripts that train such models train no others
  int64_t gpus_per_node = 1;
  bool has_network = false;  ///< that can join further nodes
  int64_t parameters = 0;
  int64_t device_bytes = 0;
  double memory_reserve = 0;
  std::optional<double> price_per_gpu_hour;
  std::optional<GpuPrice> gpu_price;  ///< where that is from a list or a table
  PlanObjective objective = PlanObjective::kTime;
  /// Candidates that fit, the best first: of the layouts that are ranked (`ranked`) the best one
  /// each, in steps of what is certain, in a step the simplest first; then other simulated ones by
  /// their time, then the others by their bounds. Then candidates that do not fit, the nearest
  /// first.
  std::vector<TrainingCandidate> candidates;
  size_t fitting = 0, simulated = 0;
  size_t ranked = 0;
  /// Candidates that are not in the list: with a smaller micro-batch, none of them fits.
  int64_t skipped = 0;
  /// The fastest of all, and by how much others may be slower to tie with it; nullopt: ranked by
  /// memory.
  std::optional<TrainingCandidate> fastest;
  double fastest_s = 0, tie_ratio = 0;
  std::optional<int64_t> nodes_that_fit;  ///< if none fits: the fewest nodes on which one does
  std::vector<PlanAlternative> alternatives;
  std::map<std::string, int64_t> impossible;
  /// Defects of Tilecast that ended single forecasts, and how often.
  std::map<std::string, int64_t> failures;
  /// Of the winner's forecast.
  double winner_mfu_ratio = 0, winner_utilization_ratio = 0;
  std::vector<Warning> warnings;
  Request used;

  /// Tokens, or images, of a step.
  double samples() const {
    return static_cast<double>(batch) * (counts_tokens ? static_cast<double>(seq) : 1);
  }
  double samples_per_s(double seconds) const { return samples() / seconds; }
  double cost_of_step(double seconds) const {
    return seconds / 3600 * static_cast<double>(ranks) * price_per_gpu_hour.value_or(0);
  }
  /// Of a ranked candidate: with the energy of the GPUs' boards, where it has a price.
  double cost_of_step(const TrainingCandidate& c) const {
    constexpr double kJoulesPerKwh = 3.6e6;
    return cost_of_step(c.latency_s.value_or(0)) +
           c.energy_j.value_or(0) / kJoulesPerKwh * used.energy.price_per_kwh.value_or(0);
  }
  bool has_prices() const { return price_per_gpu_hour || used.energy.price_per_kwh; }
  std::vector<TrainingCandidateRow> rows() const;
  std::optional<TrainingWinner> winner() const;  ///< nullopt: none fits

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainingPlan;
    field.is_document("TrainingPlan", "The best parallel configurations of a training step.");
    field("kind", "", "training", [](const Self&) { return std::string_view("training"); },
          {"training"});
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("cluster", "", "id of the cluster", &Self::cluster);
    field("nodes", "", "of the cluster", &Self::nodes);
    field("ranks", "", "GPUs that take part", &Self::ranks);
    field("batch", "", "sequences of a step, over all ranks", &Self::batch);
    field("seq", "tokens", "length of a sequence", &Self::seq);
    field("parameters", "", "parameters of the model", &Self::parameters);
    field("device_bytes", "bytes", "what programs see of a GPU's memory", &Self::device_bytes);
    field("objective", "", "what the best candidate has least of", &Self::objective);
    field("price_per_gpu_hour", "", "null: not given", &Self::price_per_gpu_hour);
    field.if_set("gpu_price", "", "the row of that price, where prices are by GPU",
                 &Self::gpu_price);
    field("winner", "", "of the first candidate; null: none fits", &Self::winner);
    field("launch", "", "commands that start the first candidate",
          [](const Self& x) { return launch_lines(x); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Self& x) { return warning_texts(x.warnings); });
    field("fitting", "", "candidates that fit", &Self::fitting);
    field("memory_reserve", "", "of the peak, that has to stay free", &Self::memory_reserve);
    field("simulated", "", "candidates that were simulated", &Self::simulated);
    field("ranked", "", "layouts that are ranked by simulated times", &Self::ranked);
    field("skipped", "",
          "candidates that are not listed: with a smaller micro-batch, none of them fits",
          &Self::skipped);
    field.if_set("fastest_s", "s", "of the fastest candidate, which need not be the simplest",
                 [](const Self& x) { return x.fastest ? &x.fastest_s : nullptr; });
    field.if_set("tie_ratio", "",
                 "a step that is slower than another by less than this share ties with it",
                 [](const Self& x) { return x.fastest ? &x.tie_ratio : nullptr; });
    field("nodes_that_fit", "",
          "the fewest nodes on which a configuration fits; null: one fits, or none was found",
          &Self::nodes_that_fit);
    field(
        "candidates", "",
        "those that fit, the best first (one for each layout that is ranked, then others by their "
        "times and bounds), then those that do not, the nearest first",
        &Self::rows);
    field("alternatives", "", "the best candidates with another value of an option than the first",
          &Self::alternatives);
    field("impossible", "", "degrees that the model does not allow",
          [](const Self& x) { return impossible_degrees(x.impossible); });
    field("failures", "", "forecasts of candidates that a defect of Tilecast ended",
          [](const Self& x) { return impossible_degrees(x.failures); });
    field("options", "",
          "options that all candidates share: values by the names of the command-line options "
          "(with _ for -), in their units; options without a value are omitted",
          [](const Self& x) { return option_values(x.used); });
  }
};

struct TrainingCandidateRow : TrainingCandidate {
  std::optional<int64_t> rank;
  std::optional<double> tokens_per_s, images_per_s, cost_of_step, energy_per_token_j;

  /// `value` of a simulated step; else nullptr.
  template <typename T>
  const T* if_simulated(const T& value) const {
    return latency_s ? &value : nullptr;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainingCandidateRow;
    field.is("TrainingCandidate",
             "One parallel configuration. Memory is that of the rank that needs most.");
    field("rank", "", "null: not among the first", &Self::rank);
    field.if_set(
        "step", "",
        "of ranked candidates: which of one step is faster is not certain; the simplest comes "
        "first",
        [](const Self& x) { return x.rank && x.step > 0 ? &x.step : nullptr; });
    field.if_set("alike", "",
                 "of ranked candidates: others with the same degrees that may be as fast",
                 [](const Self& x) { return x.rank && x.step > 0 ? &x.alike : nullptr; });
    field("fits", "", "whether it fits", &Self::fits);
    field("dp", "", "data-parallel ranks", &Self::dp);
    field("tp", "", "tensor-parallel ranks", &Self::tp);
    field("pp", "", "pipeline stages", &Self::pp);
    field("cp", "", "context-parallel ranks", &Self::cp);
    field("ep", "", "expert-parallel ranks", &Self::ep);
    field("micro_batch_size", "", "sequences of a micro-batch", &Self::micro_batch_size);
    field("microbatches", "", "of each data-parallel rank", &Self::microbatches);
    field("pipeline_schedule", "", "order of the micro-batches", &Self::schedule);
    field("virtual_stages", "", "parts of the model on each pipeline stage", &Self::virtual_stages);
    field("num_layers_per_virtual_pipeline_stage", "", "null: not interleaved",
          &Self::layers_per_virtual_stage);
    field("zero", "", "what data-parallel ranks divide", &Self::zero);
    field("checkpointing", "", "what the backward pass computes again", &Self::checkpointing);
    field("sequence_parallel", "", "whether tensor-parallel ranks divide the sequence",
          &Self::sequence_parallel);
    field("dtype", "", "of the step", &Self::dtype);
    field("latency_s", "s", "of a step; null: not simulated", &Self::latency_s);
    field("bound_s", "s", "a step takes at least so long", &Self::bound_s);
    field.pick(&Self::memory, {"peak_bytes", "margin_bytes"});
    field("reserve_bytes", "bytes", "that has to stay free", &Self::reserve_bytes);
    field.pick(&Self::memory,
               {"weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes"});
    field.if_set("compute_s", "s", "mean of the stages of a simulated step, as the next two",
                 [](const Self& x) { return x.if_simulated(x.compute_s); });
    field.if_set("exposed_communication_s", "s", "communication while nothing is computed",
                 [](const Self& x) { return x.if_simulated(x.exposed_communication_s); });
    field.if_set("bubble_s", "s", "waiting for other stages",
                 [](const Self& x) { return x.if_simulated(x.bubble_s); });
    field.bounds({"latency_low_s", "latency_high_s"}, "s",
                 "80 % interval, as the next; only of ranked candidates", &Self::ranked_s);
    field.if_set("extrapolated", "",
                 "of ranked candidates: part of the time comes from no measurement of the GPU's "
                 "class or links",
                 [](const Self& x) { return x.ranked_s ? &x.extrapolated : nullptr; });
    field.if_set("tokens_per_s", "1/s", "of a simulated step", &Self::tokens_per_s);
    field.if_set("images_per_s", "1/s", "of a simulated step of a model of images",
                 &Self::images_per_s);
    field.if_set("power_w", "W", "of one GPU; only of ranked candidates, as the next two",
                 &Self::power_w);
    field.if_set("energy_j", "J", "of a step, of all GPUs' boards", &Self::energy_j);
    field.if_set("energy_per_token_j", "J", "of a token, of all GPUs' boards",
                 &Self::energy_per_token_j);
    field.if_set("cost_of_step", "",
                 "in the unit of the price, of a simulated step; of ranked candidates with the "
                 "energy, where it has a price",
                 &Self::cost_of_step);
  }
};

struct TrainingWinner {
  std::string options;
  Interval latency_s;
  bool extrapolated = false;
  double mfu_ratio = 0, utilization_ratio = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainingWinner;
    field.is("TrainingWinner", "The first candidate.");
    field("options", "", "of tilecast forecast, beside the shared ones", &Self::options);
    field.bounds({"latency_low_s", "latency_high_s"}, "s", "80 % interval of a step",
                 &Self::latency_s);
    field("extrapolated", "",
          "part of the time comes from no measurement of the GPU's class or links",
          &Self::extrapolated);
    field(
        "mfu_ratio", "",
        "MFU, model FLOPs utilization: the model's FLOPs / (latency x peak FLOP/s of the GPUs for "
        "the dtype)",
        &Self::mfu_ratio);
    field("utilization_ratio", "",
          "HFU, hardware FLOPs utilization: the same with the FLOPs that checkpointing computes "
          "again",
          &Self::utilization_ratio);
  }
};

/// Plans of the same training on different GPUs.
struct TrainingPlans {
  std::vector<TrainingPlan> plans;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("TrainingPlans", "Plans of the same training on different GPUs.");
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

/// The price of an hour of each GPU: `text` is one number for all, a list ("H100=2.5,A100=1.2"),
/// the name of a price table, or a file: .json ({"H100": 2.5}) or .csv (a price table: columns gpu
/// and price_per_gpu_hour, and currency, date and source). Throws OptionError for another text and
/// an unknown table, Error{kInput} for a bad row, a GPU without a price and prices in several
/// currencies.
std::vector<GpuPrice> gpu_prices(const std::string& text, const std::vector<GpuRef>& gpus);

/// The request that `Forecaster::forecast` needs for a candidate.
Request request_of(const TrainingPlan& plan, const TrainingCandidate& candidate);

/// Which value of each request's times a limit applies to.
enum class Percentile : uint8_t { kMean, kMedian, kP99 };

constexpr auto choice_words(Percentile) {
  return std::array<std::string_view, 3>{"mean", "median", "p99"};
}

/// GPUs of one kind.
struct ServingHardware {
  GpuRef gpu;
  std::string cluster;  ///< id, alias or file; "": nodes of the GPU
  GpuPrice price = {};  ///< read where the query has prices
};

/// The values that a search may use; an empty list: all that docs/explanation/plans.md names.
struct ServingSpace {
  std::vector<int64_t> tp, pp, dp, ep, prefill_workers, concurrency;
  std::vector<std::string> dtypes, kv_dtypes;
};

struct ServingQuery {
  /// The options that all candidates share: prompt, output, software, limits of Load, … With a
  /// rate, the search is for the fewest servers that keep the limits under it.
  Request request;
  /// Clients of all replicas together, with the same search; 0: not given.
  int64_t clients = 0;
  std::vector<ServingHardware> hardware;  ///< one at least
  /// Of each kind; 0: `nodes` nodes of the first. With a rate or clients, the limit for all servers
  /// together; 0: none. One server then has at most the GPUs of `nodes` nodes.
  int64_t gpus = 0;
  int64_t nodes = 1;
  std::optional<double> ttft_s, tpot_s;
  Percentile percentile = Percentile::kP99;
  ServingSpace space;
  /// kTime: most tokens/s for each GPU, or with prices for the money; with a rate or clients the
  /// fewest GPUs, or the cheapest. kEnergy: least energy of a token. The other two are refused.
  PlanObjective objective = PlanObjective::kTime;
  bool has_prices = false;
  /// All loads are simulated to their end.
  bool full_search = false;
  int threads = 0;             ///< 0: one for each core that the process may use
  ShowProgress show_progress;  ///< may be null
};

/// 80 % intervals of a candidate, in which the measured values are expected.
struct ServingIntervals {
  Interval ttft, tpot;  ///< at the percentile of the limits
  /// Clients send their next request when one is answered: throughput is inverse to the mean time
  /// of a request, which has the interval.
  Interval gpu_tokens_per_s;
  bool extrapolated = false;  ///< part of the time comes from no measurement
};

/// A layout under a load of `concurrency` clients for each replica.
struct ServingCandidate {
  size_t hardware = 0;  ///< index
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  All2All all2all = All2All::kAllGather;
  int64_t replicas = 1;
  int64_t prefill_workers = 0;
  std::string dtype, kv_dtype;
  /// Where the server would not start with the model's own longest length: the longest request.
  std::optional<int64_t> max_model_len;
  int64_t concurrency = 1;  ///< 0: requests come at the plan's rate
  int64_t requests = 0;     ///< that were simulated; 0: the default of forecasts
  bool fits = true;
  int64_t peak_bytes = 0;
  int64_t margin_bytes = 0;
  bool simulated = false;
  /// It cannot be among those that keep the limits, nor the nearest of those that miss them.
  bool pruned = false;
  double ttft_s = 0, tpot_s = 0, mean_ttft_s = 0, mean_tpot_s = 0;
  double mean_request_s = 0;  ///< from sending to the last token
  double tokens_per_s = 0, requests_per_s = 0, user_tokens_per_s = 0, gpu_tokens_per_s = 0;
  bool keeps_up = true;  ///< with the rate
  bool meets = false;
  /// The best load of a layout whose throughput ties with the most on the same GPUs.
  bool ties = false;
  /// The largest factor by which a limit is missed; 1 or less: it meets both.
  double excess = 0;
  /// Intervals of candidates that tables list: the first ones (ServingPlan::kListed), the front,
  /// the alternatives, and the best one of each kind of GPU; nullopt: all others.
  std::optional<ServingIntervals> intervals;
  /// Where power is forecast: a GPU's mean, and of an output token of all GPUs. Of the best one of
  /// each kind of GPU; with the objective energy of all that meet the limits.
  std::optional<double> power_w, energy_per_token_j;
  Interval power_interval;  ///< of power_w

  int64_t gpus() const { return tp * pp * dp * (replicas + prefill_workers); }
};

struct ServingPlan;
std::vector<LaunchLine> launch_lines(const ServingPlan& plan);

/// The options of a candidate, as the command line has them.
std::string options_text(const ServingPlan& plan, const ServingCandidate& candidate);

/// Warnings of each kind of GPU, with its id where there are several.
std::vector<std::string> plan_warning_texts(const ServingPlan& plan);

/// A candidate with what follows from its plan.
struct ServingCandidateRow;

/// One kind of GPU of a plan.
struct ServingHardwareRow;

struct ServingPlan {
  std::string model;
  std::vector<std::string> gpu_ids, gpu_names, clusters;  ///< of each kind of hardware
  std::vector<GpuPrice> prices;                           ///< empty: not given
  PlanObjective objective = PlanObjective::kTime;
  std::vector<int64_t> device_bytes;
  int64_t gpus = 0;
  int64_t prompt = 0, output = 0;  ///< means
  std::string software;
  std::optional<double> ttft_s, tpot_s;
  Percentile percentile = Percentile::kP99;
  int64_t clients = 0;    ///< of all replicas; 0: not given
  int64_t most_gpus = 0;  ///< with a rate or clients: of all servers; 0: no limit
  /// Candidates in this order: first those that meet the limits, most tokens/s for each GPU (with
  /// prices of several kinds: for each unit of money; with a rate or clients: fewest GPUs or least
  /// money) first, but the simplest of those that tie before all, and the best load of each layout
  /// before other loads; then those that miss them, the nearest first; then what was pruned or not
  /// simulated; then what does not fit, the nearest first.
  std::vector<ServingCandidate> candidates;
  size_t meeting = 0, simulated = 0, pruned = 0, fitting = 0;
  /// Layouts of the candidates that meet the limits: the first ones are the best load of each.
  size_t layouts = 0;
  /// Throughputs on the same GPUs that differ by less tie; of these the simplest comes first.
  static constexpr double kTieRatio = 0.05;
  /// The candidate of most throughput (with prices: for the money), if it is not the first.
  std::optional<size_t> most;
  /// With a rate or clients: the candidate of the fewest GPUs, if it is not the first.
  std::optional<size_t> fewest;
  /// If none fits: a lower share of the memory for the server with which the nearest does.
  std::optional<double> utilization_that_fits;
  std::vector<size_t> front;
  std::vector<PlanAlternative> alternatives;
  std::map<std::string, int64_t> impossible;
  /// Defects of Tilecast that ended single forecasts, and how often.
  std::map<std::string, int64_t> failures;
  /// Warnings of the best candidate's forecast, for each kind of GPU; empty: none of it was
  /// simulated.
  std::vector<std::vector<Warning>> warnings;
  Request used;

  static constexpr size_t kListed = 10;
  static constexpr int64_t kMostClients = 1024;  ///< of a replica, where no list is given
  static constexpr int64_t kMostServers = 1024;  ///< where the number of GPUs has no limit

  std::vector<ServingCandidateRow> rows() const;
  std::vector<ServingHardwareRow> hardware() const;
  /// The options of the first candidate; nullopt: none meets the limits.
  std::optional<std::string> winner() const;

  static bool crosses(const Interval& time, const std::optional<double>& limit) {
    return limit && time.low <= *limit && time.high > *limit;
  }
  /// Whether the intervals say that the candidate meets the limits, or that it misses one.
  bool limits_are_certain(const ServingIntervals& of) const {
    const bool misses = (ttft_s && of.ttft.low > *ttft_s) || (tpot_s && of.tpot.low > *tpot_s);
    return misses || !(crosses(of.ttft, ttft_s) || crosses(of.tpot, tpot_s));
  }
  bool limited() const { return ttft_s.has_value() || tpot_s.has_value(); }
  bool ranks_by_energy() const { return objective == PlanObjective::kEnergy; }
  /// Whether the best candidates cost least; else they write most tokens for each GPU, or take
  /// least energy.
  bool ranks_by_cost() const {
    for (const GpuPrice& price : prices) {
      if (price.price_per_gpu_hour <= 0) return false;
    }
    return !prices.empty() && !ranks_by_energy();
  }
  /// Whether the load of all replicas is given, and the number of GPUs is the answer.
  bool sized() const { return clients > 0 || used.load.rate > 0; }
  /// Idle ones too, where their number is given.
  int64_t paid_gpus(const ServingCandidate& c) const { return sized() ? c.gpus() : gpus; }
  double price_per_hour(const ServingCandidate& c) const {
    return prices[c.hardware].price_per_gpu_hour * static_cast<double>(paid_gpus(c));
  }
  double cost_of_million_tokens(const ServingCandidate& c) const {
    constexpr double kSecondsPerHour = 3600, kTokens = 1e6;
    return price_per_hour(c) / kSecondsPerHour * kTokens / c.tokens_per_s;
  }
  /// What the best candidate has most of.
  double worth(const ServingCandidate& c) const {
    constexpr double kUnknown = std::numeric_limits<double>::max();  // energy: comes last
    if (ranks_by_energy()) return -c.energy_per_token_j.value_or(kUnknown);
    if (sized()) return -(ranks_by_cost() ? price_per_hour(c) : static_cast<double>(c.gpus()));
    return ranks_by_cost() ? c.gpu_tokens_per_s / prices[c.hardware].price_per_gpu_hour
                           : c.gpu_tokens_per_s;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServingPlan;
    field.is_document("ServingPlan", "The best ways to serve a model on a number of GPUs.");
    field("kind", "", "serving", [](const Self&) { return std::string_view("serving"); },
          {"serving"});
    field("model", "", "name of the model", &Self::model);
    field("hardware", "", "kinds of GPUs", &Self::hardware);
    field("gpus", "", "of each kind; with rate or clients: that one server may take", &Self::gpus);
    field.if_set("rate", "requests/s", "of all replicas together",
                 [](const Self& x) { return x.used.load.rate > 0 ? &x.used.load.rate : nullptr; });
    field.if_set("clients", "", "of all replicas together",
                 [](const Self& x) { return x.clients > 0 ? &x.clients : nullptr; });
    field("prompt", "tokens", "mean length", &Self::prompt);
    field("output", "tokens", "mean length", &Self::output);
    field("software", "", "whose kernels and scheduler", &Self::software);
    field.if_set("objective", "", "what the best candidate has least of, where it is energy",
                 [](const Self& x) { return x.ranks_by_energy() ? &x.objective : nullptr; });
    field("ttft_s", "s", "limit; null: none", &Self::ttft_s);
    field("tpot_s", "s", "limit; null: none", &Self::tpot_s);
    field("percentile", "", "of requests that the limits apply to", &Self::percentile);
    field("winner", "", "options of tilecast forecast; null: none meets the limits", &Self::winner);
    field("launch", "", "commands that start a replica of the first candidate",
          [](const Self& x) { return launch_lines(x); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Self& x) { return plan_warning_texts(x); });
    field("meeting", "", "candidates that meet the limits", &Self::meeting);
    field("layouts", "", "layouts among them: the first candidates are the best load of each",
          &Self::layouts);
    field("most", "",
          "index of the candidate of most throughput; null: the first, or none meets the limits",
          &Self::most);
    field("fewest", "",
          "with rate or clients: index of the candidate of the fewest GPUs; null: the first",
          &Self::fewest);
    field("simulated", "", "to their end", &Self::simulated);
    field("pruned", "", "simulated until they were sure to miss a limit; with --full-search none",
          &Self::pruned);
    field("fitting", "", "candidates that fit", &Self::fitting);
    field("candidates", "",
          "those that meet the limits, the best first; those that miss them, the nearest first; "
          "the others",
          &Self::rows);
    field("front", "",
          "indices of the Pareto front of the candidates that meet the limits (of all that were "
          "simulated, if none does), by rising tokens/s of a user",
          &Self::front);
    field("alternatives", "", "the best candidates with another value of an option than the first",
          &Self::alternatives);
    field("impossible", "", "degrees that the model does not allow",
          [](const Self& x) { return impossible_degrees(x.impossible); });
    field("failures", "", "forecasts of layouts that a defect of Tilecast ended",
          [](const Self& x) { return impossible_degrees(x.failures); });
    field("options", "",
          "options that all candidates share: values by the names of the command-line options "
          "(with _ for -), in their units; options without a value are omitted",
          [](const Self& x) { return option_values(x.used); });
  }
};

struct ServingHardwareRow {
  std::string gpu;
  int64_t device_bytes = 0;
  std::optional<double> price_per_gpu_hour;
  std::optional<GpuPrice> gpu_price;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServingHardwareRow;
    field.is("ServingHardware", "One kind of GPU.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("device_bytes", "bytes", "what programs see of its memory", &Self::device_bytes);
    field("price_per_gpu_hour", "", "null: not given", &Self::price_per_gpu_hour);
    field.if_set("gpu_price", "", "the row of that price, where prices are by GPU",
                 &Self::gpu_price);
  }
};

struct ServingCandidateRow : ServingCandidate {
  std::string gpu;
  bool pareto = false;
  std::optional<double> price_per_hour, cost_of_million_tokens;
  std::optional<bool> limits_certain;

  /// `value` of a simulated candidate; else nullptr.
  template <typename T>
  const T* if_simulated(const T& value) const {
    return simulated ? &value : nullptr;
  }
  /// An interval of a candidate that has them; else nullopt.
  std::optional<Interval> interval(Interval ServingIntervals::* of) const {
    return simulated && intervals ? std::optional((*intervals).*of) : std::nullopt;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServingCandidateRow;
    field.is("ServingCandidate",
             "A layout under a load of `concurrency` clients for each replica.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("tp", "", "tensor-parallel ranks", &Self::tp);
    field("pp", "", "pipeline stages", &Self::pp);
    field("dp", "", "data-parallel ranks of attention", &Self::dp);
    field("ep", "", "expert-parallel ranks", &Self::ep);
    field("all2all_backend", "", "how tokens reach the ranks with their experts", &Self::all2all);
    field("prefill_workers", "",
          "servers of the same layout that compute prompts only; 0: replicas do so themselves",
          &Self::prefill_workers);
    field("replicas", "",
          "as many as the GPUs hold, GPUs that are left over are idle; with rate or clients: the "
          "fewest that keep the limits",
          &Self::replicas);
    field("gpus", "", "of all replicas and prefill workers",
          [](const Self& x) { return x.ServingCandidate::gpus(); });
    field("dtype", "", "empty: the checkpoint's own", &Self::dtype);
    field("kv_dtype", "", "empty: that of the model", &Self::kv_dtype);
    field("max_model_len", "tokens",
          "the longest request, where the server does not start with the model's longest sequence",
          &Self::max_model_len);
    field("concurrency", "", "clients of each replica; 0: requests come at the rate",
          &Self::concurrency);
    field.if_set("requests", "", "that were simulated, where they are more than forecast's default",
                 [](const Self& x) { return x.requests > 0 ? &x.requests : nullptr; });
    field("fits", "", "whether the longest request does", &Self::fits);
    field("peak_bytes", "bytes", "of one rank", &Self::peak_bytes);
    field("margin_bytes", "bytes", "below 0: it does not fit", &Self::margin_bytes);
    field("simulated", "",
          "false: it does not fit, or less load misses a limit already or writes as much (within 1 "
          "%), or it is pruned",
          &Self::simulated);
    field("pruned", "",
          "its simulation ended as soon as it was sure to miss a limit that less load keeps",
          &Self::pruned);
    field.if_set("keeps_up", "", "the queue does not grow without bound",
                 [](const Self& x) { return x.if_simulated(x.keeps_up); });
    field("meets_limits", "", "simulated, and within the limits, if there are any", &Self::meets);
    field("ties", "",
          "the best load of a layout whose throughput is less than 5 % below the most on the same "
          "GPUs: which writes more is not certain",
          &Self::ties);
    field("pareto", "",
          "no other is better both for a user and for a GPU, of those that meet the limits if any "
          "does",
          &Self::pareto);
    field.if_set("ttft_s", "s", "at the percentile, of the steady part, as the next",
                 [](const Self& x) { return x.if_simulated(x.ttft_s); });
    field.if_set("tpot_s", "s", "time per output token",
                 [](const Self& x) { return x.if_simulated(x.tpot_s); });
    field.if_set("mean_ttft_s", "s", "mean time to first token",
                 [](const Self& x) { return x.if_simulated(x.mean_ttft_s); });
    field.if_set("mean_tpot_s", "s", "mean time per output token",
                 [](const Self& x) { return x.if_simulated(x.mean_tpot_s); });
    field.if_set("tokens_per_s", "1/s", "written by all replicas",
                 [](const Self& x) { return x.if_simulated(x.tokens_per_s); });
    field.if_set("requests_per_s", "1/s", "of all replicas",
                 [](const Self& x) { return x.if_simulated(x.requests_per_s); });
    field.if_set("user_tokens_per_s", "1/s", "1 / mean_tpot_s",
                 [](const Self& x) { return x.if_simulated(x.user_tokens_per_s); });
    field.if_set("gpu_tokens_per_s", "1/s", "tokens_per_s over all GPUs, idle ones too",
                 [](const Self& x) { return x.if_simulated(x.gpu_tokens_per_s); });
    field.if_set("price_per_hour", "", "of all GPUs, idle ones too, in the unit of the price",
                 &Self::price_per_hour);
    field.if_set("cost_of_million_tokens", "", "in the unit of the price",
                 &Self::cost_of_million_tokens);
    field.if_set("power_w", "W",
                 "of one GPU; as the next, of the best row of each kind of GPU, or with the "
                 "objective energy of all rows that meet the limits",
                 &Self::power_w);
    field.if_set("energy_per_token_j", "J", "of an output token, of all GPUs' boards",
                 &Self::energy_per_token_j);
    field.bounds({"ttft_low_s", "ttft_high_s"}, "s",
                 "80 % interval, as the next; only of the rows that tables list: the first ten, "
                 "the front, the alternatives, the best of each kind of GPU",
                 [](const Self& x) { return x.interval(&ServingIntervals::ttft); });
    field.bounds({"tpot_low_s", "tpot_high_s"}, "s", "80 % interval",
                 [](const Self& x) { return x.interval(&ServingIntervals::tpot); });
    field.bounds({"gpu_tokens_low_per_s", "gpu_tokens_high_per_s"}, "1/s", "80 % interval",
                 [](const Self& x) { return x.interval(&ServingIntervals::gpu_tokens_per_s); });
    field.if_set("extrapolated", "",
                 "part of the time comes from no measurement of the GPU's class or links",
                 [](const Self& x) {
                   return x.simulated && x.intervals ? &x.intervals->extrapolated : nullptr;
                 });
    field.if_set(
        "limits_certain", "",
        "with limits: the intervals cross none of them, or one is missed by all of its interval",
        &Self::limits_certain);
  }
};

/// Throws Error for a model or options that cannot be forecast.
ServingPlan plan_serving(const Forecaster& forecaster, const ModelRef& model,
                         const ServingQuery& query);

/// The request that `forecast_generation` needs for a candidate.
Request request_of(const ServingPlan& plan, const ServingCandidate& candidate);

struct TuneOptions {
  std::string solver;  ///< only this one; "": all that take the problem
  int64_t top = 5;     ///< solvers, and parameter sets of each, that the result holds
  int64_t beam = 20;   ///< prefixes that the search of parameters keeps
};

/// One set of tuning parameters of a solver.
struct ParameterSet {
  std::string text;
  std::vector<std::pair<std::string, int64_t>> tokens;
  double log_probability = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ParameterSet;
    field.is("ParameterSet", "One set of tuning parameters of a solver.");
    field("text", "", "as MIOpen's databases write it", &Self::text);
    field("tokens", "", "the parameters by name", &Self::tokens);
    field("log_probability", "", "natural, among the legal sets", &Self::log_probability);
  }
};

/// One solver of a problem.
struct SolverForecast {
  std::string name;
  std::string algorithm;
  Interval latency_s;
  double listed_probability = 0;
  double ranked_s = 0;
  std::vector<ParameterSet> parameters;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SolverForecast;
    field.is("Solver", "One solver of a convolution.");
    field("name", "", "MIOpen's", &Self::name);
    field("algorithm", "", "GEMM, Direct, Winograd, ImplicitGEMM or FFT", &Self::algorithm);
    field.interval({"latency_s", "low_s", "high_s"}, "s", "time of the convolution",
                   &Self::latency_s);
    field("listed_probability", "", "that a search lists it among the fastest",
          &Self::listed_probability);
    field("ranked_s", "s",
          "by what solvers are sorted: the time, longer where a search is less likely to list the "
          "solver",
          &Self::ranked_s);
    field("parameters", "",
          "legal sets of tuning parameters, the most likely first; empty without a model of them",
          &Self::parameters);
  }
};

/// The solvers to run for one convolution.
struct TuneForecast {
  std::string problem;
  std::string name;
  std::string key;
  std::string gpu;
  std::vector<SolverForecast> solvers;
  SolverForecast fallback;
  Interval gain_ratio = {1, 1, 1};
  bool extrapolated = false;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TuneForecast;
    field.is("TuneProblem", "What to run for one convolution.");
    field("problem", "", "as 'tilecast tune' takes it", &Self::problem);
    field.if_set("name", "", "of the first node of a model that has it; only for models",
                 [](const Self& x) { return x.name.empty() ? nullptr : &x.name; });
    field("key", "", "in MIOpen's databases", &Self::key);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("solvers", "", "the best first", &Self::solvers);
    field("fallback", "",
          "what MIOpen takes where it has neither database nor search, by an assumed order of "
          "solvers; null: nothing",
          [](const Self& x) { return x.fallback.name.empty() ? nullptr : &x.fallback; });
    field.interval({"gain_ratio", "gain_low_ratio", "gain_high_ratio"}, "",
                   "time of the fallback over that of the best; 1 without a fallback",
                   &Self::gain_ratio);
    field("extrapolated", "", "no GPU of the architecture was measured", &Self::extrapolated);
  }
};

/// The convolutions that were asked for.
struct TuneAnswer {
  std::vector<TuneForecast> forecasts;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("Tuning", "Solvers and parameters without a search.");
    field("problems", "", "the convolutions", &TuneAnswer::forecasts);
    field("warnings", "", "what no solver takes, and more", &TuneAnswer::warnings);
  }
};

/// One kernel of rocBLAS (Tensile).
struct ProductKernel {
  int64_t tile_m = 0, tile_n = 0;
  int64_t depth_u = 0;
  int64_t split = 1;
  std::string matrix_instruction;
  double probability = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ProductKernel;
    field.is("ProductKernel", "One kernel of rocBLAS (Tensile).");
    field("tile_m", "", "rows of C that a work-group computes", &Self::tile_m);
    field("tile_n", "", "its columns", &Self::tile_n);
    field("depth_u", "", "steps of the reduction in shared memory at once", &Self::depth_u);
    field("split", "", "work-groups that share one reduction", &Self::split);
    field("matrix_instruction", "",
          "rows, columns, depth and blocks, as 32x32x8x1; none: the vector unit",
          &Self::matrix_instruction);
    field("probability", "", "that it is the fastest", &Self::probability);
  }
};

/// A value of one part of a kernel.
struct ParameterValue {
  std::string value;
  double probability = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ParameterValue", "A value of one part of a kernel.");
    field("value", "", "the value", &ParameterValue::value);
    field("probability", "", "that the fastest kernel has it", &ParameterValue::probability);
  }
};

/// The kernels of one matrix product. Nothing is known of their times: the public tuned sizes name
/// one kernel each.
struct ProductForecast {
  std::string problem;
  std::string gpu;
  std::string measured_gpu;
  bool extrapolated = false;
  std::vector<ProductKernel> kernels;
  std::vector<std::pair<std::string, std::vector<ParameterValue>>> parts;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ProductForecast;
    field.is("Product", "The kernels of one matrix product.");
    field("problem", "", "as 'tilecast tune' takes it", &Self::problem);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("measured_gpu", "", "an alias of the GPU whose tuned sizes were learned",
          &Self::measured_gpu);
    field("extrapolated", "", "that is another GPU", &Self::extrapolated);
    field("kernels", "", "the most probable first", &Self::kernels);
    field("parts", "", "probabilities of each part by itself", &Self::parts);
  }
};

/// The matrix product that was asked for.
struct ProductAnswer {
  ProductForecast forecast;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("ProductTuning", "Kernels of matrix products without a search.");
    field("products", "", "the matrix products",
          [](const ProductAnswer& x) { return std::vector{x.forecast}; });
    field.warnings(&ProductAnswer::warnings);
  }
};

/// Whether the text is a problem ("conv n=...", "gemm m=..." or a database key), not a model.
bool is_tune_problem(const std::string& text);

/// Whether it is a matrix product ("gemm m=...").
bool is_product_problem(const std::string& text);

/// Throws Error{kInput} for a problem that cannot be read.
void check_tune_problem(const std::string& text);

/// Throws Error: a problem that cannot be read or that no solver takes, a GPU that is not AMD's, an
/// unknown solver.
TuneForecast tune_problem(const std::string& problem, const GpuRef& gpu,
                          const TuneOptions& options = {});

/// Options that count: `top` and `beam`. Throws Error: a problem that cannot be read, a GPU that is
/// not AMD's.
ProductForecast tune_product(const std::string& problem, const GpuRef& gpu,
                             const TuneOptions& options = {});

/// All convolutions of a model in 2-D, each distinct one once; with Mode::kTraining also both
/// gradients. Fields of the request that count: mode, batch, seq, dims and dtype. Throws Error as
/// above; a convolution that no solver takes is named in `warnings` and left out.
std::vector<TuneForecast> tune_model(const ModelRef& model, const GpuRef& gpu,
                                     const Request& request, const TuneOptions& options,
                                     std::vector<std::string>& warnings);

/// The convolutions of a file with command lines of MIOpenDriver.
std::vector<TuneForecast> tune_log(const std::string& path, const GpuRef& gpu,
                                   const TuneOptions& options, std::vector<std::string>& warnings);

/// The text form of MIOpen's user databases: solvers with their times, and tuning parameters.
std::string find_database(const std::vector<TuneForecast>& forecasts);

std::string perf_database(const std::vector<TuneForecast>& forecasts);

}  // namespace tilecast
