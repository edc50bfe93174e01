#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/calibration.h"
#include "predict/forest.h"
#include "predict/interval.h"
#include "predict/mlp.h"
#include "predict/similarity.h"
#include "predict/tiles.h"
#include "predict/trained_on.h"

namespace tilecast {

/// Seconds; the median of the machines, the least and the most.
struct CallOverhead {
  double seconds = 0, low_s = 0, high_s = 0;

  bool operator==(const CallOverhead&) const = default;
};

/// What one software's kernels on a measured device take longer than the base model says.
struct SoftwareForest {
  Software software = Software::kPyTorch;
  Forest forest;  ///< features → log(measured / base model)

  bool operator==(const SoftwareForest&) const = default;
};

/// What a measured device does differently from the base model: in full on that device,
/// less on others the less their data sheets are alike. Either networks that add to the logit, or,
/// where whole layers were measured (Learning::forests), forests that add to the logarithm of the
/// time.
struct DeviceResidual {
  std::string source;  ///< the measured device; for people only
  Signature signature{};
  std::vector<float> kriging;  ///< this one's row of the inverse of all residuals' similarities
  std::vector<Mlp> members;    ///< an ensemble on all features; the outputs are averaged
  std::vector<SoftwareForest> forests;
  std::vector<Combination> measured;  ///< that the device's rows hold
  IntervalLaw interval;               ///< of held-out rows of the device itself
  /// What a single call on the device's idle machine adds to a kernel's time, in this network's
  /// measurements; wanted to compare with such measurements, not part of a forecast.
  double call_overhead_s = 0;

  /// The forest of the software, or of the one whose kernels are nearest to it.
  const Forest* forest_of(Software software) const;
  /// Networks know no precision and no software: what they say holds for all.
  bool tells_combinations() const { return !forests.empty(); }
  /// Whether the residual is one for such kernels.
  bool covers(const Combination& combination) const;
  bool operator==(const DeviceResidual&) const = default;
};

/// One learned model: features → logit of utilization.
struct Net {
  TrainedOn trained_on;
  std::vector<Mlp> members;  ///< the base model: an ensemble; the logits are averaged
  std::vector<DeviceResidual> residuals;
  std::vector<float> mean;  ///< per feature, of the training rows
  std::vector<float> scale;
  std::vector<float> minimum;  ///< outside [minimum, maximum] a forecast extrapolates
  std::vector<float> maximum;
  IntervalLaw interval;  ///< of devices left out of training
  /// As in DeviceResidual; what the machines of the measured devices say of others.
  CallOverhead call_overhead;

  bool operator==(const Net&) const = default;
};

struct Weights {
  std::array<Net, kNetCount> nets;
  std::vector<TileTree> tiles;
  double vector_pj_per_flop = 0;  ///< see predict/power.h; 0: no card showed its power limit
  /// Of one device, applied at run time; not in the weights file.
  std::optional<Calibration> calibration;
  std::string provenance;  ///< training command and data, as JSON text

  const Net& net(NetKind kind) const { return nets[static_cast<size_t>(kind)]; }
  /// The tree of a vendor's library; nullptr where none was profiled.
  const TileTree* tiles_of(std::string_view vendor) const;
  bool operator==(const Weights&) const = default;
};

/// The file inside a weights folder.
inline constexpr std::string_view kWeightsFile = "kernels.weights";

/// Whether content is verified by its checksum, or trusted because a build put it into the program.
/// Weights of trusted content hold views of it, so it must outlive them.
enum class Checksum : uint8_t { kVerify, kTrust };

/// Reads what `serialize_weights` writes (weights_container.h). Throws Error{kInput} for foreign,
/// truncated or damaged content.
Weights parse_weights(std::string_view content, const std::string& where,
                      Checksum checksum = Checksum::kVerify);
std::string serialize_weights(const Weights& weights);

/// Weights of a folder, or the embedded ones where `folder` is empty.
/// Throws Error{kNotFound} or Error{kInput}.
Weights load_weights(const std::filesystem::path& folder);

}  // namespace tilecast
