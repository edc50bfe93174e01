#pragma once

// Subjects of a question: named, or read already.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/option.h"
#include "tilecast/forecast.h"

namespace tilecast {

struct ModelSource {
  std::string name;              ///< a name or a path
  std::optional<ModelRef> read;  ///< in place of it

  /// Throws Error.
  ModelRef load() const;
};

struct GpuSource {
  std::string name;  ///< an id, an alias or a path; "": not given
  std::optional<GpuRef> read;

  bool given() const { return read || !name.empty(); }
  /// Throws Error.
  GpuRef load() const;
  /// The GPU, or that of the cluster; "" is not given. Throws Error.
  GpuRef load_or_of(const std::string& cluster) const;
};

/// Weights and calibration.
struct ForecasterSource {
  std::string weights, calibration;        ///< a folder, a file; "": the embedded weights, none
  std::shared_ptr<const Forecaster> read;  ///< in place of them

  /// Throws Error.
  std::shared_ptr<const Forecaster> load() const;
};

/// One GPU; its name may have commas.
GpuSource gpu_source(const GivenValue& value);
/// The GPUs of a value: those that were read, else a list of names.
std::vector<GpuSource> gpu_sources(const GivenValue& value);
/// The words of a list, "1,2,4" or several of these.
std::vector<std::string> listed(const GivenValue& value);
/// An option of a request with its words.
GivenOption given_option(const CommandOption& option, const GivenValue& value);

}  // namespace tilecast
