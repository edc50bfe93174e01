#pragma once

// Models and devices that are read once, what Tilecast knows, and forecasts of one request.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tilecast/result.h"

namespace tilecast {

/// How far a long job is.
struct Progress {
  size_t done = 0, total = 0;
  std::string unit;  ///< what is counted: "forests"; another unit begins another count
  std::string note;  ///< about what was done last; may be empty
};

/// Called from any thread, one at a time; may be null.
using ShowProgress = std::function<void(const Progress&)>;

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

  /// Power over a pass or training step, or over a minute of a server under load: one in the middle
  /// of the run, all of a shorter one. Throws Error, also where power is not forecast.
  PowerTimeline power_timeline(const ModelRef& model, const GpuRef& gpu,
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
  /// The same with why each takes its time. `asked` and `warnings` of the answer are empty.
  KernelAnswer explained_kernel(const std::string& op, const GpuRef& gpu, const std::string& dtype,
                                const std::vector<GivenSize>& sizes,
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
  int64_t sm_count = 0;
  double boost_clock_hz = 0;
  int64_t l2_bytes = 0;
  double power_w = 0;
  std::string architecture, memory_type;
  std::vector<std::pair<std::string, double>> vector_flops_per_s, matrix_flops_per_s;
  std::vector<std::string> slices;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = GpuEntry;
    field.is("GpuEntry", "A bundled device, with the numbers of its data sheet.");
    field("id", "", "name for --gpu", &Self::id);
    field("name", "", "the product name", &Self::name);
    field("vendor", "", "who makes it", &Self::vendor);
    field("aliases", "", "other names", &Self::aliases);
    field("memory_bytes", "bytes", "size of the memory", &Self::memory_bytes);
    field("memory_bytes_per_s", "bytes/s", "bandwidth of the memory", &Self::memory_bytes_per_s);
    field("sm_count", "", "streaming multiprocessors; compute units on AMD", &Self::sm_count);
    field("boost_clock_hz", "Hz", "the highest clock", &Self::boost_clock_hz);
    field("l2_bytes", "bytes", "second-level cache", &Self::l2_bytes);
    field("power_w", "W", "power limit of the board", &Self::power_w);
    field("architecture", "", "the word of device files", &Self::architecture);
    field("memory_type", "", "the word of device files", &Self::memory_type);
    field("vector_flops_per_s", "FLOP/s", "peak rates of the vector lanes by dtype",
          &Self::vector_flops_per_s);
    field("matrix_flops_per_s", "FLOP/s",
          "peak rates of the matrix units by dtype, without sparsity", &Self::matrix_flops_per_s);
    field("slices", "", "profiles of MIG, for --gpu as in A100-40GB:1g.5gb", &Self::slices);
  }
};

/// A bundled model.
struct ModelEntry {
  std::string name, family;
  int64_t parameters = 0;
  std::optional<int64_t> positions;
  std::string note;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ModelEntry;
    field.is("ModelEntry", "A bundled model.");
    field("name", "", "name for MODEL", &Self::name);
    field("family", "", "model_type or class in the config", &Self::family);
    field("parameters", "", "parameters of the model", &Self::parameters);
    field("positions", "tokens", "the longest sequence; null: no limit", &Self::positions);
    field("note", "", "says so if the name is misleading; null: it is not",
          [](const Self& x) { return x.note.empty() ? nullptr : &x.note; });
  }
};

/// A size or setting of an operator that `Forecaster::kernel` accepts.
struct SizeEntry {
  std::string name, description;
  std::vector<std::string> other_names;
  std::string default_value;
  std::vector<std::string> choices;
  int64_t min = 0, max = 0;
  bool is_switch = false;
  bool is_list = false;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SizeEntry;
    field.is("SizeEntry", "A size or setting of an operator's kernel.");
    field("name", "", "name of the size", &Self::name);
    field("description", "", "what it is", &Self::description);
    field("other_names", "", "other accepted names", &Self::other_names);
    field("default", "", "as text; empty: required", &Self::default_value);
    field("choices", "", "the accepted words; empty: a whole number from min to max",
          &Self::choices);
    field("min", "", "the least value", &Self::min);
    field("max", "", "the largest value", &Self::max);
    field("is_switch", "", "off by default; 1 turns it on", &Self::is_switch);
    field("is_list", "", "whole numbers with colons between them, as a text: 4:2:1",
          &Self::is_list);
  }
};

