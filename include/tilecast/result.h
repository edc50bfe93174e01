#pragma once

// What is answered: forecasts with their memory, kernels, ranks, steps and warnings.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tilecast/choices.h"
#include "tilecast/error.h"
#include "tilecast/request.h"

namespace tilecast {

/// What a warning is about. docs/reference/warnings.md lists when each code is given, its subject
/// and its facts; `warning_code_name` gives its name in JSON.
enum class WarningCode : uint8_t {
  kModelFile,
  kCheckpoint,
  kDeviceFile,
  kDtypeReplaced,
  kQuantizationIgnored,
  kSchemeReplaced,
  kCacheDtypeReplaced,
  kExtrapolated,
  kUnmeasuredOperators,
  kNoModel,
  kHostWait,
  kUnmeasuredLinks,
  kOneMeasuredServer,
  kSlowerExperts,
  kSlowerPrecision,
  kDoesNotFit,
  kTightMemory,
  kLengthsIgnored,
  kIdleClients,
  kOverloaded,
  kDoesNotStart,
  kNoEffect,
};

/// A detail of a warning. The name ends in the unit.
struct WarningFact {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

/// Something that readers of the forecast should know. `warning_text` turns it into a
/// sentence.
struct Warning {
  WarningCode code = WarningCode::kModelFile;
  std::string subject;
  double share = 0;  ///< a ratio; 0 if the code does not use it
  std::vector<WarningFact> facts;
};

/// The sentence that a program shows for a warning.
std::string warning_text(const Warning& warning);

std::vector<std::string> warning_texts(const std::vector<Warning>& warnings);

/// The name of a code in JSON: "extrapolated", "does_not_fit", …
std::string_view warning_code_name(WarningCode code);

std::vector<std::string> warning_code_names(const std::vector<Warning>& warnings);

struct Forecast;
struct GenerationForecast;
/// What matters to the numbers of a forecast, given or by default, each in a few words: "bf16
/// (torch_dtype)", "attention flash (PyTorch's SDPA)". Tables show them in a line.
std::vector<std::string> assumptions(const Forecast& forecast);
std::vector<std::string> assumptions(const GenerationForecast& forecast);

/// A command that starts software as a forecast or the first candidate of a plan has it; the model
/// and its data are left to the user.
struct LaunchLine {
  std::string software, command;
  std::string without;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("LaunchLine", "A command that starts software as the forecast or plan has it.");
    field("software", "", "megatron, torchtitan or a server", &LaunchLine::software);
    field("command", "", "without the model's own options", &LaunchLine::command);
    field("without", "", "options that no flag of the software sets", &LaunchLine::without);
  }
};

/// Empty: it is no training of a model that generates text, or no software is known that runs it.
std::vector<LaunchLine> launch_lines(const Forecast& forecast);
std::vector<LaunchLine> launch_lines(const GenerationForecast& forecast);

/// A value with its 80 % interval, in the unit that the member's name ends in; times without one
/// are in seconds. Where a number is expected, it is its value.
struct Interval {
  double value = 0, low = 0, high = 0;

  operator double() const { return value; }
  bool operator==(const Interval&) const = default;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Interval", "A time with its 80 % interval.");
    field.interval({"seconds", "low_s", "high_s"}, "s", "forecast",
                   [](const Interval& x) -> const Interval& { return x; });
  }
};

/// Bytes by what they are for.
struct MemoryParts {
  int64_t weights_bytes = 0;
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t activations_bytes = 0;
  int64_t temporaries_bytes = 0;
  int64_t loss_bytes = 0;
  int64_t inputs_bytes = 0;
  int64_t cache_bytes = 0;

  int64_t sum() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes +
           temporaries_bytes + loss_bytes + inputs_bytes + cache_bytes;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryParts;
    field.is("MemoryParts", "Bytes by what they are for.");
    field("weights_bytes", "bytes", "parameters and buffers", &Self::weights_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &Self::optimizer_bytes);
    field("inputs_bytes", "bytes", "inputs of the model", &Self::inputs_bytes);
    field("cache_bytes", "bytes", "keys, values and states of text generation", &Self::cache_bytes);
    field("gradients_bytes", "bytes", "gradients of the parameters", &Self::gradients_bytes);
    field("activations_bytes", "bytes",
          "tensors that are kept from the forward pass for the backward pass",
          &Self::activations_bytes);
    field("temporaries_bytes", "bytes", "other tensors that nodes compute",
          &Self::temporaries_bytes);
    field("loss_bytes", "bytes", "logits and other outputs, the loss and its gradient",
          &Self::loss_bytes);
  }
};

/// The parts with their names, in the order of tables and pictures: the largest part of training
/// jobs that stays in memory first.
struct NamedPart {
  std::string_view name;
  int64_t MemoryParts::* bytes;
};

inline constexpr std::array kMemoryParts = {
    NamedPart{"weights", &MemoryParts::weights_bytes},
    NamedPart{"optimizer", &MemoryParts::optimizer_bytes},
    NamedPart{"inputs", &MemoryParts::inputs_bytes},
    NamedPart{"cache", &MemoryParts::cache_bytes},
    NamedPart{"gradients", &MemoryParts::gradients_bytes},
    NamedPart{"activations", &MemoryParts::activations_bytes},
    NamedPart{"temporaries", &MemoryParts::temporaries_bytes},
    NamedPart{"loss", &MemoryParts::loss_bytes}};

/// An option with another value.
struct OptionChange {
  std::string option, value;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("OptionChange", "An option with another value.");
    field("option", "", "name of the option", &OptionChange::option);
    field("value", "", "its value", &OptionChange::value);
  }
};

/// A change of one option, or of several together, and the memory with it.
struct MemoryRemedy {
  std::string option, value;
  std::vector<OptionChange> also;
  int64_t peak_bytes = 0;
  bool fits = false;
  std::optional<int64_t> largest_batch;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryRemedy;
    field.is("MemoryRemedy",
             "A change of one option, or of several together, and the memory with it.");
    field("option", "", "name of the option", &Self::option);
    field("value", "", "its value", &Self::value);
    field("also", "", "further options that are changed together with the first", &Self::also);
    field("peak_bytes", "bytes", "memory with the same batch", &Self::peak_bytes);
    field("fits", "", "whether it fits", &Self::fits);
    field("largest_batch", "", "the largest batch that fits", &Self::largest_batch);
  }
};

/// Memory while one node runs.
struct MemoryPoint {
  std::string_view phase;
  std::string segment;
  int64_t repetition = 0;
  std::string node;
  MemoryParts parts;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryPoint;
    field.is("MemoryPoint", "Memory while one operator runs.");
    field("phase", "", "of the pass", &Self::phase);
    field("segment", "", "part of the model, e.g. its layers", &Self::segment);
    field("repetition", "", "of the segment", &Self::repetition);
    field("node", "", "the operator that runs", &Self::node);
    field("bytes", "bytes", "the sum of the parts", [](const Self& x) { return x.parts.sum(); });
    field("parts", "", "what is in memory", &Self::parts);
  }
};

/// One repetition of a segment, at its highest node.
struct MemoryRepetition {
  MemoryPoint highest;
  int64_t bytes_after = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryRepetition", "One repetition of a segment, at its highest operator.");
    field.flat(&MemoryRepetition::highest);
    field("bytes_after", "bytes", "at the last operator of the repetition",
          &MemoryRepetition::bytes_after);
  }
};

/// Tensors of one name that are in memory at the peak, over all repetitions.
struct MemoryHolder {
  std::string name;
  std::string_view part;
  int64_t bytes = 0;
  int64_t count = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryHolder;
    field.is("MemoryHolder", "Tensors of one name at the peak.");
    field("name", "", "of the tensors", &Self::name);
    field("part", "", "what they are for", &Self::part);
    field("bytes", "bytes", "of all together", &Self::bytes);
    field("count", "", "how many", &Self::count);
  }
};

struct MemoryTimeline {
  std::string model, gpu, gpu_name, mode, dtype;
  int64_t batch = 0, seq = 0;
  std::vector<MemoryPoint> points;  ///< a point for each node, in order of execution
  size_t peak_point = 0;            ///< index of the highest one
  std::vector<MemoryHolder> holders;
  int64_t workspace_bytes = 0;
  int64_t framework_bytes = 0;
  int64_t device_bytes = 0;
  int64_t allocated_bytes = 0;
  int64_t reserved_low_bytes = 0, reserved_high_bytes = 0;
  bool fits = true;

  const MemoryPoint* peak() const { return points.empty() ? nullptr : &points[peak_point]; }
  /// Each repetition of each segment.
  std::vector<MemoryRepetition> repetitions() const;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = MemoryTimeline;
    field.is_document("MemoryTimeline", "Memory over one pass or training step.");
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("mode", "", "of the pass", &Self::mode, {"inference", "training"});
    field("batch", "", "sequences", &Self::batch);
    field("seq", "tokens", "length of a sequence", &Self::seq);
    field("dtype", "", "the dtype that was used", &Self::dtype);
    field("peak", "", "the highest point", &Self::peak);
    field("holders", "",
          "tensors in memory at the peak, those of one name together, the largest first",
          &Self::holders);
    field("timeline", "", "each repetition of each segment, at its highest operator",
          &Self::repetitions);
    field("allocated_bytes", "bytes",
          "torch.cuda.max_memory_allocated: blocks in use, with workspaces",
          &Self::allocated_bytes);
    field("reserved_low_bytes", "bytes",
          "torch.cuda.max_memory_reserved, at least: the segments that hold the peak",
          &Self::reserved_low_bytes);
    field("reserved_high_bytes", "bytes",
          "the same at most: what a simulated caching allocator takes over two steps, without ever "
          "giving back",
          &Self::reserved_high_bytes);
    field("workspace_bytes", "bytes", "workspace of cuBLAS", &Self::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework", &Self::framework_bytes);
    field("device_bytes", "bytes", "what programs see of the device's memory", &Self::device_bytes);
    field("fits", "", "the peak with workspace and framework", &Self::fits);
  }
};

/// The points of one repetition of a segment in one phase: indices into MemoryTimeline::points.
struct MemoryBlock {
  size_t first = 0, last = 0;
  size_t highest = 0;  ///< the point with the most bytes
};

std::vector<MemoryBlock> memory_blocks(const MemoryTimeline& timeline);

/// Memory of one rank. src/scenario/memory_total.h decides what may be used and what fits.
struct Memory {
  int64_t peak_bytes = 0;
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0;
  int64_t activations_bytes = 0, cache_bytes = 0;
  int64_t workspace_bytes = 0, framework_bytes = 0;
  int64_t device_bytes = 0, usable_bytes = 0;
  bool fits = true;
  std::optional<int64_t> largest_batch;

