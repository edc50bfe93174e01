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

/// The subject of a warning. The comments list the subject and the facts of each code.
/// `warning_code_name` gives its name in JSON.
enum class WarningCode {
  /// An assumption made while reading a file. Subject: model or device. Facts: message.
  kModelFile,
  kCheckpoint,
  kDeviceFile,
  /// The device does not support the dtype of the checkpoint. Subject: device. Facts: requested,
  /// used.
  kDtypeReplaced,
  /// Training was requested for a quantized checkpoint. Subject: model. Facts: scheme, source,
  /// used.
  kQuantizationIgnored,
  /// The device does not support the compute dtype of the checkpoint's scheme. Subject: device.
  /// Facts: scheme, source, compute_dtype, weight_bits, dtype, used, known (1: serving software has
  /// kernels for the replacement).
  kSchemeReplaced,
  /// The device does not support the dtype of the checkpoint's KV cache. Subject: device. Facts:
  /// requested, source, used.
  kCacheDtypeReplaced,
  /// `share` of the time belongs to kernels outside the training range. Subject: the step; "" for a
  /// pass.
  kExtrapolated,
  /// `share` of the time belongs to operators without any measured kernel: they are forecast as
  /// kernels of other operators. Subject: "". Facts: message.
  kUnmeasuredOperators,
  /// The weights have no model for some kernels: `share` of the time comes from the roofline.
  /// Subject: the step; "" for a pass. Facts: kernels.
  kNoModel,
  /// The GPU waits for the host for `share` of the time. Subject: the step; "" for a pass. Facts:
  /// for a step, cuda_graphs (1: in use).
  kHostWait,
  /// `share` of the time of a step over several ranks is exposed communication over links on which
  /// no collective was measured. Subject: the cluster, and how many of its GPUs are used.
  kUnmeasuredLinks,
  /// `share` of the time is communication, in part over PCIe, which was measured on one server
  /// only. Subject: as of kUnmeasuredLinks.
  kOneMeasuredServer,
  /// Experts in low precision take longer than in 16 bits, by `share`. Subject: the step; "" for a
  /// pass. Facts: scheme, dtype, software, device.
  kSlowerExperts,
  /// Text generation in the precision that was asked for is no faster than in 16 bits, by `share`
  /// at most. Subject: "". Facts: dtype, reference_dtype, and ttft_s and reference_ttft_s, or
  /// tpot_s and reference_tpot_s, or all four.
  kSlowerPrecision,
  /// The model does not fit into memory. Subject: device. Facts: needed_bytes, usable_bytes,
  /// device_bytes; largest_batch if it was computed (0: not even one sequence fits); for text
  /// generation, ranks, rule, utilization, prefill if it is a prefill worker, and the changes with
  /// which it fits, if there are any:
  /// tp_that_fits, dtype_that_fits, kv_dtype_that_fits, tokens_that_fit, utilization_that_fits.
  kDoesNotFit,
  /// A step over several ranks leaves only `share` of the memory: less than what the allocator may
  /// lose. Subject: device. Facts: free_bytes.
  kTightMemory,
  /// Prompt or output lengths were given together with a trace, which has its own lengths.
  kLengthsIgnored,
  /// There are more clients than requests. Facts: clients, requests.
  kIdleClients,
  /// The server cannot keep up with the load. Subject: "rate" or "trace". Facts: rate, answered
  /// (requests per second).
  kOverloaded,
  /// The cache of a server holds no sequence of the longest length. Facts: max_model_len,
  /// tokens_that_fit.
  kDoesNotStart,
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
struct LlmForecast;
/// What matters to the numbers of a forecast, given or by default, each in a few words: "bf16
/// (torch_dtype)", "attention flash (PyTorch's SDPA)". Tables show them in a line.
std::vector<std::string> assumptions(const Forecast& forecast);
std::vector<std::string> assumptions(const LlmForecast& forecast);

/// Bytes by what they are for.
struct MemoryParts {
  int64_t weights_bytes = 0;      ///< parameters and buffers
  int64_t gradients_bytes = 0;    ///< of parameters
  int64_t optimizer_bytes = 0;    ///< optimizer states
  int64_t activations_bytes = 0;  ///< computed by the forward pass for the backward pass
  int64_t temporaries_bytes = 0;  ///< other tensors that nodes compute
  int64_t loss_bytes = 0;         ///< logits and other outputs, the loss and its gradient
  int64_t inputs_bytes = 0;
  int64_t cache_bytes = 0;

  int64_t sum() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes +
           temporaries_bytes + loss_bytes + inputs_bytes + cache_bytes;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryParts", "Bytes by what they are for.");
    field("weights_bytes", "bytes", "parameters and buffers", &MemoryParts::weights_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &MemoryParts::optimizer_bytes);
    field("inputs_bytes", "bytes", "inputs of the model", &MemoryParts::inputs_bytes);
    field("cache_bytes", "bytes", "keys, values and states of text generation",
          &MemoryParts::cache_bytes);
    field("gradients_bytes", "bytes", "gradients of the parameters", &MemoryParts::gradients_bytes);
    field("activations_bytes", "bytes",
          "tensors that are kept from the forward pass for the backward pass",
          &MemoryParts::activations_bytes);
    field("temporaries_bytes", "bytes", "other tensors that nodes compute",
          &MemoryParts::temporaries_bytes);
    field("loss_bytes", "bytes", "logits and other outputs, the loss and its gradient",
          &MemoryParts::loss_bytes);
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
  std::string option, value;  ///< "checkpointing", "full"

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("OptionChange", "An option with another value.");
    field("option", "", "name of the option", &OptionChange::option);
    field("value", "", "its value", &OptionChange::value);
  }
};

/// A change of one option, or of several together, and the memory with it.
struct MemoryRemedy {
  std::string option, value;  ///< "checkpointing", "full"
  /// Further options and values; empty if one is enough, or none is.
  std::vector<OptionChange> also;
  int64_t peak_bytes = 0;  ///< of the same batch
  bool fits = false;
  std::optional<int64_t> largest_batch;  ///< that fits; nullopt: none

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryRemedy",
             "A change of one option, or of several together, and the memory with it.");
    field("option", "", "name of the option", &MemoryRemedy::option);
    field("value", "", "its value", &MemoryRemedy::value);
    field("also", "", "further options that are changed together with the first",
          &MemoryRemedy::also);
    field("peak_bytes", "bytes", "memory with the same batch", &MemoryRemedy::peak_bytes);
    field("fits", "", "whether it fits", &MemoryRemedy::fits);
    field("largest_batch", "", "the largest batch that fits", &MemoryRemedy::largest_batch);
  }
};

/// Memory while one node runs.
struct MemoryPoint {
  std::string_view phase;  ///< "forward", "backward" or "optimizer"
  std::string segment;     ///< "h", "head"
  int64_t repetition = 0;  ///< of the segment, from 0
  std::string node;
  MemoryParts parts;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryPoint", "Memory while one operator runs.");
    field("phase", "", "of the pass", &MemoryPoint::phase);
    field("segment", "", "part of the model, e.g. its layers", &MemoryPoint::segment);
    field("repetition", "", "of the segment", &MemoryPoint::repetition);
    field("node", "", "the operator that runs", &MemoryPoint::node);
    field("bytes", "bytes", "the sum of the parts",
          [](const MemoryPoint& x) { return x.parts.sum(); });
    field("parts", "", "what is in memory", &MemoryPoint::parts);
  }
};

/// One repetition of a segment, at its highest node.
struct MemoryRepetition {
  MemoryPoint highest;
  int64_t bytes_after = 0;  ///< at the last node of the repetition

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
  std::string_view part;  ///< a name of kMemoryParts
  int64_t bytes = 0;      ///< of all together
  int64_t count = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryHolder", "Tensors of one name at the peak.");
    field("name", "", "of the tensors", &MemoryHolder::name);
    field("part", "", "what they are for", &MemoryHolder::part);
    field("bytes", "bytes", "of all together", &MemoryHolder::bytes);
    field("count", "", "how many", &MemoryHolder::count);
  }
};

struct MemoryTimeline {
  std::string model, gpu, gpu_name, mode, dtype;
  int64_t batch = 0, seq = 0;
  std::vector<MemoryPoint> points;    ///< a point for each node, in order of execution
  size_t peak_point = 0;              ///< index of the highest one
  std::vector<MemoryHolder> holders;  ///< at the peak, the largest first
  int64_t workspace_bytes = 0;
  int64_t framework_bytes = 0;
  int64_t device_bytes = 0;     ///< what programs see of the device's
  int64_t allocated_bytes = 0;  ///< torch.cuda.max_memory_allocated: peak and workspace
  /// torch.cuda.max_memory_reserved: at least the segments that hold the peak; at most what the
  /// simulated allocator takes from the driver in two steps, without ever giving back.
  int64_t reserved_low_bytes = 0, reserved_high_bytes = 0;
  bool fits = true;  ///< the peak with workspace and framework

  const MemoryPoint* peak() const { return points.empty() ? nullptr : &points[peak_point]; }
  /// Each repetition of each segment.
  std::vector<MemoryRepetition> repetitions() const;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("MemoryTimeline", "Memory over one pass or training step.");
    field("schema_version", "", "of this schema", [](const MemoryTimeline&) { return 1; });
    field("model", "", "name of the model", &MemoryTimeline::model);
    field("gpu", "", "id of the GPU", &MemoryTimeline::gpu);
    field("mode", "", "of the pass", &MemoryTimeline::mode, {"inference", "training"});
    field("batch", "", "sequences", &MemoryTimeline::batch);
    field("seq", "tokens", "length of a sequence", &MemoryTimeline::seq);
    field("dtype", "", "the dtype that was used", &MemoryTimeline::dtype);
    field("peak", "", "the highest point", &MemoryTimeline::peak);
    field("holders", "",
          "tensors in memory at the peak, those of one name together, the largest first",
          &MemoryTimeline::holders);
    field("timeline", "", "each repetition of each segment, at its highest operator",
          &MemoryTimeline::repetitions);
    field("allocated_bytes", "bytes",
          "torch.cuda.max_memory_allocated: blocks in use, with workspaces",
          &MemoryTimeline::allocated_bytes);
    field("reserved_low_bytes", "bytes", "torch.cuda.max_memory_reserved, at least",
          &MemoryTimeline::reserved_low_bytes);
    field("reserved_high_bytes", "bytes",
          "the same by a simulation of the caching allocator over two steps",
          &MemoryTimeline::reserved_high_bytes);
    field("workspace_bytes", "bytes", "workspace of cuBLAS", &MemoryTimeline::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework",
          &MemoryTimeline::framework_bytes);
    field("device_bytes", "bytes", "what programs see of the device's memory",
          &MemoryTimeline::device_bytes);
    field("fits", "", "the peak with workspace and framework", &MemoryTimeline::fits);
  }
};

