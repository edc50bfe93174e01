#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilecast/memory.h"
#include "tilecast/parallel.h"
#include "tilecast/request.h"
#include "tilecast/warning.h"

namespace tilecast {

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
    field("tile", "", "rows and columns of the output that a block computes",
          &KernelForecast::tile);
    field("waves", "", "rounds of blocks over the device", &KernelForecast::waves);
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
  /// if it was asked for and the peak fits, but not by much: add_remedies (src/scenario/remedies.h).
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
  double utilization_ratio = 0;  ///< FLOPs / (latency × the device's peak FLOP/s for the dtype)
  MemoryForecast memory;         ///< over several ranks: of the rank that needs most
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
    field("utilization_ratio", "", "FLOPs / (latency x peak FLOP/s of the device for the dtype)",
          &Forecast::utilization_ratio);
    field("memory", "", "over several ranks: of the rank that needs most", &Forecast::memory);
    field("kernels", "", "over several ranks: of one rank of each stage, over all micro-batches",
          &Forecast::kernels);
    field.flat(&Forecast::parallel);
    field("options", "",
          "the request with all defaults: values by the names of the command-line options (with _ "
          "for -), in their units; options without a value are omitted",
          [](const Forecast& f) { return option_values(f.used); });
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Forecast& f) { return warning_texts(f.warnings); });
    field("warning_codes", "", "code of each warning, in the order of warnings",
          [](const Forecast& f) { return warning_code_names(f.warnings); });
  }
};

/// A model that has been read and checked. Cheap to copy; safe to share between threads.
class ModelRef {
 public:
  const std::string& name() const;
  struct Content;
  std::shared_ptr<const Content> content;  ///< shared: read-only after construction
};

/// A device that has been read and checked. Cheap to copy; safe to share between threads.
class GpuRef {
 public:
  const std::string& id() const;
  /// Fields that the device file leaves out, with the values used instead.
  const std::vector<std::string>& warnings() const;
  struct Content;
  std::shared_ptr<const Content> content;  ///< shared: read-only after construction
};

/// A config.json (or its folder), a graph file, or a bundled model's name. Throws Error.
ModelRef load_model_ref(const std::string& name_or_path);
/// Reads the content of such a file from memory. `name` is used in messages in place of the path,
/// and as the model's name if the content has none. Throws Error.
ModelRef model_from_text(const std::string& text, const std::string& name);
/// A device's id or alias, or the path of a device file. Throws Error.
GpuRef load_gpu_ref(const std::string& name_or_path);
/// The GPU of a cluster: its id or alias, or the path of a cluster file. Throws Error.
GpuRef load_cluster_gpu_ref(const std::string& cluster);

/// The GPU of a request: `gpu`, or that of `cluster`; "" is not given. Throws OptionError if
/// neither is given or they differ, and the errors of both functions above.
GpuRef load_gpu_or_cluster(const std::string& gpu, const std::string& cluster);
/// Reads the content of a device file from memory. `name` is used in messages in place of the path.
/// Throws Error.
GpuRef gpu_from_text(const std::string& text, const std::string& name);

/// Forecasts with one set of weights. Const calls are safe from any number of threads.
class Forecaster {
 public:
  /// Loads the embedded weights ("") or the weights in a folder. `calibration` is a file written by
  /// 'tilecast calibrate'; "": none. Throws Error{kNotFound} or Error{kInput}.
  explicit Forecaster(const std::string& weights_folder = "", const std::string& calibration = "");
  ~Forecaster();
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  /// Forecasts one pass. A pure function of its arguments and the weights. Throws Error.
  Forecast forecast(const ModelRef& model, const GpuRef& gpu, const Request& request) const;

  /// The operations of a training step over several ranks, one rank of each kind. Throws Error,
  /// also for a request that is for one rank.
  std::vector<StepOperation> step_operations(const ModelRef& model, const GpuRef& gpu,
                                             const Request& request) const;

  /// The largest batch whose peak memory fits into the device; nullopt if not even one sequence
  /// fits, or if the graph fixes the batch.
  std::optional<int64_t> largest_batch(const ModelRef& model, const GpuRef& gpu,
                                       const Request& request) const;

  /// Memory over the steps of one pass, with a simulation of PyTorch's allocator. Takes longer than
  /// a forecast: every repetition of a layer is a step of its own. Throws Error.
  MemoryTimeline memory_timeline(const ModelRef& model, const GpuRef& gpu,
                                 const Request& request) const;

  /// Forecasts the kernels of one operator; most operators launch one. Throws Error, also for sizes
  /// that the operator does not have.
  std::vector<KernelForecast> kernel(const std::string& op, const GpuRef& gpu,
                                     const std::string& dtype, const std::vector<GivenSize>& sizes,
                                     const KernelOptions& options = {}) const;