  int64_t overhead_bytes() const { return workspace_bytes + framework_bytes; }
  int64_t margin_bytes() const { return usable_bytes - peak_bytes; }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Memory;
    field.is("Memory", "Memory of one rank.");
    field("peak_bytes", "bytes",
          "the largest sum over time, with workspace and framework; the parts need not be at their "
          "largest then",
          &Self::peak_bytes);
    field("weights_bytes", "bytes", "parameters and buffers", &Self::weights_bytes);
    field("gradients_bytes", "bytes", "of all parameters, without buckets for their reduction",
          &Self::gradients_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &Self::optimizer_bytes);
    field("activations_bytes", "bytes",
          "the largest sum of tensors that the forward and the backward pass compute, and inputs; "
          "over several ranks of all micro-batches in flight; of text generation, of a step",
          &Self::activations_bytes);
    field("cache_bytes", "bytes",
          "keys, values and states of text generation; a server reserves all that it may use",
          &Self::cache_bytes);
    field("workspace_bytes", "bytes", "workspaces of libraries, and captured CUDA graphs",
          &Self::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework", &Self::framework_bytes);
    field("overhead_bytes", "bytes", "workspace plus framework", &Self::overhead_bytes);
    field("device_bytes", "bytes", "what programs see of the device's memory", &Self::device_bytes);
    field("usable_bytes", "bytes",
          "all of it; of a server at most the budget of its cache's rule and what lies beside",
          &Self::usable_bytes);
    field("margin_bytes", "bytes", "usable memory less peak; below 0 if it does not fit",
          &Self::margin_bytes);
    field(
        "fits", "",
        "whether the peak does, without fragmentation; of a server, with the longest request, and "
        "that prefill and encode workers fit",
        &Self::fits);
    field("largest_batch", "",
          "the largest batch that fits; of a server, sequences of full length; null: none, or not "
          "computed",
          &Self::largest_batch);
  }
};

/// Memory of a pass or training step.
struct PassMemory : Memory {
  MemoryParts at_peak;
  std::string peak_phase, peak_node;
  int64_t gradient_buckets_bytes = 0, optimizer_temporaries_bytes = 0;
  int64_t host_optimizer_bytes = 0;
  std::string stack;
  /// Computed by add_remedies (src/scenario/remedies.h), as `remedies` and the largest batch of
  /// what fits.
  std::optional<int64_t> reserved_bytes;
  std::vector<MemoryRemedy> remedies;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PassMemory;
    field.is("PassMemory", "Memory of one rank in a pass or training step.");
    field.flat([](const Self& x) -> const Memory& { return x; }, {"cache_bytes", "overhead_bytes"});
    field("at_peak", "", "what the peak holds, beside workspace and framework", &Self::at_peak);
    field("peak_phase", "", "phase of the peak: forward, backward or optimizer", &Self::peak_phase);
    field("peak_node", "", "the operator that runs at the peak", &Self::peak_node);
    field("gradient_buckets_bytes", "bytes",
          "DistributedDataParallel's buckets, copies of the gradients for their reduction: "
          "at_peak.gradients_bytes contains them",
          &Self::gradient_buckets_bytes);
    field("optimizer_temporaries_bytes", "bytes",
          "the largest sum of tensors that the optimizer step computes beside its states",
          &Self::optimizer_temporaries_bytes);
    field("host_optimizer_bytes", "bytes",
          "with optimizer-offload, what the host keeps of this rank: states, fp32 parameters and "
          "gradients",
          &Self::host_optimizer_bytes);
    field("stack", "", "the software that workspace and framework are of", &Self::stack);
    field("reserved_bytes", "bytes",
          "what the caching allocator takes at most, with workspace and framework, if the peak "
          "hardly fits",
          &Self::reserved_bytes);
    field("remedies", "",
          "if it does not fit: the memory after changing one option, the smallest peak first; then "
          "of several together, if none alone is enough",
          &Self::remedies);
  }
};

/// One rank of one pipeline stage. Times are sums over the whole step, in seconds: compute, exposed
/// communication and bubble sum up to the latency. Compute: all passes without the collectives
/// inside, copies of gradients, what slows kernels down, and the optimizer.
struct StageForecast {
  int64_t stage = 0;
  int64_t layers = 0;
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  double gradient_copies_s = 0, slowed_s = 0;
  double compute_s = 0;
  double communication_s = 0;
  double exposed_communication_s = 0;
  double bubble_s = 0;
  Memory memory;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = StageForecast;
    field.is("Stage",
             "One rank of one pipeline stage. Compute, exposed communication and bubble sum up to "
             "the latency.");
    field("stage", "", "number of the stage", &Self::stage);
    field("layers", "", "layers of the model on the stage", &Self::layers);
    field("forward_s", "s", "of one micro-batch, with the collectives inside", &Self::forward_s);
    field("backward_s", "s", "of one micro-batch, with the collectives inside", &Self::backward_s);
    field("optimizer_s", "s", "the optimizer step", &Self::optimizer_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back",
          &Self::gradient_copies_s);
    field("slowed_s", "s", "what reductions that occupy multiprocessors add to the backward pass",
          &Self::slowed_s);
    field("compute_s", "s",
          "all passes without the collectives inside, copies of gradients, what slows kernels "
          "down, and the optimizer",
          &Self::compute_s);
    field("communication_s", "s", "all collectives and messages, hidden or not",
          &Self::communication_s);
    field("exposed_communication_s", "s", "communication while nothing is computed",
          &Self::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages", &Self::bubble_s);
    field.pick(&Self::memory, {"weights_bytes", "gradients_bytes", "optimizer_bytes",
                               "activations_bytes", "peak_bytes"});
  }
};

/// The embedding tables of one rank of a recommendation model.
struct RankTables {
  int64_t rank = 0;
  int64_t parts = 0;
  int64_t bytes = 0;
  double lookups = 0;
  double forward_s = 0;
  double backward_s = 0;
  double sent_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = RankTables;
    field.is("RankTables", "The embedding tables of one rank of a recommendation model.");
    field("rank", "", "number of the rank", &Self::rank);
    field("parts", "", "tables and parts of tables", &Self::parts);
    field("bytes", "bytes", "of their rows and optimizer states", &Self::bytes);
    field("lookups", "", "of a batch", &Self::lookups);
    field("forward_s", "s", "time of the lookups", &Self::forward_s);
    field("backward_s", "s", "with the sparse optimizer", &Self::backward_s);
    field("sent_bytes", "bytes", "sums that the rank sends, those to itself included",
          &Self::sent_bytes);
  }
};

/// What a rank of a recommendation model computes or exchanges in a step.
struct StepPart {
  std::string name;
  std::string runs_on;
  double seconds = 0;
  double start_s = 0, end_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = StepPart;
    field.is("StepPart", "What a rank of a recommendation model computes or exchanges in a step.");
    field("name", "", "lookups, ids, …", &Self::name);
    field("runs_on", "", "what is busy; parts on the GPU and on its links overlap", &Self::runs_on,
          {"gpu", "links"});
    field("seconds", "s", "how long it takes, of the rank where it takes longest", &Self::seconds);
    field("start_s", "s", "when the first rank starts, from the start of the step", &Self::start_s);
    field("end_s", "s", "when the last rank is done", &Self::end_s);
  }
};

/// The parts of the interval of a step on several ranks.
struct IntervalParts {
  double model_low_s = 0, model_high_s = 0;
  double machine_spread_ratio = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = IntervalParts;
    field.is("IntervalParts", "What the interval of a step joins.");
    field("model_low_s", "s",
          "lower end of the interval of a mean run: how wrong the times of kernels, exchanges and "
          "software may be",
          &Self::model_low_s);
    field("model_high_s", "s", "its upper end", &Self::model_high_s);
    field("machine_spread_ratio", "1",
          "80 % of runs of one step, on other nodes of the kind and other days, lie within this "
          "share of their mean",
          &Self::machine_spread_ratio);
  }
};

struct ParallelForecast {
  std::string cluster;
  std::string cluster_name;
  int64_t nodes = 1;
  int64_t ranks = 1;
  int64_t micro_batch_size = 1, microbatches = 1;
  int64_t virtual_stages = 1;
  int64_t slowest_stage = 0;
  double communication_s = 0, exposed_communication_s = 0, bubble_s = 0;
  double gradient_copies_s = 0, slowed_s = 0;
  int64_t simulated_ranks = 1;
  std::optional<int64_t> padded_vocab_size;
  int64_t vocab_size = 0;                       ///< without padding
  std::optional<IntervalParts> interval_parts;  ///< of a training step on several ranks
  std::vector<StageForecast> stages;
  std::vector<RankTables> rank_tables;
  std::vector<StepPart> step_parts;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ParallelForecast;
    field.is("Parallel", "A step over several ranks or micro-batches.");
    field("cluster", "", "id of the cluster", &Self::cluster);
    field("nodes", "", "nodes of the cluster that take part", &Self::nodes);
    field("ranks", "", "GPUs that take part", &Self::ranks);
    field("micro_batch_size", "", "sequences of a micro-batch", &Self::micro_batch_size);
    field("microbatches", "", "of each data-parallel rank", &Self::microbatches);
    field("virtual_stages", "", "parts of the model on each pipeline stage", &Self::virtual_stages);
    field("slowest_stage", "",
          "the stage that computes longest: the next five are its times, as are forward_s, "
          "backward_s and optimizer_s",
          &Self::slowest_stage);
    field("communication_s", "s", "collectives and messages, hidden or not, of the slowest stage",
          &Self::communication_s);
    field("exposed_communication_s", "s",
          "communication while nothing is computed, of the slowest stage",
          &Self::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages, of the slowest stage", &Self::bubble_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back, part of the compute "
          "time of the slowest stage",
          &Self::gradient_copies_s);
    field("slowed_s", "s",
          "what reductions that occupy multiprocessors add to the backward pass, part of the "
          "compute time of the slowest stage",
          &Self::slowed_s);
    field("simulated_ranks", "",
          "ranks that were simulated; the others do the same at the same time",
          &Self::simulated_ranks);
    field.if_set(
        "padded_vocab_size", "tokens",
        "what tensor-parallel ranks divide; left out: the vocabulary as it is",
        [](const Self& p) { return p.padded_vocab_size ? &*p.padded_vocab_size : nullptr; });
    field.if_set(
        "interval_parts", "",
        "what the interval of the step joins, of training on several ranks (recommendation models "
        "aside); else there is no such key",
        [](const Self& p) { return p.interval_parts ? &*p.interval_parts : nullptr; });
    field("stages", "", "one rank of each pipeline stage", &Self::stages);
    field.if_set(
        "rank_tables", "",
        "the embedding tables of each rank of a recommendation model; other models have no such "
        "key",
        [](const Self& p) { return p.rank_tables.empty() ? nullptr : &p.rank_tables; });
    field.if_set(
        "step_parts", "",
        "when the parts of a step of a recommendation model run; other models have no such key",
        [](const Self& p) { return p.step_parts.empty() ? nullptr : &p.step_parts; });
  }
};