/// The points of one repetition of a segment in one phase: indices into MemoryTimeline::points.
struct MemoryBlock {
  size_t first = 0, last = 0;
  size_t highest = 0;  ///< the point with the most bytes
};

std::vector<MemoryBlock> memory_blocks(const MemoryTimeline& timeline);

/// One rank of one pipeline stage. Times are sums over the whole step, in seconds: compute, exposed
/// communication and bubble sum up to the latency. Compute: all passes without the collectives
/// inside, copies of gradients, what slows kernels down, and the optimizer.
struct StageForecast {
  int64_t stage = 0;
  int64_t layers = 0;
  double forward_s = 0;  ///< of one micro-batch, also the next
  double backward_s = 0;
  double optimizer_s = 0;
  /// Time that reductions beside the backward pass add: copies of gradients into their buckets and
  /// back, and kernels that are slower while collectives run.
  double gradient_copies_s = 0, slowed_s = 0;
  double compute_s = 0;
  double communication_s = 0;          ///< all collectives and messages, hidden or not
  double exposed_communication_s = 0;  ///< while nothing is computed
  double bubble_s = 0;                 ///< waiting for other stages
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0;
  int64_t activations_bytes = 0;  ///< at most, of all micro-batches in flight
  int64_t peak_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Stage",
             "One rank of one pipeline stage. Compute, exposed communication and bubble sum up to "
             "the latency.");
    field("stage", "", "number of the stage", &StageForecast::stage);
    field("layers", "", "layers of the model on the stage", &StageForecast::layers);
    field("forward_s", "s", "of one micro-batch, with the collectives inside",
          &StageForecast::forward_s);
    field("backward_s", "s", "of one micro-batch, with the collectives inside",
          &StageForecast::backward_s);
    field("optimizer_s", "s", "the optimizer step", &StageForecast::optimizer_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back",
          &StageForecast::gradient_copies_s);
    field("slowed_s", "s", "what reductions that occupy multiprocessors add to the backward pass",
          &StageForecast::slowed_s);
    field("compute_s", "s",
          "all passes without the collectives inside, copies of gradients, what slows kernels "
          "down, and the optimizer",
          &StageForecast::compute_s);
    field("communication_s", "s", "all collectives and messages, hidden or not",
          &StageForecast::communication_s);
    field("exposed_communication_s", "s", "communication while nothing is computed",
          &StageForecast::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages", &StageForecast::bubble_s);
    field("weights_bytes", "bytes", "parameters and buffers", &StageForecast::weights_bytes);
    field("gradients_bytes", "bytes", "gradients of the parameters",
          &StageForecast::gradients_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &StageForecast::optimizer_bytes);
    field("activations_bytes", "bytes", "at most, of all micro-batches in flight",
          &StageForecast::activations_bytes);
    field("peak_bytes", "bytes", "the largest sum over time", &StageForecast::peak_bytes);
  }
};

/// The embedding tables of one rank of a recommendation model.
struct RankTables {
  int64_t rank = 0;
  int64_t parts = 0;   ///< tables and parts of tables
  int64_t bytes = 0;   ///< of their rows and optimizer states
  double lookups = 0;  ///< of a batch
  double forward_s = 0;
  double backward_s = 0;  ///< with the sparse optimizer
  double sent_bytes = 0;  ///< sums that the rank sends, those to itself included

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("RankTables", "The embedding tables of one rank of a recommendation model.");
    field("rank", "", "number of the rank", &RankTables::rank);
    field("parts", "", "tables and parts of tables", &RankTables::parts);
    field("bytes", "bytes", "of their rows and optimizer states", &RankTables::bytes);
    field("lookups", "", "of a batch", &RankTables::lookups);
    field("forward_s", "s", "time of the lookups", &RankTables::forward_s);
    field("backward_s", "s", "with the sparse optimizer", &RankTables::backward_s);
    field("sent_bytes", "bytes", "sums that the rank sends, those to itself included",
          &RankTables::sent_bytes);
  }
};

struct ParallelForecast {
  std::string cluster;  ///< id
  std::string cluster_name;
  int64_t nodes = 1;
  int64_t ranks = 1;
  int64_t micro_batch_size = 1, microbatches = 1;
  int64_t virtual_stages = 1;  ///< parts of the model on each pipeline stage
  int64_t slowest_stage = 0;   ///< that computes longest; the next five are its times
  double communication_s = 0, exposed_communication_s = 0, bubble_s = 0;
  /// Computing time beside passes and optimizer.
  double gradient_copies_s = 0, slowed_s = 0;
  int64_t simulated_ranks = 1;  ///< the others do the same at the same time
  /// What the vocabulary is padded to, and its own size; nullopt: it is not padded.
  std::optional<int64_t> padded_vocab_size;
  int64_t vocab_size = 0;
  std::vector<StageForecast> stages;
  std::vector<RankTables> rank_tables;  ///< of a recommendation model; else empty

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Parallel", "A step over several ranks or micro-batches.");
    field("cluster", "", "id of the cluster", &ParallelForecast::cluster);
    field("nodes", "", "nodes of the cluster that take part", &ParallelForecast::nodes);
    field("ranks", "", "GPUs that take part", &ParallelForecast::ranks);
    field("micro_batch_size", "", "sequences of a micro-batch",
          &ParallelForecast::micro_batch_size);
    field("microbatches", "", "of each data-parallel rank", &ParallelForecast::microbatches);
    field("virtual_stages", "", "parts of the model on each pipeline stage",
          &ParallelForecast::virtual_stages);
    field("slowest_stage", "",
          "the stage that computes longest: the next five are its times, as are forward_s, "
          "backward_s and optimizer_s",
          &ParallelForecast::slowest_stage);
    field("communication_s", "s", "collectives and messages, hidden or not, of the slowest stage",
          &ParallelForecast::communication_s);
    field("exposed_communication_s", "s",
          "communication while nothing is computed, of the slowest stage",
          &ParallelForecast::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages, of the slowest stage",
          &ParallelForecast::bubble_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back, part of the compute "
          "time of the slowest stage",
          &ParallelForecast::gradient_copies_s);
    field("slowed_s", "s",
          "what reductions that occupy multiprocessors add to the backward pass, part of the "
          "compute time of the slowest stage",
          &ParallelForecast::slowed_s);
    field("simulated_ranks", "",
          "ranks that were simulated; the others do the same at the same time",
          &ParallelForecast::simulated_ranks);
    field.if_set("padded_vocab_size", "tokens",
                 "what tensor-parallel ranks divide; left out: the vocabulary as it is",
                 [](const ParallelForecast& p) {
                   return p.padded_vocab_size ? &*p.padded_vocab_size : nullptr;
                 });
    field("stages", "", "one rank of each pipeline stage", &ParallelForecast::stages);
    field.if_set(
        "rank_tables", "",
        "the embedding tables of each rank of a recommendation model; other models have no such "
        "key",
        [](const ParallelForecast& p) { return p.rank_tables.empty() ? nullptr : &p.rank_tables; });
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
  /// measured alone, rocblas or pipeweave.
  std::string software = "pytorch";
  bool warm = false;  ///< the operands are already in L2, as when a benchmark replays the kernel
  std::string clocks = "boost";  ///< "boost", "base" or a number of MHz
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

/// A group of identical kernels, e.g. one per layer. Times are for one of them; `count` says how
/// many there are. `name` points into storage that the forecast and its copies share: do not read
/// it after the last of them is destroyed. The other strings are constants. So rows are cheap to
/// copy.
struct KernelForecast {
  std::string_view name;
  std::string_view op;
  std::string_view phase;  ///< "forward", "backward", "optimizer", "prefill" or "decode"
  std::string_view dtype;
  NamedSizes shape;
  int64_t count = 1;
  double latency_s = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  int64_t flops = 0;
  int64_t recomputed_flops = 0;  ///< of these, work of the forward pass that is done again
  int64_t bytes = 0;
  std::string_view limit;  ///< "compute", "memory", "latency" or "network"
  std::optional<std::pair<int64_t, int64_t>> tile;
  double waves = 0;
  /// The shortest time that the data sheet allows, divided by the forecast.
  double utilization_ratio = 0;
  std::string_view predictor;
  bool extrapolated = false;
  /// The reason for `extrapolated`: the feature that is furthest outside its range, or "model",
  /// "dtype", "scheme", "software", "architecture", "combination", "batch", "backward",
  /// "convolution", "vendor" or "law" (docs/explanation/laws.md).
  std::string_view extrapolated_feature;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Kernel", "A group of identical kernels. Times and work are those of one of them.");
    field("name", "", "name in the model, of the first of identical kernels",
          &KernelForecast::name);
    field("op", "", "operator of 'tilecast ops'", &KernelForecast::op);
    field("phase", "", "the part of the step that runs it", &KernelForecast::phase,
          {"forward", "backward", "optimizer", "vision", "prefill", "decode"});
    field("dtype", "",
          "dtype of the operands, with the dtype of keys and values or the quantization scheme of "
          "weights if it differs",
          &KernelForecast::dtype);
    field("shape", "", "sizes of the kernel, by the names of its type", &KernelForecast::shape);
    field("count", "", "number of identical kernels", &KernelForecast::count);
    field("latency_s", "s", "time of one kernel", &KernelForecast::latency_s);
    field("low_s", "s", "80 % interval", &KernelForecast::low_s);
    field("high_s", "s", "80 % interval", &KernelForecast::high_s);
    field("flops", "FLOP", "work of one kernel", &KernelForecast::flops);
    field("bytes", "bytes", "memory traffic of one kernel", &KernelForecast::bytes);
    field("limit", "", "what limits it", &KernelForecast::limit,
          {"compute", "memory", "latency", "network"});
    field("tile", "",
          "rows and columns of the output that a block computes by the law; not measured: a "
          "library may take others",
          &KernelForecast::tile);
    field("waves", "", "rounds of such blocks over the device", &KernelForecast::waves);
    field("utilization_ratio", "",
          "the shortest time that the data sheet allows, divided by the forecast",
          &KernelForecast::utilization_ratio);
    field("predictor", "", "name of the cost model", &KernelForecast::predictor);
    field("extrapolated", "", "outside the training range", &KernelForecast::extrapolated);
    field.if_set(
        "extrapolated_feature", "",
        "the feature that is furthest outside the training range, or what was not measured; only "
        "if extrapolated",
        [](const KernelForecast& k) { return k.extrapolated ? &k.extrapolated_feature : nullptr; });
  }
};

