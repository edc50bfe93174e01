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

#include "tilecast/request.h"
#include "tilecast/warning.h"

namespace tilecast {

/// A size or setting of an operator's kernel: {"m", 4096}, {"kv_dtype", "fp8"}. `OpEntry::sizes`
/// lists those of each operator.
struct GivenSize {
  std::string name;
  std::variant<int64_t, std::string> value;
};

/// What a kernel is forecast with.
struct KernelOptions {
  std::string predictor = "learned";  ///< learned or roofline
  std::string software = "pytorch";   ///< whose kernels: pytorch, vllm, sglang or trtllm
  bool warm = false;  ///< operands lie in L2 already, as when a benchmark replays the kernel
};

/// The sizes of a kernel under the names that its type gives them: batch, m, n and k of a gemm.
struct NamedSizes {
  static constexpr size_t kMaxSizes = 8;  ///< that a type has

  std::string_view type;  ///< "gemm", "convolution", "attention", "experts", "rows", "stream", …
  std::string_view text;  ///< how tables show them: "{batch} x [{m}x{n}x{k}]"
  std::span<const std::string_view> names;
  std::array<int64_t, kMaxSizes> values{};  ///< in the order of the names

  bool operator==(const NamedSizes& other) const {
    return type == other.type && values == other.values;
  }
};

/// Kernels that are alike, e.g. one per layer. Times are of one; `count` says how many. The name
/// points into storage that the forecast and its copies share; the other texts are constants. So
/// rows are cheap to copy, and one that outlives its forecast must not be asked for its name.
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
  std::string_view limit;  ///< "compute", "memory" or "latency"
  std::optional<std::pair<int64_t, int64_t>> tile;
  double waves = 0;
  double utilization_ratio = 0;  ///< least time that the data sheet allows over the forecast
  std::string_view predictor;
  bool extrapolated = false;
  /// What is furthest outside the training range: a feature of docs/accuracy.md, or "dtype".
  std::string_view extrapolated_feature;
};

/// Bytes of one rank at the peak.
struct MemoryForecast {
  int64_t peak_bytes = 0;
  int64_t weights_bytes = 0;
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t activations_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t framework_bytes = 0;
  int64_t device_bytes = 0;
  bool fits = true;
  /// Where it does not fit, what `Forecaster::largest_batch` says; not worked out where it does.
  std::optional<int64_t> largest_batch;
};

struct Forecast {
  std::string model;
  std::string gpu;       ///< id
  std::string gpu_name;  ///< as people say it
  std::string mode;
  int64_t batch = 0;
  int64_t seq = 0;
  std::string dtype;  ///< resolved; schemes that differ from layer to layer are joined by "+"
  /// Why: "asked", "default", "graph" (a graph file's own), or the field or file of the checkpoint
  /// that says so ("torch_dtype", "dtype", "quantization_config", "hf_quant_config.json").
  std::string dtype_source;
  bool fixed_shapes = false;  ///< a graph file's: `batch` and `seq` say nothing
  double latency_s = 0;
  double latency_low_s = 0;  ///< 80 % interval
  double latency_high_s = 0;
  double kernels_s = 0;    ///< the kernels alone, end to end
  double host_wait_s = 0;  ///< what the GPU waits for the host's launches
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t parameters = 0;
  double utilization_ratio = 0;  ///< FLOPs over latency × the device's peak for the dtype
  MemoryForecast memory;
  std::vector<KernelForecast> kernels;
  std::shared_ptr<const void> names;  ///< what the names of the kernels point into
  std::vector<Warning> warnings;
  Request used;  ///< the request as it was used: what was left open is filled in
};

/// A model that was read and checked. Cheap to copy; safe to share between threads.
class ModelRef {
 public:
  const std::string& name() const;
  struct Content;
  std::shared_ptr<const Content> content;  ///< shared: read-only after construction
};

/// A device that was read and checked. Cheap to copy; safe to share between threads.
class GpuRef {
 public:
  const std::string& id() const;
  /// What its file left out and what was taken instead.
  const std::vector<std::string>& warnings() const;
  struct Content;
  std::shared_ptr<const Content> content;  ///< shared: read-only after construction
};

/// A config.json (or its folder), a graph file, or a bundled model's name. Throws Error.
ModelRef load_model_ref(const std::string& name_or_path);
/// The text of such a file; `name` stands for its path in messages, and names the model where the
/// text does not. Throws Error.
ModelRef model_from_text(const std::string& text, const std::string& name);
/// A device's id or alias, or the path of a device file. Throws Error.
GpuRef load_gpu_ref(const std::string& name_or_path);
/// The text of a device file; `name` stands for its path in messages. Throws Error.
GpuRef gpu_from_text(const std::string& text, const std::string& name);

/// Forecasts with one set of weights. Const calls are safe from any number of threads.
class Forecaster {
 public:
  /// Embedded weights, or those of a folder; `calibration` is a file of 'tilecast calibrate', ""
  /// for none. Throws Error{kNotFound} or Error{kInput}.
  explicit Forecaster(const std::string& weights_folder = "", const std::string& calibration = "");
  ~Forecaster();
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  /// One pass: a pure function of its arguments and the weights. Throws Error.
  Forecast forecast(const ModelRef& model, const GpuRef& gpu, const Request& request) const;

  /// The largest batch whose peak fits into the device; nullopt where not even one sequence does,
  /// or where the graph fixes its batch.
  std::optional<int64_t> largest_batch(const ModelRef& model, const GpuRef& gpu,
                                       const Request& request) const;

  /// One operator's kernels (most launch one). Throws Error, also for sizes that the operator does
  /// not take.
  std::vector<KernelForecast> kernel(const std::string& op, const GpuRef& gpu,
                                     const std::string& dtype, const std::vector<GivenSize>& sizes,
                                     const KernelOptions& options = {}) const;

  /// For Tilecast's own libraries: weights and predictors.
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// A bundled device, as its data sheet says.
struct GpuEntry {
  std::string id, name, vendor;
  std::vector<std::string> aliases;
  int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int64_t sm_count = 0;  ///< compute units on AMD
  double boost_clock_hz = 0;
  int64_t l2_bytes = 0;
  double power_w = 0;  ///< of the board
  /// Peak rates by dtype; only what the device has. Dense products, without sparsity.
  std::vector<std::pair<std::string, double>> vector_flops_per_s, matrix_flops_per_s;
};

/// A bundled model.
struct ModelEntry {
  std::string name, family;
  int64_t parameters = 0;
  std::optional<int64_t> positions;  ///< tokens that it reads at most; nullopt: no such limit
  std::string note;                  ///< where the name misleads; "": nothing to say
};

/// A size or setting by which `Forecaster::kernel` takes an operator.
struct SizeEntry {
  std::string name, description;
  std::vector<std::string> other_names;  ///< also read
  std::string default_value;             ///< default, as text; "": it has to be given
  std::vector<std::string> choices;  ///< of a text; empty: a whole number from `least` to `most`
  int64_t min = 0, max = 0;
  bool is_switch = false;  ///< off; 1 turns it on
};

/// An operator of the graph notation.
struct OpEntry {
  std::string name, pytorch, onnx, description;  ///< `onnx` is "" where it has no such operator
  std::vector<SizeEntry> sizes;                  ///< empty where it launches no kernel
};

std::vector<GpuEntry> gpu_catalog();
std::vector<ModelEntry> model_catalog();
std::vector<OpEntry> op_catalog();

}  // namespace tilecast