/// What a GPU draws from a time on.
struct PowerPoint {
  double start_s = 0, power_w = 0;
  std::string what;  ///< "forward", "decode of 32 sequences"; "": it waits

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PowerPoint;
    field.is("PowerPoint", "What a GPU draws from a time on.");
    field("start_s", "s", "until the next point, or the end", &Self::start_s);
    field("power_w", "W", "mean of that time", &Self::power_w);
    field("what", "", "the GPU computes; empty: it waits", &Self::what);
  }
};

/// The points of one rank.
struct RankPower {
  int64_t rank = 0;
  std::vector<PowerPoint> points;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = RankPower;
    field.is("RankPower", "Power of one rank's GPU over time.");
    field("rank", "", "number of the rank", &Self::rank);
    field("points", "", "in the order of time", &Self::points);
  }
};

/// Power of GPUs over a pass, a training step, or a minute of a server under load.
struct PowerTimeline {
  std::string model, gpu, gpu_name;
  std::string work;  ///< "forward pass", "training step", "server under load"
  double seconds = 0;
  double limit_w = 0, idle_w = 0;
  std::vector<RankPower> ranks;

  /// Mean over the time and the ranks.
  double mean_w() const {
    double joules = 0;
    for (const RankPower& rank : ranks) {
      for (size_t i = 0; i < rank.points.size(); ++i) {
        const double end_s = i + 1 < rank.points.size() ? rank.points[i + 1].start_s : seconds;
        joules += (end_s - rank.points[i].start_s) * rank.points[i].power_w;
      }
    }
    return ranks.empty() || seconds <= 0 ? 0 : joules / seconds / static_cast<double>(ranks.size());
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PowerTimeline;
    field.is_document("PowerTimeline",
                      "Power of GPUs over a pass, a training step, or a minute of a server under "
                      "load.");
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("work", "", "what is computed", &Self::work,
          {"forward pass", "training step", "server under load"});
    field("seconds", "s", "how long", &Self::seconds);
    field("mean_w", "W", "over that time and the ranks", [](const Self& x) { return x.mean_w(); });
    field("idle_w", "W", "of a GPU that holds its clock and computes nothing", &Self::idle_w);
    field("limit_w", "W", "the limit of the board, or the option `power_cap_w`", &Self::limit_w);
    field("ranks", "", "one rank of each kind; of servers the first of the first replica",
          &Self::ranks);
  }
};

/// One operation of a training step over several ranks.
struct StepOperation {
  std::string name;
  std::string stream;  ///< of the rank, which runs its operations one after the other
  bool communication = false;
  int64_t rank = 0;
  double start_s = 0, duration_s = 0;
  bool critical = false;  ///< it is on the critical path
  /// Mean power of its rank's GPU while it computes, and while nothing does; nullopt: not forecast,
  /// or it is communication.
  std::optional<double> power_w, idle_w;
};

/// A size or setting of an operator's kernel: {"m", 4096}, {"kv_dtype", "fp8"}. `OpEntry::sizes`
/// lists the sizes of each operator.
struct GivenSize {
  std::string name;
  std::variant<int64_t, std::string> value;
};

/// Settings for the forecast of a single kernel.
struct KernelOptions {
  std::string predictor = "learned";  ///< learned or roofline
  /// The software whose kernel runs: pytorch, vllm, sglang or trtllm, or a library that was
  /// measured alone: rocblas, pipeweave or aiter.
  std::string software = "pytorch";
  bool warm = false;  ///< the operands are already in L2, as when a benchmark replays the kernel
  std::string clocks = "boost";  ///< "boost", "base", "sustained" or a number of MHz
};

/// The sizes of a kernel with the names of its type: batch, m, n and k of a gemm.
struct NamedSizes {
  static constexpr size_t kMaxSizes = 11;  ///< the most sizes that a type has

  std::string_view type;  ///< "gemm", "convolution", "attention", "experts", "rows", "stream", …
  std::string_view text;  ///< how tables show the sizes: "{batch} x [{m}x{n}x{k}]"
  std::span<const std::string_view> names;
  std::array<int64_t, kMaxSizes> values{};  ///< in the order of the names

  bool operator==(const NamedSizes& other) const {
    return type == other.type && values == other.values;
  }
};

/// What the data sheet allows kernels that compute in one dtype: the roof of the roofline chart.
struct Roof {
  std::string_view dtype;
  double flops_per_s = 0;
  double bytes_per_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Roof;
    field.is("Roof", "What the data sheet allows kernels that compute in one dtype.");
    field("dtype", "", "that they compute in", &Self::dtype);
    field("flops_per_s", "FLOP/s", "of the faster unit, at the boost clock", &Self::flops_per_s);
    field("bytes_per_s", "bytes/s", "of the memory", &Self::bytes_per_s);
  }
};

/// A group of identical kernels, e.g. one per layer. Times are for one of them; `count` says how
/// many there are. `name` points into storage that the forecast and its copies share: do not read
/// it after the last of them is destroyed. The other strings are constants. So rows are cheap to
/// copy.
struct KernelForecast {
  std::string_view name;
  std::string_view op;
  std::string_view phase;
  std::string_view dtype;
  NamedSizes shape;
  int64_t count = 1;
  Interval latency_s;
  int64_t flops = 0;
  int64_t recomputed_flops = 0;  ///< of these, work of the forward pass that is done again
  int64_t bytes = 0;
  std::string_view limit;
  std::optional<std::pair<int64_t, int64_t>> tile;
  double waves = 0, sm_share = 0;
  double utilization_ratio = 0;
  std::string_view predictor;
  bool extrapolated = false;
  std::string_view extrapolated_feature;
  std::string_view computed;  ///< the dtype that it computes in: that of its roof
  /// Energy of one launch beside what the board draws all the time: of arithmetic at the voltage of
  /// the highest clock, and of bytes; the share of the highest clock at which it runs.
  double switched_j = 0, memory_j = 0, clock_share = 1;
  bool power_measured = false;  ///< of such a kernel, on a card of the class

  double total_s() const { return latency_s * static_cast<double>(count); }
  std::optional<double> flops_per_byte() const {
    if (bytes <= 0) return std::nullopt;
    return static_cast<double>(flops) / static_cast<double>(bytes);
  }
  std::optional<double> flops_per_s() const {
    if (latency_s <= 0) return std::nullopt;
    return static_cast<double>(flops) / latency_s;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = KernelForecast;
    field.is("Kernel", "A group of identical kernels. Times and work are those of one of them.");
    field("name", "", "name in the model, of the first of identical kernels", &Self::name);
    field("op", "", "operator of 'tilecast ops'", &Self::op);
    field("phase", "", "the part of the step that runs it", &Self::phase,
          {"forward", "backward", "optimizer", "vision", "prefill", "decode"});
    field("dtype", "",
          "dtype of the operands, with the dtype of keys and values or the quantization scheme of "
          "weights if it differs",
          &Self::dtype);
    field("shape", "", "sizes of the kernel, by the names of its type", &Self::shape);
    field("count", "", "number of identical kernels", &Self::count);
    field.interval({"latency_s", "low_s", "high_s"}, "s", "time of one kernel", &Self::latency_s);
    field("total_s", "s", "time of all of them", &Self::total_s);
    field("flops", "FLOP", "work of one kernel", &Self::flops);
    field("bytes", "bytes", "memory traffic of one kernel", &Self::bytes);
    field("flops_per_byte", "FLOP/byte", "arithmetic intensity; null: no memory traffic",
          &Self::flops_per_byte);
    field("flops_per_s", "FLOP/s", "work over the forecast; null: it takes no time",
          &Self::flops_per_s);
    field("limit", "", "what limits it", &Self::limit, {"compute", "memory", "latency", "network"});
    field("tile", "",
          "rows and columns of the output that a block computes by the law; not measured: a "
          "library may take others",
          &Self::tile);
    field("waves", "", "rounds of such blocks over the device", &Self::waves);
    field("sm_share", "", "mean share of the SMs that has a block in these rounds; 0: no blocks",
          &Self::sm_share);
    field("utilization_ratio", "",
          "the shortest time that the data sheet allows, divided by the forecast",
          &Self::utilization_ratio);
    field("predictor", "", "name of the cost model", &Self::predictor);
    field("extrapolated", "", "outside the training range", &Self::extrapolated);
    field.if_set(
        "extrapolated_feature", "",
        "the feature that is furthest outside the training range, or what was not measured: model, "
        "dtype, scheme, software, architecture, combination, batch, backward, convolution, vendor "
        "or law (docs/explanation/laws.md); only if extrapolated",
        [](const Self& k) { return k.extrapolated ? &k.extrapolated_feature : nullptr; });
  }
};

/// Power and energy of the GPUs' boards, and what they cost. Servers and cooling stand apart.
struct PowerForecast {
  Interval power_w, energy_j;
  double idle_w = 0, limit_w = 0;
  double clock_hz = 0;
  bool held_back = false;
  double coverage_ratio = 0;
  std::optional<double> energy_per_token_j, tokens_per_kwh;
  std::optional<double> gpu_cost, energy_cost, carbon_g, cost_per_million_tokens;
  std::optional<GpuPrice> gpu_price;
  std::optional<double> server_energy_j, facility_energy_j, facility_energy_cost;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PowerForecast;
    field.is("Power",
             "Power and energy of the GPUs' boards, and what they cost; servers and cooling have "
             "fields of their own.");
    field.interval({"power_w", "power_low_w", "power_high_w"}, "W",
                   "of one GPU, the mean of its time; of a server under load, also while it waits",
                   &Self::power_w);
    field.interval(
        {"energy_j", "energy_low_j", "energy_high_j"}, "J",
        "of all GPUs: of one pass or step, of a batch of generated text, of a request of a "
        "server under load",
        &Self::energy_j);
    field("idle_w", "W", "of a GPU that holds its clock and computes nothing", &Self::idle_w);
    field("limit_w", "W", "the limit of the board, or the option `power_cap_w`", &Self::limit_w);
    field("clock_hz", "Hz", "of the multiprocessors; where power holds it back, the mean",
          &Self::clock_hz);
    field("held_back", "", "the limit holds the clock below the highest one", &Self::held_back);
    field("power_coverage", "",
          "share of the time in kernels whose power was measured on a card of the class, and in "
          "waits of such cards; the interval is wider where it is small",
          &Self::coverage_ratio);
    field("energy_per_token_j", "J", "null: the input is not tokens", &Self::energy_per_token_j);
    field("tokens_per_kwh", "1/kWh", "null: the input is not tokens", &Self::tokens_per_kwh);
    field("gpu_cost", "", "of energy_j's work at `price_per_gpu_hour`; null: no price was given",
          &Self::gpu_cost);
    field("energy_cost", "", "of energy_j at `price_per_kwh`; null: no price was given",
          &Self::energy_cost);
    field("carbon_g", "g", "of energy_j at `carbon_g_per_kwh`; null: not given", &Self::carbon_g);
    field("cost_per_million_tokens", "",
          "both costs, as far as prices were given; null: no price, or the input is not tokens",
          &Self::cost_per_million_tokens);
    field.if_set("gpu_price", "", "the row that gpu_cost follows from, where prices are by GPU",
                 &Self::gpu_price);
    field("server_energy_j", "J",
          "of the nodes beside their GPUs, by `server_w` of the cluster file, in the share of "
          "their GPUs that take part; null: the file does not state it",
          &Self::server_energy_j);
    field("facility_energy_j", "J",
          "of GPUs and servers with cooling and power supply, by `pue` of the cluster file; null: "
          "the file does not state it",
          &Self::facility_energy_j);
    field("facility_energy_cost", "",
          "of facility_energy_j at `price_per_kwh`, in place of energy_cost, which has the GPUs' "
          "boards only; null: no price, or no pue",
          &Self::facility_energy_cost);
  }
};