/// An operator of the graph notation.
struct OpEntry {
  std::string name, pytorch, onnx, description;
  std::vector<SizeEntry> sizes;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = OpEntry;
    field.is("OpEntry", "An operator.");
    field("name", "", "name for 'tilecast kernel'", &Self::name);
    field("pytorch", "", "ATen operator; null: none",
          [](const Self& x) { return x.pytorch.empty() ? nullptr : &x.pytorch; });
    field("onnx", "", "operator of ONNX; null: none",
          [](const Self& x) { return x.onnx.empty() ? nullptr : &x.onnx; });
    field("description", "", "what it computes", &Self::description);
    field("sizes", "", "sizes and settings of its kernel; empty: it launches none", &Self::sizes);
  }
};

/// A file that comes with the program: of a GPU, a cluster or a model.
struct DataFile {
  /// One number or word of it.
  struct Field {
    std::string name;    ///< "matrix_flops_per_s.bf16"
    std::string value;   ///< as text, with its unit
    std::string source;  ///< "" if the file states none
  };
  std::string name;
  std::string json;  ///< its text, which `gpu`, `cluster` or a model's name may be a file of
  std::vector<Field> values;
};

/// The file of the GPU ("gpus"), cluster ("clusters") or model ("models") of that name or alias;
/// nullopt: there is none.
std::optional<DataFile> find_data_file(const std::string& kind, const std::string& name);

/// A family of models whose config.json is read.
struct FamilyEntry {
  std::string name;  ///< `model_type` of its configs
  std::string description;
};
std::vector<FamilyEntry> family_catalog();

/// What is installed here.
struct Installation {
  /// A weights file that is embedded.
  struct WeightsFile {
    std::string name;
    int64_t bytes = 0;
    std::string checksum, trained_on;

    template <typename Fields>
    static void fields(Fields& field) {
      using Self = WeightsFile;
      field.is("InstalledWeights", "A file of embedded weights.");
      field("name", "", "its name", &Self::name);
      field("bytes", "bytes", "its size", &Self::bytes);
      field("checksum", "", "of its content, which was verified", &Self::checksum);
      field("trained_on", "", "hash of the measurements; empty: not stated", &Self::trained_on);
    }
  };
  /// A GPU of this machine.
  struct Card {
    std::string name, device, driver;
    std::optional<double> clock_hz, max_clock_hz, power_limit_w;
    std::optional<int64_t> memory_bytes;
    std::vector<std::string> differences;

    template <typename Fields>
    static void fields(Fields& field) {
      using Self = Card;
      field.is("InstalledGpu", "A GPU of this machine, beside its device file.");
      field("name", "", "as its driver states it", &Self::name);
      field("device", "", "id of its device file; empty: there is none", &Self::device);
      field("driver", "", "version of the driver", &Self::driver);
      field("clock_hz", "Hz", "clock now; null: not stated", &Self::clock_hz);
      field("max_clock_hz", "Hz", "the highest clock; null: not stated", &Self::max_clock_hz);
      field("power_limit_w", "W", "power limit in force; null: not stated", &Self::power_limit_w);
      field("memory_bytes", "bytes", "size of the memory; null: not stated", &Self::memory_bytes);
      field("differences", "", "what differs from the device file, and what to do",
            &Self::differences);
    }
  };
  /// A library or tool that some commands need.
  struct Part {
    std::string name;
    bool found = false;
    std::string use;

