#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collective.h"
#include "laws/tile.h"
#include "ops/kernel.h"
#include "predict/conditions.h"

namespace tilecast {

/// How a time was measured.
enum class Protocol : uint8_t {
  kSingleCall,  ///< one call on an idle device: includes the host's call overhead
  /// The same, where the overhead grows with each call of a file (call_drift.h). No row that
  /// `read_measurements` returns has it.
  kSlowingCall,
  kBackToBack,  ///< consecutive launches: the time of the kernel alone
};

/// One measured operator.
struct KernelMeasurement {
  std::string gpu;  ///< as spelled in the source
  std::string op;   ///< Tilecast's operator
  Kernel kernel;
  Conditions conditions;
  double measured_s = 0;
  Protocol protocol = Protocol::kSingleCall;
  std::optional<Tile> tile;  ///< from the profiled kernel's name
  std::string algorithm;     ///< of a convolution, from the names of its kernels; "": not known
  size_t source = 0;         ///< index into MeasurementSet::sources
  size_t line = 0;           ///< of the file, on which its row begins; the first is 1
};

/// One measured whole model.
struct ModelMeasurement {
  std::string gpu;
  std::string model;
  std::string config;       ///< path of the model's config if the data set has it, else ""
  std::string config_text;  ///< the config itself if the row contains it, else ""
  std::string mode;         ///< "inference" or "training"
  int64_t seq = 0;          ///< 0: the model's own, of images
  int64_t batch = 0;
  std::string dtype = "fp32";
  std::string optimizer = "none";
  std::string optimizer_impl = "foreach";
  bool checkpointing = false;           ///< of all layers
  bool loss = false;                    ///< the step computes a loss over the logits
  std::string option;                   ///< "", "fusion", "dp4", "compiled", …
  double measured_s = 0;                ///< 0: its memory was measured alone
  std::optional<int64_t> peak_bytes{};  ///< of tensors, on the last rank
  /// The forecast's options by name, in place of all that is above but the model. Empty: those say
  /// it.
  std::vector<std::pair<std::string, std::string>> options{};
  std::string source;
};

/// One measured collective operation.
struct CollectiveMeasurement {
  std::string gpu;      ///< as spelled in the source
  std::string cluster;  ///< id of a bundled cluster; "": a node of this GPU
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;  ///< as collective_time counts them
  DType dtype = DType::kBf16;
  CommGroup group;
  Software software{};
  std::optional<ExpertExchange> exchange;  ///< of DeepEP's kernels, in place of `bytes`
  bool host_paced = false;                 ///< launched by the host: small sizes hold its jitter
  double measured_s = 0;
  size_t source = 0;  ///< index into MeasurementSet::sources
};

struct MeasurementSet {
  std::vector<std::string> sources;  ///< files
  std::vector<KernelMeasurement> kernels;
  std::vector<CollectiveMeasurement> collectives;
  std::vector<ModelMeasurement> models;
  /// Measurements that cannot be used, with the reason.
  std::vector<std::string> unmatched;
  /// Changes to measurements, and why.
  std::vector<std::string> changes;
};

/// Treatment of rows of Tilecast's own layout whose time has not been measured yet.
enum class Untimed : uint8_t { kSkip, kKeep };

/// Reads a file, or all files of a folder in the order of their paths. Known layouts: Tilecast's
/// own CSV, NeuSight, aiconfigurator, Vidur, rocBLAS's and AITER's tuned sizes, PipeWeave,
/// LLMServingSim's layers. Files may be .xz.
/// With Untimed::kKeep, kernels without a time have one of 0. Throws Error{kNotFound}, Error{kIo},
/// Error{kInput} for a malformed file of a known layout.
MeasurementSet read_measurements(const std::filesystem::path& path,
                                 Untimed untimed = Untimed::kSkip);

/// The tile in a BLAS kernel's name ("volta_sgemm_128x64_tn", "…_MT128x64x32_…"); nullopt if the
/// name contains none.
std::optional<Tile> tile_in_name(std::string_view kernel_name);

}  // namespace tilecast