/// Memory of one rank, in bytes.
struct MemoryForecast {
  /// The largest sum over time, with workspace and framework: at_peak.sum() + workspace_bytes +
  /// framework_bytes. Its parts need not be at their largest then.
  int64_t peak_bytes = 0;
  MemoryParts at_peak;
  std::string peak_phase;  ///< when: "forward", "backward" or "optimizer"
  std::string peak_node;   ///< the node that runs then
  int64_t weights_bytes = 0;
  int64_t gradients_bytes = 0;  ///< of all parameters, without the buckets
  /// DistributedDataParallel's buckets: copies of the gradients for their reduction, a part of
  /// at_peak.gradients_bytes.
  int64_t gradient_buckets_bytes = 0;
  int64_t optimizer_bytes = 0;  ///< states
  /// The largest sum of tensors that the forward and the backward pass compute, and inputs.
  int64_t activations_bytes = 0;
  /// The largest sum of tensors that the optimizer step computes beside its states.
  int64_t optimizer_temporaries_bytes = 0;
  int64_t workspace_bytes = 0;  ///< of cuBLAS
  int64_t framework_bytes = 0;  ///< CUDA context and libraries
  std::string stack;            ///< the software that workspace and framework are of
  int64_t device_bytes = 0;     ///< of the data sheet
  int64_t margin_bytes = 0;     ///< usable_bytes() less the peak; below 0: does not fit
  bool fits = true;
  /// Bytes that the caching allocator takes from the device at most, with workspace and framework,
  /// if it was asked for and the peak fits, but not by much: add_remedies
  /// (src/scenario/remedies.h).
  std::optional<int64_t> reserved_bytes;
  /// Effects of other options, if asked for (add_remedies).
  std::vector<MemoryRemedy> remedies;
  /// The result of `Forecaster::largest_batch`; of a model that fits, if asked for (add_remedies).
  std::optional<int64_t> largest_batch;

  /// The part of the device's memory that programs see.
  int64_t usable_bytes() const { return peak_bytes + margin_bytes; }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Memory", "Memory of one rank.");
    field("peak_bytes", "bytes",
          "the largest sum over time: the parts of at_peak, workspace and framework",
          &MemoryForecast::peak_bytes);
    field("at_peak", "", "what the peak holds", &MemoryForecast::at_peak);
    field("peak_phase", "", "phase of the peak", &MemoryForecast::peak_phase);
    field("peak_node", "", "the operator that runs at the peak", &MemoryForecast::peak_node);
    field("weights_bytes", "bytes", "parameters and buffers", &MemoryForecast::weights_bytes);
    field("gradients_bytes", "bytes", "of all parameters, without the buckets",
          &MemoryForecast::gradients_bytes);
    field("gradient_buckets_bytes", "bytes",
          "DistributedDataParallel's buckets, copies of the gradients for their reduction: "
          "at_peak.gradients_bytes contains them",
          &MemoryForecast::gradient_buckets_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &MemoryForecast::optimizer_bytes);
    field(
        "activations_bytes", "bytes",
        "the largest sum of tensors that the forward and the backward pass compute, and the inputs",
        &MemoryForecast::activations_bytes);
    field("optimizer_temporaries_bytes", "bytes",
          "the largest sum of tensors that the optimizer step computes beside its states",
          &MemoryForecast::optimizer_temporaries_bytes);
    field("workspace_bytes", "bytes", "workspace of cuBLAS", &MemoryForecast::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework",
          &MemoryForecast::framework_bytes);
    field("stack", "", "the software that workspace and framework are of", &MemoryForecast::stack);
    field("device_bytes", "bytes", "memory of the device by its data sheet",
          &MemoryForecast::device_bytes);
    field("usable_bytes", "bytes", "what programs see of the device's memory",
          &MemoryForecast::usable_bytes);
    field("margin_bytes", "bytes", "usable memory less peak; below 0 if it does not fit",
          &MemoryForecast::margin_bytes);
    field("fits", "", "whether the peak does, without fragmentation", &MemoryForecast::fits);
    field("reserved_bytes", "bytes",
          "what the caching allocator takes at most, with workspace and framework, if the peak "
          "hardly fits",
          &MemoryForecast::reserved_bytes);
    field("largest_batch", "", "the largest batch that fits", &MemoryForecast::largest_batch);
    field("remedies", "",
          "if it does not fit: the memory after changing one option, the smallest peak first; then "
          "of several together, if none alone is enough",
          &MemoryForecast::remedies);
  }
};

/// Training on a number of tokens, at the rate of one step.
struct TrainingRun {
  int64_t tokens = 0;
  double steps = 0;
  double days = 0;
  double gpu_hours = 0;  ///< of all GPUs together

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TrainingRun", "Training on a number of tokens, at the rate of one step.");
    field("tokens", "tokens", "the option `tokens`", &TrainingRun::tokens);
    field("steps", "", "of the batch", &TrainingRun::steps);
    field("days", "days", "without restarts, checkpoints or evaluations", &TrainingRun::days);
    field("gpu_hours", "hours", "of all GPUs together", &TrainingRun::gpu_hours);
  }
};

struct Forecast {
  std::string model;
  std::string gpu;       ///< id
  std::string gpu_name;  ///< the product name
  std::string mode;
  int64_t batch = 0;
  int64_t seq = 0;
  /// The sizes of one input, for titles: "seq 512", "pixel_values 3x224x224"; "": it has none that
  /// a request or the config sets.
  std::string input;
  /// The dtype that was used; the schemes of different layers are joined by "+".
  std::string dtype;
  /// Where the dtype comes from: "asked", "default", "graph" (a graph file states it), or the field
  /// or file of the checkpoint that states it ("torch_dtype", "dtype", "quantization_config",
  /// "hf_quant_config.json").
  std::string dtype_source;
  /// The shapes come from a graph file: `batch` and `seq` have no meaning.
  bool fixed_shapes = false;
  double latency_s = 0;
  double latency_low_s = 0;  ///< 80 % interval
  double latency_high_s = 0;
  double kernels_s = 0;    ///< the kernels alone, without waiting for the host
  double host_wait_s = 0;  ///< time that the GPU waits for the host to launch kernels
  /// They sum up to the latency. In a training step over several ranks, they belong to the stage
  /// that computes longest, without communication, and these sum up to it: forward, backward,
  /// optimizer, and of `parallel` gradient_copies_s, slowed_s, exposed_communication_s and
  /// bubble_s. In recommendation models and text generation, passes contain exposed communication.
  double forward_s = 0, backward_s = 0, optimizer_s = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t parameters = 0;
  int64_t model_flops = 0;  ///< `flops` without what is computed again
  /// FLOPs / (latency × the device's peak FLOP/s for the dtype): hardware FLOPs utilization, HFU.
  double utilization_ratio = 0;
  double mfu_ratio = 0;  ///< the same of `model_flops`: model FLOPs utilization
  /// Of training: model FLOPs of one GPU over the latency; and tokens of all GPUs, of models whose
  /// input is tokens.
  std::optional<double> gpu_flops_per_s, tokens_per_s;
  std::optional<TrainingRun> training_run;  ///< if the request states tokens
  MemoryForecast memory;                    ///< over several ranks: of the rank that needs most
  /// Over several ranks: the kernels of one rank of each stage, over all micro-batches.
  std::vector<KernelForecast> kernels;
  std::optional<ParallelForecast> parallel;  ///< over several ranks or micro-batches
  std::shared_ptr<const void> names;  ///< owns the strings that `KernelForecast::name` points to
  std::vector<Warning> warnings;
  Request used;  ///< the request with all defaults filled in

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Forecast", "The forecast of one pass or training step.");
    field("schema_version", "", "of this schema", [](const Forecast&) { return 1; });
    field("model", "", "name of the model", &Forecast::model);
    field("gpu", "", "id of the GPU", &Forecast::gpu);
    field("gpu_name", "", "the product name", &Forecast::gpu_name);
    field("mode", "",
          "inference is one forward pass; training is forward, backward and optimizer step",
          &Forecast::mode, {"inference", "training"});
    field("batch", "", "sequences over all ranks", &Forecast::batch);
    field("seq", "tokens", "length of a sequence", &Forecast::seq);
    field("dtype", "", "the dtype that was used, as in --dtype", &Forecast::dtype);
    field("dtype_source", "",
          "where the dtype comes from: asked, default, graph, or the field or file of the "
          "checkpoint that states it",
          &Forecast::dtype_source);
    field("latency_s", "s", "time of the whole pass", &Forecast::latency_s);
    field("latency_low_s", "s", "80 % interval", &Forecast::latency_low_s);
    field("latency_high_s", "s", "80 % interval", &Forecast::latency_high_s);
    field("host_wait_s", "s", "time that the GPU waits for the host to launch kernels",
          &Forecast::host_wait_s);
    field("forward_s", "s",
          "forward, backward and optimizer sum up to the latency; of a training step over several "
          "ranks, they are those of the stage that computes longest, without communication, and "
          "sum up to the latency with gradient_copies_s, slowed_s, exposed_communication_s and "
          "bubble_s; those of recommendation models contain the communication that is exposed",
          &Forecast::forward_s);
    field("backward_s", "s", "see forward_s", &Forecast::backward_s);
    field("optimizer_s", "s", "see forward_s", &Forecast::optimizer_s);
    field("flops", "FLOP",
          "work of all kernels; over several ranks, of the mean rank, whatever the skew",
          &Forecast::flops);
    field("bytes", "bytes",
          "memory traffic of all kernels; over several ranks, of the mean rank, as without skew",
          &Forecast::bytes);
    field("parameters", "", "parameters of the model", &Forecast::parameters);
    field("model_flops", "FLOP",
          "flops without what is computed again: activation checkpointing, and the scores in the "
          "backward pass of fused attention",
          &Forecast::model_flops);
    field("utilization_ratio", "",
          "HFU, hardware FLOPs utilization: flops / (latency x peak FLOP/s of the device for the "
          "dtype)",
          &Forecast::utilization_ratio);
    field("mfu_ratio", "", "MFU, model FLOPs utilization: the same of model_flops",
          &Forecast::mfu_ratio);
    field("gpu_flops_per_s", "FLOP/s", "of training: model_flops over the latency, of one GPU",
          &Forecast::gpu_flops_per_s);
    field("tokens_per_s", "1/s", "of training, on all GPUs; null: the input is not tokens",
          &Forecast::tokens_per_s);
    field("gpu_tokens_per_s", "1/s", "the same over the number of GPUs",
          [](const Forecast& f) -> std::optional<double> {
            if (!f.tokens_per_s) return std::nullopt;
            return *f.tokens_per_s / static_cast<double>(f.parallel ? f.parallel->ranks : 1);
          });
    field("training_run", "", "training on the option `tokens`; null: not given",
          &Forecast::training_run);
    field("memory", "", "over several ranks: of the rank that needs most", &Forecast::memory);
    field("kernels", "", "over several ranks: of one rank of each stage, over all micro-batches",
          &Forecast::kernels);
    field.flat(&Forecast::parallel);
    field("options", "",
          "the request with all defaults: values by the names of the command-line options (with _ "
          "for -), in their units; options without a value are omitted",
          [](const Forecast& f) { return option_values(f.used); });
    field("assumptions", "",
          "what matters to the numbers, given or by default: dtype and where it comes from, "
          "attention, optimizer and its states, loss, recomputation, fusion, software, clock",
          [](const Forecast& f) { return assumptions(f); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Forecast& f) { return warning_texts(f.warnings); });
    field("warning_codes", "", "code of each warning, in the order of warnings",
          [](const Forecast& f) { return warning_code_names(f.warnings); });
  }
};