/// Training on a number of tokens, at the rate of one step.
struct TrainingRun {
  int64_t tokens = 0;
  double steps = 0;
  double days = 0;
  double gpu_hours = 0;  ///< of all GPUs together
  std::optional<double> energy_kwh, cost, carbon_kg;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainingRun;
    field.is("TrainingRun", "Training on a number of tokens, at the rate of one step.");
    field("tokens", "tokens", "the option `tokens`", &Self::tokens);
    field("steps", "", "of the batch", &Self::steps);
    field("days", "days", "without restarts, checkpoints or evaluations", &Self::days);
    field("gpu_hours", "hours", "of all GPUs together", &Self::gpu_hours);
    field("energy_kwh", "kWh", "of the GPUs' boards; null: power is not forecast",
          &Self::energy_kwh);
    field("cost", "", "of GPU hours and energy, as far as prices were given; null: none was",
          &Self::cost);
    field("carbon_kg", "kg", "null: `carbon_g_per_kwh` is not given", &Self::carbon_kg);
  }
};

/// One network of a pipeline of image or video diffusion.
struct DiffusionPart {
  std::string name, stage;
  int64_t runs = 1;
  double run_s = 0, total_s = 0;
  int64_t parameters = 0, flops = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = DiffusionPart;
    field.is("DiffusionPart", "A network of a pipeline, as it runs for one batch.");
    field("part", "", "name in the pipeline; with tiles, of one size of them", &Self::name);
    field("stage", "", "when it runs: encode, denoise or decode", &Self::stage,
          {"encode", "denoise", "decode"});
    field("runs", "", "in the whole batch", &Self::runs);
    field("run_s", "s", "of one run", &Self::run_s);
    field("total_s", "s", "of all runs", &Self::total_s);
    field("parameters", "", "of the network", &Self::parameters);
    field("run_flops", "FLOP", "work of one run, on one GPU", &Self::flops);
  }
};

/// A batch of images or videos: text encoders, steps of the denoiser, decoder.
struct DiffusionForecast {
  int64_t steps = 0, height = 0, width = 0;
  std::optional<int64_t> frames;
  std::optional<double> fps;
  double guidance = 0;
  int64_t passes = 1, ranks = 1;
  double encode_s = 0, step_s = 0, decode_s = 0, communication_s = 0;
  double outputs_per_s = 0, seconds_per_output = 0;
  std::optional<double> seconds_per_video_second, energy_per_output_j;
  std::vector<DiffusionPart> parts;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = DiffusionForecast;
    field.is("Diffusion", "A batch of images or videos of a diffusion pipeline.");
    field("steps", "", "of the denoiser", &Self::steps);
    field("height", "pixels", "of an image or frame", &Self::height);
    field("width", "pixels", "of an image or frame", &Self::width);
    field("frames", "", "of a video; null: images", &Self::frames);
    field("fps", "1/s", "frames that are played in a second; null: images", &Self::fps);
    field("guidance", "", "scale of guidance", &Self::guidance);
    field("passes", "",
          "samples of the denoiser for each output and step: 2 with classifier-free guidance",
          &Self::passes);
    field("ranks", "", "GPUs that share the batch", &Self::ranks);
    field("encode_s", "s", "text encoders", &Self::encode_s);
    field("step_s", "s", "one step of the denoiser", &Self::step_s);
    field("decode_s", "s", "decoder of the latents", &Self::decode_s);
    field("communication_s", "s", "exchanges of the ranks that are not hidden",
          &Self::communication_s);
    field("outputs_per_s", "1/s", "images or videos", &Self::outputs_per_s);
    field("seconds_per_output", "s", "the batch latency over the outputs",
          &Self::seconds_per_output);
    field("seconds_per_video_second", "", "the same for each second that is played; null: images",
          &Self::seconds_per_video_second);
    field("energy_per_output_j", "J", "of all GPUs; null: power is not forecast",
          &Self::energy_per_output_j);
    field("parts", "", "the networks in the order that they run in", &Self::parts);
  }
};

struct Forecast {
  std::string model;
  std::string gpu;
  std::string gpu_name;
  std::string mode;
  int64_t batch = 0;
  int64_t seq = 0;
  /// The sizes of one input, for titles: "seq 512", "pixel_values 3x224x224"; "": it has none that
  /// a request or the config sets.
  std::string input;
  std::string dtype;
  std::string dtype_source;
  /// The shapes come from a graph file: `batch` and `seq` have no meaning.
  bool fixed_shapes = false;
  bool is_decoder = false;  ///< it generates text; scripts that train such models train no others
  Interval latency_s;
  double kernels_s = 0;  ///< the kernels alone, without waiting for the host
  double host_wait_s = 0;
  double forward_s = 0, backward_s = 0, optimizer_s = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t parameters = 0;
  int64_t model_flops = 0;
  double utilization_ratio = 0;
  double mfu_ratio = 0;
  std::optional<double> gpu_flops_per_s, tokens_per_s;
  std::optional<TrainingRun> training_run;
  std::optional<PowerForecast> power;
  PassMemory memory;
  std::vector<KernelForecast> kernels;
  std::vector<Roof> roofs;
  std::optional<ParallelForecast> parallel;
  std::optional<DiffusionForecast> diffusion;
  std::shared_ptr<const void> names;  ///< owns the strings that `KernelForecast::name` points to
  std::vector<Warning> warnings;
  Request used;

  /// GPUs that take part.
  int64_t gpus() const { return diffusion ? diffusion->ranks : parallel ? parallel->ranks : 1; }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Forecast;
    field.is_document("Forecast", "The forecast of one pass or training step.");
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("mode", "",
          "inference is one forward pass; training is forward, backward and optimizer step",
          &Self::mode, {"inference", "training"});
    field("batch", "", "sequences over all ranks", &Self::batch);
    field("seq", "tokens", "length of a sequence", &Self::seq);
    field("dtype", "",
          "the dtype that was used, as in --dtype; schemes of different layers are joined by +",
          &Self::dtype);
    field("dtype_source", "",
          "where the dtype comes from: asked, default, graph, or the field or file of the "
          "checkpoint that states it",
          &Self::dtype_source);
    field.interval({"latency_s", "latency_low_s", "latency_high_s"}, "s", "time of the whole pass",
                   &Self::latency_s);
    field("host_wait_s", "s", "time that the GPU waits for the host to launch kernels",
          &Self::host_wait_s);
    field("forward_s", "s",
          "forward, backward and optimizer sum up to the latency; of a training step over several "
          "ranks, they are those of the stage that computes longest, without communication, and "
          "sum up to the latency with gradient_copies_s, slowed_s, exposed_communication_s and "
          "bubble_s; those of recommendation models contain the communication that is exposed",
          &Self::forward_s);
    field("backward_s", "s", "see forward_s", &Self::backward_s);
    field("optimizer_s", "s", "see forward_s", &Self::optimizer_s);
    field("flops", "FLOP",
          "work of all kernels; over several ranks, of the mean rank, whatever the skew",
          &Self::flops);
    field("bytes", "bytes",
          "memory traffic of all kernels; over several ranks, of the mean rank, as without skew",
          &Self::bytes);
    field("parameters", "", "parameters of the model", &Self::parameters);
    field("model_flops", "FLOP",
          "flops without what is computed again: activation checkpointing, and the scores in the "
          "backward pass of fused attention",
          &Self::model_flops);
    field("utilization_ratio", "",
          "HFU, hardware FLOPs utilization: flops / (latency x peak FLOP/s of the device for the "
          "dtype)",
          &Self::utilization_ratio);
    field("mfu_ratio", "", "MFU, model FLOPs utilization: the same of model_flops",
          &Self::mfu_ratio);
    field("gpu_flops_per_s", "FLOP/s", "of training: model_flops over the latency, of one GPU",
          &Self::gpu_flops_per_s);
    field("tokens_per_s", "1/s",
          "of training, on all GPUs; of models with an encoder for texts, the encoder's tokens; "
          "null: the input is not tokens",
          &Self::tokens_per_s);
    field("gpu_tokens_per_s", "1/s", "the same over the number of GPUs",
          [](const Self& f) -> std::optional<double> {
            if (!f.tokens_per_s) return std::nullopt;
            return *f.tokens_per_s / static_cast<double>(f.parallel ? f.parallel->ranks : 1);
          });
    field("training_run", "", "training on the option `tokens`; null: not given",
          &Self::training_run);
    field("power", "",
          "null: the device file states no board power, the GPU is divided, or the model has "
          "embedding tables on several ranks",
          &Self::power);
    field("memory", "", "over several ranks: of the rank that needs most", &Self::memory);
    field("kernels", "", "over several ranks: of one rank of each stage, over all micro-batches",
          &Self::kernels);
    field("roofs", "", "what the data sheet allows, for each dtype that kernels compute in",
          &Self::roofs);
    field.flat(&Self::parallel);
    field.if_set("diffusion", "", "a batch of a diffusion pipeline; other models have no such key",
                 &Self::diffusion);
    field.options(&Self::used);
    field("launch", "", "commands that start such a training; empty: none is known",
          [](const Self& f) { return launch_lines(f); });
    field("assumptions", "",
          "what matters to the numbers, given or by default: dtype and where it comes from, "
          "attention, optimizer and its states, loss, recomputation, fusion, software, clock",
          [](const Self& f) { return assumptions(f); });
    field.warnings(&Self::warnings);
  }
};