    template <typename Fields>
    static void fields(Fields& field) {
      using Self = Part;
      field.is("InstalledPart", "A part that some commands need.");
      field("name", "", "its name", &Self::name);
      field("found", "", "whether it is here", &Self::found);
      field("use", "", "what needs it, and how to install it", &Self::use);
    }
  };

  std::string version;
  std::vector<WeightsFile> weights;
  std::vector<Card> gpus;
  std::string hub_cache;
  int64_t hub_models = 0;
  std::vector<Part> parts;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Installation;
    field.is_document("Installation", "What is installed here.");
    field("version", "", "of Tilecast", &Self::version);
    field("weights", "", "embedded weights", &Self::weights);
    field("gpus", "", "of this machine", &Self::gpus);
    field("hub_cache", "", "folder of Hugging Face's local cache", &Self::hub_cache);
    field("hub_models", "", "models in it that have a config.json", &Self::hub_models);
    field("parts", "", "optional parts", &Self::parts);
  }
};

std::vector<GpuEntry> gpu_catalog();

std::vector<ModelEntry> model_catalog();

std::vector<OpEntry> op_catalog();

/// Names of the dtypes that kernels compute in: what `Forecaster::kernel` is for.
std::vector<std::string> kernel_dtypes();

/// The software whose kernels `Forecaster::kernel` forecasts: KernelOptions::software.
std::vector<std::string> kernel_software();

/// Forecasts a request of kind kGenerate or kServe. A pure function of its arguments and the
/// forecaster's weights. If the memory does not suffice, the forecast has `fits` false and a
/// warning. Throws Error: kUnsupported for a model that does not generate text or a precision that
/// the device does not support; kInput for sequences longer than the model allows, a `tp` that does
/// not divide its heads, and contradicting options.
GenerationForecast forecast_generation(const Forecaster& forecaster, const ModelRef& model,
                                       const GpuRef& gpu, const Request& request);

struct AcceleratorOptions {
  bool exact = false;   ///< run all instructions instead of extrapolating from fixed points
  std::string mapping;  ///< one mapping for all layers ("order=… tile=…"); "": a mapper chooses
  std::string mapping_file;  ///< mappings by layer, as `accelerator_mappings` writes them
  std::vector<std::pair<std::string, double>> parameters;  ///< on top of the parameters of `spec`
};

/// A text with '=' is one mapping for all layers, another text the path of a file of mappings.
void set_mapping(AcceleratorOptions& options, const std::string& text_or_path);

/// Whether `--gpu` names an accelerator that is described by its objects: a bundled one, or a file.
bool is_accelerator(const std::string& spec);

std::vector<std::string> accelerator_ids();

/// One forward pass of the model on the accelerator. Throws Error; also for an operator that
/// neither the accelerator nor its host runs.
AcceleratorForecast forecast_accelerator(const ModelRef& model, const std::string& spec,
                                         const Request& request,
                                         const AcceleratorOptions& options = {});

/// The mappings of all layers, for AcceleratorOptions::mapping_file.
std::string accelerator_mappings(const AcceleratorForecast& forecast);

AcceleratorOccupancy accelerator_occupancy(const ModelRef& model, const std::string& spec,
                                           const Request& request,
                                           const AcceleratorOptions& options);

/// One level of links inside a node, innermost first.
struct ClusterLink {
  std::string kind;
  std::string fabric;
  int64_t gpus = 0;
  double bytes_per_s = 0;
  std::optional<double> shared_bytes_per_s;
  double latency_s = 0;
  bool reduces = false;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ClusterLink;
    field.is("ClusterLink", "One level of links inside a node.");
    field("kind", "", "nvlink, pcie, …", &Self::kind);
    field("fabric", "", "how they join the GPUs", &Self::fabric, {"switch", "mesh", "bus"});
    field("gpus", "", "that the level joins", &Self::gpus);
    field("bytes_per_s", "bytes/s", "of one GPU, in one direction", &Self::bytes_per_s);
    field.if_set("shared_bytes_per_s", "bytes/s", "of all transfers of a bus together",
                 &Self::shared_bytes_per_s);
    field("latency_s", "s", "one step of a collective, smallest message", &Self::latency_s);
    field("reduces", "", "the switch sums", &Self::reduces);
  }
};