/// A time with its 80 % interval, seconds.
struct Estimate {
  double seconds = 0, low_s = 0, high_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Estimate", "A time with its 80 % interval.");
    field("seconds", "s", "forecast", &Estimate::seconds);
    field("low_s", "s", "80 % interval", &Estimate::low_s);
    field("high_s", "s", "80 % interval", &Estimate::high_s);
  }
};

/// One prefill or decode step: its time, its kernels and what limits them.
struct StepForecast {
  Estimate time;
  double host_wait_s = 0;
  /// Share of the kernels' time by what limits them ("compute", "memory", "latency", "network"),
  /// the largest first.
  std::vector<std::pair<std::string, double>> limits;
  std::vector<KernelForecast> kernels;
  std::vector<Warning> warnings;  ///< of this step; also part of the forecast's warnings

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Step", "One prefill or decode step, or one run of the vision tower.");
    field("latency_s", "s", "time of the step",
          [](const StepForecast& x) { return x.time.seconds; });
    field("low_s", "s", "80 % interval", [](const StepForecast& x) { return x.time.low_s; });
    field("high_s", "s", "80 % interval", [](const StepForecast& x) { return x.time.high_s; });
    field("host_wait_s", "s", "time that the GPU waits for the host to launch kernels",
          &StepForecast::host_wait_s);
    field("limits", "", "share of the kernels' time by what limits them", &StepForecast::limits);
    field("kernels", "", "the kernels of the step", &StepForecast::kernels);
  }
};

/// Mean, median and 99th percentile over requests.
struct Distribution {
  Estimate mean, median, p99;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Distribution", "Mean, median and 99th percentile over requests.");
    field("mean", "", "over all requests", &Distribution::mean);
    field("median", "", "of all requests", &Distribution::median);
    field("p99", "", "the 99th percentile", &Distribution::p99);
  }
};

/// Metrics that the clients of a server see, over one part of the run.
struct ServedPart {
  int64_t requests = 0;
  Distribution ttft;  ///< from sending a request to its first token
  Distribution tpot;  ///< (last token - first token) / (output - 1)
  Distribution e2e;   ///< from sending a request to its last token
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< prompt and output tokens

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ServedPart", "What the clients of a server see, over one part of the run.");
    field("requests", "", "number of answered requests", &ServedPart::requests);
    field("time_to_first_token", "", "from sending a request to its first token",
          &ServedPart::ttft);
    field("time_per_output_token", "", "(last token - first token) / (output - 1)",
          &ServedPart::tpot);
    field("end_to_end", "", "from sending a request to its last token", &ServedPart::e2e);
    field("requests_per_s", "1/s", "answered requests", &ServedPart::requests_per_s);
    field("output_tokens_per_s", "1/s", "output tokens", &ServedPart::output_tokens_per_s);
    field("total_tokens_per_s", "1/s", "prompt and output tokens", &ServedPart::total_tokens_per_s);
  }
};

/// The cache of a server on one rank as its software sizes it at the start
/// (docs/explanation/servers.md).
struct CachePool {
  std::string rule;           ///< the software's option: "gpu_memory_utilization", …
  double fraction = 0;        ///< its value
  int64_t visible_bytes = 0;  ///< memory that programs see: without the driver's
  int64_t budget_bytes = 0;   ///< what the rule allows for weights, activations and cache
  int64_t weights_bytes = 0;
  int64_t profile_bytes = 0;    ///< peak of activations that the software measures or assumes
  int64_t non_torch_bytes = 0;  ///< of libraries, counted by the software
  int64_t graphs_bytes = 0;     ///< captured CUDA graphs, beside the budget
  int64_t fixed_bytes = 0;      ///< what the budget is spent on before the cache
  int64_t cache_bytes = 0;      ///< what is left; 0: nothing
  int64_t block_tokens = 0, blocks = 0;
  int64_t tokens = 0;  ///< vLLM's "GPU KV cache size"
  int64_t max_model_len = 0;
  /// vLLM's "Maximum concurrency" for sequences of max_model_len.
  double concurrency = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("CachePool",
             "The cache of a server on one rank as its software sizes it at the start.");
    field("rule", "", "the software's option", &CachePool::rule);
    field("fraction", "", "its value", &CachePool::fraction);
    field("visible_bytes", "bytes", "memory that programs see", &CachePool::visible_bytes);
    field("budget_bytes", "bytes", "what the rule allows for weights, activations and cache",
          &CachePool::budget_bytes);
    field("weights_bytes", "bytes", "weights of one rank", &CachePool::weights_bytes);
    field("profile_bytes", "bytes", "peak of activations that the software measures or assumes",
          &CachePool::profile_bytes);
    field("non_torch_bytes", "bytes", "memory of libraries that the software counts",
          &CachePool::non_torch_bytes);
    field("graphs_bytes", "bytes", "captured CUDA graphs, beside the budget",
          &CachePool::graphs_bytes);
    field("cache_bytes", "bytes", "what is left for the cache", &CachePool::cache_bytes);
    field("block_tokens", "tokens", "tokens of a block", &CachePool::block_tokens);
    field("blocks", "", "blocks of the cache", &CachePool::blocks);
    field("tokens", "tokens", "size of the cache, as vLLM's log has it", &CachePool::tokens);
    field("max_model_len", "tokens", "longest sequence that the server accepts",
          &CachePool::max_model_len);
    field("concurrency", "", "sequences of max_model_len that fit", &CachePool::concurrency);
  }
};

/// The vision tower beside the language model, on one rank.
struct VisionForecast {
  int64_t parameters = 0;     ///< of the whole tower
  int64_t weights_bytes = 0;  ///< part of the forecast's weights_bytes
  int64_t images = 0;         ///< of each prompt; 0: the tower does not run
  int64_t image_side = 0;     ///< pixels, after the processor's resizing
  int64_t image_tokens = 0;   ///< of one image
  int64_t prompt_tokens = 0;  ///< of all images of a prompt
  int64_t together = 0;       ///< images that the tower gets at once, at most
  Estimate time;              ///< for all prompts, part of `ttft`
  StepForecast step;          ///< one run of the tower, with `together` images

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Vision", "The vision tower beside the language model, on one rank.");
    field("parameters", "",
          "of the whole tower with its projector, beside the language model's parameters",
          &VisionForecast::parameters);
    field("weights_bytes", "bytes",
          "of one rank; part of the memory's weights_bytes, also without images",
          &VisionForecast::weights_bytes);
    field("images", "", "of each prompt; 0: the tower does not run", &VisionForecast::images);
    field("image_side", "pixels", "after the processor's resizing; 0: no images",
          &VisionForecast::image_side);
    field("image_tokens", "tokens", "that one image adds to the prompt",
          &VisionForecast::image_tokens);
    field("prompt_tokens", "tokens", "that all images add to a prompt",
          &VisionForecast::prompt_tokens);
    field("images_together", "", "images that the tower gets at once, at most",
          &VisionForecast::together);
    field("time", "", "of the tower for all prompts; part of time_to_first_token",
          &VisionForecast::time);
    field("step", "", "one run of the tower; null: no images",
          [](const VisionForecast& x) { return x.images > 0 ? &x.step : nullptr; });
  }
};