/// One prefill or decode step: its time, its kernels and what limits them.
struct StepForecast {
  Interval time;
  double host_wait_s = 0;
  std::vector<std::pair<std::string, double>> limits;
  std::vector<KernelForecast> kernels;
  std::vector<Warning> warnings;  ///< of this step; also part of the forecast's warnings

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = StepForecast;
    field.is("Step", "One prefill or decode step, or one run of the vision tower.");
    field.interval({"latency_s", "low_s", "high_s"}, "s", "time of the step", &Self::time);
    field("host_wait_s", "s", "time that the GPU waits for the host to launch kernels",
          &Self::host_wait_s);
    field("limits", "",
          "share of the kernels' time by what limits them: compute, memory, latency or network",
          &Self::limits);
    field("kernels", "", "the kernels of the step", &Self::kernels);
  }
};

/// Mean, median and 99th percentile over requests.
struct Distribution {
  Interval mean, median, p99;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Distribution;
    field.is("Distribution", "Mean, median and 99th percentile over requests.");
    field("mean", "", "over all requests", &Self::mean);
    field("median", "", "of all requests", &Self::median);
    field("p99", "", "the 99th percentile", &Self::p99);
  }
};

/// Metrics that the clients of a server see, over one part of the run.
struct ServerMetrics {
  int64_t requests = 0;
  Distribution ttft;
  Distribution tpot;
  Distribution e2e;
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServerMetrics;
    field.is("ServerMetrics", "What the clients of a server see, over one part of the run.");
    field("requests", "", "number of answered requests", &Self::requests);
    field("time_to_first_token", "", "from sending a request to its first token", &Self::ttft);
    field("time_per_output_token", "", "(last token - first token) / (output - 1)", &Self::tpot);
    field("end_to_end", "", "from sending a request to its last token", &Self::e2e);
    field("requests_per_s", "1/s", "answered requests", &Self::requests_per_s);
    field("output_tokens_per_s", "1/s", "output tokens", &Self::output_tokens_per_s);
    field("total_tokens_per_s", "1/s", "prompt and output tokens", &Self::total_tokens_per_s);
  }
};

/// The cache of a server on one rank as its software sizes it at the start
/// (docs/explanation/servers.md).
struct CachePool {
  std::string rule;
  double fraction = 0;
  int64_t visible_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t weights_bytes = 0;
  int64_t profile_bytes = 0;
  int64_t non_torch_bytes = 0;
  int64_t graphs_bytes = 0;
  int64_t fixed_bytes = 0;  ///< what the budget is spent on before the cache
  int64_t cache_bytes = 0;
  int64_t block_tokens = 0, blocks = 0;
  int64_t tokens = 0;
  int64_t max_model_len = 0;
  double concurrency = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = CachePool;
    field.is("CachePool",
             "The cache of a server on one rank as its software sizes it at the start.");
    field("rule", "", "the software's option, e.g. gpu_memory_utilization", &Self::rule);
    field("fraction", "", "its value", &Self::fraction);
    field("visible_bytes", "bytes", "memory that programs see: without the driver's",
          &Self::visible_bytes);
    field("budget_bytes", "bytes", "what the rule allows for weights, activations and cache",
          &Self::budget_bytes);
    field("weights_bytes", "bytes", "weights of one rank", &Self::weights_bytes);
    field("profile_bytes", "bytes", "peak of activations that the software measures or assumes",
          &Self::profile_bytes);
    field("non_torch_bytes", "bytes", "memory of libraries that the software counts",
          &Self::non_torch_bytes);
    field("graphs_bytes", "bytes", "captured CUDA graphs, beside the budget", &Self::graphs_bytes);
    field("cache_bytes", "bytes", "what is left for the cache", &Self::cache_bytes);
    field("block_tokens", "tokens", "tokens of a block", &Self::block_tokens);
    field("blocks", "", "blocks of the cache", &Self::blocks);
    field("tokens", "tokens", "size of the cache, as vLLM's log has it", &Self::tokens);
    field("max_model_len", "tokens", "longest sequence that the server accepts",
          &Self::max_model_len);
    field("concurrency", "", "sequences of max_model_len that fit: vLLM's maximum concurrency",
          &Self::concurrency);
  }
};

/// The vision tower beside the language model, on one rank.
struct VisionForecast {
  int64_t parameters = 0;
  int64_t weights_bytes = 0;
  int64_t images = 0;
  int64_t image_side = 0;
  int64_t image_tokens = 0;
  int64_t prompt_tokens = 0;
  int64_t together = 0;
  Interval time;
  StepForecast step;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = VisionForecast;
    field.is("Vision", "The vision tower beside the language model, on one rank.");
    field("parameters", "",
          "of the whole tower with its projector, beside the language model's parameters",
          &Self::parameters);
    field("weights_bytes", "bytes",
          "of one rank; part of the memory's weights_bytes, also without images, unless encode "
          "workers have the tower",
          &Self::weights_bytes);
    field("images", "", "of each prompt; 0: the tower does not run", &Self::images);
    field("image_side", "pixels", "after the processor's resizing; 0: no images",
          &Self::image_side);
    field("image_tokens", "tokens", "that one image adds to the prompt", &Self::image_tokens);
    field("prompt_tokens", "tokens", "that all images add to a prompt", &Self::prompt_tokens);
    field("images_together", "", "images that the tower gets at once, at most", &Self::together);
    field("time", "",
          "of the tower for all prompts; part of time_to_first_token; of encode workers, on the "
          "one with the most images",
          &Self::time);
    field("step", "", "one run of the tower; null: no images",
          [](const Self& x) { return x.images > 0 ? &x.step : nullptr; });
  }
};

/// Speculative decoding.
struct DraftForecast {
  std::string method;  ///< a word of DraftMethod
  std::string model;
  int64_t tokens = 0;
  double acceptance_rate = 0;
  std::string acceptance_source;  ///< "given", or why the default is what it is
  double tokens_per_step = 1;
  Interval time;
  int64_t weights_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = DraftForecast;
    field.is("Drafts", "Speculative decoding.");
    field("method", "",
          "what makes the drafts: draft_model, mtp (the model's own layers), ngram, eagle or "
          "eagle3",
          &Self::method);
    field("model", "", "the model that makes the drafts; null: the method needs none",
          [](const Self& x) { return x.model.empty() ? nullptr : &x.model; });
    field("tokens", "tokens", "of a draft", &Self::tokens);
    field("acceptance_rate", "", "of a token, if those before it are accepted",
          &Self::acceptance_rate);
    field("acceptance_source", "", "\"given\", or where the default is from",
          &Self::acceptance_source);
    field("tokens_per_step", "tokens", "that a step of a sequence writes on average",
          &Self::tokens_per_step);
    field("time", "", "of the drafts of one step, part of the step's time", &Self::time);
    field("weights_bytes", "bytes", "of one rank, part of the memory's weights_bytes",
          &Self::weights_bytes);
  }
};

/// The workers that compute prompts only.
struct PrefillPoolForecast {
  int64_t workers = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  int64_t gpus = 0;
  int64_t peak_bytes = 0;
  int64_t cache_tokens = 0;
  double busy_share = 0;
  double transfer_s = 0, mean_transfer_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PrefillPoolForecast;
    field.is("PrefillPool", "The workers that compute prompts only.");
    field("workers", "", "how many", &Self::workers);
    field("tp", "", "of each", &Self::tp);
    field("pp", "", "of each", &Self::pp);
    field("dp", "", "of each", &Self::dp);
    field("ep", "", "of each", &Self::ep);
    field("gpus", "", "of each", &Self::gpus);
    field("peak_bytes", "bytes", "memory of one of their ranks", &Self::peak_bytes);
    field("cache_tokens", "tokens", "capacity of one worker's cache", &Self::cache_tokens);
    field("busy_share", "", "of the time that a worker works", &Self::busy_share);
    field("transfer_s", "s",
          "from the end of a prefill of mean length to the other pool's having the cache, on an "
          "idle link",
          &Self::transfer_s);
    field("mean_transfer_s", "s", "the same, mean of all requests, with waiting for the link",
          &Self::mean_transfer_s);
  }
};

/// The workers that run the vision tower only.
struct EncodePoolForecast {
  int64_t workers = 0;
  int64_t tp = 1;
  int64_t gpus = 0;
  int64_t peak_bytes = 0;
  int64_t images_together = 0;
  double mean_images = 0;
  double busy_share = 0;
  double transfer_s = 0, mean_encode_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = EncodePoolForecast;
    field.is("EncodePool", "The workers that run the vision tower only.");
    field("workers", "", "how many", &Self::workers);
    field("tp", "", "of each", &Self::tp);
    field("gpus", "", "of each", &Self::gpus);
    field("peak_bytes", "bytes", "memory of one of their ranks", &Self::peak_bytes);
    field("images_together", "", "images in a run, at most", &Self::images_together);
    field("mean_images", "", "images in a run, mean", &Self::mean_images);
    field("busy_share", "", "of the time that a worker works", &Self::busy_share);
    field("transfer_s", "s",
          "from the end of the runs for one prompt to a server's having its images' tokens, on an "
          "idle link",
          &Self::transfer_s);
    field("mean_encode_s", "s",
          "from a request's coming to a server's having its images' tokens, mean of all requests "
          "with images, with all waiting",
          &Self::mean_encode_s);
  }
};

/// What a server's prefix cache found and lost. Ratios are of tokens of prompts.
struct PrefixCacheForecast {
  double hit_ratio = 0, host_hit_ratio = 0, most_hit_ratio = 0;
  int64_t hit_tokens = 0, host_hit_tokens = 0;
  int64_t evicted_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t host_capacity_tokens = 0, host_cached_tokens = 0;
  double host_bytes_per_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PrefixCacheForecast;
    field.is("PrefixCache", "What a server's prefix cache found, kept and lost.");
    field("hit_ratio", "", "share of the prompts' tokens that the GPU's cache had",
          &Self::hit_ratio);
    field("host_hit_ratio", "", "share of the prompts' tokens that the host's memory had",
          &Self::host_hit_ratio);
    field("most_hit_ratio", "",
          "the same for one cache of any size, to which each request comes after those before it "
          "are answered",
          &Self::most_hit_ratio);
    field("hit_tokens", "tokens", "of prompts, that the GPU's cache had", &Self::hit_tokens);
    field("host_hit_tokens", "tokens", "of prompts, that the host's memory had",
          &Self::host_hit_tokens);
    field("evicted_tokens", "tokens", "that the GPU's caches lost to other requests",
          &Self::evicted_tokens);
    field("cached_tokens", "tokens", "that the GPU's caches keep at the end", &Self::cached_tokens);
    field("host_capacity_tokens", "tokens", "that the host's memory has room for, in each server",
          &Self::host_capacity_tokens);
    field("host_cached_tokens", "tokens", "that the host's memory keeps at the end, in all servers",
          &Self::host_cached_tokens);
    field("host_bytes_per_s", "B/s", "at which a server's GPUs read the host's memory",
          &Self::host_bytes_per_s);
  }
};