struct ClusterNetwork {
  std::string kind;
  int64_t nics_per_node = 0;
  double bytes_per_s = 0;
  double latency_s = 0;
  double oversubscription = 1;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ClusterNetwork;
    field.is("ClusterNetwork", "The network between nodes.");
    field("kind", "", "infiniband, …", &Self::kind);
    field("nics_per_node", "", "network cards of a node", &Self::nics_per_node);
    field("bytes_per_s", "bytes/s", "of one NIC, in one direction", &Self::bytes_per_s);
    field("latency_s", "s", "one step of a collective, smallest message", &Self::latency_s);
    field("oversubscription", "", "rate of the NICs over what the network carries",
          &Self::oversubscription);
  }
};

struct ClusterEntry {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  std::string gpu;
  int64_t gpus_per_node = 0;
  int64_t nodes = 1;
  std::vector<ClusterLink> links;
  std::optional<ClusterNetwork> network;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ClusterEntry;
    field.is("ClusterEntry", "A bundled cluster.");
    field("id", "", "name for --cluster", &Self::id);
    field("name", "", "the product name", &Self::name);
    field("aliases", "", "other names", &Self::aliases);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("gpus_per_node", "", "GPUs of a node", &Self::gpus_per_node);
    field("nodes", "", "default", &Self::nodes);
    field("links", "", "inside a node, innermost first", &Self::links);
    field("network", "", "between nodes", &Self::network);
  }
};

/// All bundled clusters, sorted by id.
std::vector<ClusterEntry> cluster_catalog();

/// Request for a single collective.
struct CollectiveQuery {
  std::string kind;     ///< one of collective_kinds()
  std::string cluster;  ///< id, alias or file
  int64_t nodes = 0;    ///< of the cluster; 0: as many as the ranks take
  int64_t ranks = 0;
  int64_t ranks_per_node = 0;  ///< 0: as many as a node has GPUs
  int64_t concurrent = 1;      ///< groups that share each node's links
  int64_t bytes = 0;           ///< of the whole buffer, as NCCL's tests count
  std::string dtype = "bf16";
  std::string software = "pytorch";
};

std::vector<std::string> collective_kinds();

/// Throws Error{kNotFound} for an unknown cluster or kind, Error{kInput} for ranks that the cluster
/// does not hold.
CollectiveForecast forecast_collective(const CollectiveQuery& query);

/// An accelerator that its objects describe, as `gpu` names it.
struct AcceleratorRef {
  std::string spec;
  AcceleratorOptions options;
};

/// What runs the model.
using DeviceRef = std::variant<GpuRef, AcceleratorRef>;

/// The accelerator or GPU that `gpu` names, or the GPU of `cluster`; "" is not given. `options`:
/// of an accelerator. Throws as `load_gpu_or_cluster`.
DeviceRef load_device_ref(const std::string& gpu, const std::string& cluster = "",
                          const AcceleratorOptions& options = {});

/// What a result has beside its numbers.
enum class Detail : uint8_t {
  kNumbers,   ///< no search for what would fit or be faster
  kWarnings,  ///< the largest batch where a pass does not fit; precisions that are slower than 16
              ///< bits in text generation
  kRemedies   ///< also what would make a pass fit, the largest batch of one that fits, and what the
              ///< allocator takes where it hardly fits
};

/// Answers a request. A pure function of its arguments and the weights. Throws Error if the model
/// or the device cannot do what is asked.
Result ask(const Forecaster& forecaster, const ModelRef& model, const DeviceRef& device,
           const Request& request, Detail detail = Detail::kWarnings);

}  // namespace tilecast