/// Speculative decoding.
struct DraftForecast {
  std::string model;           ///< that makes the drafts; "": the model's own layers
  int64_t tokens = 0;          ///< of a draft
  double acceptance_rate = 0;  ///< of a token, if those before it are accepted
  double tokens_per_step = 1;  ///< that a step of a sequence writes on average
  Estimate time;               ///< of the drafts of one step, part of the step's time
  int64_t weights_bytes = 0;   ///< of one rank, part of the forecast's

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Drafts", "Speculative decoding.");
    field("model", "", "the model that makes the drafts; null: the model's own layers",
          [](const DraftForecast& x) { return x.model.empty() ? nullptr : &x.model; });
    field("tokens", "tokens", "of a draft", &DraftForecast::tokens);
    field("acceptance_rate", "", "of a token, if those before it are accepted",
          &DraftForecast::acceptance_rate);
    field("tokens_per_step", "tokens", "that a step of a sequence writes on average",
          &DraftForecast::tokens_per_step);
    field("time", "", "of the drafts of one step, part of the step's time", &DraftForecast::time);
    field("weights_bytes", "bytes", "of one rank, part of the memory's weights_bytes",
          &DraftForecast::weights_bytes);
  }
};

/// The workers that compute prompts only.
struct PrefillPoolForecast {
  int64_t workers = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;  ///< of each
  int64_t gpus = 0;                        ///< of each
  int64_t peak_bytes = 0;                  ///< memory of one of its ranks
  int64_t cache_tokens = 0;                ///< of one worker
  double busy_share = 0;                   ///< of the time that a worker works
  /// From the end of a prefill to the other pool's getting the cache: of a prompt of mean length on
  /// an idle link, and the mean of all requests, which wait for each other.
  double transfer_s = 0, mean_transfer_s = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("PrefillPool", "The workers that compute prompts only.");
    field("workers", "", "how many", &PrefillPoolForecast::workers);
    field("tp", "", "of each", &PrefillPoolForecast::tp);
    field("pp", "", "of each", &PrefillPoolForecast::pp);
    field("dp", "", "of each", &PrefillPoolForecast::dp);
    field("ep", "", "of each", &PrefillPoolForecast::ep);
    field("gpus", "", "of each", &PrefillPoolForecast::gpus);
    field("peak_bytes", "bytes", "memory of one of their ranks", &PrefillPoolForecast::peak_bytes);
    field("cache_tokens", "tokens", "capacity of one worker's cache",
          &PrefillPoolForecast::cache_tokens);
    field("busy_share", "", "of the time that a worker works", &PrefillPoolForecast::busy_share);
    field("transfer_s", "s",
          "from the end of a prefill of mean length to the other pool's having the cache, on an "
          "idle link",
          &PrefillPoolForecast::transfer_s);
    field("mean_transfer_s", "s", "the same, mean of all requests, with waiting for the link",
          &PrefillPoolForecast::mean_transfer_s);
  }
};

/// A decode step with `kv_tokens` tokens in the cache of each sequence.
struct CoursePoint {
  int64_t kv_tokens = 0;
  Estimate time;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("CoursePoint", "A decode step at one length of the cache.");
    field("kv_tokens", "tokens", "in the cache of each sequence", &CoursePoint::kv_tokens);
    field.flat(&CoursePoint::time);
  }
};

/// Memory of one rank. A server reserves all memory that it may use for its cache.
struct LlmMemory {
  int64_t peak_bytes = 0, weights_bytes = 0, cache_bytes = 0, activations_bytes = 0;
  int64_t workspace_bytes = 0, framework_bytes = 0, overhead_bytes = 0;
  int64_t device_bytes = 0, usable_bytes = 0;
  bool fits = true;
  int64_t largest_batch = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("LlmMemory", "Memory of one rank of text generation.");
    field("peak_bytes", "bytes", "peak memory of one rank", &LlmMemory::peak_bytes);
    field("weights_bytes", "bytes", "parameters and buffers", &LlmMemory::weights_bytes);
    field("gradients_bytes", "bytes", "0: none", [](const LlmMemory&) { return 0; });
    field("optimizer_bytes", "bytes", "0: none", [](const LlmMemory&) { return 0; });
    field("cache_bytes", "bytes", "KV cache", &LlmMemory::cache_bytes);
    field("activations_bytes", "bytes", "tensors that a step computes",
          &LlmMemory::activations_bytes);
    field("workspace_bytes", "bytes", "workspace of libraries", &LlmMemory::workspace_bytes);
    field("framework_bytes", "bytes", "context and code of the framework",
          &LlmMemory::framework_bytes);
    field("overhead_bytes", "bytes", "workspace plus framework", &LlmMemory::overhead_bytes);
    field("device_bytes", "bytes", "memory of the device by its data sheet",
          &LlmMemory::device_bytes);
    field("usable_bytes", "bytes", "memory that may be used (gpu_memory_utilization)",
          &LlmMemory::usable_bytes);
    field("fits", "", "whether the static batch fits; for a server, the longest request",
          &LlmMemory::fits);
    field("largest_batch", "", "how many sequences of full length fit", &LlmMemory::largest_batch);
  }
};

struct LlmForecast {
  std::string model, gpu, gpu_name, dtype, kv_dtype, software;
  std::string dtype_source;  ///< as in Forecast
  /// `prompt`: without the tokens of images.
  int64_t prompt = 0, output = 0, batch = 0;
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  int64_t ranks = 1;    ///< GPUs of one server: tp · pp · dp
  int64_t gpus = 1;     ///< of all servers, prefill workers included
  std::string cluster;  ///< id; "": a single GPU
  bool continuous = false;
  bool lengths_vary = false;  ///< the lengths of requests vary: `prompt` and `output` are means

  /// Static batch: time from the first prompt token to the last output token; equals `request`.
  /// Server: mean time from sending a request to its last token, over all requests.
  Estimate latency;

  // For a static batch: the batch. For a server: a single request of mean lengths on an idle
  // server.
  /// Time to first token: from the arrival of the prompts until all sequences have a token.
  Estimate ttft;
  Estimate tpot;            ///< time per output token: mean over the tokens after the first
  Estimate request;         ///< from the arrival to the last token
  double tokens_per_s = 0;  ///< output tokens of all sequences
  /// Work of one rank over prefill and decode; with a pipeline the mean over its stages. The rank
  /// is one of the data-parallel rank with the most sequences, and of the expert-parallel one with
  /// the most tokens, whose work grows with the skew (Forecast::flops is of the mean rank).
  int64_t flops = 0, bytes = 0;
  double communication_s = 0;  ///< of that rank with others; not overlapped with computation
  /// All kernels of one rank, with a pipeline of one of each stage; `phase` is "vision", "prefill"
  /// or "decode". The output is divided into up to five parts; the decode step in the middle of a
  /// part stands for all steps of that part.
  std::vector<KernelForecast> kernels;
  std::shared_ptr<const void> names;  ///< owns the strings that `KernelForecast::name` points to
  /// FLOPs / (latency × the device's peak FLOP/s for the compute dtype). Server: FLOPs of a request
  /// × requests per second / that peak.
  double utilization_ratio = 0;
  /// Time of one decode step in the middle of each part, with the tokens in each sequence's cache.
  std::vector<CoursePoint> course;
  StepForecast prefill;                  ///< the prefill step with the most tokens
  StepForecast decode;                   ///< the step in the middle of the output
  std::optional<VisionForecast> vision;  ///< nullopt: the model has none, or it is not forecast
  std::optional<DraftForecast> drafts;   ///< nullopt: no speculative decoding

  int64_t parameters = 0;         ///< of the language model, which names of models count
  int64_t active_parameters = 0;  ///< parameters that one token uses, embedding table included
  /// Active parameters without embedding tables that are only looked up.
  int64_t multiplied_parameters = 0;
  /// Per sequence of a decode step right after the prompt, attention included.
  int64_t flops_per_token = 0;
  int64_t attention_flops_per_token = 0;
  /// Over all ranks, each head counted once: what a token adds to the cache while all layers keep
  /// it, a compressed cache its share of an entry.
  int64_t kv_bytes_per_token = 0;
  /// The part of these bytes in layers that keep the last tokens only; and how many tokens they
  /// keep.
  int64_t window_bytes_per_token = 0, window_tokens = 0;
  int64_t state_bytes_per_sequence = 0;  ///< of recurrent layers, over all ranks

  /// Memory of one rank. A server reserves all memory that it may use for its cache.
  int64_t weights_bytes = 0, cache_bytes = 0, activations_bytes = 0;
  /// overhead: the sum of both.
  int64_t workspace_bytes = 0, framework_bytes = 0, overhead_bytes = 0;
  int64_t peak_bytes = 0, device_bytes = 0;
  /// Bytes that may be used: for a server, the rule's budget and what lies beside it, at most what
  /// programs see. The peak is above it where the model does not fit.
  int64_t usable_bytes = 0;
  bool fits = true;           ///< whether the static batch fits; for a server, the longest request
  int64_t largest_batch = 0;  ///< how many sequences of full length fit

  std::optional<CachePool> pool;  ///< nullopt: the software does not serve (PyTorch)

  /// Results for a server with continuous batching.
  struct Serving {
    double rate = 0;          ///< requested load in requests/s; 0: not given
    int64_t concurrency = 0;  ///< requested number of clients; 0: not given
    bool trace = false;       ///< the requests came from a file
    int64_t gpus = 1;         ///< of all servers, prefill workers included
    int64_t max_num_seqs = 0, max_num_batched_tokens = 0;  ///< of one data-parallel rank
    int64_t cache_tokens = 0;    ///< capacity of the cache of one server in tokens
    int64_t most_sequences = 0;  ///< how many sequences of the longest length fit into it
    /// Maximum number of requests that waited or ran at the same time.
    int64_t most_in_flight = 0;
    ServedPart all;
    /// Metrics of the steady state: without the first and the last `most_in_flight` requests, which
    /// saw the server fill up or empty. nullopt if too few requests are left.
    std::optional<ServedPart> steady;
    /// The steady state, or the whole run where there is none.
    const ServedPart& steady_or_all() const { return steady ? *steady : all; }
    /// Requests per second that met the limits on TTFT and TPOT, over the whole run.
    std::optional<double> goodput_requests_per_s;
    std::optional<double> ttft_limit_s, tpot_limit_s;
    /// Sequences that decode in a step of one server; share of the time that a server works.
    double mean_batch = 0, busy_share = 0;
    double cache_use = 0;  ///< mean share of the cache blocks in use
    int64_t preemptions = 0;
    bool keeps_up = true;
    int64_t replicas = 1;
    std::optional<PrefillPoolForecast> prefill_pool;

