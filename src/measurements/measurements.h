#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ops/kernel.h"
#include "predict/conditions.h"
#include "predict/tiles.h"

namespace tilecast {

/// How a time was taken, which decides what it is compared with.
enum class Protocol : uint8_t {
  kSingleCall,  ///< one call on an idle device: the host's call overhead is in it
  kBackToBack,  ///< kernels follow each other: the kernel's time alone
};

/// One measured operator.
struct KernelMeasurement {
  std::string gpu;  ///< as the source spells it
  std::string op;   ///< Tilecast's operator
  Kernel kernel;
  Conditions conditions;
  double measured_s = 0;
  Protocol protocol = Protocol::kSingleCall;
  std::optional<Tile> tile;  ///< from the profiled kernel's name
  size_t source = 0;         ///< index into MeasurementSet::sources
};

/// One measured whole model.
struct ModelMeasurement {
  std::string gpu;
  std::string model;
  std::string config;       ///< path of the model's config where the data set brings it, else ""
  std::string config_text;  ///< the config itself where the row holds it, else ""
  std::string mode;         ///< "inference" or "training"
  int64_t seq = 0;
  int64_t batch = 0;
  std::string dtype = "fp32";
  std::string optimizer = "none";
  std::string option;  ///< "", "fusion", "dp4", "compiled", …
  double measured_s = 0;
  std::string source;
};

struct MeasurementSet {
  std::vector<std::string> sources;  ///< files
  std::vector<KernelMeasurement> kernels;
  std::vector<ModelMeasurement> models;
  /// What was found but cannot be used, with the reason; never dropped silently.
  std::vector<std::string> unmatched;
};

/// Reads a file or walks a folder (in order of path) for the layouts that Tilecast knows: its own
/// CSV, the NeuSight repository's, aiconfigurator's. Files may be .xz. Throws Error{kNotFound},
/// Error{kIo}, Error{kInput} for a file of a known layout that is broken.
MeasurementSet read_measurements(const std::filesystem::path& path);

/// The tile in a BLAS kernel's name ("volta_sgemm_128x64_tn", "…_MT128x64x32_…"); nullopt where the
/// name tells none.
std::optional<Tile> tile_in_name(std::string_view kernel_name);

}  // namespace tilecast