/// The low-rank adapters of a server's requests.
struct AdaptersForecast {
  int64_t adapters = 0, rank = 0, max_loras = 0, max_lora_rank = 0;
  int64_t bytes = 0, reserved_bytes = 0;
  double load_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AdaptersForecast;
    field.is("Adapters", "The low-rank adapters (LoRA) of a server's requests.");
    field("adapters", "", "different ones", &Self::adapters);
    field("rank", "", "of each", &Self::rank);
    field("max_loras", "", "in one step, for which memory is kept", &Self::max_loras);
    field("max_lora_rank", "", "that memory is kept for", &Self::max_lora_rank);
    field("bytes", "bytes", "of one adapter on a rank of the GPU", &Self::bytes);
    field("reserved_bytes", "bytes", "kept for adapters on a rank of the GPU",
          &Self::reserved_bytes);
    field("load_s", "s", "to bring one adapter from the host's memory", &Self::load_s);
  }
};

/// A request of a trace. Seconds from the trace's first arrival.
struct TracedRequest {
  double arrival_s = 0, first_token_s = 0, last_token_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TracedRequest", "When a request of a trace came and was answered.");
    field("arrival_s", "s", "since the start of the trace, as all three",
          &TracedRequest::arrival_s);
    field("first_token_s", "s", "the first token is there", &TracedRequest::first_token_s);
    field("last_token_s", "s", "the last token is there", &TracedRequest::last_token_s);
  }
};

/// A decode step with `kv_tokens` tokens in the cache of each sequence.
struct CoursePoint {
  int64_t kv_tokens = 0;
  Interval time;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("CoursePoint", "A decode step at one length of the cache.");
    field("kv_tokens", "tokens", "in the cache of each sequence", &CoursePoint::kv_tokens);
    field.flat(&CoursePoint::time);
  }
};

struct GenerationForecast {
  std::string model, gpu, gpu_name, dtype, kv_dtype, software;
  std::string dtype_source;
  int64_t prompt = 0, output = 0, batch = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  int64_t ranks = 1;
  int64_t gpus = 1;
  std::string cluster;
  bool continuous = false;
  bool lengths_vary = false;  ///< the lengths of requests vary: `prompt` and `output` are means

  Interval latency;

  // For a static batch: the batch. For a server: a single request of mean lengths on an idle
  // server.
  Interval ttft;
  Interval tpot;
  Interval request;
  double tokens_per_s = 0;
  int64_t flops = 0, bytes = 0;
  double communication_s = 0;
  std::vector<KernelForecast> kernels;
  std::vector<Roof> roofs;
  std::shared_ptr<const void> names;  ///< owns the strings that `KernelForecast::name` points to
  double utilization_ratio = 0;
  std::vector<CoursePoint> course;
  StepForecast prefill;
  StepForecast decode;
  std::optional<PowerForecast> power;
  std::optional<VisionForecast> vision;
  std::optional<DraftForecast> drafts;
  std::optional<AdaptersForecast> adapters;

  int64_t parameters = 0;
  int64_t active_parameters = 0;
  int64_t multiplied_parameters = 0;
  int64_t flops_per_token = 0;
  int64_t attention_flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;
  int64_t window_bytes_per_token = 0, window_tokens = 0;
  int64_t state_bytes_per_sequence = 0;

  Memory memory;
  std::optional<CachePool> pool;

  /// Results for a server with continuous batching.
  struct Serving {
    double rate = 0;
    int64_t concurrency = 0;
    bool trace = false;
    int64_t gpus = 1;
    int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
    int64_t cache_tokens = 0;
    int64_t most_sequences = 0;
    int64_t most_in_flight = 0;
    int64_t warmup_requests = 0;
    ServerMetrics all;
    std::optional<ServerMetrics> steady;
    /// The steady part, or the whole run where there is none.
    const ServerMetrics& steady_or_all() const { return steady ? *steady : all; }
    std::optional<double> goodput_requests_per_s;
    std::optional<double> ttft_limit_s, tpot_limit_s;
    std::optional<Distribution> itl;
    double mean_batch = 0, busy_share = 0;
    double cache_use = 0;
    int64_t preemptions = 0;
    std::optional<int64_t> adapter_loads;
    std::optional<double> mean_adapters;
    bool keeps_up = true;
    int64_t replicas = 1;
    std::optional<PrefillPoolForecast> prefill_pool;
    std::optional<EncodePoolForecast> encode_pool;
    /// Of prefill workers, if there are any.
    std::optional<PrefixCacheForecast> prefix_cache;
    std::vector<TracedRequest> traced;  ///< empty: the requests came from no trace

    std::optional<double> goodput_per_gpu() const {
      if (!goodput_requests_per_s) return std::nullopt;
      return *goodput_requests_per_s / static_cast<double>(gpus);
    }

    template <typename Fields>
    static void fields(Fields& field) {
      using Self = Serving;
      field.is("Serving", "A server under load.");
      field("rate", "1/s", "requested load in requests; null: not given",
            [](const Self& x) { return x.rate > 0 ? &x.rate : nullptr; });
      field("concurrency", "", "requested number of clients; null: not given",
            [](const Self& x) { return x.concurrency > 0 ? &x.concurrency : nullptr; });
      field("trace", "", "the requests came from a file", &Self::trace);
      field("requests", "", "number of simulated requests that are counted",
            [](const Self& x) { return x.all.requests; });
      field("warmup_requests", "",
            "requests that were sent before those: conversations with a rate begin without the "
            "turns before them",
            &Self::warmup_requests);
      field("max_num_seqs", "", "sequences in a step of one data-parallel rank, at most",
            &Self::max_num_seqs);
      field("max_num_batched_tokens", "tokens", "in a step of one data-parallel rank, at most",
            &Self::max_num_batched_tokens);
      field("cache_tokens", "tokens", "capacity of the cache of one server", &Self::cache_tokens);
      field("most_sequences", "", "how many sequences of the longest length fit into the cache",
            &Self::most_sequences);
      field("most_in_flight", "", "maximum number of requests that waited or ran at the same time",
            &Self::most_in_flight);
      field("all", "", "all requests", &Self::all);
      field("steady", "",
            "without the first and the last most_in_flight requests, which saw the server fill up "
            "or empty; null: too few requests are left",
            &Self::steady);
      field("requests_per_s", "1/s", "answered requests",
            [](const Self& x) { return x.all.requests_per_s; });
      field("tokens_per_s", "1/s", "output tokens",
            [](const Self& x) { return x.all.output_tokens_per_s; });
      field("goodput_requests_per_s", "1/s",
            "requests that met the limits, over the whole run; null: no limits",
            &Self::goodput_requests_per_s);
      field("gpus", "", "of all servers, prefill and encode workers included", &Self::gpus);
      field("replicas", "", "equal servers behind a router", &Self::replicas);
      field("prefill_pool", "", "workers that compute prompts only", &Self::prefill_pool);
      field("encode_pool", "", "workers that run the vision tower only", &Self::encode_pool);
      field("tokens_per_s_per_gpu", "1/s", "output tokens",
            [](const Self& x) { return x.all.output_tokens_per_s / static_cast<double>(x.gpus); });
      field("total_tokens_per_s_per_gpu", "1/s", "prompt and output tokens",
            [](const Self& x) { return x.all.total_tokens_per_s / static_cast<double>(x.gpus); });
      field("goodput_requests_per_s_per_gpu", "1/s", "requests that met the limits",
            &Self::goodput_per_gpu);
      field("ttft_s", "s", "limit on the time to first token", &Self::ttft_limit_s);
      field("tpot_s", "s", "limit on the time per output token", &Self::tpot_limit_s);
      field(
          "inter_token_latency", "",
          "between two tokens of a stream, over all tokens of the run; null: outputs of one token",
          &Self::itl);
      field("mean_batch", "", "mean number of sequences in a decode step", &Self::mean_batch);
      field("busy_share", "", "share of the time that the server computes", &Self::busy_share);
      field("cache_use", "", "mean share of the cache in use", &Self::cache_use);
      field("preemptions", "", "sequences that were put back for lack of cache",
            &Self::preemptions);
      field("adapter_loads", "",
            "low-rank adapters that came from the host's memory; null: requests have none",
            &Self::adapter_loads);
      field("mean_adapters", "",
            "different low-rank adapters in a step, on average; null: requests have none",
            &Self::mean_adapters);
      field("prefix_cache", "",
            "what requests found of prompts and answers before them; null: nothing is known of "
            "what they have in common, or the server keeps nothing",
            &Self::prefix_cache);
      field("keeps_up", "", "the queue does not grow without bound", &Self::keeps_up);
      field("traced_requests", "", "each request of a trace, in the order of arrival",
            &Self::traced);
    }
  };
  std::optional<Serving> serving;

  std::vector<Warning> warnings;
  Request used;