    std::optional<double> goodput_per_gpu() const {
      if (!goodput_requests_per_s) return std::nullopt;
      return *goodput_requests_per_s / static_cast<double>(gpus);
    }

    template <typename Fields>
    static void fields(Fields& field) {
      field.is("Serving", "A server under load.");
      field("rate", "1/s", "requested load in requests; null: not given",
            [](const Serving& x) { return x.rate > 0 ? &x.rate : nullptr; });
      field("concurrency", "", "requested number of clients; null: not given",
            [](const Serving& x) { return x.concurrency > 0 ? &x.concurrency : nullptr; });
      field("trace", "", "the requests came from a file", &Serving::trace);
      field("requests", "", "number of simulated requests",
            [](const Serving& x) { return x.all.requests; });
      field("max_num_seqs", "", "sequences in a step of one data-parallel rank, at most",
            &Serving::max_num_seqs);
      field("max_num_batched_tokens", "tokens", "in a step of one data-parallel rank, at most",
            &Serving::max_num_batched_tokens);
      field("cache_tokens", "tokens", "capacity of the cache of one server",
            &Serving::cache_tokens);
      field("most_sequences", "", "how many sequences of the longest length fit into the cache",
            &Serving::most_sequences);
      field("most_in_flight", "", "maximum number of requests that waited or ran at the same time",
            &Serving::most_in_flight);
      field("all", "", "all requests", &Serving::all);
      field("steady", "",
            "without the first and the last most_in_flight requests, which saw the server fill up "
            "or empty; null: too few requests are left",
            &Serving::steady);
      field("requests_per_s", "1/s", "answered requests",
            [](const Serving& x) { return x.all.requests_per_s; });
      field("tokens_per_s", "1/s", "output tokens",
            [](const Serving& x) { return x.all.output_tokens_per_s; });
      field("goodput_requests_per_s", "1/s",
            "requests that met the limits, over the whole run; null: no limits",
            &Serving::goodput_requests_per_s);
      field("gpus", "", "of all servers, prefill workers included", &Serving::gpus);
      field("replicas", "", "equal servers behind a router", &Serving::replicas);
      field("prefill_pool", "", "workers that compute prompts only", &Serving::prefill_pool);
      field("tokens_per_s_per_gpu", "1/s", "output tokens", [](const Serving& x) {
        return x.all.output_tokens_per_s / static_cast<double>(x.gpus);
      });
      field("total_tokens_per_s_per_gpu", "1/s", "prompt and output tokens", [](const Serving& x) {
        return x.all.total_tokens_per_s / static_cast<double>(x.gpus);
      });
      field("goodput_requests_per_s_per_gpu", "1/s", "requests that met the limits",
            &Serving::goodput_per_gpu);
      field("ttft_s", "s", "limit on the time to first token", &Serving::ttft_limit_s);
      field("tpot_s", "s", "limit on the time per output token", &Serving::tpot_limit_s);
      field("mean_batch", "", "mean number of sequences in a decode step", &Serving::mean_batch);
      field("busy_share", "", "share of the time that the server computes", &Serving::busy_share);
      field("cache_use", "", "mean share of the cache in use", &Serving::cache_use);
      field("preemptions", "", "sequences that were put back for lack of cache",
            &Serving::preemptions);
      field("keeps_up", "", "the queue does not grow without bound", &Serving::keeps_up);
    }
  };
  std::optional<Serving> serving;  ///< nullopt if the longest request does not fit

  std::vector<Warning> warnings;
  Request used;  ///< the request with all defaults filled in

