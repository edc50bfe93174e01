#pragma once

#include <map>
#include <optional>
#include <string>

#include "measurements/measurements.h"

namespace tilecast {

/// The clusters that measured collectives ran on, each looked up once.
class MeasuredClusters {
 public:
  /// With as many nodes as the group takes. nullptr where the GPU or its links are unknown.
  const Cluster* find(const CollectiveMeasurement& row);

 private:
  std::map<std::pair<std::string, int64_t>, std::optional<Cluster>> found_;
};

/// The name of the row's group in tables of errors: its kind, and whose kernels or which links.
std::string label_of(const CollectiveMeasurement& row);

/// The forecast of a measured collective.
CollectiveTime forecast_of(const CollectiveMeasurement& row, const Cluster& cluster,
                           const CollectiveWeights* weights = nullptr);

}  // namespace tilecast
