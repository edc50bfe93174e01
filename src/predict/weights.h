#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "laws/constants.h"
#include "predict/calibration.h"
#include "predict/forest.h"
#include "predict/interval.h"
#include "predict/precision_width.h"
#include "predict/similarity.h"
#include "predict/trained_on.h"

namespace tilecast {

/// Seconds; the median of the machines, the least and the most.
struct CallOverhead {
  double seconds = 0, low_s = 0, high_s = 0;

  bool operator==(const CallOverhead&) const = default;
};

/// GPUs for which software has the same kernels: an architecture, with HBM or with GDDR memory.
struct KernelClass {
  Architecture architecture{};
  bool hbm = false;

  bool operator==(const KernelClass&) const = default;
  auto operator<=>(const KernelClass&) const = default;
};
KernelClass class_of(const Device& device);

/// Forest of one software: how much longer its kernels take than the law says, on all GPUs of a
/// class.
struct SoftwareForest {
  Software software{};
  Forest forest;  ///< features → log(measured / law)
  /// Per standardized feature, the range of the rows that it was learned from: outside it the
  /// residual fades out (residual.cc).
  std::vector<float> minimum, maximum;

  bool operator==(const SoftwareForest&) const = default;
};

/// A device that a class was measured on.
struct MeasuredDevice {
  std::string source;  ///< its id; for people only
  Signature signature{};
  std::vector<Combination> measured;  ///< that its rows hold
  IntervalLaw interval;               ///< of its held-out rows
  PrecisionWidths widths;             ///< of these, by precision
  /// By operator, what a single call on the device's idle machine adds to a kernel's time in its
  /// measurements; wanted to compare with such measurements, not part of a forecast.
  std::map<std::string, double, std::less<>> call_overhead_s;

  bool covers(const Combination& combination) const;
  bool operator==(const MeasuredDevice&) const = default;
};

/// How the measured devices of a class differ from the law. It knows nothing of the device, so the
/// law alone ranks the devices of a class.
struct ClassResidual {
  KernelClass of;
  MatrixInstruction matrix_instruction{};  ///< of the measured devices
  std::vector<SoftwareForest> forests;
  std::vector<MeasuredDevice> devices;
  /// Interval of a device of the class that was not measured: each of `devices` is left out in
  /// turn. With one device, the interval of such devices of the other classes.
  IntervalLaw interval;

  /// The forest of the software, or of the one whose kernels are nearest to it; nullptr if there is
  /// none.
  /// `libraries`: those that were measured alone may stand for others. `apart`: software with a
  /// block for each row (SoftwareTraits::has_row_blocks) and software without do not stand for
  /// each other.
  const SoftwareForest* forest_of(Software software, bool libraries = true,
                                  bool apart = false) const;
  /// Whether rows of any device hold such kernels.
  bool covers(const Combination& combination) const;
  bool operator==(const ClassResidual&) const = default;
};

/// The model of one kind of kernels.
struct KindModel {
  TrainedOn trained_on;
  std::vector<ClassResidual> classes;
  std::vector<float> mean;  ///< per feature, of the training rows
  std::vector<float> scale;
  std::vector<float> minimum;  ///< outside [minimum, maximum] a forecast extrapolates
  std::vector<float> maximum;
  /// By vendor, of devices of a class that was not measured.
  std::map<std::string, IntervalLaw, std::less<>> vendor_intervals;
  IntervalLaw interval;  ///< the same of any vendor
  /// Widths of these by precision: by vendor, and of any vendor.
  std::map<std::string, PrecisionWidths, std::less<>> vendor_widths;
  PrecisionWidths class_widths;
  PrecisionWidths sibling_widths;  ///< of devices of a class that was measured
  /// As in MeasuredDevice; what the machines of the measured devices say of others.
  CallOverhead call_overhead;

  /// Whether there were rows to learn the kind from.
  bool known() const { return !mean.empty(); }
  bool operator==(const KindModel&) const = default;
};

struct Weights {
  std::array<KindModel, kKernelKindCount> models;
  /// The constants of the laws; not in the weights file.
  LawConstants laws = bundled_laws();
  /// Calibration of one device, applied at run time; not in the weights file.
  std::optional<Calibration> calibration;
  std::string provenance;  ///< training command and data, as JSON text

  const KindModel& model(KernelKind kind) const { return models[static_cast<size_t>(kind)]; }
  bool operator==(const Weights&) const = default;
};

/// The file inside a weights folder. Files of constants of laws may lie beside it, in laws/.
inline constexpr std::string_view kWeightsFile = "kernels.weights";

/// Reads what `serialize_weights` writes (weights_container.h). Throws Error{kInput} for foreign,
/// truncated or damaged content.
Weights parse_weights(std::string_view content, const std::string& where,
                      Checksum checksum = Checksum::kVerify);
std::string serialize_weights(const Weights& weights);

/// Weights of a folder with its constants of laws, or the embedded ones where `folder` is empty.
/// Throws Error{kNotFound} or Error{kInput}.
Weights load_weights(const std::filesystem::path& folder);

}  // namespace tilecast