  LlmMemory memory() const {
    return {.peak_bytes = peak_bytes,
            .weights_bytes = weights_bytes,
            .cache_bytes = cache_bytes,
            .activations_bytes = activations_bytes,
            .workspace_bytes = workspace_bytes,
            .framework_bytes = framework_bytes,
            .overhead_bytes = overhead_bytes,
            .device_bytes = device_bytes,
            .usable_bytes = usable_bytes,
            .fits = fits,
            .largest_batch = largest_batch};
  }
  /// `value` of a forecast over several ranks; else nullopt.
  template <typename T>
  std::optional<T> if_ranks(const T& value) const {
    return ranks > 1 ? std::optional<T>(value) : std::nullopt;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("LlmForecast", "The forecast of text generation.");
    field("schema_version", "", "of this schema", [](const LlmForecast&) { return 1; });
    field("model", "", "name of the model", &LlmForecast::model);
    field("gpu", "", "id of the GPU", &LlmForecast::gpu);
    field("gpu_name", "", "the product name", &LlmForecast::gpu_name);
    field("mode", "", "inference", [](const LlmForecast&) { return std::string_view("inference"); },
          {"inference"});
    field("schedule", "", "a static batch, or a server with continuous batching",
          [](const LlmForecast& x) {
            return std::string_view(x.continuous ? "continuous" : "static");
          },
          {"static", "continuous"});
    field("prompt", "tokens",
          "length of the prompt, without images; the mean for a server with varying lengths",
          &LlmForecast::prompt);
    field("output", "tokens", "length of the output, including the first token",
          &LlmForecast::output);
    field("batch", "", "sequences in the batch", &LlmForecast::batch);
    field("seq", "tokens", "prompt, images and output", [](const LlmForecast& x) {
      return x.prompt + (x.vision ? x.vision->prompt_tokens : 0) + x.output;
    });
    field("tp", "", "tensor-parallel ranks, which share each layer", &LlmForecast::tp);
    field("pp", "", "pipeline stages, which share the layers", &LlmForecast::pp);
    field("dp", "", "data-parallel ranks of attention in one server", &LlmForecast::dp);
    field("ep", "", "expert-parallel ranks", &LlmForecast::ep);
    field("gpus", "", "GPUs of all servers, prefill workers included", &LlmForecast::gpus);
    field("dtype", "", "dtype or quantization scheme of the weights", &LlmForecast::dtype);
    field("dtype_source", "",
          "where the dtype comes from: asked, default, graph, or the field or file of the "
          "checkpoint that states it",
          &LlmForecast::dtype_source);
    field("kv_dtype", "", "dtype of the KV cache", &LlmForecast::kv_dtype);
    field("software", "", "whose kernels and scheduler: a value of --software",
          &LlmForecast::software);
    field("latency_s", "s",
          "static: from the first prompt token to the last output token of the batch; continuous: "
          "mean end-to-end time of a request",
          [](const LlmForecast& x) { return x.latency.seconds; });
    field("latency_low_s", "s", "80 % interval",
          [](const LlmForecast& x) { return x.latency.low_s; });
    field("latency_high_s", "s", "80 % interval",
          [](const LlmForecast& x) { return x.latency.high_s; });
    field("forward_s", "s", "the time of the request",
          [](const LlmForecast& x) { return x.request.seconds; });
    field("backward_s", "s", "0: none", [](const LlmForecast&) { return 0.0; });
    field("optimizer_s", "s", "0: none", [](const LlmForecast&) { return 0.0; });
    field("time_to_first_token", "",
          "from the arrival of the prompts until all sequences have a token; of a server, of a "
          "single request of mean lengths when idle, as the next two",
          &LlmForecast::ttft);
    field("time_per_output_token", "", "mean over the tokens after the first", &LlmForecast::tpot);
    field("request", "", "from the arrival to the last token", &LlmForecast::request);
    field("course", "", "time of a decode step by the length of the cache", &LlmForecast::course);
    field("tokens_per_s", "1/s", "output tokens of all sequences", &LlmForecast::tokens_per_s);
    field("tokens_per_s_per_gpu", "1/s", "output tokens of all sequences, per GPU of one server",
          [](const LlmForecast& x) { return x.tokens_per_s / static_cast<double>(x.ranks); });
    field("flops", "FLOP",
          "work of one rank, with `skew` of the one with the busiest experts; with a pipeline the "
          "mean over its stages",
          &LlmForecast::flops);
    field("bytes", "bytes", "memory traffic of one rank", &LlmForecast::bytes);
    field("utilization_ratio", "",
          "FLOPs / (latency x peak FLOP/s of the device for the compute dtype)",
          &LlmForecast::utilization_ratio);
    field("parameters", "", "of the language model, which names of models count",
          &LlmForecast::parameters);
    field("active_parameters", "", "parameters that one token uses",
          &LlmForecast::active_parameters);
    field("multiplied_parameters", "",
          "active parameters without embedding tables that are only looked up",
          &LlmForecast::multiplied_parameters);
    field("flops_per_token", "FLOP",
          "of a sequence in a decode step right after the prompt, attention included",
          &LlmForecast::flops_per_token);
    field("attention_flops_per_token", "FLOP", "of these, in attention",
          &LlmForecast::attention_flops_per_token);
    field("kv_bytes_per_token", "bytes",
          "KV cache over all ranks: what a token adds while all layers keep it",
          &LlmForecast::kv_bytes_per_token);
    field("window_bytes_per_token", "bytes",
          "of these, the bytes of layers that keep the last tokens only",
          &LlmForecast::window_bytes_per_token);
    field("window_tokens", "tokens", "how many tokens these keep at most; 0: there are none",
          &LlmForecast::window_tokens);
    field("state_bytes_per_sequence", "bytes", "of recurrent layers, over all ranks",
          &LlmForecast::state_bytes_per_sequence);
    field("memory", "", "memory of one rank", &LlmForecast::memory);
    field("cache_pool", "",
          "the cache of a server on one rank as its software sizes it; null for PyTorch",
          &LlmForecast::pool);
    field("vision", "",
          "the vision tower beside the language model; null: the model has none, or it is not "
          "forecast",
          &LlmForecast::vision);
    field("drafts", "", "speculative decoding; null: none", &LlmForecast::drafts);
    field("prefill", "", "the prefill step with the most tokens", &LlmForecast::prefill);
    field("decode", "", "the step in the middle of the output", &LlmForecast::decode);
    field("kernels", "",
          "all kernels of one rank, with a pipeline of one of each stage; the decode step in the "
          "middle of each part of the output stands for all of that part",
          &LlmForecast::kernels);
    field.if_set("ranks", "",
                 "GPUs of one server: tp x pp x dp; of one GPU left out, as the next four",
                 [](const LlmForecast& x) { return x.if_ranks(x.ranks); });
    field.if_set("cluster", "", "id of the cluster", [](const LlmForecast& x) {
      return x.ranks > 1 && !x.cluster.empty() ? &x.cluster : nullptr;
    });
    field.if_set("communication_s", "s", "of one rank with others; not overlapped with computation",
                 [](const LlmForecast& x) { return x.if_ranks(x.communication_s); });
    field.if_set("exposed_communication_s", "s", "the same",
                 [](const LlmForecast& x) { return x.if_ranks(x.communication_s); });
    field.if_set("bubble_s", "s", "0: none", [](const LlmForecast& x) { return x.if_ranks(0.0); });
    field("serving", "",
          "a server under load; null: a static batch, or the longest request does not fit",
          &LlmForecast::serving);
    field("options", "",
          "the request with all defaults: values by the names of the command-line options (with _ "
          "for -), in their units; options without a value are omitted",
          [](const LlmForecast& x) { return option_values(x.used); });
    field(
        "assumptions", "",
        "what matters to the numbers, given or by default: dtypes of weights and cache, software, "
        "steps, share of the memory, load of experts, clock",
        [](const LlmForecast& x) { return assumptions(x); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const LlmForecast& x) { return warning_texts(x.warnings); });
    field("warning_codes", "", "code of each warning, in the order of warnings",
          [](const LlmForecast& x) { return warning_code_names(x.warnings); });
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
  /// "accelerator", "host", or "store": applied as the layer before it stores its outputs, without
  /// cycles of its own.
  std::string where;
  std::string kind;   ///< of the layer: "product", "depthwise", "pooling", "elementwise"
  std::string sizes;  ///< "k 64, c 256, p 56, q 56"
  std::vector<std::string> fused;  ///< operators that its store applies
  std::string mapping;
  bool mapping_by_name = false;  ///< a file of mappings states it for this layer only
  int64_t count = 1;
  double cycles = 0;  ///< of one
  double low_cycles = 0, high_cycles = 0;
  bool converged = true;
  double instructions = 0;
  int64_t evaluated = 0;           ///< instructions that were run to know the rest
  int64_t macs = 0;                ///< of one; the host's included
  int64_t bytes = 0;               ///< moved to and from memory outside the chip
  std::optional<double> energy_j;  ///< of one; nullopt: the description states none
  std::string bound;  ///< "compute", "load", "store", "memory", "fetch", "dependency" or "host"
  std::vector<ObjectUse> use;

  std::vector<std::pair<std::string, double>> use_by_object() const {
    std::vector<std::pair<std::string, double>> ratios;
    for (const ObjectUse& one : use) ratios.emplace_back(one.object, one.ratio);
    return ratios;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorLayer", "A layer on an accelerator; identical layers are one row.");
    field("name", "", "in the model", &AcceleratorLayer::name);
    field("op", "", "operator", &AcceleratorLayer::op);
    field("where", "",
          "\"store\": applied as the layer before it stores its outputs, without cycles of its own",
          &AcceleratorLayer::where, {"accelerator", "host", "store"});
    field("count", "", "number of identical layers", &AcceleratorLayer::count);
    field("cycles", "cycles", "of one, as the next", &AcceleratorLayer::cycles);
    field("low_cycles", "cycles", "at least, of a layer without a fixed point",
          &AcceleratorLayer::low_cycles);
    field("high_cycles", "cycles", "at most", &AcceleratorLayer::high_cycles);
    field("converged", "", "whether it reached a fixed point", &AcceleratorLayer::converged);
    field("instructions", "", "of one", &AcceleratorLayer::instructions);
    field("evaluated_instructions", "", "that were run to know the rest",
          &AcceleratorLayer::evaluated);
    field("macs", "", "multiplications of one, those of the host as well", &AcceleratorLayer::macs);
    field("bytes", "bytes", "moved to and from memory outside the chip", &AcceleratorLayer::bytes);
    field("energy_j", "J", "of one; null: the description states no energy",
          &AcceleratorLayer::energy_j);
    field("bound", "", "what limits it", &AcceleratorLayer::bound,
          {"compute", "load", "store", "memory", "fetch", "dependency", "host", ""});
    field("mapping", "", "how it is tiled and ordered", &AcceleratorLayer::mapping);
    field("kind", "", "of the layer", &AcceleratorLayer::kind);
    field("sizes", "", "of its loops", &AcceleratorLayer::sizes);
    field("fused", "", "operators that its store applies", &AcceleratorLayer::fused);
    field("utilization_ratio", "", "share of the time that each object is busy",
          &AcceleratorLayer::use_by_object);
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
  double cycles = 0, low_cycles = 0, high_cycles = 0;
  double host_cycles = 0;
  int64_t macs = 0;  ///< all
  int64_t host_macs = 0;
  int64_t pe_count = 0;
  double on_chip_bytes = 0;
  double energy_j = 0;
  bool has_energy = false;  ///< an object of the description states its energy
  double instructions = 0;
  int64_t evaluated = 0;
  std::vector<AcceleratorLayer> layers;
  std::vector<std::string> warnings;

  double latency_s() const { return cycles / clock_hz; }
  double utilization_ratio() const {
    const double peak = cycles * static_cast<double>(pe_count);
    return peak > 0 ? static_cast<double>(macs - host_macs) / peak : 0;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorForecast", "The forecast of a forward pass on an accelerator.");
    field("schema_version", "", "of this schema", [](const AcceleratorForecast&) { return 1; });
    field("model", "", "name of the model", &AcceleratorForecast::model);
    field("gpu", "", "id of the accelerator", &AcceleratorForecast::accelerator);
    field("gpu_name", "", "its name", &AcceleratorForecast::accelerator_name);
    field("parameters", "", "of the description", &AcceleratorForecast::parameters);
    field("dataflow", "", "of the description", &AcceleratorForecast::dataflow);
    field("dtype", "", "of operands", &AcceleratorForecast::operand_dtype);
    field("accumulator_dtype", "", "of sums", &AcceleratorForecast::accumulator_dtype);
    field("mode", "", "inference",
          [](const AcceleratorForecast&) { return std::string_view("inference"); }, {"inference"});
    field("batch", "", "sequences", &AcceleratorForecast::batch);
    field("seq", "tokens", "length of a sequence", &AcceleratorForecast::seq);
    field("clock_hz", "Hz", "of the accelerator", &AcceleratorForecast::clock_hz);
    field("cycles", "cycles", "of the pass", &AcceleratorForecast::cycles);
    field("low_cycles", "cycles", "at least", &AcceleratorForecast::low_cycles);
    field("high_cycles", "cycles", "at most", &AcceleratorForecast::high_cycles);
    field("host_cycles", "cycles", "of operators that the accelerator does not run",
          &AcceleratorForecast::host_cycles);
    field("latency_s", "s", "time of the pass", &AcceleratorForecast::latency_s);
    field("latency_low_s", "s", "at least",
          [](const AcceleratorForecast& x) { return x.low_cycles / x.clock_hz; });
    field("latency_high_s", "s", "at most",
          [](const AcceleratorForecast& x) { return x.high_cycles / x.clock_hz; });
    field("macs", "", "multiplications of the pass", &AcceleratorForecast::macs);
    field("host_macs", "", "of these, on the host", &AcceleratorForecast::host_macs);
    field("pe_count", "", "multipliers", &AcceleratorForecast::pe_count);
    field("on_chip_bytes", "bytes", "memories of the chip", &AcceleratorForecast::on_chip_bytes);
    field("energy_j", "J", "of the pass; null: the description states no energy",
          [](const AcceleratorForecast& x) { return x.has_energy ? &x.energy_j : nullptr; });
    field("utilization_ratio", "", "multiplications / (cycles x multipliers)",
          &AcceleratorForecast::utilization_ratio);
    field("instructions", "", "of the pass", &AcceleratorForecast::instructions);
    field("evaluated_instructions", "", "that were run to know the rest",
          &AcceleratorForecast::evaluated);
    field("layers", "", "rows of identical layers", &AcceleratorForecast::layers);
    field("warnings", "", "sentences that readers of the numbers should know",
          &AcceleratorForecast::warnings);
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
  double latency_s = 0;  ///< the time
  double low_s = 0;      ///< 80 % interval
  double high_s = 0;
  std::string_view algorithm;
  double start_s = 0;        ///< start-up and steps: what more bandwidth does not shorten
  double transfer_s = 0;     ///< the rest: the bytes
  double link_bytes = 0;     ///< that one rank sends inside its node
  double network_bytes = 0;  ///< that a node's ranks of the group send to other nodes
  /// As `nccl-tests` define it: comparable with the rate of the links.
  double bus_bytes_per_s = 0;
  bool extrapolated = false;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Collective", "The time of one collective.");
    field("collective", "", "what it does", &CollectiveForecast::kind);
    field("cluster", "", "id of the cluster", &CollectiveForecast::cluster);
    field("dtype", "", "of the elements", &CollectiveForecast::dtype);
    field("ranks", "", "GPUs that take part", &CollectiveForecast::ranks);
    field("ranks_per_node", "", "of these on each node", &CollectiveForecast::ranks_per_node);
    field("nodes", "", "that take part", &CollectiveForecast::nodes);
    field("bytes", "bytes", "of the whole buffer", &CollectiveForecast::bytes);
    field("latency_s", "s", "the time", &CollectiveForecast::latency_s);
    field("low_s", "s", "80 % interval", &CollectiveForecast::low_s);
    field("high_s", "s", "80 % interval", &CollectiveForecast::high_s);
    field("algorithm", "", "of the library", &CollectiveForecast::algorithm);
    field("start_s", "s", "start-up and steps", &CollectiveForecast::start_s);
    field("transfer_s", "s", "the bytes: latency_s less start_s", &CollectiveForecast::transfer_s);
    field("bus_bytes_per_s", "bytes/s", "as nccl-tests define it",
          &CollectiveForecast::bus_bytes_per_s);
    field("link_bytes", "bytes", "that one rank sends inside its node",
          &CollectiveForecast::link_bytes);
    field("network_bytes", "bytes", "that a node's ranks of the group send to other nodes",
          &CollectiveForecast::network_bytes);
    field("extrapolated", "", "outside the training range", &CollectiveForecast::extrapolated);
  }
};

/// Seconds of a step that tables cause: their sum is what a placement is judged by.
struct ShardCost {
  double forward_s = 0;   ///< of the slowest rank
  double backward_s = 0;  ///< of the slowest rank, with the optimizer
  double exchange_s = 0;  ///< of sums and of their gradients
  double reduce_s = 0;    ///< gradients of replicated tables

  double total_s() const { return forward_s + backward_s + exchange_s + reduce_s; }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardCost", "Seconds of a step that tables cause.");
    field("forward_s", "s", "of the slowest rank", &ShardCost::forward_s);
    field("backward_s", "s", "of the slowest rank, with the sparse optimizer",
          &ShardCost::backward_s);
    field("exchange_s", "s", "all-to-all of sums, and of their gradients", &ShardCost::exchange_s);
    field("reduce_s", "s", "all-reduces of the gradients of replicated tables",
          &ShardCost::reduce_s);
    field("total_s", "s", "the sum: what a placement is judged by", &ShardCost::total_s);
  }
};

/// Where a table is.
struct ShardedTable {
  std::string name;
  std::string_view way;       ///< "table_wise", "column_wise", "row_wise" or "replicated"
  int64_t rows = 0, dim = 0;  ///< of the whole table
  std::string reuse;          ///< how its rows repeat: a name of the file, or "uniform"
  int64_t bytes = 0;          ///< of a part, with optimizer states
  double forward_s = 0;       ///< of a part, also the next
  double backward_s = 0;
  std::vector<int64_t> ranks;  ///< one for each part

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardedTable", "Where a table is.");
    field("name", "", "of the table", &ShardedTable::name);
    field("way", "", "how it is divided", &ShardedTable::way,
          {"table_wise", "column_wise", "row_wise", "replicated"});
    field("rows", "", "of the whole table", &ShardedTable::rows);
    field("dim", "", "of the whole table", &ShardedTable::dim);
    field("reuse", "", "how its rows repeat: a name of the file's `reuse`, or uniform",
          &ShardedTable::reuse);
    field("bytes", "bytes", "of one part, with optimizer states", &ShardedTable::bytes);
    field("forward_s", "s", "of one part", &ShardedTable::forward_s);
    field("backward_s", "s", "of one part", &ShardedTable::backward_s);
    field("ranks", "", "one for each part", &ShardedTable::ranks);
  }
};