  /// `value` of a forecast over several ranks; else nullopt.
  template <typename T>
  std::optional<T> if_ranks(const T& value) const {
    return ranks > 1 ? std::optional<T>(value) : std::nullopt;
  }
  /// Of a server under load, else of the batch or the request.
  double all_tokens_per_s() const {
    return serving ? serving->steady_or_all().output_tokens_per_s : tokens_per_s;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = GenerationForecast;
    field.is_document("GenerationForecast", "The forecast of text generation.");
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("mode", "", "inference", [](const Self&) { return std::string_view("inference"); },
          {"inference"});
    field("schedule", "", "a static batch, or a server with continuous batching",
          [](const Self& x) { return std::string_view(x.continuous ? "continuous" : "static"); },
          {"static", "continuous"});
    field("prompt", "tokens",
          "length of the prompt, without images; the mean for a server with varying lengths",
          &Self::prompt);
    field("output", "tokens", "length of the output, including the first token", &Self::output);
    field("batch", "", "sequences in the batch", &Self::batch);
    field("seq", "tokens", "prompt, images and output", [](const Self& x) {
      return x.prompt + (x.vision ? x.vision->prompt_tokens : 0) + x.output;
    });
    field("tp", "", "tensor-parallel ranks, which share each layer", &Self::tp);
    field("pp", "", "pipeline stages, which share the layers", &Self::pp);
    field("dp", "", "data-parallel ranks of attention in one server", &Self::dp);
    field("ep", "", "expert-parallel ranks", &Self::ep);
    field("gpus", "", "GPUs of all servers, prefill and encode workers included", &Self::gpus);
    field("dtype", "", "dtype or quantization scheme of the weights", &Self::dtype);
    field("dtype_source", "",
          "where the dtype comes from: asked, default, graph, or the field or file of the "
          "checkpoint that states it",
          &Self::dtype_source);
    field("kv_dtype", "", "dtype of the KV cache", &Self::kv_dtype);
    field("software", "", "whose kernels and scheduler: a value of --software", &Self::software);
    field.interval(
        {"latency_s", "latency_low_s", "latency_high_s"}, "s",
        "static: from the first prompt token to the last output token of the batch; continuous: "
        "mean end-to-end time of a request, over all requests",
        &Self::latency);
    field("forward_s", "s", "the time of the request",
          [](const Self& x) { return x.request.value; });
    field("backward_s", "s", "0: none", [](const Self&) { return 0.0; });
    field("optimizer_s", "s", "0: none", [](const Self&) { return 0.0; });
    field("time_to_first_token", "",
          "from the arrival of the prompts until all sequences have a token; of a server, of a "
          "single request of mean lengths when idle, as the next two",
          &Self::ttft);
    field("time_per_output_token", "", "mean over the tokens after the first", &Self::tpot);
    field("request", "", "from the arrival to the last token", &Self::request);
    field("course", "",
          "time of a decode step by the length of the cache, in the middle of each part of the "
          "output",
          &Self::course);
    field("tokens_per_s", "1/s",
          "output tokens of all sequences; of a server under load, in its steady part, or of the "
          "whole run where it has none",
          [](const Self& x) { return x.all_tokens_per_s(); });
    field("tokens_per_s_per_gpu", "1/s",
          "the same per GPU: under load of all servers and workers, else of one server",
          [](const Self& x) {
            return x.all_tokens_per_s() / static_cast<double>(x.serving ? x.gpus : x.ranks);
          });
    field("flops", "FLOP",
          "work of one rank, with `skew` of the one with the busiest experts; with a pipeline the "
          "mean over its stages; without that of encode workers",
          &Self::flops);
    field("bytes", "bytes", "memory traffic of one rank", &Self::bytes);
    field("utilization_ratio", "",
          "FLOPs / (latency x peak FLOP/s of the device for the compute dtype)",
          &Self::utilization_ratio);
    field("parameters", "", "of the language model, which names of models count",
          &Self::parameters);
    field("active_parameters", "", "parameters that one token uses, embedding table included",
          &Self::active_parameters);
    field("multiplied_parameters", "",
          "active parameters without embedding tables that are only looked up",
          &Self::multiplied_parameters);
    field("flops_per_token", "FLOP",
          "of a sequence in a decode step right after the prompt, attention included",
          &Self::flops_per_token);
    field("attention_flops_per_token", "FLOP", "of these, in attention",
          &Self::attention_flops_per_token);
    field("kv_bytes_per_token", "bytes",
          "KV cache over all ranks, each head counted once: what a token adds while all layers "
          "keep it",
          &Self::kv_bytes_per_token);
    field("window_bytes_per_token", "bytes",
          "of these, the bytes of layers that keep the last tokens only",
          &Self::window_bytes_per_token);
    field("window_tokens", "tokens", "how many tokens these keep at most; 0: there are none",
          &Self::window_tokens);
    field("state_bytes_per_sequence", "bytes", "of recurrent layers, over all ranks",
          &Self::state_bytes_per_sequence);
    field("memory", "", "memory of one rank", &Self::memory);
    field("cache_pool", "",
          "the cache of a server on one rank as its software sizes it; null for PyTorch",
          &Self::pool);
    field("vision", "",
          "the vision tower beside the language model; null: the model has none, or it is not "
          "forecast",
          &Self::vision);
    field("drafts", "", "speculative decoding; null: none", &Self::drafts);
    field("adapters", "", "low-rank adapters of requests (LoRA); null: none", &Self::adapters);
    field("prefill", "", "the prefill step with the most tokens", &Self::prefill);
    field("decode", "", "the step in the middle of the output", &Self::decode);
    field("power", "",
          "of `request`, the batch or the single request; null: the device file states no board "
          "power, or the GPU is divided",
          &Self::power);
    field("kernels", "",
          "all kernels of one rank, with a pipeline of one of each stage; the decode step in the "
          "middle of each part of the output stands for all of that part",
          &Self::kernels);
    field("roofs", "", "what the data sheet allows, for each dtype that kernels compute in",
          &Self::roofs);
    field.if_set("ranks", "",
                 "GPUs of one server: tp x pp x dp; of one GPU left out, as the next four",
                 [](const Self& x) { return x.if_ranks(x.ranks); });
    field.if_set("cluster", "", "id of the cluster", [](const Self& x) {
      return x.ranks > 1 && !x.cluster.empty() ? &x.cluster : nullptr;
    });
    field.if_set("communication_s", "s", "of one rank with others; not overlapped with computation",
                 [](const Self& x) { return x.if_ranks(x.communication_s); });
    field.if_set("exposed_communication_s", "s", "the same",
                 [](const Self& x) { return x.if_ranks(x.communication_s); });
    field.if_set("bubble_s", "s", "0: none", [](const Self& x) { return x.if_ranks(0.0); });
    field("serving", "",
          "a server under load; null: a static batch, or the longest request does not fit",
          &Self::serving);
    field.options(&Self::used);
    field("launch", "", "the command that starts such a server; empty: none is known",
          [](const Self& x) { return launch_lines(x); });
    field(
        "assumptions", "",
        "what matters to the numbers, given or by default: dtypes of weights and cache, software, "
        "steps, share of the memory, load of experts, clock",
        [](const Self& x) { return assumptions(x); });
    field.warnings(&Self::warnings);
  }
};

/// Share of the time that an object of an accelerator is busy.
struct ObjectUse {
  std::string object;
  double ratio = 0;
};

/// A layer on an accelerator; identical layers are one row.
struct AcceleratorLayer {
  std::string name;
  std::string op;
  std::string where;
  std::string kind;
  std::string sizes;
  std::vector<std::string> fused;
  std::string mapping;
  bool mapping_by_name = false;  ///< a file of mappings states it for this layer only
  int64_t count = 1;
  Interval cycles;
  bool converged = true;
  double instructions = 0;
  int64_t evaluated = 0;
  int64_t macs = 0;
  int64_t bytes = 0;
  std::optional<double> energy_j;
  std::string bound;
  std::vector<ObjectUse> use;

  std::vector<std::pair<std::string, double>> use_by_object() const {
    std::vector<std::pair<std::string, double>> ratios;
    for (const ObjectUse& one : use) ratios.emplace_back(one.object, one.ratio);
    return ratios;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AcceleratorLayer;
    field.is("AcceleratorLayer", "A layer on an accelerator; identical layers are one row.");
    field("name", "", "in the model", &Self::name);
    field("op", "", "operator", &Self::op);
    field("where", "",
          "\"store\": applied as the layer before it stores its outputs, without cycles of its own",
          &Self::where, {"accelerator", "host", "store"});
    field("count", "", "number of identical layers", &Self::count);
    field.interval({"cycles", "low_cycles", "high_cycles"}, "cycles", "of one", &Self::cycles,
                   "between the two without a fixed point");
    field("converged", "", "whether it reached a fixed point", &Self::converged);
    field("instructions", "", "of one", &Self::instructions);
    field("evaluated_instructions", "", "that were run to know the rest", &Self::evaluated);
    field("macs", "", "multiplications of one, those of the host as well", &Self::macs);
    field("bytes", "bytes", "moved to and from memory outside the chip", &Self::bytes);
    field("energy_j", "J", "of one; null: the description states no energy", &Self::energy_j);
    field("bound", "", "what limits it", &Self::bound,
          {"compute", "load", "store", "memory", "fetch", "dependency", "host", ""});
    field("mapping", "", "how it is tiled and ordered", &Self::mapping);
    field("kind", "", "of the layer", &Self::kind);
    field("sizes", "", "of its loops", &Self::sizes);
    field("fused", "", "operators that its store applies", &Self::fused);
    field("utilization_ratio", "", "share of the time that each object is busy",
          &Self::use_by_object);
  }
};

struct AcceleratorForecast {
  std::string model;
  std::string accelerator, accelerator_name;
  std::vector<std::pair<std::string, double>> parameters;
  std::string dataflow, operand_dtype, accumulator_dtype;
  int64_t batch = 1, seq = 0;
  std::string input;  ///< as Forecast::input
  double clock_hz = 0;
  Interval cycles;
  double host_cycles = 0;
  int64_t macs = 0;
  int64_t host_macs = 0;
  int64_t pe_count = 0;
  double on_chip_bytes = 0;
  double energy_j = 0;
  bool has_energy = false;
  double instructions = 0;
  int64_t evaluated = 0;
  std::vector<AcceleratorLayer> layers;
  std::vector<std::string> warnings;

  Interval latency_s() const {
    return {cycles.value / clock_hz, cycles.low / clock_hz, cycles.high / clock_hz};
  }
  double utilization_ratio() const {
    const double peak = cycles * static_cast<double>(pe_count);
    return peak > 0 ? static_cast<double>(macs - host_macs) / peak : 0;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AcceleratorForecast;
    field.is_document("AcceleratorForecast", "The forecast of a forward pass on an accelerator.");
    field("model", "", "name of the model", &Self::model);
    field("gpu", "", "id of the accelerator", &Self::accelerator);
    field("gpu_name", "", "its name", &Self::accelerator_name);
    field("parameters", "", "of the description", &Self::parameters);
    field("dataflow", "", "of the description", &Self::dataflow);
    field("dtype", "", "of operands", &Self::operand_dtype);
    field("accumulator_dtype", "", "of sums", &Self::accumulator_dtype);
    field("mode", "", "inference", [](const Self&) { return std::string_view("inference"); },
          {"inference"});
    field("batch", "", "sequences", &Self::batch);
    field("seq", "tokens", "length of a sequence", &Self::seq);
    field("clock_hz", "Hz", "of the accelerator", &Self::clock_hz);
    field.interval({"cycles", "low_cycles", "high_cycles"}, "cycles", "of the pass", &Self::cycles,
                   "between the two without a fixed point");
    field("host_cycles", "cycles", "of operators that the accelerator does not run",
          &Self::host_cycles);
    field.interval({"latency_s", "latency_low_s", "latency_high_s"}, "s", "time of the pass",
                   &Self::latency_s, "between the two without a fixed point");
    field("macs", "", "multiplications of the pass", &Self::macs);
    field("host_macs", "", "of these, on the host", &Self::host_macs);
    field("pe_count", "", "multipliers", &Self::pe_count);
    field("on_chip_bytes", "bytes", "memories of the chip", &Self::on_chip_bytes);
    field("energy_j", "J", "of the pass; null: the description states no energy",
          [](const Self& x) { return x.has_energy ? &x.energy_j : nullptr; });
    field("utilization_ratio", "", "multiplications / (cycles x multipliers)",
          &Self::utilization_ratio);
    field("instructions", "", "of the pass", &Self::instructions);
    field("evaluated_instructions", "", "that were run to know the rest", &Self::evaluated);
    field("layers", "", "rows of identical layers", &Self::layers);
    field.warnings(&Self::warnings);
  }
};