  /// Weights and predictors; used by Tilecast's own libraries only.
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// A bundled device, with the numbers of its data sheet.
struct GpuEntry {
  std::string id, name, vendor;
  std::vector<std::string> aliases;
  int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int64_t sm_count = 0;  ///< streaming multiprocessors; compute units on AMD
  double boost_clock_hz = 0;
  int64_t l2_bytes = 0;
  double power_w = 0;                     ///< power limit of the board
  std::string architecture, memory_type;  ///< "hopper", "hbm3"; the words of device files
  /// Peak rates by dtype, for the dtypes that the device supports. Dense, without structured
  /// sparsity.
  std::vector<std::pair<std::string, double>> vector_flops_per_s, matrix_flops_per_s;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("GpuEntry", "A bundled device, with the numbers of its data sheet.");
    field("id", "", "name for --gpu", &GpuEntry::id);
    field("name", "", "the product name", &GpuEntry::name);
    field("vendor", "", "who makes it", &GpuEntry::vendor);
    field("aliases", "", "other names", &GpuEntry::aliases);
    field("memory_bytes", "bytes", "size of the memory", &GpuEntry::memory_bytes);
    field("memory_bytes_per_s", "bytes/s", "bandwidth of the memory",
          &GpuEntry::memory_bytes_per_s);
    field("sm_count", "", "streaming multiprocessors; compute units on AMD", &GpuEntry::sm_count);
    field("boost_clock_hz", "Hz", "the highest clock", &GpuEntry::boost_clock_hz);
    field("l2_bytes", "bytes", "second-level cache", &GpuEntry::l2_bytes);
    field("power_w", "W", "power limit of the board", &GpuEntry::power_w);
    field("architecture", "", "the word of device files", &GpuEntry::architecture);
    field("memory_type", "", "the word of device files", &GpuEntry::memory_type);
    field("vector_flops_per_s", "FLOP/s", "peak rates of the vector lanes by dtype",
          &GpuEntry::vector_flops_per_s);
    field("matrix_flops_per_s", "FLOP/s",
          "peak rates of the matrix units by dtype, without sparsity",
          &GpuEntry::matrix_flops_per_s);
  }
};

/// A bundled model.
struct ModelEntry {
  std::string name, family;
  int64_t parameters = 0;
  std::optional<int64_t> positions;  ///< the longest sequence in tokens; nullopt: no limit
  std::string note;                  ///< says so if the name is misleading; else ""

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ModelEntry", "A bundled model.");
    field("name", "", "name for MODEL", &ModelEntry::name);
    field("family", "", "model_type or class in the config", &ModelEntry::family);
    field("parameters", "", "parameters of the model", &ModelEntry::parameters);
    field("positions", "tokens", "the longest sequence; null: no limit", &ModelEntry::positions);
    field("note", "", "says so if the name is misleading; null: it is not",
          [](const ModelEntry& x) { return x.note.empty() ? nullptr : &x.note; });
  }
};

/// A size or setting of an operator that `Forecaster::kernel` accepts.
struct SizeEntry {
  std::string name, description;
  std::vector<std::string> other_names;  ///< other accepted names
  std::string default_value;             ///< the default as text; "": required
  /// The accepted words; empty: a whole number from `min` to `max`.
  std::vector<std::string> choices;
  int64_t min = 0, max = 0;
  bool is_switch = false;  ///< off by default; 1 turns it on
  bool is_list = false;    ///< whole numbers with colons between them, as a text: "4:2:1"

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("SizeEntry", "A size or setting of an operator's kernel.");
    field("name", "", "name of the size", &SizeEntry::name);
    field("description", "", "what it is", &SizeEntry::description);
    field("other_names", "", "other accepted names", &SizeEntry::other_names);
    field("default", "", "as text; empty: required", &SizeEntry::default_value);
    field("choices", "", "the accepted words; empty: a whole number from min to max",
          &SizeEntry::choices);
    field("min", "", "the least value", &SizeEntry::min);
    field("max", "", "the largest value", &SizeEntry::max);
    field("is_switch", "", "off by default; 1 turns it on", &SizeEntry::is_switch);
    field("is_list", "", "whole numbers with colons between them, as a text: 4:2:1",
          &SizeEntry::is_list);
  }
};

/// An operator of the graph notation.
struct OpEntry {
  std::string name, pytorch, onnx, description;  ///< `onnx` is "" if ONNX has no such operator
  std::vector<SizeEntry> sizes;                  ///< empty if the operator launches no kernel

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("OpEntry", "An operator.");
    field("name", "", "name for 'tilecast kernel'", &OpEntry::name);
    field("pytorch", "", "ATen operator; null: none",
          [](const OpEntry& x) { return x.pytorch.empty() ? nullptr : &x.pytorch; });
    field("onnx", "", "operator of ONNX; null: none",
          [](const OpEntry& x) { return x.onnx.empty() ? nullptr : &x.onnx; });
    field("description", "", "what it computes", &OpEntry::description);
    field("sizes", "", "sizes and settings of its kernel; empty: it launches none",
          &OpEntry::sizes);
  }
};

std::vector<GpuEntry> gpu_catalog();
std::vector<ModelEntry> model_catalog();
std::vector<OpEntry> op_catalog();
/// Names of the dtypes that kernels compute in: what `Forecaster::kernel` is for.
std::vector<std::string> kernel_dtypes();
/// The software whose kernels `Forecaster::kernel` forecasts: KernelOptions::software.
std::vector<std::string> kernel_software();

}  // namespace tilecast