/// A placement by a simple rule, for comparison.
struct ShardBaseline {
  std::string_view name;  ///< "size", "lookups" or "cost": what the rule balances
  bool fits = true;
  ShardCost cost;  ///< if it fits

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardRule", "A placement of whole tables by a simple rule, for comparison.");
    field("rule", "", "what the rule balances over the ranks", &ShardBaseline::name,
          {"size", "lookups", "cost"});
    field("fits", "", "whether the tables fit", &ShardBaseline::fits);
    field("cost", "", "null: they do not fit",
          [](const ShardBaseline& x) { return x.fits ? &x.cost : nullptr; });
  }
};

struct ShardForecast {
  std::string cluster, cluster_name, gpu, dtype;
  int64_t nodes = 1, ranks = 1, batch = 0;
  int64_t tables_bytes = 0;  ///< of all tables, once, with optimizer states
  int64_t usable_bytes = 0;  ///< of each GPU
  ShardCost cost;
  /// No placement takes less: loads spread evenly over all ranks.
  double bound_s = 0;
  std::vector<ShardedTable> tables;
  std::vector<RankTables> rank_tables;
  std::vector<ShardBaseline> baselines;
  bool extrapolated = true;  ///< FBGEMM's kernels were not measured
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Placement", "A placement of embedding tables on the ranks of a cluster.");
    field("schema_version", "", "of this schema", [](const ShardForecast&) { return 1; });
    field("cluster", "", "id of the cluster", &ShardForecast::cluster);
    field("gpu", "", "id of the GPU", &ShardForecast::gpu);
    field("dtype", "", "of exchanged sums", &ShardForecast::dtype);
    field("nodes", "", "that take part", &ShardForecast::nodes);
    field("ranks", "", "GPUs that take part", &ShardForecast::ranks);
    field("batch", "", "samples of a step, over all ranks", &ShardForecast::batch);
    field("tables_bytes", "bytes", "of all tables, once, with optimizer states",
          &ShardForecast::tables_bytes);
    field("usable_bytes", "bytes", "of each GPU's memory", &ShardForecast::usable_bytes);
    field("cost", "", "seconds of a step", &ShardForecast::cost);
    field("bound_s", "s", "no placement takes less", &ShardForecast::bound_s);
    field("rules", "", "placements of whole tables by simple rules", &ShardForecast::baselines);
    field("rank_tables", "", "what each rank holds", &ShardForecast::rank_tables);
    field("tables", "", "where each table is", &ShardForecast::tables);
    field("extrapolated", "", "FBGEMM's kernels were not measured", &ShardForecast::extrapolated);
    field("warnings", "", "sentences that readers of the numbers should know",
          &ShardForecast::warnings);
  }
};

/// A pass or training step, on one rank or several; text generation or a server; a forward pass on
/// an accelerator.
using Result = std::variant<Forecast, LlmForecast, AcceleratorForecast>;

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

/// The kernels of one operator.
/// Why a kernel takes its time. Terms of a law are null where no law forecasts the kernel.
struct KernelExplanation {
  std::string name;  ///< of the operator
  double roofline_s = 0;
  double flops_per_s = 0, bytes_per_s = 0;
  std::optional<double> clock_hz;
  std::optional<double> law_s, start_s, memory_s, compute_s, busy_ratio, power_s, learned_factor;
  std::string nearest_gpu;  ///< id; "": none
  std::optional<double> similarity;
  std::string measured;  ///< "device", "class", "other devices", "nothing"; "": no law
  std::string outside;   ///< name of a feature

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("KernelExplanation", "Why a kernel takes its time.");
    field("name", "", "operator of 'tilecast ops'", &KernelExplanation::name);
    field("roofline_s", "s", "the shortest time that the data sheet allows",
          &KernelExplanation::roofline_s);
    field("flops_per_s", "FLOP/s", "work over the forecast", &KernelExplanation::flops_per_s);
    field("bytes_per_s", "bytes/s", "memory traffic over the forecast",
          &KernelExplanation::bytes_per_s);
    field("clock_hz", "Hz", "clock of the multiprocessors; null: a collective",
          &KernelExplanation::clock_hz);
    field("law_s", "s",
          "time by the law: a formula of work, data sheet and software; null, as its terms: no law "
          "forecasts this kernel",
          &KernelExplanation::law_s);
    field("start_s", "s", "part of the law: launches, start and end", &KernelExplanation::start_s);
    field("memory_s", "s", "part of the law: bytes from DRAM and L2; overlaps with compute",
          &KernelExplanation::memory_s);
    field("compute_s", "s", "part of the law: cycles of the multiprocessors",
          &KernelExplanation::compute_s);
    field("busy_ratio", "",
          "share of the multiprocessors that has a block, on average over the waves",
          &KernelExplanation::busy_ratio);
    field("power_s", "s", "part of the law that the power limit of the board adds",
          &KernelExplanation::power_s);
    field("learned_factor", "", "forecast over law: what measurements of other kernels taught",
          &KernelExplanation::learned_factor);
    field("nearest_gpu", "", "id of the most similar measured GPU whose rows count; null: none",
          [](const KernelExplanation& x) {
            return x.nearest_gpu.empty() ? nullptr : &x.nearest_gpu;
          });
    field("similarity", "", "of that GPU's data sheet; 1: the same",
          &KernelExplanation::similarity);
    field("measured", "",
          "where rows of the same software and precision are from: device (the nearest GPU), class "
          "(others of its architecture and kind of memory), other devices, nothing; null: no law",
          [](const KernelExplanation& x) { return x.measured.empty() ? nullptr : &x.measured; });
    field("outside", "", "size that is furthest outside the range of the measured rows; null: none",
          [](const KernelExplanation& x) { return x.outside.empty() ? nullptr : &x.outside; });
  }
};

struct KernelAnswer {
  KernelQuestion asked;
  std::vector<KernelForecast> kernels;
  std::vector<KernelExplanation> explanations;  ///< of each kernel
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("KernelAnswer", "The kernels of one operator.");
    field("schema_version", "", "of this schema", [](const KernelAnswer&) { return 1; });
    field("gpu", "", "id of the GPU", [](const KernelAnswer& x) { return (x.asked.gpu); });
    field("clocks", "", "the option `clocks`: boost, base or a number of MHz",
          [](const KernelAnswer& x) { return (x.asked.clocks); });
    field("software", "", "whose kernels run the operator",
          [](const KernelAnswer& x) { return (x.asked.software); });
    field.if_set("reuse", "",
                 "rows of a table that the batch uses once, twice, 4, 8, ... times, as given",
                 [](const KernelAnswer& x) { return x.asked.list_named("reuse"); });
    field("kernels", "", "what it launches", &KernelAnswer::kernels);
    field("explanations", "", "why each of the kernels takes its time",
          &KernelAnswer::explanations);
    field("warnings", "", "sentences that readers of the numbers should know",
          &KernelAnswer::warnings);
  }
};

}  // namespace tilecast