/// When an instruction is in an object.
struct OccupiedObject {
  size_t object = 0;  ///< index into AcceleratorOccupancy::objects
  std::string operation;
  double start_cycles = 0, end_cycles = 0;
};

/// The first instructions of the layer that takes most cycles.
struct AcceleratorOccupancy {
  std::string title;  ///< layer, model, accelerator, sizes, mapping
  std::vector<std::string> objects;
  std::vector<OccupiedObject> shown;
  double instructions = 0;  ///< of the layer
  double cycles = 1;        ///< at which the last one shown ends
  double clock_hz = 1;
};

struct CollectiveForecast {
  std::string kind, cluster, cluster_name, dtype;
  int64_t ranks = 0, ranks_per_node = 0, nodes = 0, bytes = 0;
  Interval latency_s;
  std::string_view algorithm;
  double start_s = 0;
  double transfer_s = 0;
  double link_bytes = 0;
  double network_bytes = 0;
  double bus_bytes_per_s = 0;
  bool extrapolated = false;
  std::vector<Warning> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = CollectiveForecast;
    field.is("Collective", "The time of one collective.");
    field("collective", "", "what it does", &Self::kind);
    field("cluster", "", "id of the cluster", &Self::cluster);
    field("dtype", "", "of the elements", &Self::dtype);
    field("ranks", "", "GPUs that take part", &Self::ranks);
    field("ranks_per_node", "", "of these on each node", &Self::ranks_per_node);
    field("nodes", "", "that take part", &Self::nodes);
    field("bytes", "bytes", "of the whole buffer", &Self::bytes);
    field.interval({"latency_s", "low_s", "high_s"}, "s", "the time", &Self::latency_s);
    field("algorithm", "", "of the library", &Self::algorithm);
    field("start_s", "s", "start-up and steps: what more bandwidth does not shorten",
          &Self::start_s);
    field("transfer_s", "s", "the bytes: latency_s less start_s", &Self::transfer_s);
    field("bus_bytes_per_s", "bytes/s",
          "as nccl-tests define it: comparable with the rate of the links", &Self::bus_bytes_per_s);
    field("link_bytes", "bytes", "that one rank sends inside its node", &Self::link_bytes);
    field("network_bytes", "bytes", "that a node's ranks of the group send to other nodes",
          &Self::network_bytes);
    field("extrapolated", "", "outside the training range", &Self::extrapolated);
    field.warnings(&Self::warnings);
  }
};

/// Seconds of a step that tables cause: their sum is what a placement is judged by.
struct ShardCost {
  double forward_s = 0;
  double backward_s = 0;
  double exchange_s = 0;
  double reduce_s = 0;

  double total_s() const { return forward_s + backward_s + exchange_s + reduce_s; }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ShardCost;
    field.is("ShardCost", "Seconds of a step that tables cause.");
    field("forward_s", "s", "of the slowest rank", &Self::forward_s);
    field("backward_s", "s", "of the slowest rank, with the sparse optimizer", &Self::backward_s);
    field("exchange_s", "s", "all-to-all of sums, and of their gradients", &Self::exchange_s);
    field("reduce_s", "s", "all-reduces of the gradients of replicated tables", &Self::reduce_s);
    field("total_s", "s", "the sum: what a placement is judged by", &Self::total_s);
  }
};

/// Where a table is.
struct ShardedTable {
  std::string name;
  std::string_view way;
  int64_t rows = 0, dim = 0;
  std::string reuse;
  int64_t bytes = 0;
  double forward_s = 0;
  double backward_s = 0;
  std::vector<int64_t> ranks;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ShardedTable;
    field.is("ShardedTable", "Where a table is.");
    field("name", "", "of the table", &Self::name);
    field("way", "", "how it is divided", &Self::way,
          {"table_wise", "column_wise", "row_wise", "replicated"});
    field("rows", "", "of the whole table", &Self::rows);
    field("dim", "", "of the whole table", &Self::dim);
    field("reuse", "", "how its rows repeat: a name of the file's `reuse`, or uniform",
          &Self::reuse);
    field("bytes", "bytes", "of one part, with optimizer states", &Self::bytes);
    field("forward_s", "s", "of one part", &Self::forward_s);
    field("backward_s", "s", "of one part", &Self::backward_s);
    field("ranks", "", "one for each part", &Self::ranks);
  }
};

/// A placement by a simple rule, for comparison.
struct ShardBaseline {
  std::string_view name;
  bool fits = true;
  ShardCost cost;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ShardBaseline;
    field.is("ShardRule", "A placement of whole tables by a simple rule, for comparison.");
    field("rule", "", "what the rule balances over the ranks", &Self::name,
          {"size", "lookups", "cost"});
    field("fits", "", "whether the tables fit", &Self::fits);
    field("cost", "", "null: they do not fit",
          [](const Self& x) { return x.fits ? &x.cost : nullptr; });
  }
};

struct ShardForecast {
  std::string cluster, cluster_name, gpu, dtype;
  int64_t nodes = 1, ranks = 1, batch = 0;
  int64_t tables_bytes = 0;
  int64_t usable_bytes = 0;
  ShardCost cost;
  double bound_s = 0;
  std::vector<ShardedTable> tables;
  std::vector<RankTables> rank_tables;
  std::vector<ShardBaseline> baselines;
  bool extrapolated = true;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ShardForecast;
    field.is_document("Placement", "A placement of embedding tables on the ranks of a cluster.");
    field("cluster", "", "id of the cluster", &Self::cluster);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("dtype", "", "of exchanged sums", &Self::dtype);
    field("nodes", "", "that take part", &Self::nodes);
    field("ranks", "", "GPUs that take part", &Self::ranks);
    field("batch", "", "samples of a step, over all ranks", &Self::batch);
    field("tables_bytes", "bytes", "of all tables, once, with optimizer states",
          &Self::tables_bytes);
    field("usable_bytes", "bytes", "of each GPU's memory", &Self::usable_bytes);
    field("cost", "", "seconds of a step", &Self::cost);
    field("bound_s", "s", "no placement takes less", &Self::bound_s);
    field("rules", "", "placements of whole tables by simple rules", &Self::baselines);
    field("rank_tables", "", "what each rank holds", &Self::rank_tables);
    field("tables", "", "where each table is", &Self::tables);
    field("extrapolated", "", "FBGEMM's kernels were not measured", &Self::extrapolated);
    field.warnings(&Self::warnings);
  }
};

/// A pass or training step, on one rank or several; text generation or a server; a forward pass on
/// an accelerator.
using Result = std::variant<Forecast, GenerationForecast, AcceleratorForecast>;

/// The kernels that were asked for, beside the sizes that each of them has.
struct KernelQuestion {
  std::string gpu;                   ///< id
  std::string clocks = "boost";      ///< KernelOptions::clocks
  std::string software = "pytorch";  ///< KernelOptions::software
  std::vector<GivenSize> lists;      ///< the sizes that are lists

  /// The text of a list; nullptr: it was not given.
  const std::string* list_named(std::string_view name) const {
    for (const GivenSize& list : lists) {
      if (list.name == name) return std::get_if<std::string>(&list.value);
    }
    return nullptr;
  }
};

/// Why a kernel takes its time. Terms of a law are null where no law forecasts the kernel.
struct KernelExplanation {
  std::string name;
  double roofline_s = 0;
  double flops_per_s = 0, bytes_per_s = 0;
  std::optional<double> clock_hz;
  std::optional<double> law_s, start_s, memory_s, compute_s, busy_ratio, power_s, learned_factor;
  std::string nearest_gpu;
  std::optional<double> similarity;
  std::string measured;
  std::string outside;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = KernelExplanation;
    field.is("KernelExplanation", "Why a kernel takes its time.");
    field("name", "", "operator of 'tilecast ops'", &Self::name);
    field("roofline_s", "s", "the shortest time that the data sheet allows", &Self::roofline_s);
    field("flops_per_s", "FLOP/s", "work over the forecast", &Self::flops_per_s);
    field("bytes_per_s", "bytes/s", "memory traffic over the forecast", &Self::bytes_per_s);
    field("clock_hz", "Hz", "clock of the multiprocessors; null: a collective", &Self::clock_hz);
    field("law_s", "s",
          "time by the law: a formula of work, data sheet and software; null, as its terms: no law "
          "forecasts this kernel",
          &Self::law_s);
    field("start_s", "s", "part of the law: launches, start and end", &Self::start_s);
    field("memory_s", "s", "part of the law: bytes from DRAM and L2; overlaps with compute",
          &Self::memory_s);
    field("compute_s", "s", "part of the law: cycles of the multiprocessors", &Self::compute_s);
    field("busy_ratio", "",
          "share of the multiprocessors that has a block, on average over the waves",
          &Self::busy_ratio);
    field("power_s", "s", "part of the law that the power limit of the board adds", &Self::power_s);
    field("learned_factor", "", "forecast over law: what measurements of other kernels taught",
          &Self::learned_factor);
    field("nearest_gpu", "", "id of the most similar measured GPU whose rows count; null: none",
          [](const Self& x) { return x.nearest_gpu.empty() ? nullptr : &x.nearest_gpu; });
    field("similarity", "", "of that GPU's data sheet; 1: the same", &Self::similarity);
    field("measured", "",
          "where rows of the same software and precision are from: device (the nearest GPU), class "
          "(others of its architecture and kind of memory), other devices, nothing; null: no law",
          [](const Self& x) { return x.measured.empty() ? nullptr : &x.measured; });
    field("outside", "", "size that is furthest outside the range of the measured rows; null: none",
          [](const Self& x) { return x.outside.empty() ? nullptr : &x.outside; });
  }
};

/// The kernels of one operator.
struct KernelAnswer {
  KernelQuestion asked;
  std::vector<KernelForecast> kernels;
  std::vector<KernelExplanation> explanations;  ///< of each kernel
  std::vector<Roof> roofs;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = KernelAnswer;
    field.is_document("KernelAnswer", "The kernels of one operator.");
    field("gpu", "", "id of the GPU", [](const Self& x) { return (x.asked.gpu); });
    field("clocks", "", "the option `clocks`: boost, base, sustained or a number of MHz",
          [](const Self& x) { return (x.asked.clocks); });
    field("software", "", "whose kernels run the operator",
          [](const Self& x) { return (x.asked.software); });
    field.if_set("reuse", "",
                 "rows of a table that the batch uses once, twice, 4, 8, ... times, as given",
                 [](const Self& x) { return x.asked.list_named("reuse"); });
    field("kernels", "", "what it launches", &Self::kernels);
    field("explanations", "", "why each of the kernels takes its time", &Self::explanations);
    field("roofs", "", "what the data sheet allows, for each dtype that kernels compute in",
          &Self::roofs);
    field.warnings(&Self::warnings);
  }
};

}  // namespace tilecast
